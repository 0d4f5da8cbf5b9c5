"""Chapter 08: the masks of sequence-to-sequence models. True = may be seen."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_lengths
from autograder.exercise import Exercise, Group, Misconception


def sequence_mask_cases(rng):
    """The three kinds with padding of unequal length; cross-attention; an unknown kind."""
    batch = 3
    queries, keys = (int(n) for n in rng.permutation([5, 6, 7])[:2])

    def case(group, kind, queries, keys, about, prefixes=True):
        lengths = np.maximum(draw_lengths(rng, batch, keys), 3)
        lengths[lengths.argmin()] = 3
        prefix = 2 + rng.permutation(keys - 2)[:batch]  # with 1 it would be a causal mask
        prefix = np.minimum(prefix, lengths - 1)
        inputs = {"kind": kind, "lengths": lengths, "queries": queries, "keys": keys}
        if prefixes:
            inputs["prefix_lengths"] = np.where(lengths == keys, keys - 2, prefix).astype(np.int64)
        return Case(group, inputs, about)

    size = int(rng.integers(5, 7))
    yield case("full", "full", size, size, "an encoder", prefixes=False)
    yield case("full", "full", queries, keys, "cross-attention", prefixes=False)
    yield case("causal", "causal", size, size, "a decoder", prefixes=False)
    yield case("causal", "causal", size, size, "a decoder; the prefix must not matter")
    yield case("prefix", "prefix", size, size, "a prefix language model")
    yield case("prefix", "prefix", 7, 7, "a longer prefix language model")
    for name in ("casual", ""):
        yield case("refused", name, size, size, f"the kind {name!r}", prefixes=False)


def sequence_mask_reference(kind, lengths, queries, keys, prefix_lengths=None):
    """Entry by entry."""
    if kind not in ("full", "causal", "prefix"):
        raise ValueError(f"unknown kind {kind!r}")
    mask = torch.zeros(len(lengths), queries, keys, dtype=torch.bool)
    for b, i, j in np.ndindex(*mask.shape):
        seen = kind == "full" or j <= i
        if kind == "prefix" and j < prefix_lengths[b]:
            seen = True
        mask[b, i, j] = seen and j < int(lengths[b])
    return mask


def _mask(
    kind,
    lengths,
    queries,
    keys,
    prefix_lengths=None,
    causal=lambda i, j: j <= i,
    prefix=lambda i, j, p: j < p,
    join=lambda past, inside: past | inside,
    real=lambda i, j, n: j < n,
    known=("full", "causal", "prefix"),
):
    if kind not in known:
        raise ValueError(f"unknown kind {kind!r}")
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    seen = causal(i, j) if kind != "full" else torch.ones(queries, keys, dtype=torch.bool)
    if kind == "prefix":
        seen = join(seen, prefix(i, j, prefix_lengths[:, None, None]))
    return (seen & real(i, j, lengths[:, None, None])).expand(len(lengths), queries, keys).clone()


def true_means_hidden(kind, lengths, queries, keys, prefix_lengths=None):
    """Turns the mask round."""
    return ~_mask(kind, lengths, queries, keys, prefix_lengths)


def itself_hidden(kind, lengths, queries, keys, prefix_lengths=None):
    """A strict triangle: a token does not see itself."""
    return _mask(kind, lengths, queries, keys, prefix_lengths, causal=lambda i, j: j < i)


def next_token_seen(kind, lengths, queries, keys, prefix_lengths=None):
    """The triangle is one too wide."""
    return _mask(kind, lengths, queries, keys, prefix_lengths, causal=lambda i, j: j <= i + 1)


def sees_the_future(kind, lengths, queries, keys, prefix_lengths=None):
    """The upper triangle."""
    return _mask(kind, lengths, queries, keys, prefix_lengths, causal=lambda i, j: j >= i)


def padding_seen(kind, lengths, queries, keys, prefix_lengths=None):
    """Padding is not hidden."""
    return _mask(
        kind, lengths, queries, keys, prefix_lengths, real=lambda i, j, n: torch.ones_like(j < n)
    )


def padded_queries_blind(kind, lengths, queries, keys, prefix_lengths=None):
    """Queries beyond the length see nothing."""
    return _mask(
        kind, lengths, queries, keys, prefix_lengths, real=lambda i, j, n: (j < n) & (i < n)
    )


def padding_on_the_query_side(kind, lengths, queries, keys, prefix_lengths=None):
    """Hides padded queries and not padded keys."""
    return _mask(
        kind,
        lengths,
        queries,
        keys,
        prefix_lengths,
        real=lambda i, j, n: (i < n).expand(-1, -1, keys),
    )


def prefix_is_causal(kind, lengths, queries, keys, prefix_lengths=None):
    """No difference between a prefix and a causal model."""
    return _mask(kind, lengths, queries, keys, prefix_lengths, join=lambda past, inside: past)


def prefix_only(kind, lengths, queries, keys, prefix_lengths=None):
    """Nothing but the prefix is seen."""
    return _mask(kind, lengths, queries, keys, prefix_lengths, join=lambda past, inside: inside)


def prefix_for_itself_alone(kind, lengths, queries, keys, prefix_lengths=None):
    """Later tokens do not see the prefix."""

    def join(past, inside):
        first = inside[:, 0, :] if inside.shape[1] == 1 else inside.any(dim=1)
        rows, columns = first[:, :, None], first[:, None, :]
        return torch.where(rows, columns, past & ~columns)

    return _mask(kind, lengths, queries, keys, prefix_lengths, join=join)


def prefix_sees_everything(kind, lengths, queries, keys, prefix_lengths=None):
    """Tokens of the prefix see what comes after it."""
    return _mask(
        kind, lengths, queries, keys, prefix_lengths, prefix=lambda i, j, p: (i < p) | (j < p)
    )


def prefix_one_too_long(kind, lengths, queries, keys, prefix_lengths=None):
    """The first token behind the prefix belongs to it."""
    return _mask(kind, lengths, queries, keys, prefix_lengths, prefix=lambda i, j, p: j <= p)


def one_prefix_for_all(kind, lengths, queries, keys, prefix_lengths=None):
    """Takes the first row's prefix."""
    return _mask(kind, lengths, queries, keys, prefix_lengths, prefix=lambda i, j, p: j < p[:1])


