import os
import stat

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from attention_course import codec
from attention_course.checking import OUTCOMES_TYPE
from autograder.exercises import find
from autograder.grading.hidden import course_secret, submission_seed
from autograder.grading.preprocessors import write_without_following_links
from autograder.grading.verdicts import hide, judge_cell, recorded_outcomes, task, verdict_output

_, SOFTMAX = find("softmax")
CASES = SOFTMAX.make_cases(11)


def document(function, exercise="softmax", cases=CASES):
    outcomes = [outcome.to_plain() for outcome in SOFTMAX.run(function, cases)]
    return codec.dumps({"exercise": exercise, "outcomes": outcomes})


def cell_with(*documents, extra=()):
    outputs = [new_output("display_data", data={OUTCOMES_TYPE: text}) for text in documents]
    cell = new_code_cell('check("softmax", softmax)', outputs=[*extra, *outputs])
    cell.metadata["nbgrader"] = {"grade_id": "check-softmax", "grade": True, "points": 3}
    return cell


def judge(cell, answer=None):
    cells = [cell] if answer is None else [answer, cell]
    return judge_cell(new_notebook(cells=cells), cell, SOFTMAX, CASES)


def right(scores, axis):
    return SOFTMAX.reference(scores, axis)


def zeros(scores, axis):
    return np.zeros_like(scores)


def test_right_numbers_earn_the_points():
    assert judge(cell_with(document(right))).points == 3


FAKES = [
    new_output("execute_result", data={"text/plain": "3.0"}, execution_count=1),
    new_output("stream", name="stdout", text="softmax: all 8 cases passed"),
    new_output("display_data", data={"text/html": "<b>passed</b>"}),
]


def test_nothing_but_numbers_earns_anything():
    assert judge(cell_with(extra=FAKES)).points == 0
    assert judge(cell_with(document(zeros), extra=FAKES)).points == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        '{"dict": {}}',
        '{"dict": {"exercise": "softmax", "outcomes": "all"}}',
        '{"dict": {"exercise": "softmax", "outcomes": []}}',
        document(right, exercise="another"),
        document(right, cases=CASES[:-1]),
        "[" * 50_000,
    ],
)
def test_forged_documents_are_no_answer(text):
    assert recorded_outcomes(cell_with(text), "softmax", len(CASES)) is None
    assert judge(cell_with(text)).status == "no result"


def test_an_outcome_that_claims_to_be_right_is_compared_all_the_same():
    outcomes = [
        {**outcome.to_plain(), "status": "passed", "points": 3}
        for outcome in SOFTMAX.run(zeros, CASES)
    ]
    text = codec.dumps({"exercise": "softmax", "outcomes": outcomes})
    assert judge(cell_with(text)).points == 0


def test_numbers_of_other_cases_earn_nothing():
    assert judge(cell_with(document(right, cases=SOFTMAX.make_cases(0)))).points == 0


def test_the_kernel_gets_inputs_only():
    plain = task(SOFTMAX, CASES)
    assert set(plain) == {"driver", "terms", "cases"}
    assert all(set(case) == {"scores", "axis"} for case in plain["cases"])


def test_the_error_of_the_answer_cell_is_passed_on():
    answer = new_code_cell(
        "def softmax(:", outputs=[new_output("error", ename="SyntaxError", evalue="invalid syntax")]
    )
    answer.metadata["nbgrader"] = {"grade_id": "softmax", "solution": True}
    verdict = judge(cell_with(), answer)
    assert verdict.status == "no result"
    assert verdict.difference.got == "SyntaxError: invalid syntax"


def test_feedback_hides_what_was_expected_and_what_was_printed():
    def chatty(scores, axis):
        print("scores", scores.tolist())
        return np.zeros_like(scores)

    verdict = judge(cell_with(document(chatty)))
    assert verdict.difference.expected
    assert "scores" in verdict.details["printed"]
    hidden = hide(verdict)
    assert hidden.difference.expected == ""
    assert "printed" not in hidden.details
    html = verdict_output(hidden, CASES[0]).data["text/html"]
    assert "Expected" not in html


def test_nbgrader_reads_the_points_from_a_verdict():
    from nbgrader.utils import determine_grade

    for function, points in ((right, 3), (zeros, 0)):
        cell = cell_with(document(function))
        cell.outputs = [verdict_output(hide(judge(cell)), None)]
        cell.metadata.nbgrader = nbformat.from_dict(
            {"grade": True, "solution": False, "points": 3, "grade_id": "check-softmax"}
        )
        assert determine_grade(cell) == (points, 3)


def test_the_seed_depends_on_secret_student_assignment_code_and_files(tmp_path):
    secret = course_secret(tmp_path)
    assert course_secret(tmp_path) == secret
    assert stat.S_IMODE(os.stat(tmp_path / ".autograder-secret").st_mode) == 0o600
    one, other = (new_notebook(cells=[new_code_cell(text)]) for text in ("1", "2"))
    seeds = {
        submission_seed(secret, "ada", "02", one),
        submission_seed(secret, "bob", "02", one),
        submission_seed(secret, "ada", "03", one),
        submission_seed(secret, "ada", "02", other),
        submission_seed(b"x" * 32, "ada", "02", one),
        submission_seed(secret, "ada", "02", one, {"data.csv": b"1"}),
        submission_seed(secret, "ada", "02", one, {"data.csv": b"2"}),
    }
    assert len(seeds) == 7
    assert 0 not in seeds
    assert submission_seed(secret, "ada", "02", one) in seeds


def test_a_planted_link_is_replaced_and_not_followed(tmp_path):
    target = tmp_path / "gradebook.db"
    target.write_text("precious")
    link = tmp_path / "hidden_cases.json"
    link.symlink_to(target)
    write_without_following_links(link, "{}")
    assert target.read_text() == "precious"
    assert link.read_text() == "{}"
    assert not link.is_symlink()


EVIL = [
    {"status": "passed"},
    {"kinds": {}},
    {"kinds": {"result": "surprise"}},
    {"outputs": {"result": 3}},
    {"outputs": []},
    {"details": None},
    {"changed_inputs": 5},
]


@pytest.mark.parametrize("part", EVIL)
def test_a_forged_outcome_is_no_answer(part):
    outcomes = [{**outcome.to_plain(), **part} for outcome in SOFTMAX.run(right, CASES)]
    text = codec.dumps({"exercise": "softmax", "outcomes": outcomes})
    assert judge(cell_with(text)).status == "no result"


@pytest.mark.parametrize(
    "value", [np.arange(3.0), {"exercise": np.arange(2), "outcomes": []}, [1], {"outcomes": None}]
)
def test_a_forged_document_is_no_answer(value):
    assert judge(cell_with(codec.dumps(value))).status == "no result"


def test_texts_of_a_candidate_are_short_and_can_be_written():
    def candidate(scores, axis):
        raise ValueError("\ud800" + "x" * 100_000)

    verdict = judge(cell_with(document(candidate).replace("\ud800", "\\ud800")))
    html = verdict_output(hide(verdict), CASES[0]).data["text/html"]
    assert len(html.encode("utf-8")) < 10_000
