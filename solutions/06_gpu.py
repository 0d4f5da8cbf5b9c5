# %% [markdown]
# # 06 On a GPU, or as if
#
# The same formulas, run where memory and time are counted. You write code that runs on a GPU when
# there is one, attention that never stores its n × n scores, a loss that survives 16-bit numbers,
# and a layer that remembers its keys. **No GPU is needed**: every check and every figure here runs
# on a CPU.
#
# **You will be able to**
#
# - write modules and training code that name no device;
# - time work on a device that runs ahead of your program, and count its bytes before you run it;
# - compute exact attention block by block, and call PyTorch's own with the right mask;
# - choose number formats, split a batch, keep keys and values, and say why each is right;
# - tell from two numbers of a machine what limits a computation.
#
# | section | minutes | points |
# |---|---|---|
# | 1 Where things live | 30 | 5 |
# | 2 A stopwatch | 20 | 3 |
# | 3 Bytes | 15 | 2 |
# | 4 PyTorch's own attention | 20 | 3 |
# | 5 Attention in blocks | 55 | 9 |
# | 6 Few bits | 25 | 3 |
# | 7 A big batch in pieces | 20 | 4 |
# | 8 Keys and values that are kept | 25 | 4 |
# | 9 What limits it? | 20 | 2 |
# | Recap | 5 | |
# | **in all** | **235** | **35** |
# | Challenge: the roofline | 15 more | 2 more |
#
# That is two sittings: sections 1 to 5, then 6 to 9.

# %% [markdown]
# **To read**, before or after:
# T. Dao et al. (2022), *FlashAttention: Fast and Memory-Efficient Exact Attention with
# IO-Awareness*, Section 3.1 and Algorithm 1; M. Milakov and N. Gimelshein (2018), *Online
# normalizer calculation for softmax*, Algorithm 3; P. Micikevicius et al. (2018), *Mixed Precision
# Training*, Section 3; S. Williams, A. Waterman and D. Patterson (2009), *Roofline: An Insightful
# Visual Performance Model for Multicore Architectures*.

# %% [markdown]
# **Symbols.** Long words for things; single letters for axes.
#
# | name | shape | meaning |
# |---|---|---|
# | `queries` | (..., q, d_k) | the last q tokens, if there are fewer than keys |
# | `keys`, `values` | (..., k, d_k), (..., k, d_v) | |
# | `scores` | (..., q, k), or (..., q, block) | scaled products of queries and keys |
# | `mask`, `visible` | (..., q, k), (batch, k) | bool, **True = may be seen** |
# | `padding` | (batch, k) | bool, **True = is padding**, as `nn.MultiheadAttention` wants it |
# | `largest`, `total` | (..., q) | largest score so far, sum of powers so far |
# | `logits` | (batch, length, vocabulary) | what a model says before the softmax |
# | `targets` | (batch, length) | the right token, or −100 where there is none |
# | n | | length of a text, when there are as many queries as keys |
#
# You may call your earlier answers in later ones; exercise 7 is easier with exercise 6.

# %%
import torch

torch.set_num_threads(1)  # one core, so that times can be compared

import torch.nn.functional as F
from torch import nn

from attention_course import check, example

# %% [markdown]
# ## 1 Where things live
#
# A GPU has memory of its own. A tensor lies in one memory, and an operation wants all its tensors
# in the same one. So the first thing that a program decides is *where*, and it should decide it
# once. The cell below does; everything after it only ever says `device`.


