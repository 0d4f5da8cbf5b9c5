"""What a reader's hands do with the explorers of chapter 13, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\nwindow = memory_window()\nwindow",
    "print(window.memory, window.layers, window.place)",
    "orders = order_masks()\norders",
    "print(orders.order, orders.place)",
    "scores = three_scores()\nscores",
    "print(scores.largest, scores.parts)",
)


def live(notebook, index, name):
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_memory_window(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-memory")
    keep(figure, "memory_window")
    assert "one layer reaches 7 places back, 2 layers 11 places" in status.inner_text()
    assert "Of earlier segments, 8 words are used, without a gradient" in status.inner_text()
    assert figure.locator("circle.lm-trained[data-row='2']").count() == 4
    memory = figure.get_by_role("slider", name="memory")
    with picture_changes(figure):
        memory.focus()
        for _ in range(4):
            nb.page.keyboard.press("ArrowLeft")
    assert "Without a memory, nothing before the segment is seen" in status.inner_text()
    assert figure.locator("circle.lm-old").count() == 0
    figure.locator("circle[data-row='0'][data-place='5']").click()
    assert "Place 5 is place 1 of its segment" in status.inner_text()
    assert "0 2 5" in nb.run_cell(1)


def test_order_masks(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-orders")
    keep(figure, "order_masks")
    assert "“New” is predicted as number 4 of 5" in status.inner_text()
    with picture_changes(figure):
        figure.get_by_role("button", name="predict it earlier").click()
    assert "“New” is predicted as number 3 of 5, from “city”, “York”" in status.inner_text()
    query = figure.get_by_role("table", name="query mask")
    opened = query.locator("tbody tr").first.locator("td[data-open=true]")
    assert opened.count() == 2
    figure.get_by_role("button", name="left to right").focus()
    nb.page.keyboard.press("Enter")
    assert "from nothing but its place" in status.inner_text()
    content = figure.get_by_role("table", name="content mask")
    assert content.locator("td[data-open=true]").count() == 15
    assert query.locator("td[data-open=true]").count() == 10
    assert "[0, 1, 2, 3, 4] 0" in nb.run_cell(3)


def test_three_scores(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 4, "lm-three")
    keep(figure, "three_scores")
    before = status.inner_text()
    assert "The sum of 3 parts is divided by √(3d)." in before
    position = figure.get_by_role("table", name="content to position").locator("tbody tr")

    def row(number):
        return position.nth(number).locator("td").all_inner_texts()

    assert len(set(row(4))) > 2
    limit = figure.get_by_role("slider")
    with picture_changes(figure):
        limit.focus()
        nb.page.keyboard.press("Home")
    assert len(set(row(4))) == 1  # all keys stand before it, or are it
    figure.get_by_role("checkbox", name="position to content").uncheck()
    assert "The sum of 2 parts is divided by √(2d)." in status.inner_text()
    assert "1 [True, True, False]" in nb.run_cell(5)
    figure.get_by_role("table", name="weights").get_by_role("button", name="dog").click()
    assert "“dog” at place 1" in status.inner_text()
