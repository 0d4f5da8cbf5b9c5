import contextlib
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from attention_course.outcomes import Outcome, Terms
from attention_course.running import OutOfTime, call_with_limit, run_case

INPUTS = {"x": np.array([[1.0, 2.0, 3.0]]), "n": 2}


def run(function, names=("result",), seconds=5.0):
    return run_case(function, INPUTS, Terms(names, seconds))


def test_a_good_answer_is_recorded_as_a_copy():
    holder = {}

    def candidate(x, n):
        holder["result"] = x * n
        return holder["result"]

    outcome = run(candidate)
    holder["result"][:] = 0
    assert outcome.status == "returned"
    assert outcome.outputs["result"].tolist() == [[2.0, 4.0, 6.0]]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "None"),
        ("text", "a str"),
        ({}, "a dict"),
        (..., "placeholder"),
        (np.array(["a"]), "dtype"),
        (np.array([1j]), "dtype"),
        ([[1, 2], [3]], "different shapes"),
        ([object()], "not numbers"),
        (print, "builtin_function"),
    ],
)
def test_what_cannot_be_compared_says_what_it_is(result, words):
    outcome = run(lambda x, n: result)
    assert outcome.status == "unusable"
    assert words in outcome.message


def test_several_outputs_are_named():
    outcome = run(lambda x, n: (x, n), names=("scores", "count"))
    assert outcome.kinds == {"scores": "array", "count": "number"}
    outcome = run(lambda x, n: x, names=("scores", "count"))
    assert outcome.status == "unusable"
    assert "scores, count" in outcome.message


def test_an_exception_is_cut_down_to_the_students_lines():
    def candidate(x, n):
        return np.linalg.inv(x)

    outcome = run(candidate)
    assert (outcome.status, outcome.error) == ("raised", "LinAlgError")
    assert "np.linalg.inv(x)" in outcome.details["traceback"]
    assert "numpy/linalg" not in outcome.details["traceback"]
    assert "run_case" not in outcome.details["traceback"]


def test_sys_exit_is_only_an_exception():
    def candidate(x, n):
        raise SystemExit(1)

    assert run(candidate).error == "SystemExit"


def test_a_loop_without_end_is_stopped():
    def candidate(x, n):
        while True:
            pass

    start = time.monotonic()
    outcome = run(candidate, seconds=0.2)
    assert outcome.status == "timed out"
    assert time.monotonic() - start < 5


def test_waiting_for_a_busy_machine_costs_nothing_but_waiting_without_end_does():
    slept = []
    call_with_limit(lambda: slept.append(time.sleep(0.4)), 0.2)
    assert slept == [None]
    with pytest.raises(OutOfTime):
        call_with_limit(lambda: time.sleep(60), 0.1)


def test_the_limit_holds_where_interrupts_are_ignored():
    """As in a program that a shell started with &."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(OutOfTime):
            call_with_limit(lambda: time.sleep(5), 0.05)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_gets_lost_is_repeated():
    def lose_one():
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                pass
        while True:
            pass

    with pytest.raises(OutOfTime):
        call_with_limit(lose_one, 0.05)


def test_the_time_limit_leaves_no_interrupt_behind():
    for _ in range(20):
        with pytest.raises(OutOfTime):
            call_with_limit(lambda: time.sleep(5), 0.01)
        assert call_with_limit(lambda: 7, 5) == 7


def test_stop_pressed_by_the_reader_goes_through():
    def candidate(x, n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(candidate)


def test_changed_inputs_are_noticed_and_harmless():
    def candidate(x, n):
        x *= n
        return x

    outcome = run(candidate)
    assert outcome.changed_inputs == ("x",)
    assert INPUTS["x"].tolist() == [[1.0, 2.0, 3.0]]


def test_nothing_leaks_to_the_screen_or_to_global_state(capfd):
    def candidate(x, n):
        import sys

        print("hello")
        print("problem", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        np.random.seed(1)
        np.seterr(all="raise")
        warnings.simplefilter("error")
        return x

    state, errors, filters = np.random.get_state()[1].copy(), np.geterr(), list(warnings.filters)
    outcome = run(candidate)
    assert capfd.readouterr() == ("", "")
    assert outcome.details["printed"] == "hello\nproblem\n"
    assert "careful" in outcome.details["warning"]
    assert (np.random.get_state()[1] == state).all()
    assert np.geterr() == errors
    assert warnings.filters == filters


def test_endless_printing_is_kept_short():
    outcome = run(lambda x, n: [print("x" * 1000) for _ in range(1000)] and x)
    assert len(outcome.details["printed"]) <= 2000


def test_outcomes_travel_as_plain_data():
    outcome = run(lambda x, n: x)
    assert repr(Outcome.from_plain(outcome.to_plain())) == repr(outcome)


@pytest.mark.parametrize("plain", [None, [], {}, {"outputs": 3}, {"status": "returned"}])
def test_a_forged_outcome_gives_a_value_error(plain):
    with pytest.raises(ValueError):
        Outcome.from_plain(plain)


def test_one_thread_watches_over_all_calls_also_nested_and_after_a_fork():
    def nested():
        with pytest.raises(OutOfTime):
            call_with_limit(lambda: time.sleep(5), 0.02)
        return threading.active_count()

    call_with_limit(lambda: None, 5)
    before = threading.active_count()
    assert [call_with_limit(nested, 5) for _ in range(3)] == [before] * 3
    child = os.fork()
    if child == 0:
        try:
            call_with_limit(lambda: time.sleep(5), 0.02)
        except OutOfTime:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
