"""Chapter 01: a mean without padding."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def _padded_values(rng, lengths, longest, features):
    """Draw values whose padding is large, so that a mean that counts it is far off."""
    values = rng.normal(size=(len(lengths), longest, features))
    padding = np.arange(longest) >= lengths[:, None]
    values[padding] = 1000 * (1 + rng.random(size=(int(padding.sum()), features)))
    return values


def masked_mean_cases(rng):
    """Unequal lengths with and without full rows, one row, then rows of length 0."""
    s = draw_sizes(rng, "batch", "longest", "features", among=(3, 5, 6, 7))

    def case(group, lengths, about):
        values = _padded_values(rng, lengths, s.longest, s.features)
        return Case(group, {"values": values, "lengths": lengths}, about)

    lengths = draw_lengths(rng, s.batch, s.longest)
    yield case("mean", lengths, "unequal lengths, large numbers in the padding")
    yield case("mean", np.maximum(1, lengths - 1), "every row has padding")
    yield case("mean", rng.integers(2, s.longest, size=1), "a batch of one row")
    empty = draw_lengths(rng, s.batch, s.longest)
    empty[rng.permutation(np.flatnonzero(empty < s.longest))[0]] = 0
    yield case("empty", empty, "a row of length 0")


def masked_mean_reference(values, lengths):
    """Row by row: cut, then average."""
    result = np.zeros((values.shape[0], values.shape[2]))
    for row, length in enumerate(lengths.tolist()):
        for feature in range(values.shape[2]):
            numbers = values[row, :length, feature].tolist()
            result[row, feature] = sum(numbers) / length if length else 0.0
    return result


def _real(values, lengths):
    """Mask of real positions with an axis for the features."""
    return (np.arange(values.shape[1]) < lengths[:, None])[..., None]


def _mean_of(values, mask, divisor):
    """Sum what the mask keeps and divide."""
    return np.where(mask, values, 0).sum(axis=1) / divisor


def padding_averaged_too(values, lengths):
    """The plain mean."""
    return values.mean(axis=1)


def divided_by_padded_length(values, lengths):
    """Hides the padding and still divides by the padded length."""
    return _mean_of(values, _real(values, lengths), values.shape[1])


def mean_one_position_too_many(values, lengths):
    """≤ for <: one padding position is averaged too."""
    mask = np.arange(values.shape[1]) <= lengths[:, None]
    return _mean_of(values, mask[..., None], mask.sum(axis=1)[:, None])


def sum_one_position_too_many(values, lengths):
    """≤ for < in the sum, divided by the right length."""
    mask = np.arange(values.shape[1]) <= lengths[:, None]
    return _mean_of(values, mask[..., None], np.maximum(lengths, 1)[:, None])


def last_position_left_out(values, lengths):
    """The last real position is missing from the sum."""
    mask = np.arange(values.shape[1]) < lengths[:, None] - 1
    return _mean_of(values, mask[..., None], np.maximum(lengths, 1)[:, None])


def sum_for_mean(values, lengths):
    """Forgets to divide."""
    return _mean_of(values, _real(values, lengths), 1)


def last_positions_averaged(values, lengths):
    """Takes positions from the end."""
    longest = values.shape[1]
    mask = np.arange(longest) >= longest - lengths[:, None]
    return _mean_of(values, mask[..., None], np.maximum(lengths, 1)[:, None])


def padding_averaged_only(values, lengths):
    """Uses the mask the wrong way round."""
    mask = ~_real(values, lengths)
    return _mean_of(values, mask, np.maximum(mask.sum(axis=1), 1))


def empty_row_is_nan(values, lengths):
    """0/0 for a row of length 0."""
    return _mean_of(values, _real(values, lengths), lengths[:, None])


def empty_row_takes_first_padding(values, lengths):
    """Raises a length of 0 to 1 before the mask is made."""
    lengths = np.maximum(lengths, 1)
    return _mean_of(values, _real(values, lengths), lengths[:, None])


def one_added_to_each_length(values, lengths):
    """Avoids 0/0 by dividing by length + 1."""
    return _mean_of(values, _real(values, lengths), (lengths + 1)[:, None])


def batch_averaged_together(values, lengths):
    """One mean over all tokens of the batch."""
    return np.where(_real(values, lengths), values, 0).sum(axis=(0, 1)) / lengths.sum()


def features_averaged(values, lengths):
    """Averages over features and leaves positions."""
    return np.where(_real(values, lengths), values, 0).mean(axis=-1)


def one_length_for_all(values, lengths):
    """Cuts every row at the first row's length."""
    return values[:, : max(int(lengths[0]), 1)].mean(axis=1)


