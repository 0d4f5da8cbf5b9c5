"""The course on disk: its configuration, its submissions, and what its jobs need."""

from __future__ import annotations

import copy
import json
import secrets
import tempfile
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from autograder.build import put_tools_on_path
from autograder.classrun.job import Assignment, Job, read_files, write_files
from autograder.course import CourseError, read_course
from autograder.grading.gradebooks import KnownCells
from autograder.grading.hidden import SECRET_FILE, course_secret
from autograder.grading.verdicts import METADATA_KEY
from autograder.intake.exporter import read_sources, register
from autograder.intake.staging import TIMESTAMP, Notes, stage, submission_folders
from autograder.masters import KERNELSPEC


class CannotGrade(CourseError):
    """The class cannot be graded at all; the message says why and what to do."""


class Course:
    """One assignment of a course that is to be graded."""

    def __init__(self, root: Path, assignment: str):
        """Open the course; raise CannotGrade if there is no such assignment."""
        self.config, self.directory = read_course(root.resolve())
        self.directory.assignment_id = assignment
        self.root, self.name = Path(self.directory.root), assignment
        self.config.CourseDirectory.root = str(self.root)  # plugins look for it here
        source = self.folder(self.directory.source_directory, ".")
        if not assignment or not any(source.glob("*.ipynb")):
            known = sorted({path.parent.name for path in source.parent.glob("*/*.ipynb")})
            raise CannotGrade(
                f"There is no assignment {assignment!r} in {source.parent}; "
                f"there is: {', '.join(known) or 'nothing'}."
            )
        self.sources = read_sources(self.directory, assignment)
        self.source_files = read_files(source)

    def folder(self, step: str, student: str) -> Path:
        """Return the folder of a student's files at one of nbgrader's steps."""
        return Path(self.directory.format_path(step, student, self.name))

    def autograded(self, student: str) -> Path:
        """Return the folder of a student's graded files."""
        return self.folder(self.directory.autograded_directory, student)

    def open_gradebook(self) -> Gradebook:
        """Open the gradebook; the assignment is entered if it is not there."""
        put_tools_on_path()
        register(self.directory, self.name, self.config)
        return Gradebook(self.directory.db_url, self.directory.course_id)

    def cells(self, gradebook: Gradebook) -> bytes:
        """Give what the gradebook knows of the assignment's cells, for comparing."""
        known = self._known_cells(gradebook)
        plain = {name: [cells.kernelspec, cells.cells] for name, cells in known.items()}
        return json.dumps(plain, sort_keys=True).encode()

    def _known_cells(self, gradebook: Gradebook) -> dict[str, KnownCells]:
        notebooks = gradebook.find_assignment(self.name).notebooks
        return {notebook.name: KnownCells.of(notebook) for notebook in notebooks}

    def submissions(self, pattern: str) -> dict[str, Path]:
        """Map student ids to folders; raise CannotGrade if no submission matches `pattern`."""
        submitted = self.root / self.directory.submitted_directory
        left_out = self.directory.student_id_exclude.split(",")
        found = {
            student: folder
            for student, folder in submission_folders(submitted, self.name, pattern).items()
            if student not in left_out
        }
        if not found:
            raise CannotGrade(
                f"There is no submission to grade: no folder {submitted}/STUDENT/{self.name} "
                f"with a STUDENT that matches {pattern!r}."
            )
        return found

    def secret(self, make: bool) -> bytes:
        """Return the course's secret; if there is none yet, keep a new one only if `make`."""
        if make or (self.root / SECRET_FILE).is_file():
            return course_secret(self.root)
        return secrets.token_bytes(32)

    def shared(self, gradebook: Gradebook, secret: bytes) -> Assignment:
        """Collect what all jobs need."""
        config, cells = copy.deepcopy(self.config), self._known_cells(gradebook)
        return Assignment(self.name, config, self.source_files, cells, secret)

    def job(self, student: str, folder: Path, assignment: Assignment) -> Job:
        """Make the clean copy of a submission and the job that grades it."""
        with tempfile.TemporaryDirectory(prefix="staged-") as scratch:
            target = Path(scratch, "clean")
            try:
                stage(folder, target, self.sources)
            except OSError as error:
                reason = f"The submission cannot be read ({error.strerror})."
                return self.blank_job(Job(student, {}, assignment), reason)
            return Job(student, read_files(target), assignment)

    def blank_job(self, job: Job, reason: str) -> Job:
        """Make a job that runs no line of the student's and records why theirs could not run."""
        files = {name: content for name, content in job.files.items() if name == TIMESTAMP}
        for name in self.sources:
            notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNELSPEC})
            notebook.metadata[METADATA_KEY] = Notes(could_not_run=reason).plain()
            files[f"{name}.ipynb"] = nbformat.writes(notebook).encode()
        return Job(job.student, files, job.assignment)

    def replace_autograded(self, student: str, files: dict[str, bytes], scratch: Path) -> None:
        """Put a student's graded files in place: all of them or none."""
        target = self.autograded(student)
        new, old = scratch / "new", scratch / "old"
        write_files(files, new)
        for path in new.rglob("*"):
            if path.is_file():
                path.chmod(0o664 if self.directory.groupshared else 0o444)  # as nbgrader does
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rename(old)
        new.rename(target)
