"""Chapter 07: cross-attention as a matrix of target words by source words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 30

_SOURCE = ["le", "garçon", "n'", "aime", "pas", "la", "pomme", "rouge", "."]
_TARGET = ["the", "boy", "does", "not", "like", "the", "red", "apple", "."]
_LINKS = [[0], [1], [2, 3], [2, 4], [3], [5], [7], [6], [8]]


class AlignmentMatrix(Explorer):
    """The explorer behind `alignment_matrix`; `row` is the target word that the reader chose."""

    files = "alignment_matrix"
    title = "Alignment matrix: where each target word looks in the source"

    weights = t.List(t.List(t.Float())).tag(sync=True)
    source_tokens = t.List(t.Unicode()).tag(sync=True)
    target_tokens = t.List(t.Unicode()).tag(sync=True)
    links = t.List(t.List(t.Int())).tag(sync=True)
    row = t.Int(0).tag(sync=True)

    def text(self) -> str:
        """Each target word with the source word of the largest weight, and the true ones."""
        lines = ["Strongest source word of each target word:"]
        known = self.links or [[]] * len(self.target_tokens)
        for token, weights, places in zip(self.target_tokens, self.weights, known, strict=True):
            best = int(np.argmax(weights))
            truth = f", a translation of {self._words(places)}" if places else ""
            lines.append(f"  {token}: {self.source_tokens[best]} ({weights[best]:.2f}){truth}")
        return "\n".join(lines)

    def _words(self, places: Sequence[int]) -> str:
        return " ".join(self.source_tokens[place] for place in places)

    def frame_height(self) -> int:
        """Room for a line for each target word."""
        return 200 + 27 * len(self.target_tokens)


def alignment_matrix(
    weights: object = None,
    source_tokens: Sequence[str] | None = None,
    target_tokens: Sequence[str] | None = None,
    *,
    links: Iterable[Sequence[int]] | None = None,
) -> AlignmentMatrix:
    """Shows where each target word looks; the reader walks over rows by mouse or keyboard.

    Without arguments it shows a small invented example.

    Args:
        weights: after the softmax, shape (target, source), at most 30 of each; row i belongs to
            the step that gives target word i.
        source_tokens: one string for each column.
        target_tokens: one string for each row.
        links: for each target word the places of the source words that it translates; drawn as
            frames.

    Returns:
        The widget; `matrix.row` is the target word that the reader chose, from 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes and counts do not fit, weights lie outside 0 to 1, or a link points
            to no source word.
    """
    if weights is None:
        weights, links = _example(), _LINKS if links is None else links
        source_tokens = source_tokens or _SOURCE
        target_tokens = target_tokens or _TARGET
    array = validate.array("weights", weights, "(target, source)", 2)
    target, source = array.shape
    validate.at_most("weights", max(target, source), LIMIT, "rows or columns")
    if array.min() < -1e-6 or array.max() > 1 + 1e-3:
        raise ValueError(
            f"weights must lie from 0 to 1; got {array.min():.3g} to {array.max():.3g}. "
            f"Pass what comes after the softmax."
        )
    return AlignmentMatrix(
        weights=np.round(array, 4).tolist(),
        source_tokens=validate.token_list("source_tokens", source_tokens, source, "columns"),
        target_tokens=validate.token_list("target_tokens", target_tokens, target, "rows"),
        links=_checked_links(links, target, source),
    )


def _example() -> np.ndarray:
    """Weights that lie mostly on the links of the example, and a little beside them."""
    scores = np.zeros((len(_TARGET), len(_SOURCE)))
    for word, places in enumerate(_LINKS):
        scores[word, places] = 3.5
        scores[word, max(0, word - 1) : word + 2] += 0.8
    powers = np.exp(scores)
    return powers / powers.sum(axis=1, keepdims=True)


def _checked_links(links, target: int, source: int) -> list[list[int]]:
    if links is None:
        return []
    result = [[int(place) for place in sorted(places)] for places in links]
    if len(result) != target:
        raise ValueError(
            f"links must hold a list for each of the {target} target words; got {len(result)}. "
            f"Use an empty list for a word that translates nothing."
        )
    for word, places in enumerate(result):
        if any(not 0 <= place < source for place in places):
            raise ValueError(
                f"links[{word}] must hold places from 0 to {source - 1}; got {places}. "
                f"Count source words from 0."
            )
    return result
