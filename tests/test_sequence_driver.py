"""The driver of exercises whose results are texts or lists of token numbers."""

import numpy as np
import pytest
import torch

from attention_course.drivers import run_all
from attention_course.outcomes import Terms

TEXT, TOKENS = Terms(outputs=("text",)), Terms(outputs=("tokens",))
TWO = Terms(outputs=("inputs", "targets"))


def outcome(result, terms):
    return run_all("sequence_function", lambda: result, [{}], terms)[0]


def test_a_text_becomes_the_numbers_of_its_characters():
    found = outcome("é🦉", TEXT).outputs["text"]
    np.testing.assert_array_equal(found, [233, 0x1F989])
    assert outcome("", TEXT).outputs["text"].shape == (0,)


@pytest.mark.parametrize("result", [[3, 1], (3, 1), np.array([3, 1]), torch.tensor([3, 1])])
def test_tokens_may_come_as_any_kind_of_sequence(result):
    found = outcome(result, TOKENS).outputs["tokens"]
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, [3, 1])


def test_empty_lists_hold_whole_numbers():
    both = outcome(([], ()), TWO).outputs
    assert [array.dtype.kind for array in both.values()] == ["i", "i"]


@pytest.mark.parametrize(
    ("result", "terms", "words"),
    [
        ("ab", TOKENS, "`tokens` is of type str; a list of token numbers is expected."),
        ([97, 98], TEXT, "`text` is of type list; a string is expected."),
        (b"ab", TEXT, "`text` is of type bytes; a string is expected."),
        (None, TEXT, "it returned None. Is a `return` missing?"),
        ([1, 2, 3], TWO, "it returned 3 values; 2 are expected: inputs, targets."),
        ([[1], [2, 3]], TOKENS, "it returned a list whose parts have different shapes."),
    ],
)
def test_what_cannot_be_compared_is_named(result, terms, words):
    assert (outcome(result, terms).status, outcome(result, terms).message) == ("unusable", words)