def any_kind_is_causal(kind, lengths, queries, keys, prefix_lengths=None):
    """Takes every other kind for "causal"."""
    kind = kind if kind in ("full", "prefix") else "causal"
    return _mask(kind, lengths, queries, keys, prefix_lengths)


def mask_by_tril(kind, lengths, queries, keys, prefix_lengths=None):
    """Right: tril, then rows of the batch in a loop."""
    if kind not in {"full", "causal", "prefix"}:
        raise ValueError(kind)
    base = torch.ones(queries, keys)
    if kind != "full":
        base = base.tril()
    mask = base.bool().repeat(len(lengths), 1, 1)
    for b, length in enumerate(lengths):
        if kind == "prefix":
            mask[b, :, : prefix_lengths[b]] = True
        mask[b, :, length:] = False
    return mask


def mask_by_largest_key(kind, lengths, queries, keys, prefix_lengths=None):
    """Right: how many keys each query sees, then one comparison."""
    position = torch.arange(1, queries + 1).expand(len(lengths), queries)
    if kind == "full":
        limit = torch.full_like(position, keys)
    elif kind == "causal":
        limit = position
    elif kind == "prefix":
        limit = torch.maximum(position, prefix_lengths[:, None])
    else:
        raise ValueError("kind")
    limit = torch.minimum(limit, lengths[:, None])
    return torch.arange(keys) < limit[:, :, None]


def mask_in_numpy(kind, lengths, queries, keys, prefix_lengths=None):
    """Right: NumPy, a table of rules."""
    i, j = np.indices((queries, keys))
    prefix = np.zeros(len(lengths), int) if prefix_lengths is None else prefix_lengths.numpy()
    rules = {
        "full": lambda p: j >= 0,
        "causal": lambda p: i >= j,
        "prefix": lambda p: (i >= j) | (j < p),
    }
    if kind not in rules:
        raise ValueError(f"{kind} is none of {sorted(rules)}")
    rows = [rules[kind](p) & (j < n) for p, n in zip(prefix, lengths.numpy(), strict=True)]
    return torch.from_numpy(np.stack(rows))


SEQUENCE_MASK = Exercise(
    id="sequence_mask",
    title="Three masks",
    asks="Say which keys each query may see: all, the past, or a prefix and the past.",
    parameters=("kind", "lengths", "queries", "keys", "prefix_lengths"),
    outputs=("mask",),
    driver="tensor_function",
    groups={
        "full": Group(1, "all real keys: encoder and cross-attention"),
        "causal": Group(1, "the past: a decoder"),
        "prefix": Group(2, "a prefix language model"),
        "refused": Group(1, "kinds that there are not"),
    },
    cases=sequence_mask_cases,
    reference=sequence_mask_reference,
    misconceptions=(
        Misconception(
            true_means_hidden,
            "The mask is turned round: True means that a key may be seen.",
            "In a mask for an encoder without padding, what should stand everywhere?",
        ),
        Misconception(
            itself_hidden,
            "A token does not see itself; the first one sees nothing.",
            "What does query 0 see in a causal mask?",
        ),
        Misconception(
            next_token_seen,
            "The triangle is one too wide: each token sees the one that it should predict.",
            "What does query 0 see in a causal mask?",
        ),
        Misconception(
            sees_the_future,
            "The triangle is the wrong one: a token sees the future.",
            "Which of j ≤ i and j ≥ i is the past?",
        ),
        Misconception(
            padding_seen,
            "Padded keys may be seen.",
            "Where do `lengths` enter, whatever the kind?",
        ),
        Misconception(
            padded_queries_blind,
            "Queries in the padding see nothing; a softmax over nothing is NaN.",
            "What does the contract say about padded queries?",
        ),
        Misconception(
            padding_on_the_query_side,
            "Padded queries are hidden and not padded keys.",
            "Which axis of the mask holds the keys?",
        ),
        Misconception(
            prefix_is_causal,
            "The prefix changes nothing.",
            "What may a token of the prefix see that a causal mask hides?",
        ),
        Misconception(
            prefix_only,
            "Behind the prefix, tokens no longer see the past.",
            "What should the last token see?",
        ),
        Misconception(
            prefix_for_itself_alone,
            "Tokens behind the prefix do not see the prefix.",
            "How would the answer know the question?",
        ),
        Misconception(
            prefix_sees_everything,
            "Tokens of the prefix see the answer as well.",
            "Which keys may query 0 see in a prefix language model?",
        ),
        Misconception(
            prefix_one_too_long,
            "The prefix is one token too long.",
            "For a prefix of length 2, which keys belong to it?",
        ),
        Misconception(
            one_prefix_for_all,
            "All rows have the first row's prefix.",
            "How do you give `prefix_lengths` the axes of the mask?",
        ),
        Misconception(
            any_kind_is_causal,
            "An unknown kind is taken for “causal”: a misspelt one would go unnoticed.",
            "The contract says what to do with unknown kinds.",
        ),
    ),
    accepted=(mask_by_tril, mask_by_largest_key, mask_in_numpy),
)
