"""Chapter 03, challenge: rotary attention that writes token by token with a key/value cache."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import causal_mask, stable_softmax
from autograder.exercises._ch03_parts import rotated
from autograder.exercises._ch03_rotary import rotate_by_complex, rotate_by_swapping


def cache_cases(rng):
    """One new token, several, none cached yet, old ones dropped, batch and heads."""

    def case(group, about, new, cached, start, lead=(), base=10000.0):
        width, value_width = int(rng.choice([4, 6])), 2
        inputs = {
            "queries": 1.5 * rng.normal(size=(*lead, new, width)),
            "keys": 1.5 * rng.normal(size=(*lead, new, width)),
            "values": rng.normal(size=(*lead, new, value_width)),
            "cached_keys": 1.5 * rng.normal(size=(*lead, cached, width)),
            "cached_values": rng.normal(size=(*lead, cached, value_width)),
            "start": start,
            "base": base,
        }
        return Case(group, inputs, about)

    yield case("one", "one new token", 1, 5, 5)
    yield case("one", "one new token, a batch", 1, 4, 4, (3,), float(rng.integers(50, 500)))
    large = case("several", "large scores", 3, 5, 5)
    large.inputs["queries"][...] = 1000.0 * large.inputs["keys"]  # each finds itself, far above 709
    yield large
    yield case("several", "several new tokens", 3, 5, 5)
    yield case(
        "several", "several new tokens, a batch", 3, 1, 1, (5,), float(rng.integers(50, 500))
    )
    yield case("several", "an empty cache", 3, 0, 0)
    yield case("dropped", "old tokens were dropped", 1, 3, 3 + int(rng.integers(5, 30)))
    yield case(
        "dropped", "old ones were dropped, several new ones, batch and heads", 3, 1, 40, (1, 3)
    )


def cache_reference(queries, keys, values, cached_keys, cached_values, start, base):
    """New token by new token, each with the keys that are there by then."""
    all_keys = list(np.moveaxis(cached_keys, -2, 0))
    all_values = list(np.moveaxis(cached_values, -2, 0))
    outputs = []
    for step in range(queries.shape[-2]):
        here = np.array([start + step])
        query = rotate_by_complex(queries[..., step : step + 1, :], here, base)[..., 0, :]
        all_keys.append(rotate_by_complex(keys[..., step : step + 1, :], here, base)[..., 0, :])
        all_values.append(values[..., step, :])
        scores = np.stack([(query * key).sum(axis=-1) for key in all_keys])
        scores = scores / np.sqrt(query.shape[-1])
        weights = np.exp(scores - np.logaddexp.reduce(scores, axis=0))
        outputs.append(sum(w[..., None] * v for w, v in zip(weights, all_values, strict=True)))
    return tuple(np.stack(parts, axis=-2) for parts in (outputs, all_keys, all_values))


def _attend(queries, all_keys, all_values, mask=None):
    """Attention of queries and keys that are already turned; causal unless there is a mask."""
    scores = queries @ np.swapaxes(all_keys, -1, -2) / np.sqrt(queries.shape[-1])
    mask = causal_mask(*scores.shape[-2:]) if mask is None else mask
    return stable_softmax(np.where(mask, scores, -np.inf)) @ all_values


def _joined(old, new):
    return np.concatenate([old, new], axis=-2)


def _step(queries, keys, values, cached_keys, cached_values, places, base, mask=None):
    """The right step if `places` are the new tokens' positions and `mask` is None."""
    all_keys = _joined(cached_keys, rotated(keys, places, base))
    all_values = _joined(cached_values, values)
    queries = rotated(queries, places, base)
    return _attend(queries, all_keys, all_values, mask), all_keys, all_values


def positions_restart(queries, keys, values, cached_keys, cached_values, start, base):
    """Counts the new tokens from 0."""
    places = np.arange(queries.shape[-2])
    return _step(queries, keys, values, cached_keys, cached_values, places, base)


def positions_from_cache_length(queries, keys, values, cached_keys, cached_values, start, base):
    """Takes the number of cached tokens for the position: wrong after some were dropped."""
    places = cached_keys.shape[-2] + np.arange(queries.shape[-2])
    return _step(queries, keys, values, cached_keys, cached_values, places, base)


def same_position_for_all_new(queries, keys, values, cached_keys, cached_values, start, base):
    """Puts all new tokens at `start`."""
    places = np.full(queries.shape[-2], start)
    return _step(queries, keys, values, cached_keys, cached_values, places, base)


def one_position_too_far(queries, keys, values, cached_keys, cached_values, start, base):
    """Counts from start + 1."""
    places = start + 1 + np.arange(queries.shape[-2])
    return _step(queries, keys, values, cached_keys, cached_values, places, base)


