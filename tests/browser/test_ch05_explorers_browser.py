"""What a reader's hands do with chapter 05's explorers, in a real JupyterLab without a network."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\nlifted = ring_lift()\nlifted",
    "print(round(lifted.lift, 2), lifted.units, lifted.bend)",
    "flow = block_flow()\nflow",
    "print(flow.setting, flow.depth)",
)


def live(notebook, index, name):
    """The live widget in the output of a cell, and its status line."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def press(page, control, key, times=1):
    control.focus()
    for _ in range(times):
        page.keyboard.press(key)


def test_ring_lift(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-lift")
    keep(figure, "ring_lift")
    assert "Everything lies flat" in status.inner_text()
    assert figure.locator(".lm-plane").count() == figure.locator(".lm-edge").count() == 0
    space = figure.locator("svg").first
    with picture_changes(space):
        press(nb.page, figure.get_by_role("slider", name="lift"), "End")
    assert "A plane separates" in status.inner_text()
    assert figure.locator(".lm-plane").count() == figure.locator(".lm-edge").count() == 1
    keep(figure, "ring_lift_raised")

    with picture_changes(space):
        press(nb.page, figure.get_by_role("slider", name="turn"), "ArrowRight", 6)
    units = figure.get_by_role("slider", name="hidden units")
    press(nb.page, units, "ArrowLeft")
    assert "No level plane separates them yet" in status.inner_text()
    press(nb.page, units, "End")
    assert "8 hidden units with ReLU" in status.inner_text()
    assert figure.locator(".lm-plane").count() == 1

    with picture_changes(space):
        figure.get_by_role("checkbox", name="ReLU").uncheck()
    assert "stays flat, however many" in status.inner_text()
    assert figure.locator(".lm-plane").count() == figure.locator(".lm-edge").count() == 0
    keep(figure, "ring_lift_unbent")
    assert "1.0 8 False" in nb.run_cell(1)


def test_block_flow(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-flow")
    keep(figure, "block_flow")

    def last(name):
        return float(figure.locator(f"rect.{name}").last.get_attribute("data-value"))

    assert figure.locator("rect.lm-size").count() == 13
    assert last("lm-alike") > 0.99 and "forgotten which is which" in status.inner_text()

    picture = figure.locator("svg")
    with picture_changes(picture):
        figure.get_by_role("checkbox", name="residual links").check()
        figure.get_by_role("checkbox", name="MLP").check()
    assert last("lm-size") > 100 and "grow without limit" in status.inner_text()
    keep(figure, "block_flow_growing")

    post = figure.get_by_role("button", name="post-LN")
    post.focus()
    with picture_changes(picture):
        nb.page.keyboard.press("Enter")
    assert post.get_attribute("aria-pressed") == "true"
    assert last("lm-size") == pytest.approx(1, abs=0.01)
    figure.get_by_role("button", name="pre-LN").click()
    assert 1 < last("lm-size") < 100 and last("lm-alike") < 0.9
    keep(figure, "block_flow_pre")

    press(nb.page, figure.get_by_role("slider", name="layers"), "End")
    assert figure.locator("rect.lm-size").count() == 25
    assert "After 24 layers" in status.inner_text()
    assert "residual mlp pre 24" in nb.run_cell(3)
