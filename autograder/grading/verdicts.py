"""From a notebook to verdicts: hidden inputs in, arrays out, comparison outside the kernel."""

from __future__ import annotations

from dataclasses import replace

import nbformat
from nbformat.notebooknode import NotebookNode

from attention_course import codec, panel
from attention_course.checking import OUTCOMES_TYPE
from attention_course.comparing import Difference
from attention_course.judging import NEXT_STEPS, Case, Verdict
from attention_course.outcomes import Outcome
from autograder.exercise import Exercise
from autograder.exercises import of_chapter
from autograder.masters import CHECK_PREFIX, grade_id

METADATA_KEY = "attention_course"


def check_cells(notebook: NotebookNode, chapter: str) -> list[tuple[NotebookNode, Exercise]]:
    """Pair every check cell of a notebook with its exercise."""
    exercises = of_chapter(chapter)
    return [
        (cell, exercises[grade_id(cell).removeprefix(CHECK_PREFIX)])
        for cell in notebook.cells
        if grade_id(cell).startswith(CHECK_PREFIX)
        and grade_id(cell).removeprefix(CHECK_PREFIX) in exercises
    ]


def task(exercise: Exercise, cases: list[Case]) -> dict:
    """Describe what the kernel has to do for one exercise: inputs only, nothing expected."""
    return {
        "driver": exercise.driver,
        "terms": exercise.terms.to_plain(),
        "cases": [dict(case.inputs) for case in cases],
    }


def recorded_outcomes(cell: NotebookNode, exercise_id: str, count: int) -> list[Outcome] | None:
    """Return the outcomes that a check cell handed back, or None if there are none that fit."""
    for output in reversed(cell.get("outputs", [])):
        document = output.get("data", {}).get(OUTCOMES_TYPE)
        if not isinstance(document, str):
            continue
        try:
            plain = codec.loads(document)
            outcomes = [Outcome.from_plain(item) for item in plain["outcomes"]]
            fits = str(plain["exercise"]) == exercise_id and len(outcomes) == count
        except Exception:  # the document is a student's: whatever is wrong with it, it is none
            continue
        if fits:
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


def judge_cell(
    notebook: NotebookNode, check: NotebookNode, exercise: Exercise, cases: list[Case]
) -> Verdict:
    """Judge what an executed check cell handed back for `cases`."""
    outcomes = recorded_outcomes(check, exercise.id, len(cases))
    if outcomes is not None:
        return exercise.judge(outcomes, cases)
    answer = next((cell for cell in notebook.cells if grade_id(cell) == exercise.id), None)
    return no_result(exercise, answer, check)


def hide(verdict: Verdict) -> Verdict:
    """Drop what would reveal a hidden expected value, and what the student's code printed."""
    details = {k: v for k, v in verdict.details.items() if k in ("traceback", "warning")}
    difference = verdict.difference.hidden() if verdict.difference else None
    next_step = verdict.next_step
    if next_step == NEXT_STEPS["values"]:  # which speaks of public cases
        next_step = "Run the check in your notebook: it shows your value beside the right one."
    return replace(verdict, difference=difference, details=details, next_step=next_step)


def verdict_output(verdict: Verdict, failed_case: Case | None) -> NotebookNode:
    """Make the one output that nbgrader scores: a plain number as text, the panel as HTML."""
    inputs = failed_case.inputs if failed_case else None
    return nbformat.v4.new_output(
        "execute_result",
        data={
            "text/plain": f"{float(verdict.points)}",
            "text/html": panel.as_html(verdict, inputs, with_points=True),
        },
        metadata={
            METADATA_KEY: {
                "status": verdict.status,
                "misconception": verdict.misconception,
                "message": verdict.difference.sentence if verdict.difference else "",
            }
        },
        execution_count=1,
    )
