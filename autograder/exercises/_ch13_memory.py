"""Exercises of chapter 13 on Transformer-XL's memory: what is kept, and who sees it."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- keep_memory ---------------------------------------------------------------------------------


def keep_memory_cases(rng):
    """A memory that overflows, a segment longer than the memory, an empty one, none at all."""
    s = draw_sizes(rng, "batch", "d_model", "less", "more", among=(2, 3, 5, 6))
    short, long = sorted((s.less, s.more))
    for group, memory, length, longest, about in (
        ("kept", long, short, long + 1, "some of the old memory still fits"),
        ("kept", long + 1, short + 1, short + 2, "one place of the old memory still fits"),
        ("edges", short, long, long - 1, "the segment alone is too long"),
        ("edges", 0, long, long + 2, "the memory is still empty, and not full afterwards"),
        ("edges", short, long, long + short + 1, "everything fits"),
        ("edges", short, long, 0, "no memory is wanted"),
    ):
        inputs = {
            "memory": rng.normal(size=(s.batch, memory, s.d_model)),
            "hidden": rng.normal(size=(s.batch, length, s.d_model)),
            "longest": longest,
        }
        yield Case(group, inputs, about)


def keep_memory_reference(memory, hidden, longest):
    """Place by place, in NumPy, where there are no gradients."""
    places = [*np.moveaxis(memory.detach().numpy(), 1, 0)]
    places += [*np.moveaxis(hidden.detach().numpy(), 1, 0)]
    while len(places) > longest:
        del places[0]
    batch, _, d_model = hidden.shape
    return torch.from_numpy(np.array(places).reshape(-1, batch, d_model)).swapaxes(0, 1)


def _newest(both, longest):
    return both[:, max(both.shape[1] - longest, 0) :]


def with_gradient(memory, hidden, longest):
    """Cuts no gradient."""
    return _newest(torch.cat([memory, hidden], dim=1), longest)


def only_the_old_detached(memory, hidden, longest):
    """Detaches the old memory and not the new states."""
    return _newest(torch.cat([memory.detach(), hidden], dim=1), longest)


def newest_in_front(memory, hidden, longest):
    """Puts the new states before the old ones."""
    return torch.cat([hidden, memory], dim=1)[:, :longest].detach()


def oldest_kept(memory, hidden, longest):
    """Keeps the first places."""
    return torch.cat([memory, hidden], dim=1)[:, :longest].detach()


def last_segment_only(memory, hidden, longest):
    """Throws the old memory away."""
    return _newest(hidden, longest).detach()


def memory_never_renewed(memory, hidden, longest):
    """Cuts the old memory and forgets the new states."""
    return _newest(memory, longest).detach()


def longest_without_the_segment(memory, hidden, longest):
    """Cuts the old memory only, then adds the segment."""
    return torch.cat([_newest(memory, longest), hidden], dim=1).detach()


def minus_zero(memory, hidden, longest):
    """`[-longest:]`, which is everything when `longest` is 0."""
    return torch.cat([memory, hidden], dim=1)[:, -longest:].detach()


def segment_kept_whole(memory, hidden, longest):
    """Never cuts the new segment."""
    return _newest(torch.cat([memory, hidden], dim=1), max(longest, hidden.shape[1])).detach()


def kept_by_room(memory, hidden, longest):
    """Right: how many old places still have room."""
    with torch.no_grad():
        new = hidden[:, max(hidden.shape[1] - longest, 0) :]
        room = min(longest - new.shape[1], memory.shape[1])
        return torch.cat([memory[:, memory.shape[1] - room :], new], dim=1)


def kept_by_index(memory, hidden, longest):
    """Right: an index of the places to keep."""
    both = torch.cat((memory.data, hidden.data), 1)
    places = torch.arange(both.shape[1])
    return both[:, places >= both.shape[1] - longest]


def kept_by_narrow(memory, hidden, longest):
    """Right: narrow and clone."""
    total = memory.size(1) + hidden.size(1)
    size = min(total, longest)
    return torch.hstack([memory, hidden]).narrow(1, total - size, size).clone().detach()


KEEP_MEMORY = Exercise(
    id="keep_memory",
    title="What is kept for the next segment",
    asks="Append a segment's states to the memory, drop the oldest, let no gradient through.",
    parameters=("memory", "hidden", "longest"),
    outputs=("new memory", "gradient of memory", "gradient of hidden"),
    driver="tensor_function",
    groups={
        "kept": Group(1, "the newest places, old before new, without gradient"),
        "edges": Group(1, "empty memory, long segments, no memory wanted"),
    },
    cases=keep_memory_cases,
    reference=keep_memory_reference,
    misconceptions=(
        Misconception(
            with_gradient,
            "The memory still hangs on the graph: the backward pass would run through all earlier "
            "segments.",
            "Which method of a tensor gives the same numbers without their history?",
        ),
        Misconception(
            only_the_old_detached,
            "The old memory is cut off the graph, the new states are not. In the next step they "
            "are memory, too.",
            "When the next segment is read, what of this one may still get a gradient?",
        ),
        Misconception(
            newest_in_front,
            "The new states stand before the old ones.",
            "Memory is the past. In which order have the places been read?",
        ),
        Misconception(
            oldest_kept,
            "The oldest places are kept and the newest dropped.",
            "From which end of the joined sequence do you count?",
        ),
        Misconception(
            last_segment_only,
            "The old memory is thrown away although there is room for some of it.",
            "The memory may be longer than a segment. What are its first places then?",
        ),
        Misconception(
            memory_never_renewed,
            "The new states never get into the memory.",
            "Which two tensors does the new memory come from?",
        ),
        Misconception(
            longest_without_the_segment,
            "`longest` is applied to the old memory alone; the result gets longer than that.",
            "Join first or cut first?",
        ),
        Misconception(
            minus_zero,
            "With `longest` = 0 everything is kept: `x[-0:]` is `x[0:]`.",
            "Where does the slice start if nothing is wanted? Count from the front.",
        ),
        Misconception(
            segment_kept_whole,
            "A segment that is longer than `longest` is kept whole.",
            "How long may the result be at most, whatever the segment's length?",
        ),
    ),
    accepted=(kept_by_room, kept_by_index, kept_by_narrow),
)

# --- memory_mask ---------------------------------------------------------------------------------


def memory_mask_cases(rng):
    """More memory than queries and the other way round; with and without a limit; no memory."""
    s = draw_sizes(rng, "length", "memory", among=(3, 5, 6, 7))
    few, many = sorted((s.length, s.memory))
    near = int(rng.integers(2, few + 1))
    for group, length, memory, reach, about in (
        ("open", few, many, None, "more memory than queries"),
        ("open", many, few, None, "more queries than memory"),
        ("reach", few, many, few + 1, "a reach into the memory"),
        ("reach", many, few, near, "a reach shorter than the segment"),
        ("edges", many, 0, None, "no memory yet"),
        ("edges", 1, many, many - 1, "one query"),
        ("edges", few, many, 0, "a reach of 0: each place sees itself"),
    ):
        yield Case(group, {"length": length, "memory": memory, "reach": reach}, about)


def memory_mask_reference(length, memory, reach):
    """Entry by entry."""
    mask = np.zeros((length, memory + length), dtype=bool)
    for i, j in np.ndindex(*mask.shape):
        back = memory + i - j
        mask[i, j] = back >= 0 and (reach is None or back <= reach)
    return torch.from_numpy(mask)


def _by_distance(length, memory, reach, offset=None, least=0, extra=0):
    offset = memory if offset is None else offset
    back = offset + torch.arange(length)[:, None] - torch.arange(memory + length)
    return (back >= least) & (back <= (memory + length if reach is None else reach + extra))


def memory_hidden(length, memory, reach):
    """Nobody sees the memory."""
    mask = _by_distance(length, memory, reach)
    mask[:, :memory] = False
    return mask


def queries_from_zero(length, memory, reach):
    """Counts queries from 0: the triangle sits at the left edge."""
    return _by_distance(length, memory, reach, offset=0)


def next_seen(length, memory, reach):
    """The triangle is one too wide."""
    return _by_distance(length, memory, reach, least=-1)


def itself_hidden(length, memory, reach):
    """The triangle is one too narrow."""
    return _by_distance(length, memory, reach, least=1)


def first_of_memory_lost(length, memory, reach):
    """Drops the oldest place of the memory."""
    mask = _by_distance(length, memory, reach)
    mask[:, : min(1, memory)] = False
    return mask


def all_seen(length, memory, reach):
    """Hides no future."""
    return _by_distance(length, memory, reach, least=-length)


def mask_turned(length, memory, reach):
    """True = hidden."""
    return ~_by_distance(length, memory, reach)


def memory_behind(length, memory, reach):
    """The memory's columns stand behind those of the segment."""
    return _by_distance(length, memory, reach).roll(length, dims=1)


