"""Chapter 12: a linear layer in 8-bit integers."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

LARGEST = 127


def int8_linear_cases(rng):
    """Vectors and rows of very different lengths; one vector alone; vectors of zeros."""
    for group, axes, zeros, about in (
        ("values", (2, 3), (), "a batch of sentences"),
        ("values", (3,), (), "three vectors"),
        ("edges", (2, 3), ((0, 1), (1, 2)), "two vectors of zeros among others"),
        ("edges", (), (), "one vector alone"),
    ):
        inputs, outputs = (7, 4) if axes == (2, 3) else (6, 5)
        x = rng.normal(size=(*axes, inputs)) * 10 ** rng.uniform(-1.5, 1.5, size=(*axes, 1))
        for place in zeros:
            x[place] = 0
        weight = rng.normal(size=(outputs, inputs)) * 10 ** rng.uniform(-1, 1, size=(outputs, 1))
        yield Case(group, {"x": x, "weight": weight, "bias": rng.normal(size=outputs)}, about)


def int8_linear_reference(x, weight, bias):
    """Whole numbers of Python, one product after the other."""

    def rounded(row):
        scale = max(map(abs, row)) / LARGEST or 1.0
        return [round(number / scale) for number in row], scale

    rows = [rounded(row) for row in weight.tolist()]
    results = []
    for vector in x.reshape(-1, x.shape[-1]).tolist():
        numbers, scale = rounded(vector)
        results.append(
            [
                sum(a * b for a, b in zip(numbers, row, strict=True)) * scale * row_scale + shift
                for (row, row_scale), shift in zip(rows, bias.tolist(), strict=True)
            ]
        )
    return torch.tensor(results, dtype=x.dtype).reshape(*x.shape[:-1], len(bias))


def _scales(rows, axes=(-1,), levels=LARGEST):
    scales = rows.abs().amax(dim=axes, keepdim=True) / levels
    return scales.masked_fill(scales == 0, 1.0)


def _steps(rows, scales):
    """The rounded rows in their own units."""
    return (rows / scales).round() * scales


def nothing_is_rounded(x, weight, bias):
    """An ordinary linear layer."""
    return F.linear(x, weight, bias)


def weights_alone(x, weight, bias):
    """The inputs stay as they are."""
    return F.linear(x, _steps(weight, _scales(weight)), bias)


def inputs_alone(x, weight, bias):
    """The weights stay as they are."""
    return F.linear(_steps(x, _scales(x)), weight, bias)


def one_scale_for_the_matrix(x, weight, bias):
    """The largest weight of all sets the scale of every row."""
    return F.linear(_steps(x, _scales(x)), _steps(weight, _scales(weight, (0, 1))), bias)


def a_scale_for_each_column(x, weight, bias):
    """Columns instead of rows."""
    return F.linear(_steps(x, _scales(x)), _steps(weight, _scales(weight, (0,))), bias)


def one_scale_for_all_vectors(x, weight, bias):
    """The largest input of the batch sets the scale of all."""
    all_axes = tuple(range(x.dim()))
    return F.linear(_steps(x, _scales(x, all_axes)), _steps(weight, _scales(weight)), bias)


def cut_instead_of_rounded(x, weight, bias):
    """What a cast to integers does."""
    x, weight = ((rows / _scales(rows)).trunc() * _scales(rows) for rows in (x, weight))
    return F.linear(x, weight, bias)


def a_128th_part(x, weight, bias):
    """Divides by 128; 128 itself does not fit and becomes 127."""
    x, weight = (
        (rows / _scales(rows, levels=128)).round().clamp(max=127) * _scales(rows, levels=128)
        for rows in (x, weight)
    )
    return F.linear(x, weight, bias)


def half_the_steps(x, weight, bias):
    """255 steps from 0 to the largest, as for numbers without a sign."""
    x, weight = (_steps(rows, _scales(rows, levels=255)) for rows in (x, weight))
    return F.linear(x, weight, bias)


def largest_with_its_sign(x, weight, bias):
    """Forgets the absolute value: a row whose largest number is negative overflows."""

    def rounded(rows):
        scales = rows.amax(dim=-1, keepdim=True) / LARGEST
        scales = scales.masked_fill(scales == 0, 1.0)
        return _in_8_bits((rows / scales).round()) * scales

    return F.linear(rounded(x), rounded(weight), bias)


def _in_8_bits(numbers):
    """Wrapped round, as int8 is."""
    return (numbers + 128).remainder(256) - 128


def summed_in_8_bits(x, weight, bias):
    """The products overflow."""
    numbers, integers = ((rows / _scales(rows)).round() for rows in (x, weight))
    return _in_8_bits(numbers @ integers.mT) * _scales(x) * _scales(weight)[:, 0] + bias


def left_in_steps_of_the_inputs(x, weight, bias):
    """The inputs' scale is missing in the end."""
    return F.linear((x / _scales(x)).round(), _steps(weight, _scales(weight)), bias)


def left_in_steps_of_the_weights(x, weight, bias):
    """The weights' scale is missing in the end."""
    return F.linear(_steps(x, _scales(x)), (weight / _scales(weight)).round(), bias)


def bias_scaled_too(x, weight, bias):
    """The bias joins the integers."""
    products = (x / _scales(x)).round() @ (weight / _scales(weight)).round().mT
    return (products + bias) * _scales(x) * _scales(weight)[:, 0]


def bias_forgotten(x, weight, bias):
    """The product alone."""
    return F.linear(_steps(x, _scales(x)), _steps(weight, _scales(weight)))


