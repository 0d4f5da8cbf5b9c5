# %% [markdown]
# # 02 Attention
#
# A word's meaning hangs on other words, some of them far away. Attention lets each word look at all
# the others and take what it needs. You build it here in NumPy, piece by piece, up to a whole
# self-attention layer.
#
# **You will be able to**
#
# - say why one vector is too narrow for a sentence, and what Luong's attention does about it;
# - turn queries, keys and values into an output, with masks, for any number of leading axes;
# - explain the root in $\sqrt{d_k}$ by a measurement and not only by a formula;
# - say what attention cannot see (order) and what it costs (n²).
#
# | section | minutes | points |
# |---|---|---|
# | 1 One vector is too narrow | 5 | |
# | 2 Looking back | 17 | 6 |
# | 3 Queries, keys, values | 18 | 4 |
# | 4 Masks | 30 | 12 |
# | 5 The layer, and what it cannot see | 20 | 6 |
# | 6 What it costs | 7 | |
# | Recap | 3 | |
# | **in all** | **100** | **28** |
# | Challenge: the gradient by hand | 30 more | 4 more |

# %% [markdown]
# **To read**, before or after:
# M.-T. Luong, H. Pham and C. Manning (2015), *Effective Approaches to
# Attention-based Neural Machine Translation*, Section 3.1 (the "dot" score); A. Vaswani et al.
# (2017), *Attention Is All You Need*, Sections 3.2.1 and 4, equation 1, Table 1.

# %% [markdown]
# **Symbols.** Long words for things; single letters for axes.
#
# | name | shape | meaning |
# |---|---|---|
# | `queries` | (..., q, d_k) | what each position looks for |
# | `keys` | (..., k, d_k) | what each position can be found by |
# | `values` | (..., k, d_v) | what each position has to say |
# | `scores` | (..., q, k) | how well a query fits a key |
# | `weights` | (..., q, k) | the scores after a softmax: each row sums to 1 |
# | `mask` | broadcasts to (..., q, k) | bool, **True = may be seen** |
# | `x` | (..., length, d_model) | the tokens' vectors |
#
# The three dots stand for any number of leading axes, also none: batch, or batch and heads.
#
# You may call your earlier answers in later ones. That is good style; but a mistake then travels
# with you, so get each check to pass before you go on.

# %%
import numpy as np

from attention_course import check, example

# %% [markdown]
# ## 1 One vector is too narrow
#
# Before there was attention, a network for translation was two RNNs (recurrent neural networks:
# they take one word at a time and carry on a *state*, a vector of fixed size). The *encoder* reads
# a sentence word by word; its last state is all that the *decoder* gets. Attention opens a second
# way: while it writes a word, the decoder looks back at *every* state of the encoder.

# %% tags=["experiment"]
import matplotlib.pyplot as plt


def draw_translation(ax, title, look_back):
    """Draw encoder and decoder as boxes; `look_back` holds the weights of the last decoder step."""
    source, target = ["she", "gave", "it", "up"], ["elle", "l'a", "?"]
    box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": "0.3"}
    for i, word in enumerate(source + target):
        colour = "#dbe9f6" if i < len(source) else "#fde3c8"
        ax.text(i, 0, f"{word:^4}", ha="center", va="center", bbox={**box, "fc": colour})
    for i in range(len(source) + len(target) - 1):
        narrow = i == len(source) - 1
        style = {"arrowstyle": "->", "lw": 2.5 if narrow else 1, "color": "C3" if narrow else "0.3"}
        ax.annotate("", (i + 0.63, 0), (i + 0.37, 0), arrowprops=style)
    last = len(source) + len(target) - 1
    for i, weight in enumerate(look_back):
        style = {
            "arrowstyle": "-",
            "lw": 0.5 + 5 * weight,
            "color": "C0",
            "connectionstyle": "arc3,rad=-0.35",
        }
        ax.annotate("", (last, 0.28), (i, 0.28), arrowprops=style)
    if not look_back:
        ax.text(3.5, 0.5, "one vector:\nall that gets through", ha="center", color="C3", fontsize=9)
    ax.set_xlim(-0.6, last + 0.6)
    ax.set_ylim(-0.4, 1.4)
    ax.set_title(title, fontsize=10)
    ax.axis("off")


fig, axes = plt.subplots(1, 2, figsize=(11, 2.0), layout="constrained")
draw_translation(axes[0], "without attention", [])
draw_translation(axes[1], "with attention (weights invented)", [0.05, 0.5, 0.1, 0.35])
plt.show()

# %% [markdown]
# How narrow is it? A small test, without any training of the encoder: a random RNN of width d reads
# random words out of 8. Then a linear reader tries to name *every word of the sentence* from the
# last state alone.
#
# Predict: at which sentence length does a state of 32 numbers begin to forget? And a state twice as
# wide?

# %% tags=["experiment"]
from attention_course.plots import spread


def recalled(seed, lengths, width, vocabulary=8, train=2000, test=500):
    """Share of words that a linear reader gets right from the last state, for each length."""
    rng = np.random.default_rng(seed)
    recurrent = np.linalg.qr(rng.normal(size=(width, width)))[0]
    embedding = 0.5 * rng.normal(size=(vocabulary, width))
    shares = []
    for length in lengths:
        words = rng.integers(vocabulary, size=(train + test, length))
        state = np.zeros((len(words), width))
        for position in range(length):
            state = np.tanh(state @ recurrent + embedding[words[:, position]])
        inputs = np.column_stack([state, np.ones(len(state))])
        targets = np.eye(vocabulary)[words].reshape(len(words), -1)
        reader = np.linalg.lstsq(inputs[:train], targets[:train], rcond=None)[0]
        guesses = (inputs[train:] @ reader).reshape(test, length, vocabulary).argmax(axis=-1)
        shares.append(np.mean(guesses == words[train:]))
    return shares


