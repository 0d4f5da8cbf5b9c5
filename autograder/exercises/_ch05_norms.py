"""Chapter 05: layer normalisation by hand."""

from __future__ import annotations

import torch
from torch.nn import functional

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_gain_and_bias


def layer_norm_cases(rng):
    """Leading axes; another mean and size; rows of tiny and of no variance; several epsilons."""

    def inputs(shape, epsilon, size=1.0, mean=0.0):
        gain, bias = draw_gain_and_bias(rng, shape[-1])
        x = mean + size * rng.normal(size=shape)
        return {"x": x, "gain": gain, "bias": bias, "epsilon": epsilon}

    width = 5
    yield Case("values", inputs((3, width), 1e-5), "a matrix: one sequence")
    yield Case("values", inputs((2, width), 1e-5, 3.0, 2.0), "a large mean and variance")
    yield Case("leading", inputs((2, 3, width), 1e-5), "a batch of sequences")
    yield Case("leading", inputs((2, 3, 2, 4), 1e-5), "four axes")
    yield Case("leading", inputs((width,), 1e-5), "a single vector")
    yield Case("epsilon", inputs((2, width), 0.1), "epsilon of 0.1")
    yield Case("epsilon", inputs((2, width), 1e-5, 1e-3), "a variance below epsilon")
    constant = inputs((2, width), 1e-3)
    constant["x"][1] = 2.5
    yield Case("epsilon", constant, "one row is constant")


def layer_norm_reference(x, gain, bias, epsilon):
    """PyTorch's own."""
    return functional.layer_norm(x, x.shape[-1:], gain, bias, epsilon)


def _normalised(x, epsilon, axes=(-1,), correction=0):
    variance, mean = torch.var_mean(x, dim=axes, correction=correction, keepdim=True)
    return (x - mean) / torch.sqrt(variance + epsilon)


def unbiased_variance(x, gain, bias, epsilon):
    """Divides by d − 1: what `x.var(-1)` does unless told otherwise."""
    return gain * _normalised(x, epsilon, correction=1) + bias


def epsilon_outside_the_root(x, gain, bias, epsilon):
    """Adds epsilon to the standard deviation."""
    deviation = torch.sqrt(x.var(-1, correction=0, keepdim=True))
    return gain * (x - x.mean(-1, keepdim=True)) / (deviation + epsilon) + bias


def unbiased_and_epsilon_outside(x, gain, bias, epsilon):
    """`x.std(-1) + epsilon`: both at once."""
    deviation = x.std(-1, keepdim=True)
    return gain * (x - x.mean(-1, keepdim=True)) / (deviation + epsilon) + bias


def no_epsilon(x, gain, bias, epsilon):
    """Leaves epsilon out: a constant row becomes 0/0."""
    return gain * _normalised(x, 0.0) + bias


def epsilon_of_its_own(x, gain, bias, epsilon):
    """Writes 1e-5 into the code and ignores the argument."""
    return gain * _normalised(x, 1e-5) + bias


def over_length_and_width(x, gain, bias, epsilon):
    """One mean and one variance for all tokens of a sequence."""
    axes = (-2, -1) if x.dim() > 1 else (-1,)
    return gain * _normalised(x, epsilon, axes) + bias


def over_everything(x, gain, bias, epsilon):
    """One mean and one variance for the whole array."""
    return gain * _normalised(x, epsilon, tuple(range(x.dim()))) + bias


def over_the_tokens(x, gain, bias, epsilon):
    """Normalises each feature over the tokens, as batch normalisation does."""
    axes = tuple(range(x.dim() - 1)) or (-1,)
    return gain * _normalised(x, epsilon, axes) + bias


def over_axis_one(x, gain, bias, epsilon):
    """Axis 1 is the width only without a batch."""
    return gain * _normalised(x, epsilon, (1,) if x.dim() > 1 else (0,)) + bias


def mean_axis_dropped(x, gain, bias, epsilon):
    """Takes the mean without `keepdim`: it meets the wrong axis of x."""
    deviation = torch.sqrt(x.var(-1, correction=0) + epsilon)
    return gain * (x - x.mean(-1)) / deviation + bias


def mean_not_subtracted(x, gain, bias, epsilon):
    """Divides by the root mean square: RMSNorm."""
    return gain * x / torch.sqrt((x**2).mean(-1, keepdim=True) + epsilon) + bias


def gain_ignored(x, gain, bias, epsilon):
    """Never multiplies by the gain."""
    return _normalised(x, epsilon) + bias


def bias_ignored(x, gain, bias, epsilon):
    """Never adds the bias."""
    return gain * _normalised(x, epsilon)


def gain_and_bias_first(x, gain, bias, epsilon):
    """Applies gain and bias before normalising."""
    return _normalised(gain * x + bias, epsilon)


def gain_on_top_of_one(x, gain, bias, epsilon):
    """Multiplies by 1 + gain."""
    return (1 + gain) * _normalised(x, epsilon) + bias


def divided_by_variance(x, gain, bias, epsilon):
    """Forgets the root."""
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return gain * (x - mean) / (variance + epsilon) + bias


