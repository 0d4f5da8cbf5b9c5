"""Exercises as data: what known mistakes would do is found out only as far as it is needed."""

import subprocess
import sys

import pytest

from attention_course.judging import Case
from attention_course.outcomes import Outcome
from autograder.exercise import OutcomesOnDemand
from autograder.exercises import find

CASES = [Case("base", {"n": n}, "") for n in range(3)]


def counting(ran, status):
    def run(case):
        ran.append(case.inputs["n"])
        return Outcome(status, message=str(case.inputs["n"]))

    return run


def test_a_case_is_run_when_it_is_looked_at_and_only_once():
    ran = []
    outcomes = OutcomesOnDemand(counting(ran, "returned"), CASES)
    assert len(outcomes) == 3 and ran == []
    assert outcomes[2].message == outcomes[2].message == "2"
    assert ran == [2]
    assert [outcome.message for outcome in outcomes] == ["0", "1", "2"]
    assert ran == [2, 0, 1]


def test_after_a_timeout_the_rest_is_not_tried():
    ran = []
    outcomes = OutcomesOnDemand(counting(ran, "timed out"), CASES)
    assert [outcome.message for outcome in outcomes] == ["0", "0", "0"]
    assert ran == [0]
    with pytest.raises(IndexError):
        outcomes[3]


def test_an_answer_not_attempted_costs_each_known_mistake_one_case(monkeypatch):
    _, exercise = find("softmax")
    cases = exercise.make_cases(7)
    runs = []
    really_run = type(exercise).run

    def run(self, candidate, asked):
        runs.append(len(asked))
        return really_run(self, candidate, asked)

    def not_attempted(scores, axis):
        raise NotImplementedError

    monkeypatch.setattr(type(exercise), "run", run)
    outcomes = exercise.run(not_attempted, cases)
    assert exercise.judge(outcomes, cases).status == "not attempted"
    assert runs == [len(cases)] + [1] * len(exercise.misconceptions)


def test_one_chapter_is_loaded_without_the_others():
    program = (
        "import sys\nfrom autograder.exercises import of_chapter\n"
        "print(len(of_chapter('01_shapes')) > 3, of_chapter('99_no'), "
        "[m for m in sys.modules if m.startswith('autograder.exercises.ch')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "True {} ['autograder.exercises.ch01_shapes']"
