"""Chapter 09: a whole BERT from a dict of weights, as a checkpoint holds them."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_layer import SAME_EXCHANGE, plain_layer
from autograder.exercises._ch09_parts import (
    EPSILON,
    draw_padding_mask,
    draw_weights,
    embedding_shapes,
    layer_shapes,
)

TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")


def bert_states_cases(rng):
    """Two and three layers, padding, entries that are not needed; eleven layers."""

    def case(group, about, batch, length, heads, width, layers, d_hidden=5, extra=False):
        d_model = heads * width
        tables = embedding_shapes(7, 5, 2, d_model)
        shapes = {f"embeddings.{name}": shape for name, shape in tables.items()}
        for layer in range(layers):
            own = layer_shapes(d_model, d_hidden).items()
            shapes |= {f"encoder.layer.{layer}.{name}": shape for name, shape in own}
        if extra:
            shapes |= {"pooler.dense.weight": (d_model, d_model), "pooler.dense.bias": (d_model,)}
        weights = draw_weights(rng, shapes)
        if extra:
            weights["embeddings.position_ids"] = np.arange(5)[None]
        names = [list(weights)[i] for i in rng.permutation(len(weights))]
        segments = rng.integers(0, 2, size=(batch, length))
        segments[0, 0], segments[-1, -1] = 0, 1
        return Case(
            group,
            {
                "weights": {name: weights[name] for name in names},
                "heads": heads,
                "tokens": rng.integers(0, 7, size=(batch, length)),
                "segments": segments,
                "mask": draw_padding_mask(rng, batch, length),
            },
            about,
        )

    yield case("values", "two layers", 2, 4, 3, 2, 2)
    yield case("values", "three layers, and entries of other parts", 2, 3, 2, 2, 3, extra=True)
    yield case("many", "eleven layers", 2, 3, 2, 2, 11, d_hidden=2)


def _embedded(weights, tokens, segments, norm=True):
    places = torch.arange(tokens.shape[1])
    words, positions, kinds = (weights[f"embeddings.{name}.weight"] for name in TABLES)
    x = words[tokens] + positions[places] + kinds[segments]
    if not norm:
        return x
    gain, bias = (weights[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias"))
    return F.layer_norm(x, x.shape[-1:], gain, bias, EPSILON)


def _layer(weights, number):
    start = f"encoder.layer.{number}."
    return {
        name.removeprefix(start): value for name, value in weights.items() if name.startswith(start)
    }


def _numbers(weights):
    return sorted({int(name.split(".")[2]) for name in weights if name.startswith("encoder.")})


def bert_states_reference(weights, heads, tokens, segments, mask):
    """The formulas of one layer, again and again."""
    x = _embedded(weights, tokens, segments)
    for number in _numbers(weights):
        x = plain_layer(x, mask, _layer(weights, number), heads)
    return x


def _run(
    weights,
    heads,
    tokens,
    segments,
    mask,
    embed=_embedded,
    order=lambda numbers: numbers,
    change=lambda layer: layer,
    finish=lambda x, weights: x,
):
    x = embed(weights, tokens, segments)
    for number in order(_numbers(weights)):
        x = plain_layer(x, mask, change(_layer(weights, number)), heads)
    return finish(x, weights)


def first_layer_only(**inputs):
    """Runs one layer."""
    return _run(**inputs, order=lambda numbers: numbers[:1])


def last_layer_skipped(**inputs):
    """Runs all layers but the last."""
    return _run(**inputs, order=lambda numbers: numbers[:-1])


def layers_in_reverse(**inputs):
    """Starts with the last layer."""
    return _run(**inputs, order=lambda numbers: numbers[::-1])


def layers_sorted_as_text(**inputs):
    """Sorts the numbers as text: 10 comes before 2."""
    return _run(**inputs, order=lambda numbers: sorted(numbers, key=str))


def one_digit_of_the_layer(**inputs):
    """Knows ten layers at most."""
    return _run(**inputs, order=lambda numbers: numbers[:10])


def two_layers_always(**inputs):
    """Assumes two layers."""
    return _run(**inputs, order=lambda numbers: numbers[:2])


def first_layer_again(**inputs):
    """Takes the first layer's weights every time."""
    return _run(**inputs, order=lambda numbers: [0] * len(numbers))