# %%
def choose_device():
    """Take a GPU if there is one: NVIDIA's (or AMD's) first, then Apple's, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


device = choose_device()
print("This notebook runs on:", device)

# %% [markdown]
# How can code for a GPU be tested without one? PyTorch has a device named `"meta"`: its tensors
# have a shape, a type and a place, and no numbers. A tensor forgotten on the CPU shows there just
# as it would on a GPU.
#
# Predict: where do the three tensors lie?

# %% tags=["experiment"]
there = torch.ones(2, 3).to("meta")
print("moved:", there.device, tuple(there.shape), there.dtype)
print("made beside it:", torch.zeros(2, 3, device=there.device).device)
print("made without a word:", torch.zeros(2, 3).device)

# %% [markdown]
# The last one lies on the CPU, where PyTorch puts whatever is not told otherwise. To add it to
# `there` is an error, on a GPU too: two tensors, two memories. (An error is the lucky case. Some
# operations copy in silence, and the program waits.)
#
# ### Exercise 1: a batch to any device
# *8 minutes, easy, 2 points*
#
# 1. `batch` is a tensor, or a dict, list or tuple of batches, nested in any way. Other things
#    (words, numbers, None) may lie among them.
# 2. Return the same nest with every tensor moved to `device`; the tensors' types stay as they are.
# 3. A dict stays a dict with the same keys in the same order, a list a list, a tuple a tuple.
#    Whatever is no tensor and none of these containers is handed on as it is.
# 4. The batch that came in is left alone.
#
# Example: `move_batch({"ids": torch.ones(2), "words": ["a"]}, "meta")` gives
# `{"ids": tensor(..., device='meta', size=(2,)), "words": ["a"]}`.


# %% nbgrader={"grade_id": "move_batch", "solution": true}
def move_batch(batch, device):
    """Move every tensor of a nested batch.

    batch: tensor, or dict, list or tuple of batches, or anything else. device: a torch.device or
    its name. Returns a new nest of the same build.
    """
    ### BEGIN SOLUTION
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: move_batch(part, device) for name, part in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(move_batch(part, device) for part in batch)
    return batch
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-move_batch", "grade": true, "points": 2}
check("move_batch", move_batch)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# What to do depends on what `batch` is: four cases. For a container, the same question comes up
# again for each of its parts.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `isinstance` tells the cases apart. In a container, call `move_batch` on each part and build a
# container of the same type from the results.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `tensor.to(device)` returns a tensor; it does not move the one that you have. And an entry of a
# dict that is assigned anew is changed for the caller too.
# </details>

# %% [markdown]
# ### A module that names no device
#
# A module has three kinds of tensors. *Parameters* are trained. *Buffers* are not trained, and move
# and are saved with the module. *What forward makes* must be made where its input lies. Nothing
# else: a tensor in a plain attribute stays behind when the module moves.
#
# ### Exercise 2: a penalty for distance
# *12 minutes, medium, 3 points*
#
# Press, Smith and Lewis (2022, *Train Short, Test Long*, Section 3) give attention a sense of
# position by lowering scores with the distance between query and key; each head has its own slope.
#
# 1. `DistancePenalty(heads)` has one **buffer** `slopes`, shape (heads,), saved in the
#    `state_dict`, and no parameter. It starts as $2^{-8(h+1)/\text{heads}}$ for head h = 0, 1, …
#    (For 8 heads: 1/2, 1/4, …, 1/256. We use this formula for any number of heads.)
# 2. `forward(scores)` takes scores (batch, heads, q, k), q ≤ k; the queries are the **last** q of k
#    tokens. It returns a new tensor: each score minus its head's slope times the distance
#    |position of query − position of key|. No mask here.
# 3. The result has the device **and the type** of `scores` (the module is moved to the same):
#    bfloat16 in, bfloat16 out (a format of 16 bits: section 6). Everything that forward makes is
#    made on that device; nothing is made on the CPU and copied over. (Single numbers don't count.)
#
# Example: 2 heads (slopes 1/16 and 1/256), q = 1, k = 3: the query stands at position 2, so head 0
# loses `[0.125, 0.0625, 0.]`.


# %% nbgrader={"grade_id": "distance_penalty", "solution": true}
class DistancePenalty(nn.Module):
    """Lowers scores by the distance of query and key.

    heads: int. forward: scores (batch, heads, q, k) with q <= k; a new tensor of that shape.
    """

    def __init__(self, heads):
        super().__init__()
        ### BEGIN SOLUTION
        self.register_buffer("slopes", 2.0 ** (-8 * torch.arange(1, heads + 1) / heads))
        ### END SOLUTION

    def forward(self, scores):
        ### BEGIN SOLUTION
        q, k = scores.shape[-2:]
        positions = torch.arange(k, device=scores.device)
        distance = (positions[k - q :, None] - positions).abs()
        return scores - self.slopes[:, None, None] * distance
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-distance_penalty", "grade": true, "points": 3}
check("distance_penalty", DistancePenalty)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Positions of keys are 0 … k−1. Those of queries are the last q of them. A column minus a row
# gives all pairs.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `register_buffer` takes a name and a tensor. `torch.arange` takes `device=`. The slopes need two
# more axes to meet (batch, heads, q, k).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Integer times bfloat16 is bfloat16; float32 times bfloat16 is float32. So let the distances be
# integers, or give them the type of the scores.
# </details>

# %% [markdown]
# ## 2 A stopwatch
#
# A GPU works on its own: your program *hands over* an operation and goes on at once. A stopwatch
# that is read then has timed the handing over. To time the work one must wait for it:
# `torch.cuda.synchronize()`. Further, first runs are slow (memory is fetched, the device's programs
# are chosen), and now and then another program gets in the way.
#
# | what | why |
# |---|---|
# | some runs for warming up, not timed | first runs are slow |
# | wait, then start the clock | or the work before is timed too |
# | run, wait, stop the clock | or only the handing over is timed |
# | the **median** of several runs | one disturbed run moves a mean, not a median |
#
# Predict: a device needs 50 ms for a run, handing over takes 1 ms. Without waiting, what does the
# clock say for each of five runs? And if you wait once, at the end of all five?

# %% [markdown]
# ### Exercise 3: the median of measured times
# *10 minutes, medium, 3 points*
#
# 1. `run()` hands one piece of work to the device. `synchronise()` waits until the device is idle.
#    `clock()` gives the time in seconds. The checks pass a played device and its played clock, so
#    use these three and nothing else.
# 2. Call `run` `warm_up` times (may be 0) without timing it, and then `repeats` times (at least 1),
#    timing each: from a moment when the device is idle to the moment when it is idle again.
# 3. Return the median of the `repeats` times; for an even number, the mean of the two in the
#    middle.
#
# Example: if the timed runs take 3, 1, 9 and 2 seconds, the result is 2.5.


# %% nbgrader={"grade_id": "median_seconds", "solution": true}
def median_seconds(run, synchronise, clock, warm_up, repeats):
    """Time a function on a device that works on its own.

    run, synchronise: functions of nothing. clock: function of nothing, gives seconds.
    warm_up, repeats: ints. Returns a float, in seconds.
    """
    ### BEGIN SOLUTION
    for _ in range(warm_up):
        run()
    synchronise()
    seconds = []
    for _ in range(repeats):
        start = clock()
        run()
        synchronise()
        seconds.append(clock() - start)
    seconds.sort()
    return (seconds[(repeats - 1) // 2] + seconds[repeats // 2]) / 2
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-median_seconds", "grade": true, "points": 3}
check("median_seconds", median_seconds)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two loops. The second one keeps a list of differences of two readings of the clock.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Wait between the two loops. In the second: read, run, wait, read. Sort at the end, or take
# `statistics.median`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Without a wait between the loops, the first time holds the work of the warm-up. And `torch.median`
# of an even number gives the *lower* of the two in the middle.
# </details>

# %% [markdown]
# The prediction: without waiting the clock says 1 ms, five times. A wait at the end of all five
# then lasts some 245 ms: now their sum is known, and no single run, so no median either.
#
# ### Why batches?
#
# From here on we let PyTorch's own stopwatch do all this: `torch.utils.benchmark.Timer` warms up,
# waits, repeats and gives the median. (The course's `seconds_of` calls it.) We call it five times
# for each size, in five passes over all sizes, and trust only what all passes say. If times of the
# same work differ a lot between passes, the machine was busy with something else; the cell says so.
#
# An MLP (two linear layers with a bend between them, here from 512 to 2048 and back, 8 MB of
# weights) gets 1 to 256 vectors at once. Predict: how much longer do 16 vectors take than one: 16
# times? And where does the throughput, vectors for each second, stop growing?

# %% tags=["experiment"]
import matplotlib.pyplot as plt
import numpy as np

from attention_course.measuring import quiet_or_busy, seconds_of, settled, unevenness
from attention_course.plots import spread


def slope(x, y):
    """Slope in a log-log plot: the p of y ~ x^p."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]


batches = [1, 2, 4, 8, 16, 32, 64, 128, 256]
mlp = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).to(device)
seconds = np.zeros((5, len(batches)))
for seed in range(5):
    for column, batch in enumerate(batches):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(batch, 512, generator=generator).to(device)
        seconds[seed, column] = seconds_of(mlp, x)
throughput = np.array(batches) / seconds
fig, axes = plt.subplots(1, 2, figsize=(10, 3.3), layout="constrained")
spread(axes[0], batches, 1e3 * seconds, "measured")
one_by_one = seconds[:, 0].mean() * np.array(batches)
axes[0].plot(batches, 1e3 * one_by_one, "k:", label="one by one")
axes[0].set(xscale="log", yscale="log", xlabel="vectors in a batch", ylabel="ms for a batch")
spread(axes[1], batches, throughput)
axes[1].set(xscale="log", ylim=0, xlabel="vectors in a batch", ylabel="vectors for each second")
axes[0].legend(fontsize=8)
for ax in axes:
    ax.set_xticks(batches, batches)
    ax.minorticks_off()
plt.show()

middle = np.median(throughput, axis=0)
longer = np.median(seconds[:, batches.index(16)] / seconds[:, 0])
enough = batches[int(np.argmax(middle > 0.8 * middle.max()))]
print(f"16 vectors take {longer:.1f} times as long as one.")
print(f"Best throughput: {middle.max() / middle[0]:.1f} times that of single vectors;")
print(f"80 % of it is reached from {enough} vectors on.")
faster, uneven = throughput.max(axis=1) / throughput[:, 0], unevenness(seconds)
print(f"'Batches raise the throughput to 1.5 times and more': {settled(faster > 1.5, uneven)}.")
print(quiet_or_busy(uneven))

# %% [markdown]
# Left: the time of a batch against its size, and dotted what one by one would take. Right: vectors
# for each second. For one vector, all 8 MB of weights must come from memory, and each is used once.
# For 16 vectors they come once, and each is used 16 times. Once the arithmetic is the slower part,
# a larger batch only takes longer. A GPU computes far more for each byte that it can fetch, so its
# curve should rise further and bend later; we have not measured one. Section 9 makes this a
# formula.

