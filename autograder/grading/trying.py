"""Run any candidate file through an exercise exactly as grading does."""

from __future__ import annotations

import ast
import secrets
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from attention_course import codec, panel
from attention_course.checking import HIDDEN_CASES_FILE
from attention_course.judging import Verdict
from autograder.exercise import PUBLIC_SEED, Exercise
from autograder.grading.execution import SandboxedExecute
from autograder.grading.source_search import SourceSearch
from autograder.grading.verdicts import no_result, recorded_outcomes, task
from autograder.masters import CHECK_PREFIX, KERNELSPEC


def answer_name(exercise_id: str, source: str) -> str:
    """Give the name that a check would read: `encoder_block`, or the class `EncoderBlock`."""
    class_name = exercise_id.title().replace("_", "")
    try:
        defined = {getattr(node, "name", "") for node in ast.parse(source).body}
    except SyntaxError:
        defined = set()
    return class_name if class_name in defined and exercise_id not in defined else exercise_id


def _notebook(exercise: Exercise, source: str) -> Any:
    def cell(text: str, grade_id: str) -> Any:
        return new_code_cell(text, metadata={"nbgrader": {"grade_id": grade_id}})

    notebook = new_notebook(metadata={"kernelspec": KERNELSPEC})
    notebook.cells = [
        new_code_cell("import numpy as np\nfrom attention_course import check"),
        cell(source, exercise.id),
        cell(
            f'check("{exercise.id}", {answer_name(exercise.id, source)})',
            CHECK_PREFIX + exercise.id,
        ),
    ]
    return nbformat.from_dict(notebook)


def try_candidate(exercise: Exercise, source: str, seed: int | None = None) -> dict[str, Verdict]:
    """Run `source`, which must define the exercise's function or class, in a sandboxed kernel.

    Returns the verdicts on the public cases and on hidden cases of `seed` (default: a fresh one).
    """
    seed = secrets.randbits(63) | 1 if seed is None else seed
    sets = {"public": exercise.make_cases(PUBLIC_SEED), "hidden": exercise.make_cases(seed)}
    cases = [case for members in sets.values() for case in members]
    notebook = _notebook(exercise, source)
    with tempfile.TemporaryDirectory(prefix="try-") as folder:
        document = codec.dumps({exercise.id: task(exercise, cases)})
        Path(folder, HIDDEN_CASES_FILE).write_text(document, encoding="utf-8")
        SandboxedExecute(timeout=30).preprocess(notebook, {"metadata": {"path": folder}})
    given, answer, check = notebook.cells
    search = SourceSearch(notebook, nbformat.from_dict({**notebook, "cells": [given]}), {})
    outcomes = recorded_outcomes(check, exercise.id, len(cases))
    verdicts = {}
    for name, members in sets.items():
        if outcomes is None:
            verdicts[name] = no_result(exercise, answer, check)
        else:
            own, outcomes = outcomes[: len(members)], outcomes[len(members) :]
            verdicts[name] = search.judged(exercise.judge(own, members), exercise, check)
    return verdicts


def verdict_plain(verdict: Verdict) -> dict[str, Any]:
    """Give a verdict as JSON can hold it, with the message as students read it."""
    plain = asdict(verdict)
    plain["message"] = panel.as_text(verdict, with_points=True)
    return plain
