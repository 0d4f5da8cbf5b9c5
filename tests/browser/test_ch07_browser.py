"""What a reader's hands do with the explorers of chapter 07, in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, picture_changes

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import *\nstepper = decoder_stepper()\nstepper",
    "print(stepper.step, stepper.mode)",
    "matrix = alignment_matrix()\nmatrix",
    "print(matrix.row)",
    "import numpy as np\n"
    "from attention_course.bertviz_views import encoder_decoder_view\n"
    "even = lambda q, k: np.full((2, q, k), 1 / k)\n"
    "encoder_decoder_view(encoder=even(2, 2), decoder=even(3, 3), cross=even(3, 2),"
    " source_tokens=['le', 'chat'], target_tokens=['[start]', 'the', 'cat'])",
)


def live(notebook, index, name):
    figure = notebook.cell(index).locator(f".lm-explorer.{name}")
    figure.wait_for(timeout=15_000)
    figure.scroll_into_view_if_needed()
    return figure, figure.get_by_role("status")


def test_decoder_stepper(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 0, "lm-stepper")
    keep(figure, "decoder_stepper")
    source = figure.locator(".lm-source .lm-word")

    def written():
        return figure.locator(".lm-written .lm-word").all_inner_texts()

    def most_read():
        weights = source.evaluate_all("all => all.map((word) => Number(word.dataset.weight))")
        return source.nth(weights.index(max(weights))).inner_text()

    assert written() == ["[start]", "did"]
    step = figure.get_by_role("button", name="step")
    with picture_changes(figure):
        for _ in range(6):
            step.click()
    assert written()[-1] == "her" and most_read() == "son"
    assert "writes “her”" in status.inner_text() and "Next best: “his”" in status.inner_text()
    assert figure.locator("th[scope=row]").all_inner_texts()[:2] == ["her", "his"]
    assert "7 greedy" in nb.run_cell(1)

    # By keyboard: back, then the beams.
    figure.get_by_role("button", name="back").focus()
    nb.page.keyboard.press("Enter")
    assert written()[-1] == "hide" and most_read() == "caché"
    beams = figure.get_by_role("button", name="beams")
    beams.focus()
    nb.page.keyboard.press("Space")
    assert beams.get_attribute("aria-pressed") == "true"
    assert figure.locator("td.lm-text").first.inner_text() == "did the old actress not hide"
    assert "3 live sentences" in status.inner_text()
    keep(figure, "decoder_stepper_beams")
    while step.is_enabled():
        step.click()
    assert "The search is over." in status.inner_text()
    assert "Best finished so far: “did the old actress not hide her" in status.inner_text()
    assert figure.locator("tr.lm-finished").count() >= 1

    figure.get_by_role("button", name="restart").click()
    assert written() == ["[start]"] and "Nothing is written yet" in status.inner_text()


def test_alignment_matrix(module_notebook):
    nb = module_notebook
    figure, status = live(nb, 2, "lm-align")
    keep(figure, "alignment_matrix")
    assert "“the” looks mostly at “le”" in status.inner_text()
    cell = figure.locator("tbody tr").nth(6).locator("td").nth(7)
    with picture_changes(figure):
        cell.hover()
    assert "“red” looks mostly at “rouge”" in status.inner_text()
    assert "aligned rightly" in status.inner_text()
    assert "6" in nb.run_cell(3)

    figure.locator("tbody td[tabindex='0']").focus()
    before = status.inner_text()
    nb.page.keyboard.press("ArrowDown")
    assert status.inner_text() != before
    nb.page.keyboard.press("End")
    assert "At “.”" in status.inner_text()


def test_encoder_decoder_view(module_notebook):
    nb = module_notebook
    frame = nb.cell(4).locator("iframe").content_frame
    frame.locator("#filter").wait_for(timeout=15_000)
    assert frame.locator("#filter").input_value() == "2"
    words = frame.locator("svg text")
    assert {"le", "chat", "the", "cat"} <= {text.strip() for text in words.all_text_contents()}
    frame.locator("#filter").select_option("0")
    words.first.wait_for()
    shown = [text.strip() for text in words.all_text_contents()]
    assert "the" not in shown and shown.count("le") == 2
