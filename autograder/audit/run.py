"""Prove the checks: `autograder audit` asks every exercise hard questions and prints the answers.

The questions and their thresholds are in `audit_checks`. Exercises are audited in processes of
their own with bounded memory, since a mutant may do anything.
"""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from autograder.audit.answers import read_answer
from autograder.audit.checks import HIDDEN_SEEDS, audit_exercise
from autograder.audit.trials import Report
from autograder.exercises import chapters, find
from autograder.forking import use_one_torch_thread
from autograder.masters import ROOT, MasterError

RESULT = ROOT / "build" / "audit.json"
PROCESSES = 2
MEMORY = 4 * 1024**3  # bytes of data for one process

COLUMNS = (
    *("exercise", "points", "stub", "lazy", "solution", "accepted"),
    *("caught", "named", "killed", "equivalent", "margin", "seconds"),
)


def audit_by_id(exercise_id: str, seeds: Sequence[int] = HIDDEN_SEEDS) -> Report:
    """Audit one exercise against its chapter's master; a broken master is a failure."""
    chapter, exercise = find(exercise_id)
    answer, problem = None, ""
    try:
        answer = read_answer(chapter, exercise_id)
    except (MasterError, FileNotFoundError) as error:
        problem = str(error)
    try:
        report = audit_exercise(exercise, answer, seeds)
    except Exception as error:  # whatever an exercise does wrong: tell it, audit the others
        report = Report(exercise_id, {"points": exercise.points})
        report.fail("stopped", f"the audit stopped with {type(error).__name__}: {error}")
    if problem:
        report.fail("master", f"there is no solution to audit: {problem}")
    return report


def _prepare_process() -> None:
    """Keep PyTorch from hanging; turn too much memory into MemoryError, where the system can."""
    use_one_torch_thread()
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def audit_all(ids: list[str], seeds: Sequence[int] = HIDDEN_SEEDS) -> list[Report]:
    """Audit several exercises side by side; reports come in the order of `ids`."""
    processes = min(PROCESSES, os.cpu_count() or 1, len(ids))
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, fork, initializer=_prepare_process) as pool:
        # Later exercises of a chapter take longer: they go first, so that no process waits.
        one = functools.partial(audit_by_id, seeds=seeds)
        return list(pool.map(one, reversed(ids)))[::-1]


def as_plain(report: Report) -> dict[str, Any]:
    """Give a report as `build/audit.json` holds it; a margin of null is an infinite one."""
    failures = [failure.sentence for failure in report.failures]
    return {**report.facts, "failures": failures, "notes": report.notes}


def _of(facts: dict[str, Any], name: str, part: str) -> str:
    counts = facts.get(name)
    return f"{counts[part]}/{counts['total']}" if counts else "-"


def _row(report: Report) -> tuple[str, ...]:
    facts = report.facts
    mutants = facts.get("mutants")
    killed = "-"
    if mutants:
        killed = f"{mutants['killed']}/{mutants['total'] - mutants['equivalent']}"
    margin = facts.get("smallest_margin", "-")
    return (
        report.exercise,
        *(f"{facts[name]:g}" if name in facts else "-" for name in COLUMNS[1:5]),
        _of(facts, "accepted", "passed"),
        _of(facts, "misconceptions", "caught"),
        _of(facts, "misconceptions", "named"),
        killed,
        str(mutants["equivalent"]) if mutants else "-",
        "inf" if margin is None else margin if margin == "-" else f"{margin:.1e}",
        f"{facts['seconds']:.2f}" if "seconds" in facts else "-",
    )


def table(reports: list[Report]) -> str:
    """Lay the reports out as a table, one line for each exercise."""
    rows = [COLUMNS, *map(_row, reports)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = []
    for row in rows:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
    return "\n".join(lines)


def main(exercises: list[str], result: Path = RESULT, seeds: Sequence[int] = HIDDEN_SEEDS) -> int:
    """Audit the exercises (default: all), write `build/audit.json`, print; return the exit status.

    0: no failure. 1: at least one. 2: an unknown exercise was asked for.
    """
    try:
        ids = [find(name)[1].id for name in exercises]
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    ids = ids or [name for members in chapters().values() for name in members]
    reports = audit_all(ids, seeds)
    result.parent.mkdir(parents=True, exist_ok=True)
    plain = {report.exercise: as_plain(report) for report in reports}
    result.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(reports))
    for heading, lines in (
        ("Notes", [note for report in reports for note in report.notes]),
        ("Failures", [failure.sentence for report in reports for failure in report.failures]),
    ):
        if lines:
            print(f"\n{heading}:", *(f"- {line}" for line in lines), sep="\n")
    failed = any(report.failures for report in reports)
    print("\nThe audit failed." if failed else "\nEvery check is proven.")
    return int(failed)
