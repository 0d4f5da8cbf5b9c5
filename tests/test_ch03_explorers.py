"""The explorers of chapter 03 without a browser: words, numbers, arguments."""

from __future__ import annotations

import numpy as np
import pytest

from attention_course.explorers import distance_products, wave_table
from autograder.exercises.ch03_positions import ROTATE_PAIRS, SINUSOIDAL_TABLE


@pytest.mark.parametrize(("width", "base", "row", "column"), [(8, 50.0, 7, 3), (64, 1e4, 63, 40)])
def test_the_wave_table_shows_what_exercise_1_asks_for(width, base, row, column):
    explorer = wave_table(d_model=width, base=base, position=row, column=column)
    expected = SINUSOIDAL_TABLE.reference(np.array([row]), width, base)[0, column]
    assert explorer.value() == pytest.approx(expected)
    assert f"at position {row} it is {expected:.2f}" in explorer.text()
    assert explorer.base == pytest.approx(base)


def test_slow_pairs_do_not_come_round():
    explorer = wave_table(d_model=8, base=10000.0)
    lengths = [2 * np.pi * 10000 ** (i / 4) for i in range(4)]
    assert explorer.slow_pairs() == sum(length > 64 for length in lengths)


@pytest.mark.parametrize("scheme", ["waves", "rotary"])
@pytest.mark.parametrize("mixed", [False, True])
def test_products_agree_with_the_exercises(scheme, mixed):
    explorer = distance_products(scheme, mixed=mixed, width=8, base=100.0, place=13)
    places = 13 + np.arange(-40, 41)
    if scheme == "waves":
        vectors = SINUSOIDAL_TABLE.reference(np.append(places, 13), 8, 100.0)
        middle = np.array(explorer.matrix)[:8, :8] if mixed else np.eye(8)
        expected = vectors[:-1] @ middle.T @ vectors[-1] / 4
    else:
        pair = [1.0, 0.0] * 4
        query = np.array([explorer.query[:8] if mixed else pair])
        key = np.array([explorer.key[:8] if mixed else pair] * len(places))
        query = ROTATE_PAIRS.reference(query, np.array([13]), 100.0)
        expected = ROTATE_PAIRS.reference(key, places, 100.0) @ query[0]
        expected = expected / (np.sqrt(8) if mixed else 4)
    np.testing.assert_allclose(explorer.curve(13), expected, atol=1e-9)
    only_distance = scheme == "rotary" or not mixed
    assert ("only the distance counts" in explorer.text()) == only_distance
    assert ("the place counts as well" in explorer.text()) == (not only_distance)


@pytest.mark.parametrize(
    ("make", "arguments", "words"),
    [
        (wave_table, {"d_model": 7}, "d_model must be an even number"),
        (wave_table, {"d_model": 66}, "from 4 to 64; got 66"),
        (wave_table, {"column": 32}, "column must be a whole number from 0 to 31"),
        (wave_table, {"position": -1}, "position must be a whole number from 0 to 63"),
        (wave_table, {"base": 5}, "base must lie from 10 to 100000"),
        (distance_products, {"scheme": "learned"}, "scheme must be one of"),
        (distance_products, {"width": 6}, "width must be one of"),
        (distance_products, {"place": 101}, "place must be a whole number from 0 to 100"),
    ],
)
def test_wrong_arguments_are_named(make, arguments, words):
    with pytest.raises(ValueError, match=words):
        make(**arguments)
