"""The report of an assignment: one HTML page that holds all it needs."""

from __future__ import annotations

import base64
import io
import re
import statistics
from pathlib import Path
from typing import Any

import matplotlib
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from autograder.reporting import summary
from autograder.reporting.marks import Table

BLUE, GREY = "#1f5fa8", "#d0d7de"


def _picture(figure: Figure) -> str:
    """Return a figure as a data address; the same figure always gives the same text."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "report", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def histogram(points: list[float], out_of: float) -> dict[str, str]:
    """Draw how many submissions got how many points; return address and words."""
    bins = max(1, min(20, round(out_of)))
    figure, axes = _figure(7, 2.6)
    counts, edges, _ = axes.hist(
        points, bins=bins, range=(0, out_of or 1), color=BLUE, edgecolor="white"
    )
    axes.set(xlabel=f"points in the checks, of {out_of:g}", ylabel="submissions")
    axes.yaxis.get_major_locator().set_params(integer=True)
    fullest = int(counts.argmax())
    words = (
        f"Histogram of points: {len(points)} submissions, median {statistics.median(points):g} of "
        f"{out_of:g}; most of them, {counts[fullest]:g}, between {edges[fullest]:g} and "
        f"{edges[fullest + 1]:g}."
    )
    return {"address": _picture(figure), "words": words}


def pass_rates(rows: list[summary.ExerciseRow]) -> dict[str, str]:
    """Draw the share of full marks of each exercise; return address and words."""
    figure, axes = _figure(7, 0.6 + 0.28 * len(rows))
    names = [row.exercise for row in rows]
    axes.barh(names, [100.0] * len(rows), color=GREY)
    axes.barh(names, [row.rate for row in rows], color=BLUE)
    axes.set(xlim=(0, 100), xlabel="full marks, % of submissions")
    axes.invert_yaxis()
    words = "Share of full marks: " + ", ".join(f"{r.exercise} {r.rate:.0f} %" for r in rows) + "."
    return {"address": _picture(figure), "words": words}


def marked(text: str) -> Markup:
    """Escape text for HTML; what stands between backticks is shown as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


def render(table: Table) -> str:
    """Make the page. All text is escaped; all tables are bounded."""
    rows = summary.exercise_rows(table)
    points = summary.check_points(table)
    out_of = sum(row.out_of for row in rows)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = marked
    return environment.get_template("report.html.j2").render(
        table=table,
        rows=rows,
        out_of=out_of,
        points=points,
        median=statistics.median(points) if points else None,
        mean=statistics.fmean(points) if points else None,
        histogram=histogram(points, out_of) if points and rows else None,
        pass_rates=pass_rates(rows) if rows else None,
        failed=[row for row in rows if row.passed == 0],
        misconceptions=summary.misconceptions(table),
        unrecognised=summary.unrecognised(table),
        statuses=summary.statuses(table),
        looks=summary.need_a_look(table),
        limit=summary.ROWS,
    )
