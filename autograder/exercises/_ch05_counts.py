"""Chapter 05: the number of parameters of BERT, from its published shape."""

from __future__ import annotations

import math

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

BASE = {"d_model": 768, "layers": 12, "heads": 12, "d_hidden": 3072}
LARGE = {"d_model": 1024, "layers": 24, "heads": 16, "d_hidden": 4096}
TABLES = {"vocabulary": 30522, "positions": 512, "segments": 2}


def bert_parameters_cases(rng):
    """Small shapes with nothing in a fixed proportion; BERT base and large; no pooler."""

    def shape(pooler):
        heads = int(rng.choice([2, 3, 5]))
        vocabulary, positions = (int(n) for n in rng.integers([40, 11], [90, 30]))
        return {
            "vocabulary": vocabulary,
            "positions": positions,
            "segments": int(rng.integers(3, 6)),
            "d_model": heads * int(rng.choice([4, 6, 7])),
            "layers": int(rng.integers(2, 6)),
            "heads": heads,
            "d_hidden": int(rng.integers(50, 70)),
            "pooler": pooler,
        }

    yield Case("small", shape(False), "a small shape, no pooler")
    yield Case("small", shape(False), "another small shape, no pooler")
    yield Case("small", shape(True), "a small shape with a pooler")
    yield Case("bert", {**TABLES, **BASE, "pooler": True}, "BERT base")
    yield Case("bert", {**TABLES, **LARGE, "pooler": True}, "BERT large")
    yield Case("bert", {**TABLES, **BASE, "pooler": False}, "BERT base without its pooler")


def bert_parameters_reference(
    vocabulary, positions, segments, d_model, layers, heads, d_hidden, pooler
):
    """Writes down every tensor of the published model with its shape, one head at a time."""
    width = d_model // heads
    tables = {"words": vocabulary, "positions": positions, "segments": segments}
    shapes = {f"embeddings.{name}": (rows, d_model) for name, rows in tables.items()}
    norms = ["embeddings.norm"]
    maps = {"pooler": (d_model, d_model)} if pooler else {}
    for layer in range(layers):
        for part in ("query", "key", "value"):
            for head in range(heads):
                maps[f"{layer}.{part}.{head}"] = (width, d_model)
        maps[f"{layer}.output"] = (d_model, d_model)
        maps[f"{layer}.wide"], maps[f"{layer}.narrow"] = (d_hidden, d_model), (d_model, d_hidden)
        norms += [f"{layer}.attention.norm", f"{layer}.mlp.norm"]
    for name, shape in maps.items():
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[:1]
    for name in norms:
        shapes[f"{name}.gain"] = shapes[f"{name}.bias"] = (d_model,)
    return sum(math.prod(shape) for shape in shapes.values())


def _count(
    vocabulary,
    positions,
    segments,
    d_model,
    layers,
    heads,
    d_hidden,
    pooler,
    tables=None,
    embedding_norm=True,
    projections=4,
    biases=True,
    norms=2,
    layer_factor=1,
):
    bias = int(biases)
    tables = vocabulary + positions + segments if tables is None else tables
    attention = projections * (d_model * d_model + bias * d_model) * layer_factor
    mlp = 2 * d_model * d_hidden + bias * (d_hidden + d_model)
    layer = attention + mlp + norms * 2 * d_model
    pooled = pooler * (d_model * d_model + bias * d_model)
    return tables * d_model + embedding_norm * 2 * d_model + layers * layer + pooled


def no_biases_counted(**shape):
    """Counts matrices only (and norms)."""
    return _count(**shape, biases=False)


def no_norms_counted(**shape):
    """Forgets all LayerNorms."""
    return _count(**shape, norms=0, embedding_norm=False)


def no_layers_norms(**shape):
    """Forgets the LayerNorms of the layers."""
    return _count(**shape, norms=0)


def embedding_norm_forgotten(**shape):
    """Forgets the LayerNorm after the embeddings."""
    return _count(**shape, embedding_norm=False)


def one_norm_in_a_layer(**shape):
    """Counts one LayerNorm for each layer."""
    return _count(**shape, norms=1)


def norms_with_one_vector(**shape):
    """Counts the gain of a LayerNorm, not its bias."""
    return _count(**shape, norms=1) - shape["d_model"]


def output_projection_forgotten(**shape):
    """Counts queries, keys and values only."""
    return _count(**shape, projections=3)


def every_head_full_width(**shape):
    """Gives every head its own d × d projections."""
    return _count(**shape, layer_factor=shape["heads"])


def hidden_is_four_times(**shape):
    """Takes 4·d for the hidden width, whatever is given."""
    return _count(**{**shape, "d_hidden": 4 * shape["d_model"]})


def pooler_always(**shape):
    """Counts a pooler that is not there."""
    return _count(**{**shape, "pooler": True})


def pooler_never(**shape):
    """Forgets the pooler."""
    return _count(**{**shape, "pooler": False})


