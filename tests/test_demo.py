"""The demo's class: from descriptions to notebooks and expected marks, and the whole round."""

from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.build import WRITTEN_STUB, checks_text
from autograder.demo import run as demo
from autograder.demo.attacks import LOOKED_UP, PUBLIC_ANSWERS, fake_outputs
from autograder.demo.building import (
    STUB,
    WRITTEN_ANSWER,
    Chapter,
    Code,
    DescriptionError,
    Submission,
    known_function,
    self_contained,
)
from autograder.demo.class_list import CHAPTER, CLASS, delete_check, lose_metadata, paste_twice
from autograder.demo.report import Row, conclude, differences, panels, table
from autograder.exercise import PUBLIC_SEED
from autograder.exercises import chapters
from autograder.kernels.sandbox import UNSANDBOXED_VARIABLE, SandboxUnavailable
from autograder.masters import grade_id

EXERCISES = chapters()[CHAPTER]
FIRST_TWO = {name: EXERCISES[name] for name in ("softmax", "decoder_step")}

SOLUTIONS = {
    "softmax": """def softmax(scores, axis):
    ### BEGIN SOLUTION
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)
    ### END SOLUTION""",
    # Calls the answer before it, as a student's notebook does.
    "decoder_step": """def decoder_step(state, encoder_states):
    ### BEGIN SOLUTION
    weights = softmax(np.einsum("...d,...ld->...l", state, encoder_states), axis=-1)
    return np.einsum("...l,...ld->...d", weights, encoder_states), weights
    ### END SOLUTION""",
}


def tiny_notebook(release):
    """A chapter of two exercises and a written answer, as source or as release."""
    notebook = new_notebook(cells=[new_code_cell("import numpy as np\nprint(1)")])

    def add(cell, grade_id, **flags):
        cell.metadata["nbgrader"] = {"grade_id": grade_id, **flags}
        notebook.cells.append(cell)

    for name, solution in SOLUTIONS.items():
        stub = solution.split("\n")[0] + "\n    raise NotImplementedError"
        add(new_code_cell(stub if release else solution), name, solution=True)
        add(new_code_cell(f'check("{name}", {name})'), f"check-{name}", grade=True)
    add(new_markdown_cell(WRITTEN_STUB if release else "Because."), "why", solution=True)
    return notebook


@pytest.fixture
def chapter():
    return Chapter(tiny_notebook(False), tiny_notebook(True), FIRST_TWO)


def written(chapter, submission, tmp_path):
    folder = tmp_path / submission.student / CHAPTER
    chapter.write(submission, folder, tmp_path)
    return nbformat.read(folder / f"{CHAPTER}.ipynb", 4).cells


def by_id(cells):
    return {grade_id(cell): cell for cell in cells}


# --- answers -------------------------------------------------------------------------------------


def test_every_answer_of_the_class_is_known():
    for submission in CLASS:
        for name, answer in submission.answers.items():
            if isinstance(answer, str) and answer != "solution":
                known_function(EXERCISES[name], answer)
    with pytest.raises(DescriptionError, match="knows no answer called 'nonsense'"):
        known_function(EXERCISES["softmax"], "nonsense")


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)
def test_answers_run_alone_under_the_exercises_name(exercise):
    """Whatever a known function needs travels with it, and it does the same."""
    cases = exercise.make_cases(PUBLIC_SEED)
    for function in [*exercise.accepted, *(m.function for m in exercise.misconceptions)]:
        namespace = {}
        text = self_contained(function, exercise.id)
        exec(text, namespace)
        assert "Right:" not in text
        with np.errstate(all="ignore"):
            alone = exercise.judge(exercise.run(namespace[exercise.id], cases), cases, [])
            known = exercise.judge(exercise.run(function, cases), cases, [])
        assert alone.points == known.points, function.__name__
        assert alone.difference == known.difference, function.__name__


def test_solutions_come_without_the_lines_that_mark_them(chapter, tmp_path):
    cells = by_id(written(chapter, Submission("a", "right"), tmp_path))
    assert "powers" in cells["softmax"].source
    assert "SOLUTION" not in cells["softmax"].source
    assert cells["why"].source == WRITTEN_ANSWER


