"""The chapters as a student meets them: released, run, answered, validated."""

from __future__ import annotations

import re
import shutil

import nbformat
import pytest
from driver import REPOSITORY, TRACEBACK, keep, keep_cells, picture_changes
from notebook_runs import errors_and_warnings

pytestmark = pytest.mark.slow

COURSE = REPOSITORY / "course"
GREEN = "rgb(26, 127, 55)"


def answer_cell(nb, exercise):
    """The index of the answer cell; the check comes right after it."""
    return nb.index_of(f"def {exercise}(")


def try_answer(nb, exercise, code):
    """Types an answer, runs it and its check; gives the check's cell."""
    index = answer_cell(nb, exercise)
    nb.type_into(index, code)
    nb.run_cell(index)
    nb.run_cell(index + 1)
    return nb.cell(index + 1)


def assert_passed(cell):
    panel = cell.get_by_role("status")
    assert re.match(r"✓ \w+: all \d+ cases passed", panel.inner_text())
    assert panel.evaluate("e => getComputedStyle(e).borderLeftColor") == GREEN
    assert cell.locator(TRACEBACK).count() == 0


def assert_failed_shortly(cell, cause):
    """The panel names the cause; the traceback is one line that only repeats its headline."""
    panel = cell.get_by_role("status")
    said = panel.inner_text()
    assert said.startswith("✗") and cause in said
    assert "Expected" in said and "Next step" in said
    assert panel.evaluate("e => getComputedStyle(e).borderLeftColor") != GREEN
    error = cell.locator(TRACEBACK).inner_text().strip()
    assert error == "CheckFailed: " + said.splitlines()[0].removeprefix("✗ ")


def run_unsolved(nb):
    """Runs a released chapter; all that fails are the checks, and they say so in one line."""
    nb.run_past_errors()
    nb.save()
    notebook = nb.saved()
    checks = [i for i, cell in enumerate(notebook.cells) if cell.source.startswith("check(")]
    told = errors_and_warnings(notebook)
    assert [index for index, _ in told] == checks, told
    for index, text in told:
        assert re.fullmatch(r"CheckFailed: \w+: not attempted, 0 of \d+ cases passed", text)
        assert "✗" in nb.cell(index).get_by_role("status").inner_text()
    assert nb.panel.locator("mjx-merror, [data-mml-node='merror']").count() == 0
    pictures = nb.panel.locator(".jp-RenderedImage img")
    assert all(pictures.evaluate_all("all => all.map((e) => e.naturalWidth > 100)"))
    assert pictures.count() >= 5
    figures = nb.panel.locator(".lm-explorer")
    assert all(figures.evaluate_all("all => all.map((e) => e.offsetHeight > 100)"))
    return figures.count()


def test_chapter_01_unsolved_then_answered(open_folder):
    nb = open_folder(COURSE / "01_shapes", "01_shapes.ipynb")
    keep(nb.page, "chapter_01_top")
    assert run_unsolved(nb) == 2

    clash = nb.panel.locator(".lm-explorer").nth(1)
    clash.scroll_into_view_if_needed()
    keep(clash, "chapter_explorer_first")
    with picture_changes(clash.locator("table")):
        clash.get_by_label("second shape").fill("(2, 1, 5)")
    assert "(2, 3, 5)" in clash.get_by_role("status").inner_text()
    keep(clash, "chapter_explorer_changed")

    row = "def as_column(vector):\n    return vector[None, :]"
    cell = try_answer(nb, "as_column", row)
    assert_failed_shortly(cell, "this is one row, (1, n), and not a column")
    cell = try_answer(nb, "as_column", row.replace("None, :", ":, None"))
    assert_passed(cell)
    index = answer_cell(nb, "as_column")
    keep_cells(nb, index, index + 1, "passed_check")
    nb.save()


ATTENTION = """def scaled_dot_product_attention(queries, keys, values, mask=None):
    scores = queries @ np.swapaxes(keys, -1, -2) / np.sqrt(queries.shape[-1])
    visible = np.ones(scores.shape, bool) if mask is None else np.broadcast_to(mask, scores.shape)
    scores = np.where(visible, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
    sums = powers.sum(axis=-1, keepdims=True)
    weights = powers / np.where(sums > 0, sums, 1)
    return weights @ values, weights
"""


def test_chapter_02_unsolved_then_answered(open_folder):
    nb = open_folder(COURSE / "02_attention", "02_attention.ipynb")
    assert run_unsolved(nb) == 3
    assert nb.panel.locator("mjx-container").count() >= 5
    heads = nb.index_of("show_heads(scaled_dot_product_attention)")
    assert "solve exercise 5 first" in nb.cell(heads).locator(".jp-OutputArea").inner_text()

    painter = nb.panel.locator(".lm-explorer.lm-mask")
    painter.scroll_into_view_if_needed()
    keep(nb.page, "chapter_02_middle")
    with picture_changes(painter):
        painter.locator("button.lm-entry").nth(2 * 5 + 3).click()
    assert "“sat” may now attend to “down”" in painter.get_by_role("status").inner_text()
    keep(painter, "chapter_mask_painter")

    by_width = """def scaled_scores(queries, keys):
    return queries @ np.swapaxes(keys, -1, -2) / queries.shape[-1]"""
    cell = try_answer(nb, "scaled_scores", by_width)
    assert_failed_shortly(cell, "d_k")
    index = answer_cell(nb, "scaled_scores")
    keep_cells(nb, index, index + 1, "failed_check")

    assert_passed(try_answer(nb, "scaled_dot_product_attention", ATTENTION))
    nb.run_cell(heads)
    frame = nb.cell(heads).locator("iframe")
    view = frame.content_frame
    assert view.locator("#attention line").count() == 3 * 8 * 8
    with picture_changes(frame):
        view.locator("#left text").nth(6).hover()
    keep(frame, "chapter_head_view")
    nb.save()


def test_validate(lab, open_notebook):
    """nbgrader's button, on the first exercise of chapter 01 alone: it runs the whole notebook."""
    folder = lab.root / "validate"
    folder.mkdir()
    shutil.copy(COURSE / "01_shapes" / "checks.json", folder)
    notebook = nbformat.read(COURSE / "01_shapes" / "01_shapes.ipynb", as_version=4)
    last = next(i for i, c in enumerate(notebook.cells) if c.source.startswith("check("))
    notebook.cells = notebook.cells[: last + 1]
    nbformat.write(notebook, folder / "01_shapes.ipynb")
    nb = open_notebook(path="validate/01_shapes.ipynb")

    def validate(code, kind):
        nb.type_into(answer_cell(nb, "as_column"), code)
        nb.panel.locator(".validate-button").click()
        dialog = nb.page.locator(f".jp-Dialog.nbgrader-{kind}Dialog")
        dialog.wait_for(timeout=30_000)
        keep(dialog.locator(".jp-Dialog-content"), f"validate_{kind.lower()}")
        said = dialog.inner_text()
        dialog.get_by_role("button", name="OK").click()
        return said

    column = "def as_column(vector):\n    return vector[:, None]"
    said = validate(column.replace(":, None", "None, :"), "Error")
    assert "CheckFailed: as_column: not yet right, 1 of 3 cases passed" in said
    assert "Likely cause: The new axis is in front" in said
    assert "Success" in validate(column, "Success")
