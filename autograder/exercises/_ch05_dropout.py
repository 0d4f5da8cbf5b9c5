"""Chapter 05: inverted dropout by hand, with the random numbers given."""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def dropout_cases(rng):
    """Training with several rates, evaluation, and the rates 0 and 1."""

    def inputs(p, training, lead=()):
        s = draw_sizes(rng, "length", "d", among=(3, 4, 5))
        shape = (*lead, s.length, s.d)
        uniform = rng.random(shape)
        uniform[..., 0, 1] = p  # exactly on the border: kept
        uniform[..., 1, 0], uniform[..., 2, 2] = 0.0, 0.999  # both kinds, whatever is drawn
        x = 1.0 + rng.normal(size=shape)
        return {"x": x, "p": p, "uniform": uniform, "training": training}

    for p in (0.25, 0.75):
        yield Case("training", inputs(p, True), f"training, p = {p}")
    yield Case("training", inputs(0.375, True, (2,)), "training, a batch")
    yield Case("evaluation", inputs(0.25, False), "evaluation")
    yield Case("evaluation", inputs(0.75, False, (2,)), "evaluation, a batch")
    yield Case("rates", inputs(0.0, True), "training, p = 0")
    everything = inputs(1.0, True)
    everything["uniform"] *= 0.9
    yield Case("rates", everything, "training, p = 1")
    yield Case("rates", inputs(1.0, False), "evaluation, p = 1")


def dropout_reference(x, p, uniform, training):
    """One number at a time."""
    if not training:
        return x * 1.0
    flat = zip(x.flatten(), uniform.flatten().tolist(), strict=True)
    kept = [value / (1 - p) if chance >= p else 0 * value for value, chance in flat]
    return torch.stack(kept).reshape(x.shape)


def _kept(x, p, uniform):
    return torch.where(uniform >= p, x, torch.zeros_like(x))


def not_scaled_up(x, p, uniform, training):
    """Drops and leaves the rest as it is."""
    return _kept(x, p, uniform) if training else x


def scaled_down_in_evaluation(x, p, uniform, training):
    """Multiplies by 1 − p in evaluation, as the first papers did."""
    return _kept(x, p, uniform) if training else (1 - p) * x


def scaled_in_both(x, p, uniform, training):
    """Scales up in training and in evaluation."""
    if p == 1:
        return torch.zeros_like(x)
    return (_kept(x, p, uniform) if training else x) / (1 - p)


def divided_by_p(x, p, uniform, training):
    """Divides by p."""
    if not training:
        return x
    return _kept(x, p, uniform) / p if p else x


def multiplied_by_keep_rate(x, p, uniform, training):
    """Multiplies what is kept by 1 − p."""
    return _kept(x, p, uniform) * (1 - p) if training else x


def p_keeps(x, p, uniform, training):
    """Takes p for the probability of staying."""
    if not training:
        return x
    return torch.where(uniform < p, x / p, torch.zeros_like(x)) if p else torch.zeros_like(x)


def keeps_what_should_go(x, p, uniform, training):
    """Drops the others: the share is wrong, the scale is right."""
    if not training:
        return x
    rest = x / (1 - p) if p < 1 else torch.zeros_like(x)
    return torch.where(uniform < p, rest, torch.zeros_like(x))


def also_in_evaluation(x, p, uniform, training):
    """Ignores `training`."""
    return _kept(x, p, uniform) / (1 - p) if p < 1 else torch.zeros_like(x)


def only_in_evaluation(x, p, uniform, training):
    """Reads the switch the wrong way round."""
    if training:
        return x
    return _kept(x, p, uniform) / (1 - p) if p < 1 else torch.zeros_like(x)


def nan_at_one(x, p, uniform, training):
    """Multiplies a mask of zeros by 1/0."""
    return x * ((uniform >= p) / torch.tensor(1 - p)) if training else x


def border_dropped(x, p, uniform, training):
    """Drops what lies exactly on the border."""
    if not training:
        return x
    return torch.where(uniform > p, x / (1 - p or 1), torch.zeros_like(x))


def whole_columns(x, p, uniform, training):
    """Uses the first token's random numbers for all tokens."""
    if not training:
        return x
    return _kept(x, p, uniform[..., :1, :].expand_as(x)) / (1 - p or 1)