def test_untouched_is_the_release(chapter, tmp_path):
    cells = by_id(written(chapter, Submission("a", "untouched", rest=STUB), tmp_path))
    assert cells["softmax"].source.endswith("raise NotImplementedError")
    assert cells["why"].source == WRITTEN_STUB


def test_an_unknown_exercise_is_refused(chapter, tmp_path):
    with pytest.raises(DescriptionError, match="softmaxx"):
        written(chapter, Submission("a", "", {"softmaxx": Code("pass")}), tmp_path)


# --- edits ---------------------------------------------------------------------------------------


def test_accidents_do_to_the_notebook_what_they_say(chapter, tmp_path):
    twice = Submission("twice", "", edits=(paste_twice("softmax", "softmax = None"),))
    cells = [c for c in written(chapter, twice, tmp_path) if grade_id(c) == "softmax"]
    assert [cell.source == "softmax = None" for cell in cells] == [True, False]
    assert len({cell.id for cell in cells}) == 2

    gone = Submission("gone", "", edits=(delete_check("softmax"),))
    assert "check-softmax" not in by_id(written(chapter, gone, tmp_path))

    lost = Submission("lost", "", edits=(lose_metadata,))
    assert all(cell.metadata == {} for cell in written(chapter, lost, tmp_path))

    faked = Submission("faked", "", edits=(fake_outputs,), rest=STUB)
    cell = by_id(written(chapter, faked, tmp_path))["check-softmax"]
    assert "skip-execution" in cell.metadata["tags"]
    assert cell.outputs[0]["data"] == {"text/plain": "100"}


def test_edits_leave_the_release_alone(chapter, tmp_path):
    for submission in CLASS:
        only = {k: v for k, v in submission.answers.items() if k in FIRST_TWO}
        edits = (delete_check("softmax"), lose_metadata)
        written(chapter, replace(submission, answers=only, edits=edits), tmp_path)
    ids = [grade_id(cell) for cell in chapter.release.cells]
    assert ids == ["", "softmax", "check-softmax", "decoder_step", "check-decoder_step", "why"]


# --- expected marks ------------------------------------------------------------------------------


def test_expected_marks(chapter):
    def marks(**given):
        return chapter.expected_marks(Submission("a", "", **given))

    assert marks() == {"softmax": 3, "decoder_step": 3}
    assert marks(rest=STUB) == {"softmax": 0, "decoder_step": 0}
    assert marks(answers={"softmax": "with_logarithms"}) == {"softmax": 3, "decoder_step": 3}
    assert marks(answers={"decoder_step": "scaled_by_root"})["decoder_step"] == 0
    # A mistake travels to the answer that calls it, and only there.
    assert marks(answers={"softmax": "no_maximum_subtracted"}) == {"softmax": 2, "decoder_step": 2}
    alone = {"softmax": "no_maximum_subtracted", "decoder_step": "decoder_by_matmul"}
    assert marks(answers=alone) == {"softmax": 2, "decoder_step": 3}


def test_code_that_is_not_safe_to_run_here_is_not_run(chapter):
    deadly = Code("import os\nos._exit(1)\n")
    marks = chapter.expected_marks(Submission("a", "", {"softmax": deadly}))
    assert marks == {"softmax": 0, "decoder_step": 0}


