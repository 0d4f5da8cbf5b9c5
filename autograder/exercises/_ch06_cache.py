"""Chapter 06: an attention layer that keeps the keys and values of what it has seen."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def cached_attention_cases(rng):
    """Token by token; a prompt first; several tokens in the middle; all at once."""

    def case(group, about, pieces):
        s = draw_sizes(rng, "batch", "d_model", "d_k", "d_v", among=(2, 3, 5, 6))
        s.batch, s.d_model = sorted((s.batch, s.d_model))
        length = sum(pieces)
        inputs = {
            "x": rng.normal(size=(s.batch, length, s.d_model)),
            "positions": rng.normal(size=(length + 2, s.d_model)),
            "w_q": rng.normal(size=(s.d_model, s.d_k)),
            "w_k": rng.normal(size=(s.d_model, s.d_k)),
            "w_v": rng.normal(size=(s.d_model, s.d_v)),
            "pieces": list(pieces),
        }
        return Case(group, inputs, about)

    yield case("steps", "one token at a time", (1, 1, 1))
    yield case("steps", "a prompt of three tokens, then one at a time", (3, 1, 1))
    yield case("pieces", "pieces of several tokens", (2, 1, 2))
    yield case("pieces", "everything in one piece", (4,))


def cached_attention_reference(x, positions, to_queries, to_keys, to_values, cache=None):
    """One query after the other, over a list of all keys up to its own."""
    past = 0 if cache is None else cache[0].shape[1]
    placed = x + positions[past : past + x.shape[1]]
    queries, keys, values = to_queries(placed), to_keys(placed), to_values(placed)
    if cache is not None:
        keys = torch.cat([cache[0], keys], dim=1)
        values = torch.cat([cache[1], values], dim=1)
    rows = []
    for number in range(x.shape[1]):
        seen = past + number + 1
        scores = torch.einsum("bd,bkd->bk", queries[:, number], keys[:, :seen])
        weights = (scores / math.sqrt(queries.shape[-1])).softmax(dim=-1)
        rows.append(torch.einsum("bk,bkv->bv", weights, values[:, :seen]))
    return torch.stack(rows, dim=1), (keys, values)


def _placed(x, positions, cache):
    past = 0 if cache is None else cache[0].shape[1]
    return x + positions[past : past + x.shape[1]]


def _joined(cache, keys, values):
    if cache is None:
        return keys, values
    return torch.cat([cache[0], keys], dim=1), torch.cat([cache[1], values], dim=1)


def _attend(queries, keys, values, first=None):
    q, k = queries.shape[1], keys.shape[1]
    first = k - q if first is None else first
    mask = torch.ones(q, k, dtype=torch.bool).tril(first)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def positions_start_again(x, positions, to_queries, to_keys, to_values, cache=None):
    """Gives every piece the positions from 0 on."""
    placed = x + positions[: x.shape[1]]
    keys, values = _joined(cache, to_keys(placed), to_values(placed))
    return _attend(to_queries(placed), keys, values), (keys, values)


def positions_forgotten(x, positions, to_queries, to_keys, to_values, cache=None):
    """Adds no positions."""
    keys, values = _joined(cache, to_keys(x), to_values(x))
    return _attend(to_queries(x), keys, values), (keys, values)


def triangle_at_the_top_left(x, positions, to_queries, to_keys, to_values, cache=None):
    """Aligns the causal mask at the first key, as `is_causal=True` does."""
    placed = _placed(x, positions, cache)
    keys, values = _joined(cache, to_keys(placed), to_values(placed))
    output = F.scaled_dot_product_attention(to_queries(placed), keys, values, is_causal=True)
    return output, (keys, values)


def no_causal_mask(x, positions, to_queries, to_keys, to_values, cache=None):
    """Lets the tokens of a piece see each other, later ones too."""
    placed = _placed(x, positions, cache)
    keys, values = _joined(cache, to_keys(placed), to_values(placed))
    output = F.scaled_dot_product_attention(to_queries(placed), keys, values)
    return output, (keys, values)


def only_new_tokens_seen(x, positions, to_queries, to_keys, to_values, cache=None):
    """Attends within the piece, and keeps the cache for nothing."""
    placed = _placed(x, positions, cache)
    keys, values = to_keys(placed), to_values(placed)
    return _attend(to_queries(placed), keys, values), _joined(cache, keys, values)


def only_old_tokens_seen(x, positions, to_queries, to_keys, to_values, cache=None):
    """Attends to what was there before and not to the token itself."""
    placed = _placed(x, positions, cache)
    new = to_keys(placed), to_values(placed)
    keys, values = _joined(cache, *new)
    seen_keys, seen_values = new if cache is None else cache
    first = None if cache is None else seen_keys.shape[1]
    return _attend(to_queries(placed), seen_keys, seen_values, first), (keys, values)


def cache_not_extended(x, positions, to_queries, to_keys, to_values, cache=None):
    """Returns the new keys and values only, so that earlier ones are lost."""
    placed = _placed(x, positions, cache)
    new = to_keys(placed), to_values(placed)
    keys, values = _joined(cache, *new)
    return _attend(to_queries(placed), keys, values), new


def newest_keys_first(x, positions, to_queries, to_keys, to_values, cache=None):
    """Joins old and new in the wrong order."""
    placed = _placed(x, positions, cache)
    keys, values = to_keys(placed), to_values(placed)
    if cache is not None:
        keys, values = (
            torch.cat([new, old], dim=1) for new, old in zip((keys, values), cache, strict=True)
        )
    return _attend(to_queries(placed), keys, values), (keys, values)


def tokens_cached_instead(x, positions, to_queries, to_keys, to_values, cache=None):
    """Keeps vectors of tokens and projects all of them again in each call."""
    placed = _placed(x, positions, cache)
    tokens = placed if cache is None else torch.cat([cache[0], placed], dim=1)
    keys, values = to_keys(tokens), to_values(tokens)
    return _attend(to_queries(placed), keys, values), (tokens, values)


def cached_keys_projected_again(x, positions, to_queries, to_keys, to_values, cache=None):
    """Keeps a history outside of the cache and projects all of it again."""
    history = cached_keys_projected_again.__dict__
    placed = _placed(x, positions, cache)
    old = history["tokens"] if cache is not None else placed[:, :0]
    history["tokens"] = torch.cat([old, placed], dim=1)
    keys, values = to_keys(history["tokens"]), to_values(history["tokens"])
    return _attend(to_queries(placed), keys, values), (keys, values)


def scaled_by_the_values_width(x, positions, to_queries, to_keys, to_values, cache=None):
    """Takes the root of the wrong width."""
    placed = _placed(x, positions, cache)
    keys, values = _joined(cache, to_keys(placed), to_values(placed))
    queries = to_queries(placed)
    queries = queries * math.sqrt(queries.shape[-1] / values.shape[-1])
    return _attend(queries, keys, values), (keys, values)


def values_without_positions(x, positions, to_queries, to_keys, to_values, cache=None):
    """Makes the values of the tokens alone, as rotary embedding does."""
    placed = _placed(x, positions, cache)
    keys, values = _joined(cache, to_keys(placed), to_values(x))
    return _attend(to_queries(placed), keys, values), (keys, values)


def cached_by_concatenation(x, positions, to_queries, to_keys, to_values, cache=None):
    """Right: PyTorch's attention with a mask on positions."""
    past = 0 if cache is None else cache[0].size(1)
    here = torch.arange(past, past + x.size(1))
    placed = x + positions[here]
    keys, values = to_keys(placed), to_values(placed)
    if cache is not None:
        keys = torch.cat((cache[0], keys), 1)
        values = torch.cat((cache[1], values), 1)
    mask = torch.arange(keys.size(1)) <= here[:, None]
    output = F.scaled_dot_product_attention(to_queries(placed), keys, values, attn_mask=mask)
    return output, (keys, values)


