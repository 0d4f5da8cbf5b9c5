"""Chapter 06: the memory that attention needs, in bytes."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


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
