"""Show a verdict: as a small HTML panel in a notebook, and as the same words in plain text."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from attention_course.judging import Verdict

# Colours carry no meaning alone: the words beside them say the same.
_COLOURS = {"passed": "#1a7f37", "partly right": "#9a6700"}
_OTHER_COLOUR = "#cf222e"


_CELL = "text-align:left;vertical-align:top;padding:1px 0;border:0;line-height:1.4"


def _marked(text: str) -> str:
    """Escape text for HTML; what stands between backticks is shown as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


MOST_SHOWN = 6  # of the entries of a dict: a module may have dozens of weights


def _holds_arrays(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_arrays, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_arrays, value))
    return isinstance(value, np.ndarray)


def describe_inputs(inputs: Mapping[str, Any]) -> str:
    """Say in one line what a case's inputs look like: shapes of arrays, values of the rest."""

    def one(value: Any) -> str:
        if isinstance(value, Mapping):
            shown = dict(list(value.items())[:MOST_SHOWN])
            more = len(value) - len(shown)
            return "{" + describe_inputs(shown) + (f" and {more} more" if more else "") + "}"
        if isinstance(value, list | tuple) and _holds_arrays(value):
            opening, closing = "()" if isinstance(value, tuple) else "[]"
            return opening + ", ".join(map(one, value)) + closing
        return str(value.shape) if isinstance(value, np.ndarray) else repr(value)

    return ", ".join(f"{name} {one(value)}" for name, value in inputs.items())


def _points(value: float) -> str:
    return f"{value:g}"


def rows(verdict: Verdict, inputs: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Give the lines of a panel as (label, text) pairs, headline excluded."""
    lines: list[tuple[str, str]] = []
    difference = verdict.difference
    if difference is None:
        return lines
    if verdict.failed_case is not None and difference.kind != "not attempted":
        lines.append(("Case", f"{verdict.failed_case + 1}: {verdict.case_about}"))
        if inputs is not None:
            lines.append(("Inputs", describe_inputs(inputs)))
    lines.append(("What was seen", difference.sentence))
    place = ""
    if difference.index:
        place = f"{difference.output}[{', '.join(map(str, difference.index))}] is "
    if difference.got:
        lines.append(("Yours", place + difference.got))
    if difference.expected:
        lines.append(("Expected", place + difference.expected))
    if verdict.details.get("traceback"):
        lines.append(("Where", verdict.details["traceback"].strip()))
    if verdict.details.get("warning"):
        lines.append(("Python warned", verdict.details["warning"]))
    if verdict.details.get("printed"):
        lines.append(("Your code printed", verdict.details["printed"].rstrip()))
    if verdict.cause:
        lines.append(("Likely cause", verdict.cause))
    if verdict.next_step:
        lines.append(("Next step", verdict.next_step))
    return lines


def headline(verdict: Verdict) -> str:
    """Say in one line how the exercise went."""
    counts = f"{verdict.passed_cases} of {verdict.total_cases} cases passed"
    if verdict.status == "passed":
        return f"{verdict.exercise}: all {verdict.total_cases} cases passed"
    if verdict.total_cases == 0:
        return f"{verdict.exercise}: {verdict.status}"
    return f"{verdict.exercise}: {verdict.status}, {counts}"


def _group_lines(verdict: Verdict, with_points: bool) -> list[str]:
    lines = []
    for group in verdict.groups:
        marks = f" ({_points(group.points)} of {_points(group.out_of)} points)" * with_points
        state = "ok" if group.passed == group.total else f"{group.passed} of {group.total}"
        lines.append(f"{group.about}: {state}{marks}")
    return lines


def as_text(
    verdict: Verdict, inputs: Mapping[str, Any] | None = None, with_points: bool = False
) -> str:
    """Render a verdict as plain text."""
    lines = [headline(verdict)]
    lines += [f"  - {line}" for line in _group_lines(verdict, with_points)]
    for label, text in rows(verdict, inputs):
        lines.append(f"{label}: {text}" if "\n" not in text else f"{label}:\n{text}")
    return "\n".join(lines)


def as_html(
    verdict: Verdict, inputs: Mapping[str, Any] | None = None, with_points: bool = False
) -> str:
    """Render a verdict as an HTML panel. All text is escaped; it contains no script."""
    colour = _COLOURS.get(verdict.status, _OTHER_COLOUR)
    sign = "\u2713" if verdict.status == "passed" else "\u2717"
    groups = "".join(f"<li>{_marked(line)}</li>" for line in _group_lines(verdict, with_points))
    body = "".join(
        f'<tr style="background:none"><th style="{_CELL};padding-right:12px;white-space:nowrap">'
        f"{html.escape(label)}</th>"
        f'<td style="{_CELL};white-space:pre-wrap">{_marked(text)}</td></tr>'
        for label, text in rows(verdict, inputs)
    )
    table = f'<table style="margin:4px 0 0;border:0">{body}</table>' if body else ""
    return (
        f'<div role="status" style="border-left:4px solid {colour};padding:4px 12px;margin:4px 0">'
        f'<strong style="color:{colour}">{sign} {html.escape(headline(verdict))}</strong>'
        f'<ul style="margin:2px 0 2px 20px;padding:0">{groups}</ul>{table}</div>'
    )
