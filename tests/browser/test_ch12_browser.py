"""What a reader's hands do with the explorers of chapter 12, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\nopinions = temperature_explorer(token=2)\nopinions",
    "print(opinions.token, [round(float(x), 3) for x in opinions.probabilities()])",
    "matched = layer_map()\nmatched",
    "print(matched.pairs())",
)


def live(notebook, index, name):
    """The live widget in the output of a cell, and its status line."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_temperature_explorer(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-temperature")
    keep(figure, "temperature_explorer")
    bars = figure.locator("rect.lm-share")

    def shares():
        return [float(x) for x in bars.evaluate_all("all => all.map((bar) => bar.dataset.value)")]

    cold = shares()
    assert sum(cold) == pytest.approx(1) and "“her”" in status.inner_text()
    heat = figure.get_by_role("slider", name="temperature")
    heat.focus()
    with picture_changes(figure.locator("svg")):
        for _ in range(30):
            nb.page.keyboard.press("ArrowRight")
    warm = shares()
    assert warm[0] < cold[0] and warm[0] > warm[1] > warm[2]
    keep(figure, "temperature_explorer_warm")
    assert [float(f"{x:.3f}") for x in warm[:10]] == eval(nb.run_cell(1).strip()[2:])
    figure.get_by_role("button", name="cheval").click()
    assert "“horse”" in status.inner_text() and nb.run_cell(1).startswith("3")
    figure.get_by_role("button", name="temperature 1").click()
    assert figure.locator("text.lm-right").text_content() == "horse"


def test_layer_map(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-layermap")
    keep(figure, "layer_map")
    assert "1 ← 2, 2 ← 4" in status.inner_text()
    cell = figure.get_by_role("button", name="student layer 2, teacher layer 3")
    with picture_changes(figure):
        cell.click()
    assert "1 ← 2, 2 ← 3" in status.inner_text()
    assert cell.get_attribute("aria-pressed") == "true"
    assert "teacher, layer 3" in figure.inner_text()
    assert "[(0, 1), (1, 2)]" in nb.run_cell(3)

    # By keyboard: walk one to the left, undo, take a whole map.
    cell.focus()
    nb.page.keyboard.press("ArrowLeft")
    assert "student layer 2 and teacher layer 2" in status.inner_text()
    nb.page.keyboard.press("Space")
    assert "1 ← 2, 2 ← 2" in status.inner_text()
    figure.get_by_role("button", name="nothing").click()
    assert "No layers are matched" in status.inner_text()
    figure.get_by_role("button", name="last layers").click()
    assert "1 ← 3, 2 ← 4" in status.inner_text()
    keep(figure, "layer_map_last")
