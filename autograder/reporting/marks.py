"""Collect marks, verdicts and statuses of an assignment from gradebook and graded notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Grade, Gradebook
from nbgrader.coursedir import CourseDirectory

from autograder.grading.status import Status, read_status
from autograder.grading.verdicts import METADATA_KEY
from autograder.intake.staging import submission_folders
from autograder.masters import CHECK_PREFIX, grade_id

GRAVEST_LAST = ("graded", "repaired", "timed out", "could not run")
NOT_SUBMITTED = Status("not submitted")
NOT_GRADED = Status("not graded", ("There is a submission, and no graded notebook.",))
LONGEST_MESSAGE = 300
LONGEST_TIME = 86_400  # seconds; times come from the student's kernel and may be anything


@dataclass(frozen=True)
class Mark:
    """One graded cell of one student. `points` is None while there is no mark.

    `recheck`: a mark was given by hand and the submission was graded again since.
    """

    exercise: str
    points: float | None
    out_of: float
    written: bool = False
    verdict: str = ""
    misconception: str = ""
    message: str = ""
    seconds: float | None = None
    recheck: bool = False


@dataclass(frozen=True)
class Student:
    """One student's marks in one assignment, with the status of the submission."""

    id: str
    status: Status
    marks: tuple[Mark, ...] = ()
    penalty: float = 0.0
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""

    @property
    def complete(self) -> bool:
        """Whether every cell has a mark."""
        return bool(self.marks) and all(mark.points is not None for mark in self.marks)

    @property
    def earned(self) -> float:
        """The points given so far, with the late penalty taken off."""
        return max(0.0, sum(mark.points or 0.0 for mark in self.marks) - self.penalty)

    @property
    def total(self) -> float | None:
        """The mark, or None as long as a part of it is missing."""
        return self.earned if self.complete else None


@dataclass(frozen=True)
class Table:
    """All students of an assignment. `exercises` maps ids to points, in the notebook's order."""

    assignment: str
    exercises: dict[str, float]
    students: tuple[Student, ...]

    @property
    def out_of(self) -> float:
        """The most that can be earned."""
        return sum(self.exercises.values())


def points_given(grade: Grade) -> float | None:
    """Return what nbgrader counts for a cell, or None where a mark is still to be given."""
    if grade.manual_score is not None:
        return grade.manual_score + (grade.extra_credit or 0.0)
    if grade.needs_manual_grade or grade.auto_score is None:
        return None
    return grade.auto_score + (grade.extra_credit or 0.0)


def cell_seconds(cell: NotebookNode | None) -> float | None:
    """Return how long a cell ran, as the notebook records it, or None if it does not say."""
    times = cell.metadata.get("execution", {}) if cell is not None else {}
    try:
        began, ended = (
            datetime.fromisoformat(times[key])
            for key in ("iopub.execute_input", "shell.execute_reply")
        )
        return min(max((ended - began).total_seconds(), 0.0), LONGEST_TIME)
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


def _verdict(cell: NotebookNode | None) -> dict[str, Any]:
    """Read from a check cell what Verdicts wrote there."""
    for output in cell.get("outputs", []) if cell is not None else []:
        said = output.get("metadata", {}).get(METADATA_KEY)
        if said:
            return {
                "verdict": said.get("status", ""),
                "misconception": said.get("misconception", ""),
                "message": _one_line(said.get("message", "")),
            }
    return {}


def _mark(grade: Grade, cells: dict[str, NotebookNode]) -> Mark:
    cell = cells.get(grade.name)
    exercise = grade.name.removeprefix(CHECK_PREFIX)
    times = [cell_seconds(cells.get(name)) for name in (grade.name, exercise)]
    known = [seconds for seconds in times if seconds is not None]
    written = not grade.name.startswith(CHECK_PREFIX)
    return Mark(
        exercise,
        points_given(grade),
        grade.max_score,
        written,
        **({} if written else _verdict(cell)),
        seconds=round(sum(known), 3) if known and not written else None,
        recheck=bool(grade.needs_manual_grade and grade.manual_score is not None),
    )


def _order(course: CourseDirectory, assignment: str) -> dict[str, int]:
    """Map the ids of graded cells to their place in the source notebooks."""
    folder = Path(course.format_path(course.source_directory, ".", assignment))
    names = [
        grade_id(cell)
        for path in sorted(folder.glob("*.ipynb"))
        for cell in nbformat.read(path, 4).cells
    ]
    return {name: place for place, name in enumerate(names) if name}


def _read_graded(path: Path) -> NotebookNode | None:
    """Read a graded notebook, None if there is none; validating it would take most of the time."""
    try:
        return nbformat.v4.reads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def read_table(course: CourseDirectory, gradebook: Gradebook, assignment: str) -> Table:
    """Collect everything that is known of an assignment, students without submission included."""
    order = _order(course, assignment)

    def place(name: str) -> tuple[int, str]:
        return order.get(name, len(order)), name

    known = gradebook.find_assignment(assignment)
    cells = [cell for notebook in known.notebooks for cell in notebook.grade_cells]
    cells.sort(key=lambda cell: place(cell.name))
    exercises = {cell.name.removeprefix(CHECK_PREFIX): cell.max_score for cell in cells}
    submissions = {item.student_id: item for item in gradebook.assignment_submissions(assignment)}
    folders = submission_folders(Path(course.root, course.submitted_directory), assignment, "*")
    people = {student.id: student for student in gradebook.students}
    students = []
    for name in sorted({*people, *folders}):
        person = people.get(name)
        facts = ("first_name", "last_name", "email", "lms_user_id")
        about = {fact: getattr(person, fact, None) or "" for fact in facts}
        submission = submissions.get(name)
        if submission is None:
            status = NOT_GRADED if name in folders else NOT_SUBMITTED
            students.append(Student(name, status, **about))
            continue
        statuses, marks = [], []
        folder = Path(course.format_path(course.autograded_directory, name, assignment))
        for notebook in submission.notebooks:
            graded = _read_graded(folder / f"{notebook.name}.ipynb")
            statuses.append(read_status(graded) if graded is not None else NOT_GRADED)
            by_id = {grade_id(cell): cell for cell in graded.cells} if graded else {}
            grades = sorted(notebook.grades, key=lambda grade: place(grade.name))
            marks += [_mark(grade, by_id) for grade in grades]
        penalty = float(submission.late_submission_penalty or 0.0)
        students.append(Student(name, _gravest(statuses), tuple(marks), penalty, **about))
    return Table(assignment, exercises, tuple(students))


def _gravest(statuses: list[Status]) -> Status:
    if not statuses or NOT_GRADED in statuses:
        return NOT_GRADED
    return max(statuses, key=lambda status: GRAVEST_LAST.index(status.word))
