# %% [markdown]
# # 13 Beyond
#
# The first transformers left things open. Their view ends at the edge of a segment. BERT hides
# words and predicts each as if the other hidden ones were not there. Position and meaning are added
# into one vector. Every layer has weights of its own, every language shares one vocabulary, and
# somebody pays for the electricity. This chapter takes one answer to each, small and exact.
#
# **You will be able to**
#
# - carry states of earlier segments along, and say how far a model can then look;
# - turn an order of places into the two masks of XLNet, and check that nothing sees its own answer;
# - split a score into content and position, as DeBERTa does;
# - share a layer, pack two languages in a row, and measure how a vocabulary treats a language;
# - estimate the energy and carbon of a training run, and say how wide the estimate is.
#
# | section | minutes | points |
# |---|---|---|
# | 1 A memory: Transformer-XL | 85 | 13 |
# | 2 Any order: XLNet | 75 | 12 |
# | 3 Content and position apart: DeBERTa | 45 | 6 |
# | 4 One layer, many times: ALBERT | 15 | 2 |
# | 5 Many languages: XLM | 40 | 5 |
# | 6 What it costs | 30 | 3 |
# | Recap | 5 | |
# | **in all** | **295** | **41** |
#
# The six sections stand alone: take them in any order, in two or three sittings.

# %% [markdown]
# **To read**, before or after:
#
# - Z. Dai et al. (2019), *Transformer-XL: Attentive Language Models beyond a Fixed-Length Context*,
#   Sections 3.2 and 3.3, Appendix B;
# - Z. Yang et al. (2019), *XLNet: Generalized Autoregressive Pretraining for Language
#   Understanding*, Section 2;
# - P. He et al. (2021), *DeBERTa: Decoding-enhanced BERT with Disentangled Attention*, Section 3.1;
# - Z. Lan et al. (2020), *ALBERT: A Lite BERT for Self-supervised Learning of Language
#   Representations*, Section 3.1;
# - G. Lample and A. Conneau (2019), *Cross-lingual Language Model Pretraining*, Section 3;
# - E. Strubell, A. Ganesh and A. McCallum (2019), *Energy and Policy Considerations for Deep
#   Learning in NLP*, Section 2.
#
# **Symbols.**
#
# | name | shape | meaning |
# |---|---|---|
# | `x`, `hidden` | (batch, length, d_model) | vectors of the current segment |
# | `memory` | (batch, memory, d_model) | vectors of earlier segments, oldest first |
# | `positions` | (memory + length, d_model) | a vector for each distance, the largest first |
# | `order` | (batch, length) | `order[b, t]` = the place that is predicted at step t |
# | `content`, `query` | (batch, length, d_model) | XLNet's two streams |
# | `distance` | (length, length) | number of the distance from query i to key j |
#
# **True = may be seen**, in every mask of this course. Checks run in float64 on the CPU. Later
# exercises never need your earlier answers.

# %%
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course import check, example

torch.set_num_threads(1)  # small tensors: more threads would only wait for each other

# %% [markdown]
# ## 1 A memory: Transformer-XL
#
# A long text is read in segments. Cut it, and the first word of each segment knows nothing of what
# came before. Transformer-XL keeps the vectors that went *into each layer* for the last places it
# has read, and lets the next segment look at them. They are not trained again: no gradient goes
# back into the past.
#
# Predict: segments of 4 places, a memory of 4, two layers. How far back can the last place of a
# segment look in one layer? And through both?

# %% tags=["explorer"]
from attention_course.explorers import memory_window

memory_window()

# %% [markdown]
# Within one layer, place i of a segment reaches `memory` + i places back. Each further layer adds
# about `memory` more: what it reads in the memory has itself looked back (Section 3.2 of the
# paper).

# %% [markdown]
# ### Exercise 1: what is kept
# *10 minutes, easy, 2 points*
#
# 1. `memory` (batch, memory, d_model) holds earlier places, oldest first; it may have 0 places.
#    `hidden` (batch, length, d_model) is the segment just read.
# 2. The result holds the newest `longest` places of both, oldest first; all of them if there are
#    fewer. `longest` may be smaller than the segment, and it may be 0: then the result has the
#    shape (batch, 0, d_model).
# 3. No gradient flows back through the result, neither into `memory` nor into `hidden`.
#
# Example: places a b c in the memory, d e in the segment, `longest` 4: b c d e are kept.


# %% nbgrader={"grade_id": "keep_memory", "solution": true}
def keep_memory(memory, hidden, longest):
    """Make the memory for the next segment.

    memory: (batch, memory, d_model). hidden: (batch, length, d_model). longest: most places kept.
    Returns (batch, at most longest, d_model), without history.
    """
    ### BEGIN SOLUTION
    both = torch.cat([memory, hidden], dim=1).detach()
    return both[:, max(both.shape[1] - longest, 0) :]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-keep_memory", "grade": true, "points": 2}
check("keep_memory", keep_memory)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Join, cut, and forget where the numbers came from.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `torch.cat` along axis 1; a slice from some place to the end; `.detach()`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `x[:, -n:]` is everything when n is 0. And what is new today is old tomorrow: both need detaching.
# </details>

# %% [markdown]
# ### Exercise 2: who sees the memory
# *10 minutes, easy, 3 points*
#
# Memory and segment stand in a row: columns 0 to memory − 1 are the memory, then comes the segment.
#
# 1. Return bool (length, memory + length), True = may be seen.
# 2. Query i is place memory + i of the row. It sees itself and what stands before it.
# 3. With a number `reach`, it sees at most `reach` places back, itself not counted. `None` means no
#    limit. (With a limit, all queries look equally far. The paper's authors evaluate that way.)
#
# Example: length 2, memory 2, reach 2: the rows are `[T, T, T, F]` and `[F, T, T, T]`.


# %% nbgrader={"grade_id": "memory_mask", "solution": true}
def memory_mask(length, memory, reach):
    """Say what each query of a segment sees of memory and segment.

    length, memory: numbers of places. reach: a number, or None for no limit.
    Returns bool (length, memory + length), True = may be seen.
    """
    ### BEGIN SOLUTION
    back = memory + torch.arange(length)[:, None] - torch.arange(memory + length)
    return (back >= 0) & (back <= (memory + length if reach is None else reach))
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-memory_mask", "grade": true, "points": 3}
check("memory_mask", memory_mask)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Make a table of distances first: how far is key j behind query i? Two comparisons do the rest.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Places of queries as a column, places of keys as a row; their difference is (length, keys).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Query 0 is not place 0. `torch.tril` has an argument `diagonal` for this very purpose.
# </details>

# %% [markdown]
# ### Distances instead of places
#
# Positions counted within a segment break down now: place 0 of this segment and place 0 in the
# memory would look alike. So scores know only the *distance* from query to key. Chapter 03 had one
# number for each distance. Here each has a vector r, so a query can ask for distances. The score of
# query i and key j is (Section 3.3)
#
# $$\frac{(q_i + u)\cdot k_j + (q_i + v)\cdot r_{\,i-j}}{\sqrt{\text{width}}}$$
#
# where i counts places of the row of memory and segment. u and v are learned, one each per head:
# u says which contents are interesting whoever asks, v which distances.
#
# The product $q_i\cdot r$ is cheap for *all* distances at once: one matrix, queries × distances.
# Column c of it belongs to a distance, though, and we want column j to belong to a key.

