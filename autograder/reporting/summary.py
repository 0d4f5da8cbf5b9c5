"""Work out from a table of marks what a teacher wants to know: numbers only, no layout."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.exercises import of_chapter
from autograder.reporting.marks import Mark, Student, Table

EXAMPLES = 5  # student ids named beside a number
REASONS = 3  # of a status that are told
ROWS = 40  # of any table; what is beyond is counted


@dataclass(frozen=True)
class ExerciseRow:
    """How a class did in one exercise. Students that did not attempt it count as not passed."""

    exercise: str
    out_of: float
    students: int
    attempted: int
    passed: int
    mean: float
    median_seconds: float | None
    longest_seconds: float | None

    @property
    def rate(self) -> float:
        """The share of students with full marks, in percent."""
        return 100 * self.passed / self.students if self.students else 0.0


@dataclass(frozen=True)
class Group:
    """Students who have something in common: a mistake, a status, a reason to be looked at."""

    about: tuple[str, ...]
    students: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.students)

    @property
    def examples(self) -> str:
        """The first few ids."""
        more = len(self.students) - EXAMPLES
        return ", ".join(self.students[:EXAMPLES]) + (f" and {more} more" if more > 0 else "")


def _groups(pairs: Iterable[tuple[tuple[str, ...], str]]) -> list[Group]:
    """Gather (what, student) pairs, the commonest first."""
    gathered: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for about, student in pairs:
        gathered[about].append(student)
    made = [Group(about, tuple(students)) for about, students in gathered.items()]
    return sorted(made, key=lambda group: (-group.count, group.about))


def ran(table: Table) -> list[Student]:
    """List the students whose notebook was run."""
    return [s for s in table.students if s.marks and s.status.word != "could not run"]


def _checks(students: Iterable[Student]) -> Iterable[tuple[Student, Mark]]:
    return ((student, mark) for student in students for mark in student.marks if not mark.written)


def exercise_rows(table: Table) -> list[ExerciseRow]:
    """Describe every checked exercise, in the notebook's order."""
    by_exercise: dict[str, list[Mark]] = defaultdict(list)
    for _, mark in _checks(ran(table)):
        by_exercise[mark.exercise].append(mark)
    rows = []
    for exercise, out_of in table.exercises.items():
        marks = by_exercise.get(exercise)
        if not marks:
            continue
        points = [mark.points or 0.0 for mark in marks]
        times = [mark.seconds for mark in marks if mark.seconds is not None]
        rows.append(
            ExerciseRow(
                exercise,
                out_of,
                len(marks),
                sum(mark.verdict != "not attempted" for mark in marks),
                sum(value >= out_of for value in points),
                statistics.fmean(points),
                statistics.median(times) if times else None,
                max(times, default=None),
            )
        )
    return rows


def misconceptions(table: Table) -> list[Group]:
    """List recognised mistakes: exercise, what students did (the cause), name."""
    exercises = of_chapter(table.assignment)
    causes = {
        (name, mistake.name): mistake.cause
        for name, exercise in exercises.items()
        for mistake in exercise.misconceptions
    }
    return _groups(
        (
            (
                mark.exercise,
                causes.get((mark.exercise, mark.misconception), mark.misconception),
                mark.misconception,
            ),
            student.id,
        )
        for student, mark in _checks(ran(table))
        if mark.misconception
    )


def unrecognised(table: Table) -> list[Group]:
    """List differences that fit no known mistake and that several students share."""
    groups = _groups(
        ((mark.exercise, mark.message), student.id)
        for student, mark in _checks(ran(table))
        if mark.message and not mark.misconception and mark.verdict != "not attempted"
    )
    return [group for group in groups if group.count > 1]


def statuses(table: Table) -> list[Group]:
    """Group submissions by status and reasons; of many reasons the first ones stand for all."""

    def reasons(notes: tuple[str, ...]) -> str:
        more = len(notes) - REASONS
        return " ".join(notes[:REASONS]) + (f" And {more} more." if more > 0 else "")

    return _groups(
        ((student.status.word, reasons(student.status.notes)), student.id)
        for student in table.students
    )


def _reasons(student: Student) -> Iterable[str]:
    if student.status.word in ("could not run", "timed out", "not graded"):
        yield f"The submission: {student.status.word}."
    waiting = [mark.exercise for mark in student.marks if mark.points is None]
    if waiting and student.status.word != "could not run":
        yield f"Waits for a mark: {', '.join(waiting)}."
    again = [mark.exercise for mark in student.marks if mark.recheck]
    if again:
        yield f"Graded again after it was marked by hand: {', '.join(again)}."
    checks = [mark for mark in student.marks if not mark.written]
    tried = [mark for mark in checks if mark.verdict not in ("", "not attempted")]
    if tried and not any(mark.points for mark in checks):
        yield "No points, though exercises were attempted."
    broken = any(mark.verdict == "no result" for mark in checks)
    if broken and student.status.word in ("graded", "repaired"):
        yield "No result could be recorded in some exercise."


def need_a_look(table: Table) -> list[Group]:
    """List what somebody has to decide or check, with the students concerned."""
    return _groups(((reason,), s.id) for s in table.students for reason in _reasons(s))


def check_points(table: Table) -> list[float]:
    """The points of every run submission in the checks alone."""
    return [sum(m.points or 0.0 for m in s.marks if not m.written) for s in ran(table)]
