"""How a candidate is run on a case: one driver for each kind of exercise.

A driver holds no secret: it takes the candidate, the inputs of one case and the exercise's terms,
and returns an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from attention_course.drivers import (
    caching,
    decoding,
    devices,
    distilling,
    functions,
    modules,
    pairs,
    partly,
    sequences,
    steps,
    tensors,
    timing,
    trained,
    watching,
)
from attention_course.outcomes import Outcome, Terms
from attention_course.running import run_case


@dataclass(frozen=True)
class Driver:
    """One way to run a candidate.

    `call(candidate, terms, **inputs)` runs it on the stored inputs of a case and returns what is
    compared. `prepare(inputs)` turns stored inputs into what the candidate gets, for `example`.
    """

    call: Callable[..., Any]
    prepare: Callable[[Mapping[str, Any]], dict[str, Any]] = dict


DRIVERS: dict[str, Driver] = {
    "function": Driver(functions.call_function),
    "tensor_function": Driver(tensors.call_tensor_function, tensors.as_tensors),
    "module": Driver(modules.call_module, tensors.as_tensors),
    "sequence_function": Driver(sequences.call_sequence_function),
    "partly_compared": Driver(partly.call_partly_compared, tensors.as_tensors),
    "measured_function": Driver(watching.call_measured_function, tensors.as_tensors),
    "moved_batch": Driver(devices.call_moving, tensors.as_tensors),
    "portable_module": Driver(devices.call_portable_module, tensors.as_tensors),
    "timing": Driver(timing.call_timing),
    "mixed_loss": Driver(steps.call_mixed_loss, tensors.as_tensors),
    "accumulated_step": Driver(steps.call_accumulated_step, tensors.as_tensors),
    "search": Driver(decoding.call_search, decoding.with_model),
    "cached_decoder": Driver(decoding.call_cached_decoder, decoding.for_one_step),
    "encoder_pair": Driver(pairs.call_pair, pairs.as_encoders),
    "state_dict": Driver(pairs.call_state_dict, tensors.as_tensors),
    "cached_layer": Driver(caching.call_cached_layer, tensors.as_tensors),
    "initialiser": Driver(distilling.call_initialiser, distilling.two_models),
    "distillation_step": Driver(distilling.call_distillation_step, distilling.two_models),
    "swap": Driver(distilling.call_swap, distilling.two_models),
    "counterfactual": Driver(distilling.call_counterfactual, distilling.two_models),
    "sized": Driver(distilling.call_sized),
    "race": Driver(distilling.call_race),
    "trainer": Driver(trained.call_trainer, tensors.as_tensors),
    "read_model": Driver(trained.call_with_reader, trained.with_reader),
}


def run_all(
    driver: str, candidate: Any, all_inputs: Sequence[Mapping[str, Any]], terms: Terms
) -> list[Outcome]:
    """Run the candidate on every case; after the first timeout the rest is not tried."""
    outcomes: list[Outcome] = []
    call = partial(DRIVERS[driver].call, candidate, terms)
    for inputs in all_inputs[:1]:
        DRIVERS[driver].prepare(inputs)  # imports PyTorch before the first case's clock starts
    for inputs in all_inputs:
        if outcomes and outcomes[-1].status == "timed out":
            outcomes.append(outcomes[-1])
        else:
            outcomes.append(run_case(call, inputs, terms))
    return outcomes
