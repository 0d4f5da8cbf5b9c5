"""Chapter 08: top-k. What is out gets −inf."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def top_k_filter_cases(rng):
    """Rows, batches, ties at the border, k beyond the vocabulary, k below 1."""
    s = draw_sizes(rng, "batch", "length", "vocabulary", among=(2, 3, 6, 7))
    vocabulary = max(s.vocabulary, 6)
    logits = 2 * rng.normal(size=(s.batch, s.length, vocabulary))
    yield Case("values", {"logits": logits[0, 0], "k": 2}, "one row")
    yield Case("values", {"logits": logits[1], "k": 1}, "k = 1")
    yield Case("values", {"logits": logits - 3, "k": int(rng.integers(2, 5))}, "two leading axes")
    tied = np.round(logits[0], 2)
    for row in tied:
        border = rng.permutation(vocabulary)
        row[border[:3]] = row.max() - 0.5  # the second to the fourth largest
    yield Case("ties", {"logits": tied, "k": 2}, "three equal logits at the border")
    yield Case("ties", {"logits": np.full(vocabulary, -0.7), "k": 3}, "all logits equal")
    yield Case("limits", {"logits": logits[0], "k": vocabulary}, "k is the vocabulary")
    yield Case("limits", {"logits": logits[1], "k": vocabulary + 3}, "k is larger")
    hidden = logits[0].copy()
    hidden[:, : vocabulary - 2] = -np.inf
    yield Case("limits", {"logits": hidden, "k": 3}, "some logits are −inf already")
    yield Case("limits", {"logits": logits[0], "k": 0}, "k = 0")


def top_k_filter_reference(logits, k):
    """Sorts each row in Python by (logit, index)."""
    if k < 1:
        raise ValueError("k must be at least 1")
    rows = []
    for row in logits.reshape(-1, logits.shape[-1]).tolist():
        ranked = sorted(range(len(row)), key=lambda i: (-row[i], i))
        kept = set(ranked[:k])
        rows.append([x if i in kept else -math.inf for i, x in enumerate(row)])
    return torch.tensor(rows, dtype=logits.dtype).reshape(logits.shape)


def ranks(logits: Tensor, descending: bool = True) -> Tensor:
    """The place of every token in its row; equal logits in the order of their index."""
    order = logits.sort(dim=-1, descending=descending, stable=True).indices
    return order.argsort(dim=-1)


def _refuse(k: int) -> None:
    if k < 1:
        raise ValueError("k must be at least 1")


def keeps_all_ties(logits, k):
    """Keeps whatever reaches the k-th largest logit."""
    _refuse(k)
    border = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < border, -math.inf)


def keeps_the_last_of_ties(logits, k):
    """Of equal logits the higher indices stay."""
    _refuse(k)
    places = ranks(logits.flip(-1)).flip(-1)
    return logits.masked_fill(places >= k, -math.inf)


def keeps_the_smallest(logits, k):
    """Keeps the k smallest."""
    _refuse(k)
    return logits.masked_fill(ranks(logits, descending=False) >= k, -math.inf)


def too_large_k_raises(logits, k):
    """topk complains about k beyond the vocabulary."""
    _refuse(k)
    logits.topk(k)
    return logits.masked_fill(ranks(logits) >= k, -math.inf)


def zero_for_what_is_out(logits, k):
    """Puts 0, which is a logit like any other."""
    _refuse(k)
    return logits.masked_fill(ranks(logits) >= k, 0.0)


def one_border_for_all_rows(logits, k):
    """Ranks all rows together."""
    _refuse(k)
    return logits.masked_fill(ranks(logits.flatten()).reshape(logits.shape) >= k, -math.inf)


def one_too_few(logits, k):
    """The k-th largest goes as well."""
    _refuse(k)
    return logits.masked_fill(ranks(logits) >= k - 1, -math.inf)


def one_too_many(logits, k):
    """One more stays."""
    _refuse(k)
    return logits.masked_fill(ranks(logits) > k, -math.inf)


def probabilities_for_logits(logits, k):
    """Returns probabilities."""
    _refuse(k)
    return logits.masked_fill(ranks(logits) >= k, -math.inf).softmax(dim=-1)


def filters_in_place(logits, k):
    """Changes the caller's logits."""
    _refuse(k)
    return logits.masked_fill_(ranks(logits) >= k, -math.inf)