# %% [markdown]
# ## 3 Bytes
#
# Time is patient; memory is not. A program that needs one byte too many stops. So count before you
# run. Naive attention stores all scores and all weights. Blocked attention (section 5) holds one
# block of scores and a few numbers for each query. To scale, for n = 512 tokens and blocks of 64:

# %% tags=["experiment"]
from matplotlib.patches import Rectangle


def draw_memory(ax, title, parts, n):
    """Draw arrays as rectangles to scale: parts are (left edge, width, colour, words)."""
    for left, width, colour, words in parts:
        ax.add_patch(Rectangle((left, 0), width, n, fc=colour, ec="0.3"))
        ax.text(left + width / 2, n + 15, words, ha="center", va="top", fontsize=8)
    ax.set(xlim=(-60, 1200), ylim=(n + 110, -20), title=title)
    ax.set_aspect("equal")
    ax.axis("off")


fig, axes = plt.subplots(1, 2, figsize=(10, 2.7), layout="constrained")
blue, orange = "#dbe9f6", "#fde3c8"
naive = [(0, 512, blue, "scores\nn × n"), (600, 512, orange, "weights\nn × n")]
draw_memory(axes[0], "naive: what is stored for one head", naive, 512)
blocked = [(0, 64, blue, "scores\nn × 64"), (200, 66, orange, "maximum, sum,\noutput (d = 64)")]
draw_memory(axes[1], "blocked: what is held at any time", blocked, 512)
plt.show()

# %% [markdown]
# Left two squares of 512 × 512 numbers, right two strips of 512 × 64 and 512 × 66. With longer
# texts the squares grow in both directions, the strips in one.
#
# Predict: one sentence of 32,768 tokens, 16 heads, 2 bytes for each number. How many gigabytes do
# scores and weights take in *one* layer?
#
# ### Exercise 4: count the bytes
# *10 minutes, easy, 2 points*
#
# 1. `queries` (batch, heads, q, d_k), `keys` (batch, heads, k, d_k) and `values`
#    (batch, heads, k, d_v) are tensors of one type; only shapes and type matter.
# 2. `naive`: bytes of all scores plus all weights, each (batch, heads, q, k), in the type of the
#    queries.
# 3. `blocked`: bytes of one block of scores, (batch, heads, q, `block`), in the type of the queries
#    (a block never holds more than all k keys), plus for each query one running maximum, one
#    running sum and a running output of width d_v, these three in **float32** whatever the type.
# 4. Inputs and final output are not counted. Return `(naive, blocked)`, two whole numbers.
#
# Example: one sentence, one head, q = k = 10, d_v = 3, float16, block 4: naive is 2 · 100 · 2 =
# 400; blocked is 40 · 2 + 10 · (1 + 1 + 3) · 4 = 280.


# %% nbgrader={"grade_id": "attention_memory", "solution": true}
def attention_memory(queries, keys, values, block):
    """Count the bytes that attention needs beside its inputs and its output.

    queries: (batch, heads, q, d_k). keys: (batch, heads, k, d_k). values: (batch, heads, k, d_v).
    block: int, keys in a block. Returns (naive, blocked), ints.
    """
    ### BEGIN SOLUTION
    batch, heads, q, _ = queries.shape
    k, size = keys.shape[2], queries.element_size()
    rows = batch * heads * q
    naive = 2 * rows * k * size
    blocked = rows * min(k, block) * size + rows * (2 + values.shape[3]) * 4
    return naive, blocked
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-attention_memory", "grade": true, "points": 2}
check("attention_memory", attention_memory)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Numbers in an array: the product of its sizes. Bytes: times the size of one number.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `tensor.element_size()` gives the bytes of one number. Count the rows (batch · heads · q) first;
# everything is so many numbers for each row.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# q and k may differ. A block of 64 keys holds only 10 if there are only 10. float32 has 4 bytes
# also when the inputs have 2.
# </details>

# %% [markdown]
# The prediction: 2 · 16 · 32,768² · 2 bytes = 69 GB, in one layer. (GB = 10⁹ bytes.) During
# training it would have to be kept in every layer, until the way back.

# %% [markdown]
# ## 4 PyTorch's own attention
#
# `F.scaled_dot_product_attention` chooses a fast implementation for the device. It does what you
# ask, so ask right. Three habits of it to know:
#
# - a **boolean** mask is True where a query *may* look: as in this course. But
#   `nn.MultiheadAttention` takes `key_padding_mask` with True for what may *not* be seen;
# - a mask of **floating-point numbers** is *added* to the scores;
# - `is_causal=True` aligns the triangle at the first query and the first key.
#
# Predict: 2 queries, 5 keys, `is_causal=True`. Which keys does the last query see?

# %% tags=["experiment"]
identity = torch.eye(5)[None, None]
no_preference = torch.zeros(1, 1, 2, 5)
weights = F.scaled_dot_product_attention(no_preference, identity, identity, is_causal=True)
print("weights with is_causal=True:\n", weights[0, 0])
hidden = F.scaled_dot_product_attention(
    no_preference, identity, identity, attn_mask=torch.zeros(2, 5, dtype=torch.bool)
)
print("weights where nothing may be seen:\n", hidden[0, 0])

# %% [markdown]
# The first two only: the triangle sits at the top left. For a text that is continued, the queries
# are the *last* tokens, and this is wrong. Where nothing may be seen this version of PyTorch gives
# zeros, as we do. Older versions and some devices gave NaN, so we state it in the contract.
#
# ### Exercise 5: the right mask
# *10 minutes, medium, 3 points*
#
# 1. `padding` (batch, k) is bool and True where a key is padding, which no query may see.
# 2. If `causal` is True, a query sees itself and what stands before it. The queries are the last q
#    of k tokens, q ≤ k.
# 3. Scores are scaled as usual. A query that sees nothing gets zeros.
# 4. Call `F.scaled_dot_product_attention`; do not change what comes in.
#
# Example: padding `[[F, F, F, T]]`, 2 queries, 4 keys, causal: the mask to pass is
# `[[T, T, T, F], [T, T, T, F]]`, with two axes before it for batch and heads.


# %% nbgrader={"grade_id": "library_attention", "solution": true}
def library_attention(queries, keys, values, padding, causal):
    """Attention by PyTorch's own function.

    queries: (batch, heads, q, d_k). keys: (batch, heads, k, d_k). values: (batch, heads, k, d_v).
    padding: bool (batch, k), True = is padding. causal: bool.
    Returns a tensor (batch, heads, q, d_v).
    """
    ### BEGIN SOLUTION
    q, k = queries.shape[-2], keys.shape[-2]
    mask = ~padding[:, None, None, :]
    if causal:
        positions = torch.arange(k, device=queries.device)
        mask = mask & (positions <= positions[k - q :, None])
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-library_attention", "grade": true, "points": 3}
check("library_attention", library_attention)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# One boolean mask can say it all: a pair is visible if the key is no padding *and* not later.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `~padding` with two new axes broadcasts over heads and queries. A row of key positions against a
# column of query positions makes the triangle.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The first query stands at position k − q, not 0. And PyTorch refuses a mask together with
# `is_causal`.
# </details>

