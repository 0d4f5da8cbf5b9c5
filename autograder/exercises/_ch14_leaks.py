"""Chapter 14: measure which places of a model influence which, and hold it against a mask."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_mask
from autograder.exercise import Exercise, Group, Misconception


def draw_edges(rng: np.random.Generator, reads: np.ndarray) -> np.ndarray:
    """Draw how much place i reads of place j, 0 where `reads` is False: neither small nor equal."""
    sizes = rng.uniform(0.5, 1.5, size=reads.shape) * rng.choice([-1, 1], size=reads.shape)
    return np.where(reads, sizes, 0.0)


def leaks_cases(rng):
    """Models that read what they may not, models that hide it, and sound ones."""

    def inputs(view, mask, reads, blind_inputs=(), blind_outputs=()):
        width = 3
        weight = rng.normal(size=(width, 2)) + 0.5
        weight[list(blind_inputs)] = 0.0
        weight[:, list(blind_outputs)] = 0.0
        return {
            "view": view,
            "edges": draw_edges(rng, reads),
            "weight": weight,
            "x": rng.normal(size=(len(mask), width)),
            "mask": mask,
        }

    causal = np.tri(5, dtype=bool)
    some = draw_mask(rng, 5, 5)
    plain = "as they are"
    reads = draw_mask(rng, 5, 5)
    reads[0] |= ~some[0]
    yield Case("leaks", inputs(plain, some, reads, (), [1]), "a model that keeps to no mask")
    ahead = np.tri(5, k=1, dtype=bool)
    yield Case("leaks", inputs(plain, causal, ahead, [0]), "one token ahead")
    padded = np.arange(5) < int(rng.integers(2, 4))
    seen = np.broadcast_to(padded, (5, 5)).copy()
    yield Case(
        "leaks", inputs(plain, seen, draw_mask(rng, 5, 5) | ~seen, (), [0]), "padding is read"
    )
    for view in ("without their mean", "by direction", "without signs"):
        other = draw_mask(rng, 4, 4)
        other[0, 3] = True
        about = f"it sees its vectors {view}"
        yield Case("hidden", inputs(view, np.tri(4, dtype=bool), other), about)
    yield Case("clean", inputs(plain, causal, causal), "causal, as it should be")
    yield Case("clean", inputs(plain, seen, seen & draw_mask(rng, 5, 5)), "padding is not read")


def _influence(model, x, change, differs=None):
    """(length, length): does output i differ if `change(x, j)` stands for x?"""
    differs = differs or (lambda a, b: ((a - b).abs() > 1e-6).any(dim=-1))
    plain = model(x[None])[0]
    columns = [differs(model(change(x, j)[None])[0], plain) for j in range(len(x))]
    return torch.stack(columns, dim=1)


def _replaced(x, j, new):
    x = x.clone()
    x[j] = new(x[j])
    return x


def _other(vector):
    """Another vector: no multiple, no shift of the old one."""
    return 1.7 - vector.flip(0) * torch.linspace(0.6, 2.3, len(vector), dtype=vector.dtype)


def leaks_reference(model, x, mask):
    """Two different changes of every place, both in one batch; either may show."""
    length = len(x)
    found = torch.zeros(length, length, dtype=torch.bool)
    for new in (_other, lambda v: 3.1 + v.flip(0) * 2 + v**2):
        batch = x.repeat(length + 1, 1, 1)
        for j in range(length):
            batch[j, j] = new(x[j])
        results = model(batch)
        found |= ((results[:-1] - results[-1]).abs().amax(dim=-1) > 1e-6).T
    return found & ~mask


def everything_that_is_read(model, x, mask):
    """Ignores the mask."""
    return _influence(model, x, lambda x, j: _replaced(x, j, _other))


def what_may_be_read(model, x, mask):
    """Keeps what the mask allows."""
    return everything_that_is_read(model, x, mask) & mask


def turned_round(model, x, mask):
    """Rows are what is changed."""
    return everything_that_is_read(model, x, mask).T & ~mask


def turned_at_the_end(model, x, mask):
    """Compares rightly and gives the transpose."""
    return (everything_that_is_read(model, x, mask) & ~mask).T


def equal_to_the_last_bit(model, x, mask):
    """Any difference counts, rounding too."""
    found = _influence(
        model, x, lambda x, j: _replaced(x, j, _other), lambda a, b: (a != b).any(dim=-1)
    )
    return found & ~mask


def first_feature_of_result(model, x, mask):
    """Looks at feature 0 of the results."""
    found = _influence(
        model,
        x,
        lambda x, j: _replaced(x, j, _other),
        lambda a, b: (a - b).abs()[..., 0] > 1e-6,
    )
    return found & ~mask


def all_features_must_change(model, x, mask):
    """A leak only where every feature changes."""
    found = _influence(
        model,
        x,
        lambda x, j: _replaced(x, j, _other),
        lambda a, b: ((a - b).abs() > 1e-6).all(dim=-1),
    )
    return found & ~mask


def first_feature_of_input(model, x, mask):
    """Changes feature 0 only."""

    def change(x, j):
        x = x.clone()
        x[j, 0] += 1.0
        return x

    return _influence(model, x, change) & ~mask


def constant_added(model, x, mask):
    """Adds 1 to all features."""
    return _influence(model, x, lambda x, j: _replaced(x, j, lambda v: v + 1)) & ~mask


def vector_scaled(model, x, mask):
    """Doubles the vector."""
    return _influence(model, x, lambda x, j: _replaced(x, j, lambda v: 2 * v)) & ~mask


def sign_turned(model, x, mask):
    """Turns the vector's sign."""
    return _influence(model, x, lambda x, j: _replaced(x, j, lambda v: -v)) & ~mask


