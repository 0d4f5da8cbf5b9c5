"""Exercises that ask for a PyTorch module: built, given weights, run forward and backward."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attention_course.drivers.tensors import (
    as_tensors,
    split_outputs,
    torch_as_it_was,
    with_gradients,
)
from attention_course.outcomes import Terms, Unusable

MOST_NAMES = 8


def _listed(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:MOST_NAMES]) + more


def build_module(candidate: Any, build: Mapping[str, Any]) -> Any:
    """Build the candidate, a class, with the arguments `build`, in float64.

    Raises Unusable if it is no class or builds no module.
    """
    from torch import nn

    if not isinstance(candidate, type):
        what = "an object made from it" if isinstance(candidate, nn.Module) else "something else"
        raise Unusable(f"the class itself is expected, this is {what}.")
    module = candidate(**build)
    if not isinstance(module, nn.Module):
        raise Unusable("the class does not inherit from `nn.Module`.")
    return module.double()


def load_weights(module: Any, weights: Mapping[str, Any]) -> None:
    """Copy arrays into the module's parameters and buffers of the same names.

    Raises Unusable with the names or shapes that do not fit.
    """
    import torch

    places = module.state_dict(keep_vars=True)
    missing = set(weights) - set(places)
    extra = {name for name, _ in module.named_parameters()} - set(weights)
    if missing or extra:
        has = f" It has {_listed(extra)}, which should not be there." if extra else ""
        lacks = f" It lacks {_listed(missing)}." if missing else ""
        raise Unusable(f"its parameters are not those that the exercise names.{lacks}{has}")
    for name, array in weights.items():
        if tuple(places[name].shape) != array.shape:
            shape, wanted = tuple(places[name].shape), array.shape
            raise Unusable(f"its parameter `{name}` has the shape {shape}; {wanted} is expected.")
    with torch.no_grad():
        for name, array in weights.items():
            places[name].copy_(torch.from_numpy(array))


def call_module(
    candidate: Any,
    terms: Terms,
    build: Mapping[str, Any],
    inputs: Mapping[str, Any],
    weights: Mapping[str, Any] | None = None,
    upstream: Any = None,
    training: bool = False,
) -> Any:
    """Build the candidate with `build`, load `weights` by name, call it with `inputs`.

    An output named "gradient of X" is the gradient for X, an input or a parameter; "number of
    parameters" counts the parameters that an optimiser would get.
    """
    with torch_as_it_was():
        module = build_module(candidate, build)
        if weights is not None:
            load_weights(module, weights)
        module.train(training)
        own, wanted = split_outputs(terms.outputs)
        counted = "number of parameters" in own
        own = [name for name in own if name != "number of parameters"]
        given, parameters = as_tensors(inputs), dict(module.named_parameters())
        for name in set(wanted) & set(given):
            given[name].requires_grad_()
        result = module(**given)
        leaves = {name: given[name] if name in given else parameters[name] for name in wanted}
        result = with_gradients(result, own, leaves, as_tensors(upstream))
        if not counted:
            return result
        count = sum(parameter.numel() for parameter in parameters.values())
        parts = result if len(own) + len(wanted) > 1 else (result,)
        return (*parts[: len(own)], count, *parts[len(own) :])
