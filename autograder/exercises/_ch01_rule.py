"""Chapter 01: the rule of broadcasting itself."""

from __future__ import annotations

import itertools

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def broadcast_shape_cases(rng):
    """Pairs that fit, in either order, then pairs that clash, one of them by multiples."""
    a, b, c, d = (int(n) for n in rng.choice((2, 3, 5, 6, 7), size=4, replace=False))
    full = [a, b, c, d]
    ones = rng.random(4) < 0.5
    mixed = tuple(1 if one else n for n, one in zip(full, ones, strict=True))
    other = tuple(n if one else 1 for n, one in zip(full, ones, strict=True))
    n = int(rng.choice((2, 3, 5)))
    for first, second, about in (
        ((a, 1, c), (1, b, c), "equally many axes"),
        ((b, c), (a, 1, c), "fewer axes first"),
        ((a, b, 1, d), (c, 1), "four axes and two"),
        ((c,), (a, b, c), "a vector and three axes"),
        ((a, b), (), "a number without axes"),
        (mixed, other, "each axis stretched on one side"),
        ((a, 1, b), (1, b), "an axis of length 1 on both sides"),
    ):
        yield Case("shapes", {"first": first, "second": second}, about)
    for first, second, about in (
        ((a, b), (a, c), "the last axes clash"),
        ((a, b, c), (d, 1, c), "the first axes clash"),
        ((b, c), (b,), "would only fit if shapes were aligned on the left"),
        ((a, n), (a, 2 * n), "one length is twice the other, which is still a clash"),
        ((c, 1, a), (c, b, d), "one axis stretches, another clashes"),
    ):
        yield Case("clashes", {"first": first, "second": second}, about)


def broadcast_shape_reference(first, second):
    """NumPy's own answer."""
    return np.broadcast_shapes(first, second)


def _padded(first, second):
    """Give both shapes equally many axes, ones in front."""
    axes = max(len(first), len(second))
    return (1,) * (axes - len(first)) + first, (1,) * (axes - len(second)) + second


def _stretched(a, b):
    """Give the length of two aligned axes."""
    if a != b and 1 not in (a, b):
        raise ValueError(f"lengths {a} and {b} clash")
    return b if a == 1 else a


def aligned_on_the_left(first, second):
    """Adds the missing ones behind."""
    axes = max(len(first), len(second))
    first = first + (1,) * (axes - len(first))
    second = second + (1,) * (axes - len(second))
    return tuple(_stretched(a, b) for a, b in zip(first, second, strict=True))


def aligned_on_the_left_unchecked(first, second):
    """Adds the missing ones behind and takes the larger length."""
    axes = max(len(first), len(second))
    first = first + (1,) * (axes - len(first))
    second = second + (1,) * (axes - len(second))
    return tuple(max(a, b) for a, b in zip(first, second, strict=True))


def larger_length_unchecked(first, second):
    """Takes the larger length without asking whether the smaller is 1."""
    return tuple(max(a, b) for a, b in zip(*_padded(first, second), strict=True))


def extra_axes_dropped(first, second):
    """zip stops at the shorter shape."""
    pairs = list(zip(first[::-1], second[::-1], strict=False))
    return tuple(_stretched(a, b) for a, b in pairs)[::-1]


def never_turned_back(first, second):
    """Works from the right and forgets to reverse the result."""
    pairs = zip(*_padded(first, second), strict=True)
    return tuple(_stretched(a, b) for a, b in pairs)[::-1]


def longer_shape_wins(first, second):
    """Returns the shape with more axes after checking for clashes."""
    for a, b in zip(*_padded(first, second), strict=True):
        _stretched(a, b)
    return max(first, second, key=len)


def equal_lengths_only(first, second):
    """Forgets that a 1 stretches."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if a != b:
            raise ValueError(f"lengths {a} and {b} clash")
        lengths.append(a)
    return tuple(lengths)


def only_the_first_stretches(first, second):
    """A 1 in the second shape counts as a clash."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if a not in (1, b):
            raise ValueError(f"lengths {a} and {b} clash")
        lengths.append(b)
    return tuple(lengths)


def equal_ranks_only(first, second):
    """Refuses shapes with different numbers of axes."""
    if len(first) != len(second):
        raise ValueError("the shapes have different numbers of axes")
    return tuple(_stretched(a, b) for a, b in zip(first, second, strict=True))


def multiples_stretch(first, second):
    """Lets a length stretch to any multiple of itself."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if max(a, b) % min(a, b):
            raise ValueError(f"lengths {a} and {b} clash")
        lengths.append(max(a, b))
    return tuple(lengths)


def clash_returns_none(first, second):
    """Gives None where an exception is asked for."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if a != b and 1 not in (a, b):
            return None
        lengths.append(max(a, b))
    return tuple(lengths)


