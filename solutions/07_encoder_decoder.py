# %% [markdown]
# # 07 Encoder and decoder
#
# A sentence goes in, another one comes out, word by word. The encoder reads the source once. The
# decoder writes: at every step it looks at what it has written so far, and at what the encoder
# found. You build both halves, train them on a small piece of French, and look inside.
#
# **You will be able to**
#
# - say where queries, keys and values of each of the three attentions come from, and why;
# - train with teacher forcing: shift, masks, one loss for each step;
# - decode greedily and with beams, stop each sentence of a batch, and compute nothing twice;
# - read alignments off cross-attention, score them, and say what the model does *not* learn.
#
# | section | minutes | points |
# |---|---|---|
# | 1 Two stacks | 10 | |
# | 2 Cross-attention | 20 | 3 |
# | 3 The decoder's block | 30 | 6 |
# | 4 Training: all steps at once | 45 | 9 |
# | 5 The whole model | 25 | 4 |
# | 6 A small piece of French | 25 | 2 |
# | 7 Reading the alignment | 25 | 3 |
# | 8 Writing word by word | 45 | 8 |
# | 9 One vector, looking back, attention only | 10 | |
# | Recap | 5 | |
# | **in all** | **240** | **35** |
# | Challenge: beam search | 40 more | 4 more |
#
# That is two sittings: sections 1 to 5, and 6 to the end.

# %% [markdown]
# **To read**, before or after: A. Vaswani et al. (2017), *Attention Is All You Need*, Sections 3.1,
# 3.2.3, 3.4, 5.3 and 5.4, equation 3, Figure 1. I. Sutskever, O. Vinyals and Q. Le (2014),
# *Sequence to Sequence Learning with Neural Networks*, Section 2. D. Bahdanau, K. Cho and Y. Bengio
# (2015), *Neural Machine Translation by Jointly Learning to Align and Translate*, Figure 3. M.-T.
# Luong, H. Pham and C. Manning (2015), *Effective Approaches to Attention-based Neural Machine
# Translation*.
#
# **Symbols.**
#
# | name | shape | meaning |
# |---|---|---|
# | `source` | (batch, source) | word ids of the sentences to translate, padded at the end |
# | `targets` | (batch, target) | word ids of the translations, each with an end token |
# | `x` | (batch, target, d_model) | vectors in the decoder |
# | `memory` | (batch, source, d_model) | what the encoder found: its last layer's output |
# | `memory_mask` | (batch, source) | bool, True = a word, False = padding |
# | `logits` | (batch, target, words) | scores of the next word, one row for each step |
#
# **True = may be seen**, as everywhere in this course. Beware: PyTorch's *layers* say it the other
# way round. Checks run in float64 on the CPU. You may call earlier answers in later ones, but you
# never have to.

# %%
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course import check, example

torch.set_num_threads(1)  # small tensors: more threads would only wait for each other

# %% [markdown]
# ## 1 Two stacks

# %% tags=["experiment"]
import matplotlib.pyplot as plt


def draw_stacks(ax):
    """Two stacks of boxes; the encoder's output goes to every layer of the decoder."""
    box = {"boxstyle": "round,pad=0.3", "ec": "0.3"}

    def put(x, y, words, colour):
        ax.text(x, y, words, ha="center", va="center", fontsize=9, bbox={**box, "fc": colour})

    for y in (1, 2):
        put(0, y, "self-attention\nMLP", "#dbe9f6")
        put(4, y, "causal self-attention\ncross-attention\nMLP", "#fde3c8")
        style = {"arrowstyle": "->", "color": "C3", "lw": 2}
        ax.annotate("", (3.2, y), (0.5, 2.7), arrowprops=style)
    put(0, 0, "les chats noirs dorment .", "white")
    put(4, 0, "[start] the black cats …", "white")
    put(0, 2.75, "memory", "#f6dbdb")
    put(4, 2.95, "the black cats sleep …", "white")
    ax.text(1.5, 2.75, "keys and values", color="C3", fontsize=9, ha="center")
    for x, ends in ((0, [0.2, 0.75, 1.3, 1.7, 2.3, 2.55]), (4, [0.2, 0.6, 1.4, 1.6, 2.4, 2.75])):
        for low, high in zip(ends[::2], ends[1::2], strict=True):
            ax.annotate("", (x, high), (x, low), arrowprops={"arrowstyle": "->", "color": "0.4"})
    ax.set(xlim=(-1.6, 5.8), ylim=(-0.3, 3.25))
    ax.axis("off")


fig, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
draw_stacks(ax)
plt.show()

# %% [markdown]
# Left, the encoder: no mask but padding, every word sees every word. Right, the decoder. Each of
# its layers has **two** attentions. The first looks at the target written so far. The second takes
# its keys and values from `memory`, and **every** decoder layer gets the same memory: the output of
# the *last* encoder layer (Vaswani et al., Section 3.2.3).
#
# Predict: to translate one sentence of 9 words into 8 words and an end token, how often does the
# encoder run? And the decoder? (You will count both in section 8.)

# %% [markdown]
# ## 2 Cross-attention
#
# It is multi-head attention as you know it, with two inputs instead of one: the target asks, the
# source answers. So the weights are a matrix of *target* words by *source* words, and in general
# not square.

# %% [markdown]
# ### Exercise 1: cross-attention
# *18 minutes, medium, 3 points*
#
# 1. Queries are made from `x` by `to_queries`; keys and values from `memory` by `to_keys` and
#    `to_values`.
# 2. Each is cut into `heads` heads of width d_model / heads: head 0 gets the first features, head 1
#    the next, and so on.
# 3. Scores are divided by the root of a head's width. Source words whose `memory_mask` is False get
#    weight 0. Every sentence has a word that may be seen. There is **no** causal mask.
# 4. The heads' outputs are put side by side, in order, and go through `to_output`.
# 5. Return `(output, weights)`, of shapes (batch, target, d_model) and (batch, heads, target,
#    source).
# 6. Keep the four layers' names. `F.scaled_dot_product_attention` is allowed, but it gives no
#    weights.
#
# Example: if all entries of `to_keys` are 0, every score is 0, and each target word attends to all
# words of its source equally: with 4 words and one place of padding, a row is `[¼, ¼, ¼, ¼, 0]`.


