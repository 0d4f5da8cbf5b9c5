"""The floor: run the same cells, judge the same answers in one warm process, without a kernel."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
from pathlib import Path

import matplotlib
import nbformat
import torch  # noqa: F401 - the warm process of the real thing has it too

from attention_course.drivers import run_all
from autograder.grading.verdicts import check_cells
from autograder.masters import CHECK_PREFIX, grade_id

matplotlib.use("Agg")


def grade(notebook: nbformat.NotebookNode, chapter: str, seed: int) -> float:
    """Execute a submission's cells and judge its answers; return the points."""
    exercises = {exercise.id: exercise for _, exercise in check_cells(notebook, chapter)}
    namespace: dict = {"__name__": "__main__", "__builtins__": builtins}
    points = 0.0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        name = grade_id(cell)
        if not name.startswith(CHECK_PREFIX):
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(cell.source, "<cell>", "exec"), namespace)
            continue
        exercise = exercises[name.removeprefix(CHECK_PREFIX)]
        cases = exercise.make_cases(seed)
        inputs = [case.inputs for case in cases]
        candidate = namespace.get(exercise.id)
        outcomes = run_all(exercise.driver, candidate, inputs, exercise.terms)
        points += exercise.judge(outcomes, cases).points
    return points


def main() -> None:
    """Grade every submission of the course folder that this is started in."""
    chapter = sys.argv[1]
    paths = sorted(Path("submitted").resolve().glob(f"*/{chapter}/*.ipynb"))
    os.chdir(Path("solutions", chapter))  # where the public examples lie
    for seed, path in enumerate(paths, 1):
        print(path.parent.parent.name, grade(nbformat.read(path, as_version=4), chapter, seed))


if __name__ == "__main__":
    main()
