"""What an exercise does with its own reference, and how a panel shows its inputs."""

from dataclasses import replace

import numpy as np
import pytest

from attention_course import panel
from autograder.exercises import chapters

SOFTMAX = chapters()["02_attention"]["softmax"]


def broken(scores, axis):
    raise AttributeError("half imported")


def silent(scores, axis):
    return None


@pytest.mark.parametrize(("reference", "says"), [(broken, "half imported"), (silent, "None")])
def test_a_reference_without_result_stops_grading_instead_of_passing_everyone(reference, says):
    exercise = replace(SOFTMAX, reference=reference)
    cases = exercise.make_cases(1)
    outcomes = exercise.run(SOFTMAX.reference, cases)
    with pytest.raises(RuntimeError, match=f"softmax: no result of its reference.*{says}"):
        exercise.judge(outcomes, cases)


def test_a_reference_may_refuse():
    def refuses(scores, axis):
        raise ValueError("no")

    exercise = replace(SOFTMAX, reference=refuses)
    cases = exercise.make_cases(1)
    verdict = exercise.judge(exercise.run(refuses, cases), cases)
    assert verdict.status == "passed"


def test_the_students_time_limit_is_not_the_references():
    exercise = replace(SOFTMAX, seconds=1e-9)
    assert all(outcome.status == "returned" for outcome in exercise.expected(SOFTMAX.make_cases(1)))


def test_a_panel_does_not_list_dozens_of_weights():
    weights = {f"layer {number}": np.ones(2) for number in range(20)}
    text = panel.describe_inputs({"weights": weights, "training": False})
    assert text.endswith("layer 5 (2,) and 14 more}, training False")
    assert "more" not in panel.describe_inputs({"weights": {"one": np.ones(2)}})


def test_a_panel_gives_shapes_also_of_what_lies_in_tuples_in_lists():
    pairs = [(np.ones((2, 3)), np.ones(2)), (np.ones((4, 3)), {"ids": np.ones(4)})]
    text = panel.describe_inputs({"batches": pairs, "pieces": [(1, 2)], "words": ("a", None)})
    assert text == (
        "batches [((2, 3), (2,)), ((4, 3), {ids (4,)})], pieces [(1, 2)], words ('a', None)"
    )
