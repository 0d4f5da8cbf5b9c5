"""Chapter 06: PyTorch's own attention and its masks, and the memory that attention needs."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- library_attention ---------------------------------------------------------------------------


def library_attention_cases(rng):
    """Padding of unequal lengths, fewer queries than keys, queries that see nothing."""

    def case(group, about, causal, padded=True, empty=False, same_length=False):
        s = draw_sizes(rng, "batch", "heads", "d_v", among=(2, 3, 4))
        longer = draw_sizes(rng, "q", "k", "d_k", among=(5, 6, 7))
        q, k = sorted((longer.q, longer.k))
        q = k if same_length else q
        queries, keys = (rng.normal(size=(s.batch, s.heads, n, longer.d_k)) for n in (q, k))
        values = rng.normal(size=(s.batch, s.heads, k, s.d_v))
        lengths = draw_lengths(rng, s.batch, k) if padded else np.full(s.batch, k)
        padding = np.arange(k) >= lengths[:, None]
        if empty:
            padding[rng.integers(s.batch)] = True
        elif padded:
            # Padding in front, so that a causal query may have padding before it.
            padding = np.where(rng.random((s.batch, 1)) < 0.5, padding[:, ::-1], padding)
            padding[:, k - q] = False
        hidden = padding[:, None, :, None]
        keys = np.where(hidden, 20 * keys, keys)
        values = np.where(hidden, values + 100.0, values)
        inputs = {"queries": queries, "keys": keys, "values": values, "padding": padding}
        return Case(group, {**inputs, "causal": causal}, about)

    yield case("padding", "padding, fewer queries than keys", False)
    yield case("causal", "causal, no padding, fewer queries than keys", True, padded=False)
    yield case("causal", "causal with padding, as many queries as keys", True, same_length=True)
    yield case("empty", "a sentence of padding only", False, empty=True)
    yield case("empty", "such a sentence, causal", True, empty=True)


def library_attention_reference(queries, keys, values, padding, causal):
    """Query by query, over the keys that it sees."""
    q, k, d_k = queries.shape[-2], keys.shape[-2], queries.shape[-1]
    output = torch.zeros(*queries.shape[:-1], values.shape[-1], dtype=queries.dtype)
    for b, h, i in np.ndindex(queries.shape[:-1]):
        last = k - q + i if causal else k - 1
        seen = [j for j in range(last + 1) if not padding[b, j]]
        if seen:
            scores = keys[b, h, seen] @ queries[b, h, i] / math.sqrt(d_k)
            output[b, h, i] = torch.exp(scores - scores.logsumexp(0)) @ values[b, h, seen]
    return output


def visible(queries, keys, padding, causal, first=None, diagonal=None):
    """The mask as it should be: (batch, 1, q, k), True where a query may look."""
    q, k = queries.shape[-2], keys.shape[-2]
    mask = ~padding[:, None, None, :]
    if causal:
        first = k - q if first is None else first
        mask = mask & torch.ones(q, k, dtype=torch.bool).tril(first)
    return mask


def padding_passed_as_it_is(queries, keys, values, padding, causal):
    """Passes True where padding is, which PyTorch's function reads as visible."""
    mask = padding[:, None, None, :]
    if causal:
        q, k = queries.shape[-2], keys.shape[-2]
        mask = mask & torch.ones(q, k, dtype=torch.bool).tril(k - q)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def all_of_it_inverted(queries, keys, values, padding, causal):
    """Builds a mask that is True where nothing may be seen."""
    mask = ~visible(queries, keys, padding, causal)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def mask_of_ones_and_zeros(queries, keys, values, padding, causal):
    """Passes 1.0 and 0.0, which are added to the scores."""
    mask = visible(queries, keys, padding, causal).to(queries.dtype)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def causal_from_the_first_key(queries, keys, values, padding, causal):
    """Aligns the triangle at the first key, as `is_causal=True` does."""
    mask = visible(queries, keys, padding, causal, first=0)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def both_masks_at_once(queries, keys, values, padding, causal):
    """Passes a mask and `is_causal`, which PyTorch refuses."""
    mask = visible(queries, keys, padding, False)
    return F.scaled_dot_product_attention(queries, keys, values, mask, is_causal=causal)


