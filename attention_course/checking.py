"""`check(exercise, candidate)`: the one line that every check cell of the notebooks holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attention_course import codec, panel
from attention_course.checks_file import load_exercise
from attention_course.drivers import run_all
from attention_course.judging import Verdict, judge
from attention_course.outcomes import Terms

# Grading writes the inputs of the hidden cases (and nothing else) under this name beside the
# notebook, and reads the outcomes from an output of this type.
HIDDEN_CASES_FILE = "hidden_cases.json"
OUTCOMES_TYPE = "application/vnd.attention-course.outcomes+json"


class CheckFailed(Exception):
    """An answer is not right yet. The message says what differs and what to look at."""

    def __init__(self, message: str, shown: bool = False):
        super().__init__(message)
        self._shown = shown

    def _render_traceback_(self) -> list[str]:
        """Keep IPython's traceback to the message: the frames would only show the course's code."""
        first_line = str(self).splitlines()[0]
        return [f"CheckFailed: {first_line if self._shown else self}"]


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


_hidden: dict[str, Any] | None = None  # what grading asks of this kernel


def load_hidden_cases(path: Path) -> None:
    """Read what grading asks; from then on every check answers grading and not the reader.

    The grading kernel calls this before the notebook runs, so that it does not matter which folder
    a cell goes to or what it deletes.
    """
    global _hidden
    _hidden = codec.loads(path.read_text(encoding="utf-8"))


def _emit_hidden_outcomes(exercise_id: str, candidate: Any) -> None:
    """Run the hidden cases of an exercise; hand back plain arrays."""
    from IPython.display import display

    task = _hidden[exercise_id]
    terms = Terms.from_plain(task["terms"])
    outcomes = run_all(task["driver"], candidate, task["cases"], terms)
    document = codec.dumps(
        {"exercise": exercise_id, "outcomes": [outcome.to_plain() for outcome in outcomes]}
    )
    display({OUTCOMES_TYPE: document, "text/plain": "answers recorded"}, raw=True)


def _without_forbidden_source(verdict: Verdict, candidate: Any, terms: Terms) -> Verdict:
    """Say what grading will say of the answer's source, as far as it is known here."""
    from attention_course.source_rules.live import search_live  # rarely needed
    from attention_course.source_rules.rules import refuse

    try:
        return refuse(verdict, search_live(candidate, terms.forbidden))
    except Exception:  # objects of a notebook can be anything; only grading decides
        return verdict


def check(exercise_id: str, candidate: Any) -> None:
    """Check your answer to an exercise on its public cases and show the result.

    Pass the function itself, not a call of it: `check("softmax", softmax)`. Raises CheckFailed if
    a case fails (so that Validate sees it) and CheckSetupError if the check itself cannot run.
    """
    if _hidden is None and os.environ.get("NBGRADER_EXECUTION") == "autograde":
        planted = Path(HIDDEN_CASES_FILE)  # where grading without a sandbox leaves them
        if planted.exists():
            load_hidden_cases(planted)
    if _hidden is not None:
        _emit_hidden_outcomes(exercise_id, candidate)
        return
    exercise = load_exercise(exercise_id)
    inputs = [case.inputs for case in exercise.cases]
    outcomes = run_all(exercise.driver, candidate, inputs, exercise.terms)
    verdict = judge(
        exercise_id,
        exercise.groups,
        exercise.cases,
        outcomes,
        exercise.expected,
        lambda: exercise.mistakes,
        exercise.tolerance,
    )
    if verdict.points and exercise.terms.forbidden:
        verdict = _without_forbidden_source(verdict, candidate, exercise.terms)
    failed = verdict.failed_case
    shown = inputs[failed] if failed is not None else None
    text = panel.as_text(verdict, shown)
    notebook = _in_notebook() and "NBGRADER_EXECUTION" not in os.environ
    if notebook:
        from IPython.display import display

        display({"text/plain": text, "text/html": panel.as_html(verdict, shown)}, raw=True)
    elif verdict.status == "passed":
        print(text)
    if verdict.status != "passed":
        raise CheckFailed(text, shown=notebook)
