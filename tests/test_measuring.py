"""What uneven times allow one to say."""

import numpy as np
import pytest

from attention_course.measuring import BUSY, quiet_or_busy, settled, unevenness

QUIET = 1.1


def test_unevenness_is_the_worst_column_of_all_tables():
    even = np.array([[1.0, 10.0], [1.0, 11.0]])
    uneven = np.array([[3.0], [1.0], [2.0]])
    assert unevenness(even) == pytest.approx(1.1)
    assert unevenness(even, uneven) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("holds", "uneven", "says"),
    [
        ([True, True], QUIET, "supported by all 2 runs"),
        ([True, True], 2 * BUSY, "supported by all 2 runs"),
        ([True, False], QUIET, "left open: 1 of 2 runs support it"),
        ([False, False], QUIET, "NOT supported by any of the 2 runs"),
        ([False, False], 2 * BUSY, "left open: 0 of 2 runs support it, and the machine was busy"),
    ],
)
def test_a_claim_is_settled_only_if_all_runs_agree(holds, uneven, says):
    assert settled(np.array(holds), uneven) == says


def test_a_busy_machine_is_named():
    assert "busy. Run the cell again" in quiet_or_busy(2.5)
    assert "no sign" in quiet_or_busy(QUIET) and "1.10" in quiet_or_busy(QUIET)