def all_later_places_changed(model, x, mask):
    """Changes place j and all after it."""

    def change(x, j):
        return torch.cat([x[:j], torch.stack([_other(v) for v in x[j:]])])

    return _influence(model, x, change) & ~mask


def changes_left_in(model, x, mask):
    """Place after place is changed and never put back."""
    changed = x.clone()

    def change(_, j):
        changed[j] = _other(x[j])
        return changed

    return _influence(model, x, change) & ~mask


def change_too_small(model, x, mask):
    """The change is as small as what counts as rounding."""
    return _influence(model, x, lambda x, j: _replaced(x, j, lambda v: v + 1e-8)) & ~mask


def only_later_places(model, x, mask):
    """Knows leaks from the future only."""
    found = everything_that_is_read(model, x, mask) & ~mask
    return found.triu(1)


def place_by_place(model, x, mask):
    """Right: random vectors, a loop over both places."""
    generator = torch.Generator().manual_seed(0)
    plain = model(x.unsqueeze(0))
    result = torch.zeros(mask.shape, dtype=torch.bool)
    for j in range(x.shape[0]):
        changed = x.clone()
        changed[j] = 5 * torch.randn(x.shape[1], generator=generator, dtype=x.dtype)
        gap = (model(changed.unsqueeze(0)) - plain).abs().squeeze(0)
        for i in range(x.shape[0]):
            result[i, j] = not mask[i, j] and gap[i].max().item() > 1e-6
    return result


def taken_away(model, x, mask):
    """Right: the vector of zeros in its place."""
    return _influence(model, x, lambda x, j: _replaced(x, j, torch.zeros_like)) & ~mask


def all_in_one_batch(model, x, mask):
    """Right: one call for all changes."""
    length = len(x)
    own = torch.eye(length, dtype=torch.bool)[..., None]
    generator = torch.Generator().manual_seed(3)
    new = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    gaps = model(torch.where(own, new, x)) - model(x[None])
    return (gaps.norm(dim=-1) > 1e-6).T.logical_and(mask.logical_not())


_RANDOM = "any random vector is as good"
_ONE = "the batch holds one sequence"
_BETWEEN = "rounding is far smaller, influence far larger"

