"""Find a course's folders and its gradebook as nbgrader itself does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGrader
from nbgrader.coursedir import CourseDirectory

CONFIG = "nbgrader_config.py"


class ReportingError(Exception):
    """There is nothing to report; the message says why and what to do."""


def open_course(folder: Path) -> CourseDirectory:
    """Read the configuration of the course in `folder`."""
    if not (folder / CONFIG).is_file():
        raise ReportingError(
            f"{folder} is no course folder: it has no {CONFIG}. Start in the course's folder, or "
            "name it with --course-dir."
        )
    app = NbGrader()
    with contextlib.chdir(folder):
        app.initialize([])
    return app.coursedir


@contextlib.contextmanager
def open_gradebook(course: CourseDirectory, assignment: str) -> Iterator[Gradebook]:
    """Open the gradebook; raise ReportingError if the assignment is not in it."""
    path = Path(course.db_url.removeprefix("sqlite:///"))
    if course.db_url.startswith("sqlite:///") and not path.is_file():
        raise ReportingError(f"There is no gradebook at {path}: grade an assignment first.")
    with Gradebook(course.db_url, course.course_id) as gradebook:
        try:
            gradebook.find_assignment(assignment)
        except MissingEntry:
            known = ", ".join(item.name for item in gradebook.assignments) or "none yet"
            raise ReportingError(
                f"The gradebook has no assignment {assignment!r}. It has: {known}."
            ) from None
        yield gradebook
