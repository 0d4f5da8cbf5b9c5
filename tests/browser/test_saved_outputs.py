"""What is left of the figures in a saved notebook, an exported page and feedback."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from driver import keep, picture_changes, write_notebook

pytestmark = pytest.mark.slow

CELLS = (
    "from attention_course.explorers import mask_painter, scale_explorer\nmask_painter()",
    "from attention_course.bertviz_views import head_view\n"
    "import numpy as np\nhead_view(np.full((2, 3, 3), 1 / 3), ['a', 'b', 'c'])",
    "scale_explorer()",
)


def use_painter(frame):
    """Uses the mask painter in a frame of an exported page."""
    inside = frame.content_frame
    assert "10 of 25 scores" in inside.get_by_role("status").inner_text()
    with picture_changes(frame):
        inside.locator("button.lm-entry").nth(3).click()
    assert "“the” may now attend to “down”" in inside.get_by_role("status").inner_text()


def export(folder, name, *options):
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", name, *options],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    path = (folder / name).with_suffix(".html")
    # nbconvert's template fetches MathJax and require.js; the figures must do without them.
    path.write_text(re.sub(r'(<script[^>]*) src="https:[^"]*"', r"\1", path.read_text()))
    return path.as_uri()


def test_saved_notebook_reopened_and_exported(open_notebook, new_page, lab):
    nb = open_notebook(CELLS[0])
    nb.run_all()
    nb.save()
    nb.page.goto("about:blank")
    lab.shut_kernels_down()

    again = open_notebook(path=nb.path)  # no cell is run
    figure = again.cell(0).locator(".lm-explorer")
    figure.wait_for(timeout=15_000)
    figure.locator("button.lm-entry").nth(3).click()
    assert "“the” may now attend to “down”" in figure.get_by_role("status").inner_text()

    again.page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    colours = figure.evaluate(
        "(e) => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    )
    assert colours == ["rgb(232, 234, 237)", "rgb(22, 25, 29)"]
    keep(again.page, "dark_theme")

    page = new_page()
    first = "--NbConvertBase.display_data_priority=['text/html', 'image/png', 'text/plain']"
    page.goto(export(lab.root, nb.path, first))
    use_painter(page.locator("iframe"))
    # The notebook holds widget state, so nbconvert's own template asks for the widget manager.
    page.outside[:] = [url for url in page.outside if "@jupyter-widgets/html-manager" not in url]


def test_graded_notebook_as_a_page(new_page, tmp_path, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    write_notebook(tmp_path / "graded.ipynb", CELLS)
    address = export(
        tmp_path, "graded.ipynb", "--execute", "--ExecutePreprocessor.store_widget_state=False"
    )
    page = new_page()
    page.goto(address)
    frames = page.locator("iframe")
    assert frames.count() == 3
    use_painter(frames.nth(0))
    assert frames.nth(1).content_frame.locator("#attention line").count() == 18
    inside = frames.nth(2).content_frame
    inside.get_by_label("temperature").focus()
    with picture_changes(frames.nth(2)):
        page.keyboard.press("End")
    assert "Several keys share" in inside.get_by_role("status").inner_text()
    keep(page, "exported_page")