def own_random_numbers(x, p, uniform, training):
    """Draws random numbers of its own."""
    return _kept(x, p, torch.rand_like(x)) / (1 - p or 1) if training else x


def in_place(x, p, uniform, training):
    """Writes zeros into the caller's tensor, which autograd refuses."""
    if not training:
        return x
    x[uniform < p] = 0.0
    return x / (1 - p or 1)


def by_product(x, p, uniform, training):
    """Right: a mask of floats that holds the scale."""
    if not training or p == 0:
        return x
    keep = (uniform >= p).to(x.dtype)
    return x * keep * (1 / (1 - p) if p < 1 else 0.0)


def by_masked_fill(x, p, uniform, training):
    """Right: fill first, then scale, 1 for nothing left."""
    rate = p if training else 0.0
    return x.masked_fill(uniform < rate, 0.0) / (1 - rate or 1)


def by_index(x, p, uniform, training):
    """Right: writes what is kept into zeros."""
    if not training:
        return x.clone()
    result, keep = torch.zeros_like(x), torch.logical_not(uniform.lt(p))
    result[keep] = x[keep] / (1 - p) if keep.any() else x[keep]
    return result


DROPOUT = Exercise(
    id="dropout",
    title="Dropout by hand",
    asks="Drop each number with probability p, scale up the rest; do nothing in evaluation.",
    parameters=("x", "p", "uniform", "training"),
    outputs=("result", "gradient of x"),
    driver="tensor_function",
    seconds=10.0,
    forbidden=("*dropout*",),
    groups={
        "training": Group(1, "training"),
        "evaluation": Group(0.5, "evaluation"),
        "rates": Group(0.5, "the rates 0 and 1"),
    },
    cases=dropout_cases,
    reference=dropout_reference,
    misconceptions=(
        Misconception(
            not_scaled_up,
            "What is kept is not scaled up, so sums shrink in training.",
            "If half of the numbers go, by what must the others grow to keep the mean?",
        ),
        Misconception(
            scaled_down_in_evaluation,
            "Evaluation scales down instead of training scaling up: the older form.",
            "The contract says what evaluation does to x.",
        ),
        Misconception(
            scaled_in_both,
            "Evaluation is scaled up as well.",
            "In evaluation nothing is dropped, so there is nothing to make up for.",
        ),
        Misconception(
            divided_by_p,
            "What is kept is divided by p, the share that goes.",
            "Which share *stays*?",
        ),
        Misconception(
            multiplied_by_keep_rate,
            "What is kept is made smaller; it must grow to make up for what goes.",
            "The mean of the result should be the mean of x.",
        ),
        Misconception(
            p_keeps,
            "p is taken for the probability of staying (as in some other libraries).",
            "With p = 0.25, which share of the numbers should go?",
        ),
        Misconception(
            keeps_what_should_go,
            "The comparison is the wrong way round: what should go stays.",
            "For which values of `uniform` is a number dropped?",
        ),
        Misconception(
            also_in_evaluation,
            "Dropout is active in evaluation too: `training` is not used.",
            "What should two calls with the same x give when nothing is trained?",
        ),
        Misconception(
            only_in_evaluation,
            "Training and evaluation are exchanged.",
            "In which of the two should noise be added?",
        ),
        Misconception(
            nan_at_one,
            "With p = 1 the scale is 1/0, and 0 · ∞ is NaN.",
            "The contract says what p = 1 gives: which case must be looked at before dividing?",
        ),
        Misconception(
            border_dropped,
            "A random number equal to p is dropped; the contract drops smaller ones only.",
            "< or ≤? With p = 0 nothing may go, not even where the random number is 0.",
        ),
        Misconception(
            whole_columns,
            "All tokens share the random numbers of the first one.",
            "`uniform` has as many numbers as x.",
        ),
        Misconception(
            own_random_numbers,
            "The random numbers are drawn anew; `uniform` is not used.",
            "The given numbers decide, so that the result is the same every time.",
        ),
        Misconception(
            in_place,
            "Zeros are written into the caller's tensor.",
            "`torch.where` makes a new tensor.",
        ),
    ),
    accepted=(by_product, by_masked_fill, by_index),
)
