"""nbgrader's preprocessors that use the gradebook, with one look into it instead of dozens.

nbgrader opens its database for each preprocessor, asks it for every cell and commits after every
score. Here it is opened once, and its scores are read and written together. `autograder grade`
needs none: what is known of the cells, and rows for the results, come in `resources["nbgrader"]`
as `known` and `rows`, and its main process writes the results of all submissions.
"""

from __future__ import annotations

import contextlib
import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

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
    """What a gradebook knows of a notebook's cells: for each kind the columns by name.

    It can stand in for a gradebook where only the source's cells are asked for; `rest` is then
    notebook and assignment.
    """

    kernelspec: str | None
    cells: dict[str, dict[str, dict[str, Any]]]
    names: dict[str, str]  # of cells, by their id in the gradebook

    @classmethod
    def of(cls, notebook: Any) -> KnownCells:
        """Read them from the gradebook's entry of a notebook."""
        cells: dict[str, dict[str, dict[str, Any]]] = {}
        names = {}
        for kind, columns in CELLS.items():
            found = getattr(notebook, f"{kind}_cells")
            names.update({cell.id: cell.name for cell in found})
            cells[kind] = {
                cell.name: {column: getattr(cell, column) for column in columns} for cell in found
            }
        return cls(notebook.kernelspec, cells, names)

    def _find(self, kinds: tuple[str, ...], name: str) -> SimpleNamespace:
        for kind in kinds:
            if name in self.cells[kind]:
                return SimpleNamespace(name=name, **self.cells[kind][name])
        raise MissingEntry(f"The gradebook has no {kinds[0]} cell {name!r}")

    def find_source_cell(self, name: str, *rest: str) -> SimpleNamespace:
        """Find what a tracked cell was like in the source; raise MissingEntry if it is none."""
        return self._find(("source",), name)

    def find_graded_cell(self, name: str, *rest: str) -> SimpleNamespace:
        """Find what a cell is worth; raise MissingEntry if it is not graded."""
        return self._find(("grade", "task"), name)


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
    """Scores and comments of one submitted notebook; they may be a gradebook's own.

    They can stand in for a gradebook; `rest` is then notebook, assignment and student.
    """

    grades: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def blank(cls, known: KnownCells) -> Rows:
        """Make those of a submission that no gradebook knows of."""
        graded = [*known.cells["grade"], *known.cells["task"]]
        answers = [*known.cells["solution"], *known.cells["task"]]
        return cls(
            {name: Grade(name) for name in graded}, {name: Comment(name) for name in answers}
        )

    @property
    def db(self) -> SimpleNamespace:
        """A session in which nothing is committed: that happens once, at the end."""
        return SimpleNamespace(commit=lambda: None)

    def find_grade(self, name: str, *rest: str) -> Any:
        """Find the score of a cell; raise MissingEntry if there is none."""
        return _found(self.grades, name)

    def find_comment(self, name: str, *rest: str) -> Any:
        """Find the comment on a cell; raise MissingEntry if there is none."""
        return _found(self.comments, name)


def _found(rows: dict[str, Any], name: str) -> Any:
    if name not in rows:
        raise MissingEntry(f"The gradebook has no cell {name!r}")
    return rows[name]


class _Opened:
    """A gradebook that stays open while one exporter lives: for a run of `nbgrader autograde`."""

    _all: ClassVar[weakref.WeakKeyDictionary] = weakref.WeakKeyDictionary()

    def __init__(self, url: str):
        self.gradebook = Gradebook(url)
        self._known: dict[tuple[str, str], KnownCells] = {}

    @classmethod
    def by(cls, exporter: Any, url: str) -> _Opened:
        """Return an exporter's gradebook."""
        if exporter not in cls._all:
            cls._all[exporter] = opened = cls(url)
            weakref.finalize(exporter, opened.gradebook.close)
        return cls._all[exporter]

    def known(self, *names: str) -> KnownCells:
        """Return what is known of the cells of a notebook, of an assignment."""
        if names not in self._known:
            self._known[names] = KnownCells.of(self.gradebook.find_notebook(*names))
            self.gradebook.db.rollback()  # holds no lock
        return self._known[names]


def known_cells(exporter: Any, info: dict[str, Any]) -> KnownCells:
    """Return what the gradebook knows of the notebook that `resources["nbgrader"]` names."""
    if "known" in info:
        return info["known"]
    return _Opened.by(exporter, info["db_url"]).known(info["notebook"], info["assignment"])


@contextlib.contextmanager
def opened_rows(exporter: Any, info: dict[str, Any]) -> Iterator[Rows]:
    """Give a submission's scores and comments; what is changed is kept when the block ends well.

    A submission that the gradebook does not know has none.
    """
    if "rows" in info:
        yield info["rows"]
        return
    session, rows = _Opened.by(exporter, info["db_url"]).gradebook, Rows()
    names = known_cells(exporter, info).names
    try:
        with contextlib.suppress(MissingEntry):
            submission = session.find_submission_notebook(
                info["notebook"], info["assignment"], info["student"]
            )
            rows.grades = {names[grade.cell_id]: grade for grade in submission.grades}
            rows.comments = {names[comment.cell_id]: comment for comment in submission.comments}
        yield rows
        session.db.commit()
    finally:
        session.db.rollback()  # a lock that is left would stop whoever marks meanwhile


class OverwriteKernelspec(preprocessors.OverwriteKernelspec):
    """nbgrader's, with what is known."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Give the notebook the source's kernelspec."""
        known = known_cells(self.parent, resources["nbgrader"])
        if known.kernelspec:
            nb.metadata["kernelspec"] = json.loads(known.kernelspec)
        return nb, resources


class _AllCells(NbGraderPreprocessor):
    """A preprocessor of nbgrader's that finds in `self.gradebook` what it asks for."""

    def _all_cells(
        self, nb: NotebookNode, resources: Any, gradebook: Any
    ) -> tuple[NotebookNode, Any]:
        """Do with all cells what nbgrader does with them."""
        info, self.gradebook = resources["nbgrader"], gradebook
        self.notebook_id, self.assignment_id = info["notebook"], info["assignment"]
        self.student_id = info["student"]
        return NbGraderPreprocessor.preprocess(self, nb, resources)


class OverwriteCells(_AllCells, preprocessors.OverwriteCells):
    """nbgrader's, with what is known. Of missing cells `Intake` has taken care."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Overwrite what a student may not change."""
        known = known_cells(self.parent, resources["nbgrader"])
        return self._all_cells(nb, resources, known)


class SaveAutoGrades(_AllCells, preprocessors.SaveAutoGrades):
    """nbgrader's, with all scores saved at once."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Save scores and comments."""
        with opened_rows(self.parent, resources["nbgrader"]) as rows:
            return self._all_cells(nb, resources, rows)


class CheckCellMetadata(preprocessors.CheckCellMetadata):
    """nbgrader's, which takes 2 ms for each cell; what it has found right stays right."""

    _right: ClassVar[set[str]] = set()  # of all notebooks

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
