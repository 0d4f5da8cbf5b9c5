"""The explorers of chapter 08 without a browser: arguments, and agreement with the exercises."""

import numpy as np
import pytest
import torch

from attention_course.explorers import bpe_steps, mask_trio, sampling_explorer
from autograder.exercises._ch08_bpe import BPE_TRAIN
from autograder.exercises._ch08_encode import bpe_encode_reference
from autograder.exercises._ch08_masks import sequence_mask_reference
from autograder.exercises._ch08_top_k import top_k_filter_reference
from autograder.exercises._ch08_top_p import top_p_filter_reference


def test_sampling_agrees_with_the_exercises():
    rng = np.random.default_rng(3)
    for _ in range(20):
        logits, k, p = rng.normal(size=9).round(3), int(rng.integers(1, 10)), rng.uniform(0.1, 1)
        shown = sampling_explorer(logits, k=k, p=p, temperature=0.6).probabilities()
        kept = top_k_filter_reference(torch.from_numpy(logits) / 0.6, k)
        expected = top_p_filter_reference(kept, p).softmax(dim=-1)
        np.testing.assert_allclose(shown, expected, atol=1e-12)


def test_masks_agree_with_the_exercise():
    trio = mask_trio(list("abcdef"), prefix=2)
    lengths, prefix = torch.tensor([6]), torch.tensor([2])
    for way, kind in (("causal", "causal"), ("prefix", "prefix"), ("encoder-decoder", "prefix")):
        expected = sequence_mask_reference(kind, lengths, 6, 6, prefix)[0]
        np.testing.assert_array_equal(trio.masks()[way], expected)


@pytest.mark.parametrize(
    "text", ["", "a", "aaaaa", "low lower lowest", "ñandú 🦉 ñandú 🦉", "abcabcab"]
)
def test_merges_agree_with_the_exercise(text):
    merges = BPE_TRAIN.reference(text, 30)
    states = bpe_steps(text).history()
    assert len(states) == len(merges) + 1
    for step, state in enumerate(states):
        assert len(state) == len(bpe_encode_reference(text, merges[:step]))
        assert b"".join(state).decode() == text


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: sampling_explorer([1.0]), ValueError, "at least 2 numbers"),
        (lambda: sampling_explorer([[1.0, 2.0]]), ValueError, "1 axes"),
        (lambda: sampling_explorer(range(30)), ValueError, "at most 24"),
        (
            lambda: sampling_explorer([1, 2], k=3),
            ValueError,
            "k must be a whole number from 1 to 2",
        ),
        (lambda: sampling_explorer([1, 2], p=0), ValueError, "p must lie"),
        (lambda: sampling_explorer([1, 2], temperature=0), ValueError, "temperature must lie"),
        (lambda: sampling_explorer([1, 2], ["a"]), ValueError, "name each of the 2 logits"),
        (lambda: mask_trio(["a"]), ValueError, "at least 2"),
        (lambda: mask_trio(list("abc"), prefix=3), ValueError, "prefix must be"),
        (lambda: mask_trio(list("abc"), place=-1), ValueError, "place must be"),
        (lambda: mask_trio("abc"), TypeError, "list of strings"),
        (lambda: mask_trio(["a"] * 13), ValueError, "at most 12"),
        (lambda: bpe_steps(["a"]), TypeError, "must be a string"),
        (lambda: bpe_steps("a" * 121), ValueError, "at most 120"),
        (lambda: bpe_steps("a", step=31), ValueError, "step must be"),
    ],
)
def test_wrong_arguments_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()
