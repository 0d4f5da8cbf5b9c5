"""What a reader's hands do with the explorers of chapter 09, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\nsteps = wordpiece_steps()\nsteps",
    "print(steps.word, steps.step, *steps.result())",
    "filler = blank_filler()\nfiller",
    "print(filler.blanks)\nprint(filler)",
)


def live(notebook, index, name):
    """The live widget in the output of a cell, and its status line."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_wordpiece_steps(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-wordpiece")
    assert "tries to come" in status.inner_text()
    pieces = figure.get_by_role("list", name="pieces found").locator("li")
    following = figure.get_by_role("button", name="next piece")
    with picture_changes(figure.locator(".lm-letters")):
        following.click()
    assert pieces.all_inner_texts() == ["un"]
    following.focus()
    nb.page.keyboard.press("Enter")
    nb.page.keyboard.press("Enter")
    keep(figure, "wordpiece_steps")
    assert pieces.all_inner_texts() == ["un", "##play", "##able"]
    assert "Done: 3 pieces" in status.inner_text()
    assert following.is_disabled()
    word, _, *python = nb.run_cell(1).split()
    assert (word, python) == ("unplayable", ["un", "##play", "##able"])
    figure.get_by_label("word", exact=True).fill("playz")
    following.click()
    assert pieces.all_inner_texts() == ["play"]
    following.click()
    assert pieces.all_inner_texts() == ["[UNK]"]
    assert "the whole word is [UNK]" in status.inner_text()
    assert nb.run_cell(1).split()[-1] == "[UNK]", "Python and JavaScript must agree"


def test_blank_filler(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-blanks")
    words = figure.get_by_role("group", name="words of the sentence").get_by_role("button")
    tables = figure.locator("table")
    assert tables.count() == 1 and status.inner_text().startswith("Place 2:")
    with picture_changes(figure.locator(".lm-sentence")):
        words.nth(3).click()
    keep(figure, "blank_filler")
    assert tables.count() == 2 and status.inner_text().startswith("Place 3:")
    guesses = tables.nth(1).locator("td:first-child").all_inner_texts()
    shown = nb.run_cell(3)
    assert shown.startswith("[2, 3]") and all(guess in shown for guess in guesses)
    words.nth(5).focus()
    nb.page.keyboard.press("Enter")
    assert nb.run_cell(3).startswith("[3, 5]"), "a third blank fills the oldest one"
    words.nth(3).click()
    words.nth(5).click()
    assert tables.count() == 1, "one blank always stays"
