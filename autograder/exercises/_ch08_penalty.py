"""Chapter 08: a penalty for tokens that have been written."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def repetition_penalty_cases(rng):
    """Histories with positive and negative logits; repeated tokens; rows of unequal length."""

    def case(group, batch, vocabulary, history, about, penalty=None):
        logits = 2 * rng.normal(size=(batch, vocabulary))
        for row, seen in zip(logits, history, strict=True):
            # Among what has been seen, both signs, and nothing near 0.
            seen = np.unique(seen[seen >= 0])
            signs = np.where(np.arange(len(seen)) % 2 == 0, 1.0, -1.0)
            row[seen] = signs * rng.uniform(0.5, 3, size=len(seen))
            row[seen[1:2]] = -rng.uniform(0.4, 0.9)  # negative, but above −1
        penalty = float(rng.uniform(1.3, 2.2)) if penalty is None else penalty
        inputs = {"logits": logits, "history": history.astype(np.int64), "penalty": penalty}
        return Case(group, inputs, about)

    def rows(batch, vocabulary, seen):
        return np.stack([rng.permutation(vocabulary - 1)[:seen] for _ in range(batch)])

    s = draw_sizes(rng, "batch", "seen", among=(2, 3))
    vocabulary = int(rng.integers(7, 10))
    yield case("values", s.batch, vocabulary, rows(s.batch, vocabulary, 2 + s.seen), "no repeats")
    yield case("values", 1, vocabulary, rows(1, vocabulary, 3), "one row")
    repeated = rows(3, vocabulary, 3)[:, [0, 1, 0, 2, 0, 1]]
    yield case("repeats", 3, vocabulary, repeated, "tokens that occur several times")
    padded = rows(3, vocabulary, 4)
    padded[1, 3:] = padded[2, 1:] = -1
    yield case("padding", 3, vocabulary, padded, "histories of unequal length")
    yield case("padding", 2, vocabulary, np.full((2, 3), -1), "empty histories")


def repetition_penalty_reference(logits, history, penalty):
    """Token by token, in Python."""
    result = logits.tolist()
    for row, seen in zip(result, history.tolist(), strict=True):
        for token in set(seen) - {-1}:
            row[token] = row[token] / penalty if row[token] > 0 else row[token] * penalty
    return torch.tensor(result, dtype=logits.dtype)


def _seen(logits, history):
    seen = torch.zeros(logits.shape[0], logits.shape[1] + 1, dtype=torch.bool)
    seen.scatter_(1, torch.where(history < 0, logits.shape[1], history), True)
    return seen[:, :-1]


def _penalise(logits, seen, penalty):
    changed = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, changed, logits)


def always_divided(logits, history, penalty):
    """Divides negative logits as well, which raises them."""
    return torch.where(_seen(logits, history), logits / penalty, logits)


def signs_mixed_up(logits, history, penalty):
    """Multiplies positive logits, divides negative ones."""
    return _penalise(logits, _seen(logits, history), 1 / penalty)


def penalty_subtracted(logits, history, penalty):
    """Subtracts."""
    return logits - penalty * _seen(logits, history)


def penalty_for_each_occurrence(logits, history, penalty):
    """Penalises again for every occurrence."""
    result = logits.clone()
    for row, seen in zip(result, history.tolist(), strict=True):
        for token in seen:
            if token >= 0:
                row[token] = row[token] / penalty if row[token] > 0 else row[token] * penalty
    return result


def one_history_for_all(logits, history, penalty):
    """Penalises what any row has said."""
    return _penalise(logits, _seen(logits, history).any(dim=0, keepdim=True), penalty)


def last_token_penalised(logits, history, penalty):
    """Reads −1 as the last token of the vocabulary."""
    seen = torch.zeros_like(logits, dtype=torch.bool)
    seen.scatter_(1, history % logits.shape[1], True)
    return _penalise(logits, seen, penalty)


def unseen_penalised(logits, history, penalty):
    """Penalises what has not been said."""
    return _penalise(logits, ~_seen(logits, history), penalty)


def seen_forbidden(logits, history, penalty):
    """Forbids what has been said."""
    return logits.masked_fill(_seen(logits, history), -math.inf)


def only_the_latest(logits, history, penalty):
    """Looks at the last token only."""
    return _penalise(logits, _seen(logits, history[:, -1:]), penalty)


def penalty_in_place(logits, history, penalty):
    """Writes into the caller's logits."""
    logits.copy_(_penalise(logits, _seen(logits, history), penalty))
    return logits


