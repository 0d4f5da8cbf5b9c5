"""Grade a corpus as one class, with plain nbgrader commands, and read what became of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry

from autograder.demo.run import Course
from autograder.grading.status import Status, read_status
from autograder.masters import CHECK_PREFIX, ROOT
from corpus.describing import CHAPTER, FILE, LAST_CHECK, Entry, place

SETTINGS = """
# Short limits, so that what hangs on purpose does not hold up the tests.
c.SandboxedExecute.timeout = 8
c.SandboxedExecute.submission_seconds = 60
"""
RELEASED_FROM = ROOT / "solutions" / CHAPTER
NEIGHBOUR = Entry("", "everything right, graded between the others")


def write_short_chapter(folder: Path) -> None:
    """Write the source of the chapter as far as its fourth exercise, which is quick to grade."""
    shutil.copytree(RELEASED_FROM, folder)
    notebook = nbformat.read(folder / FILE, 4)
    notebook.cells = notebook.cells[: place(notebook, LAST_CHECK) + 1]
    nbformat.write(notebook, folder / FILE)


@dataclass(frozen=True)
class Result:
    """What became of one submission. `marks` is None if the gradebook does not know it."""

    marks: dict[str, float | None] | None
    needs_grader: bool
    comment: str
    status: Status | None

    @property
    def earned(self) -> dict[str, float] | None:
        """The automatic points that are not 0; None if there are no automatic scores."""
        if self.marks is None or any(mark is None for mark in self.marks.values()):
            return None
        return {name: mark for name, mark in self.marks.items() if mark}


@dataclass
class ClassRun:
    """A course folder with a class in it. Students' ids are also their folders' names."""

    root: Path
    entries: Sequence[Entry]
    every: int = 10  # a neighbour stands after so many others
    exit_status: int = -1
    neighbours: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.course = Course(self.root)

    def prepare(self) -> None:
        """Release the chapter and write all submissions."""
        self.course.empty()
        with (self.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(SETTINGS)
        write_short_chapter(self.root / "solutions" / CHAPTER)
        assert self.course.nbgrader("generate_assignment", CHAPTER) == 0, self.log()
        self.release = nbformat.read(self.root / "course" / CHAPTER / FILE, 4)
        order = sorted(self.entries, key=lambda entry: entry.student)
        for entry in order:
            self.hand_in(entry)
        for entry in [*order[:: self.every], order[-1]]:
            name = f"{entry.student}~neighbour"  # sorts behind it
            if name not in self.neighbours:
                self.neighbours.append(name)
                NEIGHBOUR.write(self.release, self.folder(name), self.root)

    def folder(self, student: str) -> Path:
        """Where a student's submission lies."""
        return self.root / "submitted" / student / CHAPTER

    def hand_in(self, entry: Entry) -> None:
        """Write a submission, in the place of an earlier one."""
        shutil.rmtree(self.folder(entry.student), ignore_errors=True)
        entry.write(self.release, self.folder(entry.student), self.root)

    def grade(self, *arguments: str) -> int:
        """Grade the class; return nbgrader's exit status."""
        self.exit_status = self.course.nbgrader("autograde", CHAPTER, *arguments)
        return self.exit_status

    def log(self) -> str:
        """Everything that nbgrader said."""
        return self.course.log.read_text(encoding="utf-8", errors="replace")

    def notebook(self, student: str) -> Path:
        """Where the autograded notebook lies."""
        return self.root / "autograded" / student / CHAPTER / FILE

    def result(self, student: str) -> Result:
        """Read what became of a submission."""
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}", "attention") as gradebook:
            try:
                found = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student)
            except MissingEntry:
                return Result(None, False, "", None)
            marks = {
                grade.name.removeprefix(CHECK_PREFIX): grade.auto_score
                for grade in found.grades
                if grade.name.startswith(CHECK_PREFIX)
            }
            needs_grader = any(grade.needs_manual_grade for grade in found.grades)
            comments = " ".join(comment.auto_comment or "" for comment in found.comments)
        path = self.notebook(student)
        status = read_status(nbformat.read(path, 4)) if path.is_file() else None
        return Result(marks, needs_grader, comments, status)


def graded_class(root: Path, entries: Sequence[Entry]) -> ClassRun:
    """Prepare and grade a class."""
    names = [entry.student for entry in entries]
    assert len(set(names)) == len(names), "two submissions of one student"
    run = ClassRun(root, entries)
    run.prepare()
    run.grade()
    return run


def processes_with(word: str) -> list[str]:
    """List the processes of this machine whose command line holds a word."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if word.encode() in Path("/proc", name, "cmdline").read_bytes():
                found.append(name)
        except OSError:
            continue
    return found
