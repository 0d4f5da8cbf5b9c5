"""Chapter 06: step through attention block by block and watch the running numbers."""

from __future__ import annotations

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

MOST_QUERIES = 6
MOST_KEYS = 12
MOST_COLUMNS = 4

_SCORES = [
    [0.4, 1.2, -0.3, 0.8, 2.6, 0.1, -1.0, 0.5, 1.9, 3.4],
    [2.9, 0.2, 0.7, -0.6, 0.3, 1.1, 0.0, -0.4, 0.6, 0.2],
    [-2.1, -3.0, -1.4, -2.6, -0.8, -1.9, -2.2, -0.3, -1.1, -2.4],
    [0.1, 0.6, 1.0, 1.3, 1.7, 2.0, 2.4, 2.7, 3.1, 3.5],
]
_VALUES = [
    [1.0, 0.0],
    [0.5, 1.0],
    [-1.0, 2.0],
    [0.0, -1.0],
    [2.0, 0.5],
    [1.5, -2.0],
    [-0.5, 0.0],
    [1.0, 1.0],
    [-2.0, 1.5],
    [0.5, 3.0],
]


class BlockStepper(Explorer):
    """The explorer behind `block_stepper`; `step` counts the blocks that are done."""

    files = "block_stepper"
    title = "Block stepper: attention in blocks with a running maximum, sum and output"

    scores = t.List(t.List(t.Float())).tag(sync=True)
    values = t.List(t.List(t.Float())).tag(sync=True)
    block = t.Int().tag(sync=True)
    step = t.Int().tag(sync=True)

    def running(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Maximum, sum (queries,) and output (queries, d_v) of the keys that have been seen."""
        seen = slice(0, self.block * self.step)
        scores, values = np.array(self.scores)[:, seen], np.array(self.values)[seen]
        largest = scores.max(axis=1, initial=-np.inf)
        powers = np.exp(scores - np.where(np.isfinite(largest), largest, 0.0)[:, None])
        return largest, powers.sum(axis=1), powers @ values

    def text(self) -> str:
        """How far it is, and one line for each query."""
        queries, keys = len(self.scores), len(self.values)
        blocks = -(-keys // self.block)
        lines = [
            f"{self.step} of {blocks} blocks of {self.block} keys done; {queries} queries, "
            f"{keys} keys. For each query: largest score, sum of powers, output / sum:"
        ]
        for number, (largest, total, output) in enumerate(zip(*self.running(), strict=True), 1):
            shown = "nothing yet"
            if total:
                parts = ", ".join(f"{entry:.2f}" for entry in output / total)
                shown = f"{largest:.2f}, {total:.2f}, ({parts})"
            lines.append(f"  {number}: {shown}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Room for a row for each query, the controls and the words."""
        return 270 + 32 * len(self.scores)


def block_stepper(
    scores: object = None, values: object = None, *, block: int = 3, step: int = 0
) -> BlockStepper:
    """Shows attention that takes its keys block by block; the reader steps on and back.

    Args:
        scores: real numbers, shape (queries, keys), scaled already; at most 6 queries and 12 keys.
            Default: an example.
        values: real numbers, shape (keys, d_v), d_v at most 4; default: an example, or the row
            (1, number of the key) for each key if `scores` is given.
        block: how many keys are taken at a time, 1 to keys.
        step: how many blocks are done at the start, 0 to the number of blocks.

    Returns:
        The widget; `block` and `step` follow the reader.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes or counts do not fit.
    """
    example = scores is None
    score_array = validate.array("scores", _SCORES if example else scores, "(queries, keys)", 2)
    queries, keys = score_array.shape
    validate.at_most("scores", queries, MOST_QUERIES, "queries")
    validate.at_most("scores", keys, MOST_KEYS, "keys")
    if values is None:
        values = _VALUES if example else [[1.0, float(key + 1)] for key in range(keys)]
    value_array = validate.array("values", values, "(keys, d_v)", 2)
    if len(value_array) != keys:
        raise ValueError(
            f"values must have one row for each of the {keys} keys; got {len(value_array)} rows. "
            f"The first axis of values has to equal the last axis of scores."
        )
    validate.at_most("values", value_array.shape[1], MOST_COLUMNS, "columns")
    _whole("block", block, 1, keys)
    _whole("step", step, 0, -(-keys // block))
    return BlockStepper(
        scores=validate.lists(score_array),
        values=validate.lists(value_array),
        block=block,
        step=step,
    )


def _whole(name: str, value: object, low: int, high: int) -> None:
    """Raises ValueError unless `value` is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(
            f"{name} must be a whole number from {low} to {high}; got {value!r}. "
            f"Choose a value inside."
        )
