r"""Make graded notebooks safe to show: nothing of a student's can act in a browser.

formgrader shows a graded notebook inside Jupyter, with the instructor's rights, and feedback pages
are opened by everyone; nbgrader puts outputs, markdown and comments into both as they are. So in
`autograded/` markdown becomes inert HTML, of outputs only text, pictures and plain HTML stay, and
everything is bounded. What a student handed in stays as it was in `submitted/`.

Formulas need care. MathJax acts on TeX anywhere on a page (`\href` makes links), so everything is
marked to be ignored by it and only formulas that were cleaned are given to it.
"""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Mapping
from typing import Any

import bleach
import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from PIL import Image

from autograder.grading.verdicts import METADATA_KEY, check_cells
from autograder.intake.exporter import read_sources

LONGEST_SOURCE = 50_000  # characters of one cell's text that are shown
LONGEST_OUTPUT = 20_000  # characters of one output
LARGEST_IMAGE = 2_000_000  # characters of one picture, in base64
MOST_PIXELS = 25_000_000
LARGEST_NOTEBOOK = 10_000_000  # characters of all that is shown
# Characters of one notebook that are cleaned as what they are; the rest is shown as plain text.
# Cleaning takes up to 5 s for a text made to be slow, and this is not inside the sandbox.
MOST_CLEANED = {"html": 100_000, "markdown": 200_000}

