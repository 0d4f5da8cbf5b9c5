"""What chapter 03's exercises promise: shifts, distances, caches, and what must not matter."""

import numpy as np
import pytest

from autograder.exercises.ch03_positions import (
    ADD_POSITIONS,
    CACHED_ROTARY_STEP,
    EXERCISES,
    LEARNED_POSITIONS,
    RELATIVE_WEIGHTS,
    ROTARY_ATTENTION,
    ROTATE_PAIRS,
    SHIFT_MATRIX,
    SINUSOIDAL_TABLE,
)

SEEDS = range(10)


def inputs_of(exercise, seeds=SEEDS):
    return [case.inputs for seed in seeds for case in exercise.make_cases(seed)]


def test_the_shift_matrix_moves_every_position():
    positions = np.array([0, 1, 17, 300])
    for given in inputs_of(SHIFT_MATRIX):
        k, width, base = given["k"], given["d_model"], given["base"]
        before = SINUSOIDAL_TABLE.reference(positions, width, base)
        after = SINUSOIDAL_TABLE.reference(positions + k, width, base)
        matrix = SHIFT_MATRIX.reference(k, width, base)
        np.testing.assert_allclose(before @ matrix.T, after, atol=1e-9)
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(width), atol=1e-9)


def test_every_width_and_start_occurs_in_the_table_exercise():
    for seed in SEEDS:
        given = [case.inputs for case in SINUSOIDAL_TABLE.make_cases(seed)]
        assert any(one["d_model"] % 2 for one in given)
        assert any(one["positions"][0] != 0 for one in given)
        assert any((np.diff(one["positions"]) < 0).any() for one in given)
        assert len({one["base"] for one in given}) > 1


def test_what_lies_in_padding_does_not_matter():
    for given in inputs_of(ADD_POSITIONS):
        vectors, lengths = given["vectors"], given["lengths"]
        padded = np.arange(vectors.shape[1]) >= lengths[:, None]
        other = np.where(padded[..., None], -7e7, vectors)
        first, second = (
            ADD_POSITIONS.reference(x, lengths, given["table"]) for x in (vectors, other)
        )
        np.testing.assert_array_equal(first, second)
        assert (first[padded] == 0).all()


def test_a_batch_of_unequal_lengths_has_at_least_two_padded_places_in_a_row():
    for seed in SEEDS:
        cases = [case for case in ADD_POSITIONS.make_cases(seed) if case.group == "padding"]
        for case in cases:
            lengths, width = case.inputs["lengths"], case.inputs["vectors"].shape[1]
            assert lengths.max() == width and lengths.min() <= width - 2


def test_refusals_name_the_limit_and_the_last_row_is_known():
    for seed in SEEDS:
        for case in LEARNED_POSITIONS.make_cases(seed):
            positions, table = case.inputs["positions"], case.inputs["table"]
            if case.group == "values":
                found = LEARNED_POSITIONS.reference(positions, table)
                np.testing.assert_array_equal(found, table[positions])
                continue
            with pytest.raises(ValueError, match=str(len(table) - 1)):
                LEARNED_POSITIONS.reference(positions, table)


def test_a_bias_that_all_distances_share_changes_nothing():
    for given in inputs_of(RELATIVE_WEIGHTS):
        scores, table = given["scores"], given["table"]
        same = RELATIVE_WEIGHTS.reference(scores, np.full(table.shape, 3.25))
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        np.testing.assert_allclose(same, powers / powers.sum(axis=-1, keepdims=True), atol=1e-12)


def test_the_last_queries_have_the_last_rows():
    rng = np.random.default_rng(4)
    scores, table = rng.normal(size=(3, 6, 6)), rng.normal(size=(3, 5))
    whole = RELATIVE_WEIGHTS.reference(scores, table)
    np.testing.assert_allclose(RELATIVE_WEIGHTS.reference(scores[:, -2:], table), whole[:, -2:])


def test_turning_keeps_lengths_and_position_zero():
    for given in inputs_of(ROTATE_PAIRS):
        x, base = given["x"], given["base"]
        turned = ROTATE_PAIRS.reference(**given)
        np.testing.assert_allclose(
            np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-12
        )
        zero = np.zeros(x.shape[-2], dtype=int)
        np.testing.assert_array_equal(ROTATE_PAIRS.reference(x, zero, base), x)


def test_only_the_distance_counts_and_attention_is_a_bag_of_positioned_keys():
    for given in inputs_of(ROTARY_ATTENTION):
        output, weights = ROTARY_ATTENTION.reference(**given)
        later = {name: given[name] + 100 for name in ("query_positions", "key_positions")}
        moved, moved_weights = ROTARY_ATTENTION.accepted[0](**{**given, **later})
        np.testing.assert_allclose(moved, output, atol=1e-9)
        np.testing.assert_allclose(moved_weights, weights, atol=1e-9)
        order = np.random.default_rng(1).permutation(len(given["key_positions"]))
        shuffled = {name: given[name][..., order, :] for name in ("keys", "values")}
        shuffled["key_positions"] = given["key_positions"][order]
        again, _ = ROTARY_ATTENTION.reference(**{**given, **shuffled})
        np.testing.assert_allclose(again, output, atol=1e-9)


def test_cached_equals_uncached():
    rng = np.random.default_rng(6)
    queries, keys = rng.normal(size=(2, 3, 7, 4))
    values = rng.normal(size=(3, 7, 5))
    step = CACHED_ROTARY_STEP.reference
    whole, *_ = step(queries, keys, values, keys[:, :0], values[:, :0], 11, 100.0)
    cached = (keys[:, :0], values[:, :0])
    parts = []
    for first, last in [(0, 3), (3, 4), (4, 7)]:
        new = (x[:, first:last] for x in (queries, keys, values))
        output, *cached = step(*new, *cached, 11 + first, 100.0)
        parts.append(output)
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-12)
    turned = ROTATE_PAIRS.reference(keys, 11 + np.arange(7), 100.0)
    np.testing.assert_allclose(cached[0], turned, atol=1e-12)


def test_public_cases_stay_small():
    for exercise in EXERCISES:
        for case in exercise.make_cases(0):
            for value in case.inputs.values():
                assert not isinstance(value, np.ndarray) or value.size <= 400