lengths = [1, 2, 4, 6, 8, 12, 16, 24]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
begins = {}
for width in [16, 32, 64]:
    runs = np.array([recalled(seed, lengths, width) for seed in range(5)])
    spread(ax, lengths, runs, f"state of width {width}")
    below = np.array(lengths)[runs.mean(axis=0) < 0.95]
    begins[width] = below[0] if len(below) else f"more than {lengths[-1]}"
ax.axhline(1 / 8, color="0.5", ls=":", label="chance")
ax.set_xlabel("words in the sentence")
ax.set_ylabel("share of words recalled")
ax.legend(fontsize=8)
plt.show()
for width, length in begins.items():
    print(f"width {width}: less than 95 % of the words recalled from {length} words on")

# %% [markdown]
# A wider state moves the limit; it does not lift it. Two caveats: a *trained* encoder would pack
# better, and a non-linear reader would find more. But whatever is fixed in size must give way when
# sentences grow. A decoder that can see all states has no such limit: the memory grows with the
# sentence.

# %% [markdown]
# ## 2 Looking back
#
# To look back, the decoder gives each encoder state a *score*: how useful is this word now? The
# scores become weights: positive, and 1 in sum. The function for this is the softmax,
#
# $$\text{softmax}(s)_i = \frac{e^{s_i}}{\sum_j e^{s_j}}.$$
#
# Predict: what happens to the weights if you add 100 to all scores? And to e¹⁰⁰⁰ in floating-point
# numbers?

# %% [markdown]
# ### Exercise 1: softmax
# *6 minutes, easy, 3 points*
#
# 1. `scores` has any shape; the softmax runs along `axis`, which may be negative.
# 2. The result has the same shape, and sums to 1 along `axis`.
# 3. It is right for large scores too (thousands), also when rows differ a lot in size.
# 4. The caller's `scores` are left unchanged.
# 5. Write it yourself: do without the softmax of any library.
#
# Example: `softmax(np.array([0., np.log(3.)]), axis=0)` gives `[0.25, 0.75]`.


# %% nbgrader={"grade_id": "softmax", "solution": true}
def softmax(scores, axis):
    """Turn scores into positive weights that sum to 1 along an axis.

    scores: float array of any shape. axis: int.
    Returns a new float array of the same shape.
    """
    ### BEGIN SOLUTION
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-softmax", "grade": true, "points": 3}
check("softmax", softmax)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A constant that is added to all scores of a row cancels in the fraction. Choose one that keeps exp
# from overflowing.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Three steps: lower each row by a number of its own, exp, divide each row by its own sum.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Maximum and sum must keep the summed axis (`keepdims=True`), or they line up with the wrong axis.
# And `scores -= …` changes the caller's array.
# </details>

# %% [markdown]
# ### Exercise 2: one step of a decoder
# *9 minutes, medium, 3 points*
#
# 1. The score of a word is the dot product of the decoder's `state` with this word's encoder state:
#    Luong's "dot" score, with **no scaling**.
# 2. `weights`, of shape (..., length): the softmax of the scores over the words of the sentence.
# 3. `context`, of shape (..., d): the average of the encoder states, each with its weight.
# 4. Return `(context, weights)`, in this order.
# 5. Leading axes are the same in both inputs; there may be none. Large scores must not overflow.
#
# Example: state `[1., 0.]`, encoder states `[[0., 1.], [np.log(3.), 0.]]`: the scores are 0 and log
# 3, the weights `[0.25, 0.75]`, the context `[0.75 log 3, 0.25]` = `[0.824, 0.25]`.


# %% nbgrader={"grade_id": "decoder_step", "solution": true}
def decoder_step(state, encoder_states):
    """Look back at all encoder states from one decoder state.

    state: float array (..., d). encoder_states: float array (..., length, d).
    Returns (context, weights) of shapes (..., d) and (..., length).
    """
    ### BEGIN SOLUTION
    scores = np.einsum("...d,...ld->...l", state, encoder_states)
    weights = softmax(scores, axis=-1)
    context = np.einsum("...l,...ld->...d", weights, encoder_states)
    return context, weights
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-decoder_step", "grade": true, "points": 3}
check("decoder_step", decoder_step)

# %% [markdown]
# Any public case can be taken in hand: `example` gives its inputs. Case 3 is a batch.

# %%
for name, array in example("decoder_step", 3).items():
    print(name, array.shape)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two sums of products: over d for the scores, over the words for the context.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `np.einsum` says both in words of axes: which letter disappears in the scores, which one in the
# context? Or give the state one more axis of length 1 and use `@`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `encoder_states @ state` works for one sentence only. Write the shapes of case 3 beside each
# line of yours.
# </details>

# %% [markdown]
# ## 3 Queries, keys, values
#
# In `decoder_step`, an encoder state has two jobs: it is *found* (its product with the state makes
# the score) and it is *read* (it enters the average). Vaswani et al. (2017) give each job a vector
# of its own: a **key** to be found by, a **value** to be read. What looks is the **query**. And the
# encoder-decoder disappears: *every* token of a text has a query, a key and a value.
#
# Drag the query among the keys. Predict first: where must it go so that a single value is read? Can
# the output ever leave the region between the values?

# %% tags=["explorer"]
from attention_course.explorers import query_walk

query_walk()

# %% [markdown]
# Far out in the direction of one key, the weights become nearly *one-hot*: one is close to 1, the
# others to 0. And the output is always an *average* of values: it cannot leave the shape that they
# span. It is not the *distance* from a key that counts but the dot product: a long key wins far
# away from itself.

