"""Write results into the course's gradebook. Only the main process does this."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc

from autograder.classrun.course import Course
from autograder.classrun.job import Result
from autograder.intake.staging import TIMESTAMP


def _timestamp(files: dict[str, bytes]) -> datetime | None:
    text = files.get(TIMESTAMP, b"").decode("utf-8", "replace").strip()
    return parse_utc(text) if text else None


def find_submission(gradebook: Gradebook, course: Course, student: str) -> Any | None:
    """Find a student's submission in the gradebook, or None."""
    try:
        return gradebook.find_submission(course.name, student)
    except MissingEntry:
        return None


def merge(gradebook: Gradebook, course: Course, result: Result) -> None:
    """Write one result as nbgrader's Autograde would have done; marks given by hand stay."""
    gradebook.db.rollback()  # forget what was read before: somebody may be marking meanwhile
    gradebook.update_or_create_student(result.student)
    timestamp = _timestamp(result.files)
    known = {"timestamp": timestamp} if timestamp else {}
    submission = gradebook.update_or_create_submission(course.name, result.student, **known)
    for notebook in submission.notebooks:
        for grade in notebook.grades:
            grade.auto_score = result.scores.get((notebook.name, grade.name))
            grade.needs_manual_grade = grade.auto_score is None or grade.manual_score is not None
        for comment in notebook.comments:
            comment.auto_comment = result.comments.get((notebook.name, comment.name))
        notebook.late_submission_penalty = None
    gradebook.db.commit()
    if submission.total_seconds_late > 0:
        _assign_penalties(course, submission)


def _assign_penalties(course: Course, submission: Any) -> None:
    """Let nbgrader's preprocessor ask the course's late policy."""
    penalties = AssignLatePenalties(config=course.config)
    for notebook in submission.notebooks:
        names = {
            "notebook": notebook.name,
            "assignment": course.name,
            "student": submission.student_id,
            "db_url": course.directory.db_url,
        }
        penalties.preprocess(nbformat.v4.new_notebook(), {"nbgrader": names})
