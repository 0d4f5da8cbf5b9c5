# %% [markdown]
# # 14 Capstone: your transformer, from the dot product to a task
#
# Thirteen chapters of parts. Now they become one machine: you put an encoder together, prove that
# it agrees with PyTorch's, find out by measuring what it must not read, train it on a task whose
# test nobody has seen, make a claim of your own, and look inside without believing the first
# picture.
#
# **You will be able to**
#
# - assemble a classifier from your own parts and show that it is right;
# - measure what any model reads, instead of trusting its mask;
# - train a model that does well on new data, and know that no shortcut could;
# - state a claim, run seeds, and say what the runs do and do not show;
# - tell how bright a line is from what it does.
#
# | section | minutes | points |
# |---|---|---|
# | 1 The task | 10 | |
# | 2 Your parts | 15 | |
# | 3 The whole encoder | 45 | 4 |
# | 4 What must not be read | 45 | 4 |
# | 5 Training | 50 | 4 |
# | 6 A claim of your own | 60 | 4 |
# | 7 A bright line is not a cause | 55 | 6 |
# | 8 Recap | 5 | |
# | **in all** | **285** | **22** |
#
# Two sittings: sections 1 to 5, 6 to 8. Seven of the 22 points are marked by hand.

# %% [markdown]
# **To read**, before or after: S. Jain and B. C. Wallace (2019), *Attention is not Explanation*,
# Section 4. S. Wiegreffe and Y. Pinter (2019), *Attention is not not Explanation*. G. Kobayashi,
# T. Kuribayashi, S. Yokoi and K. Inui (2020), *Attention is Not Only a Weight*.
#
# **Symbols.**
#
# | name | shape | meaning |
# |---|---|---|
# | `tokens` | (batch, length) | int64, 0 = padding, only at the end; at least one token is real |
# | `labels` | (batch,) | int64, the right class |
# | `logits` | (batch, classes) | scores before the softmax |
# | `mask` | (queries, keys) | bool, True = may be seen |
# | `longest` | a number | the most places that a model must be able to read |
#
# **What is graded is what stands in this notebook's answer cells.** Only this notebook is handed
# in: no answer may import a file beside it. If you want a part of your own from another chapter in
# an answer, paste its code into the answer cell.

# %%
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course import check, example

torch.set_num_threads(1)  # small tensors: more threads would only wait for each other

# %% [markdown]
# ## 1 The task
#
# Two tokens of ten matter; which two is drawn anew for each run. Both are in *every* sequence, once
# each. The label is 1 if the first of them stands before the second. All other tokens are noise.

# %% tags=["experiment"]
from attention_course.capstone import make_task

task = make_task(3)
print(f"what matters: does {task.first} stand before {task.second}?")
for row, label in zip(task.tokens[:6].tolist(), task.labels[:6].tolist(), strict=True):
    print(row, "→", label)
print(f"{len(task.tokens)} sequences to train on, {len(task.test_tokens)} others to test")

# %% [markdown]
# Predict, before you go on: how many per cent can a model get right that always says 1? One that
# counts how often each token occurs? One that sees only the first token of each sequence?
#
# The first two cannot do better than chance: the classes are equally common, and the two tokens
# occur once in each. The third knows the answer where the first token happens to be one of the two,
# in about a third of the sequences, and guesses elsewhere: two thirds right. So a high score says
# something here: the model knows *order*. Whether it needs attention for that is another question;
# keep it for section 6.

# %% [markdown]
# ## 2 Your parts
#
# `collect` reads the notebooks in the folders beside this one, takes the answers that you have
# written, and puts them into a file of their own, `my_transformer.py`. It reads text and runs
# nothing. What you have not answered (or what is no Python) is named, and PyTorch's own stands in
# its place, with the same arguments and results. A file of that name that is there already is kept
# under another one.

# %% tags=["experiment"]
from attention_course.export import collect

for line in collect(".."):
    print(line)

# %% [markdown]
# Yours or PyTorch's: it should make no difference. Let us see. The next cell gives the same weights
# to your parts and to PyTorch's, and prints the largest difference between their results. (If you
# answer more exercises later, restart the kernel and collect again.)

