"""Search a submission's source for forbidden calls, outside the kernel.

The recorder of calls runs in the student's own process and can be deceived there; the text of the
cells cannot. What is searched, and for what, is in `attention_course.source_rules`, so that a check
in a student's notebook can say the same.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping

from nbformat.notebooknode import NotebookNode

from attention_course.judging import Verdict
from attention_course.source_rules.notebook import Notebook
from attention_course.source_rules.rules import refuse, search
from attention_course.source_rules.units import Cell
from autograder.exercise import Exercise
from autograder.grading.execution import is_skipped
from autograder.masters import CHECK_PREFIX, grade_id


def names_in(check: NotebookNode) -> tuple[str, ...]:
    """Return the names that a check cell reads: `check` and the answer's."""
    return tuple(
        node.id for node in ast.walk(ast.parse(check.source)) if isinstance(node, ast.Name)
    )


def cells_to_read(notebook: NotebookNode, source: NotebookNode) -> list[Cell]:
    """List the cells that are run, checks excepted; own are those that are not in the source."""
    given = {
        cell.source.strip()
        for cell in source.cells
        if not cell.metadata.get("nbgrader", {}).get("solution")
    }
    return [
        Cell(
            f"cell `{grade_id(cell)}`" if grade_id(cell) else f"cell {number}",
            cell.source,
            own=cell.source.strip() not in given,
        )
        for number, cell in enumerate(notebook.cells, 1)
        if cell.cell_type == "code"
        and not is_skipped(cell)
        and not grade_id(cell).startswith(CHECK_PREFIX)
    ]


class SourceSearch:
    """Searches one submission. `files` are what the student has put beside the notebook."""

    def __init__(
        self, notebook: NotebookNode, source: NotebookNode, files: Mapping[str, bytes]
    ) -> None:
        self._given = notebook, source, files

    @functools.cached_property
    def _notebook(self) -> Notebook:
        """The submission's code, read only if an exercise that forbids something asks for it."""
        notebook, source, files = self._given
        texts = {
            path: raw.decode("utf-8", "replace")
            for path, raw in files.items()
            if path.endswith(".py")
        }
        return Notebook.read(cells_to_read(notebook, source), texts)

    def judged(self, verdict: Verdict, exercise: Exercise, check: NotebookNode) -> Verdict:
        """Return the verdict, without its points if the answer's source holds what is forbidden."""
        if not verdict.points or not exercise.forbidden:
            return verdict
        return refuse(verdict, search(self._notebook, names_in(check), exercise.forbidden))
