"""Chapter 09: WordPiece, one try after the other."""

from __future__ import annotations

from collections.abc import Iterable

import traitlets as t

from attention_course.explorers.base import Explorer

LONGEST = 20  # characters
LARGEST = 400  # pieces

_WHOLE = (
    "a able and at attention bank bird book cat do dog fast fish form good head house in it learn "
    "like low make model new not on play read river run see sentence small some the token train "
    "transform under un walk was word work"
)
_INSIDE = (
    "s ed er est ing ly ness less ful able ible ation ization ize ized izer al y form ness play "
    "read learn do ment en ent ist ism ive or ers un re it in a e i o u b c d f g h k l m n p r t "
    "v w x y"
)


def _default_pieces() -> list[str]:
    inside = [f"##{piece}" for piece in _INSIDE.split()]
    letters = [chr(c) for c in range(ord("b"), ord("z"))]
    return sorted({*_WHOLE.split(), *letters, *inside})


class WordpieceSteps(Explorer):
    """The explorer behind `wordpiece_steps`; `word` and `step` follow the controls."""

    files = "wordpiece_steps"
    title = "WordPiece: the longest piece that fits, from the left"

    word = t.Unicode().tag(sync=True)
    step = t.Int(0).tag(sync=True)
    pieces = t.List(t.Unicode()).tag(sync=True)

    def tries(self) -> list[tuple[str, bool]]:
        """Every piece that is looked up, and whether it is in the vocabulary, in order."""
        known, start, tried = set(self.pieces), 0, []
        while start < len(self.word):
            for end in range(len(self.word), start, -1):
                piece = ("##" if start else "") + self.word[start:end]
                tried.append((piece, piece in known))
                if piece in known:
                    start = end
                    break
            else:
                return tried
        return tried

    def result(self) -> list[str]:
        """The pieces of the whole word, or ["[UNK]"]."""
        found = [piece for piece, known in self.tries() if known]
        spelled = "".join(piece.removeprefix("##") for piece in found)
        return found if spelled == self.word else ["[UNK]"]

    def text(self) -> str:
        """The tries so far and the result."""
        tried = self.tries()
        lines = [f"  {piece}: {'yes' if known else 'no'}" for piece, known in tried[: self.step]]
        done = min(self.step, len(tried))
        head = f"“{self.word}” in a vocabulary of {len(self.pieces)} pieces, "
        end = f"In the end: {' '.join(self.result())}" if self.word else "No word."
        return "\n".join([f"{head}{done} of {len(tried)} tries:", *lines, end])

    def frame_height(self) -> int:
        """Room for the word, its tries and its pieces."""
        return 330


def wordpiece_steps(
    word: str = "unplayable", pieces: Iterable[str] | None = None, *, step: int = 0
) -> WordpieceSteps:
    """Shows how WordPiece cuts a word that the reader types, try by try.

    Args:
        word: the word at the start, at most 20 characters.
        pieces: the vocabulary, at most 400 pieces, `##` before those that begin no word; a small
            one of the course's own if None.
        step: how many tries are shown at the start.

    Returns:
        The widget; `word` and `step` follow the controls.

    Raises:
        TypeError: if `word` is no string or `pieces` is one.
        ValueError: if something is too long, or `step` is no whole number from 0 on.
    """
    if not isinstance(word, str):
        raise TypeError(f"word must be a string; got {type(word).__name__}. Pass one word.")
    if len(word) > LONGEST or any(character.isspace() for character in word):
        raise ValueError(
            f"word must be one word of at most {LONGEST} characters; got {word!r}. Shorten it."
        )
    if isinstance(pieces, str):
        raise TypeError("pieces must be a list of strings; got one string. Split it first.")
    listed = _default_pieces() if pieces is None else [str(piece) for piece in pieces]
    if not 0 < len(listed) <= LARGEST:
        raise ValueError(
            f"pieces must hold 1 to {LARGEST} strings; got {len(listed)}. Choose some of them."
        )
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(f"step must be a whole number from 0 on; got {step!r}. Choose one.")
    return WordpieceSteps(word=word, pieces=listed, step=step)