# %% [markdown]
# ## 5 Attention in blocks
#
# The output of a query is a weighted average of values: two sums over keys, of powers and of powers
# times values. Sums can be taken block by block. What stands in the way is the maximum that a
# stable softmax subtracts: it is known only when all keys have been seen. The way out: subtract the
# largest score *so far*, and when a larger one turns up, correct what has been summed.
#
# Step through it. Predict before each step: for which queries will the old sums shrink? In which of
# the four rows will they shrink in *every* step?

# %% tags=["explorer"]
from attention_course.explorers import block_stepper

block_stepper()

# %% [markdown]
# Query 4 has rising scores: each block brings a new maximum, and the old sums shrink each time.
# Query 2 met its largest score in the first block: never again. At the end all outputs agree with
# the softmax of whole rows. It is no approximation.
#
# If $m$ is the old maximum, $m'$ the new one, and the sums were made with $e^{s-m}$, then
# $e^{s-m'} = e^{s-m} \cdot e^{m-m'}$: one factor $e^{m-m'} \le 1$ corrects sum and output alike.
# (Milakov and Gimelshein 2018, Algorithm 3, for the sum; Dao et al. 2022, Algorithm 1, with the
# output.)
#
# ### Exercise 6: one block more
# *12 minutes, medium, 4 points*
#
# 1. `scores` (..., q, b) are the scaled scores of one block, −∞ where a key is hidden; `values`
#    (..., b, d_v) are its values.
# 2. `largest`, `total` (..., q) and `output` (..., q, d_v) say what has been seen before: the
#    largest score m, the sum of all $e^{s-m}$, and the sum of all $e^{s-m}$ times value. The output
#    is **not** divided by the sum.
# 3. Return the three for everything seen so far, this block included, as new tensors:
#    `(largest, total, output)`.
# 4. Before the first block they are −∞, 0 and 0. A row that still has seen no visible key keeps
#    exactly these values: no NaN.
# 5. Scores may be near ±thousands. Leading axes are the same everywhere; there may be none.
#
# Example: one query that has seen one score 0 with the value `[6.]`: largest 0, total 1, output
# `[6.]`. A block with one score log 2 and the value `[3.]` comes: largest log 2, total
# 0.5 + 1 = 1.5, output `[0.5 · 6 + 1 · 3]` = `[6.]`; divided by the total at the very end: 4.


# %% nbgrader={"grade_id": "merge_block", "solution": true}
def merge_block(scores, values, largest, total, output):
    """Take one block of keys into the running numbers of each query.

    scores: (..., q, b). values: (..., b, d_v). largest, total: (..., q). output: (..., q, d_v).
    Returns (largest, total, output) of the same shapes.
    """
    ### BEGIN SOLUTION
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    base = new_largest.masked_fill(new_largest == -torch.inf, 0.0)
    shrink = torch.exp(largest - base)
    powers = torch.exp(scores - base[..., None])
    new_total = shrink * total + powers.sum(dim=-1)
    return new_largest, new_total, shrink[..., None] * output + powers @ values
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-merge_block", "grade": true, "points": 4}
check("merge_block", merge_block)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The new maximum is the larger of two. Everything old is multiplied by one factor; the block's
# powers are taken with the new maximum.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `torch.maximum(largest, scores.amax(-1))`; a factor exp(old − new); powers exp(scores − new);
# then two sums: factor · old + new part.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# −∞ − (−∞) is NaN. A row that has seen nothing needs another number to subtract, 0 for example,
# while the maximum that is returned stays −∞. The factor needs one more axis for the output.
# </details>

# %% [markdown]
# ### Exercise 7: attention that never holds all scores
# *20 minutes, hard, 5 points*
#
# 1. queries (batch, q, d_k), keys (batch, k, d_k), values (batch, k, d_v). ("batch" may stand for
#    sentences times heads.) Scores are scaled by $1/\sqrt{d_k}$.
# 2. Go through the keys in blocks of `block`; the last one may be smaller.
# 3. `visible` is None or bool (batch, k): False hides a key from all queries. With `causal`, a
#    query sees itself and what is before it; the queries are the last q of k tokens, q ≤ k.
# 4. A query that sees no key gets zeros. Scores may be near ±thousands.
# 5. **No tensor that you make may have more than batch · max(q, k) · max(block, d_k, d_v)
#    elements**, masks included. The check watches every operation.
# 6. Return the output (batch, q, d_v), equal to that of plain attention. Do without PyTorch's own
#    attention functions; you may call exercise 6.
#
# Example: with block ≥ k there is one block, and it is plain attention.


# %% nbgrader={"grade_id": "blocked_attention", "solution": true}
def blocked_attention(queries, keys, values, block, visible=None, causal=False):
    """Exact attention without an array of all pairs.

    queries: (batch, q, d_k). keys: (batch, k, d_k). values: (batch, k, d_v). block: int.
    visible: None or bool (batch, k), True = may be seen. causal: bool.
    Returns a tensor (batch, q, d_v).
    """
    ### BEGIN SOLUTION
    batch, q, d_k = queries.shape
    k = keys.shape[1]
    largest = queries.new_full((batch, q), -torch.inf)
    total = queries.new_zeros(batch, q)
    output = queries.new_zeros(batch, q, values.shape[2])
    positions = torch.arange(k, device=queries.device)
    for start in range(0, k, block):
        part = slice(start, start + block)
        scores = queries @ keys[:, part].transpose(1, 2) / d_k**0.5
        if visible is not None:
            scores = scores.masked_fill(~visible[:, None, part], -torch.inf)
        if causal:
            later = positions[part] > positions[k - q :, None]
            scores = scores.masked_fill(later, -torch.inf)
        largest, total, output = merge_block(scores, values[:, part], largest, total, output)
    return output / total.masked_fill(total == 0, 1.0)[..., None]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-blocked_attention", "grade": true, "points": 5}
check("blocked_attention", blocked_attention)

# %% [markdown]
# Any public case can be taken in hand. Case 4 has everything at once; `allowed` is the limit of
# point 5, which your function does not get.

# %%
for name, value in example("blocked_attention", 4).items():
    print(name, tuple(value.shape) if isinstance(value, torch.Tensor) else value)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Start with −∞, 0 and 0. A loop over blocks: scores of this block, hide what is hidden, merge.
# Divide once, after the loop.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `range(0, k, block)` gives where blocks start; a slice that ends beyond k is cut by itself. The
# block's part of the mask: `visible[:, None, part]`, and positions of *its* keys against those of
# the queries.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Keys of the second block do not stand at positions 0, 1, … A (q, k) triangle made before the loop
# is an array of all pairs, too. At the end, 0/0 where nothing was seen.
# </details>

# %% [markdown]
# ### Measured: time and memory against n
#
# Three ways, one head, d = 64:
#
# - **naive**: all scores, all weights;
# - **row blocks**: 64 queries at a time against all keys. No running maximum is needed, as each row
#   is whole; but 64 × n numbers are held;
# - **library**: `scaled_dot_product_attention`, which works in blocks of both.
#
# Claim: all three need time ~ n². Naive memory grows like n², the other two like n. Predict the
# slopes in a log-log plot, and which one is fastest.

