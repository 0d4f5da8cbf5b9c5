"""Alignment matrix, decoder stepper and the encoder-decoder view without a browser."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
import torch

from attention_course.bertviz_views import encoder_decoder_view
from attention_course.explorers import alignment_matrix, decoder_stepper
from attention_course.explorers.decoder_stepper import _recorded

RNG = np.random.default_rng(0)


def weights(*shape):
    powers = RNG.random(shape) + 0.1
    return powers / powers.sum(-1, keepdims=True)


def test_alignment_in_words():
    table = np.array([[0.1, 0.7, 0.2], [0.6, 0.1, 0.3]])
    matrix = alignment_matrix(
        torch.tensor(table, requires_grad=True), list("abc"), ["x", "y"], links=[{1}, {2, 1}]
    )
    assert "x: b (0.70), a translation of b\n" in matrix.text()
    assert "y: a (0.60), a translation of b c" in matrix.text()
    assert matrix.links == [[1], [1, 2]] and alignment_matrix(table).links == []
    assert "a translation" not in alignment_matrix(table).text()


def test_the_bundled_run_is_whole():
    run = _recorded()
    words = [step["word"] for step in run["greedy"]]
    assert words[-1] == "[end]" and len(run["source"]) <= 30
    for number, step in enumerate(run["greedy"]):
        assert step["word"] == step["candidates"][0][0]
        assert len(step["weights"]) == len(run["source"])
        assert sum(step["weights"]) == pytest.approx(1, abs=0.08)
        assert 0 <= sum(share for _, share in step["candidates"]) <= 1.01, number
    for number, beams in enumerate(run["beams"], 1):
        assert all(len(beam["words"]) == number for beam in beams)
        assert [beam["sum"] for beam in beams] == sorted([b["sum"] for b in beams], reverse=True)
        for beam in beams:
            assert beam["score"] == pytest.approx(beam["sum"] / number, abs=2e-3)
            assert beam["finished"] == (beam["words"][-1] == "[end]")
    assert any(beam["finished"] for beams in run["beams"] for beam in beams)


def test_stepper_in_words():
    stepper = decoder_stepper(mode="beams", step=0)
    assert (stepper.mode, stepper.step) == ("beams", 0)
    assert "7: writes her (0.93), looks mostly at son" in stepper.text()
    scores = [float(s) for s in re.findall(r"Beam, score (-[\d.]+):", stepper.text())]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)


def test_hostile_words_stay_text():
    hostile = ["</script><b>", "<!--"]
    for explorer in (
        alignment_matrix(weights(2, 2), hostile, hostile),
        decoder_stepper(
            {
                "source": hostile,
                "greedy": [{"word": "<b>", "candidates": [["<b>", 1]], "weights": [0.5, 0.5]}],
            }
        ),
    ):
        page = html.unescape(re.search(r'srcdoc="([^"]*)"', explorer.to_html())[1])
        assert len(re.findall(r"</script", page, re.IGNORECASE)) == 2
        assert "<!--" not in page and "<b>" not in page


STEP = {"word": "x", "candidates": [["x", 1.0]], "weights": [1.0]}


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: alignment_matrix(np.ones(3)), ValueError, r"weights must have shape \(target"),
        (lambda: alignment_matrix(3 * np.ones((2, 2))), ValueError, "weights must lie from 0 to 1"),
        (lambda: alignment_matrix(weights(31, 2)), ValueError, "at most 30"),
        (lambda: alignment_matrix(weights(2, 3), ["a"]), ValueError, "each of the 3 columns"),
        (lambda: alignment_matrix(weights(2, 3), links=[[0]]), ValueError, "each of the 2 target"),
        (lambda: alignment_matrix(weights(1, 3), links=[[3]]), ValueError, r"links\[0\] must hold"),
        (lambda: decoder_stepper({"source": []}), TypeError, "run must be a dict with 'source'"),
        (lambda: decoder_stepper([1]), TypeError, "run must be a dict"),
        (
            lambda: decoder_stepper({"source": ["a", "b"], "greedy": [STEP]}),
            ValueError,
            "greedy step 1 must have a weight for each of the 2 source words; got 1",
        ),
        (
            lambda: decoder_stepper({"source": ["a"], "greedy": [STEP]}, mode="beams"),
            ValueError,
            r"mode must be one of \['greedy'\]",
        ),
        (
            lambda: decoder_stepper({"source": ["a"], "greedy": [STEP]}, step=2),
            ValueError,
            "step must be a whole number from 0 to 1",
        ),
    ],
)
def test_errors_name_the_argument(make, error, says):
    with pytest.raises(error, match=says):
        make()


def view(cross=(2, 4, 3), layers=1, **options):
    return encoder_decoder_view(
        encoder=[weights(2, 3, 3)] * layers,
        decoder=[weights(2, 4, 4)] * layers,
        cross=[weights(*cross)],
        source_tokens=list("abc"),
        target_tokens=["[start]", "x", "y", "</script>"],
        **options,
    )


def test_the_three_attentions_of_an_encoder_decoder():
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', view().to_html())[1])
    given = json.loads(re.search(r"const params = (\{.*\});?$", page, re.M)[1])
    assert given["default_filter"] == "2" and '<option value="2" selected>' in page
    assert [part["name"] for part in given["attention"]] == ["Encoder", "Decoder", "Cross"]
    shapes = [np.shape(part["attn"])[1:] for part in given["attention"]]
    assert shapes == [(2, 3, 3), (2, 4, 4), (2, 4, 3)]
    cross = given["attention"][2]
    assert cross["left_text"][3] == "</script>" and cross["right_text"] == list("abc")
    assert len(re.findall("<script", page)) == len(re.findall("</script", page))
    assert "Cross-attention." in view().text()


@pytest.mark.parametrize(
    "options, says",
    [
        ({"cross": (2, 4, 4)}, "each of the 4 keys"),
        ({"layers": 2}, "as many layers as each other"),
        ({"layer": 1}, "layer must be a whole number"),
    ],
)
def test_views_that_do_not_fit_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        view(**options)