# %% nbgrader={"grade_id": "cross_attention", "solution": true}
class CrossAttention(nn.Module):
    """Multi-head attention from a target to a source."""

    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.to_queries = nn.Linear(d_model, d_model)
        self.to_keys = nn.Linear(d_model, d_model)
        self.to_values = nn.Linear(d_model, d_model)
        self.to_output = nn.Linear(d_model, d_model)

    def forward(self, x, memory, memory_mask):
        """Let each target word look at the source words.

        x: (batch, target, d_model). memory: (batch, source, d_model).
        memory_mask: bool (batch, source), True = may be seen.
        Returns (output, weights): (batch, target, d_model), (batch, heads, target, source).
        """
        ### BEGIN SOLUTION
        queries, keys, values = (
            part.unflatten(-1, (self.heads, -1)).swapaxes(1, 2)
            for part in (self.to_queries(x), self.to_keys(memory), self.to_values(memory))
        )
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        weights = scores.masked_fill(~memory_mask[:, None, None], -torch.inf).softmax(dim=-1)
        return self.to_output((weights @ values).swapaxes(1, 2).flatten(2)), weights
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-cross_attention", "grade": true, "points": 3}
check("cross_attention", CrossAttention)

# %% [markdown]
# A case of a module in hand: `example` gives how it is built, its weights and its inputs.

# %%
case = example("cross_attention", 2)
print(case["build"])
for name, tensor in case["inputs"].items():
    print(name, tuple(tensor.shape))

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Only two things differ from self-attention: what keys and values are made from, and the mask.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# (batch, length, d_model) → (batch, length, heads, width) → (batch, heads, length, width), for a
# target length and a source length. The mask needs axes of length 1 for heads and for queries.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `masked_fill` fills where its mask is True, and `memory_mask` is True where a word may be *seen*.
# A `reshape` from (batch, length, d_model) straight to (batch, heads, length, width) mixes up
# places and features.
# </details>

# %% [markdown]
# ## 3 The decoder's block
#
# Three parts, three residuals, three norms (Vaswani et al., Figure 1, right half). The encoder's
# block has two of each. We take the paper's post-LN here: *add, then normalise*.

# %% [markdown]
# ### Exercise 2: a decoder block
# *20 minutes, medium, 4 points*
#
# With norm as the last step of each line:
#
# 1. $y = \text{norm}_1(x + \text{self-attention}(x))$, causal: place i sees places 0 to i.
# 2. $z = \text{norm}_2(y + \text{cross-attention}(y, \text{memory}))$, without the padding of the
#    source.
# 3. result $= \text{norm}_3(z + \text{linear}_2(\text{ReLU}(\text{linear}_1(z))))$.
# 4. `self_attn` and `multihead_attn` (cross-attention; the names are PyTorch's) are
#    `nn.MultiheadAttention`. Call it as `attention(queries, keys, values, attn_mask=…,
#    key_padding_mask=…)`; it projects by itself and gives `(output, weights)`. Its masks say **True
#    = hidden**: `attn_mask` (target, keys), `key_padding_mask` (batch, keys).
# 5. `memory_mask` (batch, source) says True = may be seen. The target has no padding here.
# 6. The result equals `nn.TransformerDecoderLayer` with the same weights. Do without calling that
#    class: you are building it.
#
# Example: with all weights and biases of the attentions and linear layers 0, only the three norms
# are left: the result is $\text{norm}_3(\text{norm}_2(\text{norm}_1(x)))$.


