import numpy as np
import pytest

from attention_course.comparing import Tolerance
from attention_course.judging import Case, KnownMistake, judge
from attention_course.outcomes import Terms
from attention_course.panel import as_html, as_text
from attention_course.running import run_case

INPUTS = [{"x": np.array([1.0, 2.0])}, {"x": np.array([0.0, 3.0])}, {"x": np.array([5.0, -1.0])}]
GROUPS = {"base": (2, "plain numbers"), "edge": (1, "negative numbers")}
CASES = [
    Case("base", INPUTS[0], "first"),
    Case("base", INPUTS[1], "second"),
    Case("edge", INPUTS[2], "third"),
]


def outcomes(function):
    return [run_case(function, inputs, Terms()) for inputs in INPUTS]


def right(x):
    return np.abs(x) + 1


def no_one(x):
    return np.abs(x)


def no_abs(x):
    return x + 1


MISTAKES = [
    KnownMistake("no_one", "The 1 is missing.", "Look at the sum.", outcomes(no_one)),
    KnownMistake("no_abs", "The sign stays.", "Look at x < 0.", outcomes(no_abs)),
]


def verdict(function):
    return judge(
        "e", GROUPS, CASES, outcomes(function), outcomes(right), lambda: MISTAKES, Tolerance()
    )


def test_a_right_answer_gets_everything():
    assert (verdict(right).status, verdict(right).points) == ("passed", 3)


def test_a_group_is_worth_its_points():
    found = verdict(no_abs)
    assert (found.status, found.points, found.misconception) == ("partly right", 2, "no_abs")
    assert found.failed_case == 2


def test_later_groups_need_the_first():
    found = verdict(lambda x: np.abs(x) + 1 if x[1] < 0 else x * 0)
    assert found.points == 0
    assert [group.passed for group in found.groups] == [0, 1]


def test_a_known_mistake_is_named_only_when_it_fits():
    assert verdict(no_one).misconception == "no_one"
    assert verdict(lambda x: np.abs(x) + 3).misconception == ""


def test_a_mistake_in_some_cases_only_is_still_named():
    assert verdict(lambda x: no_one(x) if x[0] == 1 else right(x)).misconception == "no_one"


def test_of_two_mistakes_the_one_in_the_first_group_is_named():
    assert verdict(lambda x: no_one(x) if x[1] > 0 else x * 7).misconception == "no_one"


def test_the_stub_is_not_attempted():
    def stub(x):
        raise NotImplementedError

    assert (verdict(stub).status, verdict(stub).points) == ("not attempted", 0)


def test_text_and_html_say_the_same():
    found = verdict(no_abs)
    text = as_text(found, INPUTS[2])
    html = as_html(found, INPUTS[2])
    for words in ("partly right, 2 of 3 cases", "x (2,)", "The sign stays.", "Look at x"):
        assert words in text
        assert words in html
    assert "result[1] is 0" in text
    assert "result[1] is 2" in text


def test_names_are_shown_as_code_in_groups_too():
    groups = {"base": (2, "plain `x`"), "edge": (1, "negative numbers")}
    seen = outcomes(right)
    found = judge("e", groups, CASES, seen, outcomes(right), lambda: MISTAKES, Tolerance())
    assert "<li>plain <code>x</code>: ok</li>" in as_html(found)
    assert "plain `x`: ok" in as_text(found)


def test_html_is_escaped():
    def candidate(x):
        raise ValueError("<script>alert(1)</script>")

    html = as_html(verdict(candidate))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("function", [lambda x: 1 / 0, lambda x: None, lambda x: x[0], right])
def test_every_verdict_can_be_shown(function):
    assert as_text(verdict(function)).startswith("e: ")
