"""Chapter 10: every span of a passage as a cell of a matrix, start by end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 24  # tokens of the passage

_TOKENS = "[CLS] where was carla ? [SEP] ben was in the old red hall . carla sat in the garden ."
_STARTS = [0.4, *[4.0] * 5, -2, -3, -3, -2, 1.5, 0.6, 0.9, -3, -1, -2, -2, -1.5, 2.6, -3]
_ENDS = [0.6, *[4.0] * 5, -2, -3, -3, -3, -0.5, 0.2, 2.9, -2, -2, -3, -3, -2, 2.1, -1.5]


class SpanMatrix(Explorer):
    """The explorer behind `span_matrix`; `longest` and `threshold` follow the sliders."""

    files = "span_matrix"
    title = "Span matrix: every answer that the scores allow"

    tokens = t.List(t.Unicode()).tag(sync=True)
    start_scores = t.List(t.Float()).tag(sync=True)
    end_scores = t.List(t.Float()).tag(sync=True)
    context = t.List(t.Int()).tag(sync=True)
    longest = t.Int(4).tag(sync=True)
    threshold = t.Float(0.0).tag(sync=True)

    def best(self) -> tuple[int, int]:
        """The best valid span as (first, last) token; (0, 0) for no answer."""
        places = self.context
        spans = [(i, j) for i in places for j in places if i <= j < i + self.longest]
        first, last = max(spans, key=lambda span: self.score(*span))
        lead = self.score(first, last) - self.score(0, 0)
        return (first, last) if lead > self.threshold else (0, 0)

    def score(self, first: int, last: int) -> float:
        """A span's score."""
        return self.start_scores[first] + self.end_scores[last]

    def text(self) -> str:
        """The best span, and what no answer scores."""
        first, last = self.best()
        answer = " ".join(self.tokens[first : last + 1]) if first else "(no answer)"
        return (
            f"Input: {' '.join(self.tokens)}\n"
            f"At most {self.longest} tokens, threshold {self.threshold:g}: {answer}, score "
            f"{self.score(first, last):.2f}; no answer scores {self.score(0, 0):.2f}."
        )

    def frame_height(self) -> int:
        """Controls, one line for each token of the passage, and the status."""
        return 290 + 25 * len(self.context)


def span_matrix(
    tokens: Sequence[str] | None = None,
    start_scores: object = None,
    end_scores: object = None,
    context: object = None,
    *,
    longest: int = 4,
    threshold: float = 0.0,
) -> SpanMatrix:
    """Shows the score of every span; sliders for the longest answer and the threshold.

    Without arguments it shows a small invented example.

    Args:
        tokens: the whole input, [CLS] first.
        start_scores: one number for each token.
        end_scores: one number for each token.
        context: True for tokens of the passage, 1 to 24 of them; not for [CLS].
        longest: at the start, how many tokens an answer may have.
        threshold: at the start, by how much the best span has to lead over [CLS], −10 to 10.

    Returns:
        The widget; `matrix.best()` is the span that it shows.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if counts do not fit, or there is no passage.
    """
    if tokens is None:
        tokens, start_scores, end_scores = _TOKENS.split(), _STARTS, _ENDS
        context = [place > 5 for place in range(len(tokens))]
    starts = validate.array("start_scores", start_scores, "(tokens,)", 1)
    ends = validate.array("end_scores", end_scores, "(tokens,)", 1)
    tokens = validate.token_list("tokens", tokens, len(starts), "start scores")
    places = np.flatnonzero(validate.array("context", context, "(tokens,)", 1)).tolist()
    if len(ends) != len(starts) or not places or places[0] == 0 or places[-1] >= len(starts):
        raise ValueError(
            f"end_scores and context must have an entry for each of the {len(starts)} tokens, and "
            f"context must be True for a passage after [CLS]; got {len(ends)} end scores and the "
            f"places {places}. Look at the three lengths."
        )
    validate.at_most("context", len(places), LIMIT, "tokens")
    validate.index("longest", longest - 1, len(places), "lengths")
    return SpanMatrix(
        tokens=tokens,
        start_scores=validate.lists(starts),
        end_scores=validate.lists(ends),
        context=places,
        longest=longest,
        threshold=validate.number("threshold", threshold, -10, 10),
    )
