import base64
import contextlib
import io
import json

import nbformat
import pytest
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
    new_raw_cell,
)
from PIL import Image

from autograder.demo.run import Course
from autograder.grading import sanitise
from autograder.grading.sanitise import (
    cut,
    make_safe,
    safe_formula,
    safe_html,
    safe_image,
    safe_markdown,
    safe_output,
)

# --- what stays readable ---------------------------------------------------------------------


def test_what_a_student_writes_stays_readable():
    text = "Since `a < b && c` and $x_i < y$, **so** it is.\n\n- one\n- two\n"
    text += "\n```\nif a < b:\n\n    c\n```"
    shown = safe_markdown(text)
    assert "<code>a &lt; b &amp;&amp; c</code>" in shown
    assert r"$x_i \lt y$" in shown
    assert "<strong>so</strong>" in shown
    assert shown.count("<li>") == 2
    assert "if a &lt; b:&#10;&#10;    c" in shown
    assert "\n" not in shown


def test_html_in_an_answer_is_shown_as_text():
    assert "&lt;b&gt;bold&lt;/b&gt;" in safe_markdown("<b>bold</b>")


def test_prices_are_no_formula():
    assert sanitise.FORMULA not in safe_markdown("It costs $5 or $6.")


def test_display_formulas_stay_formulas():
    assert "$$a = b$$</span>" in safe_markdown("$$\na = b\n$$")
    assert r"\begin{align} a &= b \end{align}" in safe_markdown(
        "\\begin{align}\na &= b\n\\end{align}"
    )


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\href{javascript:a()}{x}", r"\ href{javascript:a()}{x}"),
        (r"\\href{x}", r"\\ href{x}"),
        (r"\class{a}{b} \style{c}{d} \cssId{e}{f}", r"\ class{a}{b} \ style{c}{d} \ cssId{e}{f}"),
        (r"\require{html}", r"\ require{html}"),
        (r"\text{<img src=x>}", r"\text{ \lt img src=x \gt }"),
        (r"\text{&lt;img}", r"\text{& lt;img}"),
        (r"a &= b", r"a &= b"),
        (r"\left( \delta \classical", r"\left( \delta \classical"),
    ],
)
def test_formulas_cannot_act(tex, shown):
    assert safe_formula(tex, "$") == f"{sanitise.FORMULA}${shown}$</span>"


def test_what_is_no_proper_formula_becomes_text():
    assert "$" not in safe_formula("a $ b", "$")
    assert "$" not in safe_formula("a\\", "$")
    assert "<" not in safe_formula("`<", "$")


def test_links_lead_to_absolute_addresses_only():
    for address in ("http://a.b/c", "https://a.b", "mailto:a@b.c"):
        assert f'href="{address}"' in safe_markdown(f"[x]({address})")
    for address in ("page.html", "/files/x", "//a.b", "javascript:a()", "data:text/html,x", "#a"):
        assert "href" not in safe_markdown(f"[x]({address})")
        assert "href" not in safe_html(f'<a href="{address}">x</a>')


def test_tables_of_results_stay():
    text = safe_html('<table class="dataframe"><tr><td colspan="2" style="x">1</td></tr></table>')
    assert '<td colspan="2">1</td>' in text
    assert "class" not in text.removeprefix(sanitise.IGNORED)


# --- pictures and sizes ------------------------------------------------------------------------


def picture(kind="PNG", size=(4, 3)):
    buffer = io.BytesIO()
    Image.new("1", size).convert("L").save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


def test_only_pictures_of_a_fair_size_are_kept(monkeypatch):
    assert safe_image("image/png", picture())
    assert safe_image("image/jpeg", picture("JPEG"))
    assert safe_image("image/png", picture("JPEG")) is None
    assert safe_image("image/png", base64.b64encode(b"<svg onload=a()>").decode()) is None
    assert safe_image("image/svg+xml", picture()) is None
    assert safe_image("image/png", 7) is None
    monkeypatch.setattr(sanitise, "MOST_PIXELS", 11)
    assert safe_image("image/png", picture()) is None
    monkeypatch.setattr(sanitise, "LARGEST_IMAGE", 3)
    assert safe_image("image/jpeg", picture("JPEG", (1, 1))) is None


def test_attached_pictures_are_shown_and_missing_ones_named():
    text = "![my plot](attachment:a.png) ![gone](attachment:b.png) ![far](http://a.b/c.png)"
    shown = safe_markdown(text, {"a.png": {"image/png": picture()}})
    assert f'src="data:image/png;base64,{picture()}"' in shown
    assert "[picture not shown: gone]" in shown
    assert "[picture not shown: far]" in shown
    assert shown.count("<img") == 1


