"""Drivers that watch memory, devices, clocks, steps and caches: what they see and put back."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from attention_course.drivers import run_all
from attention_course.drivers.elsewhere import played_device
from attention_course.drivers.timing import PlayedDevice
from attention_course.measuring import peak_bytes, seconds_of
from attention_course.outcomes import Terms

X = np.arange(24.0).reshape(2, 3, 4) + 1


def run(driver, candidate, inputs, *names):
    return run_all(driver, candidate, [inputs], Terms(outputs=names or ("result",)))[0]


def largest(candidate, allowed=10):
    outcome = run("measured_function", candidate, {"x": X, "allowed": allowed}, "result", "most")
    assert outcome.status == "returned", outcome
    return int(outcome.outputs["most"])


def test_the_largest_tensor_is_measured_and_views_are_free():
    assert largest(lambda x: x[:, :2].transpose(0, 1)) == 10
    assert largest(lambda x: x[0, :2] + 1) == 10
    assert largest(lambda x: (x[..., None] * x[..., None, :]).sum()) == 2 * 3 * 4 * 4
    assert largest(lambda x: x.sum() + torch.ones(7, 9).expand(5, 7, 9).sum()) == 63


def test_peak_bytes_counts_what_is_alive_together():
    x = torch.ones(100, dtype=torch.float64)
    assert peak_bytes(lambda: x.view(10, 10).T) == 0
    assert peak_bytes(lambda: [torch.ones(100).sum() for _ in range(3)]) == 400 + 3 * 4
    assert peak_bytes(lambda: (x + 1) * 2) == 1600


def test_seconds_are_positive_and_gradients_are_off():
    seen = []
    assert seconds_of(lambda x: seen.append(torch.is_grad_enabled()), 1, at_least=1e-4) > 0
    assert seen and not any(seen) and torch.is_grad_enabled()


class Shift(nn.Module):
    """Adds a row; where and how it is made is up to `make`."""

    make = staticmethod(lambda x, row: row)

    def __init__(self, width):
        super().__init__()
        self.register_buffer("row", torch.arange(width) + 0.5)

    def forward(self, x):
        return x + self.make(x, self.row)


def portable(make):
    candidate = type("Made", (Shift,), {"make": staticmethod(make)})
    names = ("result", "parameters", "left", "bits")
    outcome = run("portable_module", candidate, {"build": {"width": 4}, "inputs": {"x": X}}, *names)
    if outcome.status != "returned":
        return outcome.error
    return int(outcome.outputs["left"]), int(outcome.outputs["bits"])


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (lambda x, row: row, (0, 16)),
        (lambda x, row: row * torch.tensor(2.0), (0, 16)),
        (lambda x, row: row + torch.arange(4, device=x.device), (0, 16)),
        (lambda x, row: row + torch.tensor([1, 2, 3, 4], device=x.device), (0, 16)),
        (lambda x, row: x.new_zeros(4).add_(row), (0, 16)),
        (lambda x, row: torch.einsum("a,b->ab", row, row)[0].sqrt(), (0, 16)),
        (lambda x, row: row + torch.arange(4).to(x), (2, 16)),
        (lambda x, row: row.float(), (0, 32)),
        (lambda x, row: row.cpu().to(x.device), (1, 16)),
        (lambda x, row: torch.arange(4), "RuntimeError"),
        (lambda x, row: torch.zeros(4) @ torch.zeros(4, 4), "RuntimeError"),
    ],
)
def test_what_a_module_makes_elsewhere(make, seen):
    assert portable(make) == seen


def test_the_played_device_computes():
    with played_device(lambda tensor: None):
        there = torch.tensor([[1.0, 2.0], [3.0, 5.0]]).to("meta")
        result = (there @ there.mT).softmax(-1)
    assert result.device.type == "meta"
    expected = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    torch.testing.assert_close(result.held, (expected @ expected.mT).softmax(-1))


@pytest.mark.slow
def test_no_check_imports_pytorchs_compiler():
    code = (
        "import sys, torch\n"
        "from autograder.exercises.ch06_gpu import EXERCISES\n"
        "for exercise in EXERCISES:\n"
        "    exercise.run(exercise.accepted[0], exercise.make_cases(0))\n"
        "print(sorted({'torch._dynamo', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_batch_is_moved_twice_and_looked_through():
    names = ("arrived", "sizes", "rest", "alone", "numbers")
    batch = {"a": X, "b": [np.array([1, 2]), "word"]}

    def half(batch, device):
        batch["b"].append(None)
        return {"a": batch["a"].to(device), "b": batch["b"]}

    outcome = run("moved_batch", half, {"batch": batch}, *names)
    np.testing.assert_array_equal(outcome.outputs["arrived"], [1, 0])
    np.testing.assert_array_equal(outcome.outputs["sizes"], [[24, 8], [2, 8]])
    assert not outcome.outputs["rest"] and not outcome.outputs["alone"]
    assert outcome.outputs["numbers"].sum() == X.sum() + 3


def test_the_played_clock_tells_handing_over_from_work():
    device = PlayedDevice([1.0, 0.5], launch=0.25)
    start = device.clock()
    device.run()
    assert device.clock() - start == 0.25
    device.run()
    device.synchronise()
    assert device.clock() - start == 0.25 + 1.0 + 0.5
    device.synchronise()
    assert device.clock() - start == 1.75 and device.runs == 2


def test_a_step_counts_and_old_gradients_lie_there():
    draw = np.random.default_rng(0).normal
    given = {
        "weights": {"weight": draw(size=(3, 4)), "bias": draw(size=3)},
        "stale": {"weight": np.ones((3, 4)), "bias": np.ones(3)},
        "batches": [(X, np.array([[0, 1, 2], [1, -100, 0]]))],
        "learning_rate": 0.5,
    }
    names = ("loss", "weight", "bias", "steps", "backward", "rows")

    def lazy(model, optimizer, batches):
        optimizer.step()
        optimizer.step()
        return model(batches[0][0].repeat(2, 1, 1)).sum().item()

    found = run("accumulated_step", lazy, given, *names).outputs
    np.testing.assert_allclose(found["weight"], given["weights"]["weight"] - 1.0)
    assert [int(found[name]) for name in names[3:]] == [2, 0, 12]


@pytest.mark.parametrize("result", [None, 1.5, torch.ones(2)])
def test_a_loss_must_be_one_tensor(result):
    given = {"weight": np.eye(3), "x": np.ones((1, 2, 3)), "targets": np.array([[0, 1]])}
    outcome = run("mixed_loss", lambda model, x, targets: result, given, *"abcde")
    assert (outcome.status, "tensor without axes" in outcome.message) == ("unusable", True)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (torch.ones(2, 1, 3), "it must return"),
        ((torch.ones(2, 1, 3), ([1], [2])), "must be tensors"),
    ],
)
def test_a_cache_must_be_keys_and_values(result, words):
    given = {name: np.ones((4, 2)) for name in ("w_q", "w_k", "w_v")}
    given |= {"x": X, "positions": np.ones((3, 4)), "pieces": [1, 2]}
    outcome = run("cached_layer", lambda **_: result, given, *"abcde")
    assert outcome.status == "unusable" and words in outcome.message


def test_writing_into_the_old_cache_is_seen():
    def careless(x, positions, to_queries, to_keys, to_values, cache=None):
        keys = to_keys(x)
        if cache is not None:
            cache[0].zero_()
            keys = torch.cat([cache[0], keys], dim=1)
        return to_queries(x), (keys, keys)

    given = {name: np.ones((4, 2)) for name in ("w_q", "w_k", "w_v")}
    given |= {"x": X, "positions": np.ones((3, 4)), "pieces": [1, 1, 1]}
    outcome = run("cached_layer", careless, given, "outputs", "keys", "values", "counts", "written")
    assert outcome.outputs["written"] == 2
    np.testing.assert_array_equal(outcome.outputs["counts"], [[1, 1, 1], [1, 1, 1], [0, 0, 0]])
