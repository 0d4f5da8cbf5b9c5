"""An instructor's round as seen in the browser: two submissions, marks by hand, feedback pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from driver import REPOSITORY, Lab, keep

pytestmark = pytest.mark.slow

CHAPTER = "02_attention"
CONFIG = """import os
c = get_config()
load_subconfig("nbgrader_config.py", path={path!r})
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
"""
MATHJAX = "https://cdnjs.cloudflare.com/ajax/libs/mathjax/"
WRITTEN = r"A sum of $d_k$ products has variance $d_k$, so its spread is $\sqrt{d_k}$."
COMMENT = "And what about training?"
# What a student types must not run in an instructor's browser.
ACTIVE = """<img src=x onerror="document.body.dataset.ran = 1">"""
MISTAKE = """def scaled_scores(queries, keys):
    return queries @ np.swapaxes(keys, -1, -2) / queries.shape[-1]"""
CAUSE = "The scores are divided by d_k, so they shrink as the width grows."


def nbgrader(root, *arguments):
    tools = Path(sys.executable).parent
    done = subprocess.run(
        [tools / "nbgrader", *arguments],
        cwd=root,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def hand_in(root, student, answers):
    """The released notebook with the solutions, or `answers` (by grade id), typed in."""
    notebook, solved = (
        nbformat.read(root / kind / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
        for kind in ("course", "solutions")
    )
    right = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in solved.cells
        if "nbgrader" in cell.metadata
    }
    for cell in notebook.cells:
        data = cell.metadata.get("nbgrader", {})
        if data.get("solution"):
            cell.source = answers.get(data.grade_id, right[data.grade_id])
    folder = root / "submitted" / student / CHAPTER
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{CHAPTER}.ipynb")
    shutil.copy(root / "course" / CHAPTER / "checks.json", folder)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of its own with two submissions of chapter 02, graded by plain commands."""
    root = tmp_path_factory.mktemp("course")
    (root / "nbgrader_config.py").write_text(CONFIG.format(path=str(REPOSITORY / "autograder")))
    shutil.copytree(REPOSITORY / "solutions" / CHAPTER, root / "solutions" / CHAPTER)
    nbgrader(root, "generate_assignment", CHAPTER)
    hand_in(root, "ada", {"why-scale": WRITTEN})
    shown = f"\nfrom IPython.display import HTML\nHTML({ACTIVE!r})"
    hand_in(root, "max", {"why-scale": ACTIVE, "scaled_scores": MISTAKE + shown})
    nbgrader(root, "autograde", CHAPTER)
    return root


@pytest.fixture
def formgrader(course, tmp_path):
    """The server that `jupyter lab` starts in the course's folder."""
    server = Lab(tmp_path, root=course)
    yield server
    server.close()


def forgive_mathjax(page):
    """formgrader asks for MathJax, in vain and without need; nothing else may be asked for."""
    assert all(url.startswith(MATHJAX) for url in page.outside), page.outside
    page.outside.clear()


def mark_by_hand(page, mark):
    """Types a mark and a comment beside the written answer, and waits until they are saved."""
    box = page.locator(".nbgrader_cell").filter(has=page.locator("#why-scale"))
    assert "products has variance" in box.inner_text()
    for field in ("input.extra-credit", "textarea"):  # a placeholder: its script is listening
        box.locator(f"{field}[placeholder]").wait_for()
    for field, text, kind in (("input.score", mark, "grade"), ("textarea", COMMENT, "comment")):
        with page.expect_response(lambda answer, kind=kind: f"/api/{kind}/" in answer.url) as saved:
            box.locator(field).fill(text)
            box.locator(field).blur()
        assert saved.value.ok
    box.scroll_into_view_if_needed()


def assert_inert(page):
    """The HTML that a student typed is shown as text; the output that held it shows nothing."""
    page.get_by_text(ACTIVE).first.wait_for()
    assert page.evaluate("document.body.dataset.ran") is None


def test_marking_by_hand_then_feedback(course, formgrader, new_page):
    page = new_page()
    page.goto(f"{formgrader.url}/formgrader?token={formgrader.token}")
    assignment = page.locator("#main-table tr").filter(has_text=CHAPTER)
    assignment.locator(".num-submissions a").click()
    rows = page.locator("#main-table tr").filter(has_text="needs manual grading")
    rows.nth(1).wait_for()
    assert rows.locator(".student-id").all_inner_texts() == ["ada", "max"]
    keep(page, "formgrader_submissions")

    page.goto(f"{formgrader.url}/formgrader/gradebook/{CHAPTER}/{CHAPTER}")
    page.locator("#main-table tr").filter(has_text="30 / 32").locator("a.name-hidden").click()
    page.locator("input.score").first.wait_for()
    mark_by_hand(page, "1.5")
    keep(page, "formgrader_marking")
    page.reload()
    score = page.locator("input#why-scale")
    score.wait_for()
    page.wait_for_function("document.querySelector('input#why-scale').value === '1.5'")
    page.go_back()
    page.locator("#main-table tr").filter(has_text="10 / 32").locator("a.name-hidden").click()
    assert_inert(page)
    forgive_mathjax(page)

    nbgrader(course, "generate_feedback", CHAPTER)
    right, wrong = (
        course / "feedback" / name / CHAPTER / f"{CHAPTER}.html" for name in ("ada", "max")
    )
    page.goto(right.as_uri())
    assert "Written response (Score: 1.5 / 2.0)" in page.locator("body").inner_text()
    assert page.get_by_text(COMMENT).is_visible()
    panels = page.get_by_role("status")
    assert all(text.startswith("✓") for text in panels.all_inner_texts())
    # The root and the subscript of the student's answer and of the chapter are drawn.
    formulas = page.locator("math")
    assert formulas.count() >= 8
    assert all(formulas.evaluate_all("all => all.map((e) => e.getBoundingClientRect().width > 3)"))
    raw = re.findall(r"\$[^$\n]+\$", "\n".join(page.locator(".text_cell_render").all_inner_texts()))
    assert not raw

    page.goto(wrong.as_uri())
    panel = page.get_by_role("status").filter(has_text="scaled_scores")
    panel.scroll_into_view_if_needed()
    said = panel.inner_text()
    assert said.startswith("✗ scaled_scores: not yet right") and CAUSE in said
    # What the hidden inputs should have given stays hidden.
    assert page.get_by_role("status").get_by_text("Expected").count() == 0
    assert_inert(page)
    keep(page, "feedback")
