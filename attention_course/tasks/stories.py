"""Little passages with a question, on which a bag of words is lost.

"anna in old garden . ben in red hall ." Where is Anna? Every story has a mirror in which two
persons have changed places: the same words, the other answer. A reader that does not look at order
gives both the same answer, and is wrong in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NAMES = ("anna", "ben", "carla", "david", "emma", "felix", "greta", "henry", "ida", "jonas")
ADJECTIVES = ("old", "red", "small", "quiet", "dark", "green", "long", "cold")
PLACES = ("garden", "hall", "kitchen", "library", "tower", "cellar", "barn", "shop", "yard", "mill")
CLS, SEP, PADDING = "[CLS]", "[SEP]", "[PAD]"
VOCABULARY = (
    *(PADDING, CLS, SEP, "where", "?", "in", "."),
    *NAMES,
    *ADJECTIVES,
    *PLACES,
)
NUMBER = {word: number for number, word in enumerate(VOCABULARY)}
LONGEST = 24  # tokens; a story of three facts has at most 5 + 3 · 6 + 1
NOTHING = (0, 0)  # the answer's place when there is none: [CLS]


@dataclass(frozen=True)
class Story:
    """A question and a passage as words, and the answer's first and last place in `tokens`."""

    tokens: tuple[str, ...]
    begin: int  # of the passage
    first: int
    last: int

    @property
    def answer(self) -> str:
        """The answer's words, or "" if the passage does not tell."""
        return " ".join(self.tokens[self.first : self.last + 1]) if self.first else ""


def _tell(asked: str, facts: Sequence[tuple[str, str]]) -> Story:
    """Write a story from its facts: (name, place) each."""
    tokens = [CLS, "where", asked, "?", SEP]
    begin, first, last = len(tokens), *NOTHING
    for name, place in facts:
        tokens += [name, "in"]
        if name == asked:
            first, last = len(tokens), len(tokens) + len(place.split()) - 1
        tokens += [*place.split(), "."]
    return Story((*tokens, SEP), begin, first, last)


def draw_stories(rng: np.random.Generator, pairs: int, facts: int = 2) -> list[Story]:
    """Draw `pairs` stories, each followed by its mirror; one pair in five has no answer.

    Raises ValueError for other than two or three facts.
    """
    if facts not in (2, 3):
        raise ValueError(f"facts must be 2 or 3; got {facts!r}. More would not fit in a story.")
    stories = []
    for _ in range(pairs):
        asked, *names = (str(name) for name in rng.choice(NAMES, facts + 1, replace=False))
        places = []
        for noun in rng.choice(PLACES, facts, replace=False):
            adjectives = rng.choice(ADJECTIVES, int(rng.integers(0, 3)), replace=False)
            places.append(" ".join([*map(str, adjectives), noun]))
        one, other = rng.choice(facts, 2, replace=False)
        if rng.random() < 0.8:
            names[one] = asked
        mirror = list(names)
        mirror[one], mirror[other] = names[other], names[one]
        for told in (names, mirror):
            stories.append(_tell(asked, list(zip(told, places, strict=True))))
    return stories


def as_arrays(stories: Sequence[Story]) -> dict[str, np.ndarray]:
    """Turn stories into int64 `ids` (stories, LONGEST), `firsts`, `lasts`, and bool `context`."""
    ids = np.zeros((len(stories), LONGEST), dtype=np.int64)
    context = np.zeros(ids.shape, dtype=bool)
    for row, seen, story in zip(ids, context, stories, strict=True):
        row[: len(story.tokens)] = [NUMBER[word] for word in story.tokens]
        seen[story.begin : len(story.tokens) - 1] = True
    return {
        "ids": ids,
        "context": context,
        "firsts": np.array([story.first for story in stories]),
        "lasts": np.array([story.last for story in stories]),
    }
