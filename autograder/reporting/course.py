"""Open the gradebook of a course for reading."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory

from autograder.course import CourseError


@contextlib.contextmanager
def open_gradebook(course: CourseDirectory, assignment: str) -> Iterator[Gradebook]:
    """Open the gradebook; raise CourseError if the assignment is not in it."""
    path = Path(course.db_url.removeprefix("sqlite:///"))
    if course.db_url.startswith("sqlite:///") and not path.is_file():
        raise CourseError(f"There is no gradebook at {path}: grade an assignment first.")
    with Gradebook(course.db_url, course.course_id) as gradebook:
        try:
            gradebook.find_assignment(assignment)
        except MissingEntry:
            known = ", ".join(item.name for item in gradebook.assignments) or "none yet"
            raise CourseError(
                f"The gradebook has no assignment {assignment!r}. It has: {known}."
            ) from None
        yield gradebook
