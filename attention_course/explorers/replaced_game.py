"""Chapter 11: find the replaced words, then see what a discriminator thought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import traitlets as t

from attention_course.data.electra_records import read_detections
from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 24  # words of a sentence


class ReplacedGame(Explorer):
    """The explorer behind `replaced_game`; its traits follow the controls."""

    files = "replaced_game"
    title = "Which words were replaced?"

    sentences = t.List(t.Dict()).tag(sync=True)
    sentence = t.Int(0).tag(sync=True)
    marked = t.List(t.Int()).tag(sync=True)
    shown = t.Bool(False).tag(sync=True)

    def replaced(self) -> list[int]:
        """Places of the present sentence whose word is not the original one."""
        now = self.sentences[self.sentence]
        pairs = zip(now["original"], now["corrupted"], strict=True)
        return [place for place, (old, new) in enumerate(pairs) if old != new]

    def text(self) -> str:
        """The present sentence; with scores and answers once they are shown."""
        now = self.sentences[self.sentence]
        lines = [f"Which words were replaced? {' '.join(now['corrupted'])}"]
        if self.shown:
            for place, (word, score) in enumerate(
                zip(now["corrupted"], now["scores"], strict=True)
            ):
                was = f", was {now['original'][place]}" if place in self.replaced() else ""
                lines.append(f"  {word}: {score:.2f}{was}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, up to two lines of words, the status."""
        return 240


def _checked(number: int, sentence: Mapping[str, Any]) -> dict[str, Any]:
    name = f"sentences[{number}]"
    if not isinstance(sentence, Mapping) or not {"original", "corrupted", "scores"} <= set(
        sentence
    ):
        raise TypeError(
            f"{name} must be a dict with original, corrupted and scores; got {sentence!r}. "
            f"`read_detections()` of attention_course.electra gives such."
        )
    words = list(sentence["corrupted"])
    validate.at_most(f"{name}['corrupted']", len(words), LIMIT, "words")
    original = validate.token_list(f"{name}['original']", sentence["original"], len(words), "words")
    scores = validate.array(f"{name}['scores']", sentence["scores"], "(words,)", 1)
    if scores.shape != (len(words),) or scores.min() < 0 or scores.max() > 1:
        raise ValueError(
            f"{name}['scores'] must be {len(words)} probabilities, one for each word; got "
            f"{len(scores)} from {scores.min():.2f} to {scores.max():.2f}. Apply a sigmoid?"
        )
    return {"original": original, "corrupted": words, "scores": validate.lists(scores)}


def replaced_game(
    sentences: Sequence[Mapping[str, Any]] | None = None, *, sentence: int = 0
) -> ReplacedGame:
    """Lets the reader mark words that look replaced; then shows a discriminator's scores.

    Args:
        sentences: dicts with "original" and "corrupted", lists of as many words, and "scores", the
            probability that each word was replaced; default: recorded ones.
        sentence: the one to begin with.

    Returns:
        The widget; `sentence`, `marked` and `shown` follow the controls.

    Raises:
        TypeError: if a sentence is no such dict.
        ValueError: if there is none, lengths differ, or a number does not fit.
    """
    if sentences is None:
        sentences = read_detections()
    made = [_checked(number, one) for number, one in enumerate(sentences)]
    if not made:
        raise ValueError("sentences is empty; give at least one.")
    if isinstance(sentence, bool) or sentence not in range(len(made)):
        raise ValueError(
            f"sentence must be a whole number from 0 to {len(made) - 1}; got {sentence!r}. "
            f"Choose one."
        )
    return ReplacedGame(sentences=made, sentence=sentence)
