"""The ledger of claims: what the experiments' own records say, as `course/CLAIMS.md`.

`autograder ledger` runs the chapters' solutions and writes the records to `solutions/claims.json`;
from there the page is built. Tests compare every later run with the records.
"""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat.notebooknode import NotebookNode

from attention_course.claims import CLAIMS, RECORD_TYPE
from autograder.course_map import headed, link
from autograder.masters import ROOT

RECORDS = ROOT / "solutions" / "claims.json"
FILE_NAME = "CLAIMS.md"
CELL_SECONDS = 600
WORDS = {True: "yes", False: "**no**", None: "not settled"}
INTRODUCTION = """\
# Claims and what became of them

Every row is one experiment of this course, in miniature and on a CPU: whether it supports the
claim, how large the effect was, over several seeds where the text says so, and how long the cell
took or, marked so, the recorded runs that it reads. *Not settled* means that the seeds do not agree
or lie too close to tell. A claim that is not supported here may well hold at the size at which it
was made.
"""


def records_in(notebook: NotebookNode) -> list[dict[str, Any]]:
    """Read the records from an executed notebook, in order."""
    found = []
    for cell, heading in headed(notebook.cells):
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(RECORD_TYPE)
            if record:
                found.append({**record, "heading": heading, "seconds": _seconds(cell)})
    return found


def _seconds(cell: NotebookNode) -> int:
    times = cell.metadata.get("execution", {})
    began, ended = (
        datetime.datetime.fromisoformat(times[name].replace("Z", "+00:00"))
        for name in ("iopub.execute_input", "shell.execute_reply")
    )
    return round((ended - began).total_seconds())


def run_chapter(name: str, solutions: Path = RECORDS.parent) -> list[dict[str, Any]]:
    """Run a chapter's solutions and return the records. Raises CellExecutionError."""
    notebook = nbformat.read(solutions / name / f"{name}.ipynb", as_version=4)
    with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
        for path in (solutions / name).iterdir():
            Path(folder, path.name).write_bytes(path.read_bytes())
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=CELL_SECONDS, resources=place).execute()
    return [{"chapter": name, **record} for record in records_in(notebook)]


def update(names: Iterable[str], path: Path = RECORDS) -> None:
    """Run chapters and put their records in the place of the old ones."""
    made = {name: run_chapter(name) for name in names}
    for name, records in made.items():
        print(f"{name}: {len(records)} claims")
    # Read only now: running takes minutes, in which another chapter may have been entered.
    kept = [record for record in read(path) if record["chapter"] not in made]
    kept += [record for records in made.values() for record in records]
    kept.sort(key=lambda record: record["chapter"])  # within a chapter as they come
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path = RECORDS) -> list[dict[str, Any]]:
    """Read the kept records; none if there is no file yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _row(record: dict[str, Any]) -> str:
    chapter, heading = record["chapter"], record["heading"]
    where = link(f"{chapter[:2]}: {heading}", chapter, heading)
    effect = record["effect"].replace("|", "\\|").replace("\n", " ")
    recorded = record.get("recorded_seconds")
    cost = f"{record['seconds']} s" if recorded is None else f"{recorded} s, recorded"
    return f"| {where} | {WORDS[record['supported']]} | {effect} | {cost} |"


def claims_text(records: list[dict[str, Any]]) -> str:
    """Return the text of the page; a claim without a record says so."""
    parts = [INTRODUCTION]
    for claim, statement in CLAIMS.items():
        rows = [_row(record) for record in records if record["claim"] == claim]
        table = ["| where | supported | effect | cost |", "|---|---|---|---|", *rows]
        shown = "\n".join(table) if rows else "No experiment of this course shows it."
        parts.append(f"## {claim}: {statement}\n\n{shown}\n")
    return "\n".join(parts)
