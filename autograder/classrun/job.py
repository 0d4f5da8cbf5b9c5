"""Grade one submission in a folder and a gradebook of its own. This is what a worker runs.

A job brings all that it needs and hands back all that it made, as plain data: it can run in any
process on any machine that has the course's packages, and cannot harm another one's results.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import logging
import tempfile
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from distributed import get_worker
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from autograder.grading.hidden import SECRET_FILE
from autograder.grading.status import Status, read_status
from autograder.masters import grade_id

GRAVEST_FIRST = ("could not run", "timed out", "repaired", "graded")
# nbgrader's own use of its database library warns dozens of times for each submission.
warnings.filterwarnings("ignore", category=SAWarning)
_one_at_a_time = threading.Lock()  # nbgrader changes the working folder of its process


@dataclass(frozen=True)
class Assignment:
    """What all jobs of a run share."""

    name: str
    config: Config
    source: dict[str, bytes]  # files of the assignment's source folder
    gradebook: bytes  # an SQLite file that knows the assignment's cells and no student
    secret: bytes


@dataclass(frozen=True)
class Job:
    """One submission: the files of its clean copy, as `staging.py` makes it."""

    student: str
    files: dict[str, bytes]
    assignment: Assignment


@dataclass(frozen=True)
class Result:
    """What grading made of one submission. Cells are named by (notebook, cell)."""

    student: str
    files: dict[str, bytes]  # of the autograded folder
    scores: dict[tuple[str, str], float | None]  # None: waits for a grader
    comments: dict[tuple[str, str], str | None]
    status: Status
    seconds: dict[str, float]  # by cell

    def notebooks(self) -> dict[str, NotebookNode]:
        """Read the autograded notebooks by name."""
        return read_notebooks(self.files)


def _no_waiting(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous = OFF")


@contextlib.contextmanager
def short_lived_gradebooks() -> Iterator[None]:
    """Have SQLite not wait for the disk; only for gradebooks that nobody would miss."""
    event.listen(Engine, "connect", _no_waiting)
    try:
        yield
    finally:
        event.remove(Engine, "connect", _no_waiting)


def read_files(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder by their relative paths."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Write files by their relative paths into a folder, which is made."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_notebooks(files: dict[str, bytes]) -> dict[str, NotebookNode]:
    """Parse the notebooks among the files at the top of a folder."""
    return {
        name.removesuffix(".ipynb"): nbformat.reads(content.decode("utf-8"), as_version=4)
        for name, content in files.items()
        if name.endswith(".ipynb") and "/" not in name
    }


class OneSubmission(Autograde):
    """nbgrader's Autograde for one student whose id may be of any shape; errors are raised."""

    student = ""

    def init_notebooks(self) -> None:
        """Take the student's folder as it is called: nbgrader itself would read a pattern."""
        folder = Path(self._format_source(self.coursedir.assignment_id, self.student))
        self.notebooks = sorted(str(path) for path in folder.glob("*.ipynb"))

    def convert_notebooks(self) -> None:
        """Do what Autograde does for each student, without hooks and without hiding errors."""
        names = self.coursedir.assignment_id, self.student
        self.init_assignment(*names)
        for path in self.notebooks:
            self.convert_single_notebook(path)
        self.set_permissions(*names)


def _private_config(config: Config, root: Path, gradebook: Path) -> Config:
    """Point the course's configuration at a private folder; the submission is clean already."""
    private = copy.deepcopy(config)
    private.CourseDirectory.root = str(root)
    private.CourseDirectory.db_url = f"sqlite:///{gradebook}"
    private.Autograde.exporter_class = "nbconvert.exporters.NotebookExporter"
    return private


def _scores_and_comments(url: str, job: Job) -> tuple[dict, dict]:
    with Gradebook(url) as gradebook:
        submission = gradebook.find_submission(job.assignment.name, job.student)
        scores = {
            (notebook.name, grade.name): None if grade.needs_manual_grade else grade.auto_score
            for notebook in submission.notebooks
            for grade in notebook.grades
        }
        comments = {
            (notebook.name, comment.name): comment.auto_comment
            for notebook in submission.notebooks
            for comment in notebook.comments
        }
    return scores, comments


def combined_status(notebooks: dict[str, NotebookNode]) -> Status:
    """Give a submission the gravest status of its notebooks and all their notes."""
    found = [read_status(notebook) for notebook in notebooks.values()]
    word = min((status.word for status in found), key=GRAVEST_FIRST.index)
    return Status(word, tuple(note for status in found for note in status.notes))


def _seconds(notebook: NotebookNode) -> dict[str, float]:
    """Read how long each cell ran from the times that nbclient writes down."""
    found = {}
    for number, cell in enumerate(notebook.cells, 1):
        times = cell.metadata.get("execution", {})
        try:
            began, ended = (
                datetime.datetime.fromisoformat(times[name])
                for name in ("iopub.execute_input", "shell.execute_reply")
            )
        except (KeyError, ValueError):
            continue  # the cell was not run, or never answered
        found[grade_id(cell) or f"cell {number}"] = (ended - began).total_seconds()
    return found


def _scratch_folder() -> str | None:
    """Name the worker's own folder, which is removed even if the worker is killed."""
    try:
        return get_worker().local_directory
    except ValueError:  # not in a worker
        return None


def grade_submission(job: Job) -> Result:
    """Grade one submission with nbgrader's own converter."""
    assignment = job.assignment
    with (
        _one_at_a_time,
        tempfile.TemporaryDirectory(prefix="job-", dir=_scratch_folder()) as folder,
        short_lived_gradebooks(),
    ):
        root = Path(folder).resolve()
        gradebook = root / "gradebook.db"
        gradebook.write_bytes(assignment.gradebook)
        config = _private_config(assignment.config, root, gradebook)
        directory = CourseDirectory(config=config, assignment_id=assignment.name)
        (root / SECRET_FILE).write_bytes(assignment.secret)
        for step, student, files in (
            (directory.source_directory, ".", assignment.source),
            (directory.submitted_directory, job.student, job.files),
        ):
            write_files(files, Path(directory.format_path(step, student, assignment.name)))
        converter = OneSubmission(coursedir=directory, config=config)
        converter.student = job.student
        converter.log.setLevel(logging.CRITICAL)  # what is worth saying is in the status
        converter.start()
        graded = directory.format_path(directory.autograded_directory, job.student, assignment.name)
        files = read_files(Path(graded))
        scores, comments = _scores_and_comments(directory.db_url, job)
    notebooks = read_notebooks(files)
    seconds = {name: s for notebook in notebooks.values() for name, s in _seconds(notebook).items()}
    return Result(job.student, files, scores, comments, combined_status(notebooks), seconds)