def causal_only(queries, keys, values, padding, causal):
    """Drops the padding mask where the causal one is asked for."""
    if not causal:
        mask = visible(queries, keys, padding, False)
        return F.scaled_dot_product_attention(queries, keys, values, mask)
    mask = visible(queries, keys, torch.zeros_like(padding), True)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def padding_ignored(queries, keys, values, padding, causal):
    """Has a causal mask, and none for padding."""
    mask = visible(queries, keys, torch.zeros_like(padding), causal)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def causal_ignored(queries, keys, values, padding, causal):
    """Has a padding mask and no causal one."""
    mask = visible(queries, keys, padding, False)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def blind_to_itself(queries, keys, values, padding, causal):
    """Hides the query's own position too."""
    first = keys.shape[-2] - queries.shape[-2] - 1
    mask = visible(queries, keys, padding, causal, first=first)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def either_of_the_two(queries, keys, values, padding, causal):
    """Joins the two masks by "or"."""
    mask = visible(queries, keys, padding, False)
    if causal:
        mask = mask | visible(queries, keys, torch.zeros_like(padding), True)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def padded_sentence_is_nan(queries, keys, values, padding, causal):
    """Computes it by hand and divides zero by zero where nothing is visible."""
    mask = visible(queries, keys, padding, causal)
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ values


def attention_by_boolean_mask(queries, keys, values, padding, causal):
    """Right: a boolean mask, two conditions on positions."""
    q, k = queries.shape[-2], keys.shape[-2]
    mask = ~padding[:, None, None, :]
    if causal:
        mask = mask & (torch.arange(k) <= torch.arange(k - q, k)[:, None])
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def attention_by_added_mask(queries, keys, values, padding, causal):
    """Right: −inf is added to what is hidden."""
    mask = ~visible(queries, keys, padding, causal)
    added = torch.zeros(mask.shape, dtype=queries.dtype).masked_fill(mask, -torch.inf)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=added)


def attention_by_hand(queries, keys, values, padding, causal):
    """Right: no library function; zeros where nothing is visible."""
    mask = visible(queries, keys, padding, causal)
    scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys) * queries.shape[-1] ** -0.5
    weights = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return torch.einsum("bhqk,bhkv->bhqv", weights, values)


def attention_sentence_by_sentence(queries, keys, values, padding, causal):
    """Right: one sentence at a time, with its hidden keys cut out."""
    q, k = queries.shape[-2], keys.shape[-2]
    triangle = torch.ones(q, k, dtype=torch.bool)
    triangle = triangle.tril(k - q) if causal else triangle
    outputs = []
    for sentence in range(len(queries)):
        real = ~padding[sentence]
        parts = (queries[sentence], keys[sentence][:, real], values[sentence][:, real])
        if real.any():
            outputs.append(F.scaled_dot_product_attention(*parts, triangle[:, real]))
        else:
            outputs.append(torch.zeros(*parts[0].shape[:-1], values.shape[-1], dtype=values.dtype))
    return torch.stack(outputs)