def reach_ignored(length, memory, reach):
    """No limit."""
    return _by_distance(length, memory, None)


def reach_too_short(length, memory, reach):
    """A strict limit."""
    return _by_distance(length, memory, reach, extra=-1)


def reach_too_far(length, memory, reach):
    """One place too many."""
    return _by_distance(length, memory, reach, extra=1)


def reach_in_memory_alone(length, memory, reach):
    """Limits the memory to its last `reach` places, the same for every query."""
    mask = _by_distance(length, memory, None)
    if reach is not None:
        mask[:, : max(memory - reach, 0)] = False
    return mask


def mask_by_tril(length, memory, reach):
    """Right: two triangles of ones."""
    ones = torch.ones(length, memory + length, dtype=torch.bool)
    mask = ones.tril(memory)
    return mask if reach is None else mask & ones.triu(memory - reach)


def mask_by_rows(length, memory, reach):
    """Right: row by row."""
    mask = torch.zeros(length, memory + length, dtype=torch.bool)
    for i in range(length):
        first = 0 if reach is None else max(0, memory + i - reach)
        mask[i, first : memory + i + 1] = True
    return mask


def mask_by_parts(length, memory, reach):
    """Right: memory and segment apart, then joined."""
    seen = torch.cat(
        [torch.ones(length, memory).bool(), torch.ones(length, length).tril().bool()], dim=1
    )
    if reach is not None:
        for i in range(length):
            seen[i, : max(0, memory + i - reach)] = False
    return seen


