"""Chapter 09: blank one or two words of a sentence; see the guesses and where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 14  # tokens
MOST = 2  # blanks at a time
RECORDED = Path(__file__).parent / "recorded_blanks.json"


def is_special(token: str) -> bool:
    """Tell whether a token is one like [CLS], which is never blanked."""
    return token.startswith("[") and token.endswith("]")


def blank_sets(tokens: Sequence[str]) -> list[tuple[int, ...]]:
    """List all sets of one or two places that a reader can blank."""
    places = [place for place, token in enumerate(tokens) if not is_special(token)]
    return [chosen for size in range(1, MOST + 1) for chosen in combinations(places, size)]


def key(blanks: Sequence[int]) -> str:
    """Name a set of blanks as `answers` do: "3", or "1,3"."""
    return ",".join(str(place) for place in sorted(blanks))


class BlankFiller(Explorer):
    """The explorer behind `blank_filler`; `blanks` are the places that the reader has blanked."""

    files = "blank_filler"
    title = "Blank a word: what a BERT guesses, and where it looks"

    tokens = t.List(t.Unicode()).tag(sync=True)
    answers = t.Dict().tag(sync=True)
    blanks = t.List(t.Int()).tag(sync=True)
    most = t.Int(MOST).tag(sync=True)

    def text(self) -> str:
        """The sentence with its blanks, and the best guesses for each."""
        shown = ["____" if i in self.blanks else word for i, word in enumerate(self.tokens)]
        lines = [" ".join(shown)]
        found = self.answers.get(key(self.blanks), {})
        for place in sorted(self.blanks):
            words = ", ".join(f"{word} {p:.2f}" for word, p in found[str(place)]["words"])
            lines.append(f"  place {place} (was “{self.tokens[place]}”): {words}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Room for the sentence and two tables of guesses."""
        return 330


def blank_filler(
    tokens: Sequence[str] | None = None,
    answers: Mapping[str, Any] | None = None,
    *,
    blanks: Sequence[int] = (2,),
) -> BlankFiller:
    """Shows what a model guesses for blanks that the reader chooses, and where it looks.

    Without arguments it shows a recorded run of the chapter's tiny BERT.

    Args:
        tokens: the sentence, 2 to 14 strings. Special ones, such as [CLS], are never blanked.
        answers: for each set of one or two blanks, named "3" or "1,3", a dict from each blank's
            place (a string) to {"words": [[word, probability], …], "weights": one number for each
            token}.
        blanks: places that are blank at the start, one or two.

    Returns:
        The widget; `blanks` follows the reader.

    Raises:
        TypeError: if `tokens` is no list of strings.
        ValueError: if an answer is missing or does not fit, or a blank is none of the tokens.
    """
    if tokens is None or answers is None:
        record = json.loads(RECORDED.read_text(encoding="utf-8"))
        tokens, answers = record["tokens"], record["answers"]
    names = validate.token_list("tokens", tokens, len(tokens), "tokens")
    if not 2 <= len(names) <= LIMIT:
        raise ValueError(
            f"tokens must hold 2 to {LIMIT} words; got {len(names)}. Choose another sentence."
        )
    chosen = [int(place) for place in blanks]
    if not 1 <= len(set(chosen)) == len(chosen) <= MOST:
        raise ValueError(f"blanks must be one or two different places; got {chosen}.")
    for place in chosen:
        validate.index("blanks", place, len(names), "tokens")
        if is_special(names[place]):
            raise ValueError(f"{names[place]} is never blanked: choose another place than {place}.")
    _check(answers, names)
    return BlankFiller(tokens=names, answers=dict(answers), blanks=sorted(chosen))


def _check(answers: Mapping[str, Any], tokens: Sequence[str]) -> None:
    for places in blank_sets(tokens):
        found = answers.get(key(places))
        if found is None or set(found) != {str(place) for place in places}:
            raise ValueError(
                f"answers must hold the blanks {key(places)!r} with an entry for each of them. "
                f"Record all sets of one or two blanks."
            )
        for place, entry in found.items():
            if len(entry["weights"]) != len(tokens) or not entry["words"]:
                raise ValueError(
                    f"answers[{key(places)!r}][{place!r}] must hold words and {len(tokens)} "
                    f"weights, one for each token; got {len(entry['weights'])}. Record them again."
                )
