import json
import math

import numpy as np
import pytest

from attention_course import codec


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -0.125,
        "text",
        (1, 2.5, None),
        [1, [2, (3,)]],
        {"a": np.arange(6).reshape(2, 3), "b": {"c": False}},
        np.array([[True, False]]),
        np.array(2.0),
        np.zeros((0, 3), dtype=np.float32),
        np.array([1.0, math.inf, -math.inf, math.nan]),
    ],
)
def test_every_kind_of_value_survives(value):
    back = codec.loads(codec.dumps(value))
    assert repr(back) == repr(value)


def test_floats_keep_every_bit():
    numbers = np.random.default_rng(0).normal(size=50)
    assert codec.loads(codec.dumps(numbers)).tobytes() == numbers.tobytes()


def test_rounding_keeps_the_asked_digits():
    assert codec.rounded({"x": np.array([1 / 3, 12345678.9])}, 3)["x"].tolist() == [0.333, 12300000]


def test_the_text_is_strict_json():
    def refuse(word):
        raise AssertionError(word)

    json.loads(codec.dumps([math.nan, math.inf]), parse_constant=refuse)


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array(["a"]), np.array([1j]), np.array([None])]
)
def test_what_is_not_data_is_refused(value):
    with pytest.raises(TypeError):
        codec.dumps(value)


def test_a_huge_array_is_refused():
    with pytest.raises(ValueError, match="too large"):
        codec.dumps(np.zeros(codec.LARGEST_ARRAY + 1, dtype=np.int8))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"other": 1}',
        '{"array": [1, 2], "shape": [3], "dtype": "float64"}',
        '{"array": [1], "shape": [1], "dtype": "object"}',
        '{"array": [1], "shape": [1], "dtype": "nonsense"}',
        '{"array": 1, "shape": [1], "dtype": "float64"}',
        '{"array": ["x"], "shape": [1], "dtype": "float64"}',
        '{"tuple": 3}',
        '{"dict": []}',
        '{"float": {}}',
        "[" * 100_000,
    ],
)
def test_a_forged_document_gives_a_value_error(text):
    with pytest.raises(ValueError):
        codec.loads(text)


def test_rounding_is_writing_with_fewer_digits_and_reading_again():
    rng = np.random.default_rng(0)
    value = {
        "wide": rng.normal(size=(3, 4)) * 10.0 ** rng.integers(-12, 12, (3, 4)),
        "narrow": rng.normal(size=5).astype(np.float32),
        "odd": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        "empty": np.zeros((0, 2)),
        "scalar": np.float64(1 / 3),
        "others": (1, [True, None, "x", 2 / 3], np.arange(3)),
    }
    expected = codec.from_json(codec.to_json(value, 6))
    got = codec.rounded(value, 6)
    assert codec.dumps(got) == codec.dumps(expected)
    assert got["narrow"].dtype == np.float32 and got["empty"].shape == (0, 2)
    assert np.signbit(got["odd"][3])
