import numpy as np
import pytest

from attention_course.comparing import Tolerance, compare, same_outcome
from attention_course.outcomes import TEXT, Outcome, Terms
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


def text(value):
    """A text as the driver of sequences hands it on: the numbers of its characters."""
    numbers = np.array([ord(character) for character in value], dtype=np.int64)
    return Outcome("returned", {TEXT: numbers}, {TEXT: "array"})


def test_texts_are_shown_as_texts():
    assert compare(text("żółw"), text("żółw"), Tolerance()) is None
    difference = compare(text("żóa"), text("żółw"), Tolerance())
    assert difference.sentence.endswith("it differs from index 2 on.")
    assert (difference.kind, difference.got, difference.expected) == ("values", "'żóa'", "'żółw'")
    assert difference.index is None and difference.hidden().expected == ""
    cut = compare(text("x" * 90 + "yz" * 30), text("x" * 90), Tolerance())
    assert cut.got == "… 'xxxxxxxxxxxxxxxxxxxxyzyzyzyzyzyzyzyzyzyz' …"
    assert compare(text(""), text("a"), Tolerance()).got == "''"


@pytest.mark.parametrize("numbers", [[-5, 0xD800, 1 << 40], [[97]], [97.0], [True]])
def test_a_text_may_hold_anything(numbers):
    got = Outcome("returned", {TEXT: np.array(numbers)}, {TEXT: "array"})
    difference = compare(got, text("a"), Tolerance())
    assert difference.sentence.encode() and difference.got.encode()


@pytest.mark.parametrize(
    ("got", "expected", "sentence"),
    [
        ([5, 6, 7], [5, 6], "`result` has the wrong length; before index 2 all is right."),
        ([5], [9, 5], "`result` has the wrong length."),
        ([(1, 2)], [(1, 2), (3, 4)], "`result` has the wrong length; before index 1 all is right."),
        ([], [(1, 2), (3, 4)], "`result` has the wrong length."),
        ([[5, 6]], [5, 6, 7], "`result` has the wrong shape."),
        ([5, 7], [5, 6], "`result` differs at 1 of 2 entries."),
    ],
)
def test_lists_have_lengths(got, expected, sentence):
    assert compare(outcome(got), outcome(expected), Tolerance()).sentence == sentence
