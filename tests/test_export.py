"""A student's library: what is answered is taken over, the rest is named, nothing is run."""

import importlib.util
import json
from dataclasses import replace

import pytest

from attention_course import stand_ins
from attention_course.export import LIBRARY, PARTS, collect
from autograder.exercises import find
from autograder.masters import ROOT

BY_NAME = {part.name: part for part in PARTS}


def loaded(path):
    spec = importlib.util.spec_from_file_location("library_of_a_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def passes(part, candidate):
    exercise = replace(find(part.exercise)[1], forbidden=())  # they may call what they replace
    cases = exercise.make_cases(5)
    return exercise.judge(exercise.run(candidate, cases), cases).status


def course_of(folder, chapter, *cells):
    """A course with one notebook; a cell is its source, or (exercise, source)."""
    written = []
    for cell in cells:
        name, source = cell if isinstance(cell, tuple) else ("", cell)
        metadata = {"nbgrader": {"grade_id": name, "solution": True}} if name else {}
        written.append({"cell_type": "code", "source": source, "metadata": metadata})
    path = folder / chapter / f"{chapter}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"cells": written}), encoding="utf-8")
    return folder


def told(lines, name):
    return next(line for line in lines if line.startswith(f"{name}: "))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_stand_in_does_what_the_exercise_asks(part):
    assert passes(part, getattr(stand_ins, part.name)) == "passed"


def test_answers_of_the_real_chapters_are_taken_over_and_work(tmp_path):
    more = [("08_language_models", "gpt", "GPT")]
    lines = collect(ROOT / "solutions", tmp_path / LIBRARY, also=more)
    assert all(": yours, from" in told(lines, name) for name in (*BY_NAME, "GPT"))
    text = (tmp_path / LIBRARY).read_text("utf-8")
    assert "stand_ins" not in text
    assert "# yours: `masked_softmax`, from 02_attention.ipynb" in text  # another one needs it
    library = loaded(tmp_path / LIBRARY)
    assert {name: passes(part, getattr(library, name)) for name, part in BY_NAME.items()} == (
        dict.fromkeys(BY_NAME, "passed")
    )


def test_of_released_chapters_nothing_is_taken(tmp_path):
    lines = collect(ROOT / "course", tmp_path / LIBRARY)
    for name, part in BY_NAME.items():
        said = told(lines, name)
        assert said.endswith(f"exercise {part.exercise}: it is not answered yet")
    library = loaded(tmp_path / LIBRARY)
    assert library.softmax is stand_ins.softmax


def test_with_no_other_notebook_everything_stands_in(tmp_path):
    lines = collect(tmp_path / "nowhere", tmp_path / LIBRARY)
    assert told(lines, "mlp").endswith("there is no 05_transformer_block.ipynb")
    assert loaded(tmp_path / LIBRARY).EncoderBlock is stand_ins.EncoderBlock


SOFTMAX = "def softmax(scores, axis):\n    return np.exp(scores) * FACTOR"
BROKEN = {
    "it is no Python: invalid syntax, line 2 of its cell": [
        ("softmax", "def softmax(scores, axis):\n    return x y"),
    ],
    "its cell is not in the notebook": ["x = 1"],
    "its cell does not define `softmax`": [("softmax", "def soft_max(scores, axis): ...")],
    "it uses `FACTOR`, which": ["import numpy as np\nFACTOR = np.ones(3)", ("softmax", SOFTMAX)],
    "it uses `np`, which": ["FACTOR = 2", ("softmax", SOFTMAX)],
    "it needs `part`, a stub": [
        ("other", "def part(x):\n    # YOUR CODE HERE\n    raise NotImplementedError"),
        ("softmax", "def softmax(scores, axis):\n    return part(scores)"),
    ],
}


@pytest.mark.parametrize("reason", BROKEN)
def test_what_cannot_be_taken_is_named_with_its_reason(reason, tmp_path):
    course = course_of(tmp_path, "02_attention", *BROKEN[reason])
    said = told(collect(course, tmp_path / LIBRARY), "softmax")
    assert said.startswith(f"softmax: PyTorch's stands in; exercise softmax: {reason}")
    assert loaded(tmp_path / LIBRARY).softmax is stand_ins.softmax


def test_a_damaged_notebook_is_named(tmp_path):
    course = course_of(tmp_path, "02_attention", ("softmax", SOFTMAX))
    (course / "02_attention" / "02_attention.ipynb").write_text('{"cells": [', encoding="utf-8")
    assert "02_attention.ipynb cannot be read" in told(
        collect(course, tmp_path / "a.py"), "softmax"
    )


def test_helpers_come_along_and_nothing_is_run(tmp_path):
    written = tmp_path / "run"
    spy = f"open({str(written)!r}, 'w')"
    course = course_of(
        tmp_path,
        "02_attention",
        f"%matplotlib inline\n{spy}",
        f"import numpy.linalg as la\nimport numpy as np\nfrom attention_course import check\n{spy}",
        "FACTOR = 3\n\n\ndef shift(x):\n    return x + FACTOR",
        ("softmax", f"{spy}\n\n\ndef softmax(scores, axis):\n    return shift(la.norm(scores))"),
    )
    assert told(collect(course, tmp_path / LIBRARY), "softmax") == (
        "softmax: yours, from 02_attention.ipynb"
    )
    text = (tmp_path / LIBRARY).read_text("utf-8")
    assert not written.exists() and "open(" not in text and "check" not in text
    assert "from numpy import linalg as la" in text and "import numpy as np" not in text
    assert loaded(tmp_path / LIBRARY).softmax([3.0, 4.0], 0) == 8.0


def test_two_different_helpers_of_one_name_do_not_mix(tmp_path):
    helper = "def half(x):\n    return x / {}"
    softmax = ("softmax", "def softmax(scores, axis):\n    return half(scores)")
    course_of(tmp_path, "02_attention", helper.format(2), softmax)
    norm = ("layer_norm", "def layer_norm(x, gain, bias, epsilon):\n    return half(x)")
    course_of(tmp_path, "05_transformer_block", helper.format(3), norm)
    lines = collect(tmp_path, tmp_path / LIBRARY)
    assert "it needs a `half` other than that of 02_attention.ipynb" in told(lines, "layer_norm")
    assert loaded(tmp_path / LIBRARY).softmax(4.0, 0) == 2.0


def test_a_file_that_is_there_is_kept(tmp_path):
    target = tmp_path / LIBRARY
    target.write_text("precious = 1\n", encoding="utf-8")
    assert collect(tmp_path, target)[-1].endswith(
        "what was there before is my_transformer_old1.py now"
    )
    assert (tmp_path / "my_transformer_old1.py").read_text("utf-8") == "precious = 1\n"
    assert collect(tmp_path, target)[-1] == f"{LIBRARY} is as it was"
    assert len(list(tmp_path.iterdir())) == 2