# %% tags=["experiment"]
from functools import partial

from attention_course.measuring import peak_bytes


def naive_attention(queries, keys, values):
    """All scores at once."""
    scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values


def attention_in_row_blocks(queries, keys, values, rows=64):
    """Some queries at a time, each against all keys."""
    parts = [naive_attention(part, keys, values) for part in queries.split(rows, dim=-2)]
    return torch.cat(parts, dim=-2)


ways = {
    "naive": naive_attention,
    "row blocks": attention_in_row_blocks,
    "library": F.scaled_dot_product_attention,
}
tokens = [256, 512, 1024, 2048]
seconds = {name: np.zeros((5, len(tokens))) for name in ways}
for seed in range(5):
    for column, n in enumerate(tokens):
        generator = torch.Generator().manual_seed(seed)
        parts = [torch.randn(1, 1, n, 64, generator=generator).to(device) for _ in range(3)]
        for name, way in ways.items():
            seconds[name][seed, column] = seconds_of(way, *parts)
memory = {name: [] for name in ways}
for n in tokens:
    parts = [torch.zeros(1, 1, n, 64).to(device) for _ in range(3)]
    for name, way in ways.items():
        memory[name].append(peak_bytes(partial(way, *parts), device))
fig, axes = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
for name in ways:
    spread(axes[0], tokens, 1e3 * seconds[name], name)
    axes[1].plot(tokens, np.array(memory[name]) / 1e6, "o-", label=name)
for ax, what in zip(axes, ["ms", "MB at the peak, without inputs"], strict=True):
    ax.set(xscale="log", yscale="log", xlabel="tokens n", ylabel=what)
    ax.set_xticks(tokens, tokens)
    ax.minorticks_off()
    ax.legend(fontsize=8)
plt.show()

steep, slopes = {}, {}
for name in ways:
    found = slopes[name] = np.array([slope(tokens[1:], row[1:]) for row in seconds[name]])
    steep[name] = slope(tokens, memory[name])
    print(
        f"{name:<11} time ~ n^{np.median(found):.2f} ({found.min():.2f} to {found.max():.2f}), "
        f"memory ~ n^{steep[name]:.2f}; n = {tokens[-1]}: "
        f"{1e3 * np.median(seconds[name][:, -1]):.0f} ms, {memory[name][-1] / 1e6:.1f} MB"
    )
holds = steep["naive"] > 1.8 and max(steep["row blocks"], steep["library"]) < 1.2
print(f"Memory n² against n: {'supported' if holds else 'NOT supported'} by this run.")
uneven = unevenness(*seconds.values())
for name, found in slopes.items():
    print(f"Time ~ n² (±0.35), {name}: {settled(abs(found - 2) < 0.35, uneven)}.")
ratios = seconds["naive"][:, -1] / seconds["library"][:, -1]
print(
    f"At n = {tokens[-1]} the library is {np.median(ratios):.1f} times as fast as naive attention "
    f"({min(ratios):.1f} to {max(ratios):.1f})."
)
print(quiet_or_busy(uneven))

# %% [markdown]
# Left the time of one call, right the memory, both axes logarithmic: a power of n is a straight
# line. On the CPU the memory is counted from the results of all operations; what the library's
# function needs inside is not seen (it is a few blocks). All three multiply equally often. If naive
# attention is slower, it is because scores and weights travel to memory and back; a block stays
# close to the processor. A slope above 2 has the same reason: from some n on the scores no longer
# fit into the processor's cache. A slope below 2 comes from fixed costs at small n. (“Left open”
# means that the five passes do not agree.) That is the point of FlashAttention, too: *fewer bytes
# moved*, not fewer operations. On a GPU the same reasoning holds, with other numbers, not measured
# here.

# %% [markdown]
# ### Measured: three kinds of layer
#
# Vaswani et al. (2017), Table 1: work for each layer is n²·d for self-attention, n·d² for a
# recurrent layer, w·n·d² for a convolution of width w. So time should grow with slopes 2, 1 and 1.
# The recurrent layer must also *wait*: n steps, one after the other.
#
# Predict, for d = 64: which is the fastest at n = 128? At n = 2048? By what factor do RNN and
# convolution differ, whose work grows alike?

# %% tags=["experiment"]
from attention_course.claims import report

WIDTH = 64
recurrent = nn.RNN(WIDTH, WIDTH, batch_first=True).to(device)
convolution = nn.Conv1d(WIDTH, WIDTH, 3, padding=1).to(device)
layers = {
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "recurrent": recurrent,
    "convolution": lambda x: convolution(x.transpose(1, 2)),
}
tokens = [128, 256, 512, 1024, 2048]
seconds = {name: np.zeros((5, len(tokens))) for name in layers}
for seed in range(5):
    for column, n in enumerate(tokens):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(1, n, WIDTH, generator=generator).to(device)
        for name, layer in layers.items():
            seconds[name][seed, column] = seconds_of(layer, x)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name in layers:
    spread(ax, tokens, 1e3 * seconds[name], name)
ax.set(xscale="log", yscale="log", xlabel="tokens n", ylabel="ms for a layer")
ax.set_xticks(tokens, tokens)
ax.minorticks_off()
ax.legend(fontsize=8)
plt.show()

expected = {"attention": 2, "recurrent": 1, "convolution": 1}
slopes = {}
for name in layers:
    found = slopes[name] = np.array([slope(tokens[1:], row[1:]) for row in seconds[name]])
    print(
        f"{name:<12} time ~ n^{np.median(found):.2f} ({found.min():.2f} to {found.max():.2f}), "
        f"from the table: {expected[name]}"
    )
for column in (0, -1):
    times = {name: np.median(seconds[name][:, column]) for name in layers}
    apart = times["recurrent"] / times["convolution"]
    print(
        f"n = {tokens[column]}: fastest is {min(times, key=times.get)}; "
        f"recurrent / convolution = {apart:.0f}"
    )
uneven = unevenness(*seconds.values())
for name, found in slopes.items():
    holds = abs(found - expected[name]) < 0.35
    print(f"Slope of {name} as in the table (±0.35): {settled(holds, uneven)}.")
print(quiet_or_busy(uneven))
middle = {name: np.median(found) for name, found in slopes.items()}
fits = all(abs(middle[name] - expected[name]) < 0.35 for name in layers)
effect = ", ".join(f"{name}: time ~ n^{power:.2f}" for name, power in middle.items())
report("C7", fits, f"{effect} (medians of 5 seeds)", timed=True)

# %% [markdown]
# One line for each kind of layer, both axes logarithmic. Where a slope comes out below the table's,
# fixed costs still weigh at small n; what comes out otherwise when you run the cell again came from
# a busy machine. The factor between RNN and convolution is not in the table's work column, which is
# nearly the same for both. It is what waiting costs: n small products in a row against one large
# one.

# %% [markdown]
# ## 6 Few bits
#
# A float32 has 8 bits for the exponent and 23 for the digits. **bfloat16** keeps the exponent and
# has 7 for the digits: the same range, two to three decimal digits, half the bytes. **float16** has
# 5 and 10: more digits, but nothing above 65,504.
#
# Two questions. Does the error of attention grow with the number of keys? And what happens to a
# *running sum*? Predict both: the relative error at n = 16 and at n = 4096; and 1 + 1 + 1 + …, one
# thousand times, in bfloat16.