def test_long_texts_are_cut_and_say_so():
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3).startswith("abc\n")
    assert "1 characters" in cut("abcd", 3)
    assert cut("a\ud800", 9) == "a?"


def test_outputs_keep_text_and_lose_the_rest():
    data = {
        "text/plain": "p",
        "text/html": "<b onclick='a()'>h</b>",
        "image/png": picture(),
        "image/svg+xml": "<svg/>",
        "application/javascript": "a()",
        "text/latex": "$x$",
        "application/x-unknown+json": {"a": 1},
    }
    made = safe_output(new_output("display_data", data=data, metadata={"image/png": {"width": 1}}))
    assert sorted(made.data) == ["image/png", "text/html", "text/plain"]
    assert "onclick" not in made.data["text/html"]
    assert made.metadata == {}
    only = safe_output(new_output("display_data", data={"application/javascript": "a()"}))
    assert "left out" in only.data["text/plain"]


def test_long_outputs_are_bounded():
    long = "<b>" + "x" * 2 * sanitise.LONGEST_OUTPUT
    output = new_output("display_data", data={"text/plain": long, "text/html": long})
    notebook = new_notebook(cells=[new_code_cell(outputs=[output])])
    make_safe(notebook, new_notebook(), "02_attention")
    (made,) = notebook.cells[0].outputs
    assert list(made.data) == ["text/plain"]
    assert len(made.data["text/plain"]) < 1.1 * sanitise.LONGEST_OUTPUT
    assert len(safe_output(new_output("stream", text=long)).text) < 1.1 * sanitise.LONGEST_OUTPUT
    error = new_output("error", ename=long, evalue=long, traceback=[long, long])
    assert len(str(safe_output(error))) < 1.3 * sanitise.LONGEST_OUTPUT


def verdict_cell(html):
    cell = new_code_cell(
        "check()", outputs=[new_output("execute_result", data={"text/html": html})]
    )
    cell.metadata["nbgrader"] = {"grade_id": "check-softmax", "grade": True}
    return cell


def test_the_courses_own_cells_and_verdicts_stay_as_they_are(monkeypatch):
    source = new_notebook(cells=[new_markdown_cell("<details>ours</details>")])
    verdict = '<div role="status" style="color:red">x</div>'
    notebook = new_notebook(
        cells=[
            new_markdown_cell("<details>ours</details>"),
            new_markdown_cell("<details>theirs</details>"),
            new_raw_cell("<i>raw</i>"),
            verdict_cell(verdict),
        ]
    )
    notebook.metadata["widgets"] = {"x": 1}
    make_safe(notebook, source, "02_attention")
    ours, theirs, raw, check = notebook.cells
    assert ours.source == "<details>ours</details>"
    assert "<details>" not in theirs.source
    assert "&lt;i&gt;raw" in raw.source
    assert verdict in check.outputs[0].data["text/html"]
    assert "widgets" not in notebook.metadata
    # The same cell in a chapter without such an exercise is no verdict.
    notebook = new_notebook(cells=[verdict_cell(verdict)])
    make_safe(notebook, source, "another")
    assert "style" not in notebook.cells[0].outputs[0].data["text/html"]


def test_only_so_much_is_cleaned_and_the_rest_is_plain_text(monkeypatch):
    """Cleaning is done outside the sandbox: nobody may keep it busy for hours."""
    monkeypatch.setattr(sanitise, "MOST_CLEANED", {"html": 50, "markdown": 50})
    table = new_output("display_data", data={"text/html": "<b>x</b>" * 4, "text/plain": "x"})
    cells = [new_code_cell(outputs=[table]), new_code_cell(outputs=[table])]
    cells += [new_markdown_cell("**bold** <i> $x$ " * 2) for _ in range(2)]
    notebook = nbformat.from_dict(new_notebook(cells=cells))
    make_safe(notebook, new_notebook(), "02_attention")
    first, second, rich, plain = notebook.cells
    assert "text/html" in first.outputs[0].data
    assert list(second.outputs[0].data) == ["text/plain"]
    assert "<strong>bold" in rich.source
    assert "<pre>**bold** &lt;i&gt; &#36;x&#36;" in plain.source


def test_the_whole_notebook_is_bounded(monkeypatch):
    monkeypatch.setattr(sanitise, "LARGEST_NOTEBOOK", 1000)
    cells = [new_markdown_cell("x" * 400) for _ in range(9)]
    notebook = new_notebook(cells=[*cells, verdict_cell("kept")])
    make_safe(notebook, new_notebook(), "02_attention")
    assert "Left out" in notebook.cells[8].source
    assert "kept" in notebook.cells[9].outputs[0].data["text/html"]


