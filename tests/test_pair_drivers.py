"""The drivers for a generator and its discriminator, and for state dicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_course.drivers import DRIVERS, run_all
from attention_course.outcomes import Terms

RNG = np.random.default_rng(0)
PAIR = Terms(("shared", "memory", "trainable", "generator", "discriminator"), 5.0, ())


def weights(width, outputs):
    shapes = {
        "embeddings.words.weight": (5, 3),
        "embeddings.places.weight": (4, 3),
        "project.weight": (width, 3),
        "layers.0.weight": (width, width),
        "head.weight": (outputs, width),
    }
    return {name: RNG.normal(size=shape) for name, shape in shapes.items()}


def run_pair(candidate):
    inputs = {"generator": weights(2, 5), "discriminator": weights(3, 1)}
    return run_all("encoder_pair", candidate, [inputs], PAIR)[0], inputs


def test_the_same_parameter_and_the_same_memory_are_told_apart():
    def share(generator, discriminator):
        generator.embeddings.words.weight = discriminator.embeddings.words.weight
        generator.embeddings.places.weight.data = discriminator.embeddings.places.weight.data

    outcome, inputs = run_pair(share)
    # by name: places, words, head, layers, project
    assert outcome.outputs["shared"].tolist() == [False, True, False, False, False]
    assert outcome.outputs["memory"].tolist() == [True, True, False, False, False]
    assert outcome.outputs["trainable"].all() and outcome.outputs["trainable"].size == 10
    expected = np.concatenate([inputs["discriminator"][n].ravel() for n in sorted(weights(3, 1))])
    assert np.array_equal(outcome.outputs["discriminator"], expected)


def test_frozen_and_lost_parameters_are_seen():
    outcome, _ = run_pair(lambda generator, discriminator: generator.requires_grad_(False))
    assert outcome.outputs["trainable"].tolist() == [False] * 5 + [True] * 5

    def lose(generator, discriminator):
        del generator.head

    outcome, _ = run_pair(lose)
    assert outcome.status == "unusable" and "lost or gained" in outcome.message


def test_example_gives_encoders():
    given = DRIVERS["encoder_pair"].prepare({"generator": weights(2, 5)})
    assert given["generator"].width == 2
    assert given["generator"].project.weight.dtype == torch.float64


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        (lambda state: list(state), "a dict is expected"),
        (lambda state: {1: state}, "names must be"),
    ],
)
def test_state_dicts(candidate, message):
    terms = Terms(("names", "values"), 5.0, ())
    state = {"b.c": np.ones((2, 1)), "a": np.zeros(3)}
    kept = run_all(
        "state_dict",
        lambda state: {"z" + k: v for k, v in state.items()},
        [{"state": state}],
        terms,
    )[0]
    assert "".join(map(chr, kept.outputs["names"])) == "za\nzb.c"
    assert kept.outputs["values"].tolist() == [0, 0, 0, 1, 1]
    refused = run_all("state_dict", candidate, [{"state": state}], terms)[0]
    assert refused.status == "unusable" and message in refused.message
