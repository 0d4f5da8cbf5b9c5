"""What a reader's hands do with the explorers, in a real JupyterLab without a network."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\npainter = mask_painter()\npainter",
    "print(painter.mask[2])",
    "viewer = broadcasting_viewer()\nviewer",
    "print(viewer.first_shape)",
    "explorer = scale_explorer()\nexplorer",
    "print(explorer.key_dimension, explorer.scaled, round(explorer.temperature, 2))",
    "walk = query_walk()\nwalk",
    "print([round(x, 2) for x in walk.query])",
)


def live(notebook, index, name):
    """The live widget in the output of a cell, its status line, and a function to wait for it."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_mask_painter(module_notebook):
    nb = module_notebook
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


def test_broadcasting_viewer(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-broadcast")
    keep(figure, "broadcasting_viewer")
    assert "(5, 1) and (7,) broadcast to (5, 7)" in status.inner_text()
    assert figure.locator(".lm-result").all_inner_texts() == ["5", "7"]
    assert figure.locator(".lm-missing").count() == 1

    first = figure.get_by_label("first shape")
    with picture_changes(figure.locator("table")):
        first.fill("(2, 5)")
    assert "Axis −1 clashes: 5 against 7" in status.inner_text()
    assert figure.locator("td .lm-clash").count() == 3
    keep(figure, "broadcasting_viewer_clash")
    assert "[2, 5]" in nb.run_cell(3)

    first.fill("five")
    assert first.get_attribute("aria-invalid") == "true"
    assert "first shape is not readable" in status.inner_text()
    first.press_sequentially(", 3")
    assert first.input_value() == "five, 3", "the field must keep what is being typed"

    preset = figure.get_by_role("button", name="scores + padding mask")
    preset.focus()
    nb.page.keyboard.press("Enter")
    assert first.input_value() == "(2, 3, 5, 7)" and first.get_attribute("aria-invalid") is None
    assert figure.locator(".lm-result").all_inner_texts() == ["2", "3", "5", "7"]


def test_scale_explorer(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 4, "lm-scale")
    keep(figure, "scale_explorer")
    bars = figure.locator("rect.lm-weightbar")

    def weights():
        return [float(w) for w in bars.evaluate_all("all => all.map((b) => b.dataset.value)")]

    before, said = max(weights()), status.inner_text()
    slider = figure.get_by_label("d_k", exact=False).first
    slider.focus()
    with picture_changes(figure.locator("svg")):
        for _ in range(3):
            nb.page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "512"
    assert sum(weights()) == pytest.approx(1)
    assert max(weights()) > max(before, 0.95)
    assert status.inner_text() != said and "saturated" in status.inner_text()

    with picture_changes(figure.locator("svg")):
        figure.get_by_label("divide scores by √d_k").check()
    assert max(weights()) < 0.75 and "saturated" not in status.inner_text()

    heat = figure.get_by_label("temperature")
    heat.focus()
    nb.page.keyboard.press("End")
    assert max(weights()) - min(weights()) < 0.1
    assert "nearly even" in status.inner_text()
    keep(figure, "scale_explorer_hot")
    assert "512 True 10.0" in nb.run_cell(5)


def test_query_walk(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 6, "lm-walk")
    keep(figure, "query_walk")
    dots = figure.locator("circle.lm-value")

    def weights():
        return [float(w) for w in dots.evaluate_all("all => all.map((d) => d.dataset.weight)")]

    assert weights().index(max(weights())) == 0 and "mostly “cat”" in status.inner_text()

    # Drag the query towards "dog", which lies at the lower left.
    box = figure.locator("svg").first.bounding_box()
    grip = figure.locator(".lm-query").bounding_box()
    with picture_changes(figure.locator("svg").nth(1)):
        nb.page.mouse.move(grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2)
        nb.page.mouse.down()
        nb.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.7, steps=10)
        nb.page.mouse.up()
    assert weights().index(max(weights())) == 3 and "mostly “dog”" in status.inner_text()
    assert sum(weights()) == pytest.approx(1)
    keep(figure, "query_walk_dragged")

    # The pointer put the focus on the query; now the arrow keys move it.
    said = status.inner_text()
    for _ in range(5):
        nb.page.keyboard.press("Shift+ArrowRight")
    assert status.inner_text() != said
    assert weights().index(max(weights())) == 4 and "mostly “ran”" in status.inner_text()
    x, y = map(float, nb.run_cell(7).strip(" []\n").split(", "))
    assert x > 0 > y