def penalty_by_gather(logits, history, penalty):
    """Right: gather, change, scatter; padding goes to a column that is dropped."""
    wide = torch.cat([logits, torch.zeros_like(logits[:, :1])], dim=1)
    index = history.masked_fill(history == -1, logits.shape[1])
    values = wide.gather(1, index)
    values = torch.where(values < 0, values * penalty, values / penalty)
    return wide.scatter(1, index, values)[:, :-1]


def penalty_by_comparing(logits, history, penalty):
    """Right: compares every token with the whole history."""
    tokens = torch.arange(logits.shape[1])
    seen = (history[:, :, None] == tokens).any(dim=1)
    factor = torch.where(logits > 0, 1 / penalty, penalty)
    return logits * torch.where(seen, factor, 1.0)


def penalty_row_by_row(logits, history, penalty):
    """Right: unique tokens of each row."""
    result = logits.clone()
    for i in range(len(result)):
        seen = history[i][history[i] >= 0].unique()
        picked = logits[i, seen]
        result[i, seen] = torch.where(picked >= 0, picked / penalty, picked * penalty)
    return result


REPETITION_PENALTY = Exercise(
    id="repetition_penalty",
    title="Repetition penalty",
    asks="Lower the logits of tokens that have been said, once each, whatever their sign.",
    parameters=("logits", "history", "penalty"),
    outputs=("penalised",),
    driver="tensor_function",
    groups={
        "values": Group(1, "positive and negative logits"),
        "repeats": Group(1, "tokens that occur several times"),
        "padding": Group(1, "histories of unequal length"),
    },
    cases=repetition_penalty_cases,
    reference=repetition_penalty_reference,
    misconceptions=(
        Misconception(
            always_divided,
            "Negative logits are divided too, which raises them.",
            "Is −2 / 1.5 larger or smaller than −2?",
        ),
        Misconception(
            signs_mixed_up,
            "Positive logits are multiplied and negative ones divided: both are raised.",
            "Which of the two lowers a positive number?",
        ),
        Misconception(
            penalty_subtracted,
            "The penalty is subtracted; this one is a factor.",
            "What should a penalty of 1 do?",
        ),
        Misconception(
            penalty_for_each_occurrence,
            "A token that occurs three times is penalised three times.",
            "How often does the contract apply the penalty?",
        ),
        Misconception(
            one_history_for_all,
            "What one row has said is penalised in all rows.",
            "Which rows of `history` and `logits` belong together?",
        ),
        Misconception(
            last_token_penalised,
            "The padding −1 is read as the last token of the vocabulary.",
            "Which token does index −1 mean to PyTorch?",
        ),
        Misconception(
            unseen_penalised,
            "The tokens that have not been said are penalised.",
            "Which logits should be as before?",
        ),
        Misconception(
            seen_forbidden,
            "What has been said gets −inf: it can never be said again.",
            "The penalty only makes repetition less likely.",
        ),
        Misconception(
            only_the_latest,
            "Only the last entry of each history is looked at.",
            "How far back does the penalty reach?",
        ),
        Misconception(
            penalty_in_place,
            "The caller's logits are overwritten.",
            "Work on a copy: `logits.clone()`.",
        ),
    ),
    accepted=(penalty_by_gather, penalty_by_comparing, penalty_row_by_row),
    equivalent_mutants={"`logits > 0` → `logits >= 0`": "0 / penalty is 0 · penalty"},
)
