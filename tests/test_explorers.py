"""The explorers without a browser: arguments, words, escaping, and what an output carries."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

from attention_course import explorers
from attention_course.explorers import (
    broadcasting_viewer,
    mask_painter,
    query_walk,
    scale_explorer,
)
from attention_course.explorers.frame import POLICY, code_for_script, json_for_script

ALL = [getattr(explorers, name) for name in explorers.__all__]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
HOSTILE = ["</script><b>", "<!--", "\"&quot;'", "]]>"]


def page_inside(output: str) -> str:
    """The page in the frame's srcdoc, as a browser would read the attribute."""
    return html.unescape(re.search(r'srcdoc="([^"]*)"', output)[1])


@pytest.mark.parametrize("make", ALL, ids=explorers.__all__)
def test_an_output_carries_widget_page_and_words(make, monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    explorer = make()
    data, _ = explorer._repr_mimebundle_()
    assert set(data) == {WIDGET_VIEW, "text/html", "text/plain"}
    assert data["text/plain"] == explorer.text() == repr(explorer)
    assert html.escape(explorer.text()) in data["text/html"]
    page = page_inside(data["text/html"])
    assert POLICY in page and "default-src 'none'" in page
    assert 'sandbox="allow-scripts"' in data["text/html"]
    assert "http" not in re.sub(r"http://www.w3.org/2000/svg|http-equiv", "", page)
    state = json.loads(re.search(r'id="state">(.*?)</script>', page)[1])
    assert state == explorer.state() and state
    assert len(data["text/html"]) < 30_000


@pytest.mark.parametrize("make", ALL, ids=explorers.__all__)
def test_under_nbgrader_the_widget_is_left_out(make, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    data, _ = make()._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"}


def test_hostile_tokens_stay_text():
    for explorer in (
        mask_painter(np.zeros((4, 4)), tokens=HOSTILE),
        query_walk(np.ones((4, 2)), tokens=HOSTILE),
    ):
        output = explorer.to_html()
        page = page_inside(output)
        # Exactly the scripts that the page is made of, each with its end.
        assert len(re.findall(r"</script", page, re.IGNORECASE)) == 2
        assert "<!--" not in page and "<b>" not in page
        state = json.loads(re.search(r'id="state">(.*?)</script>', page)[1])
        assert HOSTILE in state.values()
        assert "<b>" not in output.split("</iframe>")[1]


def test_escaping_keeps_the_meaning():
    assert json.loads(json_for_script(HOSTILE)) == HOSTILE
    assert "<" not in json_for_script(HOSTILE)
    assert code_for_script("'</SCRIPT>' + '<!--'") == r"'<\/SCRIPT>' + '<\!--'"


def test_explorers_import_without_matplotlib_torch_and_bertviz():
    code = (
        "import sys, attention_course.explorers, attention_course.bertviz_views;"
        "print(sorted({'matplotlib', 'torch', 'bertviz'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]" and done.stderr == ""


@pytest.mark.slow
def test_headless_execution_is_silent(monkeypatch):
    cells = ["from attention_course.explorers import *"]
    cells += [f"{name}()" for name in explorers.__all__]
    cells += [
        "import numpy as np\nfrom attention_course.bertviz_views import *",
        "head_view(np.full((2, 3, 3), 1 / 3), list('abc'))",
        "neuron_view(np.ones((1, 3, 2)), np.ones((1, 3, 2)), list('abc'))",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    assert [output.output_type for output in outputs] == ["execute_result"] * (len(cells) - 2)


def test_broadcasting_in_words():
    assert "(5, 1) and (7,) broadcast to (5, 7)." in broadcasting_viewer().text()
    clash = broadcasting_viewer((2, 5), (7,)).text()
    assert "axis -1 clashes" in clash and "neither is 1" in clash
    for first, second in [
        ((), ()),
        ((0,), (1,)),
        ((3, 1, 4), (2, 1)),
        ((2, 3), (2,)),
        ((0,), (2,)),
    ]:
        try:
            expected = f"broadcast to {np.broadcast_shapes(first, second)}."
        except ValueError:
            expected = "do not broadcast"
        assert expected in broadcasting_viewer(first, second).text()


@pytest.mark.parametrize("scaled", [True, False])
def test_scale_in_words(scaled):
    q, k = np.random.default_rng(3).normal(size=(2, 6, 32))
    explorer = scale_explorer(q[0], k, key_dimension=16, temperature=2, scaled=scaled)
    scores = k[:, :16] @ q[0, :16] / (4 if scaled else 1) / 2
    np.testing.assert_allclose(explorer.scores(), scores, atol=1e-5)
    assert explorer.key_dimension == 16 and explorer.dimensions == [1, 2, 4, 8, 16, 32]
    weights = torch.softmax(torch.tensor(scores), 0)
    nats = torch.distributions.Categorical(weights).entropy().item()
    assert f"exp(H) = {np.exp(nats):.2f} of 6" in explorer.text()


def test_query_walk_in_words():
    keys, values = np.random.default_rng(4).normal(size=(2, 5, 2))
    walk = query_walk(keys, values, [0.3, -1.0], scale=0.5)
    weights = torch.softmax(torch.tensor(0.5 * keys @ [0.3, -1.0]), 0).numpy()
    np.testing.assert_allclose(walk.weights(), weights, atol=1e-5)
    x, y = weights @ values
    assert f"Output ({x:.2f}, {y:.2f})" in walk.text()


def test_mask_painter_agrees_with_torch():
    rng = np.random.default_rng(5)
    scores, values = rng.normal(size=(4, 6)), rng.normal(size=(6, 3))
    mask = rng.random((4, 6)) < 0.6
    mask[1] = False
    painter = mask_painter(
        torch.tensor(scores, requires_grad=True), values, mask=torch.tensor(mask)
    )
    weights = torch.softmax(torch.tensor(scores).masked_fill(~torch.tensor(mask), -torch.inf), -1)
    np.testing.assert_allclose(painter.weights(), weights.nan_to_num(0.0), atol=1e-5)
    assert painter.text().count("zeros by convention") == 1
    assert painter.mask == mask.tolist()


def test_mask_presets():
    assert mask_painter(np.zeros((2, 3))).mask == [[True, False, False], [True, True, False]]
    assert (
        mask_painter(np.zeros((2, 3)), mask="padding", padding=2).mask == [[True, False, False]] * 2
    )
    assert mask_painter(np.zeros((2, 3)), mask="none").mask == [[True] * 3] * 2


SCORES = np.zeros((3, 3))


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: broadcasting_viewer(7, (7,)), TypeError, r"first_shape must be a tuple.*\(7,\)"),
        (lambda: broadcasting_viewer((5, 1.5)), TypeError, "first_shape"),
        (lambda: broadcasting_viewer((5,), (-1,)), ValueError, "second_shape must hold sizes"),
        (lambda: broadcasting_viewer((1,) * 7), ValueError, "at most 6"),
        (lambda: mask_painter(SCORES[0]), ValueError, r"scores must have shape \(queries, keys\)"),
        (lambda: mask_painter([[1, 2], [3]]), TypeError, "rows of equal length"),
        (lambda: mask_painter([[1, -np.inf]]), ValueError, r"scores\[0, 1\] is -inf"),
        (lambda: mask_painter(np.zeros((3, 0))), ValueError, "no empty axis"),
        (lambda: mask_painter(np.zeros((11, 2))), ValueError, "at most 10"),
        (lambda: mask_painter(SCORES, np.zeros((2, 3))), ValueError, "values must have one row"),
        (lambda: mask_painter(SCORES, tokens="a b c"), TypeError, r"tokens.split\(\)"),
        (lambda: mask_painter(SCORES, tokens=["a", "b"]), ValueError, "each of the 3 queries"),
        (lambda: mask_painter(SCORES, tokens=["a", "b", 3]), TypeError, r"tokens\[2\] is int"),
        (lambda: mask_painter(SCORES, mask="cuasal"), ValueError, "'cuasal'"),
        (lambda: mask_painter(SCORES, mask=np.ones((3, 3))), TypeError, "must hold booleans"),
        (lambda: mask_painter(SCORES, mask=np.ones((1, 3), bool)), ValueError, "broadcast_to"),
        (lambda: mask_painter(SCORES, padding=4), ValueError, "from 0 to 3"),
        (lambda: scale_explorer(np.ones(4)), ValueError, "keys must be given together"),
        (lambda: scale_explorer(np.ones(4), np.ones((3, 5))), ValueError, "as many columns"),
        (lambda: scale_explorer(np.ones(4), np.ones((1, 4))), ValueError, "at least 2 keys"),
        (lambda: scale_explorer(key_dimension=48), ValueError, "key_dimension must be one of"),
        (lambda: scale_explorer(temperature=0), ValueError, "temperature must lie from 0.1 to 10"),
        (lambda: scale_explorer(temperature="hot"), TypeError, "temperature must be a number"),
        (lambda: query_walk(np.ones((3, 4))), ValueError, r"keys\[:, :2\]"),
        (lambda: query_walk(np.ones((3, 2)), np.ones((2, 2))), ValueError, "values must have one"),
        (lambda: query_walk(query=[1, 2, 3]), ValueError, r"query must have shape \(2,\)"),
        (lambda: query_walk(np.full((2, 2), 1e9)), ValueError, "within 1000"),
    ],
)
def test_errors_name_the_argument(make, error, says):
    with pytest.raises(error, match=says):
        make()
