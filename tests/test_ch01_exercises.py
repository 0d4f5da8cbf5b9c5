"""Chapter 01: what its exercises promise beyond the general audit."""

import numpy as np
import pytest

from autograder.exercises.ch01_shapes import EXERCISES

BY_ID = {exercise.id: exercise for exercise in EXERCISES}
SEEDS = (0, 1, 2, 3)


def judged(exercise_id, candidate, seed):
    exercise = BY_ID[exercise_id]
    cases = exercise.make_cases(seed)
    return exercise.judge(exercise.run(candidate, cases), cases, mistakes=[])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_misconceptions_are_caught_and_named(exercise, seed):
    cases = exercise.make_cases(seed)
    known = exercise.known_mistakes(cases)
    for mistake in known:
        verdict = exercise.judge(list(mistake.outcomes), cases, known)
        assert verdict.points < exercise.points, mistake.name
        assert verdict.misconception == mistake.name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_right_answers_earn_everything(exercise, seed):
    cases = exercise.make_cases(seed)
    for candidate in exercise.accepted:
        verdict = exercise.judge(exercise.run(candidate, cases), cases, mistakes=[])
        assert verdict.points == exercise.points, (candidate.__name__, verdict.difference)


def test_the_librarys_own_answer_is_refused_where_the_text_says_so():
    exercise = BY_ID["broadcast_shape"]
    cases = exercise.make_cases(5)
    verdict = exercise.judge(exercise.run(exercise.reference, cases), cases)
    assert verdict.points == 0
    assert "`numpy`" in verdict.difference.sentence


@pytest.mark.parametrize("seed", SEEDS)
def test_padding_is_there_and_is_large(seed):
    """Without it a mean over all positions could pass."""
    for case in BY_ID["masked_mean"].make_cases(seed):
        values, lengths = case.inputs["values"], case.inputs["lengths"]
        padding = np.arange(values.shape[1]) >= lengths[:, None]
        assert padding.any()
        assert np.isfinite(values).all()
        assert values[padding].min() > 100 * np.abs(values[~padding]).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_row_sums_are_positive_with_negative_entries(seed):
    for case in BY_ID["normalise_rows"].make_cases(seed):
        assert (case.inputs["matrix"].sum(axis=-1) > 0.1).all()
        assert (case.inputs["matrix"] < 0).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_square_answers_to_causal_mask_earn_the_square_only(seed):
    verdict = judged("causal_mask", lambda queries, keys: np.tri(keys, dtype=bool), seed)
    assert (verdict.points, verdict.status) == (1, "partly right")


@pytest.mark.parametrize("seed", SEEDS)
def test_merging_undoes_splitting(seed):
    split, merge = BY_ID["split_heads"], BY_ID["merge_heads"]
    for case in split.make_cases(seed):
        if case.group == "split":
            back = merge.reference(split.reference(**case.inputs))
            np.testing.assert_array_equal(back, case.inputs["x"])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shape_that_is_always_refused_earns_nothing(seed):
    def refuse(first, second):
        raise ValueError("no")

    assert judged("broadcast_shape", refuse, seed).points == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_number_in_the_divisor_is_right(seed):
    """A guard of 1e-12 against 0/0 must not cost marks."""

    def guarded(values, lengths):
        mask = (np.arange(values.shape[1]) < lengths[:, None])[..., None]
        return (values * mask).sum(axis=1) / (lengths[:, None] + 1e-12)

    assert judged("masked_mean", guarded, seed).status == "passed"
