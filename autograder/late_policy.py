"""Late submissions: what they cost, by the rules in `late_policy.toml` in the course's folder.

    percent_per_day = 10   # of the points earned, for each day begun
    grace_hours = 2        # up to here a submission counts as in time; 0 if left out
    cap_percent = 50       # never more than this; 100 if left out

    [[extension]]          # as many as needed
    student = "ada"
    assignment = "02_attention"   # left out: every assignment
    hours = 48

Days count from the due date in the gradebook, extensions added. nbgrader takes the penalty from
the marks there are when a notebook is graded; `autograder late` works all of them out again, also
after marks were given by hand, without running anything.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.plugins import BasePlugin

FILE_NAME = "late_policy.toml"
HOUR, DAY = 3600.0, 86_400.0
LIMITS = {"percent_per_day": 100.0, "grace_hours": 24.0 * 365, "cap_percent": 100.0}


class LatePolicyError(Exception):
    """`late_policy.toml` cannot be used; the message says where and why."""


@dataclass(frozen=True)
class Extension:
    """More time for one student, in one assignment or in all ("")."""

    student: str
    hours: float
    assignment: str = ""


@dataclass(frozen=True)
class LatePolicy:
    """What a late submission costs."""

    percent_per_day: float
    grace_hours: float = 0.0
    cap_percent: float = 100.0
    extensions: tuple[Extension, ...] = ()

    def extra_seconds(self, student: str, assignment: str) -> float:
        """Return the longest extension that a student has in an assignment."""
        hours = [
            extension.hours
            for extension in self.extensions
            if extension.student == student and extension.assignment in ("", assignment)
        ]
        return max(hours, default=0.0) * HOUR

    def penalty(self, student: str, assignment: str, earned: float, seconds_late: float) -> float:
        """Return how many of the points earned a student loses."""
        late = seconds_late - self.extra_seconds(student, assignment)
        if late <= self.grace_hours * HOUR:
            return 0.0
        percent = min(self.percent_per_day * math.ceil(late / DAY), self.cap_percent)
        return round(max(earned, 0.0) * percent / 100, 4)


def _number(table: dict[str, Any], name: str, most: float, default: float | None) -> float:
    value = table.get(name, default)
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or not 0 <= value <= most:
        seen = "nothing" if value is None else repr(value)
        raise LatePolicyError(f"{name} must be a number from 0 to {most:g}; there is {seen}")
    return float(value)


def _only(table: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise LatePolicyError(
            f"{where} has no setting {unknown[0]!r}; there are: {', '.join(sorted(known))}"
        )


def _extension(item: Any, number: int) -> Extension:
    where = f"extension {number}"
    if not isinstance(item, dict):
        raise LatePolicyError(f"{where} is no table; begin it with [[extension]]")
    _only(item, {"student", "assignment", "hours"}, where)
    for name, default in (("student", None), ("assignment", "")):
        if not isinstance(item.get(name, default), str):
            raise LatePolicyError(f"{where}: {name} must be text in quotes")
    try:
        hours = _number(item, "hours", LIMITS["grace_hours"], None)
    except LatePolicyError as error:
        raise LatePolicyError(f"{where}: {error}") from None
    return Extension(item["student"], hours, item.get("assignment", ""))


def parse_policy(text: str) -> LatePolicy:
    """Read a policy. Raises LatePolicyError for anything that is not understood."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LatePolicyError(f"it is no TOML: {error}") from None
    _only(table, {*LIMITS, "extension"}, "the file")
    items = table.get("extension", [])
    if not isinstance(items, list):
        raise LatePolicyError("extensions begin with [[extension]], in double brackets")
    defaults = {"percent_per_day": None, "grace_hours": 0.0, "cap_percent": 100.0}
    numbers = {name: _number(table, name, LIMITS[name], value) for name, value in defaults.items()}
    return LatePolicy(
        **numbers, extensions=tuple(_extension(item, n) for n, item in enumerate(items, 1))
    )


def read_policy(root: Path) -> LatePolicy | None:
    """Read the course's policy, or return None if it has none."""
    path = root / FILE_NAME
    try:
        return parse_policy(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (LatePolicyError, OSError, UnicodeDecodeError) as error:
        raise LatePolicyError(f"{path}: {error}.") from None


class LatePolicyPlugin(BasePlugin):
    """nbgrader's late-submission plugin with the rules of `late_policy.toml`.

    A policy that cannot be read costs nobody a grade: it is said as an error, and `autograder
    late` and `autograder export` refuse until it is put right.
    """

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        """Return the penalty in points; None where there is no policy."""
        root = self.config.CourseDirectory.get("root", ".")  # nbgrader's default: here
        try:
            policy = read_policy(Path(root))
        except LatePolicyError as error:
            self.log.error("No late penalty. %s", error)
            return None
        if policy is None:
            return None
        assignment = self.parent.assignment_id  # nbgrader does not tell it in any other way
        return policy.penalty(student_id, assignment, score, total_seconds_late)


@dataclass(frozen=True)
class Change:
    """A penalty that is not what it was."""

    student: str
    before: float
    after: float


def _seconds_late(submission: SubmittedAssignment) -> float:
    # nbgrader cannot add its own kind of extension to a due date that is none.
    return 0.0 if submission.assignment.duedate is None else submission.total_seconds_late


def apply_policy(gradebook: Gradebook, assignment: str, policy: LatePolicy) -> list[Change]:
    """Work out all penalties of an assignment again and store them; return what changed."""
    changes = []
    for submission in gradebook.assignment_submissions(assignment):
        before, after = 0.0, 0.0
        for notebook in submission.notebooks:
            penalty = policy.penalty(
                submission.student_id, assignment, notebook.score, _seconds_late(submission)
            )
            before += notebook.late_submission_penalty or 0.0
            after += penalty
            notebook.late_submission_penalty = penalty or None
        if before != after:
            changes.append(Change(submission.student_id, before, after))
    gradebook.db.commit()
    return sorted(changes, key=lambda change: change.student)


def unknown_names(gradebook: Gradebook, policy: LatePolicy) -> list[str]:
    """List students and assignments of extensions that the gradebook does not know."""
    students = {student.id for student in gradebook.students}
    assignments = {"", *(item.name for item in gradebook.assignments)}
    found = [
        *(f"student {e.student!r}" for e in policy.extensions if e.student not in students),
        *(
            f"assignment {e.assignment!r}"
            for e in policy.extensions
            if e.assignment not in assignments
        ),
    ]
    return sorted(set(found))
