"""Chapter 12: a run in which a layer's activations come from another input."""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import draw_model


def swap_layer_cases(rng):
    """Inner and last layers; one place, several, the places out of order."""
    for group, layer, places, about in (
        ("values", 0, [2], "one place of the first of three layers"),
        ("values", 1, [3, 0], "two places of the second layer"),
        ("last", 2, [1, 2], "the last layer"),
    ):
        batch, length, width, classes = 2, 4, 2, 3
        inputs = {
            "model": draw_model(rng, width, 3, 3, classes),
            "layer": layer,
            "base": 2 * rng.normal(size=(batch, length, width)),
            "source": 2 * rng.normal(size=(batch, length, width)),
            "places": places,
            "upstream": rng.normal(size=(batch, length, classes)),
        }
        yield Case(group, inputs, about)


def _run(model, layer, base, source, places):
    """Walk through the layers of the driver's model, no hooks."""
    x, other = model.embedding(base), model.embedding(source)
    for number, block in enumerate(model.layers):
        x, other = block(x), block(other)
        if number == layer:
            chosen = torch.zeros(x.shape[1], 1, dtype=torch.bool)
            chosen[places] = True
            x = torch.where(chosen, other, x)
    return model.head(x)


def swap_layer_reference(model, layer, base, source, places):
    """Without hooks."""
    return _run(model, layer, base, source, places)


def _kept(model, layer, x):
    """A layer's output on x, by a hook that is removed."""
    kept = []
    handle = model.layers[layer].register_forward_hook(lambda _, __, out: kept.append(out))
    model(x)
    handle.remove()
    return kept[0]


def _with_output(model, layer, x, change):
    handle = model.layers[layer].register_forward_hook(lambda _, __, out: change(out))
    result = model(x)
    handle.remove()
    return result


def _replaced(out, other, places):
    out = out.clone()
    out[:, places] = other[:, places]
    return out


def hook_left_behind(model, layer, base, source, places):
    """Does not remove the second hook."""
    other = _kept(model, layer, source)
    model.layers[layer].register_forward_hook(lambda _, __, out: _replaced(out, other, places))
    return model(base)


def all_places_swapped(model, layer, base, source, places):
    """The whole layer."""
    other = _kept(model, layer, source)
    return _with_output(model, layer, base, lambda out: other + 0 * out)


def base_and_source_exchanged(model, layer, base, source, places):
    """Activations of the base into the source."""
    return _run(model, layer, source, base, places)


def one_layer_later(model, layer, base, source, places):
    """One layer off."""
    return _run(model, (layer + 1) % len(model.layers), base, source, places)


def inputs_mixed(model, layer, base, source, places):
    """Swaps the inputs of the model."""
    mixed = base.clone()
    mixed[:, places] = source[:, places]
    return model(mixed)


def layers_input_swapped(model, layer, base, source, places):
    """Swaps what goes into the layer."""
    kept = []
    handle = model.layers[layer].register_forward_pre_hook(lambda _, x: kept.append(x[0]))
    model(source)
    handle.remove()
    handle = model.layers[layer].register_forward_pre_hook(
        lambda _, x: (_replaced(x[0], kept[0], places),)
    )
    result = model(base)
    handle.remove()
    return result


def rows_of_the_batch_swapped(model, layer, base, source, places):
    """Indexes the first axis."""
    other = _kept(model, layer, source)
    rows = [place % len(base) for place in places]

    def change(out):
        out = out.clone()
        out[rows] = other[rows]
        return out

    return _with_output(model, layer, base, change)


def source_cut_off(model, layer, base, source, places):
    """Detached: no gradient through the run of the source."""
    other = _kept(model, layer, source).detach()
    return _with_output(model, layer, base, lambda out: _replaced(out, other, places))


def averaged_with_the_source(model, layer, base, source, places):
    """Mixes half and half."""
    other = _kept(model, layer, source)
    return _with_output(model, layer, base, lambda out: (out + _replaced(out, other, places)) / 2)


def nothing_swapped(model, layer, base, source, places):
    """A hook that returns nothing."""
    return model(base)


def with_hooks(model, layer, base, source, places):
    """Right: two hooks, both removed."""
    other = _kept(model, layer, source)
    return _with_output(model, layer, base, lambda out: _replaced(out, other, places))


def both_in_one_batch(model, layer, base, source, places):
    """Right: base and source in one batch; the hook copies between its halves."""

    def change(_, __, out):
        ours, theirs = out.chunk(2)
        return torch.cat([_replaced(ours, theirs, places), theirs])

    handle = model.layers[layer].register_forward_hook(change)
    try:
        return model(torch.cat([base, source])).chunk(2)[0]
    finally:
        handle.remove()


def by_wrapping_forward(model, layer, base, source, places):
    """Right: replaces the layer's `forward` for the time of the run."""
    block, other = model.layers[layer], _kept(model, layer, source)
    original = block.forward
    keep = torch.ones(base.shape[1], 1, dtype=base.dtype)
    keep[places] = 0.0
    block.forward = lambda x: keep * original(x) + (1 - keep) * other
    try:
        return model(base)
    finally:
        del block.forward


SWAP_LAYER = Exercise(
    id="swap_layer",
    title="What if: swapped activations",
    asks="Run a model on one input, with a layer's outputs of another input at some places.",
    parameters=("model", "layer", "base", "source", "places", "upstream"),
    outputs=("logits", "gradients of the weights", "logits of base afterwards"),
    driver="swap",
    seconds=5.0,
    groups={
        "values": Group(2, "inner layers"),
        "last": Group(1, "the last layer"),
    },
    cases=swap_layer_cases,
    reference=swap_layer_reference,
    misconceptions=(
        Misconception(
            hook_left_behind,
            "A hook is still there afterwards: the model is no longer what it was.",
            "What does `register_forward_hook` return, and what can it do?",
        ),
        Misconception(
            all_places_swapped,
            "The whole output was replaced, not only `places`.",
            "What should stay of the base's own output?",
        ),
        Misconception(
            base_and_source_exchanged,
            "Base and source are exchanged: at `places` stands the base, elsewhere the source.",
            "Which places should come from the source?",
        ),
        Misconception(
            one_layer_later,
            "Another layer was changed.",
            "`layer` counts from 0.",
        ),
        Misconception(
            inputs_mixed,
            "The inputs were mixed; it is a layer's output that should be.",
            "What does a layer see of its neighbours before `layer`?",
        ),
        Misconception(
            layers_input_swapped,
            "What goes *into* the layer was replaced; it should be what comes out.",
            "Which kind of hook runs after `forward`?",
        ),
        Misconception(
            rows_of_the_batch_swapped,
            "Sentences were replaced, not places: the first axis is the batch.",
            "Which axis of the output holds the places?",
        ),
        Misconception(
            source_cut_off,
            "The logits are right, but no gradient flows through the source's run.",
            "The contract detaches nothing.",
        ),
        Misconception(
            averaged_with_the_source,
            "Activations were mixed half and half; they should be replaced.",
            "What stays of the base's output at `places`?",
        ),
        Misconception(
            nothing_swapped,
            "The hook has no effect: this is the plain run of the base.",
            "What must a forward hook return to replace the output?",
        ),
    ),
    accepted=(with_hooks, both_in_one_batch, by_wrapping_forward),
    equivalent_mutants={
        "drop `output = output.clone()`": "in the second run nothing else reads the layer's output",
        "`output.clone()` → `output`": "in the second run nothing else reads the layer's output",
        "`kept[0]` → `kept[-1]`": "one output was kept",
    },
)
