"""What the audit of one exercise works on: a report, and a trial for each seed."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from attention_course.comparing import Tolerance, compare
from attention_course.judging import Case, KnownMistake, Verdict, judge
from attention_course.outcomes import Outcome
from autograder.exercise import PUBLIC_SEED, Exercise

GLOBAL_STATE: dict[str, Callable[[], Any]] = {
    "NumPy's random state": lambda: [
        part.tobytes() if isinstance(part, np.ndarray) else part for part in np.random.get_state()
    ],
    "Python's random state": random.getstate,
    "the warning filters": lambda: list(warnings.filters),
    "NumPy's error state": np.geterr,
    "NumPy's print options": np.get_printoptions,
    "PyTorch's random state": lambda: torch.get_rng_state().numpy().tobytes(),
    "PyTorch's default dtype": torch.get_default_dtype,
    "PyTorch's threads": torch.get_num_threads,
    "PyTorch's gradient mode": torch.is_grad_enabled,
}


@dataclass(frozen=True)
class Failure:
    """Something that must not be so. `kind` is one word, `sentence` says it to a contributor."""

    kind: str
    sentence: str


@dataclass
class Report:
    """What the audit found out about one exercise. `facts` is what `build/audit.json` holds."""

    exercise: str
    facts: dict[str, Any] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fail(self, kind: str, sentence: str) -> None:
        """Add a failure, once."""
        failure = Failure(kind, f"{self.exercise}: {sentence}")
        if failure not in self.failures:
            self.failures.append(failure)


@dataclass(frozen=True)
class Trial:
    """The cases of one seed and what is known about them."""

    exercise: Exercise
    seed: int
    cases: list[Case]
    expected: list[Outcome]
    mistakes: list[KnownMistake]

    @property
    def where(self) -> str:
        """Name the trial in a sentence."""
        return "on the public cases" if self.seed == PUBLIC_SEED else f"with seed {self.seed}"

    def verdict(self, outcomes: Sequence[Outcome]) -> Verdict:
        """Judge outcomes as a student's are judged."""
        groups = {name: (group.points, group.about) for name, group in self.exercise.groups.items()}
        return judge(
            self.exercise.id,
            groups,
            self.cases,
            outcomes,
            self.expected,
            lambda: self.mistakes,
            self.exercise.tolerance,
        )


def watched_run(report: Report, exercise: Exercise, name: str, candidate: Any, cases: list[Case]):
    """Run a candidate; it is a failure if a global state is another one afterwards."""
    before = {part: probe() for part, probe in GLOBAL_STATE.items()}
    outcomes = exercise.run(candidate, cases)
    for part, probe in GLOBAL_STATE.items():
        if probe() != before[part]:
            report.fail("global state", f"checking {name} changes {part}.")
    return outcomes


def make_trial(report: Report, exercise: Exercise, seed: int) -> Trial:
    """Draw the cases of a seed and run the reference and the misconceptions on them."""
    cases = exercise.make_cases(seed)
    expected = watched_run(report, exercise, "the reference", exercise.reference, cases)
    mistakes = [
        KnownMistake(
            m.name,
            m.cause,
            m.next_step,
            watched_run(report, exercise, f"the misconception `{m.name}`", m.function, cases),
        )
        for m in exercise.misconceptions
    ]
    return Trial(exercise, seed, cases, expected, mistakes)


def _array_margin(got: np.ndarray, want: np.ndarray, tolerance: Tolerance) -> float:
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind:
        return math.inf
    if want.dtype.kind != "f":
        return 0.0 if np.array_equal(got, want) else math.inf
    limit = tolerance.for_dtype(got.dtype)
    a, b = np.atleast_1d(got).astype(np.float64), np.atleast_1d(want).astype(np.float64)
    with np.errstate(all="ignore"):
        ratio = np.abs(a - b) / (limit.absolute + limit.relative * np.abs(b))
    ratio[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    return float(np.nan_to_num(ratio, nan=math.inf, posinf=math.inf).max(initial=0.0))


def margin(got: Outcome, want: Outcome, tolerance: Tolerance) -> float:
    """Give the largest difference over the difference that is allowed there.

    Infinite for what cannot be mistaken: another shape, NaN, an exception, other integers.
    """
    difference = compare(got, want, tolerance)
    if difference is None or difference.kind != "values":
        return math.inf if difference else 0.0
    return max(
        _array_margin(got.outputs[name], array, tolerance)
        for name, array in want.outputs.items()
        if name in got.outputs
    )