# %% [markdown]
# ### Exercise 3: the relative shift
# *20 minutes, hard, 3 points*
#
# 1. `x` is (batch, heads, queries, keys). The last `queries` places of a row of `keys` places ask;
#    memory = keys − queries. Entry (…, i, c) is the score of query i for the distance
#    **keys − 1 − c**: column 0 is the largest distance, the last column the distance 0.
# 2. Return the same shape. Entry (…, i, j) is the score of query i for the distance to key j, which
#    is memory + i − j.
# 3. Keys in the future (j > memory + i) have no distance here. Whatever you leave in those entries
#    is **not compared**, as long as the shape is right: a causal mask hides it later.
#
# Example (the distances run 2, 1, 0): from
# `[[1, 2, 3], [4, 5, 6], [7, 8, 9]]` come the rows `[3, ·, ·]`, `[5, 6, ·]`, `[7, 8, 9]`.


# %% nbgrader={"grade_id": "relative_shift", "solution": true}
def relative_shift(x):
    """Turn columns of distances into columns of keys.

    x: (batch, heads, queries, keys), column c for the distance keys − 1 − c.
    Returns the same shape, column j for key j; entries of future keys may hold anything.
    """
    ### BEGIN SOLUTION
    queries, keys = x.shape[-2:]
    flat = F.pad(x, (1, 0)).flatten(-2)
    return flat[..., queries:].unflatten(-1, (queries, keys))
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-relative_shift", "grade": true, "points": 3}
check("relative_shift", relative_shift)

# %% [markdown]
# A case in hand (`compared` tells the check which entries count; you don't get it):

# %%
case = example("relative_shift", 1)
print(tuple(case["x"].shape), "queries × keys:", tuple(case["x"].shape[-2:]))
print(case["compared"][0, 0].int())

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Which column c of row i holds the distance memory + i − j? Solve for c. Each row moves to the
# left, the last row not at all.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Either an index and `gather`; or the trick of Appendix B: put a column of zeros in front, read all
# numbers of a matrix in a row, drop the first `queries` of them, and cut the rest into rows again.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The trick needs `reshape` or `flatten`, not a transpose; and the zeros in front. With an index,
# columns past the right edge need a `clamp`.
# </details>

# %% [markdown]
# ### Exercise 4: attention with memory and distances
# *30 minutes, hard, 5 points*
#
# 1. Queries are made from `x` (batch, length, d_model); keys and values from memory and `x` in a
#    row. `memory` (batch, memory, d_model) may have 0 places; **no gradient flows into it**.
# 2. `to_queries`, `to_keys`, `to_values`, `to_positions`, `to_output` are linear layers without
#    bias. Head h gets features h · width to (h + 1) · width, with width = d_model / heads.
# 3. `positions` (memory + length, d_model) holds a vector for each distance: **row c is the
#    distance memory + length − 1 − c**. `to_positions` projects it; it is cut into heads like keys.
# 4. The score of query i and key j is as in the formula above: `content_bias` is u, `position_bias`
#    is v, both (heads, width). Both terms are divided by √width. Place i sees memory, itself and
#    what comes before it.
# 5. Softmax over keys, weighted values, heads side by side, `to_output`.
#
# Example: with all entries of `to_queries` and both biases 0, all scores are 0: place i gets the
# mean of the values of the memory and of places 0 to i.


# %% nbgrader={"grade_id": "relative_attention", "solution": true}
class RelativeAttention(nn.Module):
    """Causal attention over a memory and a segment; positions enter as distances."""

    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.to_queries = nn.Linear(d_model, d_model, bias=False)
        self.to_keys = nn.Linear(d_model, d_model, bias=False)
        self.to_values = nn.Linear(d_model, d_model, bias=False)
        self.to_positions = nn.Linear(d_model, d_model, bias=False)
        self.to_output = nn.Linear(d_model, d_model, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, d_model // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, d_model // heads))

    def forward(self, x, memory, positions):
        """Attend from a segment to its memory and itself.

        x: (batch, length, d_model). memory: (batch, memory, d_model).
        positions: (memory + length, d_model), the largest distance first.
        Returns (batch, length, d_model).
        """
        ### BEGIN SOLUTION
        length, count = x.shape[1], len(positions)
        row = torch.cat([memory.detach(), x], dim=1)
        shape = (self.heads, -1)
        queries = self.to_queries(x).unflatten(-1, shape)
        keys = self.to_keys(row).unflatten(-1, shape)
        values = self.to_values(row).unflatten(-1, shape)
        distances = self.to_positions(positions).unflatten(-1, shape)
        content = torch.einsum("bihd,bjhd->bhij", queries + self.content_bias, keys)
        where = torch.einsum("bihd,chd->bhic", queries + self.position_bias, distances)
        where = F.pad(where, (1, 0)).flatten(-2)[..., length:].unflatten(-1, (length, count))
        scores = (content + where) / keys.shape[-1] ** 0.5
        seen = torch.ones(length, count, dtype=torch.bool).tril(count - length)
        weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=-1)
        return self.to_output(torch.einsum("bhij,bjhd->bihd", weights, values).flatten(2))
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-relative_attention", "grade": true, "points": 5}
check("relative_attention", RelativeAttention)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two score matrices of the same shape: contents, and distances after the shift of exercise 3. Add,
# scale, mask, and go on as always.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# content: (queries + u) with keys. where: (queries + v) with projected positions, then shifted. u
# and v are (heads, width): add them while the axes are (…, length, heads, width), or give them an
# axis.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Detach the memory *before* it is projected: the projections themselves should learn. The triangle
# of the mask starts behind the memory.
# </details>

# %% [markdown]
# ### Does a memory help?
#
# **Claim:** with a memory, a model answers what its own segment cannot tell (Dai et al., Section
# 1).
#
# A stream of random symbols, cut into segments of 8. At every place the model must name the symbol
# **12 places before**: never in the same segment. One layer; 0, 8 or 16 places of memory. (Here
# distances are simpler than in exercise 4: one learned number for each.)
#
# Predict, for each of the three memories: at which of the 8 places of a segment will it be right?

# %% tags=["experiment"]
import matplotlib.pyplot as plt

from attention_course.beyond import train_recall

seeds = range(5)
recall = {
    f"memory {memory}": np.array([train_recall(memory, seed) for seed in seeds])
    for memory in (0, 8, 16)
}
fig, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
places = np.arange(8)
for step, (name, shares) in enumerate(recall.items()):
    ax.plot(places, shares.mean(axis=0), color=f"C{step}", label=name)
    for row in shares:
        ax.plot(places + 0.08 * (step - 1), row, ".", color=f"C{step}", ms=5)
ax.axhline(1 / 12, color="0.6", ls=":", label="guessing")
ax.set(xlabel="place in the segment", ylabel="share right", ylim=(0, 1.05))
ax.set_title("lines: mean of 5 seeds, dots: each seed", fontsize=10)
ax.legend(fontsize=8)
plt.show()

