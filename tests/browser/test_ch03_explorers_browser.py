"""What a reader's hands do with the explorers of chapter 03, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import distance_products, wave_table\n"
    "table = wave_table()\ntable",
    "print(table.d_model, table.position, table.column, round(table.value(), 2))",
    "products = distance_products()\nproducts",
    "print(products.scheme, products.mixed, products.place, products.width)",
)


def live(notebook, index, name):
    """The live widget in the output of a cell, and its status line."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_wave_table(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-waves")
    keep(figure, "wave_table")
    assert "Column 4 is the sine of pair 2, with wavelength 19.9" in status.inner_text()
    assert "11 of 16 pairs" in status.inner_text()

    # Pointing at the table chooses a row and a column, and the curve follows.
    box = figure.locator("image").bounding_box()
    with picture_changes(figure.locator("svg")):
        nb.page.mouse.move(
            box["x"] + box["width"] * 1.5 / 32, box["y"] + box["height"] * 3.5 / 64, steps=4
        )
    assert "Column 1 is the cosine of pair 0, with wavelength 6.3" in status.inner_text()
    assert "at position 3 it is −0.99" in status.inner_text()
    assert float(figure.locator("circle").get_attribute("data-value")) == pytest.approx(
        -0.98999, abs=1e-4
    )
    assert "32 3 1 -0.99" in nb.run_cell(1)

    # A smaller base: more pairs finish a wave. A narrower table keeps the column inside.
    base = figure.get_by_role("slider", name="base")
    base.focus()
    with picture_changes(figure.locator("svg")):
        nb.page.keyboard.press("Home")
    assert base.get_attribute("aria-valuetext") == "10"
    assert "0 of 16 pairs do not finish" in status.inner_text()
    figure.get_by_role("slider", name="column").focus()
    nb.page.keyboard.press("End")
    assert "Column 31 is the cosine of pair 15" in status.inner_text()
    figure.get_by_role("slider", name="d_model").focus()
    nb.page.keyboard.press("Home")
    assert "Column 3 is the cosine of pair 1" in status.inner_text()
    assert "4 3 3" in nb.run_cell(1)
    keep(figure, "wave_table_narrow")


def test_distance_products(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-products")
    keep(figure, "distance_products")

    def apart():
        return float(figure.locator("svg").get_attribute("data-apart"))

    assert apart() < 1e-9 and "only the distance counts" in status.inner_text()
    place = figure.get_by_label("query's position")
    curve = figure.locator("path.lm-curve")
    before = curve.get_attribute("d")
    place.focus()
    nb.page.keyboard.press("End")
    assert curve.get_attribute("d") == before, "waves that meet as they are know distance only"

    with picture_changes(figure.locator("svg")):
        figure.get_by_label("random projections").check()
    assert apart() > 1 and "the place counts as well" in status.inner_text()
    before = curve.get_attribute("d")
    place.focus()
    nb.page.keyboard.press("Home")
    assert curve.get_attribute("d") != before
    keep(figure, "distance_products_mixed")

    rotary = figure.get_by_role("button", name="rotary")
    with picture_changes(figure.locator("svg")):
        rotary.click()
    assert rotary.get_attribute("aria-pressed") == "true"
    assert apart() < 1e-9 and "only the distance counts" in status.inner_text()
    figure.get_by_label("width").focus()
    nb.page.keyboard.press("Home")
    assert "rotary True 0 4" in nb.run_cell(3)
    keep(figure, "distance_products_rotary")