# %% tags=["experiment"]
running = torch.zeros((), dtype=torch.bfloat16)
for _ in range(1000):
    running = running + torch.ones((), dtype=torch.bfloat16)
print("1 + 1 + … (1000 times) in bfloat16:", running.item())
print("300 · 300 in float16:", (torch.tensor(300.0).half() * 300).item())


def error_of(way, dtype, n, seed):
    """Relative error against float64, for inputs that bfloat16 can hold exactly."""
    generator = torch.Generator().manual_seed(seed)
    parts = [torch.randn(1, 1, length, 64, generator=generator).bfloat16() for length in (32, n, n)]
    exact = naive_attention(*(part.double() for part in parts))
    found = way(*(part.to(dtype) for part in parts)).double()
    return float((found - exact).norm() / exact.norm())


keys_counts = [16, 64, 256, 1024, 4096]
trials = {
    "bfloat16, step by step": (naive_attention, torch.bfloat16),
    "bfloat16, library": (F.scaled_dot_product_attention, torch.bfloat16),
    "float32, step by step": (naive_attention, torch.float32),
}
errors = {
    name: np.array([[error_of(*trial, n, seed) for n in keys_counts] for seed in range(5)])
    for name, trial in trials.items()
}
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, runs in errors.items():
    spread(ax, keys_counts, runs, name)
ax.set(xscale="log", yscale="log", xlabel="keys n", ylabel="relative error of the output")
ax.set_xticks(keys_counts, keys_counts)
ax.minorticks_off()
ax.legend(fontsize=8)
plt.show()
for name, runs in errors.items():
    growth = np.median(runs[:, -1] / runs[:, 0])
    print(
        f"{name:<23} {np.median(runs[:, 0]):.1e} at n = 16, {np.median(runs[:, -1]):.1e} at "
        f"n = 4096: {growth:.1f} times"
    )
apart = np.median(errors["bfloat16, library"] / errors["float32, step by step"])
print(f"bfloat16 (library) errs about {apart:.0f} times as much as float32.")
stable = max(runs[:, -1].max() / runs[:, 0].min() for runs in errors.values()) < 10
verdict = "supported" if stable else "NOT supported"
print(f"'The relative error hardly depends on n' (less than 10 times): {verdict} by this run.")

# %% [markdown]
# The running sum stops at 256: from there on the next number that bfloat16 knows is 258, and
# 256 + 1 is rounded back. Attention is spared this, since products are summed in float32 inside one
# operation and only the *result* is rounded. What is rounded can be seen: step by step, scores and
# weights are rounded as well; in one piece, less is. So: products in bfloat16, sums in float32.
#
# PyTorch's **autocast** does that: inside it, matrix products run in 16 bits, while the weights
# stay in float32, so that an optimiser's small steps are not lost (Micikevicius et al. 2018,
# Section 3.1). The loss, with its logarithm of a sum, belongs in float32. Here it is the
# **cross-entropy**: at each token, minus the logarithm of the probability that the softmax of its
# logits gives to the right class.
#
# ### Exercise 8: a loss in mixed precision
# *12 minutes, medium, 3 points*
#
# 1. `model(x)` gives logits (batch, length, vocabulary). Run it under `torch.autocast` for the
#    device on which `x` lies, with `dtype=torch.bfloat16`.
# 2. The loss is the cross-entropy in nats, the **mean over all tokens with a target**; targets of
#    −100 are left out. At least one target is there.
# 3. From the logits on, everything is computed in float32 (or float64), and so is the result, a
#    tensor without axes. It stays finite for logits of some hundred.
# 4. Gradients reach the model; the type of its weights stays as it is.
#
# Example: logits `[[[0., log 3], [5., 5.]]]` and targets `[[1, -100]]` give −log 0.75 = 0.288.


# %% nbgrader={"grade_id": "mixed_loss", "solution": true}
def mixed_loss(model, x, targets):
    """Cross-entropy of a model that runs in bfloat16, computed in float32.

    model: module, x (batch, length, d_model) to logits (batch, length, vocabulary).
    targets: int64 (batch, length), -100 where there is none. Returns a tensor without axes.
    """
    ### BEGIN SOLUTION
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-mixed_loss", "grade": true, "points": 3}
check("mixed_loss", mixed_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two parts: the model inside `with torch.autocast(...)`, the loss after it, on logits of another
# type.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `x.device.type` is what autocast wants to know. `F.cross_entropy` leaves −100 out by itself and
# divides by the number of the others; it wants classes on the second axis, or a flat batch.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The softmax is part of the loss: turn to float32 *before* it. `model.bfloat16()` changes the
# caller's weights.
# </details>

# %% [markdown]
# ## 7 A big batch in pieces
#
# If a batch does not fit, cut it into *micro-batches*, add up their gradients, and step once.
# `backward` adds to what is in `.grad`, so the adding is free; and when each micro-batch has had
# its own `backward`, its graph can go before the next one comes.
#
# The pitfall is the mean. Predict: micro-batch A holds 2 tokens with losses 1 and 3, micro-batch B
# one token with loss 8. What is the mean over tokens? And the mean of the two means?

# %% [markdown]
# (1 + 3 + 8)/3 = 4, but the mean of 2 and 8 is 5. The single token of B weighs as much as the two
# of A together. Well-known libraries have made this mistake: it raises no error.
#
# ### Exercise 9: one step, several micro-batches
# *14 minutes, medium, 4 points*
#
# 1. `batches` is a list of pairs `(x, targets)`: x (rows, length, d_model), targets (rows, length)
#    with −100 where there is none. `model(x)` gives logits (rows, length, classes).
# 2. Make **one** step of the `optimizer`, as if all micro-batches were one batch: the loss is the
#    cross-entropy, mean over **all** tokens with a target in **all** micro-batches. There is at
#    least one; but a micro-batch may have none.
# 3. Old gradients lie in the parameters: they must not count. The optimiser has `zero_grad()` and
#    `step()`.
# 4. Send micro-batches through the model one by one, with a backward pass for each (one without
#    any target may be left out), so that only one graph is alive.
# 5. Return the loss before the step, a number.
#
# Example: with the losses of A and B above, the result is 4.


# %% nbgrader={"grade_id": "accumulated_step", "solution": true}
def accumulated_step(model, optimizer, batches):
    """One step of training over several micro-batches.

    model: module. optimizer: of its parameters. batches: list of (x, targets), shapes
    (rows, length, d_model) and (rows, length). Returns the mean loss over all tokens, a number.
    """
    ### BEGIN SOLUTION
    tokens = sum((targets != -100).sum().item() for _, targets in batches)
    optimizer.zero_grad()
    loss = 0.0
    for x, targets in batches:
        logits = model(x).flatten(0, 1)
        part = F.cross_entropy(logits, targets.flatten(), reduction="sum") / tokens
        part.backward()
        loss += part.item()
    optimizer.step()
    return loss
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-accumulated_step", "grade": true, "points": 4}
check("accumulated_step", accumulated_step)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A mean over everything is a sum over everything, divided by one number. That number can be counted
# before the model has run.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Count tokens with a target in all micro-batches. Clear once, then a loop: sum of losses over the
# count, backward, add `.item()`. Step once.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The *mean* of a micro-batch without targets is 0/0; the *sum* is 0. And `zero_grad` inside the
# loop throws away what was added up.
# </details>

# %% [markdown]
# ## 8 Keys and values that are kept
#
# A model that writes text adds one token at a time. Token 100 attends to the keys of tokens
# 0 … 99, and these are *the same* as they were for token 99: they depend on their own token only,
# and later tokens change nothing about earlier ones (the mask is causal). So keep them.
#
# Predict: to write n tokens, how many positions are projected to keys in all, with a cache and
# without? And how does the time of *one* step grow with the text in each case?

# %% tags=["experiment"]
to_three = nn.Linear(64, 192, bias=False).to(device)


def step_without_cache(x):
    """Project and attend for the whole text, though only the last row is wanted."""
    queries, keys, values = to_three(x).chunk(3, dim=-1)
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)[:, -1]


