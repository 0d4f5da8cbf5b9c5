"""nbgrader preprocessors: hand hidden inputs to the kernel, turn its answers into marks.

Both are set in `nbgrader_config.py`, one before nbgrader's Execute and one after it. They run
outside the kernel: nothing that a student's code prints, patches or raises reaches them, only
arrays in plain JSON, which are compared with the reference.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from attention_course import codec
from attention_course.checking import HIDDEN_CASES_FILE
from attention_course.checks_file import FILE_NAME as CHECKS_FILE
from attention_course.judging import Case
from autograder.exercises import of_chapter
from autograder.grading.hidden import course_secret, submission_seed
from autograder.grading.source_search import SourceSearch
from autograder.grading.verdicts import (
    METADATA_KEY,
    check_cells,
    hide,
    judge_cell,
    task,
    verdict_output,
)
from autograder.intake.exporter import read_sources
from autograder.masters import grade_id


def write_without_following_links(path: Path, text: str) -> None:
    """Write a file in a folder that a student may have filled: never through a planted link."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def students_files(folder: Path) -> dict[str, bytes]:
    """Read what a student has put beside the notebook."""
    ours = {CHECKS_FILE, HIDDEN_CASES_FILE}
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".ipynb" and path.name not in ours
    }


@functools.lru_cache(maxsize=64)
def hidden_cases(chapter: str, exercise_id: str, seed: int) -> list[Case]:
    """Make the cases of a submission, once for its kernel and its verdict."""
    return of_chapter(chapter)[exercise_id].make_cases(seed)


class HiddenCases(NbGraderPreprocessor):
    """Write the inputs of fresh hidden cases beside the notebook, before it is executed."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Draw the cases of this submission; the seed is recorded in the notebook's metadata."""
        info = resources["nbgrader"]
        root, folder = Path(self.parent.parent.coursedir.root), Path(resources["metadata"]["path"])
        seed = submission_seed(
            course_secret(root), info["student"], info["assignment"], nb, students_files(folder)
        )
        nb.metadata.setdefault(METADATA_KEY, {})["seed"] = str(seed)
        tasks = {
            exercise.id: task(exercise, hidden_cases(info["assignment"], exercise.id, seed))
            for _, exercise in check_cells(nb, info["assignment"])
        }
        write_without_following_links(folder / HIDDEN_CASES_FILE, codec.dumps(tasks))
        return nb, resources


class Verdicts(NbGraderPreprocessor):
    """Replace the outputs of every check cell by a verdict on its hidden cases."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge all check cells with the recorded seed."""
        seed, info = int(nb.metadata[METADATA_KEY]["seed"]), resources["nbgrader"]
        folder = Path(resources["metadata"]["path"])
        source = read_sources(self.parent.parent.coursedir, info["assignment"])[info["notebook"]]
        search = SourceSearch(nb, source, students_files(folder))
        for cell, exercise in check_cells(nb, info["assignment"]):
            cases = hidden_cases(info["assignment"], exercise.id, seed)
            verdict = search.judged(judge_cell(nb, cell, exercise, cases), exercise, cell)
            if verdict.difference and verdict.difference.kind == "timed out":
                nb.metadata[METADATA_KEY].setdefault("timed_out", []).append(grade_id(cell))
            failed = verdict.failed_case
            cell.outputs = [
                verdict_output(hide(verdict), cases[failed] if failed is not None else None)
            ]
        (folder / HIDDEN_CASES_FILE).unlink(missing_ok=True)
        return nb, resources
