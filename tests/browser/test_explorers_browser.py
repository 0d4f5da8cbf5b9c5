"""What a reader's hands do with the explorers, in a real JupyterLab without a network."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow


def live(notebook, index, name):
    """The live widget in the output of a cell, its status line, and a function to wait for it."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    return figure, figure.get_by_role("status")


def test_mask_painter(open_notebook):
    nb = open_notebook(
        "from attention_course.explorers import mask_painter\npainter = mask_painter()\npainter",
        "print(painter.mask[2])",
    )
    nb.run_all()
    figure, status = live(nb, 0, "lm-mask")
    keep(figure, "mask_painter")
    assert "10 of 25 scores" in status.inner_text()
    entry = figure.locator("button.lm-entry")
    weight = figure.locator("td.lm-weight")
    assert weight.nth(2 * 5 + 3).inner_text() == "0"

    with picture_changes(figure):
        entry.nth(2 * 5 + 3).click()
    assert weight.nth(2 * 5 + 3).inner_text() != "0"
    assert "“sat” may now attend to “down”" in status.inner_text()
    assert "Changed output row: “sat”" in status.inner_text()
    assert figure.locator("td.lm-mark").all_inner_texts() == ["", "", "changed", "", ""]
    keep(figure, "mask_painter_changed")
    assert "[True, True, True, True, False]" in nb.run_cell(1)

    # By keyboard: one Tab stop, arrows walk, space closes. Closing the first row's only key
    # leaves it empty.
    entry.nth(5).focus()
    nb.page.keyboard.press("ArrowUp")
    assert entry.nth(0).evaluate("element => element === document.activeElement")
    assert figure.locator("button.lm-entry[tabindex='0']").count() == 1
    nb.page.keyboard.press("Space")
    assert [weight.nth(j).inner_text() for j in range(5)] == ["0"] * 5
    assert figure.locator("td.lm-number").all_inner_texts()[:3] == ["0.00"] * 3
    assert "zero weights and a zero output" in status.inner_text()
    assert "Changed output row: “the”" in status.inner_text()

    figure.get_by_role("button", name="padding").click()
    assert all(weight.nth(i * 5 + 4).inner_text() == "0" for i in range(5))
    assert "zero output" not in status.inner_text()
