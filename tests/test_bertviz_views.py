"""bertviz's views without a browser: accepted forms, errors, words, escaping."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
import torch

from attention_course import bertviz_views
from attention_course.bertviz_views import head_view, model_view, neuron_view

TOKENS = ["the", "</script>", "<!--", "1.23456789"]


def weights(heads=3, queries=4, keys=4, seed=0):
    powers = np.random.default_rng(seed).random((heads, queries, keys))
    return powers / powers.sum(-1, keepdims=True)


def page_inside(view) -> str:
    return html.unescape(re.search(r'srcdoc="([^"]*)"', view.to_html())[1])


def parameters(view) -> dict:
    """What bertviz's JavaScript is given."""
    found = re.search(
        r"(?:const params =|window.bertviz_params =) (\{.*\});?$", page_inside(view), re.M
    )
    return json.loads(found[1])


VIEWS = {
    "head": lambda: head_view(weights(), TOKENS),
    "model": lambda: model_view([weights(), weights()], TOKENS),
    "neuron": lambda: neuron_view(weights()[..., :2], weights()[..., :2], TOKENS),
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_page_is_self_contained_and_escaped(name):
    view = VIEWS[name]()
    page = page_inside(view)
    assert "<script src" not in page and "cdnjs" not in page.split("require.config")[0]
    assert "default-src 'none'" in page and "BSD-3-Clause" in page
    opened, closed = (re.findall(pattern, page) for pattern in (r"<script", r"</script"))
    assert len(opened) == len(closed) and "<!--" not in page
    attention = parameters(view)["attention"]
    given = attention["all"] if name == "neuron" else attention[0]
    assert given["left_text"] == given["right_text"] == TOKENS
    assert html.escape(view.text()) in view.to_html() and view.text() == repr(view)
    assert "&lt;/script&gt;" in view.to_html().split("</iframe>")[1]


@pytest.mark.parametrize(
    "form, layers",
    [
        (weights(), 1),
        (weights()[None], 1),
        (weights().tolist(), 1),
        (torch.tensor(weights(), requires_grad=True), 1),
        ([weights(), weights()], 2),
        ((torch.tensor(weights())[None].float(),) * 3, 3),
    ],
)
def test_forms_of_weights(form, layers):
    given = parameters(head_view(form, TOKENS))["attention"][0]["attn"]
    np.testing.assert_allclose(given, np.stack([weights()] * layers), atol=1e-4)


def test_cross_attention():
    view = head_view(weights(2, 4, 3), TOKENS, key_tokens=["a", "b", "c"])
    given = parameters(view)["attention"][0]
    assert given["left_text"] == TOKENS and given["right_text"] == ["a", "b", "c"]
    assert np.shape(given["attn"]) == (1, 2, 4, 3)


@pytest.mark.parametrize("causal", [True, False])
def test_neuron_view_agrees_with_torch(causal):
    q, k = np.random.default_rng(1).normal(size=(2, 3, 4, 5))
    given = parameters(neuron_view(q, k, TOKENS, causal=causal, head=2))
    assert given["bidirectional"] is not causal and given["head"] == 2
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, (q, k)),
        torch.eye(4, dtype=torch.float64).expand(3, 4, 4),
        is_causal=causal,
    )
    np.testing.assert_allclose(given["attention"]["all"]["attn"][0], expected, atol=1e-4)
    np.testing.assert_allclose(given["attention"]["all"]["queries"][0], q, atol=1e-4)


def test_the_data_are_written_once():
    wide = weights(4, 16, 16)
    tokens = [str(i) for i in range(16)]
    growth = len(head_view([wide] * 5, tokens).to_html()) - len(head_view([wide], tokens).to_html())
    assert growth < 11 * 4 * wide.size


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: head_view(weights()[0], TOKENS), ValueError, r"weights must have shape \(heads"),
        (lambda: head_view(np.stack([weights()] * 2), TOKENS), ValueError, "layers as a list"),
        (lambda: head_view([weights(), weights(2)], TOKENS), ValueError, r"weights\[1\]"),
        (lambda: head_view([], TOKENS), ValueError, "at least one layer"),
        (lambda: head_view(3 * weights(), TOKENS), ValueError, "after the softmax"),
        (lambda: head_view(weights(), TOKENS[:3]), ValueError, "each of the 4 queries"),
        (lambda: head_view(weights(), "the cat"), TypeError, r"tokens.split\(\)"),
        (lambda: head_view(weights(2, 4, 3), TOKENS), ValueError, "key_tokens"),
        (lambda: head_view(weights(), TOKENS, layer=1), ValueError, "layer must be"),
        (lambda: model_view(weights() * np.nan, TOKENS), ValueError, "weights must be finite"),
        (lambda: neuron_view(weights(), weights(2), TOKENS), ValueError, "shape of queries"),
        (lambda: neuron_view(weights(), weights(), TOKENS, head=3), ValueError, "head must be"),
    ],
)
def test_errors_name_the_argument(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_another_bertviz_is_noticed():
    with pytest.raises(RuntimeError, match="not the version"):
        bertviz_views._replace("page", "what is looked for", "")
