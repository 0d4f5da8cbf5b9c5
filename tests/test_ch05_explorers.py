"""The explorers of chapter 05 in words: what they compute, and what they refuse."""

import numpy as np
import pytest
import torch

from attention_course.explorers import block_flow, ring_lift
from attention_course.explorers.block_flow import NORMS


def test_a_hidden_layer_lifts_the_outer_ring():
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(9, 2, generator=generator)
    explorer = ring_lift(points, [True, False] * 4 + [True], units=5)
    angles = 2 * torch.pi * torch.arange(5) / 5
    scaled = points / points.abs().max()
    hidden = torch.relu(scaled[:, :1] * angles.cos() + scaled[:, 1:] * angles.sin())
    np.testing.assert_allclose(explorer.heights(), hidden.sum(dim=1), atol=1e-5)


@pytest.mark.parametrize(
    ("units", "bend", "lift", "word"),
    [(3, True, 1.0, "A"), (2, True, 1.0, "No"), (8, False, 1.0, "No"), (8, True, 0.0, "No")],
)
def test_only_a_bent_and_lifted_layer_separates(units, bend, lift, word):
    text = ring_lift(units=units, bend=bend, lift=lift).text()
    assert f"\n{word} horizontal plane separates" in text
    assert "-0.00" not in text


def test_flow_says_what_collapses_and_what_grows():
    alone = block_flow()
    assert alone.likeness["none"][12] > 0.999
    for mlp in ("", "mlp "):
        assert alone.likeness[f"residual {mlp}pre"][12] < alone.likeness[f"{mlp}pre"][12]
        np.testing.assert_allclose(alone.sizes[f"residual {mlp}post"], 1, atol=0.2)
    grown = [alone.sizes[f"residual mlp {norm}"][24] for norm in ("none", "pre", "post")]
    assert grown[0] > 1000 > grown[1] > grown[2]
    assert alone.text().count("\n") == 13
    assert "layer 12: size" in alone.text()


def test_flow_has_every_setting_at_every_depth():
    explorer = block_flow(residual=True, mlp=True, norm="pre", depth=24)
    assert explorer.setting == "residual mlp pre"
    assert len(explorer.sizes) == 4 * len(NORMS)
    for table in (explorer.sizes, explorer.likeness):
        assert all(len(numbers) == 25 for numbers in table.values())
        assert len({numbers[0] for numbers in table.values()}) == 1, "all start alike"


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: block_flow(norm="middle"), ValueError, "norm must be one of none, pre, post"),
        (lambda: block_flow(depth=25), ValueError, "depth must be a whole number from 1 to 24"),
        (lambda: block_flow(depth=True), ValueError, "got True"),
        (lambda: ring_lift(np.ones((3, 2))), ValueError, "outside must be given together"),
        (lambda: ring_lift(np.ones((3, 3)), [True] * 3), ValueError, r"points\[:, :2\]"),
        (lambda: ring_lift(np.ones((3, 2)), [True] * 3), ValueError, "nothing to separate"),
        (lambda: ring_lift(np.ones((3, 2)), [1, 0, 1]), TypeError, "outside must be 3 booleans"),
        (lambda: ring_lift(np.ones((200, 2)), [True] * 200), ValueError, "at most 120"),
        (lambda: ring_lift(units=9), ValueError, "units must be a whole number from 1 to 8"),
        (lambda: ring_lift(lift=1.5), ValueError, "lift must lie from 0 to 1"),
    ],
)
def test_errors_name_the_argument(make, error, says):
    with pytest.raises(error, match=says):
        make()
