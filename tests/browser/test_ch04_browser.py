"""Chapter 04's explorer in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import fused_matrix\nfigure = fused_matrix()\nfigure",
    "print(figure.d_model, figure.heads, figure.entry())",
)


def test_fused_matrix(module_notebook):
    nb = module_notebook
    figure = nb.cell(0).locator(".lm-explorer.lm-fused")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    status, columns = figure.get_by_role("status"), figure.locator("rect.lm-column")
    keep(figure, "fused_matrix")
    assert columns.count() == 36
    assert "query, head 0, feature 0" in status.inner_text()

    columns.nth(17).click()
    assert "key, head 1, feature 1" in status.inner_text()
    assert "rows 4 to 7 of w_out" in status.inner_text()
    nb.page.keyboard.press("ArrowRight")
    assert "column 18" in status.inner_text() and "key, head 1, feature 2" in status.inner_text()
    assert "12 3 key, head 1, feature 2" in nb.run_cell(1)

    heads = figure.get_by_role("slider", name="heads h")
    heads.focus()
    with picture_changes(figure.locator("svg")):
        nb.page.keyboard.press("ArrowRight")
    assert "4 heads of width 12 / 4 = 3" in status.inner_text()
    assert "key, head 2, feature 0" in status.inner_text()

    nb.page.keyboard.press("ArrowRight")
    assert "5 heads do not divide d_model = 12: 12 = 5 · 2 + 2" in status.inner_text()
    assert figure.locator("rect.lm-lost").count() == 3 * 2
    keep(figure, "fused_matrix_refused")

    # A narrower matrix may have lost the chosen row and column: they move to its end.
    width = figure.get_by_role("slider", name="d_model")
    width.focus()
    nb.page.keyboard.press("Home")
    assert columns.count() == 6 and "5 heads do not divide d_model = 2" in status.inner_text()
    heads.focus()
    nb.page.keyboard.press("Home")
    assert "column 5" in status.inner_text() and "value, head 0, feature 1" in status.inner_text()
