"""Chapter 05: how far gradients get down a deep stack, with and without residual links."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

DEEP = 20


def gradient_norms_cases(rng):
    """Few layers and twenty, with and without links, with a batch axis."""

    def inputs(lead, d, layers, residual):
        weights = 1.1 * rng.normal(size=(layers, d, d)) / np.sqrt(d)
        x, probe = rng.normal(size=(2, *lead, d))
        return {"x": x, "weights": weights, "probe": 10.0 * probe, "residual": residual}

    for residual, group in ((False, "plain"), (True, "residual")):
        s = draw_sizes(rng, "batch", "length", "d", "layers", among=(2, 3, 5, 6))
        few = inputs((s.length,), s.d, s.layers, residual)
        yield Case(group, few, f"{s.layers} layers")
        many = inputs((s.batch, s.length), s.d, s.layers + 1, residual)
        yield Case(group, many, f"{s.layers + 1} layers, a batch")
        deep = inputs((2,), 3, DEEP, residual)
        yield Case(group, deep, f"{DEEP} layers")


def gradient_norms_reference(x, weights, probe, residual):
    """The chain rule by hand, layer by layer, without autograd."""
    bent = []
    for weight in weights:
        bent.append(torch.tanh(x @ weight))
        x = bent[-1] + x if residual else bent[-1]
    gradient, norms = probe, []
    for weight, values in zip(weights.flip(0), reversed(bent), strict=True):
        through = torch.einsum("...o,io->...i", gradient * (1 - values**2), weight)
        gradient = gradient + through if residual else through
        norms.append(torch.linalg.vector_norm(gradient))
    return torch.stack(norms[::-1])


def _forward(x, weights, residual):
    """Give the input of every layer and the output of the last."""
    states = [x.detach().clone().requires_grad_()]
    for weight in weights:
        bent = torch.tanh(states[-1] @ weight)
        states.append(states[-1] + bent if residual else bent)
    return states


def _gradients(x, weights, probe, residual):
    states = _forward(x, weights, residual)
    return torch.autograd.grad((states[-1] * probe).sum(), states)


def _norms(parts):
    return torch.stack([part.norm() for part in parts])


def last_layer_first(x, weights, probe, residual):
    """Collects on the way back and forgets to turn round."""
    return _norms(_gradients(x, weights, probe, residual)[:-1]).flip(0)


def never_linked(x, weights, probe, residual):
    """Ignores `residual`: no links."""
    return _norms(_gradients(x, weights, probe, False)[:-1])


def always_linked(x, weights, probe, residual):
    """Ignores `residual`: always links."""
    return _norms(_gradients(x, weights, probe, True)[:-1])


def output_counted_too(x, weights, probe, residual):
    """Gives one number more: the gradient at the last output."""
    return _norms(_gradients(x, weights, probe, residual))


def at_the_outputs(x, weights, probe, residual):
    """Takes the gradient at each layer's output instead of its input."""
    return _norms(_gradients(x, weights, probe, residual)[1:])


def of_the_weights(x, weights, probe, residual):
    """Takes the gradient for each layer's weights."""
    parts = [weight.detach().clone().requires_grad_() for weight in weights]
    loss = (_forward(x, parts, residual)[-1] * probe).sum()
    return _norms(torch.autograd.grad(loss, parts))


def of_the_states(x, weights, probe, residual):
    """Takes the size of the inputs themselves, not of their gradients."""
    return _norms(_forward(x, weights, residual)[:-1]).detach()


def probe_forgotten(x, weights, probe, residual):
    """The loss is the plain sum of the output."""
    return _norms(_gradients(x, weights, torch.ones_like(probe), residual)[:-1])


def squared_norms(x, weights, probe, residual):
    """Forgets the root of the norm."""
    return _norms(_gradients(x, weights, probe, residual)[:-1]) ** 2


def mean_sizes(x, weights, probe, residual):
    """Takes the mean absolute value for the norm."""
    parts = _gradients(x, weights, probe, residual)[:-1]
    return torch.stack([part.abs().mean() for part in parts])


def one_norm_for_each_token(x, weights, probe, residual):
    """Takes the norm over the width only."""
    parts = _gradients(x, weights, probe, residual)[:-1]
    return torch.stack([part.norm(dim=-1) for part in parts])


def no_gradient_asked_for(x, weights, probe, residual):
    """Goes backward though no tensor has asked for a gradient."""
    return _norms(torch.autograd.grad((x.detach() * probe).sum(), [x]))


