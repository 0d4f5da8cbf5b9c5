"""Chapter 11: sentences as numbers that several of its exercises draw their cases from."""

from __future__ import annotations

import numpy as np

from autograder.case_making import draw_lengths

PADDING, MASK, START, END = range(4)
FIRST_WORD = 4  # ids below are special
WORDS = 7
VOCABULARY = FIRST_WORD + WORDS


def draw_tokens(rng, batch: int, length: int) -> np.ndarray:
    """Draw int64 (batch, length): start, at least two words, end, padding; lengths differ."""
    tokens = rng.integers(FIRST_WORD, VOCABULARY, size=(batch, length))
    lengths = 3 + draw_lengths(rng, batch, length - 3)[:, None]
    places = np.arange(length)
    tokens[:, 0] = START
    tokens[places == lengths - 1] = END
    tokens[places >= lengths] = PADDING
    return tokens.astype(np.int64)


def draw_chosen(rng, tokens: np.ndarray) -> np.ndarray:
    """Choose about half of the words, bool like `tokens`: some and not all in every row."""
    chosen = np.zeros(tokens.shape, dtype=bool)
    for row, ids in enumerate(tokens):
        words = rng.permutation(np.flatnonzero(ids >= FIRST_WORD))
        chosen[row, words[: max(1, len(words) // 2)]] = True
    return chosen


def draw_corrupted(rng, tokens: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Put samples into the chosen places; some are the original word, one is a special id."""
    corrupted = tokens.copy()
    places = rng.permutation(np.argwhere(chosen))
    for number, (row, place) in enumerate(places):
        others = np.setdiff1d(np.arange(FIRST_WORD, VOCABULARY), tokens[row, place])
        if number % 3:
            corrupted[row, place] = rng.choice(others)
        elif number == 0:
            corrupted[row, place] = END
    if (corrupted == tokens)[chosen].sum() == 0:
        row, place = places[-1]
        corrupted[row, place] = tokens[row, place]
    return corrupted
