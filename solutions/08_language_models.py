# %% [markdown]
# # 08 Language models
#
# Take the decoder, drop the attention to an encoder, keep the mask: what is left reads a text and
# says at every place what may come next. That is GPT. You build one here, cut a million letters of
# Shakespeare into tokens for it, and let it write. Then come its relatives, which read in both
# directions: prefix language models, T5 and BART.
#
# **You will be able to**
#
# - assemble a GPT from PyTorch's blocks, and train and validate it without a leak;
# - say what a loss and a perplexity mean, and compute both with padding;
# - turn logits into text: temperature, top-k, top-p, a penalty on repetition;
# - train a tokenizer and prove that it loses nothing, whatever the script;
# - draw the three masks of sequence-to-sequence models, and corrupt a text as T5 and BART do.
#
# | section | minutes | points |
# |---|---|---|
# | 1 One long text | 25 | 6 |
# | 2 A GPT | 75 | 13 |
# | 3 From logits to text | 75 | 16 |
# | 4 Tokens: byte-pair encoding | 60 | 10 |
# | 5 Three masks | 35 | 5 |
# | 6 T5: spans and sentinels | 20 | 3 |
# | 7 BART: repair the text | 50 | 10 |
# | 8 A model of the real world | 40 | 5 |
# | Recap | 5 | |
# | **in all** | **385** | **68** |
# | Challenge: buckets for distances | 25 more | 3 more |
#
# Nobody does this in one go: good places to stop are after sections 2, 3, 4 and 5. Sections 3 to 7
# do not need each other's answers.

# %% [markdown]
# **To read**, before or after. GPT: A. Radford et al. (2018), *Improving Language Understanding by
# Generative Pre-Training*, Section 3.1. Sampling: A. Holtzman et al. (2020), *The Curious Case of
# Neural Text Degeneration*, Section 3. Byte-pair encoding: R. Sennrich et al. (2016), *Neural
# Machine Translation of Rare Words with Subword Units*, Section 3.2. T5: C. Raffel et al. (2020),
# *Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer*, Sections 2.1
# and 3.1.4. BART: M. Lewis et al. (2020), *BART: Denoising Sequence-to-Sequence Pre-training*,
# Section 2.

# %% [markdown]
# **Symbols.** Long words for things; single letters for axes.
#
# | name | shape | meaning |
# |---|---|---|
# | `tokens` | (batch, length) or (length,) | whole numbers, each a token |
# | `logits` | (batch, length, vocabulary) | scores of all next tokens, before the softmax |
# | `losses` | (batch, length) | $-\log p$ of each real next token, in nats |
# | `mask` | (batch, queries, keys) | bool, **True = may be seen** |
# | `context` | a number | how many tokens a model can read at once |
# | `merges` | list of pairs | what a byte-pair encoding has learned |
# | `sentinel` | a token | stands for a hole in a text |
#
# Checks run on the CPU in float64 and hand everything over by name. In sections 4, 6 and 7, texts
# are plain Python lists of numbers.

# %%
import torch
import torch.nn.functional as F
from torch import nn

from attention_course import check, example
from attention_course.data.shakespeare import load_shakespeare

torch.set_num_threads(1)

text = load_shakespeare()
characters = sorted(set(text))
numbers = {character: number for number, character in enumerate(characters)}
shakespeare = torch.tensor([numbers[character] for character in text])
print(f"{len(text):,} characters, {len(characters)} different ones")
print(text[3_000:3_400])

# %% [markdown]
# Eight plays in a row (`attention_course/data/DATA.md` says where they are from). For now, every
# character is a token.
#
# ## 1 One long text
#
# A language model needs no labels: the label of each place is the token that comes next. So a long
# text is cut into *windows*, and each window is trained on at all of its places at once.
#
# Predict: a window of 64 tokens, of which we know the next one too. How many predictions does it
# train?

# %% [markdown]
# ### Exercise 1: a batch of windows
# *8 minutes, easy, 3 points*
#
# 1. `tokens`, (count,), is the text; `starts`, (batch,), says where each window begins.
# 2. `inputs[b, i]` is token `starts[b] + i`, for i from 0 to `length` − 1.
# 3. `targets[b, i]` is the token **after** `inputs[b, i]`: also at the last place.
# 4. Windows may overlap and come in any order.
# 5. If a window, its last target included, does not fit into the text, or a start is negative:
#    `raise ValueError`.
# 6. Return `(inputs, targets)`, both (batch, length).
#
# Example: tokens `[10, 11, 12, 13, 14]`, starts `[0, 2]`, length 2 give inputs
# `[[10, 11], [12, 13]]` and targets `[[11, 12], [13, 14]]`.


# %% nbgrader={"grade_id": "batch_windows", "solution": true}
def batch_windows(tokens, starts, length):
    """Cut windows out of one long text.

    tokens: int tensor (count,). starts: int tensor (batch,). length: int.
    Returns (inputs, targets), int tensors (batch, length).
    """
    ### BEGIN SOLUTION
    if starts.min() < 0 or starts.max() + length >= len(tokens):
        raise ValueError("a window and its last target must lie inside the text")
    places = starts[:, None] + torch.arange(length)
    return tokens[places], tokens[places + 1]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-batch_windows", "grade": true, "points": 3}
check("batch_windows", batch_windows)

# %% [markdown]
# (The prediction above: 64, one at each place.) Any public case can be taken in hand: `example`
# gives its inputs. Case 3 has the last window that fits.

# %%
for name, value in example("batch_windows", 3).items():
    print(name, value)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Inputs and targets are the same window, one token apart.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A column of starts plus a row of 0, 1, 2, … is a matrix of places; a tensor can be indexed with
# it. Or stack slices.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Slices behind the end come out short without a word, and negative indices count from the end: ask
# before you cut. Which is the last token that a window needs?
# </details>

# %% [markdown]
# The validation loss shall tell how the model does on a text that it has never seen. If windows
# were drawn first and split afterwards, most validation windows would overlap a training window.
#
# ### Exercise 2: a split without a leak
# *10 minutes, medium, 3 points*
#
# Tokens 0 to `cut` − 1 are for training, the others, up to `count` − 1, for validation. A window
# needs `length` tokens and one more, its last target.
#
# 1. `training`: the starts of **all** windows that lie wholly in the training part, in order.
# 2. `validation`: the first one starts at `cut`, the next ones every `length` tokens, as long as
#    they fit. So no target occurs twice, and none is left out in between.
# 3. No window, its last target included, has a token of the other part.
# 4. If a part has no window: `raise ValueError`.
# 5. Return `(training, validation)`, two int tensors.
#
# Example: count 13, cut 6, length 3: training starts `[0, 1, 2]`, validation starts `[6, 9]`.


# %% nbgrader={"grade_id": "split_windows", "solution": true}
def split_windows(count, cut, length):
    """Give the starts of training windows and of validation windows.

    count: tokens of the whole text. cut: the first validation token. length: of a window.
    Returns (training, validation), int tensors.
    """
    ### BEGIN SOLUTION
    training, validation = range(cut - length), range(cut, count - length, length)
    if not training or not validation:
        raise ValueError("one of the two parts is too short for a window")
    return torch.tensor(training), torch.tensor(validation)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-split_windows", "grade": true, "points": 3}
check("split_windows", split_windows)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Where does a window that starts at s have its last target? That token must lie in the same part.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Both are ranges: one with step 1, one with step `length`. Only their ends need thought.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The end of a range is excluded: write down the last start for a part that just fits one window.
# </details>

# %% [markdown]
# ## 2 A GPT
#
# The decoder of chapter 07 had three parts per layer. Without an encoder there is nothing to cross
# over to, and what is left is an **encoder layer with a causal mask**. PyTorch has it ready:
# `nn.TransformerEncoderLayer`. In its masks, unlike in this course, **True = hidden**.
#
# The last step, from vectors to logits, costs vocabulary × d_model weights, as many as the
# embedding at the start. GPT uses *the same* matrix for both, tied as in chapter 07: a token's
# logit is the product of the output vector with the token's own embedding.
#
# Predict: with 50,000 tokens and d_model = 768, how many million weights does the tie save?

# %% [markdown]
# ### Exercise 3: a small GPT
# *25 minutes, hard, 5 points*
#
# 1. `GPT(vocabulary, context, d_model, heads, layers)` has these parts, under these names:
#    `token_embedding` and `position_embedding` (`nn.Embedding`, the second with `context` rows),
#    `blocks` (`nn.ModuleList` of `nn.TransformerEncoderLayer`), `final_norm` (`nn.LayerNorm`). No
#    other parameters.
# 2. Each block: `batch_first=True`, `norm_first=True`, activation GELU, inner width 4 · d_model,
#    dropout 0 (so `train()` and `eval()` give the same).
# 3. The first block gets token embedding + position embedding (positions 0, 1, 2, …), unscaled.
# 4. Place t may see the places 0 to t and nothing else.
# 5. Behind the last block comes `final_norm`, then the product with the token embedding's own
#    weights: **logits**, (batch, length, vocabulary). No bias, no softmax.
# 6. Texts may be shorter than `context`. A longer one: `raise ValueError`.
#
# Example: `GPT(75, 64, 32, 4, 2)(shakespeare[None, :10])` has the shape (1, 10, 75).