reach = {"memory 0": 8, "memory 8": 4, "memory 16": 0}  # the first place that reaches 12 back
as_predicted = all(
    shares[:, first:].min(initial=1) > 0.9 and shares[:, :first].max(initial=0) < 0.25
    for (name, shares), first in zip(recall.items(), reach.values(), strict=True)
)
for name, shares in recall.items():
    print(name, "share right at places 0 to 7:", shares.mean(axis=0).round(2))
print(
    "'Right wherever memory + place ≥ 12, guessing elsewhere': "
    f"{'supported' if as_predicted else 'NOT supported'} by these runs."
)

# %% [markdown]
# The figure has the place in the segment from left to right and the share of right answers upwards,
# one line for each memory. Place i reaches memory + i places back. Without memory that is never 12;
# with 8 it is from place 4 on; with 16 always. A memory is no vague help here: it either holds the
# symbol or it does not. Two layers with a memory of 8 *could* pass the symbol on in two hops; try
# `train_recall(8, 0, layers=2)`. In one run of ours that was hardly better than guessing at places
# 0 to 3: what is reachable is not thereby learned.

# %% [markdown]
# ### Is a memory as good as the whole text?
#
# **Claim:** reading segment by segment with a memory gives what reading all at once gives, as long
# as the memory holds all that came before.
#
# Segments of 4, a memory of 4; texts of 8 and of 12 symbols; random weights. The last segment's
# scores are compared with those of one pass over the whole text. Predict: which of the six
# differences are 0?

# %% tags=["experiment"]
from attention_course.beyond.recall import Reader


def difference(layers, length, seed):
    """Largest difference in the last segment: with a memory of 4, or all in one pass."""
    generator = torch.Generator().manual_seed(seed)
    model = Reader(layers, memory=4, generator=generator).double()
    tokens, memories = torch.randint(12, (1, length), generator=generator), None
    with torch.no_grad():
        for segment in tokens.split(4, dim=1):
            scores, memories = model(segment, memories)
        whole, _ = model(tokens, None)
    return (scores - whole[:, -4:]).abs().max().item()


print("layers   8 symbols           12 symbols          (least to most of 5 seeds)")
table = {}
for layers in (1, 2, 3):
    for length in (8, 12):
        table[layers, length] = [difference(layers, length, seed) for seed in range(5)]
    cells = (f"{min(table[layers, n]):.0e} to {max(table[layers, n]):.0e}" for n in (8, 12))
    print(f"{layers:<9}" + "  ".join(f"{cell:<18}" for cell in cells))
exact = all((max(gaps) < 1e-9) == (length == 8) for (_, length), gaps in table.items())
print(
    f"'Exact if and only if nothing was dropped': {'supported' if exact else 'NOT supported'} here."
)

# %% [markdown]
# With 8 symbols the memory holds all of the first segment, and what it holds has itself seen all
# there was: so it is exact, at any depth. With 12, the oldest 4 are dropped. (In training there is
# a second difference: the memory was computed with weights of some steps ago.)

# %% [markdown]
# ## 2 Any order: XLNet
#
# BERT hides some words and predicts each of them from what is left open. Two words hidden at the
# same time do not see each other, so the model cannot say that they belong together: "New York" and
# "Los Angeles" are possible, and then "New Angeles" seems possible, too (Yang et al.).
# A left-to-right model has no such trouble, but sees only the left.
#
# XLNet predicts **one word after the other, in a random order**. The words stay at their places;
# only masks change. Over many orders, each word is predicted from every possible context.
#
# Predict: the words below are predicted in the order "city", "York", "is", "New", "a". Which words
# does the prediction of "New" see? And which of them stand to its left?

# %% tags=["explorer"]
from attention_course.explorers import order_masks

order_masks()

# %% [markdown]
# ### Exercise 5: an order becomes two masks
# *15 minutes, medium, 3 points*
#
# A place has to be in two roles. As **content** it holds its own word, for others to read. As
# **query** it must *not* know its word: that is what it predicts. So there are two streams with two
# masks.
#
# 1. `order` is int64 (batch, length); each row is a permutation. `order[b, t]` is **the place that
#    is predicted at step t**.
# 2. Both masks are bool (batch, length, length). Row i is place i, column j is place j, whatever
#    the order.
# 3. Content: i sees j if j is predicted before i, **or j = i**.
# 4. Query: i sees j if j is predicted before i. So the place predicted first sees nothing.
# 5. Return `(content, query)`.
#
# Example: order `[2, 0, 1]`. Place 1 comes last: its query row is `[T, F, T]`, its content row
# `[T, T, T]`. Place 2 comes first: `[F, F, F]` and `[F, F, T]`.


# %% nbgrader={"grade_id": "permutation_masks", "solution": true}
def permutation_masks(order):
    """Say who sees whom if places are predicted in a given order.

    order: int64 (batch, length), `order[b, t]` = place predicted at step t.
    Returns (content, query), each bool (batch, length, length), True = may be seen.
    """
    ### BEGIN SOLUTION
    step = order.argsort(dim=-1)
    content = step[:, None, :] <= step[:, :, None]
    query = step[:, None, :] < step[:, :, None]
    return content, query
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-permutation_masks", "grade": true, "points": 3}
check("permutation_masks", permutation_masks)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# For each place, find out at which step it is predicted. Then compare steps.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `order` maps steps to places; you need the inverse. `argsort` of a permutation is its inverse.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Comparing `order[i]` with `order[j]` is right for orders that are their own inverse, such as
# [1, 0, 2], and wrong for the others.
# </details>

# %% [markdown]
# ### Exercise 6: two streams
# *20 minutes, medium, 4 points*
#
# One head, no biases, no residuals.
#
# 1. `content` and `query` are (batch, length, d_model). In the first layer, content is the words'
#    embeddings, and query one learned vector, the same at every place.
# 2. **Keys and values of both streams come from `content`**: content @ `w_k`, content @ `w_v`.
#    Queries come from each stream itself, by the same `w_q`.
# 3. Scores are divided by √d_k, the width of queries and keys. `content_mask` and `query_mask`
#    (batch, length, length) say what may be seen. Scores may be in the hundreds.
# 4. A row that may see nothing gets **zeros**.
# 5. Return `(new_query, new_content)`, each (batch, length, d_v). Gradients are checked, too.
#
# Example: a place that sees one place only gets that place's value, in either stream.


