"""Chapter 05: a sublayer with its residual link and its norm, in both orders."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_gain_and_bias


def add_and_norm_cases(rng):
    """Both orders, with and without a batch."""

    def inputs(shape, norm_first):
        gain, bias = draw_gain_and_bias(rng, shape[-1])
        weight = rng.normal(size=(shape[-1], shape[-1])) / np.sqrt(shape[-1])
        x = 0.5 + 1.5 * rng.normal(size=shape)
        names = {"x": x, "weight": weight, "gain": gain, "bias": bias}
        return {**names, "norm_first": norm_first}

    for norm_first, group in ((True, "pre"), (False, "post")):
        s = draw_sizes(rng, "batch", "length", "d", among=(3, 4, 5))
        yield Case(group, inputs((s.length, s.d), norm_first), "one sequence")
        yield Case(group, inputs((s.batch, 2, s.d), norm_first), "a batch")


def _sublayer(x, weight):
    return torch.tanh(x @ weight)


def _norm(x, gain, bias):
    return functional.layer_norm(x, x.shape[-1:], gain, bias)


def add_and_norm_reference(x, weight, gain, bias, norm_first):
    """Written out, with the norm by hand."""

    def norm(tokens):
        centred = tokens - tokens.mean(dim=-1, keepdim=True)
        return gain * centred / (centred.pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt() + bias

    if norm_first:
        return x + torch.tanh(torch.einsum("...i,ij->...j", norm(x), weight))
    return norm(x + torch.tanh(torch.einsum("...i,ij->...j", x, weight)))


def orders_exchanged(x, weight, gain, bias, norm_first):
    """Reads the switch the wrong way round."""
    if norm_first:
        return _norm(x + _sublayer(x, weight), gain, bias)
    return x + _sublayer(_norm(x, gain, bias), weight)


def always_post(x, weight, gain, bias, norm_first):
    """Ignores the switch: add, then norm."""
    return _norm(x + _sublayer(x, weight), gain, bias)


def always_pre(x, weight, gain, bias, norm_first):
    """Ignores the switch: norm, then sublayer, then add."""
    return x + _sublayer(_norm(x, gain, bias), weight)


def adds_the_normalised_input(x, weight, gain, bias, norm_first):
    """In the pre order, the link starts after the norm."""
    if norm_first:
        tokens = _norm(x, gain, bias)
        return tokens + _sublayer(tokens, weight)
    return _norm(x + _sublayer(x, weight), gain, bias)


def no_residual(x, weight, gain, bias, norm_first):
    """Never adds the input."""
    if norm_first:
        return _sublayer(_norm(x, gain, bias), weight)
    return _norm(_sublayer(x, weight), gain, bias)


def no_residual_when_pre(x, weight, gain, bias, norm_first):
    """Adds the input in the post order only."""
    if norm_first:
        return _sublayer(_norm(x, gain, bias), weight)
    return _norm(x + _sublayer(x, weight), gain, bias)


def norms_the_sublayers_output(x, weight, gain, bias, norm_first):
    """In the post order, normalises what the sublayer gave and adds then."""
    if norm_first:
        return x + _sublayer(_norm(x, gain, bias), weight)
    return x + _norm(_sublayer(x, weight), gain, bias)


def norms_twice_when_pre(x, weight, gain, bias, norm_first):
    """In the pre order, normalises the sum as well."""
    tokens = _norm(x, gain, bias) if norm_first else x
    return _norm(x + _sublayer(tokens, weight), gain, bias)


def norm_before_the_sum(x, weight, gain, bias, norm_first):
    """In the post order, normalises the input that is added, and not the sum."""
    if norm_first:
        return x + _sublayer(_norm(x, gain, bias), weight)
    return _norm(x, gain, bias) + _sublayer(x, weight)


def no_norm(x, weight, gain, bias, norm_first):
    """Only adds."""
    return x + _sublayer(x, weight)


def norm_with_no_parameters(x, weight, gain, bias, norm_first):
    """Normalises without gain and bias."""
    width = x.shape[-1:]
    if norm_first:
        return x + _sublayer(functional.layer_norm(x, width), weight)
    return functional.layer_norm(x + _sublayer(x, weight), width)


def link_cut_off(x, weight, gain, bias, norm_first):
    """Adds a detached input: right numbers, but no gradient takes the short way."""
    if norm_first:
        return x.detach() + _sublayer(_norm(x, gain, bias), weight)
    return _norm(x.detach() + _sublayer(x, weight), gain, bias)


def adds_in_place(x, weight, gain, bias, norm_first):
    """`+=` on the caller's tensor, which autograd refuses."""
    x += _sublayer(_norm(x, gain, bias) if norm_first else x, weight)
    return x if norm_first else _norm(x, gain, bias)


