"""Run a master's answer cells in this process: the solution, its mutants and the stub.

Only for code that the course itself wrote. Of the cells before an answer only what an answer can
build on is run: imports, definitions and plain constants; never an experiment or a check.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbformat.notebooknode import NotebookNode

from autograder.build import STUB
from autograder.exercises import chapters
from autograder.masters import (
    BEGIN,
    CHECK_PREFIX,
    END,
    KNOWN_TAGS,
    SOLUTIONS,
    Master,
    grade_id,
    read_master,
)

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Answer:
    """The source of an answer cell, what it defines for the check, and what stands before it."""

    source: str
    name: str
    before: Mapping[str, Any] = field(default_factory=dict)

    def candidate(self, source: str | None = None) -> Any:
        """Run the cell, or another source in its place, and return what it defines.

        Raises whatever the source raises, and KeyError if it defines no such name.
        """
        namespace = dict(self.before)
        code = compile(self.source if source is None else source, f"<{self.name}>", "exec")
        exec(code, namespace)
        return namespace[self.name]

    @property
    def stub(self) -> str:
        """The cell as students get it: every solution region replaced as in a release."""
        lines, inside = [], False
        for line in self.source.splitlines():
            if line.strip() == BEGIN:
                inside = True
                margin = line[: len(line) - len(line.lstrip())]
                lines += [margin + stub_line for stub_line in STUB["python"].splitlines()]
            elif line.strip() == END:
                inside = False
            elif not inside:
                lines.append(line)
        return "\n".join(lines)


def _is_constant(statement: ast.stmt) -> bool:
    try:
        return isinstance(statement, ast.Assign) and bool([ast.literal_eval(statement.value)])
    except (ValueError, TypeError, SyntaxError):
        return False


def _code_cells(master: Master) -> Iterator[NotebookNode]:
    for cell in master.notebook.cells:
        if cell.cell_type == "code" and not KNOWN_TAGS & set(cell.metadata.get("tags", [])):
            yield cell


def _definitions(cell: NotebookNode) -> ast.Module:
    body = ast.parse(cell.source).body
    kept = [node for node in body if isinstance(node, _DEFINITIONS) or _is_constant(node)]
    return ast.Module(kept, type_ignores=[])


@functools.cache
def _master(chapter: str) -> Master:
    return read_master(SOLUTIONS / f"{chapter}.py", chapters()[chapter])


def read_answer(chapter: str, exercise_id: str) -> Answer:
    """Read the answer to an exercise from the master of its chapter.

    Raises MasterError or FileNotFoundError if there is no good master.
    """
    master, before = _master(chapter), {}
    check = next(c for c in master.notebook.cells if grade_id(c) == CHECK_PREFIX + exercise_id)
    name = ast.parse(check.source).body[0].value.args[1].id
    for cell in _code_cells(master):
        if grade_id(cell) == exercise_id:
            break
        if not grade_id(cell).startswith(CHECK_PREFIX):
            exec(compile(_definitions(cell), f"<{chapter}>", "exec"), before)
    return Answer(master.solution_source(exercise_id), name, before)