# %% tags=["experiment"]
import my_transformer

from attention_course import stand_ins


def largest_difference(name, build, *inputs):
    """Between my part and PyTorch's with equal weights, in float64."""
    torch.manual_seed(0)
    ours, theirs = (getattr(place, name)(**build) for place in (my_transformer, stand_ins))
    theirs.load_state_dict(ours.state_dict())
    results = [part.double()(*inputs) for part in (ours, theirs)]
    pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in results), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


x, lengths = torch.randn(2, 5, 8, dtype=torch.float64), torch.tensor([3, 5])
sizes = {"d_model": 8, "heads": 2}
block = {**sizes, "d_hidden": 12, "norm_first": True}
for name, build, inputs in (
    ("MultiHeadAttention", sizes, (x,)),
    ("EncoderBlock", block, (x,)),
    ("PaddedEncoder", {**block, "layers": 2}, (x, lengths)),
):
    whose = "PyTorch's" if getattr(my_transformer, name) is getattr(stand_ins, name) else "yours"
    print(f"{name:<19} {whose:<10} difference {largest_difference(name, build, *inputs):.1e}")

# %% [markdown]
# ## 3 The whole encoder

# %% [markdown]
# ### Exercise 1: from tokens to logits
# *35 minutes, medium, 4 points*
#
# 1. `EncoderClassifier(vocabulary, longest, d_model, heads, d_hidden, layers, classes)` has these
#    parts, so that weights can be loaded by name: `embedding` (`nn.Embedding(vocabulary,
#    d_model)`), `positions` (`nn.Embedding(longest, d_model)`), `layers` (an `nn.ModuleList`),
#    `norm` (`nn.LayerNorm(d_model)`), `head` (`nn.Linear(d_model, classes)`). No other parameters.
# 2. The layers' first input is the token's row of `embedding` plus the place's row of `positions`,
#    row 0 for the first place. Nothing is multiplied by anything.
# 3. Each layer is pre-LN, with the exact GELU, and drops nothing. Its parameters have the names of
#    `nn.TransformerEncoderLayer`: `self_attn`, `linear1`, `linear2`, `norm1`, `norm2`. Take
#    `make_layer` below, or your own block from chapter 05 (it needs a mask now).
# 4. After the last layer: `norm` at every token, then the mean over the **real** tokens, then
#    `head`.
# 5. `tokens` may be narrower than `longest`. **Padding (token 0) changes nothing**, whatever its
#    row of `embedding` holds and however much of it there is.
# 6. `forward(tokens)` returns logits (batch, classes).
#
# The check loads the same weights into PyTorch's `nn.TransformerEncoder`, sends each sequence
# through it alone and without padding, and compares logits and gradients.
#
# Example: with all weights of `head` 0, the logits are its bias, for every sequence.


# %%
def make_layer(d_model, heads, d_hidden):
    """PyTorch's encoder layer as the exercise wants it. Its input is (batch, length, d_model)."""
    return nn.TransformerEncoderLayer(
        d_model,
        heads,
        d_hidden,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )


# %% nbgrader={"grade_id": "encoder_classifier", "solution": true}
class EncoderClassifier(nn.Module):
    """An encoder over tokens with a linear classifier on the mean of its states."""

    def __init__(self, vocabulary, longest, d_model, heads, d_hidden, layers, classes):
        super().__init__()
        ### BEGIN SOLUTION
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.positions = nn.Embedding(longest, d_model)
        made = [make_layer(d_model, heads, d_hidden) for _ in range(layers)]
        self.layers = nn.ModuleList(made)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, classes)
        ### END SOLUTION

    def forward(self, tokens):
        """tokens: int64 tensor (batch, length), 0 = padding. Returns logits (batch, classes)."""
        ### BEGIN SOLUTION
        real = tokens != 0
        x = self.embedding(tokens) + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~real)
        states = self.norm(x) * real[..., None]
        return self.head(states.sum(dim=1) / real.sum(dim=1, keepdim=True))
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-encoder_classifier", "grade": true, "points": 4}
check("encoder_classifier", EncoderClassifier)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# One bool tensor, `tokens != 0`, serves the layers' mask and the mean.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Embeddings plus the first rows of `positions` → layer after layer, each with the mask → norm →
# states of padding set to 0, summed, divided by the number of real tokens → head.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# In `src_key_padding_mask` True means *ignore*. And the layers write something into the padding,
# whatever the mask: it must not enter the mean.
# </details>