TAGS = frozenset(
    (
        *("a", "b", "code", "em", "i", "s", "span", "strong", "sub", "sup", "u", "br", "img"),
        *("blockquote", "dd", "div", "dl", "dt", "hr", "li", "ol", "p", "pre", "ul"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
        *("caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"),
    )
)
IMAGES = {"image/png": "PNG", "image/jpeg": "JPEG"}
_ACTIVE_ELEMENT = re.compile(r"<(script|style)\b.*?(</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(r"(https?://|mailto:)[^\s\\]+\Z", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+\Z")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029\ue000\ue001]")
# Macros that make links, attributes or other macros; with a space put in they are letters.
_ACTIVE_MACRO = re.compile(
    r"\\(?=(?:href|url|class|style|cssId|data|html\w*|require|bbox|unicode|mmlToken|includegraphics"
    r"|def|gdef|edef|let|newcommand|renewcommand|newenvironment|renewenvironment|catcode|csname"
    r"|tip|texttip|mathtip|toggle|action)(?![A-Za-z]))"
)

# MathJax 2 and later versions have different names for the same thing.
IGNORED = '<div class="tex2jax_ignore mathjax_ignore">'
FORMULA = '<span class="tex2jax_process mathjax_process">'


def cut(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters, saying so; what no file could hold is replaced."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n# … the other {len(text) - limit} characters are left out here …"


def _attribute(tag: str, name: str, value: str) -> bool:
    """Say which attributes may stay: absolute links, embedded pictures, spans of table cells."""
    if tag == "a":
        # A relative link would open a submitted file inside Jupyter, with the instructor's rights.
        return name == "href" and bool(_LINK.match(value))
    if tag == "img":
        return name == "alt" or (name == "src" and bool(_PICTURE.match(value)))
    return tag in ("td", "th") and name in ("colspan", "rowspan") and value.isdigit()


def _clean(text: str) -> str:
    return bleach.clean(
        text,
        tags=TAGS,
        attributes=_attribute,
        protocols={"http", "https", "mailto", "data"},
        strip=True,
    )


def safe_html(text: str) -> str:
    """Return HTML with nothing in it that acts, loads, or has a style; its text stays."""
    return f"{IGNORED}{_clean(_ACTIVE_ELEMENT.sub('', _CONTROL.sub('', text)))}</div>"


def _no_delimiters(text: str) -> str:
    """Write dollars and backticks so that MathToMathML sees neither formula nor code in them."""
    return text.replace("$", "&#36;").replace("`", "&#96;")


def safe_formula(tex: str, dollars: str) -> str:
    """Return a formula as HTML that MathJax or MathToMathML may typeset, or as plain text.

    It holds no `<`, `>` or character reference: MathToMathML would make elements of them.
    """
    inside = " ".join(tex.split())
    inside = _ACTIVE_MACRO.sub(r"\\ ", inside)
    inside = re.sub(r"\s*<\s*", r" \\lt ", inside)
    inside = re.sub(r"\s*>\s*", r" \\gt ", inside).strip()
    inside = re.sub(r"&(?=[#\w])", "& ", inside)
    if not inside or "$" in inside or "`" in inside or inside.endswith("\\"):
        return _no_delimiters(html.escape(f"{dollars}{' '.join(tex.split())}{dollars}"))
    return f"{FORMULA}{dollars}{inside}{dollars}</span>"


def safe_image(kind: str, data: Any) -> str | None:
    """Return a picture's base64 text if it is one of a fair size, else None."""
    if kind not in IMAGES or not isinstance(data, str) or len(data) > LARGEST_IMAGE:
        return None
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
        with Image.open(io.BytesIO(raw), formats=[IMAGES[kind]]) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                return None
    except Exception:  # Pillow raises many kinds; whatever it cannot read is no picture
        return None
    return base64.b64encode(raw).decode("ascii")


def _render_image(attachments: Mapping[str, Any]) -> Any:
    def render(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        alt = html.escape(token.content)
        bundle = attachments.get(str(token.attrs["src"]).removeprefix("attachment:"))
        for kind, data in (bundle or {}).items():
            picture = safe_image(kind, data)
            if picture:
                return f'<img src="data:{kind};base64,{picture}" alt="{alt}">'
        return f"[picture not shown: {alt}]"

    return render


def safe_markdown(text: str, attachments: Mapping[str, Any] | None = None) -> str:
    """Render markdown to HTML that can do nothing, in a form that markdown leaves as it is.

    HTML in the text is shown as text. Links lead to absolute addresses only; of pictures those
    attached to the cell are shown. The result is one line that starts with `<div>`: nbconvert
    passes such a block through without looking for markdown in it.
    """
    formulas: list[str] = []

    def keep(formula: str) -> str:
        formulas.append(formula)
        return f"\ue000{len(formulas) - 1}\ue001"

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.use(
        dollarmath_plugin,
        allow_labels=False,
        allow_digits=False,
        double_inline=True,
        renderer=lambda tex, how: keep(safe_formula(tex, "$$" if how["display_mode"] else "$")),
    )
    parser.use(amsmath_plugin, renderer=lambda tex: keep(safe_formula(tex, "")))
    parser.add_render_rule("image", _render_image(attachments or {}))
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    shown = _clean(parser.render(text))
    shown = _no_delimiters(shown.strip()).replace("\n", "&#10;")
    shown = re.sub("\ue000(\\d+)\ue001", lambda match: formulas[int(match[1])], shown)
    return f"{IGNORED}{shown}</div>"


def safe_output(output: NotebookNode) -> NotebookNode:
    """Return an output with what is safe of it: text, pictures, plain HTML."""
    kind = output.output_type
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return nbformat.v4.new_output(kind, name=name, text=cut(str(output.text), LONGEST_OUTPUT))
    if kind == "error":
        lines = cut("\n".join(map(str, output.get("traceback", []))), LONGEST_OUTPUT)
        return nbformat.v4.new_output(
            kind,
            ename=cut(str(output.ename), 200),
            evalue=cut(str(output.evalue), 2000),
            traceback=lines.split("\n"),
        )
    given, data = output.get("data", {}), {}
    for name in IMAGES:
        picture = safe_image(name, given.get(name))
        if picture:
            data[name] = picture
    for name, make_safe in (("text/plain", str), ("text/html", safe_html)):
        value = given.get(name)
        if isinstance(value, str):
            data[name] = make_safe(cut(value, LONGEST_OUTPUT))
    if not data:
        data["text/plain"] = "(An output is left out: it is no text and no picture of a fair size.)"
    number = {"execution_count": output.get("execution_count")} if kind == "execute_result" else {}
    return nbformat.v4.new_output(kind, data=data, metadata={}, **number)


def size(cell: NotebookNode) -> int:
    """Count roughly what a cell adds to a page, in characters."""
    return len(cell.source) + sum(len(str(output)) for output in cell.get("outputs", []))


class Budget:
    """What is left of MOST_CLEANED for one notebook."""

    def __init__(self) -> None:
        self.left = dict(MOST_CLEANED)

    def covers(self, kind: str, text: Any) -> bool:
        """Tell whether there is room for a text, and take it."""
        self.left[kind] -= len(str(text))
        return self.left[kind] >= 0


def plain(text: str) -> str:
    """Show a text as it is."""
    return f"{IGNORED}<pre>{_no_delimiters(html.escape(text))}</pre></div>".replace("\n", "&#10;")


def _safe_code(cell: NotebookNode, budget: Budget) -> None:
    cell.source = cut(cell.source, LONGEST_SOURCE)
    for output in cell.outputs:
        rich = output.get("data", {}).get("text/html")
        if rich is not None and not (len(rich) <= LONGEST_OUTPUT and budget.covers("html", rich)):
            del output.data["text/html"]
    cell.outputs = [safe_output(output) for output in cell.outputs]


def _safe_text(cell: NotebookNode, budget: Budget) -> None:
    text, attached = cut(cell.source, LONGEST_SOURCE), cell.pop("attachments", {})
    if cell.cell_type == "markdown" and budget.covers("markdown", text):
        cell.source = safe_markdown(text, attached)
    else:
        cell.source = plain(text)
    cell.cell_type = "markdown"


def make_safe(notebook: NotebookNode, source: NotebookNode, chapter: str) -> None:
    """Replace in `notebook` whatever is neither of the course nor a verdict by a safe form."""
    ours = {cell.source for cell in source.cells if cell.cell_type == "markdown"}
    verdicts = {id(cell) for cell, _ in check_cells(notebook, chapter)}
    budget, room = Budget(), LARGEST_NOTEBOOK
    for cell in notebook.cells:
        if id(cell) in verdicts:
            _mark_verdict(cell)
        elif cell.cell_type == "code":
            _safe_code(cell, budget)
        elif cell.cell_type == "raw" or cell.source not in ours:
            _safe_text(cell, budget)
        else:
            cell.pop("attachments", None)
        room -= size(cell)
        if room < 0 and id(cell) not in verdicts:
            cell.source = "# (Left out: the notebook is too large to be shown in full.)"
            if cell.cell_type == "code":
                cell.outputs = []
    kept = {key: notebook.metadata.get(key, {}) for key in ("kernelspec", METADATA_KEY)}
    notebook.metadata = nbformat.from_dict({**kept, "language_info": {"name": "python"}})


def _mark_verdict(cell: NotebookNode) -> None:
    """Keep MathJax away from a verdict, which quotes what a student's code said."""
    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            output.data["text/html"] = f"{IGNORED}{output.data['text/html']}</div>"


class Sanitise(NbGraderPreprocessor):
    """The last preprocessor of `nbgrader autograde` that changes the notebook."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Make the graded notebook safe to show."""
        info = resources["nbgrader"]
        source = read_sources(self.parent.parent.coursedir, info["assignment"])[info["notebook"]]
        make_safe(nb, source, info["assignment"])
        return nb, resources


class SafeComments(NbGraderPreprocessor):
    """Make comments safe in feedback: the status quotes names of submitted files."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Render one cell's comment, which GetGrades has put into its metadata."""
        meta = cell.metadata.get("nbgrader", {})
        if meta.get("comment"):
            meta["comment"] = safe_markdown(meta["comment"])
        return cell, resources
