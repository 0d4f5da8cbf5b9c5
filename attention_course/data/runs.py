"""Write and read recorded runs: a CSV with one row for each, and a log beside it.

Experiments that are too long for a notebook are made by the scripts below `experiments/`; the
notebooks plot what those scripts recorded.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.metadata
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records"
VERSIONS_OF = ("torch", "numpy")


def origin() -> dict[str, str]:
    """Say where and when a run is made: `date`, `machine` and `versions`."""
    # Asked of the installation: whoever reads records should not have to import torch.
    versions = [f"{name} {importlib.metadata.version(name)}" for name in VERSIONS_OF]
    return {
        "date": str(datetime.date.today()),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
    }


def record_runs(
    path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], about: str = ""
) -> None:
    """Write rows to `path` as they come, and a log with date, machine and versions beside it.

    Args:
        path: the CSV; the log has the same name with the ending ".txt".
        columns: names of the columns, in order; a row may leave some out.
        rows: one mapping for each run, made while it is asked for.
        about: what the log says of the whole record.

    Raises:
        ValueError: a row has a value for which there is no column.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("w", encoding="utf-8", newline="") as table,
        path.with_suffix(".txt").open("w", encoding="utf-8") as log,
    ):

        def say(line: str) -> None:
            print(line, file=log, flush=True)
            print(line, flush=True)

        say("{date}, {machine}; {versions}".format(**origin()))
        if about:
            say(about)
        writer = csv.DictWriter(table, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            table.flush()
            say(", ".join(f"{name} {value}" for name, value in row.items() if value != ""))
        say(f"done after {time.process_time() / 60:.1f} minutes of computing")


def recording_options(description: str, names: Iterable[str] = ()) -> argparse.Namespace:
    """Read a recording script's command line.

    Args:
        description: what the script records, for `--help`.
        names: of the script's experiments, if it has several.

    Returns:
        `folder` to write into, `small` for a trial run, and which `names` to record: all of them
        if none was given.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--folder", type=Path, default=RECORDS, help="where to write")
    parser.add_argument("--try", dest="small", action="store_true", help="seconds, not minutes")
    if names := list(names):
        parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    options = parser.parse_args()
    options.names = getattr(options, "names", None) or names
    if unknown := set(options.names) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return options


def read_runs(
    path: Path, texts: Sequence[str], whole: Sequence[str] = ()
) -> list[dict[str, str | int | float | None]]:
    """Read what `record_runs` wrote, one dictionary for each row.

    Args:
        path: the CSV.
        texts: columns that hold text.
        whole: columns that hold whole numbers; all others hold floats. An empty number is None.

    Raises:
        ValueError: nothing was recorded there.
    """
    if not path.is_file():
        raise ValueError(f"no runs were recorded there: there is no {path.name} in {path.parent}.")

    def value(name: str, text: str) -> str | int | float | None:
        if name in texts:
            return text
        if not text:
            return None
        return int(text) if name in whole else float(text)

    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: value(name, text) for name, text in row.items()} for row in csv.DictReader(file)
        ]
