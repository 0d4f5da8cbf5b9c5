"""`autograder try` finds the answer in a file, whether it is a function or a class."""

from __future__ import annotations

import pytest

from autograder.grading.trying import answer_name


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def encoder_block():\n    pass", "encoder_block"),
        ("class EncoderBlock:\n    pass", "EncoderBlock"),
        ("class EncoderBlock:\n    pass\ndef encoder_block():\n    pass", "encoder_block"),
        ("", "encoder_block"),
        ("this does not parse", "encoder_block"),
    ],
)
def test_the_answers_name(source, name):
    assert answer_name("encoder_block", source) == name
