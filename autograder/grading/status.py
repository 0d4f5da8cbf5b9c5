"""The status of a submission: graded, repaired, timed out or could not run, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import nbformat
from nbconvert.preprocessors import Preprocessor
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.grading.gradebooks import Rows, opened_rows
from autograder.grading.sanitise import safe_markdown
from autograder.grading.verdicts import METADATA_KEY
from autograder.masters import grade_id


@dataclass(frozen=True)
class Status:
    """How grading a submission went. `notes` are sentences that a student understands."""

    word: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([f"{self.word}.", *self.notes])


def read_status(notebook: NotebookNode) -> Status:
    """Read the status from an autograded notebook's metadata; the gravest word wins."""
    kept = notebook.metadata.get(METADATA_KEY, {})
    repairs = tuple(kept.get("repairs", ()))
    if kept.get("could_not_run"):
        return Status("could not run", (*repairs, kept["could_not_run"]))
    if kept.get("timed_out"):
        where = ", ".join(f"`{name}`" for name in kept["timed_out"])
        return Status("timed out", (*repairs, f"Time ran out in {where}."))
    return Status("repaired", repairs) if repairs else Status("graded")


class RecordStatus(NbGraderPreprocessor):
    """Write the status into the gradebook, after the scores.

    It becomes the automatic comment of the first answer. A submission that could not be run is
    left without automatic scores and marked as needing a grader: never a silent 0.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Record the status of one notebook."""
        status = read_status(nb)
        if status.word == "graded":
            return nb, resources
        with opened_rows(self.parent, resources["nbgrader"]) as rows:
            if status.word == "could not run":
                for grade in rows.grades.values():
                    grade.auto_score = None
                    grade.needs_manual_grade = True
            self._comment(rows, nb, str(status))
        return nb, resources

    @staticmethod
    def _comment(rows: Rows, nb: NotebookNode, text: str) -> None:
        """Put the text before what the first commented cell already says."""
        order = {grade_id(cell): place for place, cell in enumerate(nb.cells)}
        comments = sorted(rows.comments.values(), key=lambda c: order.get(c.name, len(order)))
        if comments:
            said = comments[0].auto_comment
            comments[0].auto_comment = f"Submission {text} {said or ''}".strip()


class StatusNote(Preprocessor):
    """Say at the top of the feedback how grading went, unless it simply went well."""

    enabled = True

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Insert the note as the first cell."""
        status = read_status(nb)
        if status.word != "graded":
            lines = "\n".join(f"- {note}" for note in status.notes)
            text = f"**About your submission: {status.word}.**\n\n{lines}"
            # The notes name files of the student's: those names are not to be trusted.
            nb.cells.insert(0, nbformat.v4.new_markdown_cell(safe_markdown(text)))
        return nb, resources