def cached_in_larger_tensors(x, positions, to_queries, to_keys, to_values, cache=None):
    """Right: new tensors with room for both; softmax by hand; the cache as a list."""
    past, new = (0 if cache is None else cache[0].shape[1]), x.shape[1]
    placed = x + positions.narrow(0, past, new)
    grown = []
    for number, fresh in enumerate((to_keys(placed), to_values(placed))):
        room = fresh.new_empty(fresh.shape[0], past + new, fresh.shape[2])
        if cache is not None:
            room[:, :past] = cache[number]
        room[:, past:] = fresh
        grown.append(room)
    queries = to_queries(placed)
    scores = queries @ grown[0].transpose(1, 2) / queries.shape[-1] ** 0.5
    later = torch.ones_like(scores, dtype=torch.bool).triu(past + 1)
    return scores.masked_fill(later, -1e30).softmax(-1) @ grown[1], grown


def cached_token_by_token(x, positions, to_queries, to_keys, to_values, cache=None):
    """Right: one token after the other."""
    outputs = []
    for token in range(x.shape[1]):
        past = 0 if cache is None else cache[0].shape[1]
        placed = x[:, token : token + 1] + positions[past]
        cache = _joined(cache, to_keys(placed), to_values(placed))
        outputs.append(F.scaled_dot_product_attention(to_queries(placed), *cache))
    return torch.cat(outputs, dim=1), cache