# %% [markdown]
# ## 4 What must not be read
#
# A mask is a promise. Whether a model keeps it is a question that can be *measured*: change one
# place of the input, look which places of the output move. That works for any model, also for one
# whose code you have never seen.

# %% [markdown]
# ### Exercise 2: find the leaks
# *35 minutes, medium, 4 points*
#
# `model` maps (batch, length, width) to (batch, length, other width). It is deterministic, treats
# the sequences of a batch separately, and runs without recording gradients.
#
# 1. Place i **reads** place j if some change of the vector `x[j]` alone changes the model's result
#    at i.
# 2. Return a bool tensor (length, length): entry [i, j] is True if i reads j although `mask[i, j]`
#    is False (True in `mask` = may be seen). First axis: who reads; second: what is read.
# 3. Whatever `x[j]` is replaced by, it should be something else altogether. A model may ignore the
#    mean of a vector, or its length, or its sign, or some of its features (a layer norm ignores the
#    first two).
# 4. A difference above 1e-6 in *any* feature of a result counts; less is rounding.
# 5. `x` stays as it is.
#
# Example: for a model that gives back its input and a mask that is False everywhere, exactly the
# diagonal is True.


# %% nbgrader={"grade_id": "leaks", "solution": true}
def leaks(model, x, mask):
    """Find the places that a model reads although a mask forbids it.

    model: function (batch, length, width) → (batch, length, other width).
    x: float tensor (length, width). mask: bool tensor (length, length), True = may be seen.
    Returns a bool tensor (length, length): [i, j] is True if i reads j and must not.
    """
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(0)
    plain = model(x[None])[0]
    reads = torch.zeros_like(mask)
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = torch.randn(x.shape[1], generator=generator)
        moved = model(changed[None])[0] - plain
        reads[:, j] = (moved.abs() > 1e-6).any(dim=-1)
    return reads & ~mask
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-leaks", "grade": true, "points": 4}
check("leaks", leaks)

# %% [markdown]
# A case in hand, to try an answer on: the model is there, and can be called.

# %%
case = example("leaks", 1)
print(case["mask"].int())
print(case["model"](case["x"][None]).shape)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# One change of place j tells a whole column: who noticed?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The plain result once. For each j: a copy of x with another vector at j, the model again, which
# places differ in some feature. At the end take away what the mask allows.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Adding 1 to a vector is invisible behind a layer norm, and so is doubling it. Random numbers have
# nothing to do with the old ones. And begin each j with a fresh copy.
# </details>

# %% [markdown]
# ### Real models
#
# Now PyTorch's own layers under your function: two layers with a causal mask, the same with a mask
# that is off by one, and one with a causal mask in its first layer only. Predict which squares are
# dark in each.

# %% tags=["experiment"]
import matplotlib.pyplot as plt

from attention_course.plots import heat_maps

torch.manual_seed(0)
two = nn.ModuleList(make_layer(12, 3, 24) for _ in range(2)).double().eval()
causal = torch.ones(6, 6, dtype=torch.bool).tril()
masks = {
    "causal": (causal, causal),
    "off by one": (causal, torch.ones(6, 6, dtype=torch.bool).tril(1)),
    "first layer only": (causal, torch.ones(6, 6, dtype=torch.bool)),
}


def masked_stack(pair):
    """The two layers with a mask for each (True = may be seen), without gradients."""

    def model(x):
        with torch.no_grad():
            for layer, mask in zip(two, pair, strict=True):
                x = layer(x, src_mask=~mask)
            return x

    return model


words = torch.randn(6, 12, dtype=torch.float64)
try:
    found = {name: leaks(masked_stack(pair), words, causal) for name, pair in masks.items()}
except NotImplementedError:
    print("This figure shows what your `leaks` finds, once exercise 2 is answered.")
