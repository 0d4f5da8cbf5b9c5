"""Say whose marks a regrade would change, from what to what, and why."""

from __future__ import annotations

from dataclasses import dataclass

from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook

from autograder.classrun.course import Course
from autograder.classrun.job import Result, read_files, read_notebooks
from autograder.classrun.merging import find_submission
from autograder.grading.verdicts import METADATA_KEY
from autograder.masters import grade_id

Marks = dict[tuple[str, str], float | None]


@dataclass(frozen=True)
class Change:
    """What would change for one student; `before` is None if they were not graded yet."""

    before: float | None
    after: float
    cells: tuple[str, ...]  # one sentence for each cell whose mark changes


def verdicts(notebooks: dict[str, NotebookNode]) -> dict[tuple[str, str], str]:
    """Read the verdict of every check of autograded notebooks, in words."""
    found = {}
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                kept = output.get("metadata", {}).get(METADATA_KEY)
                if kept:
                    mistake = f" ({kept['misconception']})" if kept.get("misconception") else ""
                    found[name, grade_id(cell)] = f"{kept['status']}{mistake}"
    return found


def _word(mark: float | None) -> str:
    return "no mark" if mark is None else f"{mark:g}"


def _total(marks: Marks) -> float:
    return sum(mark or 0 for mark in marks.values())


def find_change(gradebook: Gradebook, course: Course, result: Result) -> Change | None:
    """Compare a result with what the gradebook says now; None if no mark changes.

    A mark given by hand counts before and after.
    """
    submission = find_submission(gradebook, course, result.student)
    grades = {
        (notebook.name, grade.name): grade
        for notebook in (submission.notebooks if submission else ())
        for grade in notebook.grades
    }
    by_hand = {k: grade.manual_score for k, grade in grades.items()}
    before: Marks = {
        k: grade.auto_score if by_hand[k] is None else by_hand[k] for k, grade in grades.items()
    }
    after: Marks = {
        k: score if by_hand.get(k) is None else by_hand[k] for k, score in result.scores.items()
    }
    changed = [k for k in after if before.get(k) != after[k]]
    if not changed:
        return None
    old = verdicts(read_notebooks(read_files(course.autograded(result.student))))
    new = verdicts(result.notebooks())
    cells = tuple(
        f"{k[1]}: {_word(before.get(k))} -> {_word(after[k])}; "
        f"was {old.get(k, 'not checked')}, is {new.get(k, 'not checked')}"
        for k in changed
    )
    return Change(_total(before) if submission else None, _total(after), cells)


def describe(student: str, change: Change) -> list[str]:
    """Put a change into lines of text."""
    before = "not graded yet" if change.before is None else f"{change.before:g}"
    return [f"{student}: {before} -> {change.after:g}", *(f"    {text}" for text in change.cells)]