def any_k_will_do(logits, k):
    """Accepts k = 0 and hides everything."""
    return logits.masked_fill(ranks(logits) >= k, -math.inf)


def top_k_by_scatter(logits, k):
    """Right: sorts, and writes the first k back."""
    if k <= 0:
        raise ValueError(f"k is {k}")
    values, indices = torch.sort(logits, dim=-1, descending=True, stable=True)
    kept = torch.full_like(logits, -math.inf)
    return kept.scatter(-1, indices[..., :k], values[..., :k])


def top_k_by_counting(logits, k):
    """Right: counts for every token how many go before it."""
    if k < 1:
        raise ValueError("nothing would be left")
    mine, other = logits[..., :, None], logits[..., None, :]
    index = torch.arange(logits.shape[-1])
    before = (other > mine) | ((other == mine) & (index[None, :] < index[:, None]))
    return torch.where(before.sum(dim=-1) < k, logits, -math.inf)


def top_k_step_by_step(logits, k):
    """Right: takes the largest away k times."""
    if k < 1:
        raise ValueError("k")
    left, result = logits.clone(), torch.full_like(logits, -math.inf)
    for _ in range(min(k, logits.shape[-1])):
        best = left.argmax(dim=-1, keepdim=True)  # the first of equals
        result.scatter_(-1, best, logits.gather(-1, best))
        left.scatter_(-1, best, -math.inf)
    return result


TOP_K_FILTER = Exercise(
    id="top_k_filter",
    title="Top-k",
    asks="Keep the k largest logits of each row; all others become −inf.",
    parameters=("logits", "k"),
    outputs=("filtered",),
    driver="tensor_function",
    groups={
        "values": Group(1, "rows and batches"),
        "ties": Group(1, "equal logits at the border"),
        "limits": Group(1, "k beyond the vocabulary, and k below 1"),
    },
    cases=top_k_filter_cases,
    reference=top_k_filter_reference,
    misconceptions=(
        Misconception(
            keeps_all_ties,
            "Everything that equals the k-th largest logit stays, so that more than k are left.",
            "What does the contract say about equal logits?",
        ),
        Misconception(
            keeps_the_last_of_ties,
            "Of equal logits the ones with the higher numbers stay.",
            "Which of two equal tokens does the contract prefer?",
        ),
        Misconception(
            keeps_the_smallest,
            "The smallest logits stay.",
            "In which direction have you sorted?",
        ),
        Misconception(
            too_large_k_raises,
            "A k beyond the vocabulary raises an error.",
            "What should happen if there are fewer than k tokens?",
        ),
        Misconception(
            zero_for_what_is_out,
            "What is out gets the logit 0, which still has a probability.",
            "Which logit has the probability 0?",
        ),
        Misconception(
            one_border_for_all_rows,
            "All rows are ranked together.",
            "How many logits should be left in each row?",
        ),
        Misconception(
            one_too_few,
            "One logit too few is left.",
            "Count what is left for k = 2.",
        ),
        Misconception(
            one_too_many,
            "One logit too many is left.",
            "Count what is left for k = 2.",
        ),
        Misconception(
            probabilities_for_logits,
            "The result holds probabilities; logits are expected.",
            "Leave the softmax to whoever draws.",
        ),
        Misconception(
            filters_in_place,
            "The caller's logits are overwritten.",
            "Which of PyTorch's functions make a new tensor?",
        ),
        Misconception(
            any_k_will_do,
            "k below 1 is accepted, and every token is out.",
            "The contract says what to do with such a k.",
        ),
    ),
    accepted=(top_k_by_scatter, top_k_by_counting, top_k_step_by_step),
    equivalent_mutants={
        "`logits.argsort(dim=-1, descending=True, stable=True)` → "
        "`logits.argsort(dim=-1, descending=True, stable=False)`": (
            "PyTorch does not promise it, but its sort of short rows keeps the order of equals"
        ),
    },
)