def step_with_cache(x):
    """Project one token; keys and values of the others are at hand (here: any numbers)."""
    queries, _, _ = to_three(x[:, -1:]).chunk(3, dim=-1)
    return F.scaled_dot_product_attention(queries, x, x)


lengths = [64, 128, 256, 512, 1024, 2048]
steps = {"without cache": step_without_cache, "with cache": step_with_cache}
seconds = {name: np.zeros((5, len(lengths))) for name in steps}
for seed in range(5):
    for column, n in enumerate(lengths):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(1, n, 64, generator=generator).to(device)
        for name, step in steps.items():
            seconds[name][seed, column] = seconds_of(step, x)
fig, ax = plt.subplots(figsize=(6, 3.3), layout="constrained")
for name in steps:
    spread(ax, lengths, 1e3 * seconds[name], name)
ax.set(xscale="log", yscale="log", xlabel="tokens so far", ylabel="ms for the next token")
ax.set_xticks(lengths, lengths)
ax.minorticks_off()
ax.legend(fontsize=8)
plt.show()
for name in steps:
    print(f"{name:<14} time ~ n^{slope(lengths[2:], np.median(seconds[name], axis=0)[2:]):.2f}")
ratios = seconds["without cache"] / seconds["with cache"]
print("times faster with a cache:")
for column, n in enumerate(lengths):
    row = ratios[:, column]
    print(f"  n = {n:<5} {np.median(row):7.1f}   ({row.min():.1f} to {row.max():.1f})")
uneven = unevenness(*seconds.values())
grows = ratios[:, -1] > 2 * ratios[:, 0]
print(f"'The gain grows with the text' (at least doubles): {settled(grows, uneven)}.")
print(quiet_or_busy(uneven))
n = lengths[-1]
print(f"Positions projected to write {n} tokens: {n} with, {n * (n + 1) // 2:,} without.")

# %% [markdown]
# n against n(n + 1)/2 projections. One step without a cache takes n projections and n² scores (all
# but a row of them thrown away), one with a cache takes 1 and n; at small n fixed costs hide it.
# (Putting the new key beside the old ones costs time as well; it is not in this figure.) What a
# cache costs is memory: keys and values of all tokens, in every layer. And each step must *read*
# all of it for very little arithmetic (Shazeer 2019, *Fast Transformer Decoding: One Write-Head is
# All You Need*). Section 9 comes back to that.
#
# ### Exercise 10: a layer with a memory
# *15 minutes, hard, 4 points*
#
# 1. `x` (batch, new, d_model) are the tokens that have just come: one, or several at once (a
#    prompt). `cache` is None in the first call, and afterwards what your last call returned:
#    `(keys, values)` of **all** earlier tokens, shapes (batch, past, d_k) and (batch, past, d_v).
# 2. `positions` (longest, d_model) is a table. Add to each token the row of **its place in the
#    whole text**: the first new token stands at place `past`.
# 3. The sums go through `to_queries`, `to_keys` and `to_values`, which map (batch, m, d_model) to
#    (batch, m, d): **each token once**. The check counts.
# 4. Attention is scaled and causal: a new token sees all earlier tokens, itself, and no later one.
# 5. Return `(output, (keys, values))`: output (batch, new, d_v); keys and values of all tokens,
#    earlier ones first. The cache that came in is left as it was.
#
# Example: fed in pieces of any sizes, the outputs side by side are those of the whole text at once.


# %% nbgrader={"grade_id": "cached_attention", "solution": true}
def cached_attention(x, positions, to_queries, to_keys, to_values, cache=None):
    """Attend from new tokens to all tokens so far.

    x: (batch, new, d_model). positions: (longest, d_model). to_queries, to_keys, to_values: maps
    of the last axis. cache: None or (keys, values), (batch, past, d_k) and (batch, past, d_v).
    Returns (output, (keys, values)).
    """
    ### BEGIN SOLUTION
    past = 0 if cache is None else cache[0].shape[1]
    length = past + x.shape[1]
    placed = x + positions[past:length]
    keys, values = to_keys(placed), to_values(placed)
    if cache is not None:
        keys = torch.cat([cache[0], keys], dim=1)
        values = torch.cat([cache[1], values], dim=1)
    places = torch.arange(length, device=x.device)
    mask = places <= places[past:, None]
    output = F.scaled_dot_product_attention(to_queries(placed), keys, values, attn_mask=mask)
    return output, (keys, values)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-cached_attention", "grade": true, "points": 4}
check("cached_attention", cached_attention)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Project the new tokens only. Join their keys and values to the old ones. The queries are the last
# tokens of the text: you have met that mask.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The cache itself says how many tokens there were. Slice the table, add, project, `torch.cat` along
# the length, mask, attend.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Positions must not start at 0 in every call. With one new token no mask is needed; with a prompt
# of several tokens, or several in the middle of a text, one is.
# </details>

# %% [markdown]
# ## 9 What limits it?
#
# A processor computes at some *peak* (operations for each second) and its memory delivers at some
# *bandwidth* (bytes for each second). An operation that does F operations on B bytes needs at least
# F/peak seconds for the one and B/bandwidth for the other; both can go on side by side. So the
# *longer* of the two decides. F/B is the **arithmetic intensity**. Drawn against it, the best
# possible speed is a roof: a slope, min(peak, intensity · bandwidth), and then a flat part
# (Williams, Waterman and Patterson 2009).
#
# Let us measure the two numbers of *this* machine, one core, and see whether products of m vectors
# with a 4096 × 4096 matrix keep to the roof. (A GFLOP/s is 10⁹ operations for each second.)
# Predict: at m = 1, is arithmetic or memory the limit?

# %% tags=["experiment"]
side = 4096
factor = torch.randn(side, side, generator=torch.Generator().manual_seed(0)).to(device)
square = factor[:1024, :1024].contiguous()
peak = max(2 * 1024**3 / seconds_of(torch.matmul, square, square, at_least=0.2) for _ in range(3))
target = torch.empty_like(factor)
moved = 2 * factor.nbytes  # each number is read once and written once
bandwidth = max(moved / seconds_of(target.copy_, factor, at_least=0.1) for _ in range(3))
ridge = peak / bandwidth
print(
    f"peak {peak / 1e9:.0f} GFLOP/s, bandwidth {bandwidth / 1e9:.1f} GB/s: the roof bends at "
    f"{ridge:.0f} operations for each byte"
)