def cached_keys_turned_again(queries, keys, values, cached_keys, cached_values, start, base):
    """Turns all keys, cached ones too."""
    new, cached = queries.shape[-2], cached_keys.shape[-2]
    places = start + np.arange(new)
    all_keys = rotated(_joined(cached_keys, keys), start - cached + np.arange(cached + new), base)
    all_values = _joined(cached_values, values)
    return _attend(rotated(queries, places, base), all_keys, all_values), all_keys, all_values


def new_keys_cached_unturned(queries, keys, values, cached_keys, cached_values, start, base):
    """Attends rightly, but caches the new keys as they came."""
    places = start + np.arange(queries.shape[-2])
    output, _, all_values = _step(queries, keys, values, cached_keys, cached_values, places, base)
    return output, _joined(cached_keys, keys), all_values


def new_keys_never_turned(queries, keys, values, cached_keys, cached_values, start, base):
    """Turns the queries only."""
    all_keys, all_values = _joined(cached_keys, keys), _joined(cached_values, values)
    queries = rotated(queries, start + np.arange(queries.shape[-2]), base)
    return _attend(queries, all_keys, all_values), all_keys, all_values


def new_queries_never_turned(queries, keys, values, cached_keys, cached_values, start, base):
    """Turns the keys only."""
    all_keys = _joined(cached_keys, rotated(keys, start + np.arange(queries.shape[-2]), base))
    all_values = _joined(cached_values, values)
    return _attend(queries, all_keys, all_values), all_keys, all_values


def new_values_turned(queries, keys, values, cached_keys, cached_values, start, base):
    """Turns the values too."""
    places = start + np.arange(queries.shape[-2])
    values = rotated(values, places, base)
    return _step(queries, keys, values, cached_keys, cached_values, places, base)


def new_tokens_see_each_other(queries, keys, values, cached_keys, cached_values, start, base):
    """No mask: a new token sees later ones."""
    places = start + np.arange(queries.shape[-2])
    return _step(queries, keys, values, cached_keys, cached_values, places, base, np.True_)


def triangle_from_the_first_key(queries, keys, values, cached_keys, cached_values, start, base):
    """Query i sees the keys 0 ... i only."""
    new, cached = queries.shape[-2], cached_keys.shape[-2]
    mask = np.tri(new, cached + new, dtype=bool)
    places = start + np.arange(new)
    return _step(queries, keys, values, cached_keys, cached_values, places, base, mask)


def only_new_tokens_returned(queries, keys, values, cached_keys, cached_values, start, base):
    """Returns the new keys and values instead of the longer cache."""
    places = start + np.arange(queries.shape[-2])
    output, _, _ = _step(queries, keys, values, cached_keys, cached_values, places, base)
    return output, rotated(keys, places, base), values


def new_tokens_in_front(queries, keys, values, cached_keys, cached_values, start, base):
    """Joins in the wrong order."""
    places = start + np.arange(queries.shape[-2])
    output, _, _ = _step(queries, keys, values, cached_keys, cached_values, places, base)
    return output, _joined(rotated(keys, places, base), cached_keys), _joined(values, cached_values)


def step_ignores_base(queries, keys, values, cached_keys, cached_values, start, base):
    """Leaves the base at 10000."""
    places = start + np.arange(queries.shape[-2])
    return _step(queries, keys, values, cached_keys, cached_values, places, 10000.0)


def step_overflows(queries, keys, values, cached_keys, cached_values, start, base):
    """exp of large scores is infinite."""
    places = start + np.arange(queries.shape[-2])
    all_keys = _joined(cached_keys, rotated(keys, places, base))
    all_values = _joined(cached_values, values)
    scores = rotated(queries, places, base) @ np.swapaxes(all_keys, -1, -2)
    powers = np.exp(scores / np.sqrt(queries.shape[-1])) * causal_mask(*scores.shape[-2:])
    return powers / powers.sum(axis=-1, keepdims=True) @ all_values, all_keys, all_values


def step_by_slices(queries, keys, values, cached_keys, cached_values, start, base):
    """Right: writes into arrays made beforehand; a comparison of places for the mask."""
    new, cached = keys.shape[-2], cached_keys.shape[-2]
    places = np.arange(start, start + new)
    all_keys = np.empty((*keys.shape[:-2], cached + new, keys.shape[-1]))
    all_keys[..., :cached, :], all_keys[..., cached:, :] = (
        cached_keys,
        rotate_by_swapping(keys, places, base),
    )
    all_values = np.append(cached_values, values, axis=-2)
    scores = np.einsum("...qd,...kd->...qk", rotate_by_swapping(queries, places, base), all_keys)
    hidden = np.arange(cached + new)[None, :] > cached + np.arange(new)[:, None]
    scores = np.where(hidden, -1e9, scores / np.sqrt(keys.shape[-1]))
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ all_values, all_keys, all_values


