"""Chapter 04: how many numbers a multi-head attention layer learns."""

from __future__ import annotations

from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def attention_parameters_cases(rng):
    """Heads that fill d_model, then any width of a head; with and without biases."""
    for bias in (True, False):
        heads, d_head = (int(n) for n in rng.choice((2, 3, 5, 6, 7, 8, 12), 2, replace=False))
        inputs = {"d_model": heads * d_head, "heads": heads, "d_head": d_head, "bias": bias}
        yield Case("usual", inputs, f"d_head = d_model / heads, {'' if bias else 'no '}biases")
    inputs = {"d_model": 768, "heads": 12, "d_head": 64, "bias": True}
    yield Case("usual", inputs, "the sizes of BERT base")
    for bias in (True, False):
        d_model, heads, d_head = (int(n) for n in rng.choice((5, 7, 9, 11, 13), 3, replace=False))
        inputs = {"d_model": d_model, "heads": heads, "d_head": d_head, "bias": bias}
        yield Case("free", inputs, f"heads of any width, {'' if bias else 'no '}biases")


def attention_parameters_reference(d_model, heads, d_head, bias):
    """Asks PyTorch's layers."""
    layers = [nn.Linear(d_model, 3 * heads * d_head, bias, device="meta")]
    layers.append(nn.Linear(heads * d_head, d_model, bias, device="meta"))
    return sum(parameter.numel() for layer in layers for parameter in layer.parameters())


def every_head_on_full_width(d_model, heads, d_head, bias):
    """Counts d_model columns for every head."""
    inner = heads * d_model
    return 3 * d_model * inner + inner * d_model + bias * (3 * inner + d_model)


def heads_not_counted(d_model, heads, d_head, bias):
    """One head only."""
    return 4 * d_model * d_head + bias * (3 * d_head + d_model)


def no_output_matrix(d_model, heads, d_head, bias):
    """Only queries, keys and values."""
    return 3 * heads * d_head * (d_model + bias)


def biases_not_counted(d_model, heads, d_head, bias):
    """Matrices only."""
    return 4 * d_model * heads * d_head


def biases_always_counted(d_model, heads, d_head, bias):
    """Ignores `bias`."""
    return attention_parameters_reference(d_model, heads, d_head, True)


def output_bias_not_counted(d_model, heads, d_head, bias):
    """The output projection as if it had none."""
    return attention_parameters_reference(d_model, heads, d_head, bias) - bias * d_model


def one_projection_for_three(d_model, heads, d_head, bias):
    """Forgets the 3."""
    inner = heads * d_head
    return 2 * d_model * inner + bias * (inner + d_model)


def one_bias_for_three(d_model, heads, d_head, bias):
    """Counts the biases of the queries only."""
    inner = heads * d_head
    return 4 * d_model * inner + bias * (inner + d_model)


def heads_must_fill_d_model(d_model, heads, d_head, bias):
    """4d² + 4d, whatever the heads."""
    return 4 * d_model * d_model + bias * 4 * d_model


def output_bias_as_wide_as_the_heads(d_model, heads, d_head, bias):
    """h·d_head biases at the output."""
    inner = heads * d_head
    return 4 * d_model * inner + bias * 4 * inner


def square_output_matrix(d_model, heads, d_head, bias):
    """d_model × d_model at the output."""
    return 3 * heads * d_head * (d_model + bias) + d_model * (d_model + bias)


def parameters_in_a_line(d_model, heads, d_head, bias):
    """Right: a formula."""
    inner = heads * d_head
    return 4 * d_model * inner + (3 * inner + d_model if bias else 0)


def parameters_head_by_head(d_model, heads, d_head, bias):
    """Right: adds up small projections."""
    count = 0
    for _ in range(heads):
        for _ in ("query", "key", "value"):
            count += d_model * d_head
            if bias:
                count += d_head
        count += d_head * d_model
    return count + bool(bias) * d_model


def parameters_by_modules(d_model, heads, d_head, bias):
    """Right: makes the two layers and counts."""
    block = nn.Sequential(
        nn.Linear(d_model, 3 * heads * d_head, bias=bias),
        nn.Linear(heads * d_head, d_model, bias=bias),
    )
    return sum(p.numel() for p in block.parameters())


_TWO_LAYERS = "Write the shape of each matrix and each bias vector, then multiply and add."

ATTENTION_PARAMETERS = Exercise(
    id="attention_parameters",
    title="How many parameters?",
    asks="Count the learned numbers of a multi-head attention layer.",
    parameters=("d_model", "heads", "d_head", "bias"),
    driver="tensor_function",
    groups={
        "usual": Group(1, "heads that fill d_model"),
        "free": Group(1, "heads of any width"),
    },
    cases=attention_parameters_cases,
    reference=attention_parameters_reference,
    misconceptions=(
        Misconception(
            every_head_on_full_width,
            "Each head is counted as if its vectors were d_model wide.",
            "How wide are the queries of one head?",
        ),
        Misconception(heads_not_counted, "Only one head is counted.", _TWO_LAYERS),
        Misconception(
            no_output_matrix, "The output projection is not counted.", "There are two layers."
        ),
        Misconception(biases_not_counted, "The biases are not counted.", _TWO_LAYERS),
        Misconception(
            biases_always_counted,
            "Biases are counted although `bias` is False.",
            "`bias` says whether there are any.",
        ),
        Misconception(
            output_bias_not_counted,
            "The biases of the output projection are missing.",
            "A Linear with biases has as many of them as it has outputs.",
        ),
        Misconception(
            one_projection_for_three,
            "The input projection is counted once; it serves queries, keys *and* values.",
            _TWO_LAYERS,
        ),
        Misconception(
            one_bias_for_three,
            "Only the queries' biases are counted at the input.",
            "As many biases as there are columns.",
        ),
        Misconception(
            heads_must_fill_d_model,
            "This takes for granted that heads · d_head = d_model; here d_head is given by itself.",
            "Replace one of the two factors d_model by what it really is.",
        ),
        Misconception(
            output_bias_as_wide_as_the_heads,
            "The output has d_model numbers, and so many biases, not heads · d_head.",
            _TWO_LAYERS,
        ),
        Misconception(
            square_output_matrix,
            "The output matrix is counted as d_model × d_model; its inputs are the merged heads.",
            _TWO_LAYERS,
        ),
    ),
    accepted=(parameters_in_a_line, parameters_head_by_head, parameters_by_modules),
)
