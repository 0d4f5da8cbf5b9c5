import functools
import sys
import threading

import numpy as np
import pytest

from attention_course.comparing import Tolerance, compare
from attention_course.outcomes import Outcome, Terms
from attention_course.recording import record_calls
from attention_course.running import run_case

TERMS = Terms(forbidden=("numpy.broadcast_shapes", "numpy.linalg.norm", "math.hypot", "no.such.f"))
ALIAS = np.broadcast_shapes
PARTIAL = functools.partial(np.broadcast_shapes, (1, 2))


def in_a_thread():
    thread = threading.Thread(target=np.broadcast_shapes, args=((1,), (2,)))
    thread.start()
    thread.join()
    return 1.0


def recorder_taken_away():
    sys.setprofile(None)
    return 1.0 + 0 * len(np.broadcast_shapes((1,), (2,)))


def imported_inside():
    from math import hypot as h

    return h(3, 4)


@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        (lambda: np.array(np.broadcast_shapes((1,), (2,))), "numpy.broadcast_shapes"),
        (lambda: np.array(ALIAS((1,), (2,))), "numpy.broadcast_shapes"),
        (lambda: np.array(PARTIAL((2,))), "numpy.broadcast_shapes"),
        (
            lambda: np.array(getattr(np, "broad" + "cast_shapes")((1,), (2,))),
            "numpy.broadcast_shapes",
        ),
        (lambda: [len(x) for x in map(ALIAS, [(1,)], [(2,)])], "numpy.broadcast_shapes"),
        (lambda: np.linalg.norm(np.ones(3)), "numpy.linalg.norm"),
        (imported_inside, "math.hypot"),
        (in_a_thread, "numpy.broadcast_shapes"),
        (recorder_taken_away, "sys.setprofile"),
    ],
)
def test_a_forbidden_call_is_seen_however_it_is_spelled(candidate, name):
    outcome = run_case(candidate, {}, TERMS)
    assert outcome.forbidden_calls == (name,)
    right = Outcome("returned", outcome.outputs, outcome.kinds)
    difference = compare(outcome, right, Tolerance())
    assert difference.kind == "forbidden call"
    assert f"`{name}`" in difference.sentence


def test_other_calls_are_free():
    def candidate():
        return np.linalg.det(np.eye(2)) + np.einsum("i,i", np.ones(2), np.ones(2))

    assert run_case(candidate, {}, TERMS).forbidden_calls == ()


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        (lambda torch: torch.ones(3).softmax(0), "softmax"),
        (lambda torch: torch.special.softmax(torch.ones(3), 0), "special_softmax"),
        (lambda torch: torch._softmax(torch.ones(3), 0, False), "_softmax"),
        (lambda torch: torch.nn.functional.softmin(torch.ones(3), 0), "softmax"),
        (lambda torch: torch.nn.Softmax(0)(torch.ones(3)), "softmax"),
        (lambda torch: torch.ones(3).log_softmax(0).exp(), "log_softmax"),
        (lambda torch: torch.ops.aten._softmax(torch.ones(3), 0, False), "_softmax"),
    ],
)
def test_a_pattern_sees_every_librarys_function_of_such_a_name(candidate, name):
    torch = pytest.importorskip("torch")
    terms = Terms(forbidden=("*softmax*",))
    outcome = run_case(lambda: float(candidate(torch)[0]), {}, terms)
    assert name in outcome.forbidden_calls


@pytest.mark.parametrize(
    "candidate",
    [
        lambda torch: torch.ones(3, requires_grad=True).sum().backward(),
        lambda torch: torch.exp(torch.ones(3)),
        lambda torch: torch.ones(3).numpy(),
        lambda torch: torch.nn.functional.relu(torch.ones(3)),
    ],
)
def test_a_whole_package_can_be_forbidden(candidate):
    torch = pytest.importorskip("torch")
    terms = Terms(forbidden=("torch.*",))
    assert run_case(lambda: candidate(torch) is None, {}, terms).forbidden_calls == ("torch",)
    assert run_case(lambda: float(np.exp(1.0)), {}, terms).forbidden_calls == ()


@pytest.mark.parametrize("result", [(2, 3), [2.0], 1.5, np.ones(3)])
def test_reading_inputs_and_results_is_no_call_of_the_candidate(result):
    terms = Terms(forbidden=("numpy.*", "torch.*"))
    inputs = {"first": (2, 3), "second": np.ones(2), "third": [1]}
    outcome = run_case(lambda first, second, third: result, inputs, terms)
    assert (outcome.status, outcome.forbidden_calls) == ("returned", ())


def test_a_candidate_cannot_pose_as_the_course():
    namespace = {"np": np, "__name__": "attention_course.recording"}
    exec("def candidate(): return np.empty(3)", namespace)
    outcome = run_case(namespace["candidate"], {}, Terms(forbidden=("numpy.*",)))
    assert outcome.forbidden_calls == ("numpy",)


def test_own_functions_may_have_any_name():
    outcome = run_case(lambda: softmax(np.ones(3)), {}, Terms(forbidden=("*softmax*",)))
    assert outcome.forbidden_calls == ()


def test_one_function_can_be_forbidden_by_its_dotted_name():
    torch = pytest.importorskip("torch")
    terms = Terms(forbidden=("torch.Tensor.softmax",))
    assert run_case(lambda: float(torch.ones(3).softmax(0)[0]), {}, terms).forbidden_calls == (
        "torch.Tensor.softmax",
    )


def test_the_hook_that_was_there_comes_back():
    def hook(frame, event, argument):
        return None

    sys.setprofile(hook)
    try:
        with record_calls(["math.hypot"]):
            pass
        assert sys.getprofile() is hook
    finally:
        sys.setprofile(None)


def test_nothing_forbidden_means_nothing_recorded():
    with record_calls([]):
        assert sys.getprofile() is None