else:
    places = list("123456")
    titles = {f"{name}: {int(item.sum())} leaks": item.double() for name, item in found.items()}
    heat_maps(titles, places, places, size=2.4, bar="leak")
    plt.show()

# %% [markdown]
# Rows read, columns are read. A sound causal stack has no leak. One wrong mask in one layer is
# enough, and behind it the layers below carry the future on. A loss curve would have shown you a
# model that is suspiciously good; this picture shows where.

# %% [markdown]
# ## 5 Training

# %% [markdown]
# ### Exercise 3: a model that reads order
# *45 minutes, hard, 4 points*
#
# 1. `train_reader(tokens, labels, longest)` gets about 600 labelled sequences of the task of
#    section 1 (tokens 0 to 9, at most 8 places) and returns a trained `nn.Module` that maps tokens
#    (batch, length) to logits (batch, 2). Your `EncoderClassifier`, or any other module.
# 2. It is asked about **new sequences**, 16 groups of 30, none of which it was trained on. In every
#    group at least 24 must be right. Which two tokens matter is drawn for each submission: do not
#    build them in. The labels of the new sequences are nowhere in the notebook.
# 3. It comes back in evaluation mode: the same question gets the same answer.
# 4. Later batches may be padded to up to `longest` places, more than you train on. More padding
#    changes no logit (by more than a thousandth of the largest).
# 5. You have 12 seconds of computing on one thread, and need about two. Set the seed of your random
#    numbers, so that your result is the same in every run.
#
# A reading plan that works: d_model 32, 2 heads, one layer, a few hundred steps of 64 sequences
# with Adam. A rate between 0.003 and 0.01 is a good place to begin.
#
# All sequences of a group have the same label. So a model that answers every question in the same
# way has 30 right in half of the groups and none in the others, and gets no points.


