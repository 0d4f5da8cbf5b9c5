"""What an exercise is: data. One module per chapter in `autograder/exercises/` lists them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attention_course import codec
from attention_course.comparing import Tolerance, same_outcome
from attention_course.drivers import DRIVERS, run_all
from attention_course.judging import Case, KnownMistake, Verdict, judge
from attention_course.outcomes import Outcome, Terms

PUBLIC_SEED = 0
INPUT_DIGITS = 6
MISTAKE_DIGITS = 8
REFERENCE_SECONDS = 300.0  # a busy machine must not turn a slow reference into a wrong expectation
REFUSALS = ("ValueError", "TypeError", "IndexError", "KeyError")  # what an exercise may ask for


@dataclass(frozen=True)
class Misconception:
    """A wrong implementation with the help for a student who has made exactly this mistake.

    `function` has the exercise's signature; its name is the misconception's name. `cause` is one
    sentence that says what went wrong; `next_step` says what to look at, never the answer.
    """

    function: Callable[..., Any]
    cause: str
    next_step: str

    @property
    def name(self) -> str:
        """Name of the misconception, as verdicts report it."""
        return self.function.__name__


class OutcomesOnDemand(Sequence):
    """What a candidate does on each case, found out when somebody looks at it.

    Most known mistakes are told from an answer by a single case: the others need not be run.
    """

    def __init__(self, run: Callable[[Case], Outcome], cases: Sequence[Case]):
        self._run, self._cases = run, cases
        self._known: dict[int, Outcome] = {}
        self._hanging: Outcome | None = None

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, index: int) -> Outcome:
        """Return the outcome on one case; after the first timeout the rest is not tried."""
        case = self._cases[index]
        if index not in self._known:
            outcome = self._hanging or self._run(case)
            if outcome.status == "timed out":
                self._hanging = outcome
            self._known[index] = outcome
        return self._known[index]


@dataclass(frozen=True)
class Group:
    """Cases that earn their points together. `about` says in words what they test."""

    points: float
    about: str


@dataclass(frozen=True)
class Exercise:
    """One exercise and everything that is needed to check it.

    `cases(rng)` yields `Case`s, other ones for every generator, all groups covered each time.
    `reference` is an independent implementation. Both it and every candidate are called with a
    case's inputs as keyword arguments named in `parameters`. `outputs` names what is returned;
    with several names a tuple. `forbidden` lists library functions (dotted names, or patterns
    such as `*softmax*`) that answers must do without; the text of the exercise must say so.
    `equivalent_mutants` maps a mutant's description, as `make audit` prints it, to the reason why
    it is not wrong. `without_mutants` is the reason why there are none at all, or empty.
    """

    id: str
    title: str
    asks: str
    parameters: tuple[str, ...]
    groups: Mapping[str, Group]
    cases: Callable[[np.random.Generator], Iterable[Case]]
    reference: Callable[..., Any]
    misconceptions: tuple[Misconception, ...]
    accepted: tuple[Callable[..., Any], ...]
    outputs: tuple[str, ...] = ("result",)
    driver: str = "function"
    seconds: float = 2.0
    forbidden: tuple[str, ...] = ()
    tolerance: Tolerance = field(default_factory=Tolerance)
    equivalent_mutants: Mapping[str, str] = field(default_factory=dict)
    without_mutants: str = ""

    def __post_init__(self) -> None:
        if self.driver not in DRIVERS:
            raise ValueError(f"exercise {self.id}: no driver {self.driver!r} in {sorted(DRIVERS)}")
        if not self.groups:
            raise ValueError(f"exercise {self.id}: it has no group of cases")

    @property
    def points(self) -> float:
        """What the exercise is worth: the sum over its groups."""
        return sum(group.points for group in self.groups.values())

    @property
    def terms(self) -> Terms:
        """What is asked of a candidate apart from being right."""
        return Terms(self.outputs, self.seconds, self.forbidden)

    @property
    def signature(self) -> str:
        """The signature that students fill in."""
        return f"{self.id}({', '.join(self.parameters)})"

    def make_cases(self, seed: int) -> list[Case]:
        """Make the cases of `seed`; the exercise's id is mixed in, so exercises don't share inputs.

        Floats are rounded to six digits, so that the checks file holds exactly what was checked.
        Raises ValueError if a case has a wrong group or wrong inputs, or a group has no case.
        """
        rng = np.random.default_rng([seed, zlib.crc32(self.id.encode())])
        cases = [
            Case(case.group, codec.rounded(dict(case.inputs), INPUT_DIGITS), case.about)
            for case in self.cases(rng)
        ]
        for case in cases:
            if case.group not in self.groups:
                raise ValueError(f"exercise {self.id}: a case is in no known group: {case.group}")
            if not set(case.inputs) <= set(self.parameters):
                raise ValueError(f"exercise {self.id}: inputs {sorted(case.inputs)} don't fit")
        empty = set(self.groups) - {case.group for case in cases}
        if empty:
            raise ValueError(f"exercise {self.id}: no case in group {sorted(empty)}")
        return cases

    def run(self, candidate: Any, cases: list[Case]) -> list[Outcome]:
        """Run a candidate in this process. Only for code that the course itself wrote."""
        inputs = [case.inputs for case in cases]
        return run_all(self.driver, candidate, inputs, self.terms)

    def expected(self, cases: list[Case]) -> list[Outcome]:
        """Give what the reference does on `cases`; it may use what answers must not.

        Raises RuntimeError if it gives no result and refuses nothing either: with nothing to
        compare to, every answer would be right.
        """
        inputs = [case.inputs for case in cases]
        terms = replace(self.terms, forbidden=(), seconds=REFERENCE_SECONDS)
        outcomes = run_all(self.driver, self.reference, inputs, terms)
        for case, outcome in zip(cases, outcomes, strict=True):
            refused = outcome.status == "raised" and outcome.error in REFUSALS
            if outcome.status != "returned" and not refused:
                what = f"{outcome.error or outcome.status}: {outcome.message}"
                raise RuntimeError(
                    f"exercise {self.id}: no result of its reference on “{case.about}” ({what}). "
                    "Nothing was graded with it; mend the reference or run again."
                )
        return outcomes

    def known_mistakes(self, cases: list[Case]) -> list[KnownMistake]:
        """Give what each misconception does on `cases`."""

        def outcomes(function: Callable[..., Any]) -> OutcomesOnDemand:
            return OutcomesOnDemand(lambda case: self.run(function, [case])[0], cases)

        return [
            KnownMistake(m.name, m.cause, m.next_step, outcomes(m.function))
            for m in self.misconceptions
        ]

    def judge(
        self, outcomes: list[Outcome], cases: list[Case], mistakes: list[KnownMistake] | None = None
    ) -> Verdict:
        """Judge outcomes of a candidate on `cases` against the reference."""
        return judge(
            self.id,
            {name: (group.points, group.about) for name, group in self.groups.items()},
            cases,
            outcomes,
            self.expected(cases),
            lambda: self.known_mistakes(cases) if mistakes is None else mistakes,
            self.tolerance,
        )

    def public_plain(self) -> dict[str, Any]:
        """Give the exercise as the checks file beside the notebook holds it."""
        cases = self.make_cases(PUBLIC_SEED)
        expected = self.expected(cases)
        return {
            "title": self.title,
            "asks": self.asks,
            "driver": self.driver,
            "terms": self.terms.to_plain(),
            "tolerance": {
                "relative": self.tolerance.relative,
                "absolute": self.tolerance.absolute,
            },
            "groups": {name: [g.points, g.about] for name, g in self.groups.items()},
            "cases": [
                {"group": case.group, "inputs": dict(case.inputs), "about": case.about}
                for case in cases
            ],
            "expected": [outcome.without_details() for outcome in expected],
            "mistakes": [
                {
                    "name": mistake.name,
                    "cause": mistake.cause,
                    "next_step": mistake.next_step,
                    "outcomes": [
                        None  # keeps the file small: most mistakes are right on some cases
                        if same_outcome(outcome, wanted)
                        else codec.rounded(outcome.without_details(), MISTAKE_DIGITS)
                        for outcome, wanted in zip(mistake.outcomes, expected, strict=True)
                    ],
                }
                for mistake in self.known_mistakes(cases)
            ],
        }
