"""What students read after grading: formulas without a network, and what was repaired."""

from __future__ import annotations

import html
import re
from typing import Any

import nbformat
from latex2mathml.converter import convert
from nbconvert.preprocessors import Preprocessor
from nbformat.notebooknode import NotebookNode

from autograder.grading import METADATA_KEY

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_FORMULA = re.compile(
    r"\$\$(?P<block>.+?)\$\$|(?<![\\\w$])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?![\w$])",
    re.DOTALL,
)


def _one_formula(match: re.Match) -> str:
    display = "block" if match["block"] else "inline"
    try:
        return convert((match["block"] or match["inline"]).strip(), display=display)
    except Exception:  # the converter raises many kinds; TeX as typed is still readable
        return match[0]


def formulas_to_mathml(text: str) -> str:
    """Turn TeX between dollar signs into MathML, which browsers draw by themselves.

    Code between backticks is left alone, and so is a formula that cannot be converted.
    """
    parts = _CODE.split(text)
    parts[::2] = [_FORMULA.sub(_one_formula, part).replace("\n\n\n", "\n\n") for part in parts[::2]]
    return "".join(parts)


class MathToMathML(Preprocessor):
    """Convert the formulas of all markdown cells; feedback pages then need no CDN."""

    enabled = True

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Convert one cell."""
        if cell.cell_type == "markdown":
            cell.source = formulas_to_mathml(cell.source)
        return cell, resources


class RepairNote(Preprocessor):
    """Say at the top of the feedback what was repaired in the submission, if anything was."""

    enabled = True

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Insert the note as the first cell."""
        repairs = nb.metadata.get(METADATA_KEY, {}).get("repairs", [])
        if repairs:
            lines = "\n".join(f"- {html.escape(note)}" for note in repairs)
            text = f"**About your submission.** Before grading, it was put in order:\n\n{lines}"
            nb.cells.insert(0, nbformat.v4.new_markdown_cell(text))
        return nb, resources