# %% nbgrader={"grade_id": "decoder_block", "solution": true}
class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention, MLP; each with a residual and a norm after it."""

    def __init__(self, d_model, heads, d_hidden):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.multihead_attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.linear1 = nn.Linear(d_model, d_hidden)
        self.linear2 = nn.Linear(d_hidden, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, memory_mask):
        """Carry target vectors through the block.

        x: (batch, target, d_model). memory: (batch, source, d_model).
        memory_mask: bool (batch, source), True = may be seen.
        Returns (batch, target, d_model).
        """
        ### BEGIN SOLUTION
        length = x.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.norm1(x + self.self_attn(x, x, x, attn_mask=future)[0])
        seen = self.multihead_attn(x, memory, memory, key_padding_mask=~memory_mask)[0]
        x = self.norm2(x + seen)
        return self.norm3(x + self.linear2(torch.relu(self.linear1(x))))
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-decoder_block", "grade": true, "points": 4}
check("decoder_block", DecoderBlock)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Three lines, one for each point of the contract. Each starts from the result of the line before.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Queries, keys and values are x, x, x in the first attention; in the second, which of the three is
# the target and which two are memory?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# True = hidden, so the causal `attn_mask` is True *above* the diagonal, and `memory_mask` has to be
# turned round. `nn.MultiheadAttention` returns a pair.
# </details>

# %% [markdown]
# ### In words: why two attentions?
# *5 minutes, 2 points, marked by hand*
#
# In three to six sentences: (a) What does each of the decoder's two attentions find out that the
# other cannot? (b) Why does the first need a causal mask in training, and why does the second need
# none?

# %% [markdown] nbgrader={"grade_id": "why-two", "grade": true, "solution": true, "points": 2}
# (a) Self-attention looks at the target so far: what has been said already, what is still missing,
# which number or tense the next word must agree with. Cross-attention looks at the source: which of
# its words is to be translated now. The target so far is not in the memory (the encoder ran before
# it existed), and the source is not in the target.
#
# (b) In training, all target words are fed in at once. Without a causal mask, place i would see
# word i itself, the word that it is to predict, and the model would learn to copy. When it
# translates, that word does not exist yet. The source is known as a whole from the start, so
# nothing of it has to be hidden but padding.
#
# *Mark scheme.* 1 point for (a): what has been written (½) and which source word matters now (½).
# 1 point for (b): teacher forcing feeds the answer in, so the future has to be hidden (½); the
# whole source is known when decoding begins (½). "Because it is a decoder" alone: 0.

# %% [markdown]
# ## 4 Training: all steps at once
#
# When it translates, the decoder gets its own last word as input. In training we know the right
# words, so we feed *those* in, whatever the model would have said: **teacher forcing**. Then no
# step waits for another one: a sentence of K words gives K predictions, and K losses, in one pass.
#
# | place | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | decoder reads | [start] | the | cat | sleeps |
# | and should say | the | cat | sleeps | [end] |

# %% [markdown]
# ### Exercise 3: what the decoder reads
# *8 minutes, easy, 2 points*
#
# 1. `targets` is int64 (batch, target). A row holds words, among them an end token at the end, and
#    then −100 where there is no word: places with −100 will get no loss.
# 2. The result has the same shape and kind. Its first column is `start`; column i holds the target
#    of column i − 1. The targets' last column is not needed.
# 3. Where −100 would come to stand, write `padding`. The end token is *not* replaced: it may stand
#    in the input (what the model says after it is not used).
# 4. The caller's `targets` stay as they are.
#
# Example: `[[5, 6, 2], [7, 2, -100]]` with start 1 and padding 0 gives `[[1, 5, 6], [1, 7, 2]]`.


# %% nbgrader={"grade_id": "teacher_forcing_input", "solution": true}
def teacher_forcing_input(targets, start, padding):
    """Shift targets right, for the decoder to read.

    targets: int64 (batch, target), −100 = no word. start, padding: ids.
    Returns int64 (batch, target).
    """
    ### BEGIN SOLUTION
    shifted = targets.roll(1, dims=1)
    shifted[:, 0] = start
    return shifted.masked_fill(shifted == -100, padding)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-teacher_forcing_input", "grade": true, "points": 2}
check("teacher_forcing_input", teacher_forcing_input)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A column of start tokens, then all but the last column of the targets.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `torch.cat` along axis 1, or an empty tensor of the same shape and two assignments; then
# `torch.where` or `masked_fill`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `targets[targets == -100] = padding` writes into the caller's tensor, and the loss would then
# count padding as a word.
# </details>

# %% [markdown]
# ### Exercise 4: neither the future nor padding
# *8 minutes, easy, 2 points*
#
# 1. `inputs` is what the decoder reads: int64 (batch, target), padded at the end with the id
#    `padding`. The first token is never padding.
# 2. The result is bool (batch, 1, target, target): the axis of length 1 stands for the heads.
# 3. Entry (b, 0, i, j) is True if place i may see place j: j ≤ i, **and** `inputs[b, j]` is no
#    padding.
# 4. Rows of padding are treated like any other row, so no row is empty.
#
# Example: `inputs = [[1, 7, 0]]`, padding 0: the rows are `[T, F, F]`, `[T, T, F]`, `[T, T, F]`.


# %% nbgrader={"grade_id": "target_mask", "solution": true}
def target_mask(inputs, padding):
    """Make the mask of the decoder's self-attention.

    inputs: int64 (batch, target). padding: the id that fills up rows.
    Returns bool (batch, 1, target, target), True = may be seen.
    """
    ### BEGIN SOLUTION
    places = torch.arange(inputs.shape[1])
    return (places <= places[:, None]) & (inputs != padding)[:, None, None]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-target_mask", "grade": true, "points": 2}
check("target_mask", target_mask)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two masks and a logical *and*; broadcasting does the rest.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A lower triangle (target, target), the same for all; a row (target) for each sentence, which needs
# axes for heads and queries.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Padding closes *columns*. Is your new axis before or after the axis of the words?
# </details>

# %% [markdown]
# ### Exercise 5: one loss for each step
# *16 minutes, medium, 3 points*
#
# The loss of a step is the cross-entropy of its target word. With **label smoothing** ε (Section
# 5.4 of the paper) the aim is not 1 for the right word and 0 for the others; a share ε is spread
# over all words, so that the model is not driven to be certain.
#
# 1. Row i of `logits` (batch, target, words) is the prediction for column i of `targets`: *nothing
#    is left to shift*.
# 2. The aim is 1 − ε on the right word, **plus ε / words on every word, the right one too**. (There
#    are other conventions; this is PyTorch's.)
# 3. `losses[b, i]` = −Σ aim · log softmax(logits), and 0 where `targets` is −100, whatever the
#    logits there. The end token is a word like any other.
# 4. `total` is the sum of all `losses`. Not the mean.
# 5. Logits may be in the thousands. Gradients for `logits` are checked, too.
# 6. Return `(total, losses)`. `F.cross_entropy` is allowed; by hand it is more fun.
#
# Example: two words, logits `[0., 0.]`: the loss is log 2 = 0.693 for either target and any ε.


# %% nbgrader={"grade_id": "step_losses", "solution": true}
def step_losses(logits, targets, smoothing):
    """Cross-entropy of every step, and their sum.

    logits: float (batch, target, words). targets: int64 (batch, target), −100 = no word.
    smoothing: number from 0 to 1.
    Returns (total, losses): a tensor without axes, and (batch, target).
    """
    ### BEGIN SOLUTION
    log_probabilities = logits.log_softmax(dim=-1)
    real = targets != -100
    right = log_probabilities.gather(-1, targets.clamp(min=0)[..., None]).squeeze(-1)
    losses = -(1 - smoothing) * right - smoothing * log_probabilities.mean(dim=-1)
    losses = losses.where(real, 0.0)
    return losses.sum(), losses
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-step_losses", "grade": true, "points": 3}
check("step_losses", step_losses)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two terms: (1 − ε) times the usual loss, and ε times the *mean* over all words of −log p.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `log_softmax`; `gather` picks one number a row, but it needs an index that exists: which one would
# you use where the target is −100?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `log(softmax(…))` is −∞ for a word far below the others, and 0 · ∞ is NaN.
# </details>

# %% [markdown]
# ### Exercise 6: a learning rate that warms up
# *8 minutes, easy, 2 points*
#
# At first the rate rises step by step, then it falls (Vaswani et al., equation 3):
#
# $$\text{rate} = d_\text{model}^{-0.5} \cdot \min(\text{step}^{-0.5},\ \text{step} \cdot
# \text{warm\_up}^{-1.5}).$$
#
# 1. `steps` is a NumPy array of integers, any shape; the result is a float array of that shape.
# 2. The first step is **step 1**. At step 0 the formula gives the rate 0: a whole update would be
#    thrown away. If any entry is below 1, raise `ValueError`.
#
# Example: with d_model 4 and warm_up 4, step 4 gives ½ · min(½, 4 / 8) = 0.25.


# %% nbgrader={"grade_id": "warm_up_rate", "solution": true}
def warm_up_rate(steps, d_model, warm_up):
    """Learning rates by equation 3.

    steps: int array, from 1. d_model: width of the model. warm_up: number of rising steps.
    Returns a float array of the shape of steps; raises ValueError for a step below 1.
    """
    ### BEGIN SOLUTION
    if (steps < 1).any():
        raise ValueError("steps are counted from 1")
    rising = steps * warm_up**-1.5
    return d_model**-0.5 * np.minimum(steps**-0.5, rising)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-warm_up_rate", "grade": true, "points": 2}
check("warm_up_rate", warm_up_rate)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two curves; at each step the lower one counts.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `np.minimum` compares entry by entry (`min` of two arrays does not).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Refuse before you compute: step 0 would divide by zero.
# </details>

# %% [markdown]
# ## 5 The whole model
#
# Embeddings and positions, two stacks, an output layer. Two conventions are easy to miss:
# embeddings are multiplied by √d_model before positions are added, and the output layer *is* the
# target's embedding, used the other way round: **tied** weights (Vaswani et al., Section 3.4).
#
# Positions are given:


# %%
def sinusoids(length, d_model):
    """Sines in even, cosines in odd features: float64 (length, d_model)."""
    powers = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = torch.arange(length)[:, None] / 10_000**powers
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(length, d_model)


# %% [markdown]
# ### Exercise 7: an encoder-decoder
# *22 minutes, medium, 4 points*
#
# 1. Parts, with these names: `source_embedding` and `target_embedding` (`nn.Embedding`), `encoder`
#    (a `nn.ModuleList` of `layers` layers `nn.TransformerEncoderLayer`), `encoder_norm`
#    (`nn.LayerNorm`), `decoder` (a `nn.ModuleList` of `nn.TransformerDecoderLayer`),
#    `decoder_norm`. Each layer has weights of its own; all take `d_model, heads, d_hidden` and
#    `dropout=0.0, batch_first=True, norm_first=True` (pre-LN: it trains more easily, and needs the
#    two last norms).
# 2. Words become embedding · √d_model + `sinusoids`, on both sides. The first word has position 0.
# 3. The encoder's layers, then `encoder_norm`, give the memory. **Every** decoder layer gets it.
# 4. Word 0 of the source is padding: it is hidden in the encoder and in cross-attention
#    (`src_key_padding_mask` and `memory_key_padding_mask`, both (batch, source), **True =
#    hidden**). `target` holds no padding here.
# 5. The decoder is causal (`tgt_mask`, (target, target), True = hidden).
# 6. `logits` = decoder_norm(…) times the target embedding's matrix, transposed; no bias.
# 7. The number of parameters is checked, so add none and no module of your own.
#
# Example: source (3, 7) and target (3, 5) with 11 target words give logits of shape (3, 5, 11). (To
# try your model by hand, make it float64, as the positions are: `EncoderDecoder(…).double()`.)


# %% nbgrader={"grade_id": "encoder_decoder", "solution": true}
class EncoderDecoder(nn.Module):
    """A translator made of PyTorch's layers, with a tied output."""

    def __init__(self, source_words, target_words, d_model, heads, d_hidden, layers):
        super().__init__()
        self.source_embedding = nn.Embedding(source_words, d_model)
        self.target_embedding = nn.Embedding(target_words, d_model)
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        ### BEGIN SOLUTION
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, heads, d_hidden, **options) for _ in range(layers)
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(d_model, heads, d_hidden, **options) for _ in range(layers)
        )
        ### END SOLUTION

    def forward(self, source, target):
        """Predict the next word after every prefix of the target.

        source: int64 (batch, source), 0 = padding. target: int64 (batch, target).
        Returns logits (batch, target, target_words).
        """

        ### BEGIN SOLUTION
        def embed(embedding, words):
            length, d_model = words.shape[1], embedding.embedding_dim
            return embedding(words) * d_model**0.5 + sinusoids(length, d_model)

        hidden = source == 0
        memory = embed(self.source_embedding, source)
        for layer in self.encoder:
            memory = layer(memory, src_key_padding_mask=hidden)
        memory = self.encoder_norm(memory)

        x = embed(self.target_embedding, target)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask=future, memory_key_padding_mask=hidden)
        return self.decoder_norm(x) @ self.target_embedding.weight.T
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-encoder_decoder", "grade": true, "points": 4}
check("encoder_decoder", EncoderDecoder)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Embed the source, run through the encoder's layers, normalise. Embed the target, run through the
# decoder's layers, each time with the same memory, normalise, multiply.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A generator inside `nn.ModuleList(… for _ in range(layers))` makes a new layer each time. A
# decoder layer is called with the target's vectors, the memory, and two masks by name.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `[layer] * layers` is one layer several times. The norms after the stacks are easily forgotten.
# Padding has to be hidden twice.
# </details>

