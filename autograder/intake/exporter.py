"""Makes `nbgrader autograde` read clean copies of submissions; see `staging.py`."""

from __future__ import annotations

import functools
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.intake.staging import stage, submission_folders
from autograder.kernels.warm import warm_up


class IntakeExporter(NotebookExporter):
    """The exporter of `nbgrader autograde`.

    nbgrader makes it once, after it has listed the submissions and before it opens the first one:
    this is the moment to put clean copies in their place. Only this run is pointed at the copies;
    formgrader and everything else go on looking at what students handed in.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        converter = self.parent
        if getattr(converter, "coursedir", None) is not None:
            self._stage_all(converter)

    def _stage_all(self, converter: Any) -> None:
        original: CourseDirectory = converter.coursedir
        root, assignment = Path(original.root), original.assignment_id
        scratch = Path(tempfile.mkdtemp(prefix=".staged-", dir=root))
        weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        folders = submission_folders(
            root / original.submitted_directory, assignment, original.student_id
        )
        source = Path(original.format_path(original.source_directory, ".", assignment))
        warm_up(source, folders.values())
        sources = read_sources(original, assignment)
        register(original, assignment, converter.config)
        directory = copy_of(original)
        directory.submitted_directory = scratch.name
        converter.coursedir = directory
        converter.assignments = {}
        for student, folder in folders.items():
            target = Path(directory.format_path(scratch.name, student, assignment))
            stage(folder, target, sources)
            converter.assignments[str(target)] = [str(target / f"{name}.ipynb") for name in sources]


def register(course: CourseDirectory, assignment: str, config: Config) -> None:
    """Enter an assignment into the gradebook, if it is not there, from its source folder.

    A fresh clone has the release in `course/` already, so `nbgrader generate_assignment` skips it
    and leaves the gradebook without it. Here nbgrader makes it once more, in a scratch folder.
    """
    with Gradebook(course.db_url, course.course_id) as gradebook:
        if any(known.name == assignment for known in gradebook.assignments):
            return
    with tempfile.TemporaryDirectory(prefix=".staged-", dir=course.root) as scratch:
        directory = copy_of(course)
        directory.release_directory = Path(scratch).name
        directory.assignment_id, directory.student_id = assignment, "."
        GenerateAssignment(coursedir=directory, config=config).start()


def copy_of(course: CourseDirectory) -> CourseDirectory:
    """Copy nbgrader's view of the course's folders, to be pointed elsewhere for one purpose."""
    values = {name: getattr(course, name) for name in course.trait_names(config=True)}
    return CourseDirectory(**values)


def read_sources(directory: CourseDirectory, assignment: str) -> dict[str, Any]:
    """Read the assignment's source notebooks by name."""
    folder = Path(directory.format_path(directory.source_directory, ".", assignment))
    return {
        path.stem: _read(path, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.ipynb"))
    }


@functools.lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> NotebookNode:
    """Read a notebook, which nobody may change: every submission is compared with it."""
    return nbformat.read(path, as_version=4)