heights = [1, 4, 16, 64, 256]
intensity = np.array([2 * m * side**2 / (4 * (side**2 + 2 * m * side)) for m in heights])
speed = np.zeros((5, len(heights)))
for seed in range(5):
    for column, m in enumerate(heights):
        rows = torch.randn(m, side, generator=torch.Generator().manual_seed(seed)).to(device)
        speed[seed, column] = 2 * m * side**2 / seconds_of(torch.matmul, rows, factor)
axis = np.geomspace(0.1, 1000, 200)
roof = np.minimum(peak, axis * bandwidth)
fig, ax = plt.subplots(figsize=(6.5, 3.7), layout="constrained")
ax.plot(axis, roof / 1e9, "k-", label="roof, measured")
spread(ax, intensity, speed / 1e9, "(m, 4096) @ (4096, 4096)")
for m, x, y in zip(heights, intensity, speed.mean(axis=0), strict=True):
    ax.annotate(f"m = {m}", (x, y / 1e9), (4, -12), textcoords="offset points", fontsize=8)
ax.set(xscale="log", yscale="log", xlabel="operations for each byte", ylabel="GFLOP/s")
ax.legend(fontsize=8)
plt.show()

share = speed / np.minimum(peak, intensity * bandwidth)
for m, x, part in zip(heights, intensity, np.median(share, axis=0), strict=True):
    limit = "memory" if x < ridge else "arithmetic"
    print(f"m = {m:<4} intensity {x:6.1f}, limited by {limit:<10} {part:4.0%} of the roof")
kept, uneven = np.all((share > 1 / 3) & (share < 1.5), axis=1), unevenness(1 / speed)
print(f"'Speeds lie between a third of the roof and the roof (+50 %)': {settled(kept, uneven)}.")
print(quiet_or_busy(uneven))

# %% [markdown]
# The black line is the roof; the points are products of 1 to 256 vectors, from left to right.
#
# One vector with a matrix has half an operation for each byte: each weight is fetched for one
# multiplication and one addition. That is a model that writes text for a single reader. With many
# vectors the same weights serve all of them. Points above the roof are possible: part of the matrix
# may still lie in a cache, and then less than B bytes travel from memory. Points far below it say
# that something else is in the way (a busy machine, a poor implementation).
#
# And attention in blocks? For long texts naive attention reads and writes scores and weights, n²
# numbers each, for 4·n²·d operations: about d/4 operations for each byte of float32, whatever n. In
# blocks only inputs and output travel, 4·n·d numbers: some n/4 operations for each byte, as long as
# a block fits in fast memory. From first principles the gain should be largest where the roof bends
# late, as on GPUs.

# %% [markdown]
# ### In words: more work, less time
# *8 minutes, 2 points, marked by hand*
#
# Blocked attention does all multiplications of naive attention, and some more for rescaling. In
# three to six sentences: (a) Why is its result not an approximation? (b) Why can it be faster all
# the same? Use the words *bytes* and *arithmetic intensity*.

# %% [markdown] nbgrader={"grade_id": "why-blocks", "grade": true, "solution": true, "points": 2}
# (a) The output of a query is a quotient of two sums over keys, and both can be summed block by
# block. Subtracting a maximum multiplies both sums by the same factor, which cancels; when the
# maximum rises, multiplying the old sums by exp(old − new) turns them into exactly what they would
# have been with the new one. So after the last block the quotient is that of the full softmax, up
# to rounding.
#
# (b) Naive attention writes n² scores to memory, reads them for the softmax, writes n² weights and
# reads them again. That is few operations for each byte: a low arithmetic intensity, below the bend
# of the roof, so memory sets the time. In blocks, scores are made, used and dropped near the
# processor; only queries, keys, values and outputs travel. The operations are a little more, the
# bytes far fewer, the intensity higher.
#
# *Mark scheme.* 1 point for (a): sums can be split (½), and the correction by one factor is exact
# because it cancels or because exp(s − m)·exp(m − m′) = exp(s − m′) (½). 1 point for (b): time is
# set by bytes moved at low intensity (½), and scores or weights no longer travel (½). "It needs
# less memory" alone, without why that saves *time*: 0 for (b).

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | "expected all tensors on the same device" | tensor made without `device=`, or no buffer |
# | result turns into float32 | a float32 helper tensor meets bfloat16 |
# | times of microseconds for huge products | clock stopped at the handing over: wait |
# | the first of the measured times stands out | no warm-up, or no wait after it |
# | padding gets all the weight | True means the opposite in the two masks |
# | right for whole texts, wrong when continued | triangle aligned at the first key |
# | blocked result off when scores rise | old sum or old output not rescaled |
# | NaN where a block is hidden | −∞ − (−∞) |
# | right only if the block divides k | last block dropped |
# | loss jumps, has three digits, or is infinite | softmax or loss in 16 bits |
# | accumulation trains differently from the big batch | mean of means; old gradients |
# | the second generated word makes no sense | positions start at 0 again, or cache not extended |

# %% [markdown]
# ## Recap
#
# - Decide *where* once. Parameters and buffers move; what forward makes, it makes at its input.
# - Warm up, wait, take the median. Count bytes before you run.
# - Attention in blocks is exact: a running maximum, and one factor that corrects sum and output.
# - Products in 16 bits, sums, softmax and loss in 32.
# - A mean over everything is one sum over one count. Keys of old tokens do not change: keep them.
# - Bytes or operations: the longer of two times decides.
#
# Not shown here: any number from a GPU. All figures come from the machine that ran this notebook.
#
# Next: two stacks of blocks, and a sentence that comes out as another one.

# %% [markdown]
# ## Challenge: the roofline
# *15 minutes, medium, 2 points*
#
# 1. A product (m, k) @ (k, n). Each entry of the result takes k multiplications and k additions
#    (start from 0); count both.
# 2. Both factors are read once and the result is written once, `bytes_per_number` bytes for each
#    number.
# 3. `intensity`: operations for each byte. `seconds`: the shortest possible time, with `peak`
#    operations for each second and `bandwidth` bytes for each second, both at work side by side.
# 4. Return `(intensity, seconds)`.
#
# Example: m = k = n = 2, 4 bytes, peak 8, bandwidth 12: 16 operations, 48 bytes; intensity 1/3;
# 2 s of arithmetic, 4 s of memory: 4 seconds.


# %% nbgrader={"grade_id": "roofline", "solution": true}
def roofline(m, k, n, bytes_per_number, peak, bandwidth):
    """Say what limits a matrix product.

    m, k, n, bytes_per_number: ints. peak: operations per second. bandwidth: bytes per second.
    Returns (intensity, seconds), two numbers.
    """
    ### BEGIN SOLUTION
    operations = 2 * m * k * n
    moved = bytes_per_number * (m * k + k * n + m * n)
    return operations / moved, max(operations / peak, moved / bandwidth)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-roofline", "grade": true, "points": 2}
check("roofline", roofline)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Count two things, operations and bytes. Each gives a time.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Three matrices travel. Two workers side by side: when are both done?
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The times are not added, and the shorter one does not count.
# </details>
