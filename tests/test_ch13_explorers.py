"""Memory window, order masks and three scores without a browser."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from attention_course.explorers import memory_window, order_masks, three_scores
from autograder.exercises._ch13_deberta import (
    disentangled_scores_reference,
    relative_distance_reference,
)


def test_reach_grows_with_layers_and_memory():
    window = memory_window(segment=4, memory=4, layers=2, place=19)
    assert [min(row) for row in window.reached()] == [19, 12, 8]
    assert "2 layers down: places 8 to 19; 8 of them in earlier segments" in window.text()
    assert [min(row) for row in memory_window(memory=0, layers=3, place=19).reached()][-1] == 16
    assert min(memory_window(memory=12, layers=3, place=9).reached()[-1]) == 0


def test_orders_in_words():
    orders = order_masks(list("abc"), [2, 0, 1])
    content, query = orders.masks()
    assert query.tolist() == [[0, 0, 1], [1, 0, 1], [0, 0, 0]]
    assert (content == query | np.eye(3, dtype=bool)).all()
    assert "in the order: c, a, b" in orders.text() and "c sees nothing" in orders.text()


def test_weights_are_those_of_the_equation():
    import torch

    scores = three_scores(largest=2)
    parts = {
        name.removeprefix("content_"): torch.tensor(getattr(scores, name), dtype=torch.float64)
        for name in ("content_queries", "content_keys", "position_queries", "position_keys")
    }
    for name in ("position_queries", "position_keys"):
        parts[name] = parts[name][None, 2:6]  # the middle rows: k = 2
    for name in ("queries", "keys"):
        parts[name] = parts[name][None, None]
    distance = relative_distance_reference(5, 5, 2)
    expected = disentangled_scores_reference(**parts, distance=distance).softmax(-1)[0, 0]
    np.testing.assert_allclose(scores.weights(), expected)
    scores.parts = [False] * 3
    np.testing.assert_allclose(scores.weights(), 0.2)
    assert "Parts in the sum: none" in scores.text()


def test_equal_words_have_equal_contents():
    scores = three_scores()
    vectors = scores.content_queries
    assert vectors[0] == vectors[3] and vectors[0] != vectors[1]


def test_hostile_words_stay_text():
    hostile = ["</script><b>", "<!--"]
    for explorer in (order_masks(hostile), three_scores(hostile)):
        page = html.unescape(re.search(r'srcdoc="([^"]*)"', explorer.to_html())[1])
        assert len(re.findall(r"</script", page, re.IGNORECASE)) == 2
        assert "<!--" not in page and "<b>" not in page


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: memory_window(memory=13), ValueError, "memory must lie from 0 to 12"),
        (lambda: memory_window(place=1.5), ValueError, "place must be a whole number"),
        (lambda: memory_window(layers="2"), TypeError, "layers must be a number from 1 to 3"),
        (lambda: order_masks(["a"]), ValueError, "tokens must be at least 2"),
        (lambda: order_masks(["a"] * 9), ValueError, "at most 8"),
        (lambda: order_masks(["a", "b"], [1, 1]), ValueError, "order must hold each place"),
        (lambda: order_masks(["a", "b"], place=2), ValueError, "place must be a whole number"),
        (lambda: three_scores("dog"), TypeError, "must be a list of strings"),
        (lambda: three_scores(largest=5), ValueError, "largest must lie from 1 to 4"),
        (lambda: three_scores(["a"] * 9), ValueError, "at most 8"),
    ],
)
def test_errors_name_the_argument(make, error, says):
    with pytest.raises(error, match=says):
        make()