def positions_forgotten(**shape):
    """Counts no position embeddings."""
    return _count(**shape, tables=shape["vocabulary"] + shape["segments"])


def segments_forgotten(**shape):
    """Counts no segment embeddings."""
    return _count(**shape, tables=shape["vocabulary"] + shape["positions"])


def output_words_counted(**shape):
    """Counts the word table a second time, for the output."""
    return _count(**shape) + shape["vocabulary"] * shape["d_model"]


def one_layer_only(**shape):
    """Counts one layer."""
    return _count(**{**shape, "layers": 1})


def count_by_formula(vocabulary, positions, segments, d_model, layers, heads, d_hidden, pooler):
    """Right: one collected formula."""
    layer = 4 * d_model**2 + 2 * d_model * d_hidden + 9 * d_model + d_hidden
    tables = (vocabulary + positions + segments + 2) * d_model
    return tables + layers * layer + (d_model**2 + d_model if pooler else 0)


def count_by_shapes(vocabulary, positions, segments, d_model, layers, heads, d_hidden, pooler):
    """Right: a list of shapes, as a state dict would show them."""
    shapes = [(rows, d_model) for rows in (vocabulary, positions, segments)] + [(2, d_model)]
    for _ in range(layers):
        shapes += [(d_model, d_model + 1)] * 4 + [(2, d_model)] * 2
        shapes += [(d_hidden, d_model + 1), (d_model, d_hidden + 1)]
    if pooler:
        shapes.append((d_model, d_model + 1))
    return sum(rows * columns for rows, columns in shapes)


def count_with_heads(vocabulary, positions, segments, d_model, layers, heads, d_hidden, pooler):
    """Right: head by head, each of width d / heads."""
    width = d_model // heads
    attention = 3 * heads * (d_model * width + width) + heads * width * d_model + d_model
    linears = [(d_model, d_hidden), (d_hidden, d_model)]
    mlp = sum(a * b + b for a, b in linears)
    total = (vocabulary + positions + segments) * d_model + 2 * d_model
    return total + layers * (attention + mlp + 4 * d_model) + pooler * d_model * (d_model + 1)


BERT_PARAMETERS = Exercise(
    id="bert_parameters",
    title="Count BERT's parameters",
    asks="Count the parameters of a BERT encoder from its shape, to the unit.",
    parameters=(
        *("vocabulary", "positions", "segments", "d_model"),
        *("layers", "heads", "d_hidden", "pooler"),
    ),
    groups={
        "small": Group(2, "small shapes"),
        "bert": Group(1, "BERT base and large"),
    },
    cases=bert_parameters_cases,
    reference=bert_parameters_reference,
    misconceptions=(
        Misconception(
            no_biases_counted,
            "The biases of the linear maps are not counted.",
            "What does `nn.Linear(2, 3)` hold beside its matrix?",
        ),
        Misconception(
            no_norms_counted,
            "No LayerNorm is counted.",
            "A LayerNorm has a gain and a bias. Where in the model are norms?",
        ),
        Misconception(
            no_layers_norms,
            "The LayerNorms inside the layers are not counted.",
            "How many norms has one layer?",
        ),
        Misconception(
            embedding_norm_forgotten,
            "The LayerNorm after the embeddings is not counted.",
            "Go through the list in the text once more, from the top.",
        ),
        Misconception(
            one_norm_in_a_layer,
            "One LayerNorm is counted for each layer; there are two.",
            "One norm for each sublayer.",
        ),
        Misconception(
            norms_with_one_vector,
            "Of the norms of a layer, too few vectors are counted.",
            "A LayerNorm has a gain *and* a bias, and a layer has two norms.",
        ),
        Misconception(
            output_projection_forgotten,
            "The attention's output projection is not counted.",
            "How many d × d matrices has an attention layer?",
        ),
        Misconception(
            every_head_full_width,
            "Every head is given d × d matrices; a head's width is d / heads.",
            "Does the number of parameters depend on the number of heads?",
        ),
        Misconception(
            hidden_is_four_times,
            "The hidden width is taken to be 4 · d_model; it is given.",
            "Where does `d_hidden` enter your count?",
        ),
        Misconception(
            pooler_always,
            "A pooler is counted even if `pooler` is False.",
            "Which case has no pooler?",
        ),
        Misconception(
            pooler_never,
            "The pooler is not counted.",
            "What does the text say about `pooler`?",
        ),
        Misconception(
            positions_forgotten,
            "The position table is not counted: BERT *learns* its positions.",
            "How many embedding tables are there?",
        ),
        Misconception(
            segments_forgotten,
            "The segment table is not counted.",
            "How many embedding tables are there?",
        ),
        Misconception(
            output_words_counted,
            "The word table is counted twice; an output layer does not belong to this count.",
            "Count only what the text lists.",
        ),
        Misconception(
            one_layer_only,
            "Only one layer is counted.",
            "Where does `layers` enter your count?",
        ),
    ),
    accepted=(count_by_formula, count_by_shapes, count_with_heads),
)
