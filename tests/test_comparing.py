import numpy as np
import pytest

from attention_course.comparing import Tolerance, compare, same_outcome
from attention_course.outcomes import Outcome, Terms
from attention_course.running import run_case


def outcome(value):
    return run_case(lambda: value, {}, Terms())


def kind(got, expected):
    difference = compare(outcome(got), outcome(expected), Tolerance())
    return difference.kind if difference else None


X = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


@pytest.mark.parametrize(
    ("got", "expected", "found"),
    [
        (X, X, None),
        (X + 1e-10, X, None),
        (X.astype(np.float32), X, None),
        (X + 1e-5, X, "values"),
        (X[0], np.stack([X[0], X[0]]), "shape"),  # allclose would broadcast
        (X[None], X, "shape"),
        (X[:, :0], X, "shape"),
        ((X > 0.2).astype(int), X > 0.2, "dtype"),
        (X.astype(int), X, "dtype"),
        (X.tolist(), X, "type"),
        (np.where(X > 0.2, X, np.nan), X, "nan"),
        (X, np.where(X > 0.2, X, np.nan), "values"),
        (np.full(2, -np.inf), np.full(2, -np.inf), None),
        (np.full(2, np.inf), np.full(2, -np.inf), "values"),
        (np.full(2, 1e300), np.full(2, np.inf), "values"),
        (np.full(2, np.nan), np.full(2, np.nan), None),
        ([2, 3], (2, 3), None),
        (np.array([2, 3]), (2, 3), None),
        (np.uint8(3), 3, None),
        (np.float64(2.5), 2.5, None),
        (None, X, "unusable"),
    ],
)
def test_the_strictest_question_comes_first(got, expected, found):
    assert kind(got, expected) == found


def test_the_first_difference_is_named():
    wrong = X.copy()
    wrong[1, 2] = 9
    difference = compare(outcome(wrong), outcome(X), Tolerance())
    assert difference.index == (1, 2)
    assert (difference.got, difference.expected) == ("9", "0.6")
    assert difference.hidden().expected == ""


def refusing(error):
    def candidate():
        raise error

    return run_case(candidate, {}, Terms())


def test_an_expected_exception_must_be_of_that_class():
    expected = refusing(ValueError("a"))
    assert compare(refusing(ValueError("b")), expected, Tolerance()) is None
    assert compare(refusing(TypeError("a")), expected, Tolerance()).kind == "not refused"
    assert compare(outcome(X), expected, Tolerance()).kind == "not refused"


def test_stub_crash_and_timeout_have_their_own_kinds():
    good = outcome(X)
    assert compare(refusing(NotImplementedError()), good, Tolerance()).kind == "not attempted"
    assert compare(refusing(KeyError("k")), good, Tolerance()).kind == "raised"
    renamed = refusing(TypeError("f() got an unexpected keyword argument 'x'"))
    assert compare(renamed, good, Tolerance()).kind == "signature"
    assert compare(Outcome("timed out"), good, Tolerance()).kind == "timed out"
    changed = Outcome("returned", good.outputs, good.kinds, changed_inputs=("x",))
    assert compare(changed, good, Tolerance()).kind == "changed input"


def test_same_outcome_looks_at_messages_and_numbers():
    assert same_outcome(outcome(X), outcome(X + 1e-9))
    assert not same_outcome(outcome(X), outcome(X + 1e-3))
    assert same_outcome(refusing(ValueError("a")), refusing(ValueError("a")))
    assert not same_outcome(refusing(ValueError("a")), refusing(ValueError("b")))
    assert same_outcome(outcome(np.full(2, np.nan)), outcome(np.full(2, np.nan)))
    assert not same_outcome(outcome(X), refusing(ValueError("a")))