def embeddings_not_normalised(**inputs):
    """Forgets the LayerNorm behind the embeddings."""
    return _run(**inputs, embed=lambda *given: _embedded(*given, norm=False))


def no_segment_embeddings(**inputs):
    """Forgets the segments."""
    weights = dict(inputs.pop("weights"))
    weights["embeddings.token_type_embeddings.weight"] = (
        0 * weights["embeddings.token_type_embeddings.weight"]
    )
    return _run(weights, **inputs)


def no_position_embeddings(**inputs):
    """Forgets the positions."""
    weights = dict(inputs.pop("weights"))
    name = "embeddings.position_embeddings.weight"
    weights[name] = 0 * weights[name]
    return _run(weights, **inputs)


def mask_not_passed_on(**inputs):
    """Lets padding be seen."""
    mask = torch.ones_like(inputs.pop("mask"))
    return _run(**inputs, mask=mask)


def squares_transposed(**inputs):
    """Multiplies by the square matrices from the wrong side."""

    def change(layer):
        return {
            name: w.T if w.dim() == 2 and len(w) == len(w.T) else w for name, w in layer.items()
        }

    return _run(**inputs, change=change)


def one_head(**inputs):
    """Ignores `heads`."""
    return _run(**{**inputs, "heads": 1})


def pooled_at_the_end(**inputs):
    """Applies the pooler, if there is one, to every token."""

    def finish(x, weights):
        if "pooler.dense.weight" not in weights:
            return x
        return torch.tanh(F.linear(x, weights["pooler.dense.weight"], weights["pooler.dense.bias"]))

    return _run(**inputs, finish=finish)


def first_token_only(**inputs):
    """Returns the vector of [CLS]."""
    return _run(**inputs)[:, 0]


def small_functions(weights, heads, tokens, segments, mask):
    """Right: PyTorch's functions and two helpers that look weights up."""

    def linear(name, x):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(name, x):
        pair = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], *pair, eps=1e-12)

    x = sum(
        F.embedding(numbers, weights[f"embeddings.{name}.weight"])
        for name, numbers in zip(
            TABLES, (tokens, torch.arange(tokens.shape[1]), segments), strict=True
        )
    )
    x, number = norm("embeddings.LayerNorm", x), 0
    while (layer := f"encoder.layer.{number}") + ".output.dense.weight" in weights:
        roles = [
            linear(f"{layer}.attention.self.{role}", x).unflatten(-1, (heads, -1)).transpose(1, 2)
            for role in ("query", "key", "value")
        ]
        y = F.scaled_dot_product_attention(*roles, attn_mask=mask[:, None, None, :])
        y = linear(f"{layer}.attention.output.dense", y.transpose(1, 2).flatten(2))
        x = norm(f"{layer}.attention.output.LayerNorm", x + y)
        y = F.gelu(linear(f"{layer}.intermediate.dense", x))
        x = norm(f"{layer}.output.LayerNorm", x + linear(f"{layer}.output.dense", y))
        number += 1
    return x


def _library_layer(own, heads):
    """PyTorch's attention with weights of a layer, its three projections stacked."""
    d_model = len(own["attention.self.query.bias"])
    layer = nn.MultiheadAttention(d_model, heads, batch_first=True).double()
    parts = [f"attention.self.{role}" for role in ("query", "key", "value")]
    layer.load_state_dict(
        {
            "in_proj_weight": torch.cat([own[f"{part}.weight"] for part in parts]),
            "in_proj_bias": torch.cat([own[f"{part}.bias"] for part in parts]),
            "out_proj.weight": own["attention.output.dense.weight"],
            "out_proj.bias": own["attention.output.dense.bias"],
        }
    )
    return layer