# %% [markdown]
# ## 6 A small piece of French
#
# For a model that learns within a minute we need a language that one can learn within a minute. The
# course has a small grammar of French, with a translation and the true alignment for each sentence.
# It is small, but not word for word: adjectives move, negation has two parts, pronouns stand before
# the verb, "his" or "her" depends on the subject, "a" or "an" on the *next English* word.

# %% tags=["experiment"]
from attention_course.data.fragment import translation_splits

pairs = translation_splits(seed=7, train=9000, test=400)
for pair in pairs["train"][:6]:
    print(" ".join(pair.source), "→", " ".join(pair.target))
for name, some in pairs.items():
    mean = sum(len(pair.source) for pair in some) / len(some)
    print(f"{name:<10} {len(some):>5} pairs, {mean:.1f} French words on average")

# %% [markdown]
# No French sentence is in two of these splits. "New pairs" puts together adjectives and nouns that
# are both in the training data, but never together there. "Longer" has two or three prepositional
# phrases where training has at most one.

# %% [markdown]
# ### Exercise 8: exact match
# *8 minutes, easy, 2 points*
#
# How shall we judge a translation? This grammar has exactly one right answer for each sentence, so
# we can be strict.
#
# 1. `guesses` is int64 (batch, n), `targets` int64 (batch, m); n and m may differ. Every target
#    holds the id `end`; what comes after its first one is of no meaning, on both sides.
# 2. A guess is right if it equals its target up to and including the first `end` of each: the same
#    words, in the same order, and the end at the same place.
# 3. A guess without `end` is wrong.
# 4. Return the share of right guesses: one number from 0 to 1.
#
# Example, with end 2: guesses `[[5, 2, 9], [5, 6, 2]]` and targets `[[5, 2], [5, 2]]` give 0.5.


# %% nbgrader={"grade_id": "sentences_right", "solution": true}
def sentences_right(guesses, targets, end):
    """Share of guesses that equal their target up to and including the end token.

    guesses: int64 (batch, n). targets: int64 (batch, m). end: id.
    Returns a number.
    """
    ### BEGIN SOLUTION
    right = 0
    for guess, target in zip(guesses.tolist(), targets.tolist(), strict=True):
        length = target.index(end) + 1
        right += guess[:length] == target[:length]
    return right / len(targets)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-sentences_right", "grade": true, "points": 2}
check("sentences_right", sentences_right)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The target knows how far to compare: up to its own end token.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A loop over `zip(guesses.tolist(), targets.tolist())` is fine; lists have `index`, and compare
# with `==`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Include the end token in the comparison: without it, a guess that babbles on counts as right.
# </details>