MEMORY_MASK = Exercise(
    id="memory_mask",
    title="Who sees the memory",
    asks="Say which places of memory and segment each query may see.",
    parameters=("length", "memory", "reach"),
    outputs=("mask",),
    driver="tensor_function",
    groups={
        "open": Group(1, "all of the memory, and the past of the segment"),
        "reach": Group(1, "at most `reach` places back"),
        "edges": Group(1, "no memory, one query, a reach of 0"),
    },
    cases=memory_mask_cases,
    reference=memory_mask_reference,
    misconceptions=(
        Misconception(
            memory_hidden,
            "Nobody sees the memory.",
            "The memory is the past of every query. What follows for its columns?",
        ),
        Misconception(
            queries_from_zero,
            "Query i is taken for place i; but the memory stands before it.",
            "At which place of the joined sequence does query 0 stand?",
        ),
        Misconception(
            next_seen,
            "Each query sees one place too many: the next token.",
            "What is the last place that query 0 may see?",
        ),
        Misconception(
            itself_hidden,
            "A query does not see its own place.",
            "Is a distance of 0 allowed?",
        ),
        Misconception(
            first_of_memory_lost,
            "The oldest place of the memory is lost: off by one at the left edge.",
            "Without a limit, does query 0 see column 0?",
        ),
        Misconception(
            all_seen,
            "The future is seen.",
            "In the segment the mask is causal, with or without memory.",
        ),
        Misconception(
            mask_turned,
            "The mask is turned round: True means that a place may be seen.",
            "What should stand in the memory's columns when there is no limit?",
        ),
        Misconception(
            memory_behind,
            "The memory's columns stand behind those of the segment.",
            "Memory is the past: which columns come first?",
        ),
        Misconception(
            reach_ignored,
            "`reach` changes nothing.",
            "How far back may a query look if `reach` is 2?",
        ),
        Misconception(
            reach_too_short,
            "The limit is one place too short.",
            "A query with `reach` = 1 sees itself and how many others?",
        ),
        Misconception(
            reach_too_far,
            "The limit is one place too long.",
            "A query with `reach` = 1 sees itself and how many others?",
        ),
        Misconception(
            reach_in_memory_alone,
            "All queries get the same part of the memory; the limit should go with the query.",
            "How far is the oldest visible place from the *last* query?",
        ),
    ),
    accepted=(mask_by_tril, mask_by_rows, mask_by_parts),
)
