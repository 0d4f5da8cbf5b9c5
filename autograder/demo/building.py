"""From a description of a submission to its notebook, and to the marks it must get.

The marks come from judging the described answers in this process, never from a run of nbgrader:
so `autograder demo` compares two ways that share only the reference.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbformat.notebooknode import NotebookNode

from autograder.build import WRITTEN_STUB
from autograder.exercise import Exercise
from autograder.masters import BEGIN, END, grade_id

SEEDS = (11, 12, 13)  # hidden cases that the expected marks are computed on
SOLUTION, STUB = "solution", "stub"
WRITTEN_ANSWER = "Each query takes a weighted average; the weights say how well each key fits."
ROOT_MARK = "__COURSE_ROOT__"  # in hostile code: where the demo's course lies
_OWN_PACKAGE = "autograder.exercises"

Edit = Callable[[NotebookNode, Path], None]  # (notebook, folder of the submission)


class DescriptionError(Exception):
    """A submission cannot be built or marked as it is described."""


@dataclass(frozen=True)
class Code:
    """An answer as text. `behaves_as` is what it is worth: code that is safe to run here."""

    text: str
    behaves_as: str = "raise NotImplementedError"


@dataclass(frozen=True)
class Submission:
    """One submission of the demo's class.

    `answers` maps exercises to `Code`, or to the name of an accepted alternative or of a
    misconception; exercises that are not named get `rest`: the chapter's solution or its stub.
    """

    student: str
    about: str
    answers: Mapping[str, str | Code] = field(default_factory=dict)
    rest: str = SOLUTION
    edits: tuple[Edit, ...] = ()


# --- the source of an answer ---------------------------------------------------------------------


def _names_used(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names_used(constant)
    return names


def _needs(function: Callable[..., Any], found: dict[str, Any]) -> dict[str, Any]:
    """Collect, dependencies first, the global functions and modules that a function uses."""
    for name in _names_used(function.__code__):
        if name in found or name == function.__name__ or name not in function.__globals__:
            continue
        value = function.__globals__[name]
        if isinstance(value, types.FunctionType) and value.__module__.startswith(_OWN_PACKAGE):
            _needs(value, found)
        elif not isinstance(value, types.ModuleType) and not hasattr(builtins, name):
            raise DescriptionError(f"{function.__name__} needs {name}, which is not a function")
        found[name] = value
    return found


def _without_docstring(source: str) -> str:
    """Drop a function's docstring, which says whether the function is right."""
    first = ast.parse(source).body[0].body[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
        return source
    lines = source.splitlines()
    return "\n".join(lines[: first.lineno - 1] + lines[first.end_lineno :]) + "\n"


def self_contained(function: Callable[..., Any], name: str) -> str:
    """Return a function's source under another name, preceded by all that it needs."""
    parts = []
    for needed, value in _needs(function, {}).items():
        if isinstance(value, types.ModuleType):
            parts.append(f"import {value.__name__} as {needed}")
        else:
            parts.append(_without_docstring(inspect.getsource(value)))
    source = _without_docstring(inspect.getsource(function))
    parts.append(re.sub(rf"\b{function.__name__}\b", name, source))
    return "\n\n".join(part.strip("\n") for part in parts)


def known_function(exercise: Exercise, name: str) -> Callable[..., Any]:
    """Find an accepted alternative or a misconception of an exercise by its name."""
    known = [*exercise.accepted, *(mistake.function for mistake in exercise.misconceptions)]
    for function in known:
        if function.__name__ == name:
            return function
    raise DescriptionError(f"exercise {exercise.id} knows no answer called {name!r}")


def solution_text(cell: NotebookNode) -> str:
    """Return the source of a solution cell without the lines that mark the solution."""
    lines = cell.source.splitlines()
    return "\n".join(line for line in lines if line.strip() not in (BEGIN, END))


# --- a submission --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chapter:
    """What submissions are made of: the source notebook, its release and the exercises."""

    source: NotebookNode
    release: NotebookNode
    exercises: Mapping[str, Exercise]
    _judged: dict[tuple[str, ...], float] = field(default_factory=dict)

    def answer(self, submission: Submission, exercise_id: str) -> Code:
        """Return what a submission has in the answer cell of an exercise."""
        answer = submission.answers.get(exercise_id, submission.rest)
        if isinstance(answer, Code):
            return answer
        if answer == STUB:
            return Code(_cell(self.release, exercise_id).source)
        if answer == SOLUTION:
            text = solution_text(_cell(self.source, exercise_id))
        else:
            exercise = self.exercises[exercise_id]
            text = self_contained(known_function(exercise, answer), exercise_id)
        return Code(text, behaves_as=text)

    def write(self, submission: Submission, folder: Path, root: Path) -> None:
        """Write a submission's notebook into `folder`; `root` is what hostile code attacks."""
        unknown = set(submission.answers) - set(self.exercises)
        if unknown:
            raise DescriptionError(f"{submission.student}: no exercise {sorted(unknown)}")
        notebook = nbformat.from_dict(self.release)
        for cell in notebook.cells:
            name = grade_id(cell)
            if name in self.exercises:
                text = self.answer(submission, name).text
                cell.source = text.replace(ROOT_MARK, str(root))
            elif cell.source == WRITTEN_STUB and submission.rest == SOLUTION:
                cell.source = WRITTEN_ANSWER
        folder.mkdir(parents=True)
        for edit in submission.edits:
            edit(notebook, folder)
        nbformat.write(notebook, folder / f"{folder.name}.ipynb")

    def _imports(self) -> str:
        """Return the import statements of the cells that are not answers."""
        lines = []
        for cell in self.source.cells:
            if cell.cell_type == "code" and not grade_id(cell):
                plain = "\n".join(line for line in cell.source.splitlines() if line[:1] not in "%!")
                body = ast.parse(plain).body
                imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
                lines += map(ast.unparse, imports)
        return "\n".join(lines)

    def expected_marks(self, submission: Submission) -> dict[str, float]:
        """Return the marks of every exercise, judged with the answers in one namespace.

        Later answers may call earlier ones, so a mistake may travel, as it does in a notebook.
        Raises DescriptionError if the hidden cases of different seeds give different marks.
        """
        namespace: dict[str, Any] = {}
        exec(self._imports(), namespace)
        marks, so_far = {}, ()
        for name in filter(self.exercises.__contains__, map(grade_id, self.source.cells)):
            text = self.answer(submission, name).behaves_as
            so_far = (*so_far, text)
            try:
                exec(text, namespace)
            except (Exception, SyntaxError):
                namespace.pop(name, None)  # the check will not find the name
            if so_far not in self._judged:  # many submissions begin with the same answers
                exercise, candidate = self.exercises[name], namespace.get(name)
                given = {_points(exercise, candidate, seed) for seed in SEEDS}
                if len(given) > 1:
                    raise DescriptionError(f"{submission.student}: {name} is worth {sorted(given)}")
                self._judged[so_far] = given.pop()
            marks[name] = self._judged[so_far]
        return marks


def _cell(notebook: NotebookNode, name: str) -> NotebookNode:
    for cell in notebook.cells:
        if grade_id(cell) == name:
            return cell
    raise DescriptionError(f"the chapter's notebook has no answer cell {name!r}")


def _points(exercise: Exercise, candidate: Any, seed: int) -> float:
    cases = exercise.make_cases(seed)
    with np.errstate(all="ignore"):
        outcomes = exercise.run(candidate, cases)
    return exercise.judge(outcomes, cases, mistakes=[]).points


def read_chapter(source: Path, release: Path, exercises: Mapping[str, Exercise]) -> Chapter:
    """Read a chapter's source and release notebooks.

    Raises DescriptionError if the source lacks the answer cell of an exercise.
    """
    chapter = Chapter(nbformat.read(source, 4), nbformat.read(release, 4), exercises)
    for name in exercises:
        _cell(chapter.source, name)
    return chapter