# %% nbgrader={"grade_id": "train_reader", "solution": true}
def train_reader(tokens, labels, longest):
    """Train a model that says which of two tokens stands first.

    tokens: int64 tensor (sequences, places), 0 = padding. labels: int64 tensor (sequences,), 0 or
    1. longest: int, the most places that the model is asked to read.
    Returns a module in evaluation mode: tokens (batch, length) → logits (batch, 2).
    """
    ### BEGIN SOLUTION
    torch.manual_seed(0)
    model = EncoderClassifier(10, longest, 32, 2, 64, 1, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        rows = torch.randint(len(tokens), (64,))
        loss = F.cross_entropy(model(tokens[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-train_reader", "grade": true, "points": 4}
check("train_reader", train_reader)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# It is the training loop of the last chapters: draw some rows, loss, clear, backward, step. Print
# the loss every 50 steps while you try things.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Seed → model with `longest` rows of positions → optimiser → loop → `eval()`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# A loss that stays near log 2 ≈ 0.69 guesses. If it falls and the check still complains, look at
# the check's words: dropout, padding and positions for the wider batches each have their own.
# </details>

# %% [markdown]
# How sure is that score? Five tasks, each with other tokens that matter: yours, if exercise 3 is
# answered, else the course's small encoder.

# %% tags=["experiment"]
from attention_course.capstone import make_task, share_right, train_given

tasks = [make_task(seed) for seed in range(5)]


def reader_for(task, seed):
    """Your trained model, or the course's until there is one."""
    try:
        return train_reader(task.tokens, task.labels, 12), "yours"
    except NotImplementedError:
        return train_given(task, seed, steps=150), "the course's"


readers = [reader_for(task, seed) for seed, task in enumerate(tasks)]
shares = np.array(
    [share_right(model, task) for (model, _), task in zip(readers, tasks, strict=True)]
)
print(f"{readers[0][1]}: {shares.mean():.1%} right, least {shares.min():.1%}")

# %% [markdown]
# ## 6 A claim of your own
#
# First one of ours, as a pattern: **without positions the model can do no better than chance on
# this task**. The control differs in one thing only: the table of positions is zero and stays so.
# Predict both numbers.

# %% tags=["experiment"]
results = {}
for name, positions in (("with positions", True), ("without", False)):
    models = [train_given(task, seed, 150, positions) for seed, task in enumerate(tasks)]
    pairs = zip(models, tasks, strict=True)
    results[name] = np.array([share_right(model, task) for model, task in pairs])
    print(f"{name:<15} {results[name].mean():.1%} ± {results[name].std(ddof=1):.1%}")

fig, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
for place, found in enumerate(results.values()):
    ax.plot(100 * found, [place] * len(found), "o", color="C0", alpha=0.6)
ax.axvline(50, color="0.4", ls="--")
ax.set_yticks(range(2), list(results))
ax.set(xlabel="% of new sequences right; dashed: chance", ylim=(1.5, -0.5))
plt.show()

band = 2.6 * (0.25 / len(tasks[0].test_labels)) ** 0.5  # 99 of 100 guessers are within
chance = results["without"].max() < 0.5 + band
better = (results["with positions"] > 0.5 + band).all()
sure = "supported" if chance and better else "NOT supported"
print(f"{sure} by these {len(tasks)} seeds: chance is 50 % ± {band:.1%} on 400 sequences.")

# %% [markdown]
# Two rows of dots: five tasks with positions, five without, and the line of chance. Without
# positions a permuted sequence gives permuted states (chapter 02), so the mean cannot change at
# all: here one sees that at work. And the cell says what would have refuted the claim: a seed above
# the band without positions, or not above it with them.
#
# Why might the lower dots lie *below* chance? No sequence comes twice. If a bag of tokens was seen
# with the label 1 and learned by heart, fewer orders with that label are left for the test.
#
# Now yours. Choose a claim that your runs could refute, for example:
#
# - the task needs attention: blocks of an MLP alone fail;
# - one head is as good as four;
# - post-LN needs a smaller rate than pre-LN;
# - 300 sequences are enough;
# - a model that is trained on at most 6 places can read 8;
# - the mean is a better summary than the largest value of each feature.
#
# Write the claim down **before** you run. Below is room for the runs: that cell is not run in
# grading, so put the numbers into your answer. Your own code is welcome, and so are the course's
# `make_task`, `train_given` and `share_right`.

# %% tags=["experiment"] nbgrader={"grade_id": "experiment-own-claim", "locked": false}
# Your runs: at least five seeds, with and without the one thing that your claim is about.

# %% [markdown]
# ### In words: your claim and its evidence
# *40 minutes with the runs, 4 points, marked by hand*
#
# (a) The claim, and which result would have refuted it. (b) The runs: what was equal, what was not,
# how many seeds, the numbers with their spread. (c) What the runs say: supported, contradicted or
# not settled. (d) One other explanation, or one thing that your runs do not show.

# %% [markdown] nbgrader={"grade_id": "own-claim", "grade": true, "solution": true, "points": 4}
# *An example.* (a) Claim: one head is as good as four on this task. It would be refuted if four
# heads were better in all of five tasks. (b) `EncoderClassifier` with d_model 32, one layer, 200
# steps, Adam 0.01, tasks 0 to 4; only `heads` differs. (The numbers and their spread, seed by
# seed.) (c) The differences have both signs and are smaller than the spread between seeds: no sign
# that four heads are better; both are near 100 %, so the task cannot tell. (d) A harder task might:
# with two orders to tell at once, one head would have to do both. Equal training steps also favour
# whichever learns faster.
#
# *Mark scheme.* 1 point for each part. (a) A claim that a number can refute, and which (a wish,
# "attention works", gets 0). (b) At least five seeds, one thing changed, numbers with a spread (½
# if seeds or spread are missing). (c) A verdict that follows from the numbers in (b), whatever it
# is; "not settled" is as good as any; a verdict against the numbers gets 0. (d) A limit that
# belongs to *these* runs (ceiling, size, training time, one architecture); "more data would be
# better" alone gets 0.

# %% [markdown]
# ## 7 A bright line is not a cause
#
# A model that is right: what does it look at? Below is bertviz's view of it, with one sequence of
# the test set. Predict first: which lines should be bright if the model compares the two tokens
# that matter?

# %% tags=["experiment"]
from attention_course.bertviz_views import head_view
from attention_course.capstone import attention_of

looked_at, task = readers[0][0], tasks[0]
if not any(isinstance(part, nn.MultiheadAttention) for part in looked_at.modules()):
    print("Your model has attention of its own: here is the course's instead.")
    looked_at = train_given(task, 0, steps=150)
length = (task.test_tokens != 0).sum(dim=1)
sequence = task.test_tokens[length == 7][0, :7]
names = [
    f"{token}*" if token in (task.first, task.second) else str(token) for token in sequence.tolist()
]
print(f"what matters: does {task.first} stand before {task.second}? (marked with *)")
head_view([layer.numpy() for layer in attention_of(looked_at, sequence)], names)

# %% [markdown]
# Lines from each token (left) to the tokens that it reads (right), a colour for each head.
#
# It is tempting to read: "the model looks there, so that decides." But a weight says how much of a
# value is *mixed in*, not what that does. If the value is much like what is there already, a bright
# line changes nothing; and a thin line to a very different value can change a lot. So ask by doing:
# hide the key, see what moves.

# %% [markdown]
# ### Exercise 4: what one key does
# *30 minutes, hard, 3 points*
#
# Attention as in chapter 02: softmax of $QK^\top / \sqrt{d_k}$ over visible keys, times the values.
#
# 1. The **effect** of key k on query q is the Euclidean length of the difference between q's output
#    and q's output with key k hidden as well. Hidden means: its weight is 0 and the other weights
#    sum to 1 again.
# 2. A key that `mask` hides already has the effect 0.
# 3. If k is the only key that q may see, nothing is left, and the output without it is the vector
#    of zeros.
# 4. Return all effects, (batch, queries, keys).
#
# Example: with two visible keys of equal weight and values (0, 0) and (2, 0), the output is (1, 0);
# without either key it moves by 1.


# %% nbgrader={"grade_id": "masking_effect", "solution": true}
def masking_effect(queries, keys, values, mask):
    """How far each output moves if one key is hidden.

    queries: float tensor (batch, queries, d_k). keys: (batch, keys, d_k).
    values: (batch, keys, d_v). mask: bool tensor (batch, queries, keys), True = may be seen; every
    query sees at least one key. Returns a float tensor (batch, queries, keys).
    """
    ### BEGIN SOLUTION
    scores = queries @ keys.mT / queries.shape[-1] ** 0.5

    def attend(visible):
        weights = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
        return weights.nan_to_num(0.0) @ values

    output, effects = attend(mask), []
    for key in range(keys.shape[1]):
        fewer = mask.clone()
        fewer[:, :, key] = False
        effects.append((output - attend(fewer)).norm(dim=-1))
    return torch.stack(effects, dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-masking_effect", "grade": true, "points": 3}
check("masking_effect", masking_effect)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Attention once with the mask as it is, and once more for each key with that key hidden from all
# queries.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A small function from a mask to outputs; a loop over keys; the length of the difference along the
# last axis; stack along a new last axis. (There is also a formula without a loop: how does the
# output move if the weight w of one key is shared out among the others?)
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The softmax of a row of minus infinities is NaN: point 3 says what the output is there.
# </details>

# %% [markdown]
# ### Bright and strong
#
# Back to the trained model. For each token of 60 test sequences we measure two things: how brightly
# it is looked at (its weight as a key, the mean over queries, heads and layers), and what hiding it
# does (how far the difference of the two logits moves if *nobody, in any layer,* may look at it).
# Both are compared within each sequence.
#
# Predict: is the brightest token of a sequence usually the strongest one?

# %% tags=["experiment"]
from attention_course.capstone import logits_without


def bright_and_strong(model, tokens):
    """For one sequence (length,): weight and effect of every token as a key."""
    with torch.no_grad():
        plain = model(tokens[None])[0]
    moved = [logits_without(model, tokens, key) - plain for key in range(len(tokens))]
    effects = torch.stack(moved)
    return attention_of(model, tokens).mean(dim=(0, 1, 2)), (effects[:, 1] - effects[:, 0]).abs()


some = [row[row != 0] for row in task.test_tokens[:60]]
measured = [bright_and_strong(looked_at, row) for row in some]
matters = torch.cat([(row == task.first) | (row == task.second) for row in some])
weights, effects = (torch.cat(part) for part in zip(*measured, strict=True))

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for chosen, label, colour in ((matters, "one of the two", "C1"), (~matters, "another", "C0")):
    ax.plot(weights[chosen], effects[chosen], "o", ms=3.5, alpha=0.5, color=colour, label=label)
ax.set(xlabel="mean weight as a key", ylabel="the logits move by")
ax.legend(title="token")
plt.show()

agree = np.mean([int(w.argmax()) == int(e.argmax()) for w, e in measured])
order = np.mean(
    [np.corrcoef(w.argsort().argsort(), e.argsort().argsort())[0, 1] for w, e in measured]
)
print(f"brightest = strongest in {agree:.0%} of {len(some)} sequences (a guess: about 17 %)")
print(f"rank correlation of weight and effect within a sequence, on average: {order:+.2f}")

# %% [markdown]
# A cloud of dots, one for each token: to the right the bright ones, on top the strong ones. Look
# for dots on the right *and* low: bright lines that do nothing here. And note what "hidden" leaves
# out: the token still has a state of its own, which goes straight into the mean at the end. Hiding
# a key measures what *others* learn from it.
#
# Whether attention explains is disputed, with care on both sides: Jain and Wallace (2019) find
# other weights that give the same predictions; Wiegreffe and Pinter (2019) answer that this depends
# on what one calls an explanation; Kobayashi et al. (2020) look at the length of weight times value
# instead of the weight. A picture of weights alone is no evidence of a cause.

# %% [markdown]
# ### In words: reading the picture
# *20 minutes, 3 points, marked by hand*
#
# Take the sequence in bertviz's view, or another one (`bright_and_strong` gives its numbers). (a)
# Name one bright line or token, with its weight, and say what hiding it does, with the number. (b)
# Give a reason why weight and effect may differ in this model. (c) Somebody shows you one attention
# picture and says: "So the model decides by token 7." Which measurement would you ask for?

# %% [markdown] nbgrader={"grade_id": "reading", "grade": true, "solution": true, "points": 3}
# *An example.* (a) "In my sequence the token 4 gets the weight 0.31, more than any other; hiding it
# moves the logits' difference by 0.2 of 9, the token 6 with the weight 0.12 moves it by 5.1."
# (b) The output moves by w / (1 − w) times the distance between the key's value and the output: a
# value that is like the output does nothing, however bright. Also: the residual link and the mean
# carry every token's own state past attention; a later layer may not use what was mixed in; other
# keys may carry the same information. (c) Hide (or exchange) token 7 and see whether the *decision*
# changes, over many sequences with and without it, compared with hiding other tokens, and for
# several trained models.
#
# *Mark scheme.* 1 point for each part. (a) Weight and effect as numbers of the same token (½ for
# one of them). (b) A mechanism: the value, the weights shared out again, the residual path, later
# layers, redundancy ("attention is not explanation" without a mechanism: 0). (c) An intervention
# (½) with a comparison: other tokens, many sequences or seeds (½). Any model may be discussed, also
# one in which weight and effect agree.

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | right alone, wrong in a batch | padding is read, or counted in the mean |
# | 50 % however long it trains | no positions |
# | right on the training sequences only | learned by heart |
# | other logits for the same question | dropout still on |
# | an error on a wider batch | too few rows of positions |
# | `leaks` finds nothing behind a layer norm | a constant was added |
# | `leaks` finds leaks everywhere | compared to the last bit |
# | the effect equals the weight | nothing was hidden |

# %% [markdown]
# ## 8 Recap
#
# - A transformer is parts with contracts: if each keeps its own, the whole agrees with anybody's.
# - Masks are promises; influence can be measured, for any model.
# - A good test is one that no shortcut passes: fresh data, and a floor above what counting can do.
# - A claim is worth as much as the result that could have refuted it.
# - Brightness is a weight. A cause is what changes when you intervene.
#
# You have built this from a dot product. What will you build next?
