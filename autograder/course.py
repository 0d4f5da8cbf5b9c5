"""A course folder, read as nbgrader reads it when it is started in there."""

from __future__ import annotations

import contextlib
from pathlib import Path

from nbgrader.apps import AutogradeApp
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

CONFIG = "nbgrader_config.py"


class CourseError(Exception):
    """A command cannot do its work in this course; the message says why and what to do."""


def read_course(root: Path) -> tuple[Config, CourseDirectory]:
    """Return nbgrader's configuration of a course folder and what it says about folders.

    Raises CourseError if the folder is none.
    """
    if not (root / CONFIG).is_file():
        raise CourseError(
            f"{root} is no course folder: it has no {CONFIG}. Start in the course's folder, or "
            "name it with --course-dir."
        )
    app = AutogradeApp()
    with contextlib.chdir(root):
        app.initialize([])
    return app.config, app.coursedir
