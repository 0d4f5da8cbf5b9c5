"""The audit is audited: each exercise that is weakened on purpose is found out, for that reason."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.audit import run as audit
from autograder.audit.answers import Answer, read_answer
from autograder.audit.checks import HIDDEN_SEEDS, audit_exercise
from autograder.audit.mutants import make_mutants
from autograder.exercise import Group, Misconception
from autograder.exercises import find
from autograder.masters import BEGIN, END

SEEDS = (1, 2)


def exercise_and_answer(exercise_id):
    chapter, exercise = find(exercise_id)
    return exercise, read_answer(chapter, exercise_id)


def audited(exercise, answer):
    return audit_exercise(exercise, answer, SEEDS)


def kinds(report):
    return {failure.kind for failure in report.failures}


def sentences(report, kind):
    return [failure.sentence for failure in report.failures if failure.kind == kind]


def with_inputs(exercise, change):
    def cases(rng):
        for case in exercise.cases(rng):
            yield Case(case.group, change(case.inputs), case.about)

    return replace(exercise, cases=cases)


@pytest.fixture(scope="module")
def masked_mean():
    return exercise_and_answer("masked_mean")


def test_a_good_exercise_has_no_failure(masked_mean):
    exercise, answer = masked_mean
    report = audited(exercise, answer)
    assert report.failures == []
    facts = report.facts
    assert (facts["stub"], facts["lazy"], facts["solution"]) == (0, 0, exercise.points)
    assert facts["accepted"] == {"passed": 5, "total": 5}
    assert facts["misconceptions"]["caught"] == len(exercise.misconceptions)
    assert facts["mutants"]["killed"] > 15
    assert facts["smallest_margin"] > 1000


def test_square_sizes_are_found_out():
    """With one entry, a row is as good as a column."""
    exercise, answer = exercise_and_answer("as_column")
    report = audited(with_inputs(exercise, lambda _: {"vector": np.array([3.0])}), answer)
    assert {"caught", "mutants"} <= kinds(report)
    assert "this mutant survives: `vector[:, None]` → `vector[None, :]`" in " ".join(report.notes)


def test_only_one_group_is_found_out():
    """On matrices alone, the mistakes with leading axes earn full points."""
    exercise, answer = exercise_and_answer("pairwise_scores")

    def cases(rng):
        yield from (case for case in exercise.cases(rng) if case.group == "matrix")

    report = audited(replace(exercise, cases=cases, groups={"matrix": Group(2, "all")}), answer)
    assert "all_axes_reversed" in " ".join(sentences(report, "caught"))
    assert "lazy" not in kinds(report)


def test_zero_inputs_are_found_out():
    exercise, answer = exercise_and_answer("pairwise_scores")
    zeros = with_inputs(exercise, lambda inputs: {k: 0 * v for k, v in inputs.items()})
    report = audited(zeros, answer)
    assert {"lazy", "caught"} <= kinds(report)
    assert any("(zeros)" in sentence for sentence in sentences(report, "lazy"))


def test_a_very_wide_tolerance_is_found_out():
    exercise, answer = exercise_and_answer("pairwise_scores")
    report = audited(replace(exercise, tolerance=Tolerance(0, 1e3)), answer)
    assert {"lazy", "caught"} <= kinds(report)


def test_a_tolerance_that_leaves_no_margin_is_found_out(masked_mean):
    exercise, answer = masked_mean
    factor = audited(exercise, answer).facts["smallest_margin"] / 20
    old = exercise.tolerance
    wide = Tolerance(old.relative * factor, old.absolute * factor)
    report = audited(replace(exercise, tolerance=wide), answer)
    assert kinds(report) == {"margin"}
    assert report.facts["smallest_margin"] == pytest.approx(20)


def test_a_reference_that_a_stub_meets_is_found_out(masked_mean):
    exercise, answer = masked_mean

    def no_reference(values, lengths):
        raise NotImplementedError

    report = audited(replace(exercise, reference=no_reference), answer)
    assert {"stub", "solution", "accepted"} <= kinds(report)
    assert report.facts["stub"] == exercise.points


@pytest.mark.parametrize("unusable", [lambda **_: None, lambda values, lengths: values.fill(0)])
def test_a_reference_that_gives_nothing_is_found_out(masked_mean, unusable):
    """Nothing expected would be met by everything."""
    exercise, answer = masked_mean
    assert "reference" in kinds(audited(replace(exercise, reference=unusable), answer))


def test_a_wrong_accepted_answer_is_found_out(masked_mean):
    exercise, answer = masked_mean
    wrong = exercise.misconceptions[0]
    report = audited(replace(exercise, accepted=(*exercise.accepted, wrong.function)), answer)
    assert kinds(report) == {"accepted"}
    assert wrong.name in sentences(report, "accepted")[0]
    assert report.facts["accepted"] == {"passed": 5, "total": 6}


def test_a_right_misconception_is_found_out(masked_mean):
    exercise, answer = masked_mean
    right = Misconception(exercise.accepted[0], "Nothing is wrong.", "Go on.")
    report = audited(replace(exercise, misconceptions=(*exercise.misconceptions, right)), answer)
    assert kinds(report) == {"caught"}
    assert right.name in sentences(report, "caught")[0]


def twin_of(misconception, number):
    def twin(**inputs):
        return misconception.function(**inputs)

    twin.__name__ = f"twin_{number}"
    return Misconception(twin, "The same again.", "Look elsewhere.")


def test_twins_among_misconceptions_are_found_out(masked_mean):
    exercise, answer = masked_mean
    known = exercise.misconceptions
    report = audited(replace(exercise, misconceptions=(*known, twin_of(known[3], 1))), answer)
    assert kinds(report) == {"twins"}
    assert known[3].name in sentences(report, "twins")[0]


def test_misconceptions_that_are_not_named_are_found_out(masked_mean):
    exercise, answer = masked_mean
    known = exercise.misconceptions
    twins = tuple(twin_of(known[i], i) for i in range(3))
    report = audited(replace(exercise, misconceptions=(*known, *twins)), answer)
    assert kinds(report) == {"twins", "named"}
    assert f"`twin_0` as `{known[0].name}`" in sentences(report, "named")[0]


def test_a_wrong_solution_is_found_out(masked_mean):
    exercise, answer = masked_mean
    wrong = replace(answer, source=answer.source.replace("sum(axis=1)", "sum(axis=1) + 1"))
    assert wrong.source != answer.source
    report = audited(exercise, wrong)
    assert "solution" in kinds(report) <= {"solution", "mutants"}
    assert report.facts["solution"] < exercise.points


BLIND = {
    "id": "double",
    "parameters": ("a",),
    "groups": {"all": Group(1, "numbers")},
    "reference": lambda a: 2 * a,
    "misconceptions": (),
    "accepted": (),
}


def doubling(**changes):
    _, exercise = find("as_column")

    def cases(rng):
        yield Case("all", {"a": 1 + rng.random(3)}, "three positive numbers")

    return replace(exercise, **{"cases": cases, **BLIND, **changes})


def answer_with(*lines):
    body = "".join(f"    {line}\n" for line in (BEGIN, *lines, END))
    return Answer(f"def double(a):\n{body}", "double", {"np": np})


SURVIVOR = "`np.abs(a)` → `a`"


def test_survivors_are_listed_until_they_are_explained():
    answer = answer_with("return 2 * np.abs(a)")
    report = audited(doubling(), answer)
    assert kinds(report) == {"mutants"}
    assert report.facts["mutants"]["survivors"] == [SURVIVOR]
    explained = doubling(equivalent_mutants={SURVIVOR: "no number is negative"})
    report = audited(explained, answer)
    assert report.failures == []
    assert report.facts["mutants"] == {"killed": 4, "total": 5, "equivalent": 1, "survivors": []}


@pytest.mark.parametrize(
    ("listed", "reason", "word"),
    [
        ("`2 * abs(a)` → `3 * abs(a)`", "once it was", "is killed"),
        ("`a` → `b`", "once it was", "does not exist"),
        ("`abs(a)` → `a`", " ", "without a reason"),
    ],
)
def test_a_stale_list_of_mutants_is_found_out(listed, reason, word):
    answer = answer_with("return 2 * abs(a)")
    known = {"`abs(a)` → `a`": "no number is negative", listed: reason}
    report = audited(doubling(equivalent_mutants=known), answer)
    assert kinds(report) == {"stale"}
    assert word in sentences(report, "stale")[0]


def test_mutants_that_never_end_are_killed():
    answer = answer_with("n = 0", "while n < 3:", "    n += 1", "return a + a")
    assert "drop `n += 1`" in [mutant.description for mutant in make_mutants(answer.source)]
    report = audited(doubling(), answer)
    assert "drop `n += 1`" not in report.facts["mutants"]["survivors"]


def test_a_change_of_global_state_is_found_out():
    def shuffles_the_world(a):
        random.seed(1)
        return a + a

    answer = answer_with("return 2 * a")
    state = random.getstate()
    report = audited(doubling(accepted=(shuffles_the_world,)), answer)
    random.setstate(state)
    assert kinds(report) == {"global state"}
    assert "Python's random state" in sentences(report, "global state")[0]


def test_a_candidate_cannot_leave_numpy_changed():
    def changes_numpy(a):
        np.random.seed(1)
        np.seterr(all="ignore")
        return a + a

    answer = answer_with("return 2 * a")
    assert audited(doubling(accepted=(changes_numpy,)), answer).failures == []


def test_an_unknown_exercise_is_refused(capsys, tmp_path):
    assert audit.main(["no_such_exercise"], tmp_path / "audit.json") == 2
    assert "no_such_exercise" in capsys.readouterr().err


def test_the_result_is_printed_and_written(capsys, tmp_path, monkeypatch):
    good = audited(*exercise_and_answer("as_column"))
    bad = audited(doubling(), answer_with("return 3 * a"))
    monkeypatch.setattr(audit, "audit_all", lambda ids, seeds: [good, bad])
    result = tmp_path / "build" / "audit.json"
    assert audit.main(["as_column"], result) == 1
    printed = capsys.readouterr().out
    assert "as_column" in printed
    assert "- double: the master's solution should be right, but earns 0 of 1 points" in printed
    plain = json.loads(result.read_text(encoding="utf-8"))
    assert plain["as_column"]["failures"] == []
    assert plain["as_column"]["smallest_margin"] is None
    assert plain["double"]["failures"]


def test_a_broken_exercise_does_not_stop_the_others(monkeypatch):
    def no_cases(rng):
        raise ValueError("no cases today")

    chapter, exercise = find("as_column")
    broken = replace(exercise, cases=no_cases)
    monkeypatch.setattr(audit, "find", lambda _: (chapter, broken))
    report = audit.audit_by_id("as_column")
    assert kinds(report) == {"stopped"}
    assert "no cases today" in sentences(report, "stopped")[0]


@pytest.mark.slow
def test_the_whole_audit_passes(tmp_path):
    # `make audit` asks with more seeds; these are enough to notice that something has changed.
    assert audit.main([], tmp_path / "audit.json", HIDDEN_SEEDS[:3]) == 0
