"""Put a submitted notebook in order before anything else looks at it.

Real submissions have cells pasted twice, deleted, retyped, or stripped of nbgrader's metadata by
another editor. Each is repaired by a fixed rule and written down in words, so that neither the
class run nor a neighbour's mark suffers, and student and instructor can see what was done.

The rules: the source notebook says which graded cells exist and what their metadata is; nothing
that a submission says about itself (flags, points, tags, outputs) is believed. Of several copies
of a cell the last one counts; the others are kept and run as ordinary cells. A missing check is
put back after its answer.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.grading.gradebooks import opened_rows
from autograder.grading.verdicts import METADATA_KEY
from autograder.intake.exporter import read_sources
from autograder.masters import CHECK_PREFIX, grade_id


def _defined_functions(source: str) -> set[str]:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return set()
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def _squeeze(source: str) -> str:
    return "".join(source.split())


def _recognise(cell: NotebookNode, tracked: dict[str, NotebookNode]) -> str:
    """Find which tracked source cell a cell without usable metadata must have been, or ""."""
    for name, source in tracked.items():
        if source.cell_type != cell.cell_type:
            continue
        meta = source.metadata.nbgrader
        if (
            cell.cell_type == "code"
            and meta.grade
            and _squeeze(cell.source) == _squeeze(source.source)
        ):
            return name
        if cell.cell_type == "code" and meta.solution and name in _defined_functions(cell.source):
            return name
        if meta.solution and cell.get("id") == source.id:
            return name
    return ""


def _claim(cells: list[NotebookNode], tracked: dict[str, NotebookNode]) -> dict[str, list[int]]:
    """List for every tracked id the positions of the cells that carry it."""
    claims: dict[str, list[int]] = {}
    for position, cell in enumerate(cells):
        name = grade_id(cell)
        if name in tracked:
            claims.setdefault(name, []).append(position)
    return claims


def _recover(
    cells: list[NotebookNode], tracked: dict[str, NotebookNode], claims: dict[str, list[int]]
) -> list[str]:
    """Find cells that lost their metadata; add them to `claims`; return their ids."""
    lost = {name: cell for name, cell in tracked.items() if name not in claims}
    found = []
    for position, cell in enumerate(cells):
        if grade_id(cell) in tracked:
            continue
        name = _recognise(cell, lost)
        if name:
            if name not in claims:
                found.append(name)
            claims.setdefault(name, []).append(position)
    return found


def _place_for(name: str, cells: list[NotebookNode]) -> int:
    """Say where a missing check belongs: after the last copy of its answer, or at the end."""
    answer = name.removeprefix(CHECK_PREFIX)
    places = [
        i
        for i, cell in enumerate(cells)
        if grade_id(cell) == answer
        or (cell.cell_type == "code" and answer in _defined_functions(cell.source))
    ]
    return places[-1] + 1 if places else len(cells)


def put_in_order(submitted: NotebookNode, source: NotebookNode) -> list[str]:
    """Repair `submitted` in place after the rules above; return what was done, in sentences."""
    tracked = {
        grade_id(cell): cell
        for cell in source.cells
        if grade_id(cell) and (cell.metadata.nbgrader.grade or cell.metadata.nbgrader.solution)
    }
    untracked = {
        grade_id(cell): cell
        for cell in source.cells
        if grade_id(cell) and grade_id(cell) not in tracked
    }
    cells, notes = submitted.cells, []
    claims = _claim(cells, tracked)
    for name in _recover(cells, tracked, claims):
        notes.append(f"The cell `{name}` had lost its nbgrader metadata and was recognised.")
    names = {positions[-1]: name for name, positions in claims.items()}
    notes += [
        f"The cell `{name}` was there {len(positions)} times; the last copy counts."
        for name, positions in claims.items()
        if len(positions) > 1
    ]
    for position, cell in enumerate(cells):
        name = names.get(position, "")
        if not name and grade_id(cell) in untracked:
            cell.metadata = copy.deepcopy(untracked.pop(grade_id(cell)).metadata)
            continue
        if not name:
            cell.metadata = nbformat.from_dict({})
            continue
        known = tracked[name]
        if cell.cell_type != known.cell_type:
            notes.append(f"The cell `{name}` had become a {cell.cell_type} cell.")
            cell.cell_type = known.cell_type
            cell.pop("attachments", None)
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
            else:
                cell.pop("outputs", None)
                cell.pop("execution_count", None)
        cell.metadata = copy.deepcopy(known.metadata)
    notes += _add_missing(cells, tracked, set(claims))
    return notes


def _add_missing(
    cells: list[NotebookNode], tracked: dict[str, NotebookNode], present: set[str]
) -> list[str]:
    notes = []
    for name, known in tracked.items():
        if name in present:
            continue
        if not known.metadata.nbgrader.grade:
            notes.append(f"The answer cell `{name}` is missing.")
            continue
        restored = copy.deepcopy(known)
        if known.metadata.nbgrader.solution:
            restored.source = "(The submission has no such cell.)"
            notes.append(f"The written answer `{name}` is missing.")
        else:
            notes.append(f"The check cell `{name}` was missing and was put back.")
        cells.insert(_place_for(name, cells), restored)
    return notes


def belongs(submitted: NotebookNode, source: NotebookNode) -> bool:
    """Tell whether a notebook has anything of this assignment in it: an answer or a check."""
    wanted = {grade_id(cell) for cell in source.cells if grade_id(cell)}
    sources = {
        _squeeze(cell.source): True
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    answers = {
        grade_id(cell) for cell in source.cells if cell.metadata.get("nbgrader", {}).get("solution")
    }
    return any(
        grade_id(cell) in wanted
        or _squeeze(cell.source) in sources
        or (cell.cell_type == "code" and _defined_functions(cell.source) & answers)
        for cell in submitted.cells
    )


class Intake(NbGraderPreprocessor):
    """The first preprocessor of `nbgrader autograde`: repair the submission, note what was done."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Put the notebook in order after the chapter's source notebook."""
        info = resources["nbgrader"]
        source = read_sources(self.parent.parent.coursedir, info["assignment"])[info["notebook"]]
        staged = nb.metadata.get(METADATA_KEY, {})
        could_not_run = staged.get("could_not_run", "")
        if not could_not_run and not belongs(nb, source):
            could_not_run = (
                "Nothing of this assignment is in the notebook: it may be another chapter's or an "
                "older release."
            )
        repairs = [*staged.get("repairs", []), *put_in_order(nb, source)]
        if could_not_run:
            repairs = staged.get("repairs", [])
        for note in [*repairs, could_not_run]:
            if note:
                self.log.warning("%s: %s", info["student"], note)
        status = {"repairs": repairs, "could_not_run": could_not_run, "timed_out": []}
        nb.metadata = nbformat.from_dict(
            {"kernelspec": source.metadata.kernelspec, METADATA_KEY: status}
        )
        with opened_rows(self.parent, info) as rows:
            # What an earlier run gave is forgotten; marks given by hand stay.
            for grade in rows.grades.values():
                grade.auto_score = None
        return nb, resources
