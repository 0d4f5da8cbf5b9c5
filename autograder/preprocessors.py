"""nbgrader preprocessors: hand hidden inputs to the kernel, turn its answers into marks.

Both are set in `nbgrader_config.py`, one before nbgrader's Execute and one after it. They run
outside the kernel: nothing that a student's code prints, patches or raises reaches them, only
arrays in plain JSON, which are compared with the reference.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from attention_course import codec, panel
from attention_course.checking import HIDDEN_CASES_FILE, OUTCOMES_TYPE
from attention_course.comparing import Difference
from attention_course.judging import NEXT_STEPS, Case, Verdict
from attention_course.running import Outcome
from autograder.exercise import Exercise
from autograder.exercises import chapters
from autograder.hidden import course_secret, submission_seed
from autograder.masters import CHECK_PREFIX, grade_id

METADATA_KEY = "attention_course"


def check_cells(notebook: NotebookNode, chapter: str) -> list[tuple[NotebookNode, Exercise]]:
    """Pair every check cell of a notebook with its exercise."""
    exercises = chapters().get(chapter, {})
    return [
        (cell, exercises[grade_id(cell).removeprefix(CHECK_PREFIX)])
        for cell in notebook.cells
        if grade_id(cell).startswith(CHECK_PREFIX)
        and grade_id(cell).removeprefix(CHECK_PREFIX) in exercises
    ]


def write_without_following_links(path: Path, text: str) -> None:
    """Write a file in a folder that a student may have filled: never through a planted link."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


class HiddenCases(NbGraderPreprocessor):
    """Write the inputs of fresh hidden cases beside the notebook, before it is executed."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Draw the cases of this submission; the seed is recorded in the notebook's metadata."""
        info = resources["nbgrader"]
        root = Path(self.parent.parent.coursedir.root)
        seed = submission_seed(course_secret(root), info["student"], info["assignment"], nb)
        nb.metadata[METADATA_KEY] = {"seed": str(seed)}
        tasks = {
            exercise.id: {
                "driver": exercise.driver,
                "outputs": list(exercise.outputs),
                "seconds": exercise.seconds,
                "cases": [dict(case.inputs) for case in exercise.make_cases(seed)],
            }
            for _, exercise in check_cells(nb, info["assignment"])
        }
        folder = Path(resources["metadata"]["path"])
        write_without_following_links(folder / HIDDEN_CASES_FILE, codec.dumps(tasks))
        return nb, resources


def recorded_outcomes(cell: NotebookNode, exercise_id: str, count: int) -> list[Outcome] | None:
    """Return the outcomes that a check cell handed back, or None if there are none that fit."""
    for output in reversed(cell.get("outputs", [])):
        document = output.get("data", {}).get(OUTCOMES_TYPE)
        if not isinstance(document, str):
            continue
        try:
            plain = codec.loads(document)
            outcomes = [Outcome.from_plain(item) for item in plain["outcomes"]]
        except (ValueError, TypeError, KeyError):
            continue
        if plain.get("exercise") == exercise_id and len(outcomes) == count:
            return outcomes
    return None


def _error_text(cell: NotebookNode) -> str:
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"[:500]
    return ""


def no_result(exercise: Exercise, answer: NotebookNode | None, check: NotebookNode) -> Verdict:
    """Say why a check has no answers to judge: the first error of the answer or check cell."""
    if answer is None:
        sentence = f"The answer cell `{exercise.id}` is missing from the notebook."
        text = ""
    else:
        text = _error_text(answer) or _error_text(check)
        where = "answer" if _error_text(answer) else "check"
        sentence = f"No answer could be recorded: the {where} cell ended in an error."
        if not text:
            sentence = "No answer could be recorded, although no cell ended in an error."
    difference = Difference("no result", sentence, got=text)
    return Verdict(
        exercise.id,
        "no result",
        0,
        exercise.points,
        difference=difference,
        next_step=NEXT_STEPS["no result"],
    )


def hide(verdict: Verdict) -> Verdict:
    """Drop what would reveal a hidden expected value, and what the student's code printed."""
    details = {k: v for k, v in verdict.details.items() if k in ("traceback", "warning")}
    difference = verdict.difference.hidden() if verdict.difference else None
    return replace(verdict, difference=difference, details=details)


def verdict_output(verdict: Verdict, failed_case: Case | None) -> NotebookNode:
    """Make the one output that nbgrader scores: a plain number as text, the panel as HTML."""
    inputs = failed_case.inputs if failed_case else None
    return nbformat.v4.new_output(
        "execute_result",
        data={
            "text/plain": f"{float(verdict.points)}",
            "text/html": panel.as_html(verdict, inputs, with_points=True),
        },
        metadata={METADATA_KEY: {"status": verdict.status, "misconception": verdict.misconception}},
        execution_count=1,
    )


class Verdicts(NbGraderPreprocessor):
    """Replace the outputs of every check cell by a verdict on its hidden cases."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge all check cells with the recorded seed."""
        seed = int(nb.metadata[METADATA_KEY]["seed"])
        answers = {grade_id(cell): cell for cell in nb.cells if grade_id(cell)}
        for cell, exercise in check_cells(nb, resources["nbgrader"]["assignment"]):
            cases = exercise.make_cases(seed)
            outcomes = recorded_outcomes(cell, exercise.id, len(cases))
            if outcomes is None:
                verdict = no_result(exercise, answers.get(exercise.id), cell)
            else:
                verdict = exercise.judge(outcomes, cases)
            failed = verdict.failed_case
            cell.outputs = [
                verdict_output(hide(verdict), cases[failed] if failed is not None else None)
            ]
        folder = Path(resources["metadata"]["path"])
        (folder / HIDDEN_CASES_FILE).unlink(missing_ok=True)
        return nb, resources