def clash_is_an_assertion(first, second):
    """Uses assert, which raises AssertionError."""
    for a, b in zip(*_padded(first, second), strict=True):
        assert a == b or 1 in (a, b), f"lengths {a} and {b} clash"
    return larger_length_unchecked(first, second)


def only_last_axis_checked(first, second):
    """Looks for a clash in the last axis only."""
    if first and second:
        _stretched(first[-1], second[-1])
    return larger_length_unchecked(first, second)


def shape_by_zip_longest(first, second):
    """Right: pairs from the right, with ones where a shape has run out of axes."""
    pairs = itertools.zip_longest(reversed(first), reversed(second), fillvalue=1)
    return tuple(_stretched(a, b) for a, b in pairs)[::-1]


def shape_by_padding(first, second):
    """Right: ones in front, then axis by axis."""
    return tuple(_stretched(a, b) for a, b in zip(*_padded(first, second), strict=True))


def shape_from_the_right(first, second):
    """Right: walks from the right with an index."""
    result = []
    for place in range(1, max(len(first), len(second)) + 1):
        lengths = {shape[-place] for shape in (first, second) if place <= len(shape)} - {1}
        if len(lengths) > 1:
            raise ValueError("clash")
        result.insert(0, lengths.pop() if lengths else 1)
    return tuple(result)


def shape_by_recursion(first, second):
    """Right: the last axes, then the rest."""
    if not first or not second:
        return first or second
    return (*shape_by_recursion(first[:-1], second[:-1]), _stretched(first[-1], second[-1]))


BROADCAST_SHAPE = Exercise(
    id="broadcast_shape",
    title="The broadcasting rule",
    asks="Give the shape that two shapes broadcast to, or raise ValueError if they clash.",
    parameters=("first", "second"),
    forbidden=("numpy.*", "scipy.*", "torch.*"),
    groups={
        "shapes": Group(2, "shapes that fit"),
        "clashes": Group(1, "clashes raise ValueError"),
    },
    cases=broadcast_shape_cases,
    reference=broadcast_shape_reference,
    misconceptions=(
        Misconception(
            aligned_on_the_left,
            "The shapes are aligned on the left; NumPy aligns them on the right.",
            "Write (5, 3) above (3,): which axis of the first does the 3 belong to?",
        ),
        Misconception(
            aligned_on_the_left_unchecked,
            "The shapes are aligned on the left (and no clash is noticed); NumPy aligns them on "
            "the right.",
            "Write (5, 3) above (3,): which axis of the first does the 3 belong to?",
        ),
        Misconception(
            larger_length_unchecked,
            "The larger length is taken, though an axis stretches only if its length is 1.",
            "What should happen to lengths 2 and 3?",
        ),
        Misconception(
            extra_axes_dropped,
            "Axes that only the longer shape has are dropped: `zip` stops at the shorter one.",
            "Where one shape has run out of axes, act as if it had a 1 there.",
        ),
        Misconception(
            never_turned_back,
            "The result is in reverse order.",
            "If you walk from the right, the axis you find first is the last one of the result.",
        ),
        Misconception(
            longer_shape_wins,
            "The shape with more axes is returned as it is, but its ones may stretch too.",
            "Try (1, 3) with (2, 1) on paper: neither of them is the result.",
        ),
        Misconception(
            equal_lengths_only,
            "Only equal lengths are let through; a length of 1 stretches to any length.",
            "There are two ways to fit: equal, or one of the two is 1.",
        ),
        Misconception(
            only_the_first_stretches,
            "A 1 stretches in the first shape only; the rule is the same for both.",
            "Exchange the arguments in one case: the result must not change.",
        ),
        Misconception(
            equal_ranks_only,
            "Shapes with different numbers of axes are refused; the shorter one gets ones in "
            "front instead.",
            "Which axes can be added to an array without changing its numbers?",
        ),
        Misconception(
            multiples_stretch,
            "A length is stretched to a multiple of itself; NumPy stretches only a 1.",
            "Try `np.ones(3) + np.ones(6)`.",
        ),
        Misconception(
            clash_returns_none,
            "A clash returns None; the text asks for an exception.",
            "`raise ValueError(...)` in the branch where the lengths clash.",
        ),
        Misconception(
            clash_is_an_assertion,
            "`assert` raises AssertionError; the text asks for ValueError.",
            "Use `raise`: unlike `assert`, it also works when Python runs with -O.",
        ),
        Misconception(
            only_last_axis_checked,
            "Only the last axes are checked for a clash.",
            "Do the same for every pair of aligned axes.",
        ),
    ),
    accepted=(shape_by_zip_longest, shape_by_padding, shape_from_the_right, shape_by_recursion),
    equivalent_mutants={
        "`(a, b)` → `(b, a)`": "stretching is symmetric",
        "`zip(first, second, strict=True)` → `zip(second, first, strict=True)`": (
            "stretching is symmetric"
        ),
        "`return tuple(result)` → `return result`": "a list of lengths is accepted",
    },
)