CACHED_ATTENTION = Exercise(
    id="cached_attention",
    title="Keys and values that are kept",
    asks="Attend from new tokens to all tokens so far, projecting each token once.",
    parameters=("x", "positions", "w_q", "w_k", "w_v", "pieces"),
    groups={
        "steps": Group(3, "one token at a time, with and without a prompt"),
        "pieces": Group(1, "pieces of several tokens"),
    },
    cases=cached_attention_cases,
    reference=cached_attention_reference,
    outputs=(
        "outputs of all calls",
        "keys in the cache",
        "values in the cache",
        "positions projected to (queries, keys, values) in each call",
        "calls that wrote into the old cache",
    ),
    driver="cached_layer",
    misconceptions=(
        Misconception(
            positions_start_again,
            "Every piece gets the positions from 0 on, whatever is in the cache.",
            "At which position does the first new token stand?",
        ),
        Misconception(
            positions_forgotten,
            "No position vectors were added.",
            "What does the contract do with `x` before it is projected?",
        ),
        Misconception(
            triangle_at_the_top_left,
            "The causal mask starts at the first key: a new token sees only the oldest keys.",
            "Which keys may the last of the new tokens see?",
        ),
        Misconception(
            no_causal_mask,
            "Within a piece, tokens see later tokens.",
            "What if a piece holds several tokens, a prompt for example?",
        ),
        Misconception(
            only_new_tokens_seen,
            "New tokens see each other and nothing from the cache.",
            "Which keys do the queries meet?",
        ),
        Misconception(
            only_old_tokens_seen,
            "A new token does not see itself: only what was in the cache.",
            "Which keys do the queries meet?",
        ),
        Misconception(
            cache_not_extended,
            "The cache that is returned holds the newest tokens only.",
            "What will the call after next need?",
        ),
        Misconception(
            newest_keys_first,
            "New keys are put in front of old ones, so they no longer stand in order.",
            "In which order do the tokens stand in the text?",
        ),
        Misconception(
            tokens_cached_instead,
            "The cache holds tokens and not keys: all are projected again in each call.",
            "Which of the three projections of an old token are needed again?",
        ),
        Misconception(
            cached_keys_projected_again,
            "The result is right, but old tokens are projected again in every call.",
            "How many positions should be projected in a call with one new token?",
        ),
        Misconception(
            scaled_by_the_values_width,
            "The scores are divided by the root of the values' width.",
            "Which width does the scaling take?",
        ),
        Misconception(
            values_without_positions,
            "Queries and keys are made of the sums, values of the tokens without their positions.",
            "Which of the three maps get the sums in the contract?",
        ),
    ),
    accepted=(cached_by_concatenation, cached_in_larger_tensors, cached_token_by_token),
    equivalent_mutants={
        f"`cache[0]` → `cache[{place}]`": "keys and values are equally many" for place in (1, -1)
    },
)