def zeros_over_zero(x, weight, bias):
    """A vector of zeros has the scale 0."""
    x, weight = (_steps(rows, rows.abs().amax(-1, keepdim=True) / LARGEST) for rows in (x, weight))
    return F.linear(x, weight, bias)


def an_axis_too_many(x, weight, bias):
    """The weights' scales as a row of a matrix: a single vector gets an axis in front."""
    products = (x / _scales(x)).round() @ (weight / _scales(weight)).round().mT
    return products * _scales(x) * _scales(weight).mT + bias


def by_integers(x, weight, bias):
    """Right: int8, multiplied as int32."""
    numbers, integers = ((rows / _scales(rows)).round().to(torch.int8) for rows in (x, weight))
    products = numbers.to(torch.int32) @ integers.to(torch.int32).T
    return products * (_scales(x) * _scales(weight).squeeze(-1)) + bias


def by_rounded_numbers(x, weight, bias):
    """Right: rounds, and multiplies as usual."""
    return F.linear(_steps(x, _scales(x)), _steps(weight, _scales(weight)), bias)


def by_einsum(x, weight, bias):
    """Right: multiplies by 127 and divides by the largest; tiny numbers stand for 0."""
    largest_x = x.abs().max(-1).values.clamp(min=1e-200)
    largest_w = weight.abs().max(-1).values
    numbers = torch.round(127 * x / largest_x[..., None])
    integers = torch.round(127 * weight / largest_w[:, None])
    products = torch.einsum("...i,oi->...o", numbers, integers) / 127**2
    return products * largest_x[..., None] * largest_w + bias


INT8_LINEAR = Exercise(
    id="int8_linear",
    title="A linear layer in 8 bits",
    asks="Multiply inputs and weights as 8-bit integers, and scale back.",
    parameters=("x", "weight", "bias"),
    outputs=("result",),
    driver="tensor_function",
    groups={
        "values": Group(2, "vectors and rows of different lengths"),
        "edges": Group(1, "vectors of zeros, one vector alone"),
    },
    cases=int8_linear_cases,
    reference=int8_linear_reference,
    misconceptions=(
        Misconception(
            nothing_is_rounded,
            "Nothing is rounded: this is the exact product.",
            "Which whole numbers stand for the weights, and which for the inputs?",
        ),
        Misconception(
            weights_alone,
            "Only the weights are rounded; the inputs are multiplied as they are.",
            "What does the contract say about each vector of x?",
        ),
        Misconception(
            inputs_alone,
            "Only the inputs are rounded; the weights are multiplied as they are.",
            "What does the contract say about each row of weights?",
        ),
        Misconception(
            one_scale_for_the_matrix,
            "The largest weight of the whole matrix sets the scale of all its rows.",
            "How many scales does the matrix have?",
        ),
        Misconception(
            a_scale_for_each_column,
            "The weights have a scale for each input, not for each output.",
            "Along which axis of the weights is the largest value sought?",
        ),
        Misconception(
            one_scale_for_all_vectors,
            "The largest input of the whole batch sets the scale of all vectors.",
            "A small vector beside a large one: what is left of it?",
        ),
        Misconception(
            cut_instead_of_rounded,
            "The numbers are cut off towards 0, as a cast to integers does.",
            "Which whole number is nearest to 2.9?",
        ),
        Misconception(
            a_128th_part,
            "The scale is a 128th of the largest value, and 128 does not fit into 8 bits.",
            "Which whole number should the largest value become?",
        ),
        Misconception(
            half_the_steps,
            "There are 255 steps on each side of 0: the integers need more than 8 bits.",
            "Which whole number should the largest value become?",
        ),
        Misconception(
            largest_with_its_sign,
            "The largest value is taken with its sign, so large negative ones do not fit.",
            "Which number of (−5, 2) is the largest in size?",
        ),
        Misconception(
            summed_in_8_bits,
            "The products are added up in 8 bits and run over.",
            "How large can a sum of products become, and which format holds it?",
        ),
        Misconception(
            left_in_steps_of_the_inputs,
            "The inputs' scale is missing in the result.",
            "By what were the inputs divided?",
        ),
        Misconception(
            left_in_steps_of_the_weights,
            "The weights' scale is missing in the result.",
            "By what were the weights divided?",
        ),
        Misconception(
            bias_scaled_too,
            "The bias is multiplied by the scales.",
            "Was the bias ever divided by them?",
        ),
        Misconception(
            bias_forgotten,
            "The bias is missing.",
            "What does a vector of zeros give?",
        ),
        Misconception(
            zeros_over_zero,
            "A vector of zeros is divided by its scale 0.",
            "What does the contract say about such a vector?",
        ),
        Misconception(
            an_axis_too_many,
            "A single vector comes back with an axis of length 1 in front.",
            "Which shape have the weights' scales where you multiply by them?",
        ),
    ),
    accepted=(by_integers, by_rounded_numbers, by_einsum),
    equivalent_mutants={
        **{
            f"`largest > 0` → `{other}`": "0 / 0 becomes 0 when it is cast to int8"
            for other in ("largest >= 0", "largest > -1")
        },
        "`torch.where(largest > 0, largest, 1)` → `torch.where(largest > 0, largest, 0)`": (
            "0 / 0 becomes 0 when it is cast to int8"
        ),
        "`torch.where(largest > 0, largest, 1)` → `torch.where(largest > 0, largest, 2)`": (
            "zeros have any scale"
        ),
        "`weight_scales[:, 0]` → `weight_scales[:, -1]`": "there is one column",
    },
)