LIBRARY_ATTENTION = Exercise(
    id="library_attention",
    title="PyTorch's own attention, masked right",
    asks="Call PyTorch's attention so that padding and later tokens stay hidden.",
    parameters=("queries", "keys", "values", "padding", "causal"),
    groups={
        "padding": Group(1, "padding"),
        "causal": Group(1, "no look into the future"),
        "empty": Group(1, "sentences of padding only"),
    },
    cases=library_attention_cases,
    reference=library_attention_reference,
    driver="tensor_function",
    misconceptions=(
        Misconception(
            padding_passed_as_it_is,
            "`padding` is True where nothing may be seen; PyTorch's attention reads it as visible.",
            "What does True mean in `padding`, and what in `attn_mask`?",
        ),
        Misconception(
            all_of_it_inverted,
            "The whole mask is the wrong way round: True should be what may be seen.",
            "What does True mean in `attn_mask`?",
        ),
        Misconception(
            mask_of_ones_and_zeros,
            "A mask of floating-point numbers is added to the scores: 1 and 0 hide nothing.",
            "Of which type must a mask be that is not added?",
        ),
        Misconception(
            causal_from_the_first_key,
            "The triangle starts at the first key, so the last query misses keys.",
            "The queries are the last tokens: which keys may the last query see?",
        ),
        Misconception(
            both_masks_at_once,
            "PyTorch takes a mask or `is_causal`, not both.",
            "Can one mask say both things?",
        ),
        Misconception(
            causal_only,
            "With `causal`, padding is no longer hidden.",
            "A key must be no padding *and* not later. How do you join two masks?",
        ),
        Misconception(
            padding_ignored,
            "Padding has weight: `padding` has no effect.",
            "Where does `padding` enter your mask?",
        ),
        Misconception(
            causal_ignored,
            "Queries look at later tokens: `causal` has no effect.",
            "Where does `causal` enter your mask?",
        ),
        Misconception(
            blind_to_itself,
            "A query does not see its own position.",
            "Does the diagonal belong to the visible part?",
        ),
        Misconception(
            either_of_the_two,
            "A key is visible if one of the two masks says so; both must.",
            "A key must be no padding *and* not later. How do you join two masks?",
        ),
        Misconception(
            padded_sentence_is_nan,
            "A query that sees nothing becomes 0/0; the contract asks for zeros.",
            "What does the library's function give for such a query?",
        ),
    ),
    accepted=(
        attention_by_boolean_mask,
        attention_by_added_mask,
        attention_by_hand,
        attention_sentence_by_sentence,
    ),
    equivalent_mutants={
        "`queries.shape[-2]` → `queries.shape[2]`": "queries have four axes",
        "`keys.shape[-2]` → `keys.shape[2]`": "keys have four axes",
    },
)

# --- attention_memory ----------------------------------------------------------------------------


def attention_memory_cases(rng):
    """Numbers of two, four and eight bytes; blocks of some keys, and larger than all."""

    def case(group, about, dtype, fit):
        s = draw_sizes(rng, "q", "k", "d_k", "d_v", among=(4, 5, 6, 7))
        s.batch, s.heads = rng.permutation((2, 3))
        block = {"inside": s.k - 1, "beyond": s.k + 3}[fit]
        shapes = {
            "queries": (s.batch, s.heads, s.q, s.d_k),
            "keys": (s.batch, s.heads, s.k, s.d_k),
            "values": (s.batch, s.heads, s.k, s.d_v),
        }
        arrays = {name: rng.integers(-9, 10, shape).astype(dtype) for name, shape in shapes.items()}
        return Case(group, {**arrays, "block": int(block)}, about)

    yield case("values", "numbers of 2 bytes", np.float16, "inside")
    yield case("values", "numbers of 8 bytes", np.float64, "inside")
    yield case("values", "numbers of 4 bytes", np.float32, "inside")
    yield case("beyond", "a block larger than all keys", np.float64, "beyond")


def attention_memory_reference(queries, keys, values, block):
    """Makes the tensors, on a device that stores nothing, and asks for their sizes."""

    def size(*shape, dtype=queries.dtype):
        return torch.empty(*shape, dtype=dtype, device="meta").nbytes

    lead, k = queries.shape[:-1], keys.shape[-2]
    naive = 2 * size(*lead, k)
    running = sum(size(*lead, n, dtype=torch.float32) for n in (1, 1, values.shape[-1]))
    return naive, size(*lead, min(k, block)) + running


def _memory(queries, keys, values, block, **changes):
    batch, heads, q = queries.shape[:-1]
    size = changes.get("size", queries.element_size())
    matrices, running_size = changes.get("matrices", 2), changes.get("running_size", 4)
    rows = changes.get("rows", batch * heads * q)
    k, width = changes.get("k", keys.shape[-2]), changes.get("width", values.shape[-1] + 2)
    cut = changes.get("cut", min(block, k))
    return matrices * rows * k * size, rows * cut * size + rows * width * running_size


def one_matrix_only(queries, keys, values, block):
    """Counts scores and not weights."""
    return _memory(queries, keys, values, block, matrices=1)


def always_four_bytes(queries, keys, values, block):
    """Takes all numbers for float32."""
    return _memory(queries, keys, values, block, size=4)


def running_in_the_inputs_type(queries, keys, values, block):
    """Keeps the running numbers in the type of the queries."""
    size = queries.element_size()
    return _memory(queries, keys, values, block, running_size=size)


def heads_forgotten(queries, keys, values, block):
    """Counts one head."""
    return _memory(queries, keys, values, block, rows=queries.shape[0] * queries.shape[2])


