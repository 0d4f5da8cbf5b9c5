"""nbgrader's preprocessors that use the gradebook, with one look into it instead of dozens.

nbgrader asks its database for every cell, and commits after every score. Here a preprocessor works
on `Rows`: what a gradebook says about one notebook, read at once. `autograder grade` makes them
without any gradebook, hands them to the preprocessors as `resources["nbgrader"]["rows"]`, and
writes the results of all submissions in its main process.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import NbGraderPreprocessor

# What a gradebook knows of an assignment's cells: the kind, and what is to be copied of each.
CELLS = {
    "grade": ("cell_type", "max_score"),
    "solution": (),
    "task": ("cell_type", "max_score"),
    "source": ("cell_type", "source", "checksum", "locked"),
}


@dataclass(frozen=True)
class KnownCells:
    """What a gradebook knows of a notebook's cells: for each kind the columns by name."""

    kernelspec: str | None
    cells: dict[str, dict[str, dict[str, Any]]]

    @classmethod
    def of(cls, notebook: Any) -> KnownCells:
        """Read them from the gradebook's entry of a notebook."""
        cells = {
            kind: {
                cell.name: {column: getattr(cell, column) for column in columns}
                for cell in getattr(notebook, f"{kind}_cells")
            }
            for kind, columns in CELLS.items()
        }
        return cls(notebook.kernelspec, cells)

    def find(self, kinds: tuple[str, ...], name: str) -> SimpleNamespace:
        """Return a cell that is of one of some kinds; raise MissingEntry if there is none."""
        for kind in kinds:
            if name in self.cells[kind]:
                return SimpleNamespace(name=name, **self.cells[kind][name])
        raise MissingEntry(f"No {kinds[0]} cell {name!r} in the gradebook")


@dataclass
class Grade:
    """A score of one cell, for which there is no gradebook yet."""

    name: str
    auto_score: float | None = None
    manual_score: float | None = None
    needs_manual_grade: bool = False


@dataclass
class Comment:
    """A comment on one cell, for which there is no gradebook yet."""

    name: str
    auto_comment: str | None = None


@dataclass
class Rows:
    """Scores and comments of one submitted notebook; they may be a gradebook's own."""

    known: KnownCells
    grades: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def blank(cls, known: KnownCells) -> Rows:
        """Make those of a submission that no gradebook knows of."""
        graded = [*known.cells["grade"], *known.cells["task"]]
        answers = [*known.cells["solution"], *known.cells["task"]]
        return cls(
            known, {name: Grade(name) for name in graded}, {name: Comment(name) for name in answers}
        )

    # What nbgrader's preprocessors ask a gradebook for; `rest` is notebook, assignment, student.

    @property
    def db(self) -> SimpleNamespace:
        """A session in which nothing is committed: that happens once, at the end."""
        return SimpleNamespace(commit=lambda: None)

    def find_source_cell(self, name: str, *rest: str) -> SimpleNamespace:
        """Find what a tracked cell was like in the source."""
        return self.known.find(("source",), name)

    def find_graded_cell(self, name: str, *rest: str) -> SimpleNamespace:
        """Find what a cell is worth."""
        return self.known.find(("grade", "task"), name)

    def find_grade(self, name: str, *rest: str) -> Any:
        """Find the score of a cell."""
        return _found(self.grades, name)

    def find_comment(self, name: str, *rest: str) -> Any:
        """Find the comment on a cell."""
        return _found(self.comments, name)


def _found(rows: dict[str, Any], name: str) -> Any:
    if name not in rows:
        raise MissingEntry(f"The gradebook has no cell {name!r}")
    return rows[name]


@contextlib.contextmanager
def opened_rows(info: dict[str, Any]) -> Iterator[Rows]:
    """Give the rows of the notebook that `resources["nbgrader"]` names; what changes is kept."""
    if "rows" in info:
        yield info["rows"]
        return
    with Gradebook(info["db_url"]) as gradebook:
        names = info["notebook"], info["assignment"]
        rows = Rows(KnownCells.of(gradebook.find_notebook(*names)))
        with contextlib.suppress(MissingEntry):
            submission = gradebook.find_submission_notebook(*names, info["student"])
            rows.grades = {grade.name: grade for grade in submission.grades}
            rows.comments = {comment.name: comment for comment in submission.comments}
        yield rows
        gradebook.db.commit()


class OverwriteKernelspec(preprocessors.OverwriteKernelspec):
    """nbgrader's, with rows."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Give the notebook the source's kernelspec."""
        with opened_rows(resources["nbgrader"]) as rows:
            if rows.known.kernelspec:
                nb.metadata["kernelspec"] = json.loads(rows.known.kernelspec)
        return nb, resources


class _OnRows(NbGraderPreprocessor):
    """A preprocessor of nbgrader's that finds its gradebook in `self.gradebook`."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Do with all cells what nbgrader does with them."""
        info = resources["nbgrader"]
        self.notebook_id, self.assignment_id = info["notebook"], info["assignment"]
        self.student_id, self.db_url = info["student"], info["db_url"]
        with opened_rows(info) as self.gradebook:
            return NbGraderPreprocessor.preprocess(self, nb, resources)


class OverwriteCells(_OnRows, preprocessors.OverwriteCells):
    """nbgrader's, with rows. `add_missing_cells` has no effect: `Intake` puts them back."""


class SaveAutoGrades(_OnRows, preprocessors.SaveAutoGrades):
    """nbgrader's, with rows."""


class CheckCellMetadata(preprocessors.CheckCellMetadata):
    """nbgrader's, which takes 2 ms for each cell; what it has found right stays right."""

    _right: set[str] = set()  # noqa: RUF012 - of all notebooks

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Check the nbgrader metadata of all cells; raise ValidationError if it is wrong."""
        looked_at = [
            (cell.cell_type, cell.metadata["nbgrader"])
            for cell in nb.cells
            if "nbgrader" in cell.metadata
        ]
        key = json.dumps([MetadataValidator.schema_version, looked_at])
        if key not in self._right:
            nb, resources = super().preprocess(nb, resources)
            self._right.add(key)
        return nb, resources


# What `autograder grade` puts in the place of nbgrader's own, should a configuration name those.
REPLACED = {
    getattr(preprocessors, ours.__name__): ours
    for ours in (OverwriteKernelspec, OverwriteCells, SaveAutoGrades, CheckCellMetadata)
}