# %% nbgrader={"grade_id": "two_streams", "solution": true}
def two_streams(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Let both streams attend to contents.

    content, query: (batch, length, d_model). Masks: bool (batch, length, length), True = seen.
    w_q, w_k: (d_model, d_k). w_v: (d_model, d_v).
    Returns (new_query, new_content), each (batch, length, d_v).
    """
    ### BEGIN SOLUTION
    keys, values = content @ w_k, content @ w_v

    def attend(stream, mask):
        scores = (stream @ w_q) @ keys.mT / w_k.shape[-1] ** 0.5
        empty = ~mask.any(dim=-1, keepdim=True)
        weights = scores.masked_fill(~mask & ~empty, -torch.inf).softmax(dim=-1)
        return (weights @ values).masked_fill(empty, 0.0)

    return attend(query, query_mask), attend(content, content_mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-two_streams", "grade": true, "points": 4}
check("two_streams", two_streams)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Write attention once, as an inner function of (who asks, what it may see), and call it twice.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# keys, values: once. Then scores, mask, softmax, values. Rows without any True need a treatment of
# their own, before the softmax or after it.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# A softmax over nothing but −∞ is NaN. If −∞ was *added* to the scores, the gradient stays NaN even
# when you overwrite the result; with `masked_fill` it does not. A fill with −1e9 lets the first
# place see everything, itself included.
# </details>

# %% [markdown]
# Now follow a word through layers. Its content is read by places that come later in the order, and
# their contents by still later ones. Its own query never reads its own content; and what it reads
# has never read it either. So nothing leaks, through however many layers. At test time the query
# stream is dropped: content alone is an ordinary transformer.

# %% [markdown]
# ### Exercise 7: a loss for the last places of the order
# *15 minutes, medium, 3 points*
#
# The first places of an order are predicted from next to nothing; that trains slowly. So only the
# last few are targets; the rest is context (Section 2.3, "partial prediction").
#
# 1. `logits` (batch, length, words) comes from the query stream: **row i is the prediction of the
#    word at place i itself**. Nothing is shifted.
# 2. `order` is as above. Targets are the places of the last `targets` steps of each row; `targets`
#    is at least 1, at most length.
# 3. The loss is the mean cross-entropy over all targets of the batch. Other places play no part.
#    Gradients are checked.
#
# Example: order `[2, 0, 3, 1]`, `targets` 2: places 3 and 1 have a loss.


# %% nbgrader={"grade_id": "permutation_loss", "solution": true}
def permutation_loss(logits, tokens, order, targets):
    """Mean cross-entropy of the places that are predicted last.

    logits: (batch, length, words). tokens, order: int64 (batch, length). targets: a number.
    Returns a number (a tensor without axes).
    """
    ### BEGIN SOLUTION
    places = order[:, order.shape[1] - targets :]
    rows = torch.take_along_dim(logits, places[:, :, None], dim=1)
    return F.cross_entropy(rows.flatten(0, 1), tokens.gather(1, places).flatten())
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-permutation_loss", "grade": true, "points": 3}
check("permutation_loss", permutation_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# `order` holds places: cut its end off, and take logits and tokens at those places.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `gather` or `torch.take_along_dim` along axis 1, for tokens (batch, targets) and for logits
# (batch, targets, words). `F.cross_entropy` wants (many, words) and (many).
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `logits[:, order]` is something else: it pairs every row of the batch with every order.
# </details>

# %% [markdown]
# ### Two blanks that know of each other
#
# **Claim:** predicting hidden words each by itself mixes pairs up; predicting them in order does
# not.
#
# The pairs are those of chapter 09, where two blanks did *not* know of each other: sentences that
# begin with *the*, a noun and its verb, both singular or both plural (*the girl takes*, *the girls
# take*). Here they are cut after the fourth word. In training, two random places are hidden. The
# *same network* is trained on the same sentences twice: "by itself", hidden words see the open ones
# only; "in order", the second one also sees the first. One mask is all the difference. Afterwards
# noun and verb of new sentences are hidden, and the model writes them: draws the noun, then the
# verb.
#
# Predict: about one noun in three is plural. How often do noun and verb agree, for each of the two?

# %% tags=["experiment"]
from attention_course.bert.tiny import Corpus
from attention_course.beyond import phrases_of, train_pairs
from attention_course.claims import report

phrases = phrases_of(Corpus(seed=5))  # the corpus of chapter 09
agree = {
    kind: np.array([train_pairs(kind, phrases, seed) for seed in range(5)])
    for kind in ("by itself", "in order")
}
plural = phrases.share_of_plurals
chance = plural**2 + (1 - plural) ** 2
fig, ax = plt.subplots(figsize=(6.5, 1.8), layout="constrained")
for place, shares in enumerate(agree.values()):
    ax.plot(shares, [place] * len(shares), "o", alpha=0.6)
    ax.plot(shares.mean(), place, "k|", ms=14)
ax.axvline(chance, color="0.5", ls=":", label="by chance")
ax.set_yticks([0, 1], agree)
ax.set_ylim(1.5, -0.5)
ax.set_xlim(0, 1)
ax.set_xlabel("share of draws in which noun and verb agree (dots: runs, bar: mean)")
ax.legend(fontsize=8, loc="lower left")
plt.show()
print(f"nouns that are plural: {plural:.0%}; agree by chance: {chance:.0%}")
for kind, shares in agree.items():
    print(f"{kind:<10}", ", ".join(f"{share:.2f}" for share in shares))
supported = agree["in order"].min() > agree["by itself"].max()
effect = ", ".join(f"{kind}: {shares.mean():.0%}" for kind, shares in agree.items())
report("C13", supported, f"agree, {effect} (5 seeds, the pairs of chapter 09)")

# %% [markdown]
# The figure has a row for each kind of training and a dot for each run; further right is better.
# The dotted line is chance: with a share p of plurals, p² + (1 − p)². By itself, the verb knows
# what is likely, not what was written. What it does better than chance comes from the open words:
# *their* in fourth place tells of a plural. More training does not change that, since such a model
# cannot say that two blanks belong together. In order, the verb looks at the noun.
#
# Is BERT therefore bad? As a model of *text*, yes. As a reader it hides 15 % of the words, and two
# that depend on each other are rarely hidden together. And chapter 09 had another cure: write one
# word, look again. That costs a pass for each word and no new training. XLNet's lead in its paper
# has other causes as well: more data, and Transformer-XL's memory.

# %% [markdown]
# ### In words: why two streams?
# *7 minutes, 2 points, marked by hand*
#
# In three to six sentences: (a) Why can one stream not do: what goes wrong if the same vector at
# place i has to serve as the prediction of word i and as something others read? (b) BERT also
# predicts word i at place i with one stream. How does it avoid the trouble, and what does it pay?

# %% [markdown] nbgrader={"grade_id": "why-streams", "grade": true, "solution": true, "points": 2}
# (a) Whoever comes later in the order must be able to read word i at place i, so its vector must
# contain the word. The prediction of word i must not contain it, or the model copies. One vector
# cannot do both. So there is one that knows the word (content) and one that knows only the place
# and what came before (query). Without the place it could not even know which word is asked for:
# the next one in a random order may stand anywhere.
#
# (b) BERT takes the word away: [MASK] stands there instead, so the vector does not contain it. The
# price: nobody can read the hidden word, so hidden words are predicted independently of each other;
# and [MASK] never occurs when the model is used.
#
# *Mark scheme.* 1 point for (a): content needed by others (½), forbidden for itself (½). 1 point
# for (b): [MASK] removes the word (½); independence or the mismatch of training and use (½).

# %% [markdown]
# ## 3 Content and position apart: DeBERTa
#
# BERT adds a word's vector and a place's vector, once, at the bottom. DeBERTa never adds them. A
# token has a content vector; positions enter as distances, in every layer, by their own tables. Of
# the four products of (content, position) with (content, position), three are kept:
#
# $$\tilde A_{i,j} = \underbrace{Q^c_i\cdot K^c_j}_{\text{content to content}}
#   + \underbrace{Q^c_i\cdot K^r_{\delta(i,j)}}_{\text{content to position}}
#   + \underbrace{K^c_j\cdot Q^r_{\delta(j,i)}}_{\text{position to content}}$$
#
# and the softmax is taken of $\tilde A/\sqrt{3d}$ (He et al., equation 4). The fourth, position to
# position, knows nothing of the words and is left out.
#
# Predict: in the explorer's second map (content to position), which entries of a row are equal?

# %% tags=["explorer"]
from attention_course.explorers import three_scores

three_scores()

# %% [markdown]
# ### Exercise 8: distances with a limit
# *10 minutes, easy, 2 points*
#
# Far is far: beyond k places, distances get the same number. (Equation 3. Chapter 03 clipped in the
# same way, but counted the other way round, key minus query.)
#
# 1. Queries are places 0, 1, …; keys, too. k is `largest`, at least 1.
# 2. δ(i, j) = 0 if i − j ≤ −k; 2k − 1 if i − j ≥ k; i − j + k in between.
# 3. Return int64 (queries, keys).
#
# Example: k = 2, query 3: keys 0 to 5 get `[3, 3, 3, 2, 1, 0]`.


# %% nbgrader={"grade_id": "relative_distance", "solution": true}
def relative_distance(queries, keys, largest):
    """Number the distances from each query to each key.

    queries, keys: numbers of places. largest: k, the limit.
    Returns int64 (queries, keys), entries from 0 to 2k − 1.
    """
    ### BEGIN SOLUTION
    apart = torch.arange(queries)[:, None] - torch.arange(keys)
    return (apart + largest).clamp(0, 2 * largest - 1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-relative_distance", "grade": true, "points": 2}
check("relative_distance", relative_distance)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# The middle line of the formula holds everywhere, if one cuts off what is too small or too large.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A column minus a row gives all i − j; then add, then `clamp`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The table has 2k rows, so the largest number is 2k − 1. The two sides are not mirror images: −k
# has a number of its own, +k shares one with k − 1.
# </details>

# %% [markdown]
# ### Exercise 9: scores of three parts
# *20 minutes, hard, 4 points*
#
# 1. `queries`, `keys` (batch, heads, length, width) are made from contents: $Q^c$, $K^c$.
# 2. `position_queries`, `position_keys` (heads, 2k, width) are made from the table of distances:
#    $Q^r$, $K^r$. The same for every sentence of the batch.
# 3. `distance` (length, length) holds δ(i, j). **The third part uses δ(j, i)**, as in the formula.
# 4. Return (batch, heads, length, length): the sum of the three parts, divided by √(3 · width). No
#    softmax.
#
# Example: one place, k = 1: δ(0, 0) = 1, so the score is $(q·k + q·K^r_1 + k·Q^r_1)/\sqrt{3d}$.


# %% nbgrader={"grade_id": "disentangled_scores", "solution": true}
def disentangled_scores(queries, keys, position_queries, position_keys, distance):
    """Scores of content to content, content to position and position to content.

    queries, keys: (batch, heads, length, width).
    position_queries, position_keys: (heads, 2k, width). distance: int64 (length, length).
    Returns (batch, heads, length, length).
    """
    ### BEGIN SOLUTION
    index = distance.expand(*queries.shape[:-1], -1)
    content = queries @ keys.mT
    to_position = (queries @ position_keys.mT).gather(-1, index)
    from_position = (keys @ position_queries.mT).gather(-1, index).mT
    return (content + to_position + from_position) / (3 * queries.shape[-1]) ** 0.5
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-disentangled_scores", "grade": true, "points": 4}
check("disentangled_scores", disentangled_scores)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Either make a position vector for every pair (length × length × width: dear, but plain), or
# multiply with the whole table first and pick one of 2k numbers for each pair.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# queries with position_keys: (batch, heads, i, 2k); pick entry δ(i, j) for each j. keys with
# position_queries: (batch, heads, j, 2k); pick entry δ(j, i) for each i. The second has keys as
# rows.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `gather` wants an index of as many axes as the tensor: `expand` the distances. Turn the third part
# round *after* picking.
# </details>

# %% [markdown]
# A note on sources: the authors' published code picks δ(i, j) in the third part where the paper
# says δ(j, i). Since the table is learned, the model is as able either way, apart from the two
# outermost rows: reading it mirrored is another numbering. But weights trained one way are useless
# read the other way. That is why this exercise names the convention.

# %% [markdown]
# ### A text that starts later
#
# **Claim:** a model that knows distances does not mind where a text starts; one that knows places
# does.
#
# Texts of 12 random symbols. The model names the symbol two places back, as in chapter 03. In
# training all texts start at place 0. The test's are no longer, they only start later, as a
# sentence does in the middle of a page. Four models: learned places; sines and cosines; learned
# places whose texts start anywhere in training, too; and distances (the first two of DeBERTa's
# three parts).
#
# Predict the four curves. One of them is flat *by construction*: which?

# %% tags=["experiment"]
from attention_course.beyond import KINDS, train_moved

starts = [0, 1, 2, 4, 8, 12, 24, 48]
moved = {kind: np.array([train_moved(kind, seed, starts) for seed in range(3)]) for kind in KINDS}
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for number, (kind, shares) in enumerate(moved.items()):
    ax.plot(range(len(starts)), shares.mean(axis=0), color=f"C{number}", label=kind)
    for row in shares:
        ax.plot(range(len(starts)), row, ".", color=f"C{number}", ms=5)
ax.axhline(1 / 12, color="0.6", ls=":", label="guessing")
ax.set_xticks(range(len(starts)), starts)
ax.set(xlabel="place at which the test's texts start", ylabel="share right", ylim=(0, 1.05))
ax.set_title("lines: mean of 3 seeds, dots: each seed", fontsize=10)
ax.legend(fontsize=8)
plt.show()
for kind, shares in moved.items():
    print(f"{kind:<34} at 0: {shares[:, 0].mean():.0%}; at 48: {shares[:, -1].mean():.0%}")
lost = moved["learned places"][:, -1].max() < 0.5 < moved["distances"][:, -1].min()
verdict = "supported" if lost else "NOT supported"
print(f"'Distances carry over, places do not': {verdict} by these runs.")

# %% [markdown]
# From left to right the texts start ever later; upwards is the share of right answers. The
# distances are flat because that model never hears where a text starts: no experiment was needed
# for that. What the runs do show is what the others lose. The learned places beyond 11 were never
# trained. Sines and cosines are defined everywhere, but the layer that reads them has seen only a
# part of them; when this text was written they did a little better again far out, and we do not
# know why. The third kind, whose line may lie hidden under that of the distances, tells the fair
# end of the story: places are no worse if training shows them all.

# %% [markdown]
# ## 4 One layer, many times: ALBERT
#
# A layer costs as much memory as any other, so ALBERT has one and runs it twelve times. And words
# get small vectors (128 numbers) that are widened to 768. That is words × 128 + 128 × 768
# numbers instead of words × 768. How much does each of the two save in BERT's smaller size? Predict
# first.

# %% tags=["experiment"]
with torch.device("meta"):  # shapes without memory
    layer = nn.TransformerEncoderLayer(768, 12, 3072)
    embeddings = {
        "whole": [nn.Embedding(30_000, 768)],
        "small": [nn.Embedding(30_000, 128), nn.Linear(128, 768)],
    }


def millions(modules):
    """Parameters of some modules, in millions."""
    return sum(p.numel() for module in modules for p in module.parameters()) / 1e6


for name, parts in embeddings.items():
    for layers in (12, 1):
        total = millions(parts) + layers * millions([layer])
        print(f"{name:<6} embeddings, {layers:>2} layers of their own: {total:6.1f} million")

# %% [markdown]
# (Positions, segments and heads are left out.) The shared layer saves by far the most; next to it,
# the embeddings are what is left to save. But it saves memory, **not time**: twelve passes are
# twelve passes. In the paper's Table 4 the shared model is a little worse than the unshared one of
# the same width.

# %% [markdown]
# ### Exercise 10: one layer, many times
# *8 minutes, easy, 2 points*
#
# 1. `tokens` int64 (batch, length) → `embedding` → `widen` → the one layer `layer`, `layers` times
#    in a row: each pass takes what the pass before gave.
# 2. Its gradient is the sum over all passes (autograd does that if it is the same object).
# 3. Nothing is masked. Parameters are counted: there are those of `embedding`, `widen` and `layer`.
#
# Example: with `layers` 1 it is an ordinary encoder of one layer.


# %% nbgrader={"grade_id": "shared_stack", "solution": true}
class SharedStack(nn.Module):
    """Small embeddings, widened, and one encoder layer that is used several times."""

    def __init__(self, words, small, d_model, heads, d_hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, small)
        self.widen = nn.Linear(small, d_model)
        self.layer = nn.TransformerEncoderLayer(
            d_model, heads, d_hidden, dropout=0.0, batch_first=True
        )
        self.layers = layers

    def forward(self, tokens):
        """Encode words: int64 (batch, length) to (batch, length, d_model)."""
        ### BEGIN SOLUTION
        x = self.widen(self.embedding(tokens))
        for _ in range(self.layers):
            x = self.layer(x)
        return x
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-shared_stack", "grade": true, "points": 2}
check("shared_stack", SharedStack)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A loop of one line.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# x = embedded and widened; then x = layer of x, so many times.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `copy.deepcopy` gives the same numbers today and other ones after the first step of training.
# </details>

# %% [markdown]
# ## 5 Many languages: XLM
#
# Multilingual BERT has read 104 languages with one vocabulary, and nothing told it that "cat" and
# "chat" have to do with each other. XLM adds a signal where there are translations: both sentences
# in one row, words hidden in both. To fill the gap in one language, the model can look at the
# other.

# %% [markdown]
# ### Exercise 11: two languages in one row
# *18 minutes, medium, 3 points*
#
# 1. `source`, `target`: lists of word ids. The row is: separator, source, separator, **separator**,
#    target, separator (Figure 1 of the paper).
# 2. Positions start at 0 in the source, **and again at 0** at the target's first separator.
# 3. `languages` holds two ids. Each sentence owns the separators on both its sides.
# 4. `chosen` lists places of the row, in any order. Where one holds a word, `mask` stands instead,
#    and the label is the word. Chosen *separators* stay and get no label. (No 80/10/10 here.)
# 5. No label is −100. Words never equal `separator` or `mask`.
# 6. Return four lists of the same length: `(tokens, positions, languages, labels)`. The given lists
#    stay as they are.
#
# Example: source `[5, 6]`, target `[7]`, separator 1, mask 0, languages `[3, 4]`, chosen `[2, 5]`:
#
# | | | | | | | | |
# |---|---|---|---|---|---|---|---|
# | tokens | 1 | 5 | 0 | 1 | 1 | 0 | 1 |
# | positions | 0 | 1 | 2 | 3 | 0 | 1 | 2 |
# | languages | 3 | 3 | 3 | 3 | 4 | 4 | 4 |
# | labels | −100 | −100 | 6 | −100 | −100 | 7 | −100 |


# %% nbgrader={"grade_id": "pack_translation", "solution": true}
def pack_translation(source, target, separator, mask, languages, chosen):
    """Pack a sentence and its translation for a masked model.

    source, target: lists of word ids. separator, mask: ids. languages: two ids.
    chosen: list of places of the row to hide.
    Returns (tokens, positions, languages, labels): lists of whole numbers, all of one length.
    """
    ### BEGIN SOLUTION
    tokens = []
    positions = []
    row_languages = []
    for words, language in zip((source, target), languages, strict=True):
        tokens += [separator, *words, separator]
        positions += range(len(words) + 2)
        row_languages += [language] * (len(words) + 2)
    labels = [-100] * len(tokens)
    for place in chosen:
        if tokens[place] != separator:
            labels[place] = tokens[place]
    tokens = [mask if label != -100 else token for token, label in zip(tokens, labels, strict=True)]
    return tokens, positions, row_languages, labels
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-pack_translation", "grade": true, "points": 3}
check("pack_translation", pack_translation)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Both sentences are treated alike; only the language differs. Then hide.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A loop over (sentence, language) that makes three lists longer. Labels start as −100 everywhere.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Places in `chosen` count the separators. Read a label before you overwrite the word.
# </details>

# %% [markdown]
# ### Exercise 12: pieces for a word
# *10 minutes, easy, 2 points*
#
# A shared vocabulary cuts words of a rare language into more pieces: its texts get longer, dearer
# and harder to learn. **Fertility** is the number of pieces for a word (P. Rust et al. 2021, *How
# Good is Your Tokenizer?*). Chapter 10 counted it in one text that lay there word by word. Now the
# rows come as a model gets them: languages mixed, special pieces and padding in between, and only
# the pieces themselves tell where a word begins.
#
# 1. `tokens` holds a list of pieces for each sentence, in WordPiece's style: a piece that begins
#    with `##` continues the word before it, every other piece begins a word.
# 2. `languages[n]` is the language of sentence n. Pieces in `special` do not count at all.
# 3. Return a list (or an array) with one number for each of `names`, in that order: **all pieces of
#    the language divided by all its words**. Each has at least one word.
#
# Example: `[["[CLS]", "un", "##believ", "##able", "cat", "[SEP]"]]` has 4 pieces and 2 words: 2.0.


# %% nbgrader={"grade_id": "language_fertility", "solution": true}
def language_fertility(tokens, languages, names, special):
    """Pieces for a word, for each language.

    tokens: a list of pieces for each sentence. languages: one name for each sentence.
    names: languages to answer for. special: pieces that don't count.
    Returns a list of numbers, one for each of names.
    """
    ### BEGIN SOLUTION
    result = []
    for name in names:
        pieces = [
            piece
            for row, language in zip(tokens, languages, strict=True)
            if language == name
            for piece in row
            if piece not in special
        ]
        words = [piece for piece in pieces if not piece.startswith("##")]
        result.append(len(pieces) / len(words))
    return result
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-language_fertility", "grade": true, "points": 2}
check("language_fertility", language_fertility)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Count pieces, count those that begin a word, divide.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# For each name: all pieces of its sentences, without special ones.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# A mean of the sentences' rates is not the rate of all sentences: short sentences would count too
# much.
# </details>

# %% [markdown]
# ### A fairer share for the small language
#
# **Claim:** if the small language is shown more often while the vocabulary is learned, its words
# are cut less (Lample and Conneau, Section 3.1). A language with the share p of all sentences is
# drawn in proportion to $p^α$: α = 1 leaves the shares as they are, a smaller α lifts the small
# language.
#
# A byte-pair vocabulary of 400 pieces is trained on 2,000 sentences of the course's small grammar:
# 95 % English and 5 % French to begin with. Predict: what do smaller α do to *English*?

# %% tags=["experiment"]
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from attention_course.data.fragment import translation_splits

alphas = [1.0, 0.7, 0.5, 0.3, 0.0]
small_share, sentences = 0.05, 2_000


def pieces_for_a_word(seed):
    """(alphas, 2): pieces for a word of English and of French, on sentences not trained on."""
    pairs = translation_splits(seed, train=sentences, test=300)
    rows = []
    for alpha in alphas:
        weights = np.array([1 - small_share, small_share]) ** alpha
        french = round(sentences * weights[1] / weights.sum())
        text = [pair.target for pair in pairs["train"][french:]]
        text += [pair.source for pair in pairs["train"][:french]]
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.BpeTrainer(vocab_size=400, show_progress=False)
        tokenizer.train_from_iterator([" ".join(words) for words in text], trainer)
        counts = []
        for language in ("target", "source"):
            words = [word for pair in pairs["test"] for word in getattr(pair, language)]
            counts.append(len(tokenizer.encode(" ".join(words)).ids) / len(words))
        rows.append(counts)
    return rows


rates = np.array([pieces_for_a_word(seed) for seed in range(5)])
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for column, name in enumerate(("English, 95 %", "French, 5 %")):
    ax.plot(alphas, rates[:, :, column].mean(axis=0), color=f"C{column}", label=name)
    for row in rates[:, :, column]:
        ax.plot(alphas, row, ".", color=f"C{column}", ms=5)
ax.invert_xaxis()
ax.set(xlabel="α (smaller: the small language is drawn more often)", ylabel="pieces for a word")
ax.legend(fontsize=8)
plt.show()
gain = rates[:, 0, 1] - rates[:, alphas.index(0.3), 1]
loss = rates[:, alphas.index(0.3), 0] - rates[:, 0, 0]
print("from α = 1 to α = 0.3, pieces for a word, mean (least to most) of 5 seeds:")
print(f"  French {gain.mean():.2f} less ({gain.min():.2f} to {gain.max():.2f})")
print(f"  English {loss.mean():.2f} more ({loss.min():.2f} to {loss.max():.2f})")
verdict = "supported" if gain.min() > 0 else "NOT supported"
print(f"'A smaller α cuts the small language less': {verdict} by these runs.")

# %% [markdown]
# α falls from left to right; upwards are pieces for a word, a line for each language and a dot for
# each seed. Pieces are a fixed budget: what one language gains the other pays, though rarely at the
# same rate.

# %% [markdown]
# ### The same with two real vocabularies
#
# GPT-2's byte pairs were learned from pages in English. Whisper, which writes down speech in 99
# languages, uses them for English; its multilingual models have a vocabulary that was learned anew
# from all their languages, with as many pieces, some 50,000 (A. Radford et al. 2022, *Robust Speech
# Recognition via Large-Scale Weak Supervision*). Both cut the same text here: the Universal
# Declaration of Human Rights in 22 languages (`experiments/language_pieces.py` has recorded the
# counts).
#
# Predict: for each piece of the English text, how many pieces does GPT-2's vocabulary need in
# Spanish, in Russian, in Tamil? What does the other vocabulary do to these, and what to English?

# %% tags=["experiment"]
from attention_course.data.runs import RECORDS, read_runs

counts = read_runs(
    RECORDS / "language_pieces.csv", ["language"], ["words", "bytes", "gpt2", "whisper"]
)
counts.sort(key=lambda row: row["gpt2"])
english = next(row for row in counts if row["language"] == "English")
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for column, name in (("gpt2", "GPT-2: learned from English"), ("whisper", "Whisper: from many")):
    lengths = [row[column] / english[column] for row in counts]
    ax.plot(lengths, range(len(counts)), "o", label=name)
ax.set_yticks(range(len(counts)), [row["language"] for row in counts], fontsize=8)
ax.set_xscale("log")
ax.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
ax.grid(axis="x", color="0.9")
ax.set_xlabel("pieces for each piece of the English text")
ax.legend(fontsize=8, loc="lower right")
plt.show()

print("pieces for a word     GPT-2   Whisper")
for row in counts:
    if row["words"]:
        rate, other = row["gpt2"] / row["words"], row["whisper"] / row["words"]
        print(f"{row['language']:<20} {rate:6.1f}    {other:6.1f}")
worst = counts[-1]
print(f"{worst['language']} with GPT-2's: {worst['gpt2']:,} pieces for {worst['bytes']:,} bytes")
shorter = sum(row["whisper"] < row["gpt2"] for row in counts)
more = english["whisper"] / english["gpt2"] - 1
print(f"shorter with Whisper's: {shorter} of {len(counts)}; English is {more:+.0%} longer")

# %% [markdown]
# The figure has a row for each language, the one that GPT-2 treats best at the bottom; further
# right the text is longer, on a scale that doubles from mark to mark. With GPT-2's vocabulary, a
# script that hardly occurs in English pages falls apart into single bytes: two or three for a
# letter. A fairer budget takes little from English and gives most to those. It does not make all
# alike: a language with a small share of the text is still cut small.
#
# Japanese, Chinese and Thai are missing in the table. They write no spaces between words, so there
# is no fertility without a decision what a word is. The length of the *same text* can be compared
# for all (A. Petrov et al. 2023, *Language Model Tokenizers Introduce Unfairness Between
# Languages*). It is no pure measure either: translations are not equally long to begin with.

# %% [markdown]
# ## 6 What it costs
#
# Training takes operations, operations take time on a device, a device takes power, the building
# takes some more, and the grid emits carbon for it:
#
# $$\text{energy} = \frac{\text{operations}}{\text{peak}\cdot\text{utilisation}}\cdot
#   \text{watts}\cdot\text{PUE},\qquad \text{carbon} = \text{energy}\cdot\text{grid}$$
#
# *Utilisation*: the share of the device's peak that is reached, often 0.2 to 0.5. *PUE* (power
# usage effectiveness): energy of the data centre over energy of its computers, at least 1. *Grid*:
# grams of CO₂ equivalent for a kilowatt-hour; a few dozen with water or wind, some hundred with
# gas, 800 and more with coal. Hardly any of these is known exactly, so an honest result is an
# interval.

# %% [markdown]
# ### Exercise 13: energy and carbon, as an interval
# *18 minutes, medium, 3 points*
#
# 1. `flops`: operations of the run. `peak`: operations in a second of one device, at best.
#    `utilisation`, `watts` (of one device), `pue`, `grid` (g/kWh) are pairs `[low, high]`.
# 2. `energy` = `[least, most]` in **kWh** (1 kWh = 3.6 · 10⁶ J), `carbon` = `[least, most]` in
#    **kg**.
# 3. Least and most are over all combinations of values within the intervals.
# 4. Return `(energy, carbon)`: two lists or arrays of two numbers. (How many devices share the work
#    does not matter: why?)
# 5. Raise `ValueError` if an interval has low > high, a utilisation is 0 or less or above 1, or a
#    PUE is below 1.
#
# Example: 3.6 · 10¹⁷ operations, peak 10¹², utilisation 0.5 exactly, 100 W, PUE 1, 500 g/kWh:
# 720,000 seconds, 20 kWh, 10 kg.


# %% nbgrader={"grade_id": "training_footprint", "solution": true}
def training_footprint(flops, peak, utilisation, watts, pue, grid):
    """Energy and carbon of a training run, each from the least to the most.

    flops, peak: numbers. utilisation, watts, pue, grid: pairs [low, high].
    Returns (energy, carbon): [least, most] in kWh, [least, most] in kg.
    """
    ### BEGIN SOLUTION
    if any(low > high for low, high in (utilisation, watts, pue, grid)):
        raise ValueError("an interval must be [low, high]; one has low > high: turn it round.")
    if utilisation[0] <= 0 or utilisation[1] > 1 or pue[0] < 1:
        raise ValueError("utilisation must be above 0 and at most 1, pue at least 1.")
    seconds = flops / peak / np.array(utilisation)[::-1]
    energy = seconds * np.array(watts) * np.array(pue) / 3.6e6
    return energy, energy * np.array(grid) / 1000
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-training_footprint", "grade": true, "points": 3}
check("training_footprint", training_footprint)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# All factors are positive: each end of the result comes from one end of each interval.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Device-seconds → joules → kWh → grams → kilograms, twice: once for each end.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Badly used devices run longer: the *high* utilisation belongs to the least energy.
# </details>

# %% [markdown]
# ### BERT, three ways
#
# What did BERT's pre-training take? Published numbers allow three estimates:
#
# - **by chips and days**: J. Devlin et al. (2019), Appendix A.2: four days on 16 TPU chips (base),
#   on 64 (large). We take 200 to 450 W for a chip of that time, which is our assumption;
# - **by operations**: 6 for each parameter and token; a million steps with 256 sequences, of 128
#   tokens for nine tenths and 512 for the rest, or (the other reading) of 512 throughout. As if on
#   V100 cards with a peak of 1.25 · 10¹⁴, at 20 to 50 %, 250 to 300 W;
# - **by a meter**: Strubell et al. (2019), Table 3, took another base run, 64 V100 cards for 79
#   hours, with 12.0 kW measured for all of it.
#
# The computers' hall takes 10 to 58 % on top. 1.58 was the average that Strubell et al. use, 1.1 is
# a good modern one. Grid: 50 to 500 g/kWh.
#
# Predict: how far apart are the three? A tenth, a factor of 2, of 10?

# %% tags=["experiment"]
rng = np.random.default_rng(13)


def between(low, high, count=20_000):
    """Draw numbers whose logarithm is uniform between two limits: we know no better."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count))


hall, grid_grams = between(1.1, 1.58), between(50, 500)
tokens_seen = between(256e6 * (0.9 * 128 + 0.1 * 512), 256e6 * 512)
estimates = {"base, a meter": 79.2 * 12.04 * hall}
for name, chips, weights in (("base", 16, 110e6), ("large", 64, 340e6)):
    estimates[f"{name}, chips and days"] = chips * 4 * 24 * between(200, 450) / 1000 * hall
    device_seconds = 6 * weights * tokens_seen / (1.25e14 * between(0.2, 0.5))
    estimates[f"{name}, operations"] = device_seconds * between(250, 300) / 3.6e6 * hall

fig, axes = plt.subplots(1, 2, figsize=(8.5, 2.8), layout="constrained", sharey=True)
middles = {}
for row, (name, energy) in enumerate(estimates.items()):
    for ax, values in zip(axes, (energy, energy * grid_grams / 1000), strict=True):
        low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
        ax.plot([low, high], [row, row], color="C0", lw=3)
        ax.plot(middle, row, "o", color="C1")
    middles[name] = np.median(energy)
    low, high = np.quantile(energy * grid_grams / 1000, (0.05, 0.95))
    print(f"{name:<22} {middles[name]:7,.0f} kWh (middle), {low:5,.0f} to {high:6,.0f} kg")
axes[0].set_yticks(range(len(estimates)), estimates)
axes[0].invert_yaxis()
axes[0].set(xscale="log", xlabel="kWh")
axes[1].set(xscale="log", xlabel="kg of CO₂ equivalent")
plt.show()
base = [value for name, value in middles.items() if name.startswith("base")]
print(f"three estimates for BERT base differ by a factor of {max(base) / min(base):.1f}")

# %% [markdown]
# Each line spans nine tenths of 20,000 draws, the dot is the middle one; energy on the left, carbon
# on the right, both in powers of ten. Three respectable estimates for BERT base differ by the
# factor printed above: other hardware, other software, other assumptions. The grid alone spans a
# factor of ten, so *where* and *when* one trains matters as much as what. Left out are: all runs
# before the final one, making the chips, and every use of the model afterwards, which for a popular
# one outweighs its training. Efficiency has grown, and so have the runs: D. Patterson et al.
# (2021), *Carbon Emissions and Large Neural Network Training*, Table 4, gives 1,287 MWh for GPT-3.

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | "backward through the graph a second time" in the second segment | memory not detached |
# | the first segment is fine, the second is not | mask or positions forget the memory |
# | results are right in the last row only | relative shift the wrong way, or rows counted from 0 |
# | perfect loss, useless model | the query stream sees its own word, or queries know contents |
# | NaN from the first step on | the place predicted first sees nothing |
# | right for some orders, wrong for others | `order` compared where its inverse is meant |
# | weights too peaked | √d where three products are added: √(3d) |
# | far keys behave like near ones | distance not limited, negative index reads from the end |
# | shared layer hardly learns | copies were run, not the layer |
# | energy too small by utilisation² | multiplied where one should divide |

# %% [markdown]
# ## Recap
#
# - Memory: keep the layers' inputs, detach, count distances; reach = memory + place, per layer.
# - Orders: words stay, masks change; content knows its word, query does not.
# - Position and content can be kept apart: three products, √(3d), distances with a limit.
# - Sharing a layer saves memory, no time.
# - A vocabulary is a budget that languages share; fertility says who pays.
# - Energy is a product of uncertain factors: give an interval, and say what is left out.
#
# *A challenge without a check:* give XLNet its memory. What of the content stream has to be kept,
# and why does nothing of the query stream? (Yang et al., Section 2.4.)
