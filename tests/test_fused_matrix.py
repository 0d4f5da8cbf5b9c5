"""The explorer of the fused matrix without a browser: what it says, what it refuses."""

from __future__ import annotations

import pytest

from attention_course.explorers import fused_matrix


def test_every_column_has_the_owner_that_nested_loops_give_it():
    figure = fused_matrix(12, 4)
    owners = [
        f"{part}, head {head}, feature {feature}"
        for part in ("query", "key", "value")
        for head in range(4)
        for feature in range(3)
    ]
    for column, owner in enumerate(owners):
        figure.column = column
        assert figure.entry() == owner
    assert "key: head 0 columns 12-14" in figure.text()


def test_heads_that_do_not_divide_are_explained():
    figure = fused_matrix(12, 5)
    assert figure.entry() == ""
    assert "12 = 5 x 2 + 2, so 2 of every 12 columns" in figure.text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"d_model": 25}, "d_model must be a whole number from 2 to 24; got 25"),
        ({"d_model": 6.0}, "d_model must be a whole number"),
        ({"heads": 0}, "heads must be a whole number from 1 to 12"),
        ({"heads": True}, "heads must be a whole number"),
        ({"d_model": 6, "row": 6}, "row must be a whole number from 0 to 5"),
        ({"d_model": 6, "column": 18}, "column must be a whole number from 0 to 17"),
    ],
)
def test_errors_name_the_argument(arguments, says):
    with pytest.raises(ValueError, match=says):
        fused_matrix(**arguments)
