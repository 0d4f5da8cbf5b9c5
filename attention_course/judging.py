"""Turn the outcomes of all cases into a verdict: points, first difference, likely cause.

The same code judges the public cases inside a student's kernel and the hidden cases outside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attention_course.comparing import Difference, Tolerance, compare, same_outcome
from attention_course.outcomes import Outcome

# What to look at next when no known mistake fits, by the kind of the first difference.
NEXT_STEPS = {
    "shape": "Write the shape of every intermediate array beside its line, then compare.",
    "length": "Run your function on the case of `example(...)`: where does the list go astray?",
    "dtype": "Look at the `dtype` of what you return.",
    "type": "Print `type(...)` of what you return: where does it stop being what is asked for?",
    "nan": "NaN comes from 0/0, inf − inf or 0·inf: print the array before each division.",
    "values": "Take the failing case in hand with `example(...)` and check one entry on paper.",
    "raised": "Read the last line of the message first, then the line of yours that it names.",
    "signature": "Checks pass inputs by name: copy the first line of the exercise's function.",
    "timed out": "Look for a loop whose condition never changes.",
    "unusable": "The line “What was seen” names what does not fit. Of a function, look at the last "
    "line; of a module, at the names and shapes of its parts.",
    "changed input": "Work on a copy: `+=` and `x[...] = …` write into the array that came in.",
    "forbidden call": "The text of the exercise says what to do without. Write it by hand.",
    "not refused": "The text says which inputs must raise, and with which exception.",
    "not attempted": "Replace the line `raise NotImplementedError` with your answer.",
    "no result": "Run the notebook from the top (Kernel, Restart and Run All) and read the errors.",
}


@dataclass(frozen=True)
class Case:
    """One input of an exercise. `about` says in words what is special about it."""

    group: str
    inputs: Mapping[str, Any]
    about: str


@dataclass(frozen=True)
class KnownMistake:
    """A misconception's name and help, with what it gives on each case."""

    name: str
    cause: str
    next_step: str
    outcomes: Sequence[Outcome]


@dataclass(frozen=True)
class GroupResult:
    """How one group of cases went. `points` is what it earned, out of `out_of`."""

    name: str
    about: str
    points: float
    out_of: float
    passed: int
    total: int


@dataclass(frozen=True)
class Verdict:
    """The result of one exercise. `status` is "passed", "partly right", "not yet right",
    "not attempted" or "no result"; `failed_case` indexes the first case that failed."""

    exercise: str
    status: str
    points: float
    out_of: float
    groups: tuple[GroupResult, ...] = ()
    difference: Difference | None = None
    failed_case: int | None = None
    case_about: str = ""
    misconception: str = ""
    cause: str = ""
    next_step: str = ""
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed_cases(self) -> int:
        """How many cases passed."""
        return sum(group.passed for group in self.groups)

    @property
    def total_cases(self) -> int:
        """How many cases there were."""
        return sum(group.total for group in self.groups)


def _alike(a: Outcome, b: Outcome) -> bool:
    """Tell whether two candidates did the same, their own words in an exception aside."""
    both_raised = a.status == b.status == "raised"
    return (both_raised and a.error == b.error) or same_outcome(a, b)


def _recognise(
    outcomes: Sequence[Outcome],
    cases: Sequence[Case],
    failed: Sequence[int],
    mistakes: Sequence[KnownMistake],
) -> KnownMistake | None:
    """Find the mistake alike on every failed case.

    Who made two mistakes is told the one that fits the first group of cases that failed.
    """
    first_group = [i for i in failed if cases[i].group == cases[failed[0]].group]
    found = _fitting(outcomes, failed, mistakes)
    return found or _fitting(outcomes, first_group, mistakes)


def _fitting(
    outcomes: Sequence[Outcome], failed: Sequence[int], mistakes: Sequence[KnownMistake]
) -> KnownMistake | None:
    """Find the mistake alike on the cases `failed`; one alike on all cases goes first.

    One failed case must agree fully, since an exception's class alone says little.
    """
    fitting = [
        m
        for m in mistakes
        if all(_alike(outcomes[i], m.outcomes[i]) for i in failed)
        and any(same_outcome(outcomes[i], m.outcomes[i]) for i in failed)
    ]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    everywhere = [m for m in fitting if all(map(_alike, outcomes, m.outcomes))]
    return (everywhere or fitting)[0]


def judge(
    exercise: str,
    groups: Mapping[str, tuple[float, str]],
    cases: Sequence[Case],
    outcomes: Sequence[Outcome],
    expected: Sequence[Outcome],
    mistakes: Callable[[], Sequence[KnownMistake]],
    tolerance: Tolerance,
) -> Verdict:
    """Judge `outcomes` against `expected`, case by case.

    `groups` maps each group's name to (points, what it tests). A group earns its points when all
    of its cases pass; groups after the first count only if the first passes, so that an answer
    that is merely lucky on edge cases earns nothing. `mistakes` is only called when a case fails.
    """
    differences = [
        compare(got, want, tolerance) for got, want in zip(outcomes, expected, strict=True)
    ]
    failed = [i for i, difference in enumerate(differences) if difference]
    results: list[GroupResult] = []
    for name, (points, about) in groups.items():
        members = [i for i, case in enumerate(cases) if case.group == name]
        passed = sum(differences[i] is None for i in members)
        base_passed = not results or results[0].passed == results[0].total
        earned = points if base_passed and passed == len(members) else 0
        results.append(GroupResult(name, about, earned, points, passed, len(members)))
    points, out_of = sum(r.points for r in results), sum(r.out_of for r in results)
    if not failed:
        return Verdict(exercise, "passed", points, out_of, tuple(results))
    first = failed[0]
    difference = differences[first]
    mistake = _recognise(outcomes, cases, failed, mistakes())
    if difference.kind == "not attempted":
        status = "not attempted"
    else:
        status = "partly right" if points else "not yet right"
    return Verdict(
        exercise,
        status,
        points,
        out_of,
        tuple(results),
        difference,
        first,
        cases[first].about,
        mistake.name if mistake else "",
        mistake.cause if mistake else "",
        mistake.next_step if mistake else NEXT_STEPS[difference.kind],
        outcomes[first].details,
    )
