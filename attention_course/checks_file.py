"""Read `checks.json`, the public cases of a chapter, from beside its notebook."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention_course import codec
from attention_course.comparing import Tolerance
from attention_course.drivers import DRIVERS
from attention_course.judging import Case, KnownMistake
from attention_course.outcomes import Outcome, Terms

FILE_NAME = "checks.json"


class CheckSetupError(Exception):
    """A check cannot run: its file is missing, damaged, or knows no such exercise."""


@dataclass(frozen=True)
class PublicExercise:
    """One exercise as students get it: what to run, what is expected, which mistakes are known."""

    id: str
    title: str
    asks: str
    driver: str
    terms: Terms
    tolerance: Tolerance
    groups: dict[str, tuple[float, str]]
    cases: list[Case]
    expected: list[Outcome]
    mistakes: list[KnownMistake]

    @classmethod
    def from_plain(cls, exercise_id: str, plain: dict[str, Any]) -> PublicExercise:
        """Read one exercise of a decoded checks file.

        A mistake's outcome of None stands for the expected one.
        """
        expected = [Outcome.from_plain(item) for item in plain["expected"]]
        return cls(
            id=exercise_id,
            title=plain["title"],
            asks=plain["asks"],
            driver=plain["driver"],
            terms=Terms.from_plain(plain["terms"]),
            tolerance=Tolerance(**plain["tolerance"]),
            groups={name: tuple(value) for name, value in plain["groups"].items()},
            cases=[Case(**case) for case in plain["cases"]],
            expected=expected,
            mistakes=[
                KnownMistake(
                    mistake["name"],
                    mistake["cause"],
                    mistake["next_step"],
                    [
                        right if item is None else Outcome.from_plain(item)
                        for item, right in zip(mistake["outcomes"], expected, strict=True)
                    ],
                )
                for mistake in plain["mistakes"]
            ],
        )


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckSetupError(
            f"{path} is damaged ({error}). Take a fresh copy of the file from the course."
        ) from None


@functools.lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> dict[str, Any]:
    """Read a checks file; its exercises stay JSON, since to decode all of them takes longer."""
    with _reading(path):
        return dict(json.loads(path.read_text(encoding="utf-8"))["dict"])


@functools.lru_cache(maxsize=64)
def _exercise(path: Path, changed: int, exercise_id: str) -> PublicExercise:
    with _reading(path):
        plain = codec.from_json(_read(path, changed)[exercise_id])
        return PublicExercise.from_plain(exercise_id, plain)


def load_exercise(exercise_id: str, folder: Path | None = None) -> PublicExercise:
    """Return one exercise of the checks file in `folder` (default: the working folder).

    Raises CheckSetupError with what to do if the file or the exercise is not there.
    """
    path = (folder or Path.cwd()) / FILE_NAME
    if not path.is_file():
        raise CheckSetupError(
            f"There is no {FILE_NAME} in {path.parent}. It lies beside the chapter's notebook: "
            "open the notebook from the course folder, and copy both files if you move it."
        )
    changed = path.stat().st_mtime_ns
    exercises = _read(path, changed)
    if exercise_id not in exercises:
        known = ", ".join(exercises)
        raise CheckSetupError(f"No exercise is called {exercise_id!r}. This chapter has: {known}.")
    return _exercise(path, changed, exercise_id)


def example(exercise_id: str, case: int = 1) -> dict[str, Any]:
    """Return the inputs of one public case, to try by hand: `softmax(**example("softmax", 2))`.

    PyTorch exercises get tensors. A module's example has the parts `build` (for the class),
    `inputs` (for its call) and, as a rule, `weights`. Cases count from 1, as the panel of `check`
    does. Raises CheckSetupError for an unknown exercise or case.
    """
    exercise = load_exercise(exercise_id)
    cases = exercise.cases
    if not (isinstance(case, int) and 1 <= case <= len(cases)):
        raise CheckSetupError(
            f"{exercise_id!r} has the cases 1 to {len(cases)}; {case!r} is none of them."
        )
    return DRIVERS[exercise.driver].prepare(copy.deepcopy(dict(cases[case - 1].inputs)))
