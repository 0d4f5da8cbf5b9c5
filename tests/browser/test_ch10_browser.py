"""What a reader's hands do with the explorers of chapter 10, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\nmatrix = span_matrix()\nmatrix",
    "print(matrix.longest, matrix.threshold, matrix.best())",
    "heads = four_heads()\nheads",
    "print(heads.head)",
    "rows = cls_rows()\nrows",
    "print(rows.layer, rows.head, rows.words_only)",
)


def live(notebook, index, name):
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_span_matrix(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-spans")
    keep(figure, "span_matrix")
    assert "Answer: “garden”, score 4.70" in status.inner_text()
    best = figure.locator("td.lm-best")
    assert best.inner_text() == "4.7"
    shut = figure.locator("td.lm-shut").count()

    longest = figure.get_by_label("longest answer")
    with picture_changes(figure):
        longest.focus()
        nb.page.keyboard.press("ArrowLeft")
    assert figure.locator("td.lm-shut").count() > shut

    threshold = figure.get_by_label("threshold")
    threshold.focus()
    for _ in range(8):
        nb.page.keyboard.press("ArrowRight")
    assert "No answer: “garden” scores 4.70, [CLS] 1.00" in status.inner_text()
    assert "3 4.0 (0, 0)" in nb.run_cell(1)

    figure.locator("td.lm-span").first.focus()
    nb.page.keyboard.press("ArrowDown")
    assert "it ends before it begins" in status.inner_text()
    keep(figure, "span_matrix_no_answer")


def test_four_heads(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-heads")
    assert "reads 1 vector of 8; 1 place has" in status.inner_text()
    tags = figure.get_by_role("button", name="word → tag")
    with picture_changes(figure):
        tags.focus()
        nb.page.keyboard.press("Space")
    assert tags.get_attribute("aria-pressed") == "true"
    assert "reads 8 vectors of 8; 5 places have" in status.inner_text()
    assert figure.locator("td.lm-loss").all_inner_texts()[0] == "B-PER"
    assert "word → tag" in nb.run_cell(3)
    keep(figure, "four_heads_tags")


def test_cls_rows(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 4, "lm-cls")
    keep(figure, "cls_rows")
    assert "Layer 1, mean over 2 heads: [CLS] looks most at “[CLS]” (0.45)" in status.inner_text()
    assert "[CLS] and [SEP] get 0.55 of it" in status.inner_text()
    figure.get_by_role("button", name="layer 1", exact=True).focus()
    nb.page.keyboard.press("ArrowDown")
    nb.page.keyboard.press("ArrowDown")
    with picture_changes(figure):
        nb.page.keyboard.press("Enter")
    figure.get_by_role("button", name="head 2", exact=True).click()
    assert "Layer 3, head 2: [CLS] looks most at “small” (0.40)" in status.inner_text()
    figure.get_by_label("words only").check()
    assert "looks most at “small” (0.57)" in status.inner_text()
    assert "2 1 True" in nb.run_cell(5)
    keep(figure, "cls_rows_words")