# %% [markdown]
# ### It learns
#
# The model below is PyTorch's `nn.Transformer` with embeddings and a tied output: the model of
# exercise 7, with 260,000 parameters. It goes five times over the data, in about a minute.
#
# Predict: will the loss fall evenly? What will it get right first: word choice, word order, or
# agreement ("his" or "her", "do" or "does")? Chance on a whole sentence is nearly 0.

# %% tags=["experiment"]
import time

from attention_course.translation import (
    TransformerTranslator,
    Vocabulary,
    make_batch,
    share_right,
    train,
    translate,
)

french = Vocabulary(pair.source for pair in pairs["train"])
english = Vocabulary(pair.target for pair in pairs["train"])
torch.manual_seed(0)
model = TransformerTranslator(len(french), len(english))
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

EPOCHS = 5
shown = max(pairs["test"][:60], key=lambda pair: len(pair.source))
print("to translate:", " ".join(shown.source))
print("right:       ", " ".join(shown.target))
history, start = [], time.perf_counter()
for progress in train(model, pairs["train"], french, english, epochs=EPOCHS, seed=0):
    share = share_right(model, pairs["test"][:100], french, english)
    history.append((progress.step, progress.loss, share))
    guess = translate(model, make_batch([shown], french, english).source)[0]
    left = (time.perf_counter() - start) / progress.epoch * (EPOCHS - progress.epoch)
    print(
        f"epoch {progress.epoch}: loss {progress.loss:.3f} a word, {share:.0%} of sentences "
        f"right, about {left:.0f} s left\n    {' '.join(english.sentence(guess))}"
    )

# %% tags=["experiment"]
steps, losses, shares = zip(*history, strict=True)
fig, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].plot(steps, losses, "o-")
axes[0].set(yscale="log", xlabel="steps", ylabel="loss of a word (nats)", title="training")
axes[1].plot(steps, shares, "o-", color="C1")
axes[1].set(ylim=(0, 1.02), xlabel="steps", ylabel="share of sentences right", title="100 unseen")
plt.show()
score = share_right(model, pairs["test"], french, english)
verdict = "supported" if score >= 0.95 else "NOT supported"
print(f"{score:.1%} of {len(pairs['test'])} unseen sentences are right, word for word.")
print(f"'At least 95 % after {EPOCHS} times over the data': {verdict} by this run.")

# %% [markdown]
# The loss of a word (left) falls from the start; whole sentences (right) come right only once
# nearly every word does. Read the translations from the first epoch to the last: frequent words and
# a plausible beginning come first, then the right words, last the fine points.

# %% [markdown]
# ### What it has not learned
#
# Predict the share of right sentences for the two other splits: combinations that it has never
# seen, and sentences that are longer than any it has seen.

# %% tags=["experiment"]
for name in ["test", "new pairs", "longer"]:
    print(f"{name:<10} {share_right(model, pairs[name][:150], french, english):6.1%}")

examples = pairs["longer"][:4]
found = translate(model, make_batch(examples, french, english).source, longest=40)
for pair, ids in zip(examples, found, strict=True):
    print(f"\nright: {' '.join(pair.target)}\nfound: {' '.join(english.sentence(ids))}")

