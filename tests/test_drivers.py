"""The drivers of PyTorch exercises: what they hand over, find out and put back."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from attention_course.comparing import Tolerance, compare
from attention_course.drivers import DRIVERS, run_all
from attention_course.outcomes import Terms

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
PRODUCT = Terms(outputs=("result", "gradient of x"))


def run(driver, candidate, inputs, terms=None):
    return run_all(driver, candidate, [inputs], terms or Terms())[0]


def test_a_tensor_function_gets_and_gives_tensors():
    outcome = run("tensor_function", lambda x, n: (x * n).to(torch.float32), {"x": X, "n": 2})
    assert (outcome.status, outcome.kinds) == ("returned", {"result": "tensor"})
    assert outcome.outputs["result"].dtype == np.float32
    np.testing.assert_array_equal(outcome.outputs["result"], 2 * X)


def test_gradients_are_asked_of_autograd():
    weights = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    outcome = run("tensor_function", lambda x: x**2, {"x": X, "upstream": weights}, PRODUCT)
    np.testing.assert_allclose(outcome.outputs["gradient of x"], 2 * X * weights)
    outcome = run("tensor_function", lambda x: (x**2).sum(), {"x": X}, PRODUCT)
    np.testing.assert_allclose(outcome.outputs["gradient of x"], 2 * X)


def test_a_gradient_is_no_reason_to_import_sympy():
    """PyTorch imports it for `grad_outputs`, which takes longer than an answer may take."""
    code = (
        "import sys, numpy, torch; from attention_course.drivers import run_all;"
        "from attention_course.outcomes import Terms; x = numpy.ones((2, 3));"
        "terms = Terms(outputs=('result', 'gradient of x'), seconds=60);"
        "inputs = [{'x': x}, {'x': x, 'upstream': x}];"
        "outcomes = run_all('tensor_function', lambda x: x**2, inputs, terms);"
        "assert [outcome.status for outcome in outcomes] == ['returned'] * 2, outcomes;"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("cut", [lambda x: x.detach() * 2, lambda x: torch.ones(2, 3).double()])
def test_no_way_back_is_a_gradient_of_zero(cut):
    outcome = run("tensor_function", cut, {"x": X}, PRODUCT)
    np.testing.assert_array_equal(outcome.outputs["gradient of x"], 0 * X)


def test_writing_into_a_tensor_is_a_changed_input():
    def add_one(x, cache):
        cache["keys"] += 1
        return x.add_(1)

    inputs = {"x": X, "cache": {"keys": X.copy()}}
    assert run("tensor_function", add_one, inputs).changed_inputs == ("x", "cache")


@pytest.mark.parametrize(
    ("driver", "result", "words"),
    [
        ("tensor_function", X, "`result` is a NumPy array; a PyTorch tensor is expected."),
        ("tensor_function", [1.0], "`result` is a Python list or tuple; a PyTorch tensor"),
        ("tensor_function", 1.5, "`result` is a number; a PyTorch tensor is expected."),
        ("function", torch.from_numpy(X), "`result` is a PyTorch tensor; a NumPy array is"),
    ],
)
def test_the_wrong_kind_of_result_is_named(driver, result, words):
    right = {"tensor_function": torch.from_numpy(X), "function": X}[driver]
    expected = run(driver, lambda: right, {})
    difference = compare(run(driver, lambda: result, {}), expected, Tolerance())
    assert difference.kind == "type"
    assert words in difference.sentence


def test_global_state_of_pytorch_is_put_back():
    def rude(x):
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.set_num_threads(2)
        torch.manual_seed(7)
        return torch.rand(2)

    before = torch.get_rng_state(), torch.get_num_threads()
    run("tensor_function", rude, {"x": X})
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()
    assert torch.get_num_threads() == before[1]
    assert torch.equal(torch.get_rng_state(), before[0])


# --- modules -------------------------------------------------------------------------------------


class Affine(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.project = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.project(x) * self.gain)


MODULE_CASE = {
    "build": {"d_model": 3},
    "weights": {"gain": np.array([1.0, 2.0, 3.0]), "project.weight": np.eye(3)[::-1].copy()},
    "inputs": {"x": X},
}


def test_a_module_is_built_given_weights_and_run():
    names = ("result", "number of parameters", "gradient of x", "gradient of gain")
    outcome = run("module", Affine, MODULE_CASE, Terms(outputs=names))
    assert outcome.status == "returned", outcome
    np.testing.assert_allclose(outcome.outputs["result"], X[:, ::-1] * [1, 2, 3])
    np.testing.assert_allclose(outcome.outputs["gradient of gain"], X[:, ::-1].sum(0))
    assert outcome.outputs["gradient of x"].shape == X.shape
    assert outcome.outputs["number of parameters"] == 12


def test_training_mode_is_asked_for():
    dropped = run("module", Affine, {**MODULE_CASE, "training": True}).outputs["result"]
    assert not np.array_equal(dropped, run("module", Affine, MODULE_CASE).outputs["result"])
    again = run("module", Affine, {**MODULE_CASE, "training": True}).outputs["result"]
    np.testing.assert_array_equal(dropped, again)


class Listed(Affine):
    def __init__(self, d_model):
        super().__init__(d_model)
        project = self.project
        del self.project
        self.project = [project]


class Renamed(Affine):
    def __init__(self, d_model):
        super().__init__(d_model)
        self.gains = self.gain
        del self.gain


class Plain:
    def __init__(self, d_model):
        pass


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (Renamed, "It lacks `gain`. It has `gains`, which should not be there."),
        (Plain, "does not inherit from `nn.Module`"),
        (Affine(3), "the class itself is expected"),
        (None, "the class itself is expected"),
    ],
)
def test_an_unfit_module_is_described(candidate, words):
    outcome = run("module", candidate, MODULE_CASE)
    assert outcome.status == "unusable"
    assert words in outcome.message


def test_a_list_of_modules_registers_no_parameters():
    assert "It lacks `project.weight`" in run("module", Listed, MODULE_CASE).message


def test_a_parameter_of_another_shape_is_named():
    case = {**MODULE_CASE, "weights": {**MODULE_CASE["weights"], "gain": np.ones(4)}}
    message = run("module", Affine, case).message
    assert message == "its parameter `gain` has the shape (3,); (4,) is expected."


def test_examples_hold_tensors():
    prepared = DRIVERS["module"].prepare(MODULE_CASE)
    module = Affine(**prepared["build"]).double()
    module.load_state_dict(prepared["weights"])
    assert module(**prepared["inputs"]).shape == (2, 3)


def test_only_some_places_of_a_result_are_compared():
    inputs = {"x": X, "compared": X > 0}
    outcome = run("partly_compared", lambda x: 2 * x, inputs)
    np.testing.assert_array_equal(outcome.outputs["result"], np.where(X > 0, 2 * X, 0))
    outcome = run("partly_compared", lambda x: x.masked_fill(x < 0, torch.nan), inputs)
    np.testing.assert_array_equal(outcome.outputs["result"], np.where(X > 0, X, 0))
    outcome = run("partly_compared", lambda x: x[:, :2], inputs)
    assert outcome.outputs["result"].shape == (2, 2)
