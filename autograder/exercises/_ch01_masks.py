"""Lengths and masks: which tokens are real, their mean, and who may see whom."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- padding_mask --------------------------------------------------------------------------------


def padding_mask_cases(rng):
    """Unequal lengths, a length of 0, room to spare, and a batch of one."""
    s = draw_sizes(rng, "batch", "longest", among=(3, 5, 6, 7, 8))
    lengths = draw_lengths(rng, s.batch, s.longest)
    yield Case("mask", {"lengths": lengths, "longest": s.longest}, "unequal lengths")
    roomy = draw_lengths(rng, s.batch, s.longest)
    more = s.longest + 2 + (s.longest + 2 == s.batch)
    yield Case("mask", {"lengths": roomy, "longest": more}, "every row has padding")
    empty = draw_lengths(rng, s.batch, s.longest)
    empty[rng.permutation(np.flatnonzero(empty < s.longest))[0]] = 0
    yield Case("mask", {"lengths": empty, "longest": s.longest}, "a row of length 0")
    one = rng.integers(2, s.longest, size=1)
    yield Case("mask", {"lengths": one, "longest": s.longest}, "a batch of one row")


def padding_mask_reference(lengths, longest):
    """Row by row, entry by entry."""
    return np.array([[p in range(length) for p in range(longest)] for length in lengths.tolist()])


def one_token_too_many(lengths, longest):
    """≤ for <: positions count from 0."""
    return np.arange(longest) <= lengths[:, None]


def one_token_too_few(lengths, longest):
    """Counts positions from 1 and still compares with <."""
    return np.arange(1, longest + 1) < lengths[:, None]


def padding_is_true(lengths, longest):
    """The opposite: True marks padding."""
    return np.arange(longest) >= lengths[:, None]


def padding_mask_transposed(lengths, longest):
    """One row per position."""
    return np.arange(longest)[:, None] < lengths[None, :]


def cut_at_the_largest_length(lengths, longest):
    """Sizes the mask by the lengths and ignores `longest`."""
    return np.arange(lengths.max()) < lengths[:, None]


def padding_in_front(lengths, longest):
    """Real tokens at the end of each row."""
    return np.arange(longest) >= longest - lengths[:, None]


def mask_of_integers(lengths, longest):
    """0 and 1 instead of False and True."""
    return (np.arange(longest) < lengths[:, None]).astype(int)


def mask_of_floats(lengths, longest):
    """0.0 and 1.0 instead of False and True."""
    return (np.arange(longest) < lengths[:, None]).astype(float)


def only_the_last_token(lengths, longest):
    """True at one position per row only."""
    return np.arange(longest) == lengths[:, None] - 1


def lengths_without_new_axis(lengths, longest):
    """Lengths and positions both lie along the last axis."""
    return np.arange(longest) < lengths


def padding_mask_by_outer(lengths, longest):
    """Right: the outer form of a comparison."""
    return np.less.outer(np.arange(longest), lengths).T


def padding_mask_by_assignment(lengths, longest):
    """Right: a loop that fills rows."""
    mask = np.zeros((len(lengths), longest), dtype=bool)
    for row, length in enumerate(lengths):
        mask[row, :length] = True
    return mask


def padding_mask_by_lookup(lengths, longest):
    """Right: rows of a triangle, one for every length."""
    return np.tri(longest + 1, longest, -1, dtype=bool)[lengths]


def padding_mask_by_counting_from_one(lengths, longest):
    """Right: counts from 1 and compares with ≤."""
    return np.cumsum(np.ones((len(lengths), longest), dtype=int), axis=1) <= lengths[:, None]


_POSITIONS = "Write the positions 0, 1, 2, … under a row of length 2: which of them are real?"

PADDING_MASK = Exercise(
    id="padding_mask",
    title="Which tokens are real",
    asks="Make a mask, True where there is a real token and False where there is padding.",
    parameters=("lengths", "longest"),
    groups={"mask": Group(1, "real tokens for unequal, full and empty rows")},
    cases=padding_mask_cases,
    reference=padding_mask_reference,
    misconceptions=(
        Misconception(
            one_token_too_many,
            "Every row that has padding has one True too many: positions count from 0.",
            _POSITIONS,
        ),
        Misconception(
            one_token_too_few,
            "The last real token of every row is marked as padding.",
            _POSITIONS,
        ),
        Misconception(
            padding_is_true,
            "The mask is the opposite: True marks padding. In this course True is what counts.",
            "Turn the comparison round.",
        ),
        Misconception(
            padding_mask_transposed,
            "The axes are exchanged: there is one row for each position.",
            "Which of the two vectors must become a column?",
        ),
        Misconception(
            cut_at_the_largest_length,
            "The mask is as wide as the largest length, but `longest` says how wide it must be.",
            "Make the positions from `longest`.",
        ),
        Misconception(
            padding_in_front,
            "The real tokens are marked at the end of each row; here padding comes last.",
            "The first `lengths[b]` positions are real.",
        ),
        Misconception(
            mask_of_integers,
            "The pattern is right, but it is made of 0 and 1; a mask is made of False and True.",
            "A comparison such as `<` gives booleans by itself.",
        ),
        Misconception(
            mask_of_floats,
            "The pattern is right, but it is made of 0.0 and 1.0; a mask is made of False and "
            "True.",
            "A comparison such as `<` gives booleans by itself.",
        ),
        Misconception(
            only_the_last_token,
            "Only one position of each row is True; all real tokens should be.",
            "Compare by size and not for equality.",
        ),
        Misconception(
            lengths_without_new_axis,
            "Lengths and positions lie along the same axis, so they don't fit or pair up.",
            "Give `lengths` a second axis, so that it stretches along the positions.",
        ),
    ),
    accepted=(
        padding_mask_by_outer,
        padding_mask_by_assignment,
        padding_mask_by_lookup,
        padding_mask_by_counting_from_one,
    ),
)

# --- masked_mean ---------------------------------------------------------------------------------


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

# --- causal_mask ---------------------------------------------------------------------------------


def causal_mask_cases(rng):
    """Two squares, then more keys, more queries, one query and one key."""
    s = draw_sizes(rng, "small", "large", among=(3, 5, 6, 7, 8))
    few, many = sorted((s.small, s.large))
    for group, queries, keys, about in (
        ("square", many, many, "as many queries as keys"),
        ("square", few, few, "as many queries as keys, another size"),
        ("cache", few, many, "more keys than queries: earlier keys come from a cache"),
        ("cache", 1, many, "one query: the newest token sees every key"),
        ("cache", many, few, "more queries than keys: the first rows see nothing"),
    ):
        yield Case(group, {"queries": queries, "keys": keys}, about)


def causal_mask_reference(queries, keys):
    """Row by row from the last, which sees everything."""
    rows = [[True] * (keys - back) + [False] * min(back, keys) for back in range(queries)]
    return np.array(rows[::-1], dtype=bool)


def _places(queries, keys):
    """Rows and columns as index arrays that broadcast."""
    return np.arange(queries)[:, None], np.arange(keys)[None, :]


def upper_triangle(queries, keys):
    """Sees the future and not the past."""
    i, j = _places(queries, keys)
    return j >= i + keys - queries


def own_token_hidden(queries, keys):
    """The diagonal is left out."""
    i, j = _places(queries, keys)
    return j < i + keys - queries


def next_token_seen(queries, keys):
    """One diagonal too far."""
    i, j = _places(queries, keys)
    return j <= i + keys - queries + 1


def future_is_true(queries, keys):
    """The opposite: True marks what must not be seen."""
    i, j = _places(queries, keys)
    return j > i + keys - queries


def aligned_at_the_first_key(queries, keys):
    """No offset: the first query sees one key."""
    i, j = _places(queries, keys)
    return j <= i


def offset_turned_round(queries, keys):
    """queries − keys for keys − queries."""
    i, j = _places(queries, keys)
    return j <= i + queries - keys


def square_of_queries(queries, keys):
    """Sized by the queries twice."""
    return np.tri(queries, queries, dtype=bool)


def square_of_keys(queries, keys):
    """Sized by the keys twice."""
    return np.tri(keys, keys, dtype=bool)


def causal_mask_transposed(queries, keys):
    """Right pattern with one row per key."""
    i, j = _places(queries, keys)
    return (j <= i + keys - queries).T


def sizes_exchanged(queries, keys):
    """A mask for `keys` queries and `queries` keys."""
    i, j = _places(keys, queries)
    return j <= i + queries - keys


def everything_seen(queries, keys):
    """No mask."""
    return np.ones((queries, keys), dtype=bool)


def diagonal_only(queries, keys):
    """Each query sees its own token only."""
    i, j = _places(queries, keys)
    return j == i + keys - queries


def causal_mask_of_floats(queries, keys):
    """0.0 and 1.0 instead of False and True."""
    return np.tri(queries, keys, keys - queries)


def causal_mask_of_integers(queries, keys):
    """0 and 1 instead of False and True."""
    return np.tri(queries, keys, keys - queries, dtype=int)


def causal_mask_for_adding(queries, keys):
    """0 and −inf, to be added to scores."""
    return np.where(np.tri(queries, keys, keys - queries, dtype=bool), 0.0, -np.inf)


def causal_by_tril(queries, keys):
    """Right: the lower triangle of a mask of ones."""
    return np.tril(np.ones((queries, keys), dtype=bool), k=keys - queries)


def causal_by_last_rows(queries, keys):
    """Right: the last rows of a square large enough."""
    size = max(queries, keys)
    square = np.tri(size, dtype=bool)
    return square[size - queries :, size - keys :]


def causal_by_negated_triu(queries, keys):
    """Right: everything but the future."""
    return ~np.triu(np.ones((queries, keys), dtype=bool), k=keys - queries + 1)


def causal_by_loops(queries, keys):
    """Right: entry by entry, positions counted from the end."""
    mask = np.zeros((queries, keys), dtype=bool)
    for i in range(queries):
        for j in range(keys):
            mask[i, j] = keys - j >= queries - i
    return mask


CAUSAL_MASK = Exercise(
    id="causal_mask",
    title="No look at the future",
    asks="Make a mask, True where query i may see key j: nothing later than itself; the last "
    "query sees all keys.",
    parameters=("queries", "keys"),
    groups={
        "square": Group(1, "as many queries as keys"),
        "cache": Group(1, "different numbers of queries and keys"),
    },
    cases=causal_mask_cases,
    reference=causal_mask_reference,
    misconceptions=(
        Misconception(
            upper_triangle,
            "This is the upper triangle: every query sees itself and the future.",
            "Row i is query i. Which keys came before it: the ones to its left or to its right?",
        ),
        Misconception(
            own_token_hidden,
            "The triangle is strict: a query does not see its own token.",
            "The first query of a square mask may see exactly one key.",
        ),
        Misconception(
            next_token_seen,
            "The triangle is one diagonal too wide: every query sees the token after it.",
            "The first query of a square mask may see exactly one key.",
        ),
        Misconception(
            future_is_true,
            "The mask is the opposite: True marks what must not be seen.",
            "In this course True means that the query may look.",
        ),
        Misconception(
            aligned_at_the_first_key,
            "The triangle starts in the upper left corner, whatever the sizes; the last query "
            "has to see all keys.",
            "By how many places must each row be shifted if there are more keys than queries?",
        ),
        Misconception(
            offset_turned_round,
            "The triangle is shifted the wrong way: with more keys, each query sees more, not "
            "less.",
            "Check the last row: it must be True everywhere.",
        ),
        Misconception(
            square_of_queries,
            "The mask is square, sized by the queries twice.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            square_of_keys,
            "The mask is square, sized by the keys twice.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            causal_mask_transposed,
            "The axes are exchanged: there is one row for each key.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            sizes_exchanged,
            "The two sizes are exchanged.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            everything_seen,
            "Every query sees every key, the future included.",
            "Compare the place of the key with the place of the query.",
        ),
        Misconception(
            diagonal_only,
            "Each query sees only its own token; earlier ones are allowed too.",
            "Compare by size and not for equality.",
        ),
        Misconception(
            causal_mask_of_floats,
            "The pattern is right, but it is made of 0.0 and 1.0; a mask is made of False and "
            "True.",
            "Ask for `dtype=bool`, or use a comparison.",
        ),
        Misconception(
            causal_mask_of_integers,
            "The pattern is right, but it is made of 0 and 1; a mask is made of False and True.",
            "Ask for `dtype=bool`, or use a comparison.",
        ),
        Misconception(
            causal_mask_for_adding,
            "This is a mask to be added to scores, of 0 and −inf; here True and False are asked "
            "for.",
            "Return the comparison itself.",
        ),
    ),
    accepted=(causal_by_tril, causal_by_last_rows, causal_by_negated_triu, causal_by_loops),
)
