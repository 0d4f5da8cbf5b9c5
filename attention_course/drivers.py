"""How a candidate is run on a case: one function for each kind of exercise.

A driver holds no secret: it takes the candidate, the inputs of one case and the exercise's terms,
and returns an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attention_course.outcomes import Outcome, Terms
from attention_course.running import run_case

Driver = Callable[[Any, Mapping[str, Any], Terms], Outcome]


def call_function(candidate: Any, inputs: Mapping[str, Any], terms: Terms) -> Outcome:
    """Call the candidate with the case's inputs as keyword arguments."""
    if not callable(candidate):
        kind = type(candidate).__name__
        return Outcome("unusable", message=f"a function is expected, this is of type {kind}.")
    return run_case(candidate, inputs, terms)


DRIVERS: dict[str, Driver] = {"function": call_function}


def run_all(
    driver: str, candidate: Any, all_inputs: Sequence[Mapping[str, Any]], terms: Terms
) -> list[Outcome]:
    """Run the candidate on every case; after the first timeout the rest is not tried."""
    outcomes: list[Outcome] = []
    for inputs in all_inputs:
        if outcomes and outcomes[-1].status == "timed out":
            outcomes.append(outcomes[-1])
        else:
            outcomes.append(DRIVERS[driver](candidate, inputs, terms))
    return outcomes
