"""The explorers of chapter 12 without a browser: arguments, and agreement with the exercises."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_course.explorers import layer_map, temperature_explorer
from autograder.exercises._ch12_attention import ATTENTION_LOSS

RNG = np.random.default_rng(1)


def attention(layers, length):
    powers = RNG.random((layers, length, length)) + 0.05
    return powers / powers.sum(-1, keepdims=True)


def test_temperature_softens_and_keeps_the_order():
    logits = RNG.normal(size=(3, 14)) * 3
    for token in range(3):
        cold = temperature_explorer(logits, token=token)
        warm = temperature_explorer(logits, token=token, temperature=4.0)
        expected = torch.from_numpy(logits[token] / 4).softmax(0).sort(descending=True).values
        np.testing.assert_allclose(warm.probabilities(), expected, atol=1e-5)
        assert (np.diff(warm.probabilities()) <= 0).all()
        assert warm.probabilities()[0] < cold.probabilities()[0]
    assert "4 others together" in cold.text() and "entropy" in cold.text()


def test_labels_are_named_and_may_be_missing():
    shown = temperature_explorer(np.eye(3), list("abc"), list("xyz"), labels=[2, -100, 0], token=0)
    assert shown.labels == ["z", None, "x"] and "(label: z)" in shown.text()
    shown.token = 1
    assert "label" not in shown.text()


def test_distances_of_layers_agree_with_the_exercise():
    ours, theirs = attention(2, 5), attention(3, 5)
    table = layer_map(ours, theirs).divergences()
    for s in range(2):
        for t in range(3):
            expected = ATTENTION_LOSS.reference(
                torch.from_numpy(ours)[:, None, None],
                torch.from_numpy(theirs)[:, None, None],
                [(s, t)],
                torch.ones(1, 5, dtype=torch.bool),
            )
            assert table[s, t] == pytest.approx(float(expected), abs=2e-3)


def test_maps_are_spread_evenly_unless_chosen():
    assert layer_map().pairs() == [(0, 1), (1, 3)]
    chosen = layer_map(attention(3, 4), attention(3, 4), chosen=[None, 0, 2])
    assert chosen.pairs() == [(1, 0), (2, 2)] and "1 ← nothing" in chosen.text()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: temperature_explorer([1.0, 2.0]), ValueError, r"shape \(tokens, classes\)"),
        (lambda: temperature_explorer([[1.0]]), ValueError, "at least 2 classes"),
        (lambda: temperature_explorer(np.eye(3), token=3), ValueError, "token must be a whole"),
        (lambda: temperature_explorer(np.eye(3), labels=[0]), ValueError, "each of the 3 tokens"),
        (lambda: temperature_explorer(np.eye(3), labels=[0, 1, 3]), ValueError, "labels must lie"),
        (lambda: temperature_explorer(temperature=0), ValueError, "temperature must lie"),
        (lambda: layer_map(np.ones((2, 3)), np.ones((2, 3))), ValueError, "3 axes"),
        (lambda: layer_map(attention(2, 3), attention(2, 4)), ValueError, "same tokens"),
        (lambda: layer_map(attention(2, 3)[:, :2], attention(2, 3)), ValueError, "as many keys"),
        (lambda: layer_map(2 * np.ones((1, 2, 2)), attention(1, 2)), ValueError, "from 0 to 1"),
        (lambda: layer_map(attention(13, 2), attention(1, 2)), ValueError, "at most 12"),
        (lambda: layer_map(chosen=[0]), ValueError, "each of the 2 student layers"),
        (lambda: layer_map(chosen=[0, 4]), ValueError, "from 0 to 3"),
        (lambda: layer_map(*[attention(1, 3)] * 2, "abc"), TypeError, "one string"),
    ],
)
def test_errors_name_the_argument(make, error, words):
    with pytest.raises(error, match=words):
        make()
