"""Chapter 12: several teachers, averaged as probabilities or as logits."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def teacher_average_cases(rng):
    """Three teachers with unequal weights, in both spaces; one more axis."""
    for space, lead, temperature, about in (
        ("probabilities", (2,), 2.0, "probabilities are averaged"),
        ("logits", (2,), 3.0, "logits are averaged"),
        ("probabilities", (2, 4), 0.5, "probabilities, one more axis"),
        ("logits", (4, 2), 0.6, "logits, one more axis"),
    ):
        teachers, classes = 3, 5
        yield Case(
            space,
            {
                "logits": 2 * rng.normal(size=(teachers, *lead, classes)),
                "weights": rng.permutation([0.5, 1.5, 4.0]) * rng.uniform(0.8, 1.2, 3),
                "temperature": temperature + round(float(rng.uniform(0, 0.2)), 3),
                "space": space,
            },
            about,
        )


def teacher_average_reference(logits, weights, temperature, space):
    """NumPy's weighted average, in float64."""
    weights, scaled = weights.numpy(), logits.numpy() / temperature

    def softmax(x):
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    if space == "logits":
        return torch.from_numpy(softmax(np.average(scaled, axis=0, weights=weights)))
    return torch.from_numpy(np.average(softmax(scaled), axis=0, weights=weights))


def _weighted(values, weights):
    return torch.tensordot(weights / weights.sum(), values, dims=1)


def _averaged(logits, weights, temperature, space):
    if space == "logits":
        return _weighted(logits / temperature, weights).softmax(-1)
    return _weighted((logits / temperature).softmax(-1), weights)


def always_probabilities(logits, weights, temperature, space):
    """Ignores `space`."""
    return _averaged(logits, weights, temperature, "probabilities")


def always_logits(logits, weights, temperature, space):
    """Ignores `space`."""
    return _averaged(logits, weights, temperature, "logits")


def all_teachers_alike(logits, weights, temperature, space):
    """Ignores the weights."""
    return _averaged(logits, torch.ones_like(weights), temperature, space)


def weights_not_normalised(logits, weights, temperature, space):
    """A weighted sum."""
    if space == "logits":
        return (weights.sum() * _weighted(logits / temperature, weights)).softmax(-1)
    return weights.sum() * _averaged(logits, weights, temperature, space)


def softmax_over_weights(logits, weights, temperature, space):
    """Takes a softmax of the weights."""
    return _averaged(logits, weights.softmax(0), temperature, space)


def temperature_forgotten(logits, weights, temperature, space):
    """T = 1."""
    return _averaged(logits, weights, 1.0, space)


def made_sharper(logits, weights, temperature, space):
    """Multiplies by T."""
    return _averaged(logits, weights, 1 / temperature, space)


def mean_logits_returned(logits, weights, temperature, space):
    """Forgets the softmax at the end."""
    if space == "logits":
        return _weighted(logits / temperature, weights)
    return _averaged(logits, weights, temperature, space)


def best_teacher_only(logits, weights, temperature, space):
    """The one with the largest weight."""
    return (logits[weights.argmax()] / temperature).softmax(-1)


def softened_after_averaging(logits, weights, temperature, space):
    """Averages at T = 1, then softens the mean distribution."""
    mean = _averaged(logits, weights, 1.0, space)
    return (mean.log() / temperature).softmax(-1)


def one_by_one(logits, weights, temperature, space):
    """Right: a loop over teachers."""
    total = 0.0
    for teacher, weight in zip(logits, weights, strict=True):
        scaled = teacher / temperature
        total = total + weight * (scaled.softmax(-1) if space == "probabilities" else scaled)
    total = total / weights.sum()
    return total if space == "probabilities" else F.softmax(total, dim=-1)


def by_log_probabilities(logits, weights, temperature, space):
    """Right: the mean of log-probabilities differs from that of logits by a constant."""
    shares = weights / weights.sum()
    logs = (logits / temperature).log_softmax(-1)
    if space == "logits":
        return torch.einsum("t,t...->...", shares, logs).softmax(-1)
    return torch.einsum("t,t...->...", shares, logs.exp())


def by_broadcasting(logits, weights, temperature, space):
    """Right: weights with axes of length 1."""
    shares = (weights / weights.sum()).reshape(-1, *[1] * (logits.dim() - 1))
    if space == "probabilities":
        return (shares * torch.softmax(logits / temperature, -1)).sum(0)
    return torch.softmax((shares * logits).sum(0) / temperature, -1)


TEACHER_AVERAGE = Exercise(
    id="teacher_average",
    title="Several teachers",
    asks="Average several teachers' distributions, as probabilities or as logits.",
    parameters=("logits", "weights", "temperature", "space"),
    driver="tensor_function",
    groups={
        "probabilities": Group(1.5, "probabilities are averaged"),
        "logits": Group(1.5, "logits are averaged"),
    },
    cases=teacher_average_cases,
    reference=teacher_average_reference,
    misconceptions=(
        Misconception(
            always_probabilities,
            "Probabilities are averaged, whatever `space` says.",
            "What does your function do differently for logits?",
        ),
        Misconception(
            always_logits,
            "Logits are averaged, whatever `space` says.",
            "What does your function do differently for probabilities?",
        ),
        Misconception(
            all_teachers_alike,
            "All teachers count alike; `weights` is not used.",
            "Where do the weights enter?",
        ),
        Misconception(
            weights_not_normalised,
            "The weights are not divided by their sum.",
            "What do the weights of an average sum to?",
        ),
        Misconception(
            softmax_over_weights,
            "The weights go through a softmax; the contract divides them by their sum.",
            "What should weights 1 and 3 become?",
        ),
        Misconception(
            temperature_forgotten,
            "The temperature has no effect.",
            "Where is it divided by?",
        ),
        Misconception(
            made_sharper,
            "The logits are multiplied by the temperature.",
            "Should a high temperature give a flatter distribution?",
        ),
        Misconception(
            mean_logits_returned,
            "For logits the result is no distribution: the softmax at the end is missing.",
            "What do the entries of a row sum to?",
        ),
        Misconception(
            best_teacher_only,
            "Only one teacher is heard.",
            "Every teacher takes part.",
        ),
        Misconception(
            softened_after_averaging,
            "The teachers are averaged first and softened afterwards.",
            "Which comes first in the contract?",
        ),
    ),
    accepted=(one_by_one, by_log_probabilities, by_broadcasting),
)
