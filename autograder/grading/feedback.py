"""nbgrader's pages need no network: formulas become MathML, which browsers draw by themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbgrader
from latex2mathml.converter import convert
from nbconvert.preprocessors import Preprocessor
from nbformat.notebooknode import NotebookNode

# Our templates first: they replace one macro of those that nbgrader uses for feedback.
TEMPLATES = [
    str(Path(__file__).resolve().parent.parent / "templates"),
    str(Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"),
]

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


# nbgrader's pages take their looks from Bootstrap 3, which leaves tables without padding and hides
# the triangle of a folded hint. Formgrader's script also waits for MathJax, which is on a CDN:
# without a stand-in its keyboard shortcuts are dead offline.
_PAGE = """<style>
.rendered_html table { margin: 1em 0; }
.rendered_html th, .rendered_html td { padding: 2px 12px 2px 0; }
summary { display: list-item; cursor: pointer; }
</style><script>
if (!window.MathJax) window.MathJax = {loaded: true, Hub: {
  Queue: function () {}, Config: function () {},
  Startup: {signal: {Interest: function (then) { setTimeout(then, 0, "End"); }}}}};
</script>"""


class OfflinePage(Preprocessor):
    """Make nbgrader's HTML pages readable and usable without a network."""

    enabled = True

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Put style and stand-in behind the first text of the notebook."""
        first = next((cell for cell in nb.cells if cell.cell_type == "markdown"), None)
        if first is not None:
            first.source += "\n\n" + " ".join(_PAGE.split("\n"))
        return nb, resources


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