def step_by_recursion(queries, keys, values, cached_keys, cached_values, start, base):
    """Right: one token at a time, each with the cache that the one before left."""
    outputs = []
    for step in range(queries.shape[-2]):
        here = slice(step, step + 1)
        output, cached_keys, cached_values = _step(
            *(x[..., here, :] for x in (queries, keys, values)),
            *(cached_keys, cached_values, np.array([start + step]), base),
        )
        outputs.append(output)
    return np.concatenate(outputs, axis=-2), cached_keys, cached_values


def step_by_complex(queries, keys, values, cached_keys, cached_values, start, base):
    """Right: complex numbers for the turning, a mask of infinities that is added."""
    new, cached = queries.shape[-2], cached_keys.shape[-2]
    places = start + np.arange(new)
    all_keys = np.concatenate((cached_keys, rotate_by_complex(keys, places, base)), -2)
    all_values = np.concatenate((cached_values, values), -2)
    scores = rotate_by_complex(queries, places, base) @ all_keys.swapaxes(-1, -2)
    future = np.triu(np.full((new, cached + new), -np.inf), cached + 1)
    scores = scores / keys.shape[-1] ** 0.5 + future
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ all_values, all_keys, all_values


CACHED_ROTARY_STEP = Exercise(
    id="cached_rotary_step",
    title="Rotary positions and a cache",
    asks="Attend from new tokens to cached and new ones, and give the longer cache back.",
    parameters=(
        *("queries", "keys", "values", "cached_keys", "cached_values"),
        *("start", "base"),
    ),
    outputs=("output", "all_keys", "all_values"),
    groups={
        "one": Group(1, "one new token"),
        "several": Group(2, "several new tokens; large scores; an empty cache"),
        "dropped": Group(1, "old tokens were dropped from the cache"),
    },
    cases=cache_cases,
    reference=cache_reference,
    misconceptions=(
        Misconception(
            positions_restart,
            "The new tokens are counted from 0 again; their positions go on from `start`.",
            "At which position stands the token that is written tenth?",
        ),
        Misconception(
            positions_from_cache_length,
            "The length of the cache serves as position; tokens may have been dropped from it.",
            "Which argument says where the first new token stands?",
        ),
        Misconception(
            same_position_for_all_new,
            "All new tokens stand at the same position.",
            "Where does the second new token stand?",
        ),
        Misconception(
            one_position_too_far,
            "Positions are one too large: `start` is the position of the first *new* token.",
            "Read point 1 of the exercise again.",
        ),
        Misconception(
            cached_keys_turned_again,
            "The cached keys are turned a second time.",
            "Point 2 of the exercise says in what state keys lie in the cache.",
        ),
        Misconception(
            new_keys_cached_unturned,
            "The new keys go into the cache as they came; the next step expects turned ones.",
            "Point 2 of the exercise says in what state keys lie in the cache.",
        ),
        Misconception(
            new_keys_never_turned,
            "The new keys are not turned.",
            "Which two of the three arrays of the new tokens must be turned?",
        ),
        Misconception(
            new_queries_never_turned,
            "The queries are not turned.",
            "Which two of the three arrays of the new tokens must be turned?",
        ),
        Misconception(
            new_values_turned,
            "The values are turned as well; positions should only enter the scores.",
            "Which two of the three arrays of the new tokens must be turned?",
        ),
        Misconception(
            new_tokens_see_each_other,
            "A new token sees new tokens after it.",
            "With three new tokens, which keys may the first of them see?",
        ),
        Misconception(
            triangle_from_the_first_key,
            "The causal mask starts at the first key, so new tokens miss cached ones.",
            "Which of the keys is the first query's own?",
        ),
        Misconception(
            only_new_tokens_returned,
            "Only the new keys and values come back; the cache should grow.",
            "How many rows has the cache after this step?",
        ),
        Misconception(
            new_tokens_in_front,
            "The new keys and values stand before the cached ones.",
            "In which order will the next step expect them?",
        ),
        Misconception(
            step_ignores_base,
            "The base is always 10000: pass `base` on.",
            "Where does `base` enter your computation?",
        ),
        Misconception(
            step_overflows,
            "exp of a large score overflows to infinity, and infinity / infinity is NaN.",
            "What can be subtracted from all scores of a row without changing the weights?",
        ),
    ),
    accepted=(step_by_slices, step_by_recursion, step_by_complex),
)
