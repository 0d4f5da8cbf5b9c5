"""Exercise of chapter 10 on fine-tuning: a rate for each layer."""

from __future__ import annotations

import re

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

PARTS = ("attention.self.query.weight", "intermediate.dense.bias", "output.LayerNorm.weight")
BELOW = ("embeddings.word_embeddings.weight", "embeddings.LayerNorm.bias")
ABOVE = ("pooler.dense.weight", "classifier.bias")


def learning_rates_cases(rng):
    """Twelve layers (10 begins like 1); layers in any order; frozen ones."""
    for group, layers, frozen, about in (
        ("rates", 12, 0, "twelve layers"),
        ("rates", int(rng.choice([3, 5, 7])), 0, "fewer layers"),
        ("frozen", 12, 1, "frozen embeddings"),
        ("frozen", 12, int(rng.choice([3, 4])), "embeddings and some layers frozen"),
    ):
        names = [
            f"encoder.layer.{n}.{PARTS[place]}"
            for place, n in enumerate(int(n) for n in rng.choice(layers, 3, replace=False))
        ]
        names += [f"encoder.layer.{n}.{PARTS[n % 3]}" for n in (0, 1, 2, layers - 1)]
        names += [f"encoder.layer.10.{PARTS[0]}"] * (layers > 10)
        inputs = {
            "names": [str(name) for name in rng.permutation([*names, *BELOW, *ABOVE])],
            "layers": layers,
            "rate": round(float(rng.uniform(1e-3, 5e-3)), 6),
            "decay": round(float(rng.uniform(0.5, 0.9)), 3),
            "frozen": frozen,
        }
        yield Case(group, inputs, about)


def _depth(name, layers):
    """How many steps of decay a parameter is below the head."""
    if name.startswith("embeddings."):
        return layers + 1
    found = re.match(r"encoder\.layer\.(\d+)\.", name)
    return layers - int(found[1]) if found else 0


def _rates(names, layers, rate, decay, frozen, depth=_depth, value=None, is_frozen=None):
    """Right rates, with parts that wrong versions exchange."""
    value = value or (lambda steps: rate * decay**steps)
    is_frozen = is_frozen or (lambda steps: steps > layers + 1 - frozen)
    return [
        0.0 if is_frozen(steps) else value(steps) for steps in (depth(n, layers) for n in names)
    ]


def learning_rates_reference(names, layers, rate, decay, frozen):
    """A table of prefixes, from the bottom up."""
    prefixes = ["embeddings.", *(f"encoder.layer.{n}." for n in range(layers))]
    table = {
        prefix: 0.0 if place < frozen else rate * decay ** (len(prefixes) - place)
        for place, prefix in enumerate(prefixes)
    }
    return [next((r for p, r in table.items() if name.startswith(p)), rate) for name in names]


def first_digit_read(names, layers, rate, decay, frozen):
    """Takes layer 10 for layer 1."""

    def depth(name, layers):
        return layers - int(name[14]) if name.startswith("encoder") else _depth(name, layers)

    return _rates(names, layers, rate, decay, frozen, depth)


def upside_down(names, layers, rate, decay, frozen):
    """Gives low layers the larger rates."""

    def depth(name, layers):
        steps = _depth(name, layers)
        return steps if steps in (0, layers + 1) else layers + 1 - steps

    return _rates(names, layers, rate, decay, frozen, depth)


def top_layer_not_decayed(names, layers, rate, decay, frozen):
    """One step too few."""
    right = learning_rates_reference(names, layers, rate, decay, frozen)
    return [r if r == rate else r / decay for r in right]


def head_decayed_too(names, layers, rate, decay, frozen):
    """One step too many."""
    return [decay * r for r in learning_rates_reference(names, layers, rate, decay, frozen)]


def embeddings_with_the_head(names, layers, rate, decay, frozen):
    """Gives embeddings the full rate, as if only layers were decayed."""
    right = learning_rates_reference(names, layers, rate, decay, frozen)
    return [
        rate if name.startswith("embeddings") and r else r
        for name, r in zip(names, right, strict=True)
    ]


def embeddings_with_layer_zero(names, layers, rate, decay, frozen):
    """Gives embeddings the rate of the lowest layer."""

    def depth(name, layers):
        return min(_depth(name, layers), layers)

    def is_frozen(steps):
        return False

    right = learning_rates_reference(names, layers, rate, decay, frozen)
    shared = _rates(names, layers, rate, decay, frozen, depth, is_frozen=is_frozen)
    return [s if r else 0.0 for r, s in zip(right, shared, strict=True)]


