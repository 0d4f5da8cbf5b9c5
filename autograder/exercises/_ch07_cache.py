"""Exercise of chapter 07: a decoder step with a key/value cache for both attentions."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.drivers.decoding import PROJECTIONS
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import draw_source_mask


def cached_step_cases(rng):
    """Several steps and lengths of the source; padded sources; one step."""
    for group, batch, target, source, d_model, about in (
        ("values", 2, 5, 3, 6, "five steps, no padding"),
        ("values", 3, 4, 2, 5, "four steps, no padding"),
        ("padding", 3, 4, 5, 6, "padded sources"),
        ("edges", 2, 1, 5, 3, "one step only"),
    ):
        memory = rng.normal(size=(batch, source, d_model))
        mask = draw_source_mask(rng, batch, source)
        if group != "padding":
            mask[:] = True
        memory[~mask] *= 20.0  # poison
        weights = {name: rng.normal(size=2 * (d_model,)) / d_model**0.5 for name in PROJECTIONS}
        x = 1.5 * rng.normal(size=(batch, target, d_model))
        inputs = {"weights": weights, "x": x, "memory": memory, "memory_mask": mask}
        yield Case(group, inputs, about)


def _attend(queries, keys, values, mask=None):
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def cached_step_reference(x, memory, memory_mask, cache, layer):
    """Keeps every input, and does the last row of the whole pass by hand in NumPy.

    The projections run once for each new position, so that they are counted.
    """
    if not cache:
        cache["memory"] = [to(memory) for to in (layer.cross_keys, layer.cross_values)]
        cache["past"] = []
    cache["past"].append([to(x)[:, 0] for to in (layer.self_keys, layer.self_values)])

    def mixture(query, keys, values, mask):
        rows = []
        for q, k, v, seen in zip(query[:, 0], keys, values, mask, strict=True):
            scores = (k[seen] @ q).numpy() / np.sqrt(len(q))
            weights = np.exp(scores - np.logaddexp.reduce(scores))
            rows.append(torch.from_numpy(weights) @ v[seen])
        return torch.stack(rows)[:, None]

    keys, values = (torch.stack(parts, dim=1) for parts in zip(*cache["past"], strict=True))
    everything = torch.ones(keys.shape[:2], dtype=torch.bool)
    y = x + mixture(layer.self_queries(x), keys, values, everything)
    return y + mixture(layer.cross_queries(y), *cache["memory"], memory_mask)


class _Step:
    """Right unless a method is overridden; the wrong versions are made of it."""

    def past(self, x, cache, layer):
        """Keys and values of all positions so far."""
        for name, to in (("keys", layer.self_keys), ("values", layer.self_values)):
            new = to(x)
            cache[name] = torch.cat([cache[name], new], dim=1) if name in cache else new
        return cache["keys"], cache["values"]

    def source(self, x, y, memory, cache, layer):
        """Keys and values of the source."""
        if "source" not in cache:
            cache["source"] = layer.cross_keys(memory), layer.cross_values(memory)
        return cache["source"]

    def mask(self, memory_mask):
        """What cross-attention may see."""
        return memory_mask[:, None]

    def __call__(self, x, memory, memory_mask, cache, layer):
        """One step."""
        y = x + _attend(layer.self_queries(x), *self.past(x, cache, layer))
        keys, values = self.source(x, y, memory, cache, layer)
        return y + _attend(layer.cross_queries(y), keys, values, self.mask(memory_mask))


def _named(name, about):
    """Make a function of the name from a class of steps, so that it can be a misconception."""

    def decorate(step):
        def function(x, memory, memory_mask, cache, layer):
            return step()(x, memory, memory_mask, cache, layer)

        function.__name__, function.__doc__ = name, about
        return function

    return decorate


@_named("everything_projected_again", "Keeps inputs and projects all of them in every step.")
class _Again(_Step):
    def past(self, x, cache, layer):
        cache["x"] = torch.cat([cache["x"], x], dim=1) if "x" in cache else x
        return layer.self_keys(cache["x"]), layer.self_values(cache["x"])


@_named("source_projected_again", "Projects the source in every step.")
class _SourceAgain(_Step):
    def source(self, x, y, memory, cache, layer):
        return layer.cross_keys(memory), layer.cross_values(memory)


@_named("source_keys_projected_again", "Keeps the source's values, but makes its keys anew.")
class _SourceKeysAgain(_Step):
    def source(self, x, y, memory, cache, layer):
        if "source values" not in cache:
            cache["source values"] = layer.cross_values(memory)
        return layer.cross_keys(memory), cache["source values"]


@_named("nothing_remembered", "Attends to the new position only.")
class _Forgetful(_Step):
    def past(self, x, cache, layer):
        return layer.self_keys(x), layer.self_values(x)


@_named("itself_not_seen", "Adds the new position to the cache after attending.")
class _Late(_Step):
    def past(self, x, cache, layer):
        new = layer.self_keys(x), layer.self_values(x)
        old = cache.get("past", new)
        cache["past"] = tuple(
            torch.cat([before, part], dim=1) if "past" in cache else part
            for before, part in zip(old, new, strict=True)
        )
        return old


@_named("keys_overwritten", "Keeps the values and overwrites the keys.")
class _Overwritten(_Step):
    def past(self, x, cache, layer):
        keys, values = super().past(x, cache, layer)
        return keys[:, -1:].expand(values.shape), values


@_named("source_padding_seen", "Ignores the source mask.")
class _Unmasked(_Step):
    def mask(self, memory_mask):
        return None


@_named("source_mask_turned_round", "Takes True for hidden.")
class _Inverted(_Step):
    def mask(self, memory_mask):
        return ~memory_mask[:, None]


@_named("first_residual_missing", "Forgets to add the input to self-attention.")
class _NoFirst(_Step):
    def __call__(self, x, memory, memory_mask, cache, layer):
        y = _attend(layer.self_queries(x), *self.past(x, cache, layer))
        keys, values = self.source(x, y, memory, cache, layer)
        return y + _attend(layer.cross_queries(y), keys, values, self.mask(memory_mask))


@_named("second_residual_missing", "Forgets to add what self-attention gave.")
class _NoSecond(_Step):
    def __call__(self, x, memory, memory_mask, cache, layer):
        y = x + _attend(layer.self_queries(x), *self.past(x, cache, layer))
        keys, values = self.source(x, y, memory, cache, layer)
        return _attend(layer.cross_queries(y), keys, values, self.mask(memory_mask))


@_named("cross_queries_from_x", "Makes the queries of cross-attention from the step's input.")
class _Early(_Step):
    def __call__(self, x, memory, memory_mask, cache, layer):
        y = x + _attend(layer.self_queries(x), *self.past(x, cache, layer))
        keys, values = self.source(x, y, memory, cache, layer)
        return y + _attend(layer.cross_queries(x), keys, values, self.mask(memory_mask))


def lists_in_the_cache(x, memory, memory_mask, cache, layer):
    """Right: lists of what each step adds."""
    if "memo" not in cache:
        cache["memo"] = {"cross": (layer.cross_keys(memory), layer.cross_values(memory))}
        cache["memo"]["self"] = ([], [])
    memo = cache["memo"]
    for part, to in zip(memo["self"], (layer.self_keys, layer.self_values), strict=True):
        part.append(to(x))
    keys, values = (torch.cat(part, dim=-2) for part in memo["self"])
    x = x + _attend(layer.self_queries(x), keys, values)
    return x + _attend(layer.cross_queries(x), *memo["cross"], memory_mask.unsqueeze(1))


def by_hand(x, memory, memory_mask, cache, layer):
    """Right: softmax by hand, one stacked tensor for keys and values."""
    new = torch.stack([layer.self_keys(x), layer.self_values(x)])
    cache["past"] = torch.cat([cache["past"], new], dim=2) if cache else new
    if "source" not in cache:
        cache["source"] = torch.stack([layer.cross_keys(memory), layer.cross_values(memory)])
    scale = x.shape[-1] ** 0.5
    keys, values = cache["past"]
    x = x + ((layer.self_queries(x) @ keys.mT) / scale).softmax(-1) @ values
    keys, values = cache["source"]
    scores = layer.cross_queries(x) @ keys.mT / scale
    return x + scores.masked_fill(~memory_mask[:, None], -torch.inf).softmax(-1) @ values


def in_a_growing_buffer(x, memory, memory_mask, cache, layer):
    """Right: room for many positions is set aside in the first step."""
    if not cache:
        room = x.new_zeros(2, len(x), 64, x.shape[-1])
        cache.update(
            room=room, used=0, source=(layer.cross_keys(memory), layer.cross_values(memory))
        )
    used = cache["used"]
    cache["room"][0][:, used], cache["room"][1][:, used] = (
        layer.self_keys(x)[:, 0],
        layer.self_values(x)[:, 0],
    )
    cache["used"] = used + 1
    keys, values = cache["room"][:, :, : used + 1]
    y = x + _attend(layer.self_queries(x), keys, values)
    mask = torch.zeros(memory_mask.shape, dtype=x.dtype).masked_fill(~memory_mask, -torch.inf)
    return y + _attend(layer.cross_queries(y), *cache["source"], mask[:, None])


CACHED_STEP = Exercise(
    id="cached_step",
    title="One decoder step with a cache",
    asks="Attend to the positions so far and to the source, projecting nothing a second time.",
    parameters=("weights", "x", "memory", "memory_mask"),
    outputs=("output", "positions projected in each step"),
    driver="cached_decoder",
    seconds=5.0,
    groups={
        "values": Group(2, "several steps"),
        "padding": Group(1, "padded sources"),
        "edges": Group(1, "one step"),
    },
    cases=cached_step_cases,
    reference=cached_step_reference,
    misconceptions=(
        Misconception(
            _Again,
            "All positions are projected again in every step: the cache holds inputs, not keys and "
            "values.",
            "How many positions are new in step 5?",
        ),
        Misconception(
            _SourceAgain,
            "The source is projected again in every step, though it never changes.",
            "In which step can keys and values of the source be made once and for all?",
        ),
        Misconception(
            _SourceKeysAgain,
            "The keys of the source are projected again in every step; only its values are kept.",
            "Which two results of the first step does cross-attention need again?",
        ),
        Misconception(
            _Forgetful,
            "The new position attends to itself only: nothing of the past is kept.",
            "What does your code read from `cache` in step 2?",
        ),
        Misconception(
            _Late,
            "The new position does not see itself: its key and value come into the cache too late.",
            "Is the diagonal of a causal mask open or closed?",
        ),
        Misconception(
            _Overwritten,
            "All values meet the newest key, so that all weigh the same: keys must grow, too.",
            "Compare the shapes and the history of both entries of your cache.",
        ),
        Misconception(
            _Unmasked,
            "Padding of the source can be seen.",
            "Where does `memory_mask` enter your code?",
        ),
        Misconception(
            _Inverted,
            "The source mask is read the wrong way round.",
            "What does True mean in `memory_mask`, and in the function that you hand it to?",
        ),
        Misconception(
            _NoFirst,
            "The residual round self-attention is missing.",
            "Count the plus signs in the contract.",
        ),
        Misconception(
            _NoSecond,
            "The residual round cross-attention is missing.",
            "Count the plus signs in the contract.",
        ),
        Misconception(
            _Early,
            "The queries of cross-attention are made from `x`, before self-attention has spoken.",
            "Which of `x` and `y` asks the source?",
        ),
    ),
    accepted=(lists_in_the_cache, by_hand, in_a_growing_buffer),
    equivalent_mutants={
        "`past_keys, past_values = cache['past']` → "
        "`past_values, past_keys = cache['past']`": "exchanged in every step alike",
    },
)
