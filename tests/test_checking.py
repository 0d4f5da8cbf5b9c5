import json
import os
import subprocess
import sys

import numpy as np
import pytest

from attention_course import CheckFailed, CheckSetupError, check, codec, example
from attention_course.checking import HIDDEN_CASES_FILE
from autograder.build import checks_text
from autograder.exercises import find


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    (tmp_path / "checks.json").write_text(checks_text("02_attention"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return tmp_path


def right(scores, axis):
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def last_axis(scores, axis):
    return right(scores, -1)


def test_a_right_answer_prints_one_short_text(chapter, capfd):
    assert check("softmax", right) is None
    out, err = capfd.readouterr()
    assert out.startswith("softmax: all")
    assert err == ""


def test_a_wrong_answer_raises_with_the_cause_and_both_values(chapter):
    with pytest.raises(CheckFailed) as caught:
        check("softmax", last_axis)
    message = str(caught.value)
    for part in ("Yours: result[", "Expected: result[", "last axis", "Next step:"):
        assert part in message
    assert caught.value._render_traceback_() == [f"CheckFailed: {message}"]


def test_example_gives_the_inputs_of_the_case_that_the_panel_names(chapter):
    with pytest.raises(CheckFailed) as caught:
        check("softmax", last_axis)
    number = int(str(caught.value).split("Case: ")[1].split(":")[0])
    inputs = example("softmax", number)
    assert str(inputs["scores"].shape) in str(caught.value)
    inputs["scores"][:] = 0
    assert example("softmax", number)["scores"].any(), "each call gives a fresh copy"


def test_not_a_function(chapter):
    with pytest.raises(CheckFailed, match="a function is expected, this is of type ndarray"):
        check("softmax", np.ones(3))


@pytest.mark.parametrize("case", [0, -1, 99, "1", None])
def test_an_unknown_case_says_which_there_are(chapter, case):
    with pytest.raises(CheckSetupError, match="has the cases 1 to"):
        example("softmax", case)


def test_an_unknown_exercise_lists_the_known_ones(chapter):
    with pytest.raises(CheckSetupError, match="This chapter has: softmax"):
        check("sofmax", right)


def test_a_missing_file_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckSetupError, match="open the notebook from the course folder"):
        check("softmax", right)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"dict": {"softmax": {"dict": {}}}}', "<<<<<<<"])
def test_a_damaged_file_says_so(tmp_path, monkeypatch, text):
    (tmp_path / "checks.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckSetupError, match="is damaged"):
        check("softmax", right)


def test_the_public_file_names_no_python_code_of_the_graders(chapter):
    text = (chapter / "checks.json").read_text()
    assert "def " not in text
    assert "autograder" not in text


def test_the_hidden_file_holds_inputs_only_and_earns_nothing_outside_grading(chapter, capfd):
    """A student who plants hidden_cases.json gets an ordinary check."""
    (chapter / HIDDEN_CASES_FILE).write_text("{}")
    check("softmax", right)
    assert "all" in capfd.readouterr().out


SCRIPT = """
import json, sys
import numpy as np
from attention_course import check
def softmax(scores, axis):
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)
check("softmax", softmax)
check("softmax", softmax)
print("torch" in sys.modules, "matplotlib" in sys.modules)
"""


def test_a_check_loads_neither_torch_nor_matplotlib(chapter):
    environment = {k: v for k, v in os.environ.items() if k != "NBGRADER_EXECUTION"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "False False"


def test_public_and_hidden_inputs_differ():
    _, exercise = find("softmax")
    texts = {
        codec.dumps([dict(case.inputs) for case in exercise.make_cases(seed)]) for seed in range(9)
    }
    assert len(texts) == 9
    again = codec.dumps([dict(case.inputs) for case in exercise.make_cases(3)])
    assert again in texts


def test_the_checks_file_is_plain_json(chapter):
    json.loads((chapter / "checks.json").read_text())
