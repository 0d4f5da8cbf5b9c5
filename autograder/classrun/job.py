"""Grade one submission in a folder and a gradebook of its own. This is what a worker runs.

A job brings all that it needs and hands back all that it made, as plain data: it can run in any
process on any machine that has the course's packages, and cannot harm another one's results.
"""

from __future__ import annotations

import copy
import datetime
import logging
import shutil
import sys
import tempfile
import threading
import uuid
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import find_all_files, setenv
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograder.grading.gradebooks import REPLACED, KnownCells, Rows
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
    cells: dict[str, KnownCells]  # what the gradebook knows of each notebook
    secret: bytes
    run: str = field(default_factory=lambda: uuid.uuid4().hex)  # names the run that it is of


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
    """nbgrader's Autograde for one student, without a gradebook; errors are raised.

    The notebook goes through all preprocessors in one go: nbgrader's own writes and reads it, with
    all checks, between sanitising and grading.
    """

    def grade(self, job: Job) -> dict[str, Rows]:
        """Grade a job whose files are in place; return the scores and comments by notebook."""
        names = self.coursedir.assignment_id, job.student
        BaseConverter.init_assignment(self, *names)
        graded = Path(self._format_dest(*names))
        graded.mkdir(parents=True, exist_ok=True)
        self._copy_source_files(graded)
        rows = {}
        for path in sorted(Path(self._format_source(*names)).glob("*.ipynb")):
            known = job.assignment.cells.get(path.stem)
            if known is None:
                continue
            rows[path.stem] = Rows.blank(known)
            info = {"student": job.student, "assignment": names[0], "notebook": path.stem}
            info |= {"db_url": self.coursedir.db_url, "known": known, "rows": rows[path.stem]}
            place = ResourcesDict(name=path.stem, path=str(graded))
            resources = ResourcesDict(nbgrader=info, metadata=place)
            notebook = self._processed(nbformat.read(path, as_version=4), resources)
            nbformat.write(notebook, graded / path.name)
        return rows

    def _copy_source_files(self, graded: Path) -> None:
        """Put the course's own files over a student's, as Autograde does."""
        name = self.coursedir.assignment_id
        source = self.coursedir.format_path(self.coursedir.source_directory, ".", name)
        kept = {Path(source, file) for file in self.exclude_overwriting.get(name, [])}
        for file in map(Path, find_all_files(source, [*self.coursedir.ignore, "*.ipynb"])):
            if file not in kept:
                target = graded / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                shutil.copy(file, target)

    def _processed(self, notebook: NotebookNode, resources: Any) -> NotebookNode:
        """Send a notebook through all preprocessors of the configuration."""
        with setenv(NBGRADER_EXECUTION="autograde"):
            for given in (*self.sanitize_preprocessors, *self.autograde_preprocessors):
                kind = import_item(given) if isinstance(given, str) else given
                if kind is not AssignLatePenalties:  # main asks the late policy: it knows the date
                    preprocessor = REPLACED.get(kind, kind)(parent=self.exporter)
                    notebook, resources = preprocessor(notebook, resources)
        return notebook


class Workplace:
    """A course folder of this process's own, with one assignment and one submission at a time."""

    def __init__(self, assignment: Assignment):
        self.run = assignment.run
        self._scratch = tempfile.TemporaryDirectory(prefix="place-", dir=_scratch_folder())
        root = Path(self._scratch.name).resolve()
        config = copy.deepcopy(assignment.config)
        config.CourseDirectory.root = str(root)
        self._directory = CourseDirectory(config=config, assignment_id=assignment.name)
        (root / SECRET_FILE).write_bytes(assignment.secret)
        write_files(assignment.source, self._folder(self._directory.source_directory, "."))
        self._converter = OneSubmission(coursedir=self._directory, config=config)
        self._converter.exporter = NotebookExporter(parent=self._converter, config=config)
        self._converter.log.setLevel(logging.CRITICAL)  # what is worth saying is in the status

    def _folder(self, step: str, student: str) -> Path:
        return Path(self._directory.format_path(step, student, self._directory.assignment_id))

    def grade(self, job: Job) -> tuple[dict[str, Rows], dict[str, bytes]]:
        """Grade a job; return scores and comments by notebook, and the graded files."""
        submitted = self._folder(self._directory.submitted_directory, job.student)
        graded = self._folder(self._directory.autograded_directory, job.student)
        try:
            write_files(job.files, submitted)
            rows = self._converter.grade(job)
            return rows, read_files(graded)
        finally:
            for folder in (submitted, graded):
                shutil.rmtree(folder, ignore_errors=True)


_workplace: Workplace | None = None


def _place_for(assignment: Assignment) -> Workplace:
    global _workplace
    if _workplace is None or _workplace.run != assignment.run:
        _workplace = Workplace(assignment)
    return _workplace


def _scores_and_comments(all_rows: dict[str, Rows]) -> tuple[dict, dict]:
    scores = {
        (notebook, grade.name): None if grade.needs_manual_grade else grade.auto_score
        for notebook, rows in all_rows.items()
        for grade in rows.grades.values()
    }
    comments = {
        (notebook, comment.name): comment.auto_comment
        for notebook, rows in all_rows.items()
        for comment in rows.comments.values()
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
    """Name the own folder of a Dask worker, which is removed even if the worker is killed."""
    if "distributed" not in sys.modules:
        return None
    try:
        return sys.modules["distributed"].get_worker().local_directory
    except ValueError:  # not in a worker
        return None


def grade_submission(job: Job) -> Result:
    """Grade one submission with nbgrader's own preprocessors."""
    with _one_at_a_time:
        rows, files = _place_for(job.assignment).grade(job)
    scores, comments = _scores_and_comments(rows)
    notebooks = read_notebooks(files)
    seconds = {name: s for notebook in notebooks.values() for name, s in _seconds(notebook).items()}
    return Result(job.student, files, scores, comments, combined_status(notebooks), seconds)