by_length = {}
for pair in pairs["test"][:150] + pairs["longer"][:150]:
    by_length.setdefault(min(len(pair.source) // 3 * 3, 21), []).append(pair)
sizes = sorted(by_length)
rates = [share_right(model, by_length[size], french, english) for size in sizes]
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.bar([f"{size}–{size + 2}" if size < 21 else "21 +" for size in sizes], rates)
longest = max(len(pair.source) for pair in pairs["train"])
ax.set(ylim=(0, 1), xlabel=f"French words (training: at most {longest})", ylabel="share right")
plt.show()

# %% [markdown]
# New combinations are hardly a problem, since each word is looked up by itself. Longer sentences
# are: most of them break, although every word and every construction in them is known, and many
# are no longer than the longest ones in training. What is new is a *second* phrase of the same
# kind. Look where the translations go wrong: often at that phrase, which is left out or melted
# into the first. The model has learned where sentences of *its* kind end, not a rule. More data of
# the same kind would hardly help; longer training sentences, or positions that generalise better,
# might. (What is measured here is one run; the reasons are conjecture.)

# %% [markdown]
# ## 7 Reading the alignment
#
# Which French word does each English word come from? Bahdanau et al. (2015, Figure 3) read it off
# the attention weights. Our grammar knows the truth, so we can do more than look: we can count.
#
# Row i of the cross-attention belongs to the step that *gives* word i, while the decoder reads word
# i − 1.

# %% [markdown]
# ### Exercise 9: score an alignment
# *14 minutes, medium, 3 points*
#
# 1. `weights` is float (batch, heads, target, source): row i is where a head looks in the step that
#    gives target word i.
# 2. `links` is bool (batch, target, source): the true alignment. A word may have several links, or
#    none (an end token, padding).
# 3. For a head, a target word is *right* if the source word with the **largest weight** is one of
#    its links. Words without a link are not counted at all.
# 4. The result has the shape (heads,): right words over counted words, both summed over the whole
#    batch. There is always a word to count. No two weights of a row are equal.
#
# Example: one head, weights `[[.7, .3], [.6, .4]]`, links `[[T, F], [F, T]]`: the first word is
# right, the second is not: `[0.5]`.


# %% nbgrader={"grade_id": "alignment_accuracy", "solution": true}
def alignment_accuracy(weights, links):
    """Share of target words, for each head, whose strongest source word is a link.

    weights: float (batch, heads, target, source). links: bool (batch, target, source).
    Returns a float tensor (heads,).
    """
    ### BEGIN SOLUTION
    right = links.gather(-1, weights.argmax(dim=-1).mT)
    return right.double().flatten(0, 1).sum(dim=0) / links.any(dim=-1).sum()
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-alignment_accuracy", "grade": true, "points": 3}
check("alignment_accuracy", alignment_accuracy)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# arg-max over the source gives one index for each (sentence, head, target word); look up in `links`
# whether it is True.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `gather` looks up many indices at once; it wants the index and the table to have the same leading
# axes, so move the heads' axis to where the source axis is in `links`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# A mean over all rows counts padding and the end token as mistakes. And sum before you divide.
# </details>

# %% [markdown]
# ### Which head aligns?
#
# Nobody told the model about alignments; it was trained on words only. Predict: will each head
# align a little, or will some do it and others not? To compare with: the rule that word i comes
# from word i, which needs no model at all.

# %% tags=["experiment"]
from attention_course.translation import cross_attention


def true_links(pairs, length, width):
    """Links of a batch as bool (batch, target, source); the end token has none."""
    links = torch.zeros(len(pairs), length, width, dtype=torch.bool)
    for row, pair in zip(links, pairs, strict=True):
        for word, places in enumerate(pair.links):
            row[word, list(places)] = True
    return links


def share_aligned(weights, links):
    """Share of linked words whose strongest source word is a link, for one matrix a sentence."""
    best = torch.nn.functional.one_hot(weights.argmax(-1), weights.shape[-1]).bool()
    return float((best & links).any(-1).sum() / links.any(-1).sum())


some = pairs["test"]
batch = make_batch(some, french, english)
links = true_links(some, *(tensor.shape[1] for tensor in (batch.target, batch.source)))
with torch.no_grad():
    weights = cross_attention(model, batch.target_input, model.encode(batch.source))
table = np.array([[share_aligned(head, links) for head in layer.unbind(1)] for layer in weights])
mean_of_all = share_aligned(weights.mean(dim=(0, 2)), links)
diagonal = torch.eye(links.shape[1], links.shape[2]).expand(links.shape)
same_place = share_aligned(diagonal, links)

fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
names = [f"layer {i}\nhead {j}" for i in range(len(table)) for j in range(table.shape[1])]
ax.bar([*names, "mean\nof all"], [*table.ravel(), mean_of_all], color=["C0"] * table.size + ["C1"])
ax.axhline(same_place, color="0.4", ls=":", label="word i from word i")
ax.set(ylim=(0, 1), ylabel="words aligned rightly")
ax.legend(fontsize=8)
plt.show()
print(
    f"best head {table.max():.1%}, mean of all heads {mean_of_all:.1%}, same place {same_place:.1%}"
)
aligned = max(table.max(), mean_of_all) > same_place + 0.2
print(
    "'Some cross-attention follows the true alignment, far better than the diagonal': "
    f"{'supported' if aligned else 'NOT supported'} by this run."
)

# %% [markdown]
# Heads differ. Nothing in the training says which ones should align, so expect others from another
# seed. A head that does not align is not useless: it may look for the subject to agree with, or for
# "pas". And one word of warning: that attention *points* somewhere does not prove that the word
# there *causes* the output.
#
# One sentence, all heads averaged. Hover over a row, or walk with the arrow keys.

# %% tags=["experiment"]
from attention_course.explorers import alignment_matrix

index = next(
    i for i, pair in enumerate(some) if "not" in pair.target and 9 <= len(pair.source) <= 12
)
pair = some[index]
shown_weights = weights.mean(dim=(0, 2))[index, : len(pair.target), : len(pair.source)]
alignment_matrix(
    shown_weights, pair.source, pair.target, links=[sorted(places) for places in pair.links]
)

# %% [markdown]
# The same sentence head by head, in bertviz. The menu at the top switches between the encoder's
# attention, the decoder's and cross-attention. On the left stands what the decoder *reads*, so a
# row is one word behind the matrix above: from [start] it goes to the source of the first word.

# %% tags=["experiment"]
from attention_course.bertviz_views import encoder_decoder_view
from attention_course.translation import all_attention

single = make_batch([pair], french, english)
maps = all_attention(model, single.source, single.target_input)
encoder_decoder_view(
    **maps,
    source_tokens=pair.source,
    target_tokens=["[start]", *pair.target],
)

# %% [markdown]
# ## 8 Writing word by word
#
# Now the model has to go on without the right answers. Step through a recorded translation: the row
# of the cross-attention lights up, and the candidates for the next word stand below. Switch to
# "beams" for the search that keeps several sentences at once (the challenge at the end).
#
# Predict: at which steps is the model unsure?

# %% tags=["explorer"]
from attention_course.explorers import decoder_stepper

decoder_stepper()

# %% [markdown]
# (In the recording it is nearly sure of small words: 0.99 for "did" and for "the". It is least sure
# where several words of a kind could stand: 0.79 for "red", 0.83 for "hide".)
#
# ### Exercise 10: greedy decoding
# *18 minutes, medium, 4 points*
#
# The model here is not trained: its scores come from a table. It has two methods:
# `model.encode(source)` gives a memory; `model.decode(target, memory)` gives logits (batch, length,
# words) for int64 `target` (batch, length): row i of the length predicts what follows words 0 to i.
#
# 1. Start each row with `start`. In every step, append the word with the highest score *after the
#    last word so far*; the decoder always gets the whole prefix, start token included.
# 2. A row has ended when it has got `end`. From then on it gets `padding`.
# 3. Stop as soon as **all** rows have ended, or after `longest` words (`end` counts as a word,
#    `start` does not).
# 4. Return int64 (batch, words written): without `start`, with `end`, filled up with `padding`.
# 5. The encoder runs **once**. The decoder runs once for each step, for the whole batch. (Calls are
#    counted in one of the cases; fewer rows in a call are fine.) `decode` wants a row of memory for
#    each row of `target`, or one for all.
#
# Example: rows that end after 2 and after 4 words come out 4 wide, and the first one ends in two
# paddings.


# %% nbgrader={"grade_id": "greedy_decode", "solution": true}
def greedy_decode(model, source, start, end, padding, longest):
    """Write the best word in each step, for a batch of sentences.

    model: has encode and decode. source: int64 (batch, source). start, end, padding: ids.
    longest: most words to write.
    Returns int64 (batch, words written).
    """
    ### BEGIN SOLUTION
    memory = model.encode(source)
    words = torch.full((len(source), 1), start)
    ended = torch.zeros(len(source), dtype=torch.bool)
    while words.shape[1] <= longest and not ended.all():
        best = model.decode(words, memory)[:, -1].argmax(dim=-1)
        best = best.masked_fill(ended, padding)
        words = torch.cat([words, best[:, None]], dim=1)
        ended |= best == end
    return words[:, 1:]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-greedy_decode", "grade": true, "points": 4}
check("greedy_decode", greedy_decode)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A loop that carries two things: the words so far, and which rows have ended.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# logits[:, which place?] → arg-max → padding where ended → append a column → update what has
# ended → leave the loop if all have.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `.any()` stops the batch at its first end. Once padding is written in a row it must stay ended.
# </details>

# %% [markdown]
# ### What a step costs
#
# Greedy decoding as above feeds the whole prefix into the decoder again and again. But with a
# causal mask, what was computed for earlier places never changes! So keep their keys and values:
# the **cache** (chapter 06 has it for one layer of self-attention, and measures the time). For
# cross-attention it is simpler still: its keys and values depend on the source only.
#
# How many positions are projected for keys and values until word n is written? Predict the three
# curves: without a cache, with one for cross-attention only, with both.


# %% tags=["experiment"]
def projected(words, source_words, keep_source, keep_target):
    """Count positions that one decoder layer projects to keys (as many to values), really run."""
    counted = []
    to_keys = nn.Linear(4, 4)
    to_keys.register_forward_hook(lambda _, inputs, __: counted.append(inputs[0].shape[0]))
    source, totals = torch.zeros(source_words, 4), []
    for step in range(1, words + 1):
        if step == 1 or not keep_source:
            to_keys(source)
        to_keys(torch.zeros(1 if keep_target else step, 4))
        totals.append(sum(counted))
    return totals


ways = {"no cache": (False, False), "cache of the source": (True, False), "both": (True, True)}
steps = np.arange(1, 101)
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
new_in_last_step = {}
for name, kept in ways.items():
    totals = projected(len(steps), 50, *kept)
    ax.plot(steps, totals, label=name)
    new_in_last_step[name] = totals[-1] - totals[-2]
ax.set(yscale="log", xlabel="words written", ylabel="positions projected so far")
ax.set_title("one layer, a source of 50 words", fontsize=10)
ax.legend(fontsize=8)
plt.show()
print("positions projected in step 100 alone:", new_in_last_step)
constant = new_in_last_step["both"] == 1
print(f"'O(1) new projections a step': {'supported' if constant else 'NOT supported'} by this run.")

# %% [markdown]
# Without a cache, step n projects the source and n words again. With the source's keys and values
# kept, it projects n words; with both kept, one. So only the lowest curve rises by the same amount
# in each step.
#
# Now the calls, with the trained model: one sentence, decoded greedily.

# %% tags=["experiment"]
from attention_course.claims import report

calls = {"encoder": 0, "decoder": 0}


def count(name):
    """A hook that counts how often a part of the model runs."""

    def add_one(*_):
        calls[name] += 1

    return add_one


hooks = [
    model.stacks.encoder.register_forward_hook(count("encoder")),
    model.stacks.decoder.register_forward_hook(count("decoder")),
]
written = translate(model, make_batch([pair], french, english).source)
for hook in hooks:
    hook.remove()
length = len(english.sentence(written[0])) + 1
print(f"{length} words with the end token; calls: {calls}")
once = calls == {"encoder": 1, "decoder": length}
effect = (
    f"{length} words: the encoder ran {calls['encoder']} time, the decoder {calls['decoder']}; "
)
effect += f"with both caches step 100 projects {new_in_last_step['both']} position"
report("C6", once and constant, effect)

# %% [markdown]
# And the same steps in the stepper, of the model that you have just trained:

# %% tags=["experiment"]
from attention_course.explorers import decoder_stepper
from attention_course.translation import record_greedy

decoder_stepper(record_greedy(model, pair.source, french, english), step=4)

# %% [markdown]
# ### Exercise 11: a decoder step with a cache
# *22 minutes, hard, 4 points*
#
# One step of a decoder layer with one head, and no norms and no MLP, to keep it short.
#
# 1. `x` (batch, 1, d_model) is the vector of the **new** position only. The function is called once
#    for each position, in order, always with the same dict `cache`; in the first call it is empty.
#    Put into it whatever you want.
# 2. `layer` has six projections, functions of (batch, length, d_model): `self_queries`,
#    `self_keys`, `self_values`, `cross_queries`, `cross_keys`, `cross_values`.
# 3. y = x + attention of x over **all positions so far, the new one included**.
# 4. result = y + attention of y over the source. Queries of this one are made from y; keys and
#    values from `memory` (batch, source, d_model). `memory_mask` (batch, source) is True where a
#    word may be seen; each sentence has one.
# 5. Attention is scaled by √d_model; `F.scaled_dot_product_attention` is allowed (its bool
#    `attn_mask` says True = may be seen).
# 6. **Projections are counted.** In each step every `self_…` and `cross_queries` may project 1
#    position; `cross_keys` and `cross_values` project the source in the first step, nothing later.
# 7. Outputs equal those of the whole causal pass without a cache.
#
# Example: after three steps over a source of 5 words, `self_keys` has projected 3 positions and
# `cross_keys` 5.


# %% nbgrader={"grade_id": "cached_step", "solution": true}
def cached_step(x, memory, memory_mask, cache, layer):
    """One position through both attentions, with what earlier steps left in the cache.

    x: (batch, 1, d_model). memory: (batch, source, d_model). memory_mask: bool (batch, source).
    cache: dict, empty in the first step. layer: has the six projections.
    Returns (batch, 1, d_model).
    """
    ### BEGIN SOLUTION
    if not cache:
        cache["past"] = [], []
        cache["source"] = layer.cross_keys(memory), layer.cross_values(memory)
    past_keys, past_values = cache["past"]
    past_keys.append(layer.self_keys(x))
    past_values.append(layer.self_values(x))
    keys, values = torch.cat(past_keys, dim=1), torch.cat(past_values, dim=1)
    y = x + F.scaled_dot_product_attention(layer.self_queries(x), keys, values)
    mask = memory_mask[:, None]
    return y + F.scaled_dot_product_attention(layer.cross_queries(y), *cache["source"], mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-cached_step", "grade": true, "points": 4}
check("cached_step", cached_step)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The cache remembers keys and values, not inputs. Why needs no query be remembered?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# In the first call, project the source and store both results. In every call, project x, join the
# new key and value to the stored ones along axis 1, store them, attend.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Join *before* you attend: a position sees itself. There is no causal mask to make: all that is in
# the cache is past.
# </details>

# %% [markdown]
# ## 9 One vector, looking back, attention only
#
# Chapter 02 began with a decoder that gets one vector, and one that looks back. Here are both as
# recurrent networks: one GRU (an RNN that learns what of its state to keep) reads, one writes.
# (Sutskever et al. 2014 did this with deep LSTMs, which keep a state in a like way; the second
# looks back by the dot products of Luong et al. 2015.) Beside them stands a small transformer:
# about the same number of parameters, the same 3,000 pairs, the same number of steps. Each has its
# own learning rate, the better of two tried on another seed.
#
# Predict the order of the three, and which of them suffers most from long sentences.
#
# First one run of each, here and now, in some twenty seconds.

# %% tags=["experiment"]
from attention_course.translation import ladder

for name in ladder.RIVALS:
    run = ladder.climb(name, pairs, french, english, seed=0)
    print(
        f"{name:<15} {run['parameters']:,} parameters, loss of a word in the last epoch "
        f"{run['last_loss']:.2f}, {run['all']:.0%} of sentences right"
    )

# %% [markdown]
# One run of each says little. `experiments/translation_ladder.py` trained every rival with more
# seeds; here is what it recorded, by the length of the French sentence.

# %% tags=["experiment"]
recorded = {name: [] for name in ladder.RIVALS}
for run in ladder.read_runs():
    recorded[run["model"]].append(run)
groups, seeds = list(ladder.GROUPS), len(recorded["one vector"])

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for shift, (name, runs) in zip((-0.2, 0.0, 0.2), recorded.items(), strict=True):
    table = np.array([[run[group] for group in groups] for run in runs])
    places = np.arange(len(groups)) + shift
    ax.bar(places, table.mean(axis=0), width=0.18, alpha=0.5, label=name)
    for run in table:
        ax.plot(places, run, "o", color="0.2", ms=3)
ax.set_xticks(range(len(groups)), groups)
ax.set(ylim=(0, 1.02), ylabel="share right", title=f"bars: mean of {seeds} seeds, dots: each seed")
ax.legend(fontsize=8)
plt.show()

whole = {name: np.array([run["all"] for run in runs]) for name, runs in recorded.items()}
for name, shares in whole.items():
    seconds = np.mean([run["seconds"] for run in recorded[name]])
    print(
        f"{name:<15} {shares.mean():.0%} right ({shares.min():.0%} to {shares.max():.0%}), "
        f"{seconds:.0f} s of computing each"
    )
for claim, low, high in (
    ("Looking back beats one vector", "one vector", "looking back"),
    ("Attention only beats looking back", "looking back", "attention only"),
):
    sure = "supported" if whole[high].min() > whole[low].max() else "NOT settled"
    print(f"'{claim}': {sure} by these runs.")

from itertools import pairwise

upward = all(low.max() < high.min() for low, high in pairwise(whole.values()))
effect = ", ".join(f"{name}: {x.mean():.0%} ± {x.std(ddof=1):.0%}" for name, x in whole.items())
report(
    "C16",
    upward or None,
    f"sentences translated exactly, {effect} ({seeds} seeds, no pre-training)",
    recorded_seconds=sum(run["seconds"] for runs in recorded.values() for run in runs),
)

# %% [markdown]
# A claim counts as supported here only if the *worst* run of the one beats the *best* of the other.
#
# One vector is hopeless within this budget: after some hundred steps it writes well-formed English
# that has little to do with the source. One look back per step is enough to change that. The second
# comparison is less safe than the bars look: the runs of the recurrent network with attention lie
# far apart, and its better ones reach what attention alone reaches. So read no general order off
# this picture. The paper's case rests on parallel hardware and much more data (Vaswani et al.,
# Sections 4 and 6.1); GRUs walk through each sentence step by step, in training, too. That is not
# measured here.

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | translations ignore the source | cross-attention with keys and values of the target |
# | results change with more padding | mask missing in the encoder or in cross-attention |
# | everything is hidden that should be seen | PyTorch's layers say True = hidden |
# | loss near 0, translations are nonsense | not shifted, or the mask shows the next word |
# | it never stops | no loss on the end token |
# | the loss depends on how full a batch is | padding counted, or a mean where a sum was meant |
# | sentences cut off | the batch stops at its first end |
# | slower and slower | encoder in the loop; everything projected again in each step |
# | beams give short sentences | log-probabilities summed, not divided by a power of the length |

# %% [markdown]
# ## Recap
#
# - Queries come from below, keys and values of the second attention from the encoder's last layer:
#   the same for every decoder layer.
# - Teacher forcing: shift right, hide the future and padding, sum K losses, the end token's too.
# - The encoder runs once; with a cache each step projects one new position.
# - Cross-attention can be read as an alignment, and on known data one can say how well.
# - 95 % and more on new sentences does not mean that the rule was learned: longer ones break.
#
# Next: the decoder alone, as a model that writes. The challenge below lets it keep several
# sentences alive.

# %% [markdown]
# ## Challenge: beam search
# *40 minutes, hard, 4 points*
#
# The best first word may lead nowhere. Keep the `beams` best half-written sentences instead of one.
# `model` is as in exercise 10; `source` is one sentence, (1, source).
#
# 1. Begin with one live sentence, `start` alone, with the sum 0.
# 2. In every step, extend **each** live sentence by **every** word. The sum of an extension is its
#    sentence's sum plus the *log-probability* of the word (log-softmax of the logits). Of all
#    extensions of all live sentences together, keep the `beams` ones with the largest sums, or all
#    if there are fewer. (No two are equal.)
# 3. Those of them that end in `end` are finished and set aside; the others live on. So there may be
#    fewer than `beams` live ones.
# 4. Stop when none is alive, or after `longest` words.
# 5. Of all sentences set aside **and those still alive**, take the one with the largest *score* =
#    sum / n^`power`, where n is its number of words: `end` counts, `start` does not. (With power 0
#    long sentences suffer, since every word adds a negative number; power 1 gives the mean.)
# 6. Return `(tokens, score)`: int64 (n,), without `start`; and a number.
#
# Example: with one beam and power 0 this is greedy decoding.


# %% nbgrader={"grade_id": "beam_search", "solution": true}
def beam_search(model, source, start, end, beams, longest, power):
    """Search for a sentence with a large length-normalised log-probability.

    model: has encode and decode. source: int64 (1, source). start, end: ids.
    beams, longest: whole numbers. power: number.
    Returns (tokens, score): int64 (n,) and a number.
    """
    ### BEGIN SOLUTION
    memory = model.encode(source)
    alive, over = [([start], 0.0)], []
    for _ in range(longest):
        if not alive:
            break
        prefixes = torch.tensor([words for words, _ in alive])
        following = model.decode(prefixes, memory)[:, -1].log_softmax(dim=-1).tolist()
        extensions = [
            ([*words, word], total + gain)
            for (words, total), gains in zip(alive, following, strict=True)
            for word, gain in enumerate(gains)
        ]
        best = sorted(extensions, key=lambda pair: pair[1])[-beams:]
        over += [pair for pair in best if pair[0][-1] == end]
        alive = [pair for pair in best if pair[0][-1] != end]
    scored = [(total / (len(words) - 1) ** power, words[1:]) for words, total in over + alive]
    score, words = max(scored)
    return torch.tensor(words), score
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-beam_search", "grade": true, "points": 4}
check("beam_search", beam_search)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Plain Python lists of (words, sum) do; the only tensors are the prefixes, which all have the same
# length.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# One list of all extensions in a step, sorted, cut; then split into finished and alive. The score
# with its power comes at the very end.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Don't stop at the first finished sentence, and don't forget the living at the limit. Dividing by
# n^power *during* the search is another algorithm.
# </details>
