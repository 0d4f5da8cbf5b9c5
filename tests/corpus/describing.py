"""How a submission of the corpora is described: a few lines each, built into a notebook by a test.

A submission answers three small exercises of chapter 01 rightly, unless it says otherwise, and
leaves the fourth as it was released. What is odd about it is done by `edit` or `save`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from autograder.build import WRITTEN_STUB
from autograder.masters import CHECK_PREFIX, grade_id

CHAPTER = "01_shapes"
FILE = f"{CHAPTER}.ipynb"
LAST_CHECK = "check-broadcast_shape"  # where the corpora's shortened chapter ends
POINTS = 7
ROOT_MARK = "__ROOT__"  # in a source: the course's folder, which the submission must not reach

RIGHT = {
    "as_column": "def as_column(vector):\n    return vector[:, None]",
    "outer_difference": (
        "def outer_difference(queries, keys):\n    return queries[:, None] - keys[None, :]"
    ),
    "normalise_rows": (
        "def normalise_rows(matrix):\n    return matrix / matrix.sum(axis=-1, keepdims=True)"
    ),
}
FULL = {"as_column": 1, "outer_difference": 1, "normalise_rows": 2}
NOTHING: dict[str, float] = {}

Edit = Callable[[NotebookNode, Path], None]  # changes the notebook or the submission's folder
Save = Callable[[NotebookNode], bytes]


def plain_save(notebook: NotebookNode) -> bytes:
    """Save as Jupyter does, but let pass what nbformat calls invalid."""
    return json.dumps(notebook, indent=1).encode()


@dataclass(frozen=True)
class Entry:
    """One submission and what must become of it.

    `earns` maps exercises to points; all others earn 0. None: there is no automatic score, and an
    instructor is asked to look. `said` lists words that the note on the submission must hold.
    """

    student: str
    about: str
    answers: Mapping[str, str] = field(default_factory=dict)
    earns: Mapping[str, float] | None = field(default_factory=lambda: FULL)
    status: str | None = "graded"  # None: it depends on how busy the machine is
    said: tuple[str, ...] = ()
    edit: Edit = lambda notebook, folder: None
    save: Save = plain_save
    only: bool = False  # no right answers besides `answers`
    parts: int = 1  # how many attacks are in it

    def write(self, release: NotebookNode, folder: Path, root: Path) -> None:
        """Write the submission into `folder`."""
        notebook = nbformat.from_dict(release)
        answers = {**({} if self.only else RIGHT), **self.answers}
        for cell in notebook.cells:
            if grade_id(cell) in answers:
                cell.source = answers[grade_id(cell)].replace(ROOT_MARK, str(root))
            elif cell.source == WRITTEN_STUB:
                cell.source = "Rows line up from the right."
        folder.mkdir(parents=True)
        self.edit(notebook, folder)
        raw = self.save(notebook)
        if raw is not NO_FILE:
            (folder / FILE).write_bytes(raw)


NO_FILE = b"no file under this name"


def no_file(notebook: NotebookNode) -> bytes:
    """Save nothing: the edit has done so, or there is none."""
    return NO_FILE


# --- small edits ---------------------------------------------------------------------------------


def place(notebook: NotebookNode, name: str) -> int:
    """Find a cell by its grade_id."""
    return next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == name)


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    """Return a cell by its grade_id."""
    return notebook.cells[place(notebook, name)]


def check_of(name: str) -> str:
    """Return the grade_id of an exercise's check."""
    return CHECK_PREFIX + name


def code_before(name: str, *sources: str) -> Edit:
    """Put ordinary code cells before a cell."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        at = place(notebook, name)
        notebook.cells[at:at] = [nbformat.v4.new_code_cell(source) for source in sources]

    return edit


def files(**contents: bytes | str) -> Edit:
    """Put files beside the notebook; `__` in a name stands for a dot."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        for name, content in contents.items():
            raw = content.encode() if isinstance(content, str) else content
            (folder / name.replace("__", ".")).write_bytes(raw)

    return edit


def both(*edits: Edit) -> Edit:
    """Do several edits, one after another."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        for one in edits:
            one(notebook, folder)

    return edit
