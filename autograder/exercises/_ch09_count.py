"""Chapter 09: where the parameters of a BERT are, by part."""

from __future__ import annotations

import math

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import embedding_shapes, layer_shapes

BASE = {"d_model": 768, "layers": 12, "d_hidden": 3072}
LARGE = {"d_model": 1024, "layers": 24, "d_hidden": 4096}
MINILM = {"d_model": 384, "layers": 6, "d_hidden": 1536}
TABLES = {"vocabulary": 30522, "positions": 512, "segments": 2}


def bert_parts_cases(rng):
    """A small shape with nothing in a fixed proportion; the published ones."""
    vocabulary, positions, d_model, d_hidden = (
        int(n) for n in rng.integers([40, 11, 20, 50], [90, 19, 39, 79])
    )
    yield Case(
        "small",
        {
            "vocabulary": vocabulary,
            "positions": positions,
            "segments": int(rng.integers(3, 6)),
            "d_model": d_model,
            "layers": int(rng.integers(2, 6)),
            "d_hidden": d_hidden,
        },
        "a small shape",
    )
    for name, shape in (("BERT base", BASE), ("MiniLM", MINILM)):
        yield Case("published", {**TABLES, **shape}, name)


def bert_parts_reference(vocabulary, positions, segments, d_model, layers, d_hidden):
    """Lists every tensor of the published model with its shape."""
    square, vector = (d_model, d_model), (d_model,)
    parts = (
        list(embedding_shapes(vocabulary, positions, segments, d_model).values()),
        list(layer_shapes(d_model, d_hidden).values()) * layers,
        [square, vector],
        [square, vector, vector, vector, (vocabulary,)],
        [(2, d_model), (2,)],
    )
    return tuple(sum(math.prod(shape) for shape in shapes) for shapes in parts)


def _count(
    vocabulary,
    positions,
    segments,
    d_model,
    layers,
    d_hidden,
    tables=lambda v, p, s: v + p + s,
    embedding_norm=2,
    squares=4,
    biases=1,
    norms=2,
    head_norm=2,
    output=lambda v, d: v,
    head_square=1,
    classes=2,
    class_bias=1,
    pooler=1,
):
    d, linear = d_model, d_model * d_model + biases * d_model
    mlp = 2 * d * d_hidden + biases * (d_hidden + d)
    return (
        tables(vocabulary, positions, segments) * d + embedding_norm * d,
        layers * (squares * linear + mlp + norms * 2 * d),
        pooler * linear,
        head_square * linear + head_norm * d + output(vocabulary, d),
        classes * (d + class_bias),
    )


def embeddings_without_norm(**shape):
    """Forgets the LayerNorm of the embeddings."""
    return _count(**shape, embedding_norm=0)


def words_only(**shape):
    """Counts the word table only."""
    return _count(**shape, tables=lambda v, p, s: v)


def no_segments(**shape):
    """Forgets the segment table."""
    return _count(**shape, tables=lambda v, p, s: v + p)


def no_biases(**shape):
    """Counts matrices without their biases."""
    return _count(**shape, biases=0)


def three_squares(**shape):
    """Forgets the output projection of the attention."""
    return _count(**shape, squares=3)


def one_norm(**shape):
    """One LayerNorm for each layer."""
    return _count(**shape, norms=1)


def no_norms(**shape):
    """Forgets the LayerNorms of the layers."""
    return _count(**shape, norms=0)


def norms_of_one_vector(**shape):
    """Counts no biases of LayerNorms anywhere."""
    return _count(**shape, norms=1, embedding_norm=1, head_norm=1)


def one_layer(**shape):
    """Counts a single layer."""
    return _count(**{**shape, "layers": 1})


def hidden_four_times(**shape):
    """Takes 4 · d_model for the MLP's width."""
    return _count(**{**shape, "d_hidden": 4 * shape["d_model"]})


def output_words_again(**shape):
    """Counts the tied output matrix a second time."""
    return _count(**shape, output=lambda v, d: v * d + v)


def no_output_bias(**shape):
    """Forgets the bias of the words."""
    return _count(**shape, output=lambda v, d: 0)


def head_without_norm(**shape):
    """Forgets the head's LayerNorm."""
    return _count(**shape, head_norm=0)


def head_without_square(**shape):
    """Counts nothing but the words in the masked-LM head."""
    return _count(**shape, head_norm=0, head_square=0)


def one_class(**shape):
    """One logit for the next sentence."""
    return _count(**shape, classes=1)


def classes_without_bias(**shape):
    """Forgets the bias of the classes."""
    return _count(**shape, class_bias=0)


def pooler_to_two(**shape):
    """Takes the pooler for the classifier."""
    d = shape["d_model"]
    a, b, _, e, f = _count(**shape)
    return a, b, 2 * (d + 1), e, f