# %% [markdown]
# ### Why a root?
#
# Scores are sums of d_k products. If the components of query and key are independent, with mean 0
# and variance 1, then each product has variance 1, and their sum has variance d_k. So its *standard
# deviation* is $\sqrt{d_k}$, and Vaswani et al. (Section 3.2.1) divide by that. One sometimes reads
# "divide by d"; let us see what each does.
#
# Predict the slope of each line in a log-log plot of the scores' variance against d: no scaling,
# $/\sqrt d$, and $/d$. Then: with 16 keys, how many of them does a query really use in each case?
# (We count e to the entropy of its weights: 16 if all weigh the same, 1 if one takes all.)
#
# Experiments take their softmax and attention from PyTorch, a library that chapter 04 introduces:
# so they run whatever your own answers do.

# %% tags=["experiment"]
import torch

from attention_course.claims import report


def scale_statistics(seed, widths, divide, queries=100, keys=16):
    """Variance of scores, keys in effective use, and how far weights still react to scores."""
    rng = np.random.default_rng(seed)
    rows = []
    for width in widths:
        q, k = rng.normal(size=(queries, 1, width)), rng.normal(size=(queries, keys, width))
        scores = torch.tensor((q * k).sum(axis=-1) / divide(width))
        weights = torch.softmax(scores, dim=-1).numpy()
        entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=-1)
        # The Jacobian of the softmax is diag(w) - w w^T, one for each query.
        jacobian = weights[:, :, None] * np.eye(keys) - weights[:, :, None] * weights[:, None, :]
        reaction = np.median(np.linalg.norm(jacobian, axis=(1, 2)))
        rows.append([scores.numpy().var(), np.exp(entropy).mean(), reaction])
    return np.array(rows).T


widths = [2, 4, 8, 16, 32, 64, 128, 256, 512]
ways = {"no scaling": lambda d: 1, "divided by √d": np.sqrt, "divided by d": lambda d: d}
statistics = {
    way: np.array([scale_statistics(seed, widths, divide) for seed in range(10)])
    for way, divide in ways.items()
}
names = ["variance of the scores", "keys in use: exp(entropy)", "median size of ∂weights/∂scores"]
fig, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
for panel, (ax, name) in enumerate(zip(axes, names, strict=True)):
    for way, runs in statistics.items():
        spread(ax, widths, runs[:, panel], way)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("width d")
    ax.set_title(name, fontsize=10)
axes[0].legend(fontsize=8)
axes[1].set_yscale("linear")
plt.show()

level, steepness = {}, {}
for way, runs in statistics.items():
    slopes = [np.polyfit(np.log(widths), np.log(run[0]), 1)[0] for run in runs]
    level[way], steepness[way] = max(np.abs(slopes)) < 0.1, slopes
    print(
        f"{way:<14} variance ~ d^{np.mean(slopes):+.2f} "
        f"({min(slopes):+.2f} to {max(slopes):+.2f}); at d = {widths[-1]}: "
        f"{runs[:, 1, -1].mean():.1f} of 16 keys in use, "
        f"reaction {runs[:, 2, -1].mean():.1e}"
    )
holds = [way for way in ways if level[way]] == ["divided by √d"]
widest = max(max(slopes) - min(slopes) for slopes in steepness.values())
effect = "; ".join(f"{way}: variance ~ d^{np.mean(s):+.2f}" for way, s in steepness.items())
report("C1", holds, f"{effect} (10 seeds, slopes at most {widest:.2f} apart)")

# %% [markdown]
# - **No scaling**: the variance grows like d. The softmax comes close to an arg-max, and then
#   hardly *reacts* to its scores: its derivative almost vanishes, so queries and keys get hardly
#   any gradient.
# - **Divided by d**: the variance falls like 1/d. At width 512 all keys weigh nearly the same: the
#   layer only takes plain means.
# - **Divided by the root**: hardly anything depends on the width.
#
# What this does *not* show: that training fails without the root. Learned queries and keys are not
# independent, and a network can in principle learn to make them smaller. The paper itself says only
# that the authors "suspect" the reason.
#
# In the explorer: leave the scaling off, and find the *temperature* (one more number that scores
# are divided by) that has the same effect at d_k = 64.

# %% tags=["explorer"]
from attention_course.explorers import scale_explorer

scale_explorer()

# %% [markdown]
# ### Exercise 3: scores of all queries and keys
# *6 minutes, easy, 2 points*
#
# 1. `scores[..., i, j]` is the dot product of query i and key j, divided by $\sqrt{d_k}$.
# 2. d_k is the last axis of `queries` and of `keys`. There may be more or fewer keys than queries.
# 3. Leading axes are the same in both; there may be none.
#
# Example: the query `[[2., 0., 0., 0.]]` and the keys `[[1., 5., 5., 5.], [3., 0., 0., 0.]]`
# give `[[1., 3.]]`.


# %% nbgrader={"grade_id": "scaled_scores", "solution": true}
def scaled_scores(queries, keys):
    """Give the scaled dot product of every query with every key.

    queries: float array (..., q, d_k). keys: float array (..., k, d_k).
    Returns a float array (..., q, k).
    """
    ### BEGIN SOLUTION
    return queries @ np.swapaxes(keys, -1, -2) / np.sqrt(queries.shape[-1])
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-scaled_scores", "grade": true, "points": 2}
check("scaled_scores", scaled_scores)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A matrix product sums over the last axis of the left and the second-last axis of the right factor.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# (..., q, d_k) times (..., d_k, k) gives (..., q, k): only the last two axes of the keys change
# places.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `keys.T` turns round *all* axes; a batch gets lost that way. And it is the square root.
# </details>

