"""What the demo reports: marks, export and feedback of each submission, and what differs."""

from __future__ import annotations

import csv
import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry

from autograder.demo.building import Submission
from autograder.demo.class_list import CHAPTER
from autograder.grading.verdicts import METADATA_KEY
from autograder.masters import CHECK_PREFIX

PANEL = re.compile(r'<div role="status".*?</div>', re.DOTALL)
PANEL_ROW = re.compile(r"<tr[^>]*><th[^>]*>(.*?)</th>\s*<td[^>]*>(.*?)</td></tr>", re.DOTALL)
WORDS_SHOWN = 16


@dataclass(frozen=True)
class Row:
    """One submission as the table shows it. `got` is None if it was not graded."""

    submission: Submission
    expected: dict[str, float]
    got: dict[str, float | None] | None
    ungraded: float = 0.0  # points that wait for grading by hand
    exported: float | None = None
    said: str = ""
    page: Path | None = None


def read_row(root: Path, submission: Submission, expected: dict[str, float]) -> Row:
    """Collect the marks, the export's line and the feedback of one submission."""
    student = submission.student
    got: dict[str, float | None] | None = None
    ungraded = 0.0
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "attention") as gradebook:
        try:
            notebook = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student)
        except MissingEntry:
            notebook = None
        for grade in notebook.grades if notebook else ():
            got = got or {}
            if grade.name.startswith(CHECK_PREFIX):
                # A manual score would replace the automatic one; nobody has given any here.
                mark = grade.manual_score if grade.manual_score is not None else grade.auto_score
                got[grade.name.removeprefix(CHECK_PREFIX)] = mark
            elif grade.needs_manual_grade:
                ungraded += grade.max_score
    page = root / "feedback" / student / CHAPTER / f"{CHAPTER}.html"
    return Row(
        submission,
        expected,
        got,
        ungraded,
        _exported(root / "grades.csv", student),
        _said(root / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb", page),
        page if page.is_file() else None,
    )


def _exported(path: Path, student: str) -> float | None:
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["student_id"] == student and line["assignment"] == CHAPTER:
                return float(line["score"])
    return None


def panels(page: str) -> list[tuple[str, dict[str, str]]]:
    """Read the check panels of a feedback page: each panel's headline, and its rows by label."""

    def plain(text: str) -> str:
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())

    found = []
    for block in PANEL.findall(page):
        rows = {plain(label): plain(text) for label, text in PANEL_ROW.findall(block)}
        found.append((plain(block.partition("<ul")[0]), rows))
    return found


def _said(notebook: Path, page: Path) -> str:
    """Give the first words of what was repaired, else of the first panel that is not a pass."""
    if not notebook.is_file() or not page.is_file():
        return "not graded"
    repairs = nbformat.read(notebook, 4).metadata.get(METADATA_KEY, {}).get("repairs", [])
    if repairs:
        return repairs[0] + f" (and {len(repairs) - 1} more repairs)" * (len(repairs) > 1)
    shown = panels(page.read_text(encoding="utf-8"))
    for headline, rows in shown:
        if not headline.startswith("✓"):
            seen = f"{rows.get('What was seen', '')} {rows.get('Yours', '')}"
            words = rows.get("Likely cause", seen).split()
            tail = " …" * (len(words) > WORDS_SHOWN)
            return f"{headline}. {' '.join(words[:WORDS_SHOWN])}{tail}"
    return f"✓ all {len(shown)} checks passed"


# --- the table and the verdict -------------------------------------------------------------------


def differences(row: Row) -> list[str]:
    """Say in words where the marks of a submission are not the expected ones."""
    who = row.submission.student
    if row.got is None:
        return [f"{who}: the submission was not graded."]
    found = []
    for name, expected in row.expected.items():
        got = row.got.get(name)
        if got != expected:
            seen = "no mark" if got is None else f"{got:g}"
            found.append(f"{who}: {name} is worth {expected:g}, and grading gave {seen}.")
    total = sum(mark or 0.0 for mark in row.got.values())
    if row.exported != total:
        seen = "nothing" if row.exported is None else f"{row.exported:g}"
        found.append(f"{who}: the marks add up to {total:g}, and the export says {seen}.")
    if row.page is None:
        found.append(f"{who}: there is no feedback page.")
    return found


def table(rows: Sequence[Row]) -> str:
    """Lay out one block for each submission: marks and what it is, what was said, the page."""
    width = max((len(row.submission.student) for row in rows), default=7)
    lines = [f"{'student':<{width}}  expected   got  submission"]
    for row in rows:
        expected = sum(row.expected.values())
        got = "-" if row.got is None else f"{sum(mark or 0 for mark in row.got.values()):g}"
        sign = "  <-- differs" if differences(row) else ""
        student, about = row.submission.student, row.submission.about
        lines.append(f"{student:<{width}}  {expected:>8g}  {got:>4}  {about}{sign}")
        lines.append(f"{'':<{width}}  {row.said}")
        page = os.path.relpath(row.page) if row.page else "no feedback page"
        lines.append(f"{'':<{width}}  {page}")
    waiting = max((row.ungraded for row in rows), default=0)
    if waiting:
        lines.append(
            f"Written answers ({waiting:g} points) count 0 here: they are graded by hand, in "
            "JupyterLab's menu Nbgrader, Formgrader."
        )
    return "\n".join(lines)


def conclude(rows: Sequence[Row], problems: Sequence[str]) -> int:
    """Print the table and all differences; return the exit status."""
    print(f"\n{table(rows)}\n")
    found = [*problems, *(text for row in rows for text in differences(row))]
    for text in found:
        print(f"DIFFERENT: {text}")
    if not rows or found:
        print(f"{len(found)} differences. The marks are not right.")
        return 1
    print(f"All {len(rows)} submissions got the expected marks.")
    return 0