# %% nbgrader={"grade_id": "gpt", "solution": true}
class GPT(nn.Module):
    """A decoder-only language model with learned positions and a tied output."""

    def __init__(self, vocabulary, context, d_model, heads, layers):
        ### BEGIN SOLUTION
        super().__init__()
        self.context = context
        self.token_embedding = nn.Embedding(vocabulary, d_model)
        self.position_embedding = nn.Embedding(context, d_model)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                d_model,
                heads,
                dim_feedforward=4 * d_model,
                dropout=0.0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(layers)
        )
        self.final_norm = nn.LayerNorm(d_model)
        ### END SOLUTION

    def forward(self, tokens):
        """Give the logits of every next token.

        tokens: int tensor (batch, length), length at most `context`.
        Returns a float tensor (batch, length, vocabulary).
        """
        ### BEGIN SOLUTION
        length = tokens.shape[1]
        if length > self.context:
            raise ValueError(f"{length} tokens, but the context is {self.context}")
        positions = torch.arange(length, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        future = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
        for block in self.blocks:
            x = block(x, src_mask=future)
        return self.final_norm(x) @ self.token_embedding.weight.T
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-gpt", "grade": true, "points": 5}
check("gpt", GPT)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Four lines of `forward`: two embeddings, a loop over blocks, a norm, a product. The only thing
# that makes it a language model is the mask.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `block(x, src_mask=…)`. The mask is square, as long as the text, and True *above* the diagonal:
# `torch.ones(…, dtype=torch.bool)` and `triu`. The output matrix is `self.token_embedding.weight`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `triu(0)` hides a token from itself. `[block] * layers` is one block many times. The defaults of
# the block are post-norm, ReLU and dropout 0.1. `.data` and `.detach()` cut the tie's gradient.
# </details>

# %% [markdown]
# (The tie saves 50,000 · 768 = 38 million weights, in the smallest GPT-2 almost a quarter of what
# it would have without.)
#
# ### Exercise 4: the loss
# *12 minutes, medium, 4 points*
#
# Texts of unequal length are filled up with a token `padding`, which is no word.
#
# 1. The logits at place t predict the token at place t + 1. The last place predicts nothing.
# 2. A prediction counts if the token **to be predicted** is not `padding`.
# 3. The loss is the mean of $-\log p$ over all predictions of the batch that count: every token
#    weighs the same. At least one counts.
# 4. `padding` may be any number of the vocabulary; 0 is then a word like others.
# 5. Logits of some hundred or thousand must not give infinities.
#
# Example: two tokens, all logits 0: each prediction costs log 2 = 0.693, and so does their mean.


# %% nbgrader={"grade_id": "next_token_loss", "solution": true}
def next_token_loss(logits, tokens, padding):
    """Mean cross-entropy of the next tokens.

    logits: float tensor (batch, length, vocabulary). tokens: int tensor (batch, length).
    padding: int, the token that does not count. Returns a float tensor of shape ().
    """
    ### BEGIN SOLUTION
    predictions, targets = logits[:, :-1], tokens[:, 1:]
    return F.cross_entropy(predictions.flatten(0, 1), targets.flatten(), ignore_index=padding)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-next_token_loss", "grade": true, "points": 4}
check("next_token_loss", next_token_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Cut the logits at one end and the tokens at the other, so that what belongs together stands at the
# same place.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `F.cross_entropy` wants the classes on axis 1, or everything flattened to (places, vocabulary). It
# has an argument for a target that does not count.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Shift first, flatten afterwards, or rows run into each other. No softmax before it. A mean of
# means of rows gives short rows too much weight.
# </details>

# %% [markdown]
# ### Exercise 5: perplexity
# *8 minutes, easy, 2 points*
#
# Perplexity is $e^{\text{mean loss}}$: a model of perplexity 6 is as unsure as if it had to choose
# among 6 equally likely tokens.
#
# 1. `mean_losses[i]` is the mean loss of batch i in nats; `counts[i]` is over how many tokens.
# 2. Return the perplexity over **all tokens of all batches**, one number.
# 3. A batch may have no token that counts. Its mean is NaN; it must not matter.
#
# Example: a batch of 3 tokens with mean log 2 and one of 1 token with mean log 32: in all 8 log 2
# over 4 tokens, so the perplexity is 4.


# %% nbgrader={"grade_id": "perplexity", "solution": true}
def perplexity(mean_losses, counts):
    """Combine mean losses of batches into one perplexity.

    mean_losses: float tensor (batches,). counts: int tensor (batches,).
    Returns a number: a float tensor of shape () or a float.
    """
    ### BEGIN SOLUTION
    real = counts > 0
    total = (mean_losses[real] * counts[real]).sum()
    return torch.exp(total / counts.sum())
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-perplexity", "grade": true, "points": 2}
check("perplexity", perplexity)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# From means back to sums, then one mean over everything, then exp.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A mean times its count is a sum. Add all sums, divide by all counts.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# exp comes last: a mean of exponentials is larger. And 0 · NaN is NaN.
# </details>

# %% [markdown]
# ### Does it learn to write?
#
# Now three models of this kind read Shakespeare, each for some 20 seconds. So that nobody's answer
# is given away, they are decoders as they are built *today* (H. Touvron et al. 2023, *LLaMA*,
# Section 2.2): a layer norm without mean and bias, rotary positions (chapter 03) for a table, an
# MLP with a gate. Section 8 explains them. About 100,000 weights, two layers, 64 characters of
# context; batches are small and many, which on a CPU teaches more per second than few large ones.
#
# Predict: what is the loss before training? (There are 75 characters.) And after 20 seconds? For
# comparison: who knows how frequent each character is, and nothing else, reaches 3.3 nats.

# %% tags=["experiment"]
import time

import matplotlib.pyplot as plt

from attention_course.language import characters as character_model

STEPS, EVERY = 800, 100
cut = len(shakespeare) * 9 // 10
training, validation = shakespeare[:cut], shakespeare[cut:]


def show(tokens):
    """Characters of a tensor of tokens."""
    return "".join(characters[token] for token in tokens.tolist())


frequency = (torch.bincount(training, minlength=len(characters)) + 1).double()
frequency = frequency / frequency.sum()
by_frequency = float(-frequency[validation].log().mean())
prompt = training[:1]


def train_run(seed):
    """Train one decoder; give it, its validation losses, and what it wrote before training."""
    decoder = character_model.small_decoder(len(characters), seed)
    curve = [character_model.validation_loss(decoder, validation)]
    first_words = show(character_model.write(decoder, prompt, 200, seed=1))
    start = time.process_time()

    def after_step(step):
        """Measure now and then, and say how it goes."""
        if step % EVERY:
            return
        curve.append(character_model.validation_loss(decoder, validation))
        if step % (2 * EVERY) == 0:
            left = (time.process_time() - start) / step * (STEPS - step)
            print(f"run {seed}: step {step}, loss {curve[-1]:.2f}, about {left:.0f} s to go")

    character_model.train_on_text(decoder, training, seed, STEPS, after_step)
    return decoder, curve, first_words


decoders, curves, beginnings = zip(*[train_run(seed) for seed in range(3)], strict=True)

# %% tags=["experiment"]
from attention_course.plots import spread

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
spread(ax, range(0, STEPS + 1, EVERY), curves, "validation loss")
ax.axhline(by_frequency, color="0.5", ls=":", label="knows frequencies only")
ax.set_xlabel("steps of 12 windows")
ax.set_ylabel("nats per character")
ax.legend(fontsize=8)
plt.show()
ends = [curve[-1] for curve in curves]
print(f"before: {curves[0][0]:.2f} nats; log(75) is {torch.tensor(75.0).log():.2f}")
print(f"knows frequencies only: {by_frequency:.2f} nats")
perplexities = ", ".join(f"{torch.tensor(end).exp():.1f}" for end in ends)
print(f"after: {', '.join(f'{end:.2f}' for end in ends)} nats, so a perplexity of {perplexities}")
learned = max(ends) < 0.8 * by_frequency
verdict = "supported" if learned else "NOT supported"
print(f"'It uses more than frequencies': {verdict} by this run.")
print("\n--- before:\n" + beginnings[0])
print("\n--- after:\n" + show(character_model.write(decoders[0], prompt, 400, seed=1)))

# %% [markdown]
# The loss starts at log(75) = 4.32: with small random weights the model is equally unsure among all
# characters, a good first check of any language model. Then it learns, in this order: frequent
# letters, short words, names in a line of their own, line breaks of the right length. Meaning does
# not come in 20 seconds. The curve is still falling at the end: try more steps. Three runs only,
# so the band says how little the seed matters here and not much else.

# %% [markdown]
# ### In words: too good to be true
# *10 minutes, 2 points, marked by hand*
#
# A friend trains a character model like this one. After two minutes the *validation* loss is 0.05
# nats per character, and the samples are nonsense. Name two different mistakes, each of which
# explains both observations or one of them, and for each a test of a few lines that would find it.

# %% [markdown] nbgrader={"grade_id": "too-good", "grade": true, "solution": true, "points": 2}
# 0.05 nats is a perplexity of 1.05: nobody can predict English so well. The model must see what it
# is to predict.
#
# (a) *The future leaks in*: no causal mask, or a triangle that is one too wide; or the targets are
# not shifted, so that each place is asked for what it has just read. Training and validation have
# the same fault, so the loss is low in both. When writing, the next token is not there to be
# copied: nonsense. Test: change the last token of a text; the logits of all places before it must
# not move. For the shift: compare `inputs[:, 1:]` with `targets[:, :-1]`.
#
# (b) *The split leaks*: validation windows overlap training windows, and the model has learned the
# text by heart. (This explains the loss but rather not the nonsense.) Test: look for a window of
# validation in the training text; or validate on another play.
#
# *Mark scheme.* 1 point for each mistake with its test (½ mistake, ½ test). Accepted are also: loss
# divided by the wrong number (padding counted), evaluation on the training set. Not accepted:
# "overfitting" alone, since it would not lower the validation loss.

# %% [markdown]
# ## 3 From logits to text
#
# A model gives a distribution; a text needs a choice. Always the largest logit ("greedy") sounds
# dull and soon repeats itself; drawing from the full distribution takes something odd every few
# tokens, since thousands of improbable tokens have much probability *together*.
#
# Between the two lie three knobs. *Temperature*: divide all logits by a number before the softmax.
# *Top-k*: draw from the k most probable tokens only. *Top-p*: from the fewest most probable ones
# that have the probability p together.
#
# Predict, before you move the sliders: which of temperature, top-k and top-p changes the *order* of
# the tokens? Which keeps more tokens when the model is unsure?

# %% tags=["explorer"]
from attention_course.explorers import sampling_explorer

sampling_explorer()

# %% [markdown]
# None changes the order. Temperature changes all the ratios and removes nothing; top-k always keeps
# the same number; top-p keeps few tokens where the model is sure and many where it is not.
#
# ### Exercise 6: draw a token
# *12 minutes, medium, 3 points*
#
# To draw from a distribution with one uniform number u in [0, 1): add up the probabilities in the
# order of the tokens' numbers, and take the first token at which the sum **exceeds** u. (Here u is
# given, so that everybody draws the same.)
#
# 1. Probabilities are the softmax of logits / temperature.
# 2. `logits` is (..., vocabulary), `uniforms` (...): one number for each row. There may be no
#    leading axis or several.
# 3. Return the drawn tokens, an int tensor of the shape of `uniforms`.
# 4. Temperature 0 means the largest logit, of equal ones the first. A negative temperature:
#    `raise ValueError`.
# 5. A token with the logit −∞ is never drawn, not even with u = 0.
#
# Example: probabilities `[0.2, 0.5, 0.3]`: u = 0.1 gives 0, u = 0.2 gives 1, u = 0.69 gives 1,
# u = 0.75 gives 2.


# %% nbgrader={"grade_id": "draw_token", "solution": true}
def draw_token(logits, uniforms, temperature):
    """Draw one token for each row, at a temperature.

    logits: float tensor (..., vocabulary). uniforms: float tensor (...), from 0 to below 1.
    temperature: float, at least 0. Returns an int tensor (...).
    """
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError("the temperature must not be negative")
    if temperature == 0:
        return logits.argmax(dim=-1)
    reached = (logits / temperature).softmax(dim=-1).cumsum(dim=-1)
    return (reached > uniforms[..., None]).int().argmax(dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-draw_token", "grade": true, "points": 3}
check("draw_token", draw_token)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# `cumsum` gives all the sums at once; you look for the first that exceeds u.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Compare the sums with `uniforms`, which needs one more axis. Then: how many sums do *not* exceed
# u? Or where is the first True? Or `torch.searchsorted`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Exceeds is not "at least": with u = 0 and a first token of probability 0 they differ. Divide the
# logits by the temperature, not the probabilities.
# </details>

# %% [markdown]
# ### Exercise 7: top-k
# *10 minutes, medium, 3 points*
#
# 1. In each row keep the k largest logits as they are; all others become −∞.
# 2. Exactly k are kept: of equal logits those with the lower number.
# 3. If there are only k tokens or fewer, all are kept.
# 4. k below 1: `raise ValueError`.
# 5. `logits` is (..., vocabulary) and is left unchanged; logits may be −∞ already.
#
# Example: `[1., 3., 3., 0.]` with k = 1 gives `[−∞, 3., −∞, −∞]`.


# %% nbgrader={"grade_id": "top_k_filter", "solution": true}
def top_k_filter(logits, k):
    """Keep the k largest logits of each row.

    logits: float tensor (..., vocabulary). k: int, at least 1.
    Returns a new float tensor of the same shape.
    """
    ### BEGIN SOLUTION
    if k < 1:
        raise ValueError("k must be at least 1")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    out = torch.ones_like(logits, dtype=torch.bool).scatter(-1, order[..., :k], False)
    return logits.masked_fill(out, -torch.inf)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-top_k_filter", "grade": true, "points": 3}
check("top_k_filter", top_k_filter)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Sort, and find out which *numbers* of tokens are the first k.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `argsort(descending=True, stable=True)` keeps equal logits in their order. `scatter` writes
# something at given places of each row.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Comparing with the k-th largest logit keeps too many when some are equal. `topk(k)` raises when k
# exceeds the vocabulary, and promises no order among equals.
# </details>

# %% [markdown]
# ### Exercise 8: top-p
# *15 minutes, hard, 4 points*
#
# Holtzman et al. (2020) keep the *nucleus*: the smallest set of most probable tokens whose
# probability is p or more.
#
# 1. Go through the tokens from the most probable one on (of equal ones the lower number first).
#    Keep a token as long as the probability of all tokens **before** it is below p.
# 2. So the token with which the sum reaches p is kept, and at least one always is.
# 3. p = 1 keeps everything. p ≤ 0 or p > 1: `raise ValueError`.
# 4. What is not kept becomes −∞; all else stays as it was, in its place.
# 5. `logits` is (..., vocabulary) and is left unchanged; logits may be −∞ already.
#
# Example: probabilities `[0.1, 0.6, 0.3]`: p = 0.5 keeps token 1; p = 0.7 keeps tokens 1 and 2.


# %% nbgrader={"grade_id": "top_p_filter", "solution": true}
def top_p_filter(logits, p):
    """Keep the most probable tokens of each row that reach the probability p together.

    logits: float tensor (..., vocabulary). p: float in (0, 1].
    Returns a new float tensor of the same shape.
    """
    ### BEGIN SOLUTION
    if not 0 < p <= 1:
        raise ValueError("p must be above 0 and at most 1")
    if p == 1:
        return logits.clone()
    order = logits.argsort(dim=-1, descending=True, stable=True)
    probabilities = logits.softmax(dim=-1).gather(-1, order)
    before = probabilities.cumsum(dim=-1) - probabilities
    out = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(out, -torch.inf)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-top_p_filter", "grade": true, "points": 4}
check("top_p_filter", top_p_filter)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Sort, add up, compare, and carry the decision back to the tokens' own places.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The sum *before* a token is the running sum minus its own probability. `scatter` with the order of
# the sort carries a sorted row back.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `cumsum >= p` drops the token that crosses p. A mask made on the sorted row does not fit the
# unsorted one. At p = 1 roundings decide: treat it apart.
# </details>

# %% [markdown]
# ### Exercise 9: a penalty on repetition
# *10 minutes, medium, 3 points*
#
# N. Keskar et al. (2019), *CTRL*, Section 4.1, lower the score of what has been said. Their formula
# divides it; a negative score must be multiplied instead, or it would rise.
#
# 1. For each row: the logit of every token that occurs in this row of `history` is divided by
#    `penalty` if it is positive, and multiplied by `penalty` if it is negative.
# 2. **Once**, however often the token occurs.
# 3. `history` is (batch, seen); −1 fills up short rows and is no token.
# 4. `logits`, (batch, vocabulary), is left unchanged.
#
# Example: logits `[[2., -1., 4.]]`, history `[[0, 1, 0]]`, penalty 2 give `[[1., -2., 4.]]`.


# %% nbgrader={"grade_id": "repetition_penalty", "solution": true}
def repetition_penalty(logits, history, penalty):
    """Make tokens less likely that have been said.

    logits: float tensor (batch, vocabulary). history: int tensor (batch, seen), −1 = nothing.
    penalty: float, at least 1. Returns a new float tensor (batch, vocabulary).
    """
    ### BEGIN SOLUTION
    every = torch.arange(logits.shape[1])
    seen = (history[:, :, None] == every).any(dim=1)
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, lowered, logits)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-repetition_penalty", "grade": true, "points": 3}
check("repetition_penalty", repetition_penalty)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two questions for each token: has it been said, and is its logit positive?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Compare `history[:, :, None]` with all numbers of the vocabulary: a table (batch, seen,
# vocabulary) of yes and no. Which axis do you ask `any` of?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Index −1 is the last token of the vocabulary. A loop over the history penalises repeated tokens
# again.
# </details>

# %% [markdown]
# ### Exercise 10: write
# *12 minutes, medium, 3 points*
#
# Now the loop. There is another way to draw: add independent *Gumbel noise* to the logits and take
# the largest; the result is distributed as the softmax says (E. Gumbel 1954; C. Maddison et al.
# 2014, *A\* Sampling*). The noise is given, so everybody writes the same. The model is a given one,
# `window_model`: it reads at most `context` tokens, the length of its table, and refuses more, as a
# GPT does.
#
# 1. Start with `prompt`, (length,), at least one token; it may be longer than the context.
# 2. At step i: hand the model the **last** tokens, at most `len(table)` of them; add `noise[i]`,
#    (vocabulary,), to its logits; append the token with the largest sum.
# 3. Stop after appending the token `end`, or when the noise is used up. An `end` in the prompt does
#    not matter.
# 4. Return all tokens, prompt and `end` included, as an int tensor; `prompt` is left unchanged.
#
# Example: with one row of noise that is 0 everywhere, the result is the prompt and the model's most
# probable next token.


# %%
def window_model(table, tokens):
    """Logits (vocabulary,) of the token after `tokens`, (length,): one table for each distance.

    table: (context, vocabulary, vocabulary). Raises ValueError for more than `context` tokens.
    """
    if not 0 < len(tokens) <= len(table):
        raise ValueError(f"this model reads 1 to {len(table)} tokens; it got {len(tokens)}.")
    return table[torch.arange(len(tokens)), tokens.flip(0)].sum(dim=0)


# %% nbgrader={"grade_id": "generate", "solution": true}
def generate(table, prompt, noise, end):
    """Let `window_model(table, ...)` continue a prompt.

    table: float tensor (context, vocabulary, vocabulary). prompt: int tensor (length,).
    noise: float tensor (steps, vocabulary). end: int. Returns an int tensor (at least length,).
    """
    ### BEGIN SOLUTION
    tokens = prompt.clone()
    for row in noise:
        logits = window_model(table, tokens[-len(table) :])
        token = (logits + row).argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token])
        if token == end:
            break
    return tokens
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-generate", "grade": true, "points": 3}
check("generate", generate)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A loop over the rows of the noise; in each: crop, ask, choose, append, perhaps stop.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `tokens[-n:]` gives the last n, or all if there are fewer. `torch.cat` needs a tensor of one
# axis: `argmax(..., keepdim=True)` gives one.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Look for `end` in the new token only, after appending it.
# </details>

# %% [markdown]
# ### What sampling does to a text
#
# The model from section 2 continues the same words under four rules. Predict: which text repeats
# itself, and which invents the most words that are none?


# %% tags=["experiment"]
def warm(temperature):
    """Divide logits."""
    return lambda logits: logits / temperature


def best_only(logits):
    """All but the largest out."""
    return logits.masked_fill(logits < logits.max(), -torch.inf)


def without_the_tail(logits):
    """All out that is less than a tenth as likely as the best ("min-p", yet another filter)."""
    return logits.masked_fill(logits < logits.max() - torch.tensor(10.0).log(), -torch.inf)


rules = {
    "greedy": best_only,
    "temperature 1": warm(1.0),
    "temperature 2": warm(2.0),
    "no tail": without_the_tail,
}
known = set("".join(c if c.isalpha() else " " for c in text.lower()).split())
opening = torch.tensor([numbers[character] for character in "To be, or not to "])
for name, rule in rules.items():
    written = [show(character_model.write(decoders[0], opening, 200, s, rule)) for s in range(2)]
    words = "".join(c if c.isalpha() else " " for c in " ".join(written).lower()).split()
    real = sum(word in known for word in words) / len(words)
    different = len(set(words)) / len(words)
    print(f"--- {name}: {real:.0%} of the words are real, {different:.0%} are different ones")
    print(written[0][:140] + "\n")

# %% [markdown]
# Look at both numbers. Greedy writes real words, but few: it runs in circles. A high temperature
# writes many that are none. Cutting off the tail keeps most words real and lets the text vary. How
# many real words is right? Holtzman et al. compare with human text, where both numbers are high.

# %% tags=["experiment"]
with torch.no_grad():
    next_logits = decoders[0](opening[None])[0, -1]
likely = next_logits.argsort(descending=True)[:20]
likely_names = [characters[i].replace("\n", "↵") for i in likely]
sampling_explorer(next_logits[likely], likely_names, temperature=1.0)

# %% [markdown]
# These are the model's own logits after "To be, or not to ", the 20 largest. Find a top-k and a
# top-p that keep the same tokens here. After other words the same top-k would keep as many again;
# the same top-p fewer or more, as that distribution needs.

# %% [markdown]
# ## 4 Tokens: byte-pair encoding
#
# Characters make long sequences, words an endless vocabulary. Byte-pair encoding lies between: it
# starts from bytes (so nothing is ever unknown) and again and again gives the most frequent pair of
# neighbours a token of its own.
#
# Predict the first merge in "the theme then", and whether a merge can ever hold two words.

# %% tags=["explorer"]
from attention_course.explorers import bpe_steps

bpe_steps("the theme then, these themes and that anthem")

# %% [markdown]
# In "the theme then" the pairs "th" and "he" occur three times each, so the rule for equals
# decides; in the longer text above "th" leads by 7 to 6. And since our bytes include the space, a
# merge may well reach over the end of a word; GPT-2 forbids that by cutting the text into words
# first (A. Radford et al. 2019, Section 2.2). We leave this out.
#
# ### Exercise 11: learn the merges
# *25 minutes, hard, 4 points*
#
# 1. The first tokens are the bytes of the text in UTF-8: 0 to 255.
# 2. Repeat `merges` times: count all pairs of neighbours ("aaa" holds the pair (a, a) twice); take
#    the most frequent pair, of equally frequent ones the **smallest pair** (compare the left number
#    first, then the right one).
# 3. Merge i (i = 0, 1, …) makes the token 256 + i. It replaces the pair everywhere, from left to
#    right; what has been replaced is not used again ("aaa" becomes "aa" "a").
# 4. Stop early when no pair occurs at least twice.
# 5. Return the list of pairs, each of two numbers, in the order of learning.
#
# Example: text "abababc", 2 merges: (a, b) occurs 3 times, so the first pair is (97, 98), and token
# 256 stands for it. Now the text is 256 256 256 c, and the second pair is (256, 256).


# %% nbgrader={"grade_id": "bpe_train", "solution": true}
def bpe_train(text, merges):
    """Learn byte-pair merges from a text.

    text: str. merges: int, how many at most. Returns a list of pairs of ints.
    """
    ### BEGIN SOLUTION
    tokens, learned = list(text.encode("utf-8")), []
    for new in range(256, 256 + merges):
        counts = {}
        for i in range(len(tokens) - 1):
            pair = tokens[i], tokens[i + 1]
            counts[pair] = counts.get(pair, 0) + 1
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        learned.append(best)
        merged = []
        for token in tokens:
            if merged and (merged[-1], token) == best:
                merged[-1] = new
            else:
                merged.append(token)
        tokens = merged
    return learned
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-bpe_train", "grade": true, "points": 4}
check("bpe_train", bpe_train)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two helpers: one that counts pairs, one that replaces a pair. Test each alone on "aaab".
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `zip(tokens, tokens[1:])` gives all pairs. `min` with the key (−count, pair) finds the most
# frequent one and the smallest among equals in one go.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `Counter.most_common` takes the first of equals. Count again after every merge. A text of one byte
# has no pair at all.
# </details>

# %% [markdown]
# ### Exercise 12: text to tokens
# *12 minutes, medium, 2 points*
#
# 1. Start from the text's bytes. Apply the merges **in the order of learning**, each everywhere,
#    from left to right. `merges[i]` makes the token 256 + i.
# 2. The text may hold any characters, or none; there may be no merges.
# 3. Return a list of ints.
#
# Example: text "ababc", merges `[(97, 98), (256, 99)]` give `[256, 257]`.


# %% nbgrader={"grade_id": "bpe_encode", "solution": true}
def bpe_encode(text, merges):
    """Turn a text into tokens.

    text: str. merges: list of pairs of ints. Returns a list of ints.
    """
    ### BEGIN SOLUTION
    tokens = list(text.encode("utf-8"))
    for new, (left, right) in enumerate(merges, start=256):
        merged = []
        for token in tokens:
            if token == right and merged and merged[-1] == left:
                merged[-1] = new
            else:
                merged.append(token)
        tokens = merged
    return tokens
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-bpe_encode", "grade": true, "points": 2}
check("bpe_encode", bpe_encode)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The same replacing as in training; only the pairs are known already.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# One pass over the tokens for each merge, in order.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The longest token that fits is another algorithm (WordPiece's), with other results: an early merge
# may take away a letter that a longer token needs.
# </details>

# %% [markdown]
# ### Exercise 13: tokens to text
# *12 minutes, medium, 4 points*
#
# 1. Spell each token in bytes: a byte is itself, a merge is its left and then its right half, which
#    may be merges too.
# 2. Join **all** bytes, then read them as UTF-8. Where they are no UTF-8, put "�" as Python's
#    `decode` with `errors="replace"` does.
# 3. A number that no token has (negative, or 256 + the number of merges, or more):
#    `raise ValueError`.
# 4. Return a `str`; no tokens give an empty one.
#
# Example: tokens `[257, 33]`, merges `[(195, 169), (97, 256)]` give "aé!".


# %% nbgrader={"grade_id": "bpe_decode", "solution": true}
def bpe_decode(tokens, merges):
    """Turn tokens into a text.

    tokens: list of ints. merges: list of pairs of ints. Returns a str.
    """
    ### BEGIN SOLUTION
    spelled = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        spelled.append(spelled[left] + spelled[right])
    if any(not 0 <= token < len(spelled) for token in tokens):
        raise ValueError("a number that no token has")
    return b"".join(spelled[token] for token in tokens).decode("utf-8", errors="replace")
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-bpe_decode", "grade": true, "points": 4}
check("bpe_decode", bpe_decode)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Make a table of all tokens' bytes first. A merge's halves have smaller numbers than itself.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# 256 entries of one byte, then one entry for each merge: the join of two earlier ones.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# "é" may lie in two tokens, of which neither is valid alone: decode once, at the end. Negative
# numbers index a list from its end.
# </details>

# %% [markdown]
# ### How much does it save?
#
# PyTorch has no tokenizer; Hugging Face's `tokenizers` library trains the same algorithm in an
# instant. It cuts the text into words first, as GPT-2 does. We train it on the training part of
# Shakespeare with growing vocabularies, and count tokens of the validation part.
#
# Predict: 256 tokens mean one per byte. How many bytes does a token hold on average with 1,000
# tokens? And with 8,000?

# %% tags=["experiment"]
from tokenizers import Tokenizer, decoders as text_decoders, models, pre_tokenizers, trainers


def trained_tokenizer(size, sample):
    """A byte-level BPE tokenizer with `size` tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = text_decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
    )
    tokenizer.train_from_iterator([sample], trainer)
    return tokenizer


sizes = [256, 512, 1_000, 2_000, 4_000, 8_000]
unseen, elsewhere = text[cut:], "Ça coûte combien, s'il vous plaît ? 日本語も少し。" * 20
held = {"validation text": [], "another language": []}
for size in sizes:
    tokenizer = trained_tokenizer(size, text[:cut])
    for sample, row in zip((unseen, elsewhere), held.values(), strict=True):
        ids = tokenizer.encode(sample).ids
        assert tokenizer.decode(ids) == sample, "a tokenizer must lose nothing"
        row.append(len(sample.encode()) / len(ids))
fig, ax = plt.subplots(figsize=(6, 3.0), layout="constrained")
for name, row in held.items():
    ax.plot(sizes, row, "o-", label=name)
ax.set(xscale="log", xlabel="tokens in the vocabulary", ylabel="bytes per token")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.legend(fontsize=8)
plt.show()
for name, row in held.items():
    print(f"{name}: {row[0]:.2f} bytes per token with 256, {row[-1]:.2f} with {sizes[-1]:,}")

# %% [markdown]
# A doubling of the vocabulary buys ever less. Text of another language costs far more tokens per
# byte: the merges were learned from English. It is never "unknown", though: the bytes are there. A
# model over such tokens sees further with the same context, and its loss *per token* is larger, so
# compare models with different tokenizers per byte or per character only.

# %% [markdown]
# ## 5 Three masks
#
# GPT continues a text. Many tasks have an input and an output: translate, sum up, answer. Raffel et
# al. (2020), Section 3.2, set three ways side by side:
#
# - **encoder-decoder**: the input is read in both directions by its own network; the decoder looks
#   across;
# - **causal language model**: input and output in a row, every token sees the past only;
# - **prefix language model**: one network, one row, but the input (the *prefix*) is read in both
#   directions.
#
# Predict: which entries of the mask differ between a causal and a prefix model? Which between a
# prefix model and an encoder-decoder?

# %% tags=["explorer"]
from attention_course.explorers import mask_trio

mask_trio()

# %% [markdown]
# Causal and prefix differ in one triangle: what the input sees of itself. Prefix and
# encoder-decoder *do not differ in who sees whom* at all. There, the difference is in the weights
# (two networks against one that does both) and in the cross-attention being a layer of its own.
#
# ### Exercise 14: the masks
# *15 minutes, medium, 5 points*
#
# 1. `mask[b, i, j]` is True if query i may see key j; bool, (batch, queries, keys).
# 2. `kind` "full": every query sees all keys. (An encoder; or cross-attention, where `queries` and
#    `keys` differ.)
# 3. `kind` "causal": query i sees the keys 0 to i.
# 4. `kind` "prefix": query i sees the keys 0 to i, and all of the prefix: in row b the keys 0 to
#    `prefix_lengths[b]` − 1.
# 5. In every kind, keys from `lengths[b]` on are padding and are seen by nobody. Queries in the
#    padding follow the same rules as all others (nobody reads what they give).
# 6. Any other kind: `raise ValueError`. `prefix_lengths` may be given with any kind, and matters
#    for "prefix" only.
#
# Example: "prefix", lengths `[3]`, 3 queries and keys, prefix_lengths `[2]`:
# `[[[T, T, F], [T, T, F], [T, T, T]]]`.


# %% nbgrader={"grade_id": "sequence_mask", "solution": true}
def sequence_mask(kind, lengths, queries, keys, prefix_lengths=None):
    """Say which keys each query may see.

    kind: "full", "causal" or "prefix". lengths: int tensor (batch,). queries, keys: ints.
    prefix_lengths: int tensor (batch,) or None. Returns a bool tensor (batch, queries, keys).
    """
    ### BEGIN SOLUTION
    query, key = torch.arange(queries)[:, None], torch.arange(keys)
    if kind == "full":
        seen = torch.ones(1, queries, keys, dtype=torch.bool)
    elif kind == "causal":
        seen = (key <= query)[None]
    elif kind == "prefix":
        seen = (key <= query) | (key < prefix_lengths[:, None, None])
    else:
        raise ValueError(f"there is no kind {kind!r}")
    return seen & (key < lengths[:, None, None])
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-sequence_mask", "grade": true, "points": 5}
check("sequence_mask", sequence_mask)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Every rule is a comparison of the key's number with something: the query's number, the prefix's
# length, the text's length.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A column of query numbers, a row of key numbers; lengths with two more axes. Join what widens with
# `|`, what narrows with `&`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Without a prefix nothing else in "full" and "causal" has a batch axis: the result must. Padding
# narrows the *keys*, which are the last axis.
# </details>

# %% [markdown]
# ### Three ways, one task
#
# The input is eight letters and then an instruction: copy them, turn them round, or sort them. All
# three networks have the same number of weights and see the same number of examples. (The
# encoder-decoder has one layer for each side and a narrower MLP; the others have two layers.)
#
# Fifteen such runs take over a minute, so they were recorded; `experiments/` in the project's
# repository holds the script (`language_model_ablations.py`), and the cell below makes one of the
# runs again.
#
# Predict: the causal model reads the letters *before* it knows what to do with them. Does it lose?

# %% tags=["experiment"]
from attention_course.claims import report
from attention_course.data import language_records
from attention_course.language import three_ways

STEPS, EVERY = 160, 40
recorded = language_records.read_ways(STEPS)
here = three_ways.train_way("prefix", 0, STEPS, EVERY)
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for way, curves in recorded.items():
    weights = sum(p.numel() for p in three_ways.build(way, torch.Generator()).parameters())
    rows = [list(curve.values()) for curve in curves]
    spread(ax, list(curves[0]), rows, f"{way}, {weights:,} weights")
ax.plot(range(EVERY, STEPS + 1, EVERY), here, "kx", label="prefix, seed 0, made here")
ax.set_xlabel("steps of 32 examples")
ax.set_ylabel("share of answers that are all right")
ax.set_ylim(0, 1)
ax.legend(fontsize=8)
plt.show()
print(f"prefix, seed 0: {here[-1]:.2f} here, {recorded['prefix'][0][STEPS]:.2f} in the record")


def apart(steps):
    """Print the last shares of runs of this length; say for each way if it beat causal."""
    last = {
        way: sorted(curve[steps] for curve in curves)
        for way, curves in language_records.read_ways(steps).items()
    }
    print(f"\nafter {steps} steps:")
    for way, shares in last.items():
        print(f"{way:<16} " + ", ".join(f"{share:.2f}" for share in shares))
    ahead = {way: shares[0] > last["causal"][-1] for way, shares in last.items()}
    for way in ("prefix", "encoder-decoder"):
        verdict = "supported" if ahead[way] else "NOT supported"
        print(f"'{way}: every run above every causal one': {verdict} by these runs.")
    return last, ahead["prefix"] and ahead["encoder-decoder"]


apart(240)
last, both = apart(STEPS)
effect = ", ".join(f"{way}: {shares[0]:.0%} to {shares[-1]:.0%}" for way, shares in last.items())
effect += f" ({len(last['causal'])} recorded seeds)"
report(
    "C18",
    both or None,
    f"answers all right after {STEPS} steps, {effect}",
    recorded_seconds=language_records.seconds_of(language_records.WAYS),
)

# %% [markdown]
# A dot for each run, a line through the means. This task was *made* to show the difference: the
# instruction comes last, and sorting needs all letters at once. In the record, every run of the
# encoder-decoder is above every causal one, at both lengths; the prefix model is ahead on average
# only, and some of its runs lie among the causal ones. On plain continuation of text there is no
# input to read in both directions, and nothing to gain.
#
# Raffel et al. (2020, Table 2) find, when all fill in holes at equal *computation*, the
# encoder-decoder best, the causal model worst and the prefix model between. Large models of today
# are mostly causal all the same: every token of a text can be trained on, and past keys and values
# never change.

# %% [markdown]
# ## 6 T5: spans and sentinels
#
# T5 turns every task into text to text: the input says in words what to do ("translate English to
# German: …", "cola sentence: …"), and even a class or a number comes out as a text. FLAN goes on
# from a pre-trained model: fine-tuned on many tasks that are phrased as instructions, it follows
# instructions of tasks that it has never seen (J. Wei et al. 2022, with a causal model; H. Chung et
# al. 2022, *Scaling Instruction-Finetuned Language Models*, with T5 among others). That is
# supervised fine-tuning. Learning from human preferences is another step, which FLAN does not take.
#
# Before the tasks comes *pre-training*: holes are cut into a text, and the model writes what is
# missing.
#
# | | |
# |---|---|
# | text | to be **or not** to be that **is the** question |
# | input | to be ⟨0⟩ to be that ⟨1⟩ question |
# | target | ⟨0⟩ or not ⟨1⟩ is the ⟨2⟩ |
#
# Predict: why is this cheaper than writing the whole text again?

# %% [markdown]
# ### Exercise 15: span corruption
# *12 minutes, medium, 3 points*
#
# 1. Span i covers `lengths[i]` tokens (1 or more) from position `starts[i]` of the **original**
#    text on. Spans are in order and do not overlap; they may lie side by side, at the ends, or
#    there may be none.
# 2. Sentinel i is the number `first_sentinel` − i: they count **down**, as T5's do from the end of
#    its vocabulary.
# 3. `inputs`: the text in which each span is replaced by its sentinel, one for the whole span.
# 4. `targets`: for each span its sentinel, then its tokens; at the very end one more sentinel, the
#    next one.
# 5. Return `(inputs, targets)`, two lists of ints. `tokens` is left unchanged.
#
# Example: tokens `[5, 6, 7, 8, 9]`, starts `[1, 4]`, lengths `[2, 1]`, first sentinel 99: inputs
# `[5, 99, 8, 98]`, targets `[99, 6, 7, 98, 9, 97]`.


# %% nbgrader={"grade_id": "span_corruption", "solution": true}
def span_corruption(tokens, starts, lengths, first_sentinel):
    """Cut spans out of a text, and make them the target.

    tokens, starts, lengths: lists of ints. first_sentinel: int.
    Returns (inputs, targets), lists of ints.
    """
    ### BEGIN SOLUTION
    inputs, targets, done = [], [], 0
    for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        inputs += [*tokens[done:start], first_sentinel - i]
        targets += [first_sentinel - i, *tokens[start : start + length]]
        done = start + length
    return inputs + tokens[done:], [*targets, first_sentinel - len(starts)]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-span_corruption", "grade": true, "points": 3}
check("span_corruption", span_corruption)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Walk through the text from span to span, and remember where you are.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# For each span: what lies before it and a sentinel go to the inputs; the same sentinel and the span
# go to the targets. Behind the last span both need an end.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# If you replace in the list itself, all later starts are wrong, unless you begin with the last
# span.
# </details>

# %% [markdown]
# Cheaper, since the decoder writes what is missing and a few sentinels only: T5 cuts out 15 % of
# the text in spans of 3 tokens on average, so a target is about a fifth as long as its text.
#
# ## 7 BART: repair the text
#
# BART (Lewis et al. 2020, Section 2.2) also pairs an encoder that reads in both directions with a
# decoder that writes. It corrupts the text in five ways, and the decoder always writes the
# **whole** text:
#
# | corruption | A B C . D E . becomes |
# |---|---|
# | token masking | A _ C . D E . |
# | token deletion | A C . D E . |
# | text infilling | A _ . D _ E . |
# | sentence permutation | D E . A B C . |
# | document rotation | C . D E . A B |
#
# In text infilling, one mask stands for a span of any length, also of none: lengths are drawn from
# a Poisson distribution of mean 3, so about every twentieth is 0. The model must find out how much
# is missing. Predict: which of the five is the easiest to undo? Which one can not be undone without
# understanding how sentences follow each other?

# %% [markdown]
# ### Exercise 16: masking and deletion
# *8 minutes, easy, 2 points*
#
# 1. `chosen` is a list of positions in any order, none twice; perhaps empty.
# 2. `masked`: the tokens with `mask_token` at the chosen positions.
# 3. `deleted`: the tokens without those at the chosen positions.
# 4. Return `(masked, deleted)`, two lists of ints. `tokens` is left unchanged.
#
# Example: tokens `[5, 6, 7, 8]`, chosen `[2, 0]`, mask 1: masked `[1, 6, 1, 8]`, deleted `[6, 8]`.


# %% nbgrader={"grade_id": "mask_and_delete", "solution": true}
def mask_and_delete(tokens, chosen, mask_token):
    """Corrupt a text twice: by token masking and by token deletion.

    tokens, chosen: lists of ints. mask_token: int. Returns (masked, deleted), lists of ints.
    """
    ### BEGIN SOLUTION
    places = list(enumerate(tokens))
    masked = [mask_token if i in chosen else token for i, token in places]
    return masked, [token for i, token in places if i not in chosen]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-mask_and_delete", "grade": true, "points": 2}
check("mask_and_delete", mask_and_delete)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Go through positions and tokens together, and ask of each position whether it is chosen.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `enumerate`, and two list comprehensions.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `del` in a loop moves everything behind it.
# </details>

# %% [markdown]
# ### Exercise 17: text infilling
# *10 minutes, medium, 3 points*
#
# 1. Span i covers `lengths[i]` tokens from position `starts[i]` of the original text on. The starts
#    grow; spans do not overlap.
# 2. Each span is replaced by **one** `mask_token`, whatever its length.
# 3. A span of length 0 inserts a mask **before** the token at its start; a start that equals the
#    length of the text puts it at the end.
# 4. Return a list of ints. `tokens` is left unchanged.
#
# Example: tokens `[5, 6, 7, 8]`, starts `[0, 3]`, lengths `[2, 0]`, mask 1: `[1, 7, 1, 8]`.


# %% nbgrader={"grade_id": "text_infilling", "solution": true}
def text_infilling(tokens, starts, lengths, mask_token):
    """Replace each span, also an empty one, by one mask.

    tokens, starts, lengths: lists of ints. mask_token: int. Returns a list of ints.
    """
    ### BEGIN SOLUTION
    result, done = [], 0
    for start, length in zip(starts, lengths, strict=True):
        result += [*tokens[done:start], mask_token]
        done = start + length
    return result + tokens[done:]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-text_infilling", "grade": true, "points": 3}
check("text_infilling", text_infilling)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# As in span corruption, without a target. Does length 0 need anything special?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# What lies before the span, a mask, and go on behind the span.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# If your code needs an `if length == 0`, look whether it would be right without.
# </details>

# %% [markdown]
# ### Exercise 18: sentences in another order
# *10 minutes, medium, 3 points*
#
# 1. A sentence ends **with** a token `full_stop`, which belongs to it. What stands behind the last
#    full stop, if anything, is a sentence as well.
# 2. `permuted`: the sentences in the order `order`: first sentence `order[0]` of the original, then
#    sentence `order[1]`, and so on.
# 3. `rotated`: the **original** text from position `start` on, then what stood before it.
# 4. Return `(permuted, rotated)`, two lists of ints. `tokens` is left unchanged.
#
# Example, with the full stop 0: tokens `[5, 6, 0, 7, 0]`, order `[1, 0]`, start 1: permuted
# `[7, 0, 5, 6, 0]`, rotated `[6, 0, 7, 0, 5]`.


# %% nbgrader={"grade_id": "reorder_document", "solution": true}
def reorder_document(tokens, full_stop, order, start):
    """Corrupt a text twice: by sentence permutation and by document rotation.

    tokens, order: lists of ints. full_stop, start: ints.
    Returns (permuted, rotated), lists of ints.
    """
    ### BEGIN SOLUTION
    sentences, sentence = [], []
    for token in tokens:
        sentence.append(token)
        if token == full_stop:
            sentences.append(sentence)
            sentence = []
    sentences.append(sentence)
    permuted = [token for number in order for token in sentences[number]]
    return permuted, tokens[start:] + tokens[:start]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-reorder_document", "grade": true, "points": 3}
check("reorder_document", reorder_document)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# First a list of sentences, each a list of tokens; then the order is easy.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Append token after token to the present sentence; at a full stop begin a new one.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# What happens to a sentence that is still open at the end? And to which sentence does the full stop
# go?
# </details>

# %% [markdown]
# ### Exercise 19: what the decoder is given
# *6 minutes, easy, 2 points*
#
# While training, the decoder is given the labels shifted to the right, as in chapter 07: at each
# place it has seen the labels before it. One snag is left: labels that shall not count in the loss
# are −100, PyTorch's own mark, and an embedding has no row for that.
#
# 1. Row by row: `start`, then all labels but the last.
# 2. Where a shifted label is −100, put `padding`.
# 3. `labels`, (batch, length), is left unchanged; the result has its shape.
#
# Example: labels `[[5, 6, -100, -100]]`, start 2, padding 1 give `[[2, 5, 6, 1]]`.


# %% nbgrader={"grade_id": "bart_decoder_input", "solution": true}
def bart_decoder_input(labels, start, padding):
    """Shift labels to the right.

    labels: int tensor (batch, length), −100 = does not count. start, padding: ints.
    Returns a new int tensor (batch, length).
    """
    ### BEGIN SOLUTION
    shifted = F.pad(labels[:, :-1], (1, 0), value=start)
    return shifted.masked_fill(shifted == -100, padding)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-bart_decoder_input", "grade": true, "points": 2}
check("bart_decoder_input", bart_decoder_input)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A column of starts, and all columns of the labels but the last.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `torch.cat` along the right axis, or `F.pad`, or `torch.roll` and one assignment.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `labels[:, 1:] = …` writes into the caller's tensor. Replace −100 only.
# </details>

# %% [markdown]
# What each corruption hides: a mask says where a token is missing; deletion does not; infilling
# says where but not how many. So masking is the easiest of the three. Permutation and rotation hide
# no token at all, only the order: whoever undoes a permutation has to know which sentence follows
# which.
#
# ### Which corruption helps?
#
# Lewis et al. (2020, Section 4 and Table 1) find text infilling, alone or with sentence
# permutation, the most reliable over many tasks. We ask a much smaller question: which corruption,
# undone without any labels, prepares a small prefix model for **mending misspelt words**?
# Pre-training: 30 frequent words of Shakespeare, corrupted at random, to be restored. Fine-tuning:
# 30 misspellings, for a moment. Test: 500 other misspellings. (Sentences are not permuted: single
# words have none.)
#
# A misspelling here is two letters exchanged, one lost, one doubled, or another letter. Deletion
# comes closest to that. The runs were recorded by the same script as in section 5; one is made
# again below. Predict: will the most similar corruption win?

# %% tags=["experiment"]
from attention_course.language import repair

words = repair.frequent_words(text, 30)
mended = language_records.read_repairs()
conditions = list(mended)
AGAIN = "text infilling"
here = repair.repair_score(words, AGAIN, 0)
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
for place, scores in enumerate(mended.values()):
    ax.plot(scores, [place] * len(scores), "o", alpha=0.6)
    ax.plot(sum(scores) / len(scores), place, "k|", ms=14)
ax.plot(here, conditions.index(AGAIN), "kx", label="seed 0, made here")
ax.legend(fontsize=8)
ax.set_yticks(range(len(conditions)), conditions)
ax.invert_yaxis()
ax.set_xlabel("share of misspelt words mended (dots: seeds, bar: mean)")
ax.set_xlim(-0.02, 1)
plt.show()
print(f"{AGAIN}, seed 0: {here:.2f} here, {mended[AGAIN][0]:.2f} in the record")
means = {name: sum(scores) / len(scores) for name, scores in mended.items()}
for name, scores in mended.items():
    print(f"{name:<15} {means[name]:.2f}  (" + ", ".join(f"{s:.2f}" for s in scores) + ")")
others = [name for name in conditions if name != language_records.NOTHING]
helps = all(min(mended[name]) > max(mended[language_records.NOTHING]) for name in others)
print(f"'Any of them helps': {'supported' if helps else 'NOT supported'} by these runs.")


def always_above(name, other):
    """Whether one corruption mended more than another with every seed."""
    return all(a > b for a, b in zip(mended[name], mended[other], strict=True))


best = max(others, key=means.get)
clear = all(always_above(best, name) for name in others if name != best)
print(f"Highest mean: {best}" + (", with every seed." if clear else ", but not with every seed."))
beaten = any(always_above(name, "text infilling") for name in others)
verdict = "NOT supported" if beaten else "supported" if clear else "not settled"
print(f"'Text infilling is the most useful': {verdict} by these runs.")
effect = ", ".join(f"{name}: {mean:.0%}" for name, mean in means.items())
effect = f"words mended after {effect} ({len(mended[best])} recorded seeds)"
report(
    "C17",
    {"supported": True, "NOT supported": False}.get(verdict),
    effect,
    recorded_seconds=language_records.seconds_of(language_records.REPAIRS),
)

# %% [markdown]
# That pre-training helps at all is the large effect. Which corruption is best depends on the task,
# on how much is corrupted (we did not tune it), and with few seeds and 500 test words small
# differences say nothing. The last lines compare seed by seed: with one seed, all have the same
# labels and the same test words. Lewis et al. measure summaries, dialogue and question answering at
# a scale that we cannot reach; there, finding out *how much* is missing seems to be what pays.

# %% [markdown]
# ## 8 A model of the real world
#
# SmolLM2 (L. Ben Allal et al. 2025) is 1,300 times larger than the decoder that you trained in
# section 2, and made of the same steps. Its layers are those of Llama (H. Touvron et al. 2023),
# and so are the layers of most open models. You write one, and then run SmolLM2 on it. Four things
# are new since your GPT:
#
# | GPT, section 2 | Llama |
# |---|---|
# | LayerNorm | **RMSNorm**: divide by the root mean square; no mean, no bias |
# | position embedding, added once | queries and keys **turned** by their places in every layer |
# | keys and values for each head | fewer **key heads**, each for several heads: a smaller cache |
# | MLP with GELU | **gated MLP**: one projection, bent, opens and closes another |
#
# (In this order: B. Zhang and R. Sennrich 2019; J. Su et al. 2021, in chapter 03; J. Ainslie et al.
# 2023; N. Shazeer 2020.)

# %% [markdown]
# ### Exercise 20: a layer as in Llama
# *25 minutes, hard, 5 points*
#
# The parameters are set up for you, under the names that published weights have. None of the
# projections has a bias. Write `forward`.
#
# 1. `input_layernorm` of x goes into the attention, and what `o_proj` gives is added to x.
#    `post_attention_layernorm` of the sum goes into the MLP, and what `down_proj` gives is added to
#    the sum.
# 2. d_head = d_model / `heads`. `q_proj` gives `heads` heads, `k_proj` and `v_proj` only
#    `key_heads` of them, side by side along the last axis. Heads that are **neighbours** share a
#    key head: of four heads and two key heads, heads 0 and 1 use the first, heads 2 and 3 the
#    second.
# 3. Queries and keys are turned by their places 0, 1, 2, …, values are not. **Component i of a
#    head pairs with component i + d_head / 2** (chapter 03 paired neighbours). At place p the pair
#    (a, b) becomes (a cos φ − b sin φ, a sin φ + b cos φ) with φ = p · base^(−2i / d_head).
# 4. Scores over √d_head; place t sees the places 0 to t; softmax, average of values.
# 5. MLP: `down_proj` of SiLU(`gate_proj`) · `up_proj`, with SiLU(z) = z · sigmoid(z) (`F.silu`).
#
# Example: `LlamaLayer(8, 2, 1, 12, 100.0)(torch.ones(1, 3, 8))` has the shape (1, 3, 8), and its
# three vectors are equal: averages of equal values do not depend on the weights.


# %% nbgrader={"grade_id": "llama_layer", "solution": true}
class LlamaLayer(nn.Module):
    """Causal attention and a gated MLP, each behind an RMSNorm and beside a residual link."""

    def __init__(self, d_model, heads, key_heads, d_hidden, base):
        super().__init__()
        self.heads, self.key_heads, self.base = heads, key_heads, base
        d_keys = key_heads * (d_model // heads)
        self.input_layernorm = nn.RMSNorm(d_model, eps=1e-5)
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_keys, bias=False)
        self.v_proj = nn.Linear(d_model, d_keys, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)
        self.post_attention_layernorm = nn.RMSNorm(d_model, eps=1e-5)
        self.gate_proj = nn.Linear(d_model, d_hidden, bias=False)
        self.up_proj = nn.Linear(d_model, d_hidden, bias=False)
        self.down_proj = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x):
        """Run the layer.

        x: float tensor (batch, length, d_model). Returns a float tensor of the same shape.
        """
        ### BEGIN SOLUTION
        length, d_head = x.shape[1], x.shape[-1] // self.heads
        rates = self.base ** (-torch.arange(0, d_head, 2).to(x) / d_head)
        angles = torch.outer(torch.arange(length).to(x), rates)
        cos, sin = angles.cos(), angles.sin()

        def turn(vectors):
            first, second = vectors.chunk(2, dim=-1)
            return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)

        normed = self.input_layernorm(x)
        queries, keys, values = (
            project(normed).unflatten(-1, (-1, d_head)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        shared_by = self.heads // self.key_heads
        keys = turn(keys).repeat_interleave(shared_by, dim=1)
        values = values.repeat_interleave(shared_by, dim=1)
        scores = turn(queries) @ keys.mT / d_head**0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        x = x + self.o_proj((weights @ values).transpose(1, 2).flatten(2))
        normed = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(normed)) * self.up_proj(normed))
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-llama_layer", "grade": true, "points": 5}
check("llama_layer", LlamaLayer)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Five small steps: angles; three projections, split into heads; turn; attend; gated MLP. Each you
# have written before, in chapters 03 to 05, but for the gate and the shared keys.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `unflatten(-1, (-1, d_head))` and `transpose(1, 2)` split heads, whatever their number.
# `repeat_interleave` along the axis of heads gives each head its keys. `chunk(2, dim=-1)` gives the
# first and the second components of all pairs. The angles have the shape (length, d_head / 2).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `repeat` deals the key heads out in turn, `repeat_interleave` gives neighbours the same one. The
# rates know d_head, not d_model. The second norm reads what the first link gave, not the old x.
# </details>

# %% [markdown]
# ### Run a real model on your layer
#
# Around 30 of your layers the cell puts an embedding, a last norm and the tied product, and loads
# the weights of SmolLM2. They are optional (0.2 GB of disk, 1.1 GB of memory); without them the
# cell says how to get them. The library `transformers` has its own Llama; what it computes from the
# same file was measured once, and is printed beside your result.
#
# Predict: which has the lower loss per token, a true sentence or the same words shuffled? And what
# does a model of 135 million weights answer when asked for the capital of France?

# %% tags=["experiment"]
from attention_course.language import smollm
from attention_course.pretrained import ModelMissing

try:
    real_model = smollm.model_of_layers(LlamaLayer)
    real_tokenizer = smollm.tokenizer()
    sentences = {
        "true": "The capital of France is Paris, and the capital of Italy is Rome.",
        "shuffled": "Rome the capital Italy of is Paris and France the is capital of,.",
    }
    losses = {}
    for name, sentence in sentences.items():
        ids = torch.tensor([real_tokenizer.encode(sentence).ids])
        with torch.no_grad():
            losses[name] = float(character_model.loss_of(real_model, ids))
except ModelMissing as missing:
    print(missing)
except NotImplementedError:
    print("This cell uses your answer to exercise 20.")
else:
    for name, sentence in sentences.items():
        print(f"{name:<9} {losses[name]:.4f} nats per token: {sentence}")
    reference = 1.6904  # what transformers' Llama gives for the true sentence
    same = abs(losses["true"] - reference) < 1e-3
    print(
        f"transformers gives {reference} for the true one: {'the same' if same else 'NOT the same'}"
    )
    order = losses["true"] < losses["shuffled"]
    verdict = "supported" if order else "NOT supported"
    print(f"'Word order matters to it': {verdict} by this run.")
    asked = torch.tensor(real_tokenizer.encode("The capital of France is").ids)
    answer = character_model.write(real_model, asked, 8, seed=0, change=best_only)
    print(real_tokenizer.decode(answer.tolist()))

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | loss nearly 0, samples nonsense | no mask, mask one too wide, or targets not shifted |
# | NaN from the first step on | a mask that hides a token from itself: row 0 is empty |
# | loss starts far above log(vocabulary) | tied embeddings of size 1: start them smaller |
# | validation as good as training | windows drawn first, split afterwards |
# | perplexity too high | mean of exponentials, or batches of unequal size weighed alike |
# | hot and cold exchanged | temperature multiplied |
# | top-p sometimes keeps nothing | the token that crosses p is dropped |
# | generation breaks off after `context` tokens | text not cropped; or the *first* tokens kept |
# | "�" in decoded text | tokens decoded one by one |
# | index error in the decoder's embedding | −100 left in the shifted labels |
# | prefix model no better than the causal one | prefix of another row; mask turned round |
# | loaded weights give nonsense | pairs turned in the other layout; key heads dealt out in turn |

# %% [markdown]
# ## Recap
#
# - GPT = encoder layers + causal mask + tied output. Its labels are its inputs, one token on.
# - Loss is a mean over real next tokens; perplexity its exponential. Split the text before you cut
#   windows.
# - Temperature, top-k, top-p and penalties act on logits; what is out gets −∞; drawing comes last.
# - Byte-pair encoding replays its merges in order; bytes at the bottom make it lossless.
# - Causal, prefix and full differ in the mask only; an encoder-decoder has two networks besides.
# - T5 writes what is missing, BART writes everything; both learn from text without labels.
# - Models of today keep GPT's plan; norms, positions, key heads and the MLP have changed.
#
# Next: read in both directions for good (BERT). The challenge below is for those who want to know
# where T5's positions are.

# %% [markdown]
# ## Challenge: buckets for distances
# *25 minutes, hard, 3 points*
#
# T5 has no position embedding. It adds to each score a learned number that depends on how far the
# key is from the query. Far distances share a number: near ones have a *bucket* each, far ones ever
# wider buckets (Raffel et al. 2020, Section 2.1; the formula is that of the published code).
#
# 1. `distance` is key position − query position: an int tensor of any shape. Return the number of
#    its bucket, an int tensor of the same shape.
# 2. `bidirectional=True`: half of the `buckets` is for distances ≤ 0 (numbers 0, 1, …), the other
#    half for distances > 0 (numbers from `buckets` / 2 on). In each half, n = |distance| counts,
#    and there is room for R = `buckets` / 2.
# 3. `bidirectional=False`: n = −distance for the past; for the future n = 0. There is room for
#    R = `buckets`.
# 4. Let E = R / 2 (all divisions here are whole). If n < E, the bucket is n.
# 5. Otherwise it is E + ⌊ log(n / E) / log(`longest` / E) · (R − E) ⌋, but at most R − 1.
#
# Example: 8 buckets, longest 16, bidirectional: R = 4, E = 2. Distances `[-1, 0, 1, 2, -7, 100]`
# are in the buckets `[1, 0, 5, 6, 3, 7]`.


# %% nbgrader={"grade_id": "relative_bucket", "solution": true}
def relative_bucket(distance, bidirectional, buckets, longest):
    """Sort distances into buckets, as T5 does.

    distance: int tensor of any shape. bidirectional: bool. buckets, longest: ints.
    Returns an int tensor of the same shape.
    """
    ### BEGIN SOLUTION
    room, first = buckets, 0
    if bidirectional:
        room = buckets // 2
        first = room * (distance > 0)
        n = distance.abs()
    else:
        n = (-distance).clamp(min=0)
    exact = room // 2
    far = (n.clamp(min=exact) / exact).double()
    steps = torch.log(far) / torch.log(torch.tensor(longest / exact)) * (room - exact)
    coarse = (exact + steps.long()).clamp(max=room - 1)
    return first + torch.where(n < exact, n, coarse)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-relative_bucket", "grade": true, "points": 3}
check("relative_bucket", relative_bucket)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Three parts: which half, which n, and two formulas for n of which `torch.where` picks one.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Compute the coarse formula for all n, with n raised to at least E so that no logarithm is negative
# or infinite; then choose.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Cut off, do not round. The cap of R − 1 belongs to one half, before the half's offset is added.
# </details>