# %% [markdown]
# ### In words: why the root?
# *4 minutes, 2 points, marked by hand*
#
# In three to six sentences: (a) Where does $\sqrt{d_k}$ come from, and why is it not d_k? Name what
# you assume. (b) What goes wrong in *training* if scores are not scaled?

# %% [markdown] nbgrader={"grade_id": "why-scale", "grade": true, "solution": true, "points": 2}
# (a) A score is a sum of d_k products. If the components of query and key are independent with mean
# 0 and variance 1, each product has variance 1 and the variances add up to d_k. Dividing a random
# quantity by c divides its variance by c², so c = √d_k brings the variance back to 1. Dividing by
# d_k would leave a variance of 1/d_k: the wider the vectors, the more even the weights.
#
# (b) Unscaled scores spread like √d_k, so for wide vectors one key takes nearly all the weight
# already at the start. There the softmax is flat: the entries w_i(1 − w_i) and −w_i w_j of its
# Jacobian are nearly 0, so almost no gradient reaches queries and keys, and they learn slowly or
# not at all.
#
# *Mark scheme.* 1 point for (a): variance d_k as a sum of d_k terms (independence or "uncorrelated,
# mean 0, unit variance" named: ½) and the step from variance to standard deviation, or what d_k
# would do (½). 1 point for (b): large scores saturate the softmax, nearly one-hot (½), and
# therefore its gradient vanishes (½). "The numbers get too large" or "overflow" alone: 0 for (b),
# since a stable softmax does not overflow.

# %% [markdown]
# ## 4 Masks
#
# Not every key may be seen: padding is no word, and a model that predicts the next word must not
# see it. In this course **True = may be seen**.
#
# Paint a mask. Predict first: if you close one key of a row, what happens to the weights of the
# others? If you close the whole row?

# %% tags=["explorer"]
from attention_course.explorers import mask_painter

mask_painter()

# %% [markdown]
# The rest of the row grows, in equal proportion: it must still sum to 1. An empty row has nothing
# to share out. 0/0 has no right answer, so we need a *convention*, and libraries differ: some give
# NaN, some the mean of everything (which leaks what should be hidden), PyTorch's own attention
# gives zeros. **We take zeros.**

# %% [markdown]
# ### Exercise 4: softmax over visible keys
# *9 minutes, medium, 4 points*
#
# 1. Softmax along the last axis, over those keys only where `mask` is True. Other weights are 0.
# 2. `mask` is bool and broadcasts to the shape of `scores`; it may have fewer axes.
# 3. A row with no visible key gives zeros: no NaN, no warning needed.
# 4. It is right for scores of ±thousands, also when rows differ a lot in size. (Within a row,
#    hidden scores are at most some hundred above visible ones.)
# 5. The caller's arrays are left unchanged.
#
# Example, with T for True and F for False: scores `[[0., 5., 0.], [1., 2., 3.]]` with the mask
# `[[T, F, T], [F, F, F]]` give `[[0.5, 0., 0.5], [0., 0., 0.]]`.