def by_two_functions(x, weight, gain, bias, norm_first):
    """Right: chooses what comes before and what comes after."""

    def norm(tokens):
        return functional.layer_norm(tokens, tokens.shape[-1:], gain, bias, 1e-5)

    before, after = (norm, torch.clone) if norm_first else (torch.clone, norm)
    return after(x + torch.tanh(before(x) @ weight))


def by_module(x, weight, gain, bias, norm_first):
    """Right: `nn.LayerNorm` with the given parameters."""
    norm = torch.nn.LayerNorm(x.shape[-1]).to(x.dtype)
    parameters = {"weight": gain, "bias": bias}

    def apply(tokens):
        return torch.func.functional_call(norm, parameters, (tokens,))

    if norm_first:
        return torch.add(torch.tanh(torch.matmul(apply(x), weight)), x)
    return apply(torch.add(torch.tanh(torch.matmul(x, weight)), x))


def by_hand_in_steps(x, weight, gain, bias, norm_first):
    """Right: token by token, everything written out."""
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        for step in ("norm", "sublayer") if norm_first else ("sublayer", "norm"):
            if step == "norm" and norm_first:
                inner = _norm(row, gain, bias)
            elif step == "norm":
                row = _norm(row, gain, bias)
            else:
                row = row + _sublayer(inner if norm_first else row, weight)
        rows.append(row)
    return torch.stack(rows).reshape(x.shape)


ADD_AND_NORM = Exercise(
    id="add_and_norm",
    title="Add and norm, in both orders",
    asks="Put a residual link and a norm around a sublayer: norm first (pre-LN) or last (post-LN).",
    parameters=("x", "weight", "gain", "bias", "norm_first"),
    outputs=("result", "gradient of x"),
    driver="tensor_function",
    seconds=10.0,
    groups={
        "pre": Group(1.5, "norm first (pre-LN)"),
        "post": Group(1.5, "norm last (post-LN)"),
    },
    cases=add_and_norm_cases,
    reference=add_and_norm_reference,
    misconceptions=(
        Misconception(
            orders_exchanged,
            "The two orders are exchanged.",
            "`norm_first=True` means that the sublayer sees normalised tokens.",
        ),
        Misconception(
            always_post,
            "The norm comes last, whatever `norm_first` says.",
            "What does your code do differently if `norm_first` is True?",
        ),
        Misconception(
            always_pre,
            "The norm comes first, whatever `norm_first` says.",
            "What does your code do differently if `norm_first` is False?",
        ),
        Misconception(
            adds_the_normalised_input,
            "In the pre order the residual link adds the *normalised* input.",
            "Where does the link start: before or after the norm? Look at the picture.",
        ),
        Misconception(
            no_residual,
            "The input is never added: there is no residual link.",
            "What comes out if the sublayer gives zeros?",
        ),
        Misconception(
            no_residual_when_pre,
            "In the pre order the input is not added.",
            "What comes out of the pre order if the sublayer gives zeros?",
        ),
        Misconception(
            norms_the_sublayers_output,
            "In the post order only the sublayer's output is normalised, and x is added after it.",
            "What is it that post-LN normalises: one part of the sum, or the sum?",
        ),
        Misconception(
            norms_twice_when_pre,
            "In the pre order the sum is normalised as well.",
            "Pre-LN leaves the residual stream itself alone. How many norms has each order?",
        ),
        Misconception(
            norm_before_the_sum,
            "In the post order the input that is added is normalised instead of the sum.",
            "What is it that post-LN normalises: one part of the sum, or the sum?",
        ),
        Misconception(
            no_norm,
            "Nothing is normalised.",
            "Both orders have exactly one norm: where?",
        ),
        Misconception(
            norm_with_no_parameters,
            "The norm runs without `gain` and `bias`.",
            "`F.layer_norm` takes a weight and a bias.",
        ),
        Misconception(
            link_cut_off,
            "The numbers are right, but the residual link carries no gradient (`detach`, `.data`).",
            "Add x itself: the short way back is what the link is for.",
        ),
        Misconception(
            adds_in_place,
            "`+=` writes into the caller's tensor; autograd still needs its old values.",
            "`a + b` makes a new tensor.",
        ),
    ),
    accepted=(by_two_functions, by_module, by_hand_in_steps),
)
