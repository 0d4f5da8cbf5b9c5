"""The parts of the audit: what it watches, how it measures, what it takes for lazy, its stubs."""

import math

import numpy as np
import pytest
from nbgrader.preprocessors import ClearSolutions

from attention_course.comparing import Tolerance
from attention_course.outcomes import Outcome
from autograder.audit import trials as audit_trials
from autograder.audit.answers import read_answer
from autograder.audit.lazy import lazy_functions, lazy_outcomes
from autograder.audit.trials import margin
from autograder.build import release_config
from autograder.exercises import chapters
from autograder.masters import ROOT, SOLUTIONS, grade_id, master_names, read_master

MASTERS = [name for name in master_names() if name in chapters()]


def test_every_global_state_is_probed():
    for probe in audit_trials.GLOBAL_STATE.values():
        assert probe() == probe()
    before = audit_trials.GLOBAL_STATE["NumPy's random state"]()
    saved = np.random.get_state()
    np.random.random()
    assert audit_trials.GLOBAL_STATE["NumPy's random state"]() != before
    np.random.set_state(saved)


def returned(value):
    array = np.array(value)
    return Outcome("returned", {"result": array}, {"result": "array"})


@pytest.mark.parametrize(
    ("got", "want", "expected"),
    [
        (returned([1.0, 2.5]), returned([1.0, 2.0]), 5.0),
        (returned(2.5), returned(2.0), 5.0),
        (returned([1.0, 2.0]), returned([1.0, 2.0]), 0.0),
        (returned([math.inf, 2.5]), returned([math.inf, 2.0]), 5.0),
        (returned([math.inf, 2.0]), returned([1.0, 2.0]), math.inf),
        (returned([math.nan, 2.0]), returned([1.0, 2.0]), math.inf),
        (returned([1.0]), returned([1.0, 2.0]), math.inf),
        (returned([1]), returned([2]), math.inf),
        (Outcome("raised", error="ValueError"), returned([1.0]), math.inf),
    ],
)
def test_margin_counts_tolerances(got, want, expected):
    assert margin(got, want, Tolerance(0, 0.1)) == pytest.approx(expected)


def test_lazy_answers_have_the_right_shape_and_kind():
    expected = [returned([[0.2, 0.8]]), returned([True]), Outcome("raised", error="ValueError")]
    for name, outcomes in lazy_outcomes(expected):
        assert outcomes[0].outputs["result"].shape == (1, 2), name
        assert outcomes[2].error == "ValueError"
    assert dict(lazy_outcomes(expected))["uniform weights"][0].outputs["result"][0, 0] == 0.5
    functions = dict(lazy_functions(("x", "y"), ("a", "b")))
    assert functions["its input `y`"](x=1, y=2) == (2, 2)
    assert len(functions) == 4


@pytest.mark.parametrize("chapter", MASTERS)
def test_stubs_are_those_of_the_release(chapter):
    """nbgrader's own tool makes the same stubs."""
    notebook = read_master(SOLUTIONS / f"{chapter}.py", chapters()[chapter]).notebook
    ClearSolutions(config=release_config(ROOT)).preprocess(notebook, {})
    released = {grade_id(cell): cell.source for cell in notebook.cells}
    for exercise_id in chapters()[chapter]:
        assert read_answer(chapter, exercise_id).stub == released[exercise_id]