def batch_forgotten(queries, keys, values, block):
    """Counts one sentence."""
    return _memory(queries, keys, values, block, rows=queries.shape[1] * queries.shape[2])


def as_many_keys_as_queries(queries, keys, values, block):
    """Takes the scores for a square."""
    return _memory(queries, keys, values, block, k=queries.shape[-2])


def block_never_cut(queries, keys, values, block):
    """Counts a block that is larger than all keys in full."""
    return _memory(queries, keys, values, block, cut=block)


def maximum_and_sum_forgotten(queries, keys, values, block):
    """Counts the running output only."""
    return _memory(queries, keys, values, block, width=values.shape[-1])


def width_of_the_keys(queries, keys, values, block):
    """Gives the running output the width of the keys."""
    return _memory(queries, keys, values, block, width=keys.shape[-1] + 2)


def numbers_counted(queries, keys, values, block):
    """Counts numbers, not bytes."""
    return _memory(queries, keys, values, block, size=1, running_size=1)


def memory_by_formula(queries, keys, values, block):
    """Right: sizes multiplied."""
    return _memory(queries, keys, values, block)


def memory_by_numel(queries, keys, values, block):
    """Right: numbers counted from the queries."""
    rows = queries.numel() // queries.size(-1)
    size, k = queries.itemsize, keys.size(-2)
    running = 4 * (2 * rows + rows * values.size(-1))
    return rows * k * size + rows * k * size, rows * min(k, block) * size + running


def memory_by_finfo(queries, keys, values, block):
    """Right: bits of the type, and results as tensors."""
    size = torch.finfo(queries.dtype).bits // 8
    rows = math.prod(queries.shape[:3])
    naive = torch.tensor(2 * rows * keys.shape[2] * size)
    cut = block if block < keys.shape[2] else keys.shape[2]
    return naive, torch.tensor(rows * (cut * size + 4 * (values.shape[3] + 2)))


ATTENTION_MEMORY = Exercise(
    id="attention_memory",
    title="Bytes, without a GPU",
    asks="Give the bytes that naive and blocked attention need beside inputs and output.",
    parameters=("queries", "keys", "values", "block"),
    groups={
        "values": Group(1, "a block of some of the keys"),
        "beyond": Group(1, "a block larger than all keys"),
    },
    cases=attention_memory_cases,
    reference=attention_memory_reference,
    outputs=("naive", "blocked"),
    driver="tensor_function",
    misconceptions=(
        Misconception(
            one_matrix_only,
            "Naive attention holds scores and weights at the same time; one of them is missing.",
            "Which two arrays of the full size does the contract name?",
        ),
        Misconception(
            always_four_bytes,
            "Scores are counted with 4 bytes for each number, whatever the type is.",
            "Ask a tensor for the size of its elements.",
        ),
        Misconception(
            running_in_the_inputs_type,
            "The running numbers are kept in float32, whatever type the queries have.",
            "Which parts does the contract keep in float32?",
        ),
        Misconception(heads_forgotten, "Only one head is counted.", "Which axes do scores have?"),
        Misconception(
            batch_forgotten, "Only one sentence is counted.", "Which axes do scores have?"
        ),
        Misconception(
            as_many_keys_as_queries,
            "The scores are taken for a square; there may be more or fewer keys than queries.",
            "From which tensor do you read the number of keys?",
        ),
        Misconception(
            block_never_cut,
            "A block larger than all keys is counted in full, though it holds all keys at most.",
            "How wide is the widest block of scores that is ever made?",
        ),
        Misconception(
            maximum_and_sum_forgotten,
            "The running maximum and sum are missing.",
            "Which three things are carried from block to block?",
        ),
        Misconception(
            width_of_the_keys,
            "The running output has the width of the values, not that of the keys.",
            "What shape has the output of attention?",
        ),
        Misconception(
            numbers_counted,
            "Numbers are counted, not bytes.",
            "Ask a tensor for the size of its elements.",
        ),
    ),
    accepted=(memory_by_formula, memory_by_numel, memory_by_finfo),
    equivalent_mutants={
        f"`batch, heads, q, _ = queries.shape` → `{names}, _ = queries.shape`": "only the product "
        "of the three is used"
        for names in ("heads, batch, q", "batch, q, heads")
    },
)