def test_a_mark_that_depends_on_chance_is_refused(chapter):
    text = "def softmax(scores, axis):\n    return np.zeros(7)\n"
    lucky = Code(text, behaves_as=SOLUTIONS["softmax"] + "\nsoftmax.calls = 0\n")
    given = iter([3.0, 3.0, 1.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.demo.building._points", lambda *_: next(given))
        with pytest.raises(DescriptionError, match=r"softmax is worth \[1.0, 3.0\]"):
            chapter.expected_marks(Submission("a", "", {"softmax": lucky}))


def test_looking_up_public_results_would_pass_the_public_cases(tmp_path, monkeypatch):
    """The attack is a real one: only the hidden cases stop it."""
    (tmp_path / "checks.json").write_text(checks_text(CHAPTER), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name, source in LOOKED_UP.items():
        namespace = {}
        exec(PUBLIC_ANSWERS + source, namespace)
        exercise, points = EXERCISES[name], []
        for seed in (PUBLIC_SEED, 5):
            cases = exercise.make_cases(seed)
            points.append(exercise.judge(exercise.run(namespace[name], cases), cases, []).points)
        assert points == [exercise.points, 0]


# --- the report ----------------------------------------------------------------------------------

PAGE = (
    '<p>before</p><div role="status" style="x"><strong>✗ softmax: not yet right</strong>'
    '<ul style="y"><li>all axes: 0 of 2</li></ul><table><tr><th a="b">What was seen</th>'
    '<td c="d">`result` differs &lt;here&gt;</td></tr></table></div>'
)


def a_row(**changed):
    marks = {"softmax": 3.0}
    return replace(Row(Submission("zoë", "right"), marks, marks, 2, 3.0, "✓", Path("p")), **changed)


def test_panels_are_read_from_a_page():
    rows = {"What was seen": "`result` differs <here>"}
    assert panels(PAGE) == [("✗ softmax: not yet right", rows)]


def test_equal_marks_exit_with_0(capsys):
    assert conclude([a_row()], []) == 0
    printed = capsys.readouterr().out
    assert "All 1 submissions got the expected marks." in printed
    assert "Written answers (2 points) count 0" in printed


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"expected": {"softmax": 2.0}}, "softmax is worth 2, and grading gave 3."),
        ({"got": {"softmax": None}, "exported": 0.0}, "is worth 3, and grading gave no mark."),
        ({"got": None}, "the submission was not graded."),
        ({"exported": 2.0}, "the marks add up to 3, and the export says 2."),
        ({"exported": None}, "the export says nothing."),
        ({"page": None}, "there is no feedback page."),
    ],
)
def test_a_difference_is_said_in_words_and_exits_with_1(changed, words, capsys):
    row = a_row(**changed)
    assert words in differences(row)[0]
    assert conclude([row], []) == 1
    printed = capsys.readouterr().out
    assert f"DIFFERENT: zoë: {differences(row)[0].removeprefix('zoë: ')}" in printed
    assert "<-- differs" in table([row])


def test_a_problem_on_the_way_exits_with_1():
    assert conclude([a_row()], ["`nbgrader export` ended with exit status 1."]) == 1
    assert conclude([], []) == 1


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "use_sandbox", lambda: True)
    (tmp_path / "thesis.txt").write_text("mine")
    assert demo.main(tmp_path) == 1
    assert "was not made by the demo" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_no_sandbox_no_demo(tmp_path, monkeypatch, capsys):
    def refuse():
        raise SandboxUnavailable("bubblewrap is not installed")

    monkeypatch.setenv(UNSANDBOXED_VARIABLE, "1")
    assert demo.main(tmp_path / "demo") == 1
    assert "unset it" in capsys.readouterr().err
    monkeypatch.setattr(demo, "use_sandbox", refuse)
    assert demo.main(tmp_path / "demo") == 1
    assert "bubblewrap is not installed" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


# --- the whole round -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_whole_class_gets_the_expected_marks(tmp_path, capsys):
    folder = tmp_path / "demo"
    status = demo.main(folder)
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert len(CLASS) >= 14
    lines = printed.splitlines()
    for submission in CLASS:
        assert any(
            line.startswith(submission.student) and submission.about in line for line in lines
        )
        page = folder / "feedback" / submission.student / CHAPTER / f"{CHAPTER}.html"
        shown = panels(page.read_text(encoding="utf-8"))
        assert len(shown) == len(EXERCISES)
        assert all("Expected" not in rows for _, rows in shown)
    assert (folder / "demo.log").read_text("utf-8").count("$ nbgrader ") == 4
    causes = {
        rows.get("Likely cause")
        for _, rows in panels((folder / f"feedback/farid/{CHAPTER}/{CHAPTER}.html").read_text())
    }
    known = {m.function.__name__: m.cause for m in EXERCISES["causal_attention"].misconceptions}
    assert known["sees_the_next_token"] in causes