def by_collected_formula(vocabulary, positions, segments, d_model, layers, d_hidden):
    """Right: formulas, collected."""
    d = d_model
    layer = 4 * d**2 + 2 * d * d_hidden + 9 * d + d_hidden
    tables = (vocabulary + positions + segments + 2) * d
    return tables, layers * layer, d**2 + d, d**2 + 3 * d + vocabulary, 2 * d + 2


def by_shapes(vocabulary, positions, segments, d_model, layers, d_hidden):
    """Right: lists of matrices, their biases as one more column; gives a list."""
    d = d_model
    norm = (2, d)
    parts = (
        [(vocabulary, d), (positions, d), (segments, d), norm],
        ([(d, d + 1)] * 4 + [norm] * 2 + [(d_hidden, d + 1), (d, d_hidden + 1)]) * layers,
        [(d, d + 1)],
        [(d, d + 1), norm, (vocabulary, 1)],
        [(2, d + 1)],
    )
    return [sum(rows * columns for rows, columns in part) for part in parts]


def with_helpers(vocabulary, positions, segments, d_model, layers, d_hidden):
    """Right: small functions for a linear map and a norm."""

    def linear(a, b):
        return a * b + b

    norm = 2 * d_model
    embeddings = d_model * sum((vocabulary, positions, segments)) + norm
    attention = sum(linear(d_model, d_model) for _ in range(4)) + norm
    mlp = linear(d_model, d_hidden) + linear(d_hidden, d_model) + norm
    head = linear(d_model, d_model) + norm + vocabulary
    pooler = linear(d_model, d_model)
    return embeddings, layers * (attention + mlp), pooler, head, linear(d_model, 2)


BERT_PARTS = Exercise(
    id="bert_parts",
    title="Where BERT's parameters are",
    asks="Count the parameters of embeddings, layers, pooler and both heads.",
    parameters=("vocabulary", "positions", "segments", "d_model", "layers", "d_hidden"),
    outputs=("embeddings", "layers", "pooler", "masked-LM head", "next-sentence head"),
    groups={"small": Group(2, "small shapes"), "published": Group(1, "BERT base, large, MiniLM")},
    cases=bert_parts_cases,
    reference=bert_parts_reference,
    misconceptions=(
        Misconception(
            embeddings_without_norm,
            "The LayerNorm behind the embeddings is not counted.",
            "Go through the list in the text once more.",
        ),
        Misconception(
            words_only,
            "Only the word table is counted among the embeddings.",
            "How many tables are added up for each token?",
        ),
        Misconception(
            no_segments,
            "The segment table is not counted.",
            "How many tables are added up for each token?",
        ),
        Misconception(
            no_biases,
            "The biases of the linear maps are not counted.",
            "What does `nn.Linear(2, 3)` hold beside its matrix?",
        ),
        Misconception(
            three_squares,
            "The output projection of the attention is not counted.",
            "How many d × d matrices has an attention layer?",
        ),
        Misconception(
            one_norm,
            "One LayerNorm is counted for each layer; there are two.",
            "One for each sublayer.",
        ),
        Misconception(
            no_norms,
            "The LayerNorms of the layers are not counted.",
            "One for each sublayer.",
        ),
        Misconception(
            norms_of_one_vector,
            "A LayerNorm was counted as one vector.",
            "It has a gain and a bias.",
        ),
        Misconception(
            one_layer,
            "Only one layer is counted.",
            "Where does `layers` enter?",
        ),
        Misconception(
            hidden_four_times,
            "The MLP's width is taken to be 4 · d_model; it is given.",
            "Where does `d_hidden` enter?",
        ),
        Misconception(
            output_words_again,
            "The output matrix of the masked-LM head was counted: it *is* the word table.",
            "Which numbers does the head have that are nowhere else?",
        ),
        Misconception(
            no_output_bias,
            "The bias of the words is not counted in the masked-LM head.",
            "What is added to each word's logit?",
        ),
        Misconception(
            head_without_norm,
            "The LayerNorm of the masked-LM head is not counted.",
            "Write down the head's parts in order.",
        ),
        Misconception(
            head_without_square,
            "The masked-LM head has a linear map and a LayerNorm before the words.",
            "Write down the head's parts in order.",
        ),
        Misconception(
            one_class,
            "The next-sentence head has one output; it has two.",
            "Is there a logit for each class?",
        ),
        Misconception(
            classes_without_bias,
            "The next-sentence head's bias is not counted.",
            "What does `nn.Linear(2, 3)` hold beside its matrix?",
        ),
        Misconception(
            pooler_to_two,
            "The pooler was taken for the next-sentence head.",
            "The pooler maps a vector to one of the same width.",
        ),
    ),
    accepted=(by_collected_formula, by_shapes, with_helpers),
)
