"""What a reader's hands do with the explorers of chapter 08, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\nsampling = sampling_explorer()\nsampling",
    "print(sampling.k, round(sampling.p, 2), round(sampling.temperature, 2))\n"
    "print([round(float(x), 3) for x in sampling.probabilities()])",
    "trio = mask_trio()\ntrio",
    "print(trio.prefix, trio.place)",
    "steps = bpe_steps()\nsteps",
    "print(repr(steps.source), steps.step)\n"
    "print('|'.join(token.decode() for token in steps.history()[steps.step]))",
)


def live(notebook, index, name):
    """The live widget in the output of a cell, and its status line."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_sampling_explorer(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-sampling")
    keep(figure, "sampling_explorer")
    bars = figure.locator("rect.lm-kept")

    def drawn():
        return [float(x) for x in bars.evaluate_all("all => all.map((bar) => bar.dataset.value)")]

    assert "12 of 12 tokens may be drawn" in status.inner_text() and min(drawn()) > 0
    most = figure.get_by_role("slider", name="top-k")
    most.focus()
    with picture_changes(figure.locator("svg")):
        for _ in range(7):
            nb.page.keyboard.press("ArrowLeft")
    assert [x > 0 for x in drawn()] == [True] * 5 + [False] * 7
    assert sum(drawn()) == pytest.approx(1)
    assert "5 of 12 tokens may be drawn" in status.inner_text()
    mass = figure.get_by_role("slider", name="top-p")
    mass.focus()
    for _ in range(30):
        nb.page.keyboard.press("ArrowLeft")
    assert 1 < sum(x > 0 for x in drawn()) < 5
    assert figure.get_by_text("out: top-p").count() > 0
    keep(figure, "sampling_explorer_filtered")
    said, top = status.inner_text(), max(drawn())
    heat = figure.get_by_role("slider", name="temperature")
    heat.focus()
    nb.page.keyboard.press("Home")
    assert max(drawn()) > top and status.inner_text() != said
    numbers, python = nb.run_cell(1).strip().split("\n")
    assert numbers == "5 0.7 0.1"
    ranked = sorted(map(float, python.strip("[]").split(", ")), reverse=True)
    assert drawn() == pytest.approx(ranked, abs=1e-3), "Python and JavaScript must agree"


def test_mask_trio(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-trio")
    keep(figure, "mask_trio")
    tables = figure.locator("table")

    def open_entries(way):
        return tables.nth(way).locator("td[data-open='true']").count()

    assert [open_entries(way) for way in range(3)] == [34, 28, 34]
    assert "As causal model it sees 1 (the)" in status.inner_text()
    cut = figure.get_by_role("slider", name="tokens of input (prefix)")
    cut.focus()
    with picture_changes(tables.nth(2)):
        nb.page.keyboard.press("ArrowRight")
    assert [open_entries(way) for way in range(3)] == [38, 28, 38]
    row = tables.nth(1).locator("button.lm-row")
    row.nth(0).focus()
    for _ in range(4):
        nb.page.keyboard.press("ArrowDown")
    nb.page.keyboard.press("Enter")
    assert "“le” is part of the input" in status.inner_text()
    assert "No difference here" in status.inner_text()
    assert nb.run_cell(3).strip() == "5 4"
    keep(figure, "mask_trio_moved")


def test_bpe_steps(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 4, "lm-bpe")
    tokens = figure.locator("span.lm-token")
    assert "No merge yet" in status.inner_text() and tokens.count() == 55
    following = figure.get_by_role("button", name="next merge")
    with picture_changes(figure.locator(".lm-tokens")):
        for _ in range(4):
            following.click()
    keep(figure, "bpe_steps")
    assert "Merge 4:" in status.inner_text() and tokens.count() < 45
    said, python = nb.run_cell(5).strip().split("\n")
    assert said.endswith(" 4")
    shown = "|".join(tokens.all_inner_texts()).replace("␣", " ")
    assert shown == python, "Python and JavaScript must agree"
    box = figure.get_by_label("text", exact=True)
    box.fill("é🦉é🦉 aaaa")
    assert tokens.all_inner_texts()[:2] == ["C3", "A9"], "bytes that are no character alone"
    following.click()
    assert "became token 256" in status.inner_text()
    box.fill("ab")
    assert following.is_disabled() and "No pair occurs twice" in status.inner_text()
