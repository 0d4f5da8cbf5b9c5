"""bertviz's own views, drawn offline in a real JupyterLab."""

from __future__ import annotations

import pytest
from driver import keep, leave, picture_changes

pytestmark = pytest.mark.slow

SETUP = """
import numpy as np
from attention_course.bertviz_views import head_view, model_view, neuron_view
rng = np.random.default_rng(0)
tokens = ["the", "cat", "</script>", "<!--", "on", "mat"]
def weights(heads, queries=6, keys=6):
    powers = np.exp(2 * rng.normal(size=(heads, queries, keys)))
    return powers / powers.sum(-1, keepdims=True)
"""


CELLS = (
    SETUP,
    "head_view([weights(3), weights(3)], tokens)",
    "head_view(weights(2, 6, 4), tokens, key_tokens=['le', 'chat', 'tapis', '.'])",
    "model_view([weights(4), weights(4)], tokens)",
    "neuron_view(rng.normal(size=(2, 6, 8)), rng.normal(size=(2, 6, 8)), tokens)",
)
TOKENS = ["the", "cat", "</script>", "<!--", "on", "mat"]


def frame_of(notebook, index):
    """The frame element in the output of a cell, and the page inside."""
    frame = notebook.cell(index).locator("iframe")
    frame.wait_for(timeout=15_000)
    frame.scroll_into_view_if_needed()
    return frame, notebook.cell(index).frame_locator("iframe")


def lit(view, side):
    """Indices of the tokens on one side whose lines are shown alone."""
    lines = view.locator("#attention line[visibility='visible']")
    return set(lines.evaluate_all(f"all => all.map((l) => l.getAttribute('{side}-token-index'))"))


def test_two_head_views_in_one_notebook(module_notebook):
    nb = module_notebook
    frame, view = frame_of(nb, 1)
    _, second = frame_of(nb, 2)
    assert view.locator("#attention line").count() == 3 * 6 * 6
    assert second.locator("#attention line").count() == 2 * 6 * 4
    assert view.locator("#left text").all_text_contents() == TOKENS
    frame.scroll_into_view_if_needed()
    keep(frame, "head_view")

    with picture_changes(frame):
        view.locator("#left text").nth(1).hover()
    assert lit(view, "left") == {"1"} and lit(second, "left") == set()
    leave(frame)

    with picture_changes(frame):
        view.locator("#layer").select_option("1")
    view.locator("#right text").nth(4).focus()
    assert lit(view, "right") == {"4"}
    keep(frame, "head_view_focus")
    nb.page.keyboard.press("Tab")
    assert lit(view, "right") == {"5"}

    # A head's square is a switch, by keyboard too.
    square = view.locator("#vis svg rect[role='button']").first
    square.focus()
    with picture_changes(frame):
        nb.page.keyboard.press("Enter")
    head = view.locator("#attention .headAttention").first.locator("line")
    assert set(head.evaluate_all("all => all.map((l) => l.getAttribute('stroke-opacity'))")) == {
        "0"
    }


def test_model_view_and_neuron_view(module_notebook):
    nb = module_notebook
    frame, view = frame_of(nb, 3)
    assert view.locator(".attn_background").count() == 8
    keep(frame, "model_view")
    with picture_changes(frame):
        view.get_by_label("layer 1, head 2").click()
    detail = view.locator(".detail text.token")
    assert detail.count() == 12
    with picture_changes(frame):
        view.get_by_label("layer 0, head 1").press("Enter")
    keep(frame, "model_view_detail")

    frame, view = frame_of(nb, 4)
    # Both the folded and the unfolded picture are in the page; one of them is hidden.
    token = view.locator("#collapsed #leftText text.token")
    assert token.all_text_contents() == TOKENS
    with picture_changes(frame):
        token.nth(3).focus()
    nb.page.keyboard.press("Tab")
    with picture_changes(frame):
        nb.page.keyboard.press("Enter")
    assert view.locator("#expanded").get_attribute("visibility") == "visible"
    with picture_changes(frame):
        view.locator("#expanded #leftText text.token").nth(4).hover()
    keep(frame, "neuron_view")
