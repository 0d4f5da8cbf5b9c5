"""Span matrix and four heads without a browser."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
import torch

from attention_course.explorers import cls_rows, four_heads, span_matrix
from autograder.exercises._ch10_best_span import best_span_reference

RNG = np.random.default_rng(0)


def test_the_matrix_chooses_as_the_exercise_does():
    for _ in range(20):
        starts, ends = RNG.normal(size=(2, 9))
        longest, threshold = int(RNG.integers(1, 5)), float(RNG.normal())
        context = np.arange(9) > 3
        matrix = span_matrix(
            [str(i) for i in range(9)], starts, ends, context, longest=longest, threshold=threshold
        )
        tensors = (torch.from_numpy(values) for values in (starts, ends, context))
        assert matrix.best() == best_span_reference(*tensors, longest, threshold)


def test_the_example_sets_the_trap():
    matrix = span_matrix()
    context = matrix.context
    first = max(context, key=matrix.start_scores.__getitem__)
    last = max(context, key=matrix.end_scores.__getitem__)
    assert last < first, "start and end chosen alone must make no span"
    assert "garden, score 4.70; no answer scores 1.00" in matrix.text()
    assert "(no answer)" in span_matrix(threshold=5).text()


def test_four_heads_in_words():
    figure = four_heads("word → tag")
    assert figure.head == "word → tag" and len(figure.heads) == 4
    for head in figure.heads.values():
        assert len(head["tokens"]) == len(head["labels"]) == len(head["reads"])
        for label, read in zip(head["labels"], head["reads"], strict=True):
            assert read or not label, "a loss needs a vector that is read"
    assert "##lace: −100" in figure.text()


def test_rows_of_cls_in_words():
    weights = RNG.dirichlet(np.ones(4), size=(3, 2))
    figure = cls_rows(torch.from_numpy(weights), ["[CLS]", "dog", "barks", "[SEP]"])
    np.testing.assert_allclose(figure.shares(), weights.mean(axis=1), atol=1e-6)
    figure.head, figure.words_only = 1, True
    words = weights[:, 1, 1:3] / weights[:, 1, 1:3].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(figure.shares()[:, 1:3], words, atol=1e-5)
    assert not figure.shares()[:, [0, 3]].any()
    best = ["dog", "barks"][int(words[2].argmax())]
    assert f"layer 3: most at {best} ({words[2].max():.2f})" in figure.text()


def test_hostile_words_stay_text():
    matrix = span_matrix(["[CLS]", "</script><b>"], [0, 1], [0, 1], [0, 1], longest=1)
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', matrix.to_html())[1])
    assert len(re.findall(r"</script", page, re.IGNORECASE)) == 2 and "<b>" not in page


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: span_matrix(["a", "b"], [0, 1], [0], [0, 1]), "end_scores and context must"),
        (lambda: span_matrix(["a", "b"], [0, 1], [0, 1], [1, 1]), "after \\[CLS\\]"),
        (lambda: span_matrix(["a"], [0, 1], [0, 1], [0, 1]), "tokens must name each of the 2"),
        (lambda: span_matrix(longest=0), "longest must be a whole number"),
        (lambda: span_matrix(threshold=11), "threshold must lie from -10 to 10"),
        (lambda: four_heads("fifth"), "head must be one of"),
        (lambda: cls_rows(np.ones((2, 2, 3))), "sum to 1 over tokens"),
        (lambda: cls_rows(np.full((2, 2, 2), 0.5), ["[CLS]", "[SEP]"]), "with a word besides"),
        (lambda: cls_rows(layer=3), "layer must be a whole number from 0 to 2"),
    ],
)
def test_errors_name_the_argument(make, says):
    with pytest.raises(ValueError, match=says):
        make()
