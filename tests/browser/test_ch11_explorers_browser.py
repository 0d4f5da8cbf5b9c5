"""What a reader's hands do with the explorers of chapter 11, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\n"
    "game = replaced_game([\n"
    "    {'original': ['les', 'chats', 'dorment', '.'],\n"
    "     'corrupted': ['les', 'roi', 'dorment', '.'],\n"
    "     'scores': [0.2, 0.9, 0.6, 0.01]},\n"
    "    {'original': ['il', 'court'], 'corrupted': ['elle', 'court'], 'scores': [0.4, 0.1]},\n"
    "])\ngame",
    "print(game.sentence, game.marked, game.shown)",
    "board = ablation_switchboard()\nboard",
    "print(board.name())",
    "sizes = generator_sizes()\nsizes",
    "print(sizes.measure, *(f'{mean:.2f}' for mean in sizes.means().values()))",
)


def live(notebook, index, name):
    """The live widget in the output of a cell, and its status line."""
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_game(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-game")
    words = figure.locator("button.lm-word")
    assert words.all_inner_texts() == ["les", "roi", "dorment", "."]
    words.nth(0).focus()
    nb.page.keyboard.press("ArrowRight")
    nb.page.keyboard.press("Enter")
    assert "You have chosen 1 word." in status.inner_text()
    assert figure.get_by_text("was chats").count() == 0
    with picture_changes(figure.locator(".lm-words")):
        figure.get_by_role("button", name="show the discriminator's scores").click()
    assert "You found 1 of 1, with 0 false alarms" in status.inner_text()
    assert "The discriminator (above 0.5) found 1 of 1, with 1 false alarm." in status.inner_text()
    assert figure.get_by_text("was chats").count() == 1
    keep(figure, "replaced_game")
    assert nb.run_cell(1).strip() == "0 [1] True"
    figure.get_by_role("button", name="next sentence").click()
    assert words.all_inner_texts() == ["elle", "court"]
    assert nb.run_cell(1).strip() == "1 [] False"


def test_switchboard(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-ablation")
    keep(figure, "ablation_switchboard")
    assert "8 of 8 words carry a loss. This is ELECTRA: 85.0" in status.inner_text()
    says = figure.locator("tr").nth(2).locator("td")
    assert says.all_inner_texts() == ["original", "replaced"] + ["original"] * 6
    everywhere = figure.get_by_role("checkbox", name="is asked about every word")
    everywhere.focus()
    with picture_changes(figure.locator("table")):
        nb.page.keyboard.press("Space")
    assert "2 of 8 words carry a loss. This is ELECTRA 15%: 82.4" in status.inner_text()
    assert nb.run_cell(3).strip() == "ELECTRA 15%"
    figure.get_by_role("button", name="BERT").click()
    reads = figure.locator("tr").nth(1).locator("td")
    assert reads.all_inner_texts().count("[MASK]") == 2
    assert says.all_inner_texts()[:4] == ["–", "chats", "–", "dorment"]
    assert nb.run_cell(3).strip() == "BERT"
    figure.get_by_role("checkbox", name="says words").uncheck()
    assert "not among the paper's objectives" in status.inner_text()


def test_sizes(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 4, "lm-sizes")
    keep(figure, "generator_sizes")
    dots = figure.locator("circle")

    def heights():
        return dots.evaluate_all("all => all.map((dot) => dot.getAttribute('cy'))")

    before = heights()
    assert len(before) >= 3 and "acceptability" in status.inner_text()
    choice = figure.get_by_role("button", name="tagging")
    choice.focus()
    nb.page.keyboard.press("Enter")
    assert heights() != before
    name, *means = nb.run_cell(5).split()
    assert name == "tagging"
    for mean in means:
        assert f"gives {mean}" in status.inner_text(), "Python and JavaScript must agree"