def divisor_without_new_axis(values, lengths):
    """(batch, features) / (batch,) lines up with the features."""
    return _mean_of(values, _real(values, lengths), np.maximum(lengths, 1))


def mean_by_einsum(values, lengths):
    """Right: the mask as weights of a weighted sum."""
    weights = (np.arange(values.shape[1]) < lengths[:, None]) / np.maximum(lengths, 1)[:, None]
    return np.einsum("bl,blf->bf", weights, values)


def mean_by_loop(values, lengths):
    """Right: one row at a time."""
    rows = [v[:n].mean(axis=0) if n else v[0] * 0 for v, n in zip(values, lengths, strict=True)]
    return np.array(rows)


def mean_by_running_sums(values, lengths):
    """Right: looks the sums up in a running sum that starts with zeros."""
    start = np.zeros_like(values[:, :1])
    sums = np.concatenate([start, values.cumsum(axis=1)], axis=1)
    return sums[np.arange(len(values)), lengths] / np.maximum(lengths, 1)[:, None]


def mean_by_multiplication(values, lengths):
    """Right: multiplies by 0 and 1, divides where there is something to divide by."""
    total = (values * _real(values, lengths)).sum(axis=1)
    return np.divide(total, lengths[:, None], out=np.zeros_like(total), where=lengths[:, None] > 0)


def mean_by_masked_array(values, lengths):
    """Right: numpy.ma counts for us."""
    hidden = np.broadcast_to(~_real(values, lengths), values.shape)
    return np.ma.masked_array(values, mask=hidden).mean(axis=1).filled(0.0)


MASKED_MEAN = Exercise(
    id="masked_mean",
    title="The mean of the real tokens",
    asks="Average each row of the batch over its first lengths[b] positions; an empty row gives 0.",
    parameters=("values", "lengths"),
    groups={
        "mean": Group(2, "means over real tokens only"),
        "empty": Group(1, "rows of length 0 give zeros"),
    },
    cases=masked_mean_cases,
    reference=masked_mean_reference,
    misconceptions=(
        Misconception(
            padding_averaged_too,
            "The mean runs over all positions, padding included.",
            "Which positions are real? You have just written a mask for this.",
        ),
        Misconception(
            divided_by_padded_length,
            "The padding is hidden, but the sum is still divided by the padded length.",
            "A mean of 2 tokens is a sum divided by 2, however long the row is.",
        ),
        Misconception(
            mean_one_position_too_many,
            "One position of padding is averaged too: positions count from 0.",
            "Which positions does a row of length 2 have?",
        ),
        Misconception(
            sum_one_position_too_many,
            "One position of padding is in the sum, though it is not in the divisor.",
            "Which positions does a row of length 2 have?",
        ),
        Misconception(
            last_position_left_out,
            "The last real position is not in the sum.",
            "Which positions does a row of length 2 have?",
        ),
        Misconception(
            sum_for_mean,
            "This is the sum of the real tokens; it is not divided.",
            "Divide by the number of real tokens, row by row.",
        ),
        Misconception(
            last_positions_averaged,
            "The last positions are averaged; the real tokens are the first ones.",
            "Print your mask for a row of length 2.",
        ),
        Misconception(
            padding_averaged_only,
            "The mask is used the wrong way round: the padding is averaged.",
            "True means a real token: look at the order of arguments in `np.where`.",
        ),
        Misconception(
            empty_row_is_nan,
            "A row of length 0 divides 0 by 0, which is NaN; zeros are asked for.",
            "The sum of such a row is 0 already. What could it be divided by instead?",
        ),
        Misconception(
            empty_row_takes_first_padding,
            "A row of length 0 is treated as one of length 1, so its first padding is taken.",
            "Change only the divisor, not the lengths that the mask is made from.",
        ),
        Misconception(
            one_added_to_each_length,
            "Every sum is divided by one more than the length; only length 0 needs care.",
            "The divisor of a row of length 2 must stay 2.",
        ),
        Misconception(
            batch_averaged_together,
            "One mean is taken over the whole batch; each row needs its own.",
            "Only the axis of positions may disappear.",
        ),
        Misconception(
            features_averaged,
            "The features are averaged and the positions are left.",
            "The axes are (batch, length, features): which one must disappear?",
        ),
        Misconception(
            one_length_for_all,
            "Every row is cut at the length of the first.",
            "The lengths differ from row to row: compare positions with a column of lengths.",
        ),
        Misconception(
            divisor_without_new_axis,
            "The divisor has shape (batch,), which lines up with the features and not the batch.",
            "Write (batch, features) above (batch,), aligned on the right.",
        ),
    ),
    accepted=(
        mean_by_einsum,
        mean_by_loop,
        mean_by_running_sums,
        mean_by_multiplication,
        mean_by_masked_array,
    ),
)
