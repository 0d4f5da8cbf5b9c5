"""Read a chapter's master (a jupytext percent file); refuse a broken one with file and line."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbformat.notebooknode import NotebookNode

from autograder.exercise import Exercise

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
CHECK_PREFIX = "check-"
KNOWN_TAGS = {"experiment", "explorer"}
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_CELL_HEADER = re.compile(r"^# %%")


class MasterError(Exception):
    """A master is broken. The message starts with file:line."""


@dataclass(frozen=True)
class Master:
    """A chapter's notebook as the instructor's source, with complete nbgrader metadata."""

    name: str
    path: Path
    notebook: NotebookNode
    lines: tuple[int, ...]  # line of each cell's header in the master

    def solution_source(self, exercise_id: str) -> str:
        """Return the code of an exercise's answer cell, solution included."""
        for cell in self.notebook.cells:
            if grade_id(cell) == exercise_id:
                return cell.source
        raise KeyError(exercise_id)


def grade_id(cell: NotebookNode) -> str:
    """Return a cell's nbgrader id, or "" if it has none."""
    metadata = cell.metadata.get("nbgrader")
    return str(metadata.get("grade_id", "")) if isinstance(metadata, dict) else ""


def master_names() -> list[str]:
    """List the chapters that have a master, in order."""
    return sorted(path.stem for path in SOLUTIONS.glob("[0-9][0-9]_*.py"))


def _complete(metadata: dict, cell: NotebookNode) -> None:
    """Fill in the parts of nbgrader's cell metadata that a master may leave out."""
    given = metadata["nbgrader"]
    full = {"schema_version": 3, "grade": False, "solution": False, "task": False, **given}
    full.setdefault("locked", not full["solution"])
    if full["grade"]:
        full.setdefault("cell_type", cell.cell_type)
    metadata["nbgrader"] = full


def _check_regions(source: str, where: str) -> None:
    inside = False
    for line in source.splitlines():
        if line.strip() == BEGIN:
            if inside:
                raise MasterError(f"{where}: a solution region begins inside another one")
            inside = True
        elif line.strip() == END:
            if not inside:
                raise MasterError(f"{where}: {END!r} without {BEGIN!r}")
            inside = False
        elif "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            raise MasterError(f"{where}: write {BEGIN!r} or {END!r} alone on its line: {line!r}")
    if inside:
        raise MasterError(f"{where}: the solution region is never closed with {END!r}")


def _checked_exercise(source: str, where: str) -> str:
    """Return the id in a check cell's one line `check("id", name)`."""
    try:
        (statement,) = ast.parse(source).body
        call = statement.value
        function, (exercise_id, candidate) = call.func.id, call.args
        if function != "check" or call.keywords or not isinstance(candidate, ast.Name):
            raise ValueError
        return str(ast.literal_eval(exercise_id))
    except (SyntaxError, ValueError, AttributeError):
        message = 'a check cell holds exactly one line, check("exercise", function)'
        raise MasterError(f"{where}: {message}") from None


def _validate_cell(
    cell: NotebookNode, where: str, exercises: dict[str, Exercise], seen: dict[str, str]
) -> None:
    unknown = set(cell.metadata.get("tags", [])) - KNOWN_TAGS
    if unknown:
        raise MasterError(f"{where}: unknown tags {sorted(unknown)}; known: {sorted(KNOWN_TAGS)}")
    meta = cell.metadata.get("nbgrader")
    if not meta:
        if "SOLUTION" in cell.source and cell.cell_type == "code":
            raise MasterError(f"{where}: a solution region in a cell without nbgrader metadata")
        return
    name = grade_id(cell)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise MasterError(f"{where}: grade_id must be made of letters, digits, _ and -: {name!r}")
    if name in seen:
        raise MasterError(f"{where}: grade_id {name!r} is used before, at {seen[name]}")
    seen[name] = where
    if cell.cell_type == "code" and meta["solution"]:
        if meta["grade"]:
            raise MasterError(f"{where}: a code cell is either an answer or a check, not both")
        _check_regions(cell.source, where)
        if BEGIN not in cell.source:
            raise MasterError(f"{where}: the answer cell {name!r} has no solution region")
        if name not in exercises:
            raise MasterError(f"{where}: there is no exercise {name!r} for this answer cell")
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            raise MasterError(f"{where}: the solution does not parse: {error}") from None
    elif cell.cell_type == "code" and meta["grade"]:
        exercise_id = _checked_exercise(cell.source, where)
        if name != CHECK_PREFIX + exercise_id:
            raise MasterError(f"{where}: the grade_id must be {CHECK_PREFIX + exercise_id!r}")
        if exercise_id not in exercises:
            raise MasterError(f"{where}: a check without exercise: {exercise_id!r}")
        if exercise_id not in seen:
            raise MasterError(
                f"{where}: the answer cell {exercise_id!r} must come before its check"
            )
        points = exercises[exercise_id].points
        if meta.get("points") != points:
            raise MasterError(
                f"{where}: the cell gives {meta.get('points')} points, the groups of "
                f"{exercise_id!r} add up to {points:g}"
            )
    elif meta["grade"] and not (isinstance(meta.get("points"), int | float) and meta["points"] > 0):
        raise MasterError(f"{where}: a written answer needs points")


def read_master(path: Path, exercises: dict[str, Exercise]) -> Master:
    """Read and validate one master.

    Cells get their numbers as ids, so that every build gives the same bytes. Raises MasterError
    for an unclosed region, a duplicate grade_id, a check without exercise, an exercise without
    check, or points that do not add up.
    """
    text = path.read_text(encoding="utf-8")
    lines = tuple(
        number for number, line in enumerate(text.splitlines(), 1) if _CELL_HEADER.match(line)
    )
    notebook = jupytext.reads(text, fmt="py:percent")
    if len(notebook.cells) != len(lines):
        raise MasterError(f"{path.name}:1: the file must begin with a cell header, '# %% …'")
    seen: dict[str, str] = {}
    tags: Counter[str] = Counter()
    for number, (cell, line) in enumerate(zip(notebook.cells, lines, strict=True)):
        where = f"{path.name}:{line}"
        cell.id = f"cell-{number:03d}"
        tag = next((tag for tag in cell.metadata.get("tags", []) if tag in KNOWN_TAGS), None)
        if tag and "nbgrader" not in cell.metadata:
            # Read-only for grading, which knows from the id that such a cell is not to be run.
            tags[tag] += 1
            cell.metadata["nbgrader"] = {"grade_id": f"{tag}-{tags[tag]}"}
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's note to itself
        if "nbgrader" in cell.metadata:
            _complete(cell.metadata, cell)
        _validate_cell(cell, where, exercises, seen)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    unchecked = [name for name in exercises if CHECK_PREFIX + name not in seen]
    if unchecked:
        raise MasterError(f"{path.name}:1: exercises without a check cell: {', '.join(unchecked)}")
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return Master(path.stem, path, notebook, lines)