# --- attacks, in the pages that nbgrader makes, in a browser --------------------------------------

P = "pwned.push({})"  # each attack would leave its number here
MARKDOWN = [
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<svg><a xlink:href=\"javascript:{}\"><text y=20>x</text></a></svg>",
    "<details open ontoggle={}>x</details>",
    "<body onload={}>",
    "<input autofocus onfocus={}>",
    "<iframe srcdoc=\"<script>top.{}</script>\"></iframe>",
    "<iframe src=\"javascript:top.{}\"></iframe>",
    "<video><source onerror={}></video>",
    "<math><a xlink:href=\"javascript:{}\">x</a></math>",
    "<a href=\"javascript:{}\">x</a>",
    "[x](javascript:{})",
    "[x](JaVaScRiPt:{})",
    "[x](javascript&colon;{})",
    "[x](java&#115;cript:{})",
    "[x](&#1;javascript:{})",
    "[x][r]\n\n[r]: javascript:{}",
    "<javascript:{}>",
    "![x](x\"onerror=\"{})",
    "![x](x '\" onerror=\"{}')",
    "**<img src=x onerror={}>**",
    "`<img src=x onerror={}>` <img src=x onerror={}>",
    "$\\text{<svg/onload={}>}$",
    "$$\n\\text{<svg/onload={}>}\n$$",
    "$a$<img src=x onerror={}>$b$",
    "```mermaid\n</pre><img src=x onerror={}>\n```",
    "```\"><img src=x onerror={}>\nx\n```",
    "<div>\n\n<img src=x onerror={}>\n\n</div>",
    "|a|\n|-|\n|<img src=x onerror={}>|",
    "<form><button formaction=\"javascript:{}\">x</button></form>",
    "<noscript><p title=\"</noscript><img src=x onerror={}>\">",
    "<math><mtext><table><mglyph><style><!--</style>"
    "<img title=\"--&gt;&lt;img src=x onerror={}&gt;\">",
    "<object data=\"javascript:{}\"></object>",
    "<embed src=\"javascript:{}\">",
    "<style onload={}></style>",
]  # fmt: skip
OUTPUTS = [
    "display(HTML({html!r}))",
    "display(Javascript({js!r}))",
    "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"' + {js!r} + '\"/>'))",
    "display(Markdown({html!r}))",
    "display(Latex({html!r}))",
    "display({{'text/html': {html!r}}}, raw=True, metadata={{'text/html': {{'isolated': True}}}})",
    "display({{'image/png': PNG}}, raw=True, "
    "metadata={{'image/png': {{'width': '1 onload=' + {js!r}}}}})",
    "display({{'image/png': 'x\" onerror=\"' + {js!r}}}, raw=True)",
    "display({{'image/jpeg': {html!r}, 'text/plain': {html!r}}}, raw=True)",
    "display({{'application/vnd.jupyter.widget-view+json': {{'model_id': {html!r}}}}}, raw=True)",
    "print({html!r})",
    "print({html!r}, file=sys.stderr)",
    "raise ValueError({html!r})",
    "class Odd:\n    def __repr__(self): return {html!r}\nOdd()",
    "x = {html!r}",
]


def attacks():
    """The cells of a submission, each an attack, with its number."""
    cells, number = [], 0

    def payload():
        nonlocal number
        number += 1
        return P.format(number)

    for vector in MARKDOWN:
        cells.append(new_markdown_cell(vector.replace("{}", payload())))
    cells.append(new_raw_cell(f"<img src=x onerror={payload()}>"))
    for vector in OUTPUTS:
        js = payload()
        code = vector.format(js=js, html=f"<img src=x onerror={js}>")
        cells.append(new_code_cell(code))
    return cells


PREPARE = f"import sys\nfrom IPython.display import *\nPNG = {picture()!r}"
ANSWER = "Because $a < b$. <img src=x onerror=pwned.push(0)>"


