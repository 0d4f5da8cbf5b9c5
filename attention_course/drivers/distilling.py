"""Exercises of distillation: a student and a teacher as small models, and a machine to race them.

The models are given by their weights, so that nothing has to be trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attention_course.drivers.functions import must_be_function
from attention_course.drivers.modules import load_weights
from attention_course.drivers.steps import CountedSGD
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable

Weights = Mapping[str, np.ndarray]


def make_model(weights: Weights, dropout: float = 0.0) -> Any:
    """Make a small float64 model with these weights: `embedding`, `layers` (a ModuleList), `head`.

    Names are `embedding.weight`, `layers.0.weight`, `layers.0.bias`, ..., `head.weight`. It maps
    (batch, length, width) to logits (batch, length, classes); a layer also mixes the tokens.
    """
    import torch
    from torch import nn

    class Layer(nn.Linear):
        def forward(self, x: Any) -> Any:
            mixed = super().forward(x) + x.mean(dim=1, keepdim=True)
            return x + nn.functional.dropout(torch.tanh(mixed), dropout, self.training)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            d_model, width = weights["embedding.weight"].shape
            count = sum(name.startswith("layers.") and name.endswith("bias") for name in weights)
            self.embedding = nn.Linear(width, d_model, bias=False)
            self.layers = nn.ModuleList(Layer(d_model, d_model) for _ in range(count))
            self.head = nn.Linear(d_model, weights["head.weight"].shape[0], bias=False)

        def forward(self, x: Any) -> Any:
            x = self.embedding(x)
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    model = Model().double()
    load_weights(model, weights)
    return model


def in_one_row(model: Any) -> Any:
    """All parameters of a model in one row, in the order of `parameters()`."""
    import torch

    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def gradients_in_one_row(model: Any) -> Any:
    """All gradients of a model in one row; zeros where there is none."""
    import torch

    found = [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for parameter in model.parameters()
    ]
    return torch.cat([gradient.flatten() for gradient in found])


def two_models(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Turn stored inputs into what the candidate gets, for `example`: models and tensors."""
    with torch_as_it_was():  # a new model draws random numbers
        models = {
            name: make_model(inputs[name])
            for name in ("student", "teacher", "model")
            if name in inputs
        }
    return {**as_tensors(dict(inputs)), **models}


def call_initialiser(
    candidate: Callable[..., Any], terms: Terms, student: Weights, teacher: Weights
) -> Any:
    """Let the candidate fill a student from a teacher.

    Gives the student's weights, the teacher's, the student's number of trainable parameters, and
    the teacher's weights after the student's have been changed.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        small, large = make_model(student), make_model(teacher)
        candidate(student=small, teacher=large)
        filled, left = in_one_row(small), in_one_row(large)
        trainable = sum(p.numel() for p in small.parameters() if p.requires_grad)
        with torch.no_grad():
            for parameter in small.parameters():
                parameter.add_(1.0)
        return filled, left, trainable, in_one_row(large)


def mean_divergence(student_logits: Any, teacher_logits: Any) -> Any:
    """Mean divergence of the student from the teacher over all tokens: a loss to hand over."""
    ours, theirs = student_logits.log_softmax(-1), teacher_logits.log_softmax(-1)
    return (theirs.exp() * (theirs - ours)).sum(-1).mean()


def call_distillation_step(
    candidate: Callable[..., Any],
    terms: Terms,
    student: Weights,
    teacher: Weights,
    stale: Weights,
    x: np.ndarray,
    dropout: float,
    learning_rate: float,
) -> Any:
    """Let the candidate make one step of SGD. The teacher arrives in training mode, with dropout.

    `stale` are gradients that lie in the student from before. Gives the loss, the student's
    weights, the teacher's weights, the teacher's gradients, whether (student, teacher) were in
    training mode when they ran, whether the teacher's run was recorded for gradients, the number
    of steps.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        small, large = make_model(student).eval(), make_model(teacher, dropout).train()
        for name, gradient in stale.items():
            small.get_parameter(name).grad = torch.from_numpy(gradient.copy())
        modes, recorded = {"student": 0, "teacher": 0}, []
        small.register_forward_hook(
            lambda model, _, __: modes.update(student=max(modes["student"], int(model.training)))
        )
        large.register_forward_hook(
            lambda model, _, __: modes.update(teacher=max(modes["teacher"], int(model.training)))
        )
        large.register_forward_hook(lambda _, __, out: recorded.append(out.requires_grad))
        optimizer = CountedSGD(small.parameters(), learning_rate)
        loss = candidate(
            student=small, teacher=large, optimizer=optimizer, x=as_tensors(x), loss=mean_divergence
        )
        if not isinstance(loss, int | float) and getattr(loss, "shape", None) != ():
            raise Unusable("the loss must be a single number.")
        return (
            float(loss),
            in_one_row(small),
            in_one_row(large),
            gradients_in_one_row(large),
            torch.tensor(list(modes.values())),
            any(recorded),
            optimizer.steps,
        )