def statistics_cut_off(x, gain, bias, epsilon):
    """Takes mean and variance for constants: the gradient does not see them."""
    variance, mean = torch.var_mean(x.detach(), dim=-1, correction=0, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + epsilon) + bias


def norm_by_rsqrt(x, gain, bias, epsilon):
    """Right: mean of squares of what is centred, times 1/√."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + epsilon) * gain + bias


def norm_row_by_row(x, gain, bias, epsilon):
    """Right: one vector at a time."""
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        rows.append((row - mean) / (variance + epsilon) ** 0.5 * gain + bias)
    return torch.stack(rows).reshape(x.shape)


def norm_by_length(x, gain, bias, epsilon):
    """Right: the variance from the length of the centred vector."""
    centred = x - x.mean(dim=-1, keepdim=True)
    length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
    variance = length**2 / x.shape[-1]
    return torch.einsum("...d,d->...d", centred * (variance + epsilon) ** -0.5, gain) + bias


def norm_by_matrices(x, gain, bias, epsilon):
    """Right: centring and averaging as matrix products."""
    width = x.shape[-1]
    average = torch.full((width, width), 1 / width, dtype=x.dtype)
    centred = x - x @ average
    return torch.addcmul(bias, gain, centred / torch.sqrt(centred**2 @ average + epsilon))


LAYER_NORM = Exercise(
    id="layer_norm",
    title="Layer normalisation",
    asks="Normalise each token's vector, then apply gain and bias.",
    parameters=("x", "gain", "bias", "epsilon"),
    outputs=("result", "gradient of x"),
    driver="tensor_function",
    seconds=10.0,
    forbidden=("*layer_norm*", "*batch_norm*", "*group_norm*", "*instance_norm*", "*rms_norm*"),
    groups={
        "values": Group(1, "one sequence"),
        "leading": Group(1, "any number of leading axes"),
        "epsilon": Group(1, "epsilon: small and vanishing variance"),
    },
    cases=layer_norm_cases,
    reference=layer_norm_reference,
    misconceptions=(
        Misconception(
            unbiased_variance,
            "The variance divides by d − 1: PyTorch's `var` and `std` do so by default.",
            "The contract says by how much to divide; see `correction` in the help of `torch.var`.",
        ),
        Misconception(
            epsilon_outside_the_root,
            "Epsilon is added to the standard deviation, outside the root.",
            "Where does epsilon stand in the formula? Check with a row of tiny values.",
        ),
        Misconception(
            unbiased_and_epsilon_outside,
            "Two things at once: the deviation divides by d − 1, and epsilon stands outside the "
            "root.",
            "Write the variance first, with the right divisor; epsilon joins it before the root.",
        ),
        Misconception(
            no_epsilon,
            "Epsilon is not used, so a row with no variance is divided by 0.",
            "What is your denominator for a row of equal numbers?",
        ),
        Misconception(
            epsilon_of_its_own,
            "Epsilon is a constant of your own; the argument `epsilon` is ignored.",
            "Search your code for a number that should be a name.",
        ),
        Misconception(
            over_length_and_width,
            "Mean and variance are shared by all tokens of a sequence.",
            "Every token is normalised by itself: how many means does one sequence have?",
        ),
        Misconception(
            over_everything,
            "One mean and one variance are taken of the whole array.",
            "Every token is normalised by itself: over which axis, and with `keepdim`?",
        ),
        Misconception(
            over_the_tokens,
            "Each feature is normalised over the tokens, as batch normalisation does.",
            "Which axis holds the numbers of one token?",
        ),
        Misconception(
            over_axis_one,
            "The axis is counted from the front, so it is another one as soon as there is a batch.",
            "Count the axis from the end.",
        ),
        Misconception(
            mean_not_subtracted,
            "The mean is not subtracted: this is RMSNorm (Zhang and Sennrich, 2019).",
            "What is the mean of your result before gain and bias?",
        ),
        Misconception(
            gain_ignored,
            "The gain is not used. With a fresh layer (gain 1) one would not notice.",
            "Where does `gain` enter your result?",
        ),
        Misconception(
            bias_ignored,
            "The bias is not used. With a fresh layer (bias 0) one would not notice.",
            "Where does `bias` enter your result?",
        ),
        Misconception(
            gain_and_bias_first,
            "Gain and bias are applied before the normalisation, which undoes most of them.",
            "In which order do the contract's points come?",
        ),
        Misconception(
            gain_on_top_of_one,
            "The result is multiplied by 1 + gain; the gain itself is the factor.",
            "With a gain of ones, by what should the normalised vector be multiplied?",
        ),
        Misconception(
            divided_by_variance,
            "It is divided by the variance; the root is missing.",
            "Multiply x by 10: by how much does your denominator grow?",
        ),
        Misconception(
            statistics_cut_off,
            "Mean and variance are cut out of the gradient (`detach`, `no_grad`, `.data`, `item`).",
            "They depend on x, so x gets gradient through them too.",
        ),
        Misconception(
            mean_axis_dropped,
            "Mean and variance have lost their last axis, so they meet the wrong axis of x.",
            "Write the shapes of x and of its mean one under the other, from the right.",
        ),
    ),
    accepted=(norm_by_rsqrt, norm_row_by_row, norm_by_length, norm_by_matrices),
)
