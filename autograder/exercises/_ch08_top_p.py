"""Chapter 08: top-p, the nucleus. What is out gets −inf."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch08_top_k import ranks


def _logits_of(probabilities, rng, shift=True) -> np.ndarray:
    """Logits with these probabilities, in a random order, moved by a constant."""
    moved = np.log(rng.permutation(probabilities))
    return moved + (rng.normal() if shift else 0.0)


def top_p_filter_cases(rng):
    """Rows, batches; p inside the first token, ties, hidden tokens, p = 1, wrong p."""
    first = _logits_of([0.42, 0.27, 0.16, 0.09, 0.06], rng)
    yield Case("values", {"logits": first, "p": 0.6}, "one row, p inside the second token")
    s = draw_sizes(rng, "batch", "length", among=(2, 3))
    rows = [[0.42, 0.27, 0.16, 0.09, 0.06], [0.55, 0.2, 0.13, 0.08, 0.04]]
    rows = [_logits_of(rows[i % 2], rng) for i in range(s.batch * s.length)]
    logits = np.reshape(rows, (s.batch, s.length, 5))
    yield Case("values", {"logits": logits, "p": 0.8}, "two leading axes")
    flat = _logits_of([0.24, 0.22, 0.2, 0.18, 0.16], rng)
    yield Case("values", {"logits": np.stack([first, flat]), "p": 0.5}, "a peaked and a flat row")
    yield Case("small", {"logits": first, "p": 0.1}, "p inside the most probable token")
    tied = _logits_of([0.3, 0.3, 0.3, 0.1], rng, shift=False)
    yield Case("small", {"logits": tied, "p": 0.45}, "equal probabilities at the border")
    certain = np.where(first == first.max(), first, first - 90.0)
    yield Case(
        "limits", {"logits": np.stack([certain, flat]), "p": 1.0}, "p = 1, one row is certain"
    )
    hidden = np.stack([first, flat])
    hidden[:, 1] = -np.inf
    yield Case("limits", {"logits": hidden, "p": 0.75}, "some logits are −inf already")
    yield Case("limits", {"logits": first, "p": 0.0}, "p = 0")
    yield Case("limits", {"logits": first, "p": 1.2}, "p > 1")


def top_p_filter_reference(logits, p):
    """Takes tokens one by one until their probability reaches p."""
    if not 0 < p <= 1:
        raise ValueError("p must be in (0, 1]")
    rows = []
    for row in logits.reshape(-1, logits.shape[-1]).tolist():
        total = math.fsum(math.exp(x - max(row)) for x in row)
        kept, mass = set(), 0.0
        for i in sorted(range(len(row)), key=lambda i: (-row[i], i)):
            if mass >= p and p < 1:
                break
            kept.add(i)
            mass += math.exp(row[i] - max(row)) / total
        rows.append([x if i in kept else -math.inf for i, x in enumerate(row)])
    return torch.tensor(rows, dtype=logits.dtype).reshape(logits.shape)


def _check_p(p: float) -> None:
    if not 0 < p <= 1:
        raise ValueError("p must be in (0, 1]")


def _nucleus(logits, p, before=True, descending=True, at_least_one=True, check=True, dim=-1):
    """Top-p with a switch for each mistake."""
    if check:
        _check_p(p)
    values, order = logits.softmax(dim=dim).sort(dim=dim, descending=descending, stable=True)
    reached = values.cumsum(dim=dim)
    out = (reached - values if before else reached) >= p - (1e-12 if before else 0)
    if p == 1:
        out = torch.zeros_like(out)
    if at_least_one:
        out[..., :1] = False
    return torch.zeros_like(out).scatter(-1, order, out)


def drops_the_crossing_token(logits, p):
    """Keeps tokens as long as their sum stays below p, and one at least."""
    return logits.masked_fill(_nucleus(logits, p, before=False), -math.inf)


def drops_even_the_first(logits, p):
    """As before, but if the first token crosses p nothing is left."""
    out = _nucleus(logits, p, before=False, at_least_one=False)
    return logits.masked_fill(out, -math.inf)


def one_token_too_many(logits, p):
    """Keeps the token after the crossing one as well."""
    _check_p(p)
    values, order = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    out = (values.cumsum(dim=-1) - values >= p).roll(1, dims=-1)
    out[..., 0] = False
    out = torch.zeros_like(out).scatter(-1, order, out)
    return logits.masked_fill(out, -math.inf)


def sums_in_the_order_of_numbers(logits, p):
    """Adds probabilities up without sorting."""
    _check_p(p)
    probabilities = logits.softmax(dim=-1)
    out = probabilities.cumsum(dim=-1) - probabilities >= p - 1e-12
    return logits.masked_fill(out & (p < 1), -math.inf)


def least_probable_first(logits, p):
    """Sorts the other way round."""
    return logits.masked_fill(_nucleus(logits, p, descending=False), -math.inf)


def probability_against_p(logits, p):
    """Keeps tokens that are as probable as 1 − p."""
    _check_p(p)
    return logits.masked_fill(logits.softmax(dim=-1) < 1 - p, -math.inf)


def mask_not_put_back(logits, p):
    """Uses the mask of the sorted row on the unsorted one."""
    _check_p(p)
    values = logits.softmax(dim=-1).sort(dim=-1, descending=True).values
    out = values.cumsum(dim=-1) - values >= p - 1e-12
    return logits.masked_fill(out & (p < 1), -math.inf)


def nucleus_left_sorted(logits, p):
    """Returns the row in the order of probability."""
    _check_p(p)
    values, order = logits.sort(dim=-1, descending=True, stable=True)
    out = _nucleus(logits, p).gather(-1, order)
    return values.masked_fill(out, -math.inf)


def zero_outside_the_nucleus(logits, p):
    """Puts 0 for what is out."""
    return logits.masked_fill(_nucleus(logits, p), 0.0)


def nucleus_as_probabilities(logits, p):
    """Returns probabilities."""
    return logits.masked_fill(_nucleus(logits, p), -math.inf).softmax(dim=-1)


def any_p_will_do(logits, p):
    """Accepts p = 0 and p > 1."""
    out = _nucleus(logits, max(p, 1e-9), check=False)
    return logits.masked_fill(out & (p < 1), -math.inf)


def full_p_left_to_rounding(logits, p):
    """At p = 1 the rounded sum may reach 1 before the last token."""
    _check_p(p)
    values, order = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    out = values.cumsum(dim=-1) - values >= p - 1e-12
    return logits.masked_fill(torch.zeros_like(out).scatter(-1, order, out), -math.inf)


def top_p_by_scatter(logits, p):
    """Right: the common sort, cumsum, shift, scatter."""
    if p <= 0 or p > 1:
        raise ValueError("p")
    order = logits.argsort(dim=-1, descending=True, stable=True)
    ranked = logits.gather(-1, order)
    reached = ranked.softmax(dim=-1).cumsum(dim=-1)
    out = torch.zeros_like(ranked, dtype=torch.bool)
    out[..., 1:] = reached[..., :-1] >= p
    if p == 1.0:
        out[...] = False
    return torch.empty_like(ranked).scatter_(-1, order, ranked.masked_fill(out, -math.inf))


def top_p_by_comparing(logits, p):
    """Right: for every token the probability of all that go before it."""
    if not (p > 0 and p <= 1):
        raise ValueError("p")
    mine, other = logits[..., :, None], logits[..., None, :]
    index = torch.arange(logits.shape[-1])
    before = (other > mine) | ((other == mine) & (index[None, :] < index[:, None]))
    mass = (before * logits.softmax(dim=-1)[..., None, :]).sum(dim=-1)
    return torch.where((mass < p) | (p == 1), logits, -math.inf)


def top_p_by_size(logits, p):
    """Right: counts how many tokens are needed, then keeps that many."""
    if not 0 < p <= 1:
        raise ValueError("p")
    ranked = logits.softmax(dim=-1).sort(dim=-1, descending=True).values
    needed = (ranked.cumsum(dim=-1) < p).sum(dim=-1, keepdim=True) + 1
    needed = needed if p < 1 else torch.full_like(needed, logits.shape[-1])
    return torch.where(ranks(logits) < needed, logits, -math.inf)


TOP_P_FILTER = Exercise(
    id="top_p_filter",
    title="Top-p: the nucleus",
    asks="Keep the most probable tokens until their probability reaches p; all others become −inf.",
    parameters=("logits", "p"),
    outputs=("filtered",),
    driver="tensor_function",
    groups={
        "values": Group(2, "rows and batches"),
        "small": Group(1, "p inside the most probable token; equal probabilities"),
        "limits": Group(1, "p = 1, hidden tokens, and a p that makes no sense"),
    },
    cases=top_p_filter_cases,
    reference=top_p_filter_reference,
    misconceptions=(
        Misconception(
            drops_the_crossing_token,
            "The token with which the sum crosses p is out; the nucleus then has less than p.",
            "What is the sum of what you keep: below p, or at least p?",
        ),
        Misconception(
            drops_even_the_first,
            "If the first token already crosses p, nothing is left.",
            "What is the smallest number of tokens that should be left?",
        ),
        Misconception(
            one_token_too_many,
            "The token behind the crossing one is kept too.",
            "Is the sum at least p without the last token that you keep?",
        ),
        Misconception(
            sums_in_the_order_of_numbers,
            "The probabilities are added up in the order of the tokens' numbers.",
            "Which token should be taken first?",
        ),
        Misconception(
            least_probable_first,
            "The least probable tokens are taken first.",
            "In which direction have you sorted?",
        ),
        Misconception(
            probability_against_p,
            "Each probability is compared with a number of its own; it is their sum that counts.",
            "How many tokens does a flat row keep, and how many a peaked one?",
        ),
        Misconception(
            mask_not_put_back,
            "The mask belongs to the sorted row but is used on the unsorted one.",
            "To which token does the first entry of your mask belong?",
        ),
        Misconception(
            nucleus_left_sorted,
            "The result is in the order of probability.",
            "To which token does the first entry of your result belong?",
        ),
        Misconception(
            zero_outside_the_nucleus,
            "What is out gets the logit 0, which still has a probability.",
            "Which logit has the probability 0?",
        ),
        Misconception(
            nucleus_as_probabilities,
            "The result holds probabilities; logits are expected.",
            "Leave the softmax to whoever draws.",
        ),
        Misconception(
            full_p_left_to_rounding,
            "At p = 1 a token is out: in floating-point numbers the sum reaches 1 too early.",
            "What does the contract say about p = 1? Look at the rounded sum of the first tokens.",
        ),
        Misconception(
            any_p_will_do,
            "A p outside (0, 1] is accepted.",
            "The contract says what to do with such a p.",
        ),
    ),
    accepted=(top_p_by_scatter, top_p_by_comparing, top_p_by_size),
    equivalent_mutants={
        "`logits.argsort(dim=-1, descending=True, stable=True)` → "
        "`logits.argsort(dim=-1, descending=True, stable=False)`": (
            "PyTorch does not promise it, but its sort of short rows keeps the order of equals"
        ),
        "`logits.clone()` → `logits`": "what is returned is never written to",
        "`torch.zeros_like(before, dtype=torch.bool)` → "
        "`torch.ones_like(before, dtype=torch.bool)`": "every entry is written over",
        "`before >= p` → `before > p`": "they differ only if a sum equals p to the last bit",
    },
)
