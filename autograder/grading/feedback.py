"""Feedback pages need no network: formulas become MathML, which browsers draw by themselves."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert
from nbconvert.preprocessors import Preprocessor
from nbformat.notebooknode import NotebookNode

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