def decayed_in_equal_steps(names, layers, rate, decay, frozen):
    """Subtracts instead of multiplying."""
    return _rates(
        *(names, layers, rate, decay, frozen),
        value=lambda steps: rate * (1 - (1 - decay) * steps / layers),
    )


def nothing_frozen(names, layers, rate, decay, frozen):
    """Ignores `frozen`."""
    return _rates(names, layers, rate, decay, 0)


def embeddings_not_counted(names, layers, rate, decay, frozen):
    """Freezes as many layers, and the embeddings."""
    return _rates(names, layers, rate, decay, frozen + (frozen > 0))


def embeddings_left_trainable(names, layers, rate, decay, frozen):
    """Freezes layers only."""
    full = learning_rates_reference(names, layers, rate, decay, 0)
    some = learning_rates_reference(names, layers, rate, decay, frozen)
    return [
        a if name.startswith("embeddings") else b
        for name, a, b in zip(names, full, some, strict=True)
    ]


def by_numbers(names, layers, rate, decay, frozen):
    """Right: the height of each part, as an array."""
    heights = []
    for name in names:
        words = name.split(".")
        is_layer = words[:2] == ["encoder", "layer"]
        heights.append(
            int(words[2]) + 1 if is_layer else 0 if words[0] == "embeddings" else layers + 1
        )
    heights = np.array(heights)
    return np.where(heights < frozen, 0.0, rate * decay ** (layers + 1.0 - heights))


def by_multiplying(names, layers, rate, decay, frozen):
    """Right: walks down and multiplies."""
    groups, now = {}, rate
    for layer in reversed(range(layers)):
        now *= decay
        groups[f"encoder.layer.{layer}."] = now if layer + 1 >= frozen else 0.0
    groups["embeddings."] = 0.0 if frozen else now * decay
    rates = []
    for name in names:
        mine = [value for prefix, value in groups.items() if name.startswith(prefix)]
        rates.append(mine[0] if mine else rate)
    return rates


def by_expression(names, layers, rate, decay, frozen):
    """Right: a regular expression."""
    return tuple(_rates(names, layers, rate, decay, frozen))


LEARNING_RATES = Exercise(
    id="learning_rates",
    title="A learning rate for each layer",
    asks="Give each parameter the rate of its depth: smaller below, 0 where it is frozen.",
    parameters=("names", "layers", "rate", "decay", "frozen"),
    groups={
        "rates": Group(1, "rates that shrink with depth"),
        "frozen": Group(1, "frozen parts"),
    },
    cases=learning_rates_cases,
    reference=learning_rates_reference,
    misconceptions=(
        Misconception(
            first_digit_read,
            "Layer 10 was taken for layer 1: its name begins the same way.",
            "Which character ends the layer's number in a name?",
        ),
        Misconception(
            upside_down,
            "Low layers have the larger rates.",
            "Which layers hold serves every task: the low or the high ones?",
        ),
        Misconception(
            top_layer_not_decayed,
            "Each rate is one step of decay too large: the highest layer already has one.",
            "Which rate has the highest layer, by point 2?",
        ),
        Misconception(
            head_decayed_too,
            "Each rate is one step of decay too small: the head is not decayed.",
            "Which rate has the head?",
        ),
        Misconception(
            embeddings_with_the_head,
            "The embeddings have the head's rate.",
            "Are the embeddings above or below the layers?",
        ),
        Misconception(
            embeddings_with_layer_zero,
            "The embeddings have the rate of layer 0; they are one step below it.",
            "How many steps below the head are the embeddings?",
        ),
        Misconception(
            decayed_in_equal_steps,
            "Rates fall by equal steps; each step should multiply.",
            "What is the ratio of the rates of neighbouring layers?",
        ),
        Misconception(
            nothing_frozen,
            "Nothing is frozen.",
            "Where does `frozen` enter your code?",
        ),
        Misconception(
            embeddings_not_counted,
            "One layer too many is frozen: the embeddings count as the first part.",
            "What is frozen if `frozen` is 1?",
        ),
        Misconception(
            embeddings_left_trainable,
            "The embeddings are not frozen, though layers above them are.",
            "What is frozen if `frozen` is 1?",
        ),
    ),
    accepted=(by_numbers, by_multiplying, by_expression),
)