def call_swap(
    candidate: Callable[..., Any],
    terms: Terms,
    model: Weights,
    layer: int,
    base: np.ndarray,
    source: np.ndarray,
    places: Sequence[int],
    upstream: np.ndarray,
) -> Any:
    """Let the candidate run `base` with a layer's outputs of `source` at some places.

    Gives the logits, the gradients of the weights, and what the model makes of `base` afterwards.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        net, given = make_model(model), as_tensors({"base": base, "source": source})
        logits = candidate(model=net, layer=layer, places=list(places), **given)
        shape_fits = isinstance(logits, torch.Tensor) and logits.shape == upstream.shape
        if shape_fits and logits.requires_grad:
            (logits * torch.from_numpy(upstream)).sum().backward()
        return logits, gradients_in_one_row(net), net(given["base"]).detach()


def swapped(model: Any, layer: int, base: Any, source: Any, places: Sequence[int]) -> Any:
    """Run a model of `make_model` on `base`, a layer's output replaced at places by `source`'s.

    It walks through the layers of this one kind of model; logits (batch, length, classes).
    """
    x, other = model.embedding(base), model.embedding(source)
    for number, block in enumerate(model.layers):
        x, other = block(x), block(other)
        if number == layer:
            x = x.index_copy(1, places, other[:, places])
    return model.head(x)


def call_counterfactual(
    candidate: Callable[..., Any],
    terms: Terms,
    student: Weights,
    teacher: Weights,
    layer_map: Sequence[tuple[int, int]],
    base: np.ndarray,
    source: np.ndarray,
    places: Sequence[int],
) -> Any:
    """Let the candidate compare a student's swapped runs with a teacher's.

    Gives the loss, and the gradients that it sends to the student and to the teacher.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        small, large = make_model(student), make_model(teacher)

        def swap(model: Any, layer: int, base: Any, source: Any) -> Any:
            if not 0 <= layer < len(model.layers):
                raise IndexError(f"layer {layer} of a model with {len(model.layers)} layers")
            return swapped(model, layer, base, source, torch.tensor(list(places)))

        loss = candidate(
            student=small,
            teacher=large,
            swap=swap,
            layer_map=[tuple(pair) for pair in layer_map],
            **as_tensors({"base": base, "source": source}),
        )
        if not isinstance(loss, torch.Tensor) or loss.dim():
            raise Unusable("the loss must be a tensor without axes, to call backward on.")
        if loss.requires_grad:
            loss.backward()
        return loss, gradients_in_one_row(small), gradients_in_one_row(large)


def call_sized(
    candidate: Callable[..., Any],
    terms: Terms,
    parameters: Weights,
    buffers: Weights,
    tied: Sequence[tuple[str, str]],
    frozen: Sequence[str],
) -> Any:
    """Let the candidate measure a model of these arrays, in their own number formats.

    `tied` holds (new name, name of a parameter): both are the same parameter.
    """
    import torch
    from torch import nn

    must_be_function(candidate)
    with torch_as_it_was():
        model = nn.Module()
        for name, array in parameters.items():
            tensor = torch.from_numpy(array.copy())
            part = nn.Module()
            part.weight = nn.Parameter(tensor, requires_grad=name not in frozen)
            model.add_module(name, part)
        for new, name in tied:
            part = nn.Module()
            part.weight = model.get_submodule(name).weight
            model.add_module(new, part)
        for name, array in buffers.items():
            model.register_buffer(name, torch.from_numpy(array.copy()))
        return candidate(model=model)


class PlayedMachine:
    """A machine that grows slower while it works, and its clock; all times in seconds.

    `durations[i][k]` is what the k-th run of model i would take on an idle machine (the last one
    serves for all later runs); the n-th run of all takes `slowdown`ⁿ times as long.
    """

    def __init__(self, durations: Sequence[Sequence[float]], slowdown: float):
        self._durations, self._slowdown = durations, slowdown
        self._now, self.runs = 50.0, [0] * len(durations)

    def run(self, model: int) -> None:
        """Run one model once."""
        series = self._durations[model]
        duration = series[min(self.runs[model], len(series) - 1)]
        self._now += duration * self._slowdown ** sum(self.runs)
        self.runs[model] += 1

    def clock(self) -> float:
        """Tell the time in seconds."""
        return self._now


def call_race(
    candidate: Callable[..., Any],
    terms: Terms,
    durations: Sequence[Sequence[float]],
    slowdown: float,
    warm_up: int,
    repeats: int,
) -> Any:
    """Let the candidate time several models. Gives what it returns and how often each ran."""
    must_be_function(candidate)
    machine = PlayedMachine(durations, slowdown)
    result = candidate(
        runs=[lambda model=model: machine.run(model) for model in range(len(durations))],
        clock=machine.clock,
        warm_up=warm_up,
        repeats=repeats,
    )
    return result, machine.runs
