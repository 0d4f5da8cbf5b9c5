"""Chapter 06: a nested batch that goes to any device."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils._pytree import tree_map

from attention_course.judging import Case
from autograder.case_making import draw_mask, draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def move_batch_cases(rng):
    """Tensors at the top, in dicts, in lists and tuples; other things among them."""
    s = draw_sizes(rng, "batch", "length", "width", among=(2, 3, 4))
    ids = rng.integers(1, 50, size=(s.batch, s.length))
    mask = draw_mask(rng, s.batch, s.length)
    vectors = rng.normal(size=(s.batch, s.length, s.width)).astype(np.float32)
    labels = rng.integers(1, 50, size=s.batch)
    weights = rng.normal(size=5)
    words = ["the", "cat"]
    flat = {"ids": ids, "mask": mask, "vectors": vectors}
    yield Case("flat", {"batch": flat}, "a dict of tensors")
    yield Case("flat", {"batch": vectors}, "a tensor alone")
    mixed = {"ids": ids, "words": words, "step": 3, "weights": weights, "memory": None}
    yield Case("nested", {"batch": mixed}, "a dict with words, a number and None in it")
    deep = {"source": dict(flat), "targets": [labels, weights]}
    yield Case("nested", {"batch": deep}, "a dict and a list within a dict")
    pair = (mixed, [(labels, mask), vectors])
    yield Case("nested", {"batch": pair}, "tuples and lists, three deep")


def move_batch_reference(batch, device):
    """PyTorch's own walk through nested containers."""
    return tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, batch)


def batch_as_it_came(batch, device):
    """Calls `to` and forgets what it returns."""
    tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, batch)
    return batch


def one_level_only(batch, device):
    """Looks into the outermost container only."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)

    def move(value):
        return value.to(device) if isinstance(value, torch.Tensor) else value

    if isinstance(batch, dict):
        return {name: move(value) for name, value in batch.items()}
    return type(batch)(move(value) for value in batch)


def flat_dict_only(batch, device):
    """Takes for granted that a batch is a dict of tensors."""
    return {name: part.to(device) for name, part in batch.items()}


def dicts_only(batch, device):
    """Walks through dicts and forgets lists and tuples."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: dicts_only(value, device) for name, value in batch.items()}
    return batch


def tuples_become_lists(batch, device):
    """Makes a list of every tuple."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: tuples_become_lists(value, device) for name, value in batch.items()}
    if isinstance(batch, list | tuple):
        return [tuples_become_lists(value, device) for value in batch]
    return batch


def rest_is_dropped(batch, device):
    """Keeps tensors and containers only."""
    kept = (torch.Tensor, dict, list, tuple)
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {
            name: rest_is_dropped(value, device)
            for name, value in batch.items()
            if isinstance(value, kept)
        }
    return type(batch)(rest_is_dropped(value, device) for value in batch if isinstance(value, kept))


def everything_has_to(batch, device):
    """Calls `to` on whatever is no container."""
    if isinstance(batch, dict):
        return {name: everything_has_to(value, device) for name, value in batch.items()}
    if isinstance(batch, list | tuple):
        return type(batch)(everything_has_to(value, device) for value in batch)
    return batch.to(device)


def writes_into_the_batch(batch, device):
    """Replaces the entries of the caller's dicts and lists."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict | list):
        for name in batch if isinstance(batch, dict) else range(len(batch)):
            batch[name] = writes_into_the_batch(batch[name], device)
        return batch
    if isinstance(batch, tuple):
        return tuple(writes_into_the_batch(value, device) for value in batch)
    return batch


def everything_is_a_float(batch, device):
    """Turns integers and booleans into floating-point numbers on the way."""
    return tree_map(
        lambda leaf: leaf.to(device, torch.float32) if isinstance(leaf, torch.Tensor) else leaf,
        batch,
    )


def moved_by_recursion(batch, device):
    """Right: one case for each kind of container."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: moved_by_recursion(value, device) for name, value in batch.items()}
    if isinstance(batch, list):
        return [moved_by_recursion(value, device) for value in batch]
    if isinstance(batch, tuple):
        return tuple(moved_by_recursion(value, device) for value in batch)
    return batch


def moved_by_what_it_can(batch, device):
    """Right: asks whether a thing has the method."""
    if hasattr(batch, "to"):
        return batch.to(device=device, non_blocking=True)
    if hasattr(batch, "items"):
        return type(batch)((name, moved_by_what_it_can(v, device)) for name, v in batch.items())
    if type(batch) in (list, tuple):
        return type(batch)([moved_by_what_it_can(value, device) for value in batch])
    return batch


def moved_by_table(batch, device):
    """Right: a table of what to do with each type."""
    again = lambda parts: (moved_by_table(part, device) for part in parts)  # noqa: E731
    table = {
        torch.Tensor: lambda tensor: torch.empty_like(tensor, device=device).copy_(tensor),
        dict: lambda entries: dict(zip(entries, again(entries.values()), strict=True)),
        list: lambda parts: list(again(parts)),
        tuple: lambda parts: tuple(again(parts)),
    }
    return table.get(type(batch), lambda other: other)(batch)


MOVE_BATCH = Exercise(
    id="move_batch",
    title="A batch to any device",
    asks="Move every tensor of a nested batch to a device and hand the rest on as it is.",
    parameters=("batch", "device"),
    groups={
        "flat": Group(1, "a dict of tensors, a tensor alone"),
        "nested": Group(1, "nested containers with other things in them"),
    },
    cases=move_batch_cases,
    reference=move_batch_reference,
    outputs=(
        "tensors that arrived (1) or not (0)",
        "elements and bytes of one, tensor by tensor",
        "the rest is kept",
        "the batch that came in is left alone",
        "numbers",
    ),
    driver="moved_batch",
    misconceptions=(
        Misconception(
            batch_as_it_came,
            "The tensors are where they were: `to` gives a new tensor and changes nothing.",
            "What does your function do with what `to` returns?",
        ),
        Misconception(
            one_level_only,
            "Containers within containers are not looked into.",
            "Which function could move a batch that lies inside a batch?",
        ),
        Misconception(
            flat_dict_only,
            "This works for a dict of tensors only.",
            "Which other things may a batch be, and which other things may lie in it?",
        ),
        Misconception(
            dicts_only,
            "Tensors in lists and tuples stay where they were.",
            "Which three kinds of container does the contract name?",
        ),
        Misconception(
            tuples_become_lists,
            "A tuple comes back as a list.",
            "What is the type of the container that you build, and of the one that came?",
        ),
        Misconception(
            rest_is_dropped,
            "What is no tensor is dropped from its container.",
            "What does the contract say about words, numbers and None?",
        ),
        Misconception(
            everything_has_to,
            "Only tensors have a method `to`; words and numbers have none.",
            "Ask what a thing is before you call a method of it.",
        ),
        Misconception(
            writes_into_the_batch,
            "The caller's own batch was changed: its dicts and lists now hold the moved tensors.",
            "Build new containers, and leave those that came in alone.",
        ),
        Misconception(
            everything_is_a_float,
            "Moving must not change the type: ids become floating-point numbers here.",
            "Which arguments does your `to` get?",
        ),
    ),
    accepted=(moved_by_recursion, moved_by_what_it_can, moved_by_table),
    equivalent_mutants={
        "`isinstance(batch, (list, tuple))` → "
        "`isinstance(batch, (tuple, list))`": "the order of alternatives does not matter",
    },
)