# %% nbgrader={"grade_id": "masked_softmax", "solution": true}
def masked_softmax(scores, mask):
    """Turn scores into weights over visible keys.

    scores: float array (..., q, k). mask: bool array that broadcasts to it, True = may be seen.
    Returns a new float array (..., q, k).
    """
    ### BEGIN SOLUTION
    lowered = np.where(mask, scores, -np.inf)
    largest = lowered.max(axis=-1, keepdims=True)
    powers = np.exp(lowered - np.where(np.isfinite(largest), largest, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-masked_softmax", "grade": true, "points": 4}
check("masked_softmax", masked_softmax)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A hidden key needs a score whose exp is 0. Or: compute all weights, keep the visible ones, and
# make each row sum to 1 again.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `np.where(mask, scores, …)` makes a new array and broadcasts. What is left is your softmax, with
# one question: what if a row's sum is 0, or its maximum −∞?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Multiplying *scores* by the mask gives 0, and e⁰ = 1. `-np.inf * (~mask)` is NaN where the mask is
# True, since 0 · ∞ is NaN. With −1e9 an empty row becomes uniform: it needs a last step.
# </details>

# %% [markdown]
# ### Exercise 5: scaled dot-product attention
# *8 minutes, medium, 5 points*
#
# Now put it together (Vaswani et al. 2017, equation 1), with V for the values:
# $\text{softmax}(QK^\top/\sqrt{d_k})\,V$.
#
# 1. `output[..., i, :]` is the average of the values, weighted by how well query i fits each key.
# 2. `mask` is None (all may be seen) or as in exercise 4, with the same convention for empty rows.
# 3. d_v may differ from d_k, and the number of queries from that of keys.
# 4. Leading axes are the same in queries, keys and values; there may be none. Large scores must not
#    overflow.
# 5. Return `(output, weights)`.
# 6. Do without the attention of any library: you are building it.
#
# Example: queries `[[0.]]`, keys `[[1.], [7.]]`, values `[[2., 4.], [4., 0.]]`: both scores are 0,
# the weights `[[0.5, 0.5]]`, the output `[[3., 2.]]`.


# %% nbgrader={"grade_id": "scaled_dot_product_attention", "solution": true}
def scaled_dot_product_attention(queries, keys, values, mask=None):
    """Average the values, for each query with its own weights.

    queries: (..., q, d_k). keys: (..., k, d_k). values: (..., k, d_v).
    mask: None or bool array that broadcasts to (..., q, k), True = may be seen.
    Returns (output, weights) of shapes (..., q, d_v) and (..., q, k).
    """
    ### BEGIN SOLUTION
    scores = scaled_scores(queries, keys)
    weights = softmax(scores, axis=-1) if mask is None else masked_softmax(scores, mask)
    return weights @ values, weights
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-scaled_dot_product_attention", "grade": true, "points": 5}
check("scaled_dot_product_attention", scaled_dot_product_attention)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Three steps that you have: scores, weights, weighted average.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The average is a matrix product: (..., q, k) with (..., k, d_v).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Softmax over the *keys*: each row of a query sums to 1. With a batch, "axis 1" is no longer the
# keys.
# </details>

# %% [markdown]
# ### Look at it
#
# Three heads whose queries and keys are made *by hand*, out of features of the words. Head 0: "who
# is the same word as me?" Head 1: "what stands just before me?" Head 2: "I am a verb or pronoun:
# where are nouns?" The weights come from **your** function of exercise 5. Predict: to which words
# does "it" link in head 2? Choose a head by its colour, and point at a word.

# %% tags=["explorer"]
from IPython.display import display

from attention_course.bertviz_views import head_view


def handmade_heads(tokens, nouns, seekers, strength=6.0):
    """Queries, keys and values (heads, length, d) whose dot products say who looks at whom."""
    length = len(tokens)
    same_word = np.array([[float(a == b) for b in tokens] for a in tokens])
    here = np.eye(length)
    before = np.roll(here, -1, axis=1)  # the feature of the place before
    before[0] = here[0]
    is_noun = np.array([[float(token in nouns)] for token in tokens]) * np.ones(length)
    seeks = np.array([[float(token in seekers)] for token in tokens]) * np.ones(length) / length
    unit = same_word / np.linalg.norm(same_word, axis=1, keepdims=True)
    queries = strength * np.sqrt(length) * np.stack([unit, before, seeks])
    return queries, np.stack([unit, here, is_noun]), np.stack([here] * 3)


def show_heads(attention):
    """Show bertviz's head view of `attention`'s weights, or say what is missing."""
    tokens = ["the", "dog", "chased", "the", "cat", "until", "it", "slept"]
    queries, keys, values = handmade_heads(tokens, ["dog", "cat"], ["chased", "slept", "it"])
    try:
        _, weights = attention(queries, keys, values)
        display(head_view(weights, tokens))
    except NotImplementedError:
        print("This picture is drawn from your answer: solve exercise 5 first, then run me again.")
    except Exception as error:
        print(f"Your function of exercise 5 gave nothing to draw yet ({error}). See its check.")


show_heads(scaled_dot_product_attention)

# %% [markdown]
# "it" links to "dog" and "cat" alike: these features know that something is a noun, not *which* one
# is meant. Words that seek nothing have the query 0, equal scores, and look at everything. In a
# trained network nobody writes such features; chapters to come look at what is learned instead.

# %% [markdown]
# ### Exercise 6: no look into the future
# *7 minutes, medium, 3 points*
#
# A model that writes text sees only what is there already.
#
# 1. With as many queries as keys, query i sees the keys 0 … i: itself and everything before.
# 2. With **fewer queries than keys** (q < k), the queries are the *last* q tokens: the last query
#    sees all keys, the one before it all but the last, and so on. (This happens when a model writes
#    token by token and keeps old keys.) q is never above k.
# 3. Scaling, leading axes, the result `(output, weights)` and what to do without are as in
#    exercise 5.
#
# Example: 2 queries, 4 keys: the mask is `[[T, T, T, F], [T, T, T, T]]`.


# %% nbgrader={"grade_id": "causal_attention", "solution": true}
def causal_attention(queries, keys, values):
    """Attention in which no query sees a later token.

    queries: (..., q, d_k) with q <= k; they belong to the last q tokens.
    keys: (..., k, d_k). values: (..., k, d_v).
    Returns (output, weights) of shapes (..., q, d_v) and (..., q, k).
    """
    ### BEGIN SOLUTION
    q, k = queries.shape[-2], keys.shape[-2]
    mask = np.arange(k)[None, :] <= np.arange(k - q, k)[:, None]
    return scaled_dot_product_attention(queries, keys, values, mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-causal_attention", "grade": true, "points": 3}
check("causal_attention", causal_attention)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Give each query and each key its position in the text. Which comparison says "not later than I"?
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Keys stand at 0 … k−1. The last query stands at k−1; where does the first one stand? A column and
# a row of positions make the (q, k) mask.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `np.tri(q, k)` starts at the top left: with q < k the last query would miss keys. And the diagonal
# belongs to the visible part.
# </details>

# %% [markdown]
# ## 5 The layer, and what it cannot see
#
# Where do queries, keys and values come from? From the tokens themselves, by three learned
# matrices: *every token is its own query, key and value.* This is **self**-attention.
#
# ### Exercise 7: a self-attention layer
# *6 minutes, easy, 3 points*
#
# 1. Queries are `x @ w_q`, keys `x @ w_k`, values `x @ w_v`; no biases.
# 2. Then scaled dot-product attention. `mask` is as in exercise 5, for scores of shape (...,
#    length, length).
# 3. d_model, d_k and d_v all differ.
# 4. Return the output only.
#
# Example: with one token, the weights are `[[1.]]`, so the output is `x @ w_v`, whatever `w_q` and
# `w_k` are.


# %% nbgrader={"grade_id": "self_attention", "solution": true}
def self_attention(x, w_q, w_k, w_v, mask=None):
    """One self-attention layer with given weights.

    x: (..., length, d_model). w_q, w_k: (d_model, d_k). w_v: (d_model, d_v).
    mask: None or bool array that broadcasts to (..., length, length), True = may be seen.
    Returns a float array (..., length, d_v).
    """
    ### BEGIN SOLUTION
    output, _ = scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)
    return output
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-self_attention", "grade": true, "points": 3}
check("self_attention", self_attention)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Nothing new: three products, then exercise 5.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `x @ w_q` works for any leading axes of x. Check: the output's last axis must be d_v.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The root is of d_k, the width of the *queries*; the width of x is d_model.
# </details>

# %% [markdown]
# ### A bag of words
#
# *dog bites man*; *man bites dog*. We send both through one random layer, and compare each word's
# output. Predict: in which sentence does "dog" get the better idea that it is the one who bites?

# %% tags=["experiment"]
from attention_course.plots import heat_map

rng = np.random.default_rng(3)
vectors = {word: rng.normal(size=8) for word in ["dog", "bites", "man"]}
matrices = [torch.tensor(rng.normal(size=(8, 8)) / 8**0.5) for _ in range(3)]


def random_layer(x):
    """PyTorch's attention between three random projections."""
    parts = [torch.tensor(x) @ matrix for matrix in matrices]
    return torch.nn.functional.scaled_dot_product_attention(*parts).numpy()


fig, axes = plt.subplots(1, 2, figsize=(9, 2.2), layout="constrained")
for ax, text in zip(axes, ["dog bites man", "man bites dog"], strict=True):
    words = text.split()
    output = random_layer(np.stack([vectors[word] for word in words]))
    image = heat_map(
        ax, output, words, title=text, row_axis="", column_axis="feature of the output",
        limits=(-1.5, 1.5), cmap="RdBu",
    )  # fmt: skip
fig.colorbar(image, ax=axes.tolist(), label="output")
plt.show()

# %% [markdown]
# In neither: "dog" has the same output in both. The rows have changed places with the words, and
# nothing else has changed. This is called *equivariance*: shuffled tokens in, equally shuffled
# outputs out. It is not *invariance*: the output array as a whole is different. Make it a test.
#
# ### Exercise 8: the shuffle test
# *7 minutes, medium, 3 points*
#
# 1. Place i of the shuffled sentence holds token `order[i]`: row i is `x[order[i]]`.
# 2. If `positions` (length, d_model) is given, a vector is added for each *place*: `positions[i]`
#    to whatever token stands at place i, in the shuffled sentence and in the original one.
# 3. `shuffled`: what self-attention (no mask) gives for the shuffled sentence.
# 4. `restored`: the rows of `shuffled`, put back so that row j belongs to **token** j again.
# 5. `gap`: the largest absolute difference between `restored` and what self-attention gives for the
#    original sentence; one number.
# 6. Return `(shuffled, restored, gap)`. No leading axes here.
#
# Example for point 4: with order `[2, 0, 1]` and rows A, B, C in `shuffled`, A belongs to token 2,
# B to 0 and C to 1, so `restored` is B, C, A.


# %% nbgrader={"grade_id": "shuffle_test", "solution": true}
def shuffle_test(x, order, w_q, w_k, w_v, positions=None):
    """Shuffle tokens, attend, put the outputs back, and measure what has changed.

    x: (length, d_model). order: int array (length,), a permutation. w_q, w_k: (d_model, d_k).
    w_v: (d_model, d_v). positions: None or (length, d_model).
    Returns (shuffled, restored, gap): two arrays (length, d_v) and a number.
    """
    ### BEGIN SOLUTION
    if positions is None:
        positions = np.zeros_like(x)
    shuffled = self_attention(x[order] + positions, w_q, w_k, w_v)
    restored = shuffled[np.argsort(order)]
    gap = np.abs(restored - self_attention(x + positions, w_q, w_k, w_v)).max()
    return shuffled, restored, gap
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-shuffle_test", "grade": true, "points": 3}
check("shuffle_test", shuffle_test)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Shuffling reads: `x[order]` fetches row `order[i]` into place i. Undoing *writes*: row i goes to
# place `order[i]`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Either assign into an empty array, or find the order that undoes `order`: sorting `order` would
# bring 0, 1, 2, … back.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `shuffled[order]` shuffles a second time. It is right only for orders that are their own inverse,
# such as a swap of two.
# </details>

# %% [markdown]
# How exact is it, and what breaks it? Ten random layers and shuffles in each of two precisions,
# with position vectors of growing size. We compare outputs *as bags*: for each output row of the
# shuffled sentence, how far is the nearest row of the original one?
#
# Predict: will the gap be 0 without positions? How large must a position vector be before the layer
# notices the order?


# %% tags=["experiment"]
def bag_gap(seed, size, dtype, length=12, width=16):
    """Largest distance from a shuffled sentence's output rows to the nearest original row."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return torch.tensor(rng.normal(size=shape)).to(dtype)

    x, positions = draw(length, width), size * draw(length, width)
    order = torch.tensor(rng.permutation(length))
    weights = [draw(width, width) / width**0.5 for _ in range(3)]

    def layer(tokens):
        return torch.nn.functional.scaled_dot_product_attention(*(tokens @ w for w in weights))

    apart = (layer(x[order] + positions)[:, None] - layer(x + positions)[None]).abs().amax(dim=-1)
    return float(apart.amin(dim=1).max())


sizes = [0.0, 1e-6, 1e-4, 1e-2, 1.0]
precisions = {"float32": torch.float32, "float64": torch.float64}
gaps = {
    name: np.array([[bag_gap(seed, size, dtype) for size in sizes] for seed in range(10)])
    for name, dtype in precisions.items()
}
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, runs in gaps.items():
    spread(ax, range(len(sizes)), np.maximum(runs, 1e-17), name)
ax.set_yscale("log")
ax.set_xticks(range(len(sizes)), [f"{size:g}" for size in sizes])
ax.set_xlabel("size of the position vectors (tokens have size 1)")
ax.set_ylabel("largest gap of an output")
ax.legend(fontsize=8)
plt.show()

for name, runs in gaps.items():
    largest = runs[:, 0].max()
    print(
        f"{name}: without positions at most {largest:.1e} "
        f"= {largest / np.finfo(name).eps:.1f} roundings; "
        f"with positions of size 1 at least {runs[:, -1].min():.2f}"
    )
bag = all(runs[:, 0].max() < 100 * np.finfo(name).eps for name, runs in gaps.items())
broken = all(runs[:, -1].min() > 1e-3 for runs in gaps.values())
largest = max(runs[:, 0].max() for runs in gaps.values())
report("C2", bag, f"outputs differ by at most {largest:.0e} between two orders (10 seeds)")
print(f"'Positions break it': {'supported' if broken else 'NOT supported'} by this run.")

# %% [markdown]
# Not exactly 0, since a sum in another order rounds differently; but no more than rounding. And
# there is no threshold: any position vector breaks the symmetry, in proportion to its size. A
# causal mask does so too, as it treats places differently. How to make *good* position vectors is a
# chapter of its own.

# %% [markdown]
# ## 6 What it costs
#
# Attention compares every token with every other: n² pairs. An RNN does the same work for each
# token, but must wait for the token before. Vaswani et al., Table 1, per layer:
#
# | | multiplications | steps that must wait | longest path between two tokens |
# |---|---|---|---|
# | self-attention | O(n² · d) | O(1) | O(1) |
# | recurrent | O(n · d²) | O(n) | O(n) |
#
# Below we first *count* multiplications while the products run (d = 64), then measure times.
# Predict: the two slopes in a log-log plot, and the n at which attention becomes the more expensive
# one.

# %% tags=["experiment"]
import time

WIDTH = 64
counted = {"multiplications": 0, "waiting steps": 0}


def product(a, b):
    """Matrix product that counts its multiplications, and itself as a step that must wait."""
    counted["multiplications"] += a.shape[0] * a.shape[1] * b.shape[1]
    counted["waiting steps"] += 1
    return a @ b


def count_attention(x, w):
    """The two products of attention (projections apart, as in the table)."""
    weights = torch.softmax(product(x, x.T) / WIDTH**0.5, dim=-1)
    product(weights, x)


def count_recurrent(x, w):
    """One product with the state and one with the input at every step."""
    state = torch.zeros(1, WIDTH)
    for token in x:
        counted["multiplications"] += WIDTH * WIDTH  # of the input, which need not wait
        state = torch.tanh(product(state, w) + token @ w)


def time_attention(x, rnn):
    """PyTorch's attention on one sequence."""
    torch.nn.functional.scaled_dot_product_attention(x, x, x)


def time_recurrent(x, rnn):
    """PyTorch's RNN on the same sequence."""
    rnn(x)


tokens = [64, 128, 256, 512, 1024, 2048]
rng = np.random.default_rng(0)
square = torch.tensor(rng.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5).float()
counts = {}
for name, run in {"self-attention": count_attention, "recurrent": count_recurrent}.items():
    for n in tokens:
        counted.update({"multiplications": 0, "waiting steps": 0})
        run(torch.tensor(rng.normal(size=(n, WIDTH))).float(), square)
        counts[name, n] = dict(counted)
    logs = [np.log(counts[name, n]["multiplications"]) for n in tokens]
    slope = np.polyfit(np.log(tokens), logs, 1)
    print(
        f"{name:<15} multiplications ~ n^{slope[0]:.3f}; waiting steps "
        f"{counts[name, tokens[0]]['waiting steps']} at n = {tokens[0]}, "
        f"{counts[name, tokens[-1]]['waiting steps']} at n = {tokens[-1]}"
    )
work = {
    name: np.array([counts[name, n]["multiplications"] for n in tokens])
    for name in ["self-attention", "recurrent"]
}
cheaper = np.array(tokens)[work["self-attention"] <= work["recurrent"]]
print(
    f"self-attention multiplies no more often than the RNN up to n = {cheaper.max()}, d = {WIDTH}"
)


# %% tags=["experiment"]
def measure(run, n, seed, patience=0.03):
    """Shortest of some runs, in seconds: the one least disturbed by others on this machine."""
    x = torch.tensor(np.random.default_rng(seed).normal(size=(1, n, WIDTH))).float()
    taken = []
    with torch.no_grad():
        while len(taken) < 4 or sum(taken) < patience:
            start = time.perf_counter()
            run(x, rnn)
            taken.append(time.perf_counter() - start)
    return min(taken)


rnn = torch.nn.RNN(WIDTH, WIDTH, batch_first=True)
runners = {"self-attention": time_attention, "recurrent": time_recurrent}
threads = torch.get_num_threads()
torch.set_num_threads(1)  # one core for both, or the comparison is one of thread pools
seconds = {name: np.zeros((6, len(tokens))) for name in runners}
for seed in range(6):
    for column, n in enumerate(tokens):
        for name, run in runners.items():
            seconds[name][seed, column] = measure(run, n, seed)
torch.set_num_threads(threads)
unit = np.median(seconds["self-attention"][:, 0])
fig, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
for name in runners:
    axes[0].plot(tokens, work[name], "o-", label=name)
    spread(axes[1], tokens, seconds[name] / unit, name)
for ax, title in zip(axes, ["multiplications, counted", "time, relative"], strict=True):
    ax.set(xscale="log", yscale="log", xlabel="tokens n", title=title)
    ax.set_xticks(tokens, tokens)
    ax.minorticks_off()
axes[0].legend(fontsize=8)
axes[1].set_ylabel("1 = attention at n = 64")
axes[1].legend(fontsize=8)
plt.show()

steep = {}
for name, table in seconds.items():
    for part, first in {"all n": 0, f"n from {tokens[3]} on": 3}.items():
        logs = np.log(tokens[first:])
        slopes = [np.polyfit(logs, np.log(row[first:]), 1)[0] for row in table]
        steep[name] = np.median(slopes)
        print(
            f"{name:<15} time ~ n^{np.median(slopes):.2f} "
            f"({min(slopes):.2f} to {max(slopes):.2f}), {part}"
        )
ratios = np.median(seconds["recurrent"] / seconds["self-attention"], axis=0)
more_work = work["self-attention"] / work["recurrent"]
print("time of RNN / time of attention:")
for n, ratio, more in zip(tokens, ratios, more_work, strict=True):
    print(f"  n = {n:<5} {ratio:5.2f}   (attention multiplies {more:.0f} times as often)")
supported = abs(steep["self-attention"] - 2) < 0.3 and abs(steep["recurrent"] - 1) < 0.3
effect = ", ".join(f"{name}: time ~ n^{power:.2f}" for name, power in steep.items())
report("C7", supported, f"{effect} (long texts, medians of 6 seeds)", timed=True)
both = [n for n, r, m in zip(tokens, ratios, more_work, strict=True) if r > 1 and m > 1]
print(
    f"Attention multiplies more often and is faster all the same at n = {both or 'none of these'}."
)

# %% [markdown]
# The counts have the slopes 2 and 1 exactly, and cross at n = d. Times are less tidy. For short
# texts, fixed overheads outweigh the work and bend attention's curve flat; towards long texts it
# tends to slope 2 (a busy machine may hide it in one run). Look at the last line: where attention
# multiplies more often and is faster all the same, the reason is waiting. Its two products run at
# full speed; the RNN takes n tiny steps, one after the other. Processors that do thousands of
# things at once widen this gap (not measured here), and that is the paper's case for attention
# (Section 4). But n² has the last word: with n long enough it costs more, in any implementation of
# these formulas.

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | weights hardly depend on the scores, or one key takes all | scaled by d_k, or not at all |
# | right in 2-D, wrong or an error with a batch | `axis=1`, `.T`: count axes from the end |
# | *columns* of the weights sum to 1 | softmax over queries |
# | rows with a mask sum to less than 1 | mask applied after the softmax, without a new division |
# | hidden keys keep weight | score 0, or a mask that is *added* as 0/1 |
# | NaN in padded rows | −∞ in a whole row; 0 · ∞ |
# | training looks too good | off-by-one triangle: the token to predict is visible |
# | nonsense when writing token by token | triangle aligned at the first key, not at the last |
# | equivariance test fails | undone with `order` and not with its inverse |

# %% [markdown]
# ## Recap
#
# - A fixed-size state forgets; attention reads from all states and weighs them.
# - Scores are products of queries and keys, over $\sqrt{d_k}$; weights are their softmax over
#   visible keys; outputs are averages of values.
# - A mask acts *before* the softmax. What an empty row gives is a convention: here zeros.
# - Self-attention sees a bag; positions must be put in.
# - n² · d multiplications, no waiting.
#
# Next: how to tell attention about order. The challenge below is for those who want to see the way
# back as well.

# %% [markdown]
# ## Challenge: attention backwards
# *30 minutes, hard, 4 points*
#
# Let L be some number that depends on the output of exercise 5. Given the gradient of L by the
# output, find the gradients by queries, keys and values, **by hand**, in NumPy.
#
# 1. `output_gradient[..., i, v]` is ∂L/∂output[..., i, v].
# 2. Return `(d_queries, d_keys, d_values)`; each has the shape of what it belongs to.
# 3. `mask` is None or as in exercise 5. Nothing flows through a hidden pair; a query that sees
#    nothing sends no gradient anywhere.
# 4. Leading axes are as in exercise 5.
#
# Example: with a single key, the weight is 1 whatever the scores: `d_queries` and `d_keys` are
# zeros, and `d_values` is the sum of `output_gradient` over queries.


# %% nbgrader={"grade_id": "attention_backward", "solution": true}
def attention_backward(queries, keys, values, mask, output_gradient):
    """Carry the gradient of attention's output back to its inputs.

    queries: (..., q, d_k). keys: (..., k, d_k). values: (..., k, d_v). mask: None or bool array
    that broadcasts to (..., q, k). output_gradient: (..., q, d_v).
    Returns (d_queries, d_keys, d_values), with the shapes of queries, keys and values.
    """
    ### BEGIN SOLUTION
    _, weights = scaled_dot_product_attention(queries, keys, values, mask)
    d_values = np.swapaxes(weights, -1, -2) @ output_gradient
    d_weights = output_gradient @ np.swapaxes(values, -1, -2)
    shared = (weights * d_weights).sum(axis=-1, keepdims=True)
    d_scores = weights * (d_weights - shared) / np.sqrt(queries.shape[-1])
    return d_scores @ keys, np.swapaxes(d_scores, -1, -2) @ queries, d_values
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-attention_backward", "grade": true, "points": 4}
check("attention_backward", attention_backward)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Go back step by step: output = weights · values; weights = softmax(scores); scores = queries ·
# keysᵀ/√d_k. For a product C = A·B, the gradients are dA = dC·Bᵀ and dB = Aᵀ·dC.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# For one row: ∂w_i/∂s_j = w_i(δ_ij − w_j). Multiply this by the gradient of the weights and sum
# over i: what is left is an elementwise product with one number per row taken off.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The diagonal of the Jacobian alone is not enough. The scaling appears once on the way to queries
# and once on the way to keys. Check yourself by a small change of one entry: (L(x + h) − L(x − h))
# / 2h.
# </details>