LEAKS = Exercise(
    id="leaks",
    title="What a model must not read",
    asks="Find out by trying which places influence which, against the mask.",
    parameters=("view", "edges", "weight", "x", "mask"),
    outputs=("leaks",),
    driver="read_model",
    seconds=5.0,
    groups={
        "leaks": Group(2, "models that read what they must not"),
        "hidden": Group(1, "models that hide it from a careless change"),
        "clean": Group(1, "sound models, and rounding"),
    },
    cases=leaks_cases,
    reference=leaks_reference,
    misconceptions=(
        Misconception(
            everything_that_is_read,
            "This is all that is read, also what the mask allows.",
            "Which of these pairs does `mask` forbid?",
        ),
        Misconception(
            what_may_be_read,
            "This is what the mask allows; what it forbids is asked.",
            "True in `mask` means: may be seen.",
        ),
        Misconception(
            turned_round,
            "Rows and columns of what is read are exchanged before the mask comes in.",
            "If you change place j, which entries of the result do you learn: a row or a column?",
        ),
        Misconception(
            turned_at_the_end,
            "The result is transposed.",
            "The first axis is the place that reads, the second the place that is read.",
        ),
        Misconception(
            equal_to_the_last_bit,
            "Rounding is taken for influence: results are compared to the last bit.",
            "Point 4 says how large a change counts.",
        ),
        Misconception(
            first_feature_of_result,
            "Only the first feature of the results is looked at.",
            "A change may show in any feature.",
        ),
        Misconception(
            all_features_must_change,
            "A change is only seen if every feature of the result changes.",
            "One feature is enough.",
        ),
        Misconception(
            first_feature_of_input,
            "Only the first feature of a place is changed; the model may not use it.",
            "Change the whole vector.",
        ),
        Misconception(
            constant_added,
            "The same number is added to all features: a model that centres its vectors, as layer "
            "norm does, sees no change.",
            "Which change would a layer norm not undo?",
        ),
        Misconception(
            vector_scaled,
            "The vector is multiplied by a number: a model that looks at directions sees no "
            "change.",
            "Which change would a layer norm not undo?",
        ),
        Misconception(
            sign_turned,
            "The vector's sign is turned: a model that looks at sizes sees no change.",
            "Put something in its place that has nothing to do with it.",
        ),
        Misconception(
            all_later_places_changed,
            "All places from j on are changed at once.",
            "If two places change, whose influence do you see?",
        ),
        Misconception(
            changes_left_in,
            "A changed place is not put back before the next one is changed.",
            "Begin with a fresh copy of x for each place.",
        ),
        Misconception(
            change_too_small,
            "The change is so small that its effect counts as rounding.",
            "Put a wholly different vector there.",
        ),
        Misconception(
            only_later_places,
            "Only later places are looked at; a mask may forbid earlier ones, too.",
            "Padding, for example. Take `mask` as it is.",
        ),
    ),
    accepted=(place_by_place, taken_away, all_in_one_batch),
    equivalent_mutants={
        "`torch.Generator().manual_seed(0)` → `torch.Generator().manual_seed(1)`": _RANDOM,
        "`torch.Generator().manual_seed(0)` → `torch.Generator().manual_seed(-1)`": _RANDOM,
        "`model(x[None])[0]` → `model(x[None])[-1]`": _ONE,
        "`model(changed[None])[0]` → `model(changed[None])[-1]`": _ONE,
        "`torch.zeros_like(mask)` → `torch.ones_like(mask)`": "every column is written over",
        "`model(changed[None])[0] - plain` → `plain - model(changed[None])[0]`": "only the "
        "size of the difference counts",
        "`moved.abs() > 1e-06` → `moved.abs() >= 1e-06`": _BETWEEN,
        "`moved.abs() > 1e-06` → `moved.abs() > 2e-06`": _BETWEEN,
        "`(moved.abs() > 1e-06).any(dim=-1)` → `(moved.abs() > 1e-06).any(dim=1)`": "there are "
        "two axes: the last one is axis 1",
    },
)
