"""What a reader's hands do with the block stepper, in a real JupyterLab without a network."""

from __future__ import annotations

import re

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import block_stepper\nstepper = block_stepper()\nstepper",
    "print(stepper.step, stepper.block)",
)


def test_block_stepper(module_notebook):
    nb = module_notebook
    figure = nb.cell(0).locator(".lm-explorer.lm-blocks")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    status = figure.get_by_role("status")
    step, back = (figure.get_by_role("button", name=name, exact=True) for name in ("step", "back"))
    held = figure.locator("td.lm-held")
    rows = figure.locator("tbody tr")

    def numbers(row):
        return rows.nth(row).locator("td.lm-number").all_inner_texts()

    keep(figure, "block_stepper")
    assert "Nothing seen yet" in status.inner_text() and held.count() == 0
    assert back.is_disabled() and numbers(0)[1:3] == ["−∞", "0.00"]

    with picture_changes(figure.locator("table")):
        step.click()
    assert held.count() == 4 * 3 and "keys 1 to 3" in status.inner_text()
    assert numbers(3)[1] == "1.00"

    step.click()
    keep(figure, "block_stepper_second_block")
    assert held.count() == 4 * 3, "the first block must be forgotten"
    said = status.inner_text()
    assert "The maximum rose for queries 1 (× 0.25), 3" in said and "2 (" not in said
    assert numbers(1)[0] == "1.00" and numbers(0)[:2] == ["0.25", "2.60"]
    second = numbers(0)

    # By keyboard: on to the end, where a block of one key is left.
    step.focus()
    nb.page.keyboard.press("Enter")
    nb.page.keyboard.press("Enter")
    assert held.count() == 4 and step.is_disabled()
    apart = re.search(r"differ from those of whole rows by at most (\S+?)\.", status.inner_text())
    assert float(apart[1]) < 1e-12
    last = [rows.nth(row).locator("td.lm-number").all_inner_texts()[3:] for row in range(4)]
    keep(figure, "block_stepper_end")
    assert "4 3" in nb.run_cell(1)

    back.click()
    back.click()
    assert numbers(0) == second and "One step back" in status.inner_text()

    # Another block size starts again and ends at the same outputs.
    size = figure.get_by_label("keys in a block")
    size.focus()
    nb.page.keyboard.press("End")
    assert "Nothing seen yet" in status.inner_text()
    step.click()
    assert held.count() == 40 and step.is_disabled()
    assert [rows.nth(r).locator("td.lm-number").all_inner_texts()[3:] for r in range(4)] == last
    assert "1 10" in nb.run_cell(1)