def through_library_modules(weights, heads, tokens, segments, mask):
    """Right: `nn.MultiheadAttention` with stacked weights."""
    x = _embedded(weights, tokens, segments)
    hidden = torch.where(mask, 0.0, -math.inf).double()[:, None, :]
    for number in range(len(_numbers(weights))):
        own = _layer(weights, number)
        closed = hidden.expand(-1, x.shape[1], -1).repeat_interleave(heads, dim=0)
        y, _ = _library_layer(own, heads)(x, x, x, attn_mask=closed, need_weights=False)
        pair = own["attention.output.LayerNorm.weight"], own["attention.output.LayerNorm.bias"]
        x = F.layer_norm(x + y, x.shape[-1:], *pair, eps=EPSILON)
        y = F.gelu(x @ own["intermediate.dense.weight"].T + own["intermediate.dense.bias"])
        y = y @ own["output.dense.weight"].T + own["output.dense.bias"]
        pair = own["output.LayerNorm.weight"], own["output.LayerNorm.bias"]
        x = F.layer_norm(x + y, x.shape[-1:], *pair, eps=EPSILON)
    return x


def sentence_by_sentence(weights, heads, tokens, segments, mask):
    """Right: cuts padding off; only the vectors of padding are computed from all."""
    whole = _run(weights, heads, tokens, segments, mask)
    for row, seen in enumerate(mask):
        part = tokens[row : row + 1, seen], segments[row : row + 1, seen]
        whole[row, seen] = _run(weights, heads, *part, torch.ones_like(part[0]).bool())[0]
    return whole


BERT_STATES = Exercise(
    id="bert_states",
    title="BERT from a checkpoint",
    asks="Run a whole BERT from a dict of weights under the names of a checkpoint.",
    parameters=("weights", "heads", "tokens", "segments", "mask"),
    outputs=("states",),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(3, "two and three layers"),
        "many": Group(1, "eleven layers"),
    },
    cases=bert_states_cases,
    reference=bert_states_reference,
    misconceptions=(
        Misconception(
            first_layer_only,
            "Only one layer was run.",
            "How many layers has this checkpoint? Which names tell?",
        ),
        Misconception(
            last_layer_skipped,
            "The last layer was not run.",
            "Is the end of your range excluded?",
        ),
        Misconception(
            layers_in_reverse,
            "The layers run from the last to the first.",
            "Layer 0 reads the embeddings.",
        ),
        Misconception(
            layers_sorted_as_text,
            "The layers are sorted as text, so layer 10 comes before layer 2.",
            "Turn the number in the name into an int before you sort.",
        ),
        Misconception(
            one_digit_of_the_layer,
            "Only ten layers were run.",
            "What if a layer's number has two digits?",
        ),
        Misconception(
            two_layers_always,
            "A fixed number of layers was run.",
            "How many layers has this checkpoint? Which names tell?",
        ),
        Misconception(
            first_layer_again,
            "Every layer used the weights of layer 0.",
            "Where does the layer's number enter the names?",
        ),
        Misconception(
            embeddings_not_normalised,
            "The LayerNorm behind the embeddings is missing.",
            "List all names that begin with `embeddings`: have you used each?",
        ),
        Misconception(
            no_segment_embeddings,
            "The segment embeddings are missing.",
            "List all names that begin with `embeddings`: have you used each?",
        ),
        Misconception(
            no_position_embeddings,
            "The position embeddings are missing.",
            "List all names that begin with `embeddings`: have you used each?",
        ),
        Misconception(
            mask_not_passed_on,
            "Padding can be seen.",
            "Where does `mask` enter each layer?",
        ),
        Misconception(
            squares_transposed,
            "Vectors are multiplied by the weights from the wrong side.",
            "`nn.Linear` computes x @ weight.T + bias; `F.linear` does it for you.",
        ),
        Misconception(
            one_head,
            "There is only one head.",
            "Where does `heads` enter?",
        ),
        Misconception(
            pooled_at_the_end,
            "The pooler was applied; the vectors *before* it are asked for.",
            "Which entries of the dict does the exercise leave out?",
        ),
        Misconception(
            first_token_only,
            "Only the vector of [CLS] came back.",
            "What is the shape of the result?",
        ),
    ),
    accepted=(small_functions, through_library_modules, sentence_by_sentence),
    equivalent_mutants={
        "`x.unflatten(-1, (heads, -1)).transpose(1, 2)` → "
        "`x.unflatten(-1, (heads, -1)).transpose(2, 1)`": SAME_EXCHANGE,
        "`y.transpose(1, 2)` → `y.transpose(2, 1)`": SAME_EXCHANGE,
    },
)