def cut_between_layers(x, weights, probe, residual):
    """Detaches every layer's input, so each gradient comes from its own layer only."""
    parts = []
    for state, weight in zip(_forward(x, weights, residual), weights, strict=False):
        start = state.detach().requires_grad_()
        bent = torch.tanh(start @ weight)
        end = start + bent if residual else bent
        parts += torch.autograd.grad((end * probe).sum(), start)
    return _norms(parts)


def kept_with_retain_grad(x, weights, probe, residual):
    """Right: `retain_grad` on every layer's input, one `backward`."""
    state, states = x.clone().requires_grad_(), []
    for weight in weights:
        state.retain_grad()
        states.append(state)
        state = residual * state + torch.tanh(torch.matmul(state, weight))
    (state * probe).sum().backward()
    return torch.stack([torch.sqrt((state.grad**2).sum()) for state in states])


def caught_with_hooks(x, weights, probe, residual):
    """Right: hooks that write the norms down during `backward`."""
    norms = torch.zeros(len(weights), dtype=x.dtype)
    state = x.clone().requires_grad_()
    for layer, weight in enumerate(weights):

        def note(gradient, layer=layer):
            norms[layer] = torch.linalg.vector_norm(gradient)

        state.register_hook(note)
        bent = torch.tanh(state @ weight)
        state = state + bent if residual else bent
    torch.tensordot(state.flatten(), probe.flatten(), dims=1).backward()
    return norms


def pulled_back_layer_by_layer(x, weights, probe, residual):
    """Right: one small backward pass for each layer, from the last to the first."""

    def layer(state, weight):
        return torch.tanh(state @ weight) + (state if residual else 0)

    with torch.no_grad():
        states = [x]
        for weight in weights[:-1]:
            states.append(layer(states[-1], weight))
    norms = []
    for state, weight in list(zip(states, weights, strict=True))[::-1]:
        start = state.detach().requires_grad_()
        (probe,) = torch.autograd.grad(layer(start, weight), start, probe)
        norms.insert(0, probe.norm())
    return torch.stack(norms)


GRADIENT_NORMS = Exercise(
    id="gradient_norms",
    title="How far the gradient gets",
    asks="Give the norm of the loss's gradient at the input of every layer of a deep stack.",
    parameters=("x", "weights", "probe", "residual"),
    driver="tensor_function",
    seconds=10.0,
    groups={
        "plain": Group(1.5, "without residual links"),
        "residual": Group(1.5, "with residual links"),
    },
    cases=gradient_norms_cases,
    reference=gradient_norms_reference,
    misconceptions=(
        Misconception(
            last_layer_first,
            "The norms come in the order of the way back: the last layer first.",
            "Entry 0 belongs to the first layer.",
        ),
        Misconception(
            never_linked,
            "`residual` has no effect: there are never links.",
            "What does your loop do differently if `residual` is True?",
        ),
        Misconception(
            always_linked,
            "`residual` has no effect: there are always links.",
            "What does your loop do differently if `residual` is False?",
        ),
        Misconception(
            output_counted_too,
            "There is one number too many: the gradient at the last output is counted too.",
            "How many *inputs* do the layers have?",
        ),
        Misconception(
            at_the_outputs,
            "These are gradients at the outputs of the layers; the inputs are asked.",
            "Entry 0 is the gradient for `x` itself.",
        ),
        Misconception(
            of_the_weights,
            "These are gradients for the weights of the layers; their inputs are asked.",
            "With respect to which tensors does the contract differentiate?",
        ),
        Misconception(
            of_the_states,
            "These are the sizes of the states; those of their gradients are asked.",
            "Where does `loss` enter your result?",
        ),
        Misconception(
            probe_forgotten,
            "The loss is the plain sum of the output; `probe` is not used.",
            "Read point 2 of the contract again.",
        ),
        Misconception(
            squared_norms,
            "The norms are squared.",
            "A norm is the *root* of the sum of squares.",
        ),
        Misconception(
            mean_sizes,
            "The mean absolute value is taken; the norm is asked.",
            "A norm is the root of the *sum* of squares.",
        ),
        Misconception(
            one_norm_for_each_token,
            "The norm runs over the width only, so there is one for each token.",
            "How many numbers does the contract ask for?",
        ),
        Misconception(
            cut_between_layers,
            "Every layer's input is cut off from the layer before, so nothing flows through.",
            "Detach only the very first input, if at all.",
        ),
        Misconception(
            no_gradient_asked_for,
            "No tensor asked for a gradient before the loop, so nothing was recorded.",
            "Which method of a tensor makes autograd follow what is done with it?",
        ),
    ),
    accepted=(kept_with_retain_grad, caught_with_hooks, pulled_back_layer_by_layer),
    equivalent_mutants={"`x.detach()` → `x`": "the x of a check is a leaf already"},
)
