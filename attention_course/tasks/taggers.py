"""Find names with a linear layer on MiniLM's vectors of pieces, which stay as they are."""

from __future__ import annotations

import torch
from torch import Tensor

from attention_course.tasks.capitals import Pieces, by_word
from attention_course.tasks.features import fit_linear, scores_of
from attention_course.tasks.minilm import MiniLM


@torch.no_grad()
def piece_states(model: MiniLM, data: Pieces) -> Tensor:
    """Every layer's vectors of the first pieces: (layers + 1, words of all lines, 384)."""
    parts = zip(data.ids.split(100), data.firsts.split(100), strict=True)
    return torch.cat([model(ids, ids != 0)[:, firsts] for ids, firsts in parts], dim=1)


def probe(
    states: Tensor, train: Pieces, test_states: Tensor, test: Pieces, lines: Tensor | None = None
) -> list[list[bool]]:
    """Fit a linear classifier on frozen vectors of labelled words; say what it guesses.

    Args:
        states: vectors of the first pieces of `train`, (words of all lines, features).
        train: what is learned from.
        test_states: the same of `test`.
        test: what is guessed.
        lines: int64 (at most lines,), the lines of `train` to learn from; all of them if None.
    """
    tags, line = train.labels[train.firsts], train.firsts.nonzero()[:, 0]
    known = tags >= 0 if lines is None else (tags >= 0) & torch.isin(line, lines)
    scale = states.std()
    weights = fit_linear(states[known] / scale, tags[known], 2)
    guesses = torch.zeros_like(test.firsts)
    guesses[test.firsts] = scores_of(test_states / scale, weights).argmax(-1) == 1
    return by_word(guesses, test.firsts)