def course_of_attacks(root, protected):
    """Grade a class of one attacker with plain nbgrader; the feedback and the graded notebook."""
    course = Course(root)
    course.empty()
    if not protected:
        with (root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(
                "c.Autograde.autograde_preprocessors.remove('autograder.grading.sanitise.Sanitise')\n"
                "c.GenerateFeedback.preprocessors.remove('autograder.grading.sanitise.SafeComments')\n"
            )
    why = new_markdown_cell("Model answer.", id="why")
    why.metadata["nbgrader"] = {
        "grade_id": "why", "grade": True, "solution": True, "locked": False, "task": False,
        "points": 2, "schema_version": 3,
    }  # fmt: skip
    source = new_notebook(
        cells=[new_markdown_cell("# Title"), why],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        },
    )
    write(source, root / "solutions" / "attacks" / "attacks.ipynb")
    assert course.nbgrader("generate_assignment", "attacks") == 0
    answer = nbformat.from_dict({**why, "source": ANSWER})
    cells = [source.cells[0], answer, new_code_cell(PREPARE), *attacks()]
    folder = root / "submitted" / "eve" / "attacks"
    write(new_notebook(cells=cells, metadata=source.metadata), folder / "attacks.ipynb")
    # Is quoted in the status, and so in a comment.
    (folder / "timestamp.txt").write_text("<img src=x onerror=pwned=[99]>")
    assert course.nbgrader("autograde", "attacks") == 0, course.log.read_text()[-3000:]
    assert course.nbgrader("generate_feedback", "attacks") == 0, course.log.read_text()[-3000:]
    return (
        root / "feedback" / "eve" / "attacks" / "attacks.html",
        root / "autograded" / "eve" / "attacks" / "attacks.ipynb",
    )


def write(notebook, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def formgrader_page(course, notebook, folder):
    """Render a graded notebook as formgrader's handler does."""
    from nbconvert.exporters import HTMLExporter
    from nbgrader.apps import NbGrader
    from nbgrader.server_extensions.formgrader import handlers

    app = NbGrader()
    with contextlib.chdir(course):
        app.initialize([])
    config = app.config
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    (folder / "formgrader").mkdir()
    (folder / "formgrader" / "static").symlink_to(handlers.static_path)
    resources = {
        "assignment_id": "attacks", "notebook_id": "attacks", "submission_id": "1", "index": 0,
        "total": 1, "base_url": folder.as_uri(), "student": "eve", "last_name": "",
        "first_name": "", "notebook_path": "x",
    }  # fmt: skip
    html, _ = HTMLExporter(config=config).from_filename(str(notebook), resources=resources)
    path = folder / "formgrader.html"
    path.write_text(html, encoding="utf-8")
    return path


TOUCH_EVERYTHING = """() => {
  for (const element of document.querySelectorAll("#notebook *")) {
    for (const kind of ["mouseover", "mouseenter", "focus", "toggle", "pointerover"])
      element.dispatchEvent(new Event(kind));
    const to = element.getAttribute("href") || element.getAttribute("xlink:href") || "";
    if (element.matches("button, summary") || (to && !/^(https?|mailto):/.test(to)))
      element.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
  }
}"""


def opened(browser, path):
    """Open a page, touch everything in it, and say which attacks ran, with the text seen."""
    page = browser.new_page()
    page.add_init_script("window.pwned = []")
    page.goto(path.as_uri())
    text = page.inner_text("#notebook")
    page.evaluate(TOUCH_EVERYTHING)
    page.wait_for_timeout(500)
    ran = set()
    for frame in page.frames:
        with contextlib.suppress(Exception):  # a frame that is gone
            ran |= {str(number) for number in frame.evaluate("window.pwned")}
    markup = page.content()
    page.close()
    return ran, text, markup


@pytest.mark.slow
def test_no_attack_runs_in_formgrader_or_feedback(tmp_path, browser):
    feedback, graded = course_of_attacks(tmp_path / "course", protected=True)
    folder = tmp_path / "page"
    folder.mkdir()
    for path in (feedback, formgrader_page(tmp_path / "course", graded, folder)):
        ran, text, _ = opened(browser, path)
        assert ran == set(), f"{path.name}: {ran}"
        assert "Because" in text
        assert "<img src=x onerror=pwned.push(0)>" in text  # readable, as text
    submitted = tmp_path / "course" / "submitted" / "eve" / "attacks" / "attacks.ipynb"
    assert ANSWER in json.dumps(nbformat.read(submitted, 4), ensure_ascii=False)


@pytest.mark.slow
def test_the_same_attacks_run_without_the_preprocessor(tmp_path, browser):
    """The control: without it the test above could pass with attacks that never work."""
    feedback, graded = course_of_attacks(tmp_path / "course", protected=False)
    folder = tmp_path / "page"
    folder.mkdir()
    for path in (feedback, formgrader_page(tmp_path / "course", graded, folder)):
        ran, _, _ = opened(browser, path)
        assert len(ran) >= 25, f"{path.name}: {sorted(ran)}"
        assert "0" in ran  # the one in the written answer
