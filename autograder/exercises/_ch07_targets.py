"""Exercises of chapter 07 on what the decoder reads while it is trained: inputs and mask."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import IGNORED, draw_targets

# --- teacher_forcing_input -----------------------------------------------------------------------


def teacher_forcing_input_cases(rng):
    """Padded batches; the ids of start, end and padding are drawn; a single row, a single place."""
    s = draw_sizes(rng, "batch", "length", among=(3, 5, 6, 7))
    for group, batch, length, about in (
        ("values", s.batch, s.length, "a batch of unequal lengths"),
        ("values", s.length, s.batch, "another batch, other ids"),
        ("edges", 1, s.length, "one sentence"),
        ("edges", s.batch, 1, "targets that hold the end token only"),
    ):
        start, end, padding, *words = (int(i) for i in rng.permutation(20))
        targets = draw_targets(rng, batch, length, words, end, min(2, length))
        inputs = {"targets": targets, "start": start, "padding": padding}
        yield Case(group, inputs, about)


def teacher_forcing_input_reference(targets, start, padding):
    """Word by word, as Python lists."""
    rows = []
    for row in targets.tolist():
        words = [padding if word == IGNORED else word for word in row]
        rows.append([start, *words[:-1]])
    return torch.tensor(rows)


def _filled(targets, padding):
    return targets.masked_fill(targets == IGNORED, padding)


def _shifted(targets, start):
    return torch.nn.functional.pad(targets[:, :-1], (1, 0), value=start)


def not_shifted(targets, start, padding):
    """Gives the targets themselves."""
    return _filled(targets, padding)


def start_over_the_first_word(targets, start, padding):
    """Writes the start token over the first word, and shifts nothing."""
    result = _filled(targets, padding)
    result[:, 0] = start
    return result


def shifted_left(targets, start, padding):
    """Moves words to the left."""
    return torch.nn.functional.pad(_filled(targets, padding)[:, 1:], (0, 1), value=padding)


def nothing_dropped(targets, start, padding):
    """Puts the start token in front and drops nothing."""
    return torch.nn.functional.pad(_filled(targets, padding), (1, 0), value=start)


def rolled(targets, start, padding):
    """Rolls: the last place comes to the front."""
    return _filled(targets, padding).roll(1, dims=1)


def minus_hundred_left_in(targets, start, padding):
    """Forgets to replace −100."""
    return _shifted(targets, start)


def padding_in_front(targets, start, padding):
    """Begins with padding instead of the start token."""
    return _shifted(_filled(targets, padding), padding)


def shifted_by_two(targets, start, padding):
    """Shifts a second time."""
    return _shifted(_shifted(_filled(targets, padding), start), start)


def start_where_nothing_is(targets, start, padding):
    """Fills places without a word with the start token."""
    return _shifted(_filled(targets, start), start)


def end_dropped(targets, start, padding):
    """Turns the last word of every row, the end token, into padding as well."""
    result = _shifted(targets, start)
    ends = (targets == IGNORED) | (targets.roll(-1, dims=1) == IGNORED)
    ends[:, -1] = True
    return result.masked_fill(_shifted(ends.long(), 0).bool(), padding)


def written_in_place(targets, start, padding):
    """Writes into the caller's targets."""
    targets[targets == IGNORED] = padding
    return _shifted(targets, start)


def by_concatenation(targets, start, padding):
    """Right: a column, then all but the last column."""
    first = torch.full_like(targets[:, :1], start)
    shifted = torch.cat([first, targets[:, :-1]], dim=1)
    return torch.where(shifted == IGNORED, padding, shifted)


def into_an_empty_tensor(targets, start, padding):
    """Right: two assignments."""
    result = torch.empty_like(targets)
    result[:, 0] = start
    result[:, 1:] = targets[:, :-1]
    result[result == IGNORED] = padding
    return result


def by_roll(targets, start, padding):
    """Right: rolls a copy and overwrites the first column."""
    result = targets.roll(1, dims=1)
    result[:, 0] = start
    return result.masked_fill(result < 0, padding)


TEACHER_FORCING_INPUT = Exercise(
    id="teacher_forcing_input",
    title="What the decoder reads in training",
    asks="Shift targets right: a start token first, padding where there is no word.",
    parameters=("targets", "start", "padding"),
    driver="tensor_function",
    groups={"values": Group(1, "padded batches"), "edges": Group(1, "one row, one place")},
    cases=teacher_forcing_input_cases,
    reference=teacher_forcing_input_reference,
    misconceptions=(
        Misconception(
            not_shifted,
            "Nothing is shifted: at every place the decoder reads the word that it should predict.",
            "In the contract, which target stands in column 1 of the result?",
        ),
        Misconception(
            start_over_the_first_word,
            "The start token takes the place of the first word, but the others were not moved.",
            "Where has the first word of the sentence gone?",
        ),
        Misconception(
            shifted_left,
            "The words moved to the left: place i holds the word after the one to predict.",
            "May the decoder know word i + 1 when it predicts word i?",
        ),
        Misconception(
            nothing_dropped,
            "The result is one longer than the targets: the last column was not dropped.",
            "Which target does nobody need as input?",
        ),
        Misconception(
            rolled,
            "The last column came round to the front, where the start token belongs.",
            "What does `roll` do with what falls off the end?",
        ),
        Misconception(
            minus_hundred_left_in,
            "Some places still hold −100, and an embedding has no row −100.",
            "Which id stands for 'no word' in an input?",
        ),
        Misconception(
            padding_in_front,
            "The first column holds the padding id instead of the start token.",
            "Look at the first column of the example.",
        ),
        Misconception(
            shifted_by_two,
            "The words moved by two places.",
            "How many places lie between a word as input and the same word as target?",
        ),
        Misconception(
            start_where_nothing_is,
            "Places without a word hold the start token; they should hold padding.",
            "Which of the two ids fills the end of a row?",
        ),
        Misconception(
            end_dropped,
            "The end token was turned into padding; only places without a word should be.",
            "Which number marks the places without a word, and does the end token have it?",
        ),
        Misconception(
            written_in_place,
            "The caller's `targets` were changed: the loss still needs their −100.",
            "`masked_fill` makes a new tensor; assignments into `targets` and names that end in "
            "`_` don't.",
        ),
    ),
    accepted=(by_concatenation, into_an_empty_tensor, by_roll),
)

# --- target_mask ---------------------------------------------------------------------------------


def target_mask_cases(rng):
    """Inputs of unequal lengths, with any padding id; without padding; one word."""
    s = draw_sizes(rng, "batch", "length", among=(3, 4, 5, 6))
    for group, batch, length, about in (
        ("values", s.batch, s.length, "a batch of unequal lengths"),
        ("edges", 1, s.length, "one sentence without padding"),
        ("edges", s.batch, 1, "the start token only"),
    ):
        padding, end, *words = (int(i) for i in rng.permutation(np.arange(1, 20)))
        inputs = draw_targets(rng, batch, length, words, end, min(2, length))
        inputs[inputs == IGNORED] = padding
        inputs[:, 0] = 0  # the start token: 0 is a word here
        yield Case(group, {"inputs": inputs, "padding": padding}, about)


def target_mask_reference(inputs, padding):
    """Entry by entry."""
    rows = inputs.tolist()
    places = range(len(rows[0]))
    entries = [[[[k <= q and row[k] != padding for k in places] for q in places]] for row in rows]
    return torch.tensor(entries)


def _parts(inputs, padding):
    length = inputs.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    return causal, (inputs != padding)[:, None, None, :]


def causal_only(inputs, padding):
    """Forgets the padding."""
    causal, words = _parts(inputs, padding)
    return causal.expand(len(words), 1, *causal.shape)


def padding_only(inputs, padding):
    """Forgets the future."""
    causal, words = _parts(inputs, padding)
    return words & torch.ones_like(causal)


def one_or_the_other(inputs, padding):
    """Sees what either of the two allows."""
    causal, words = _parts(inputs, padding)
    return causal | words


def true_hides(inputs, padding):
    """True for hidden."""
    causal, words = _parts(inputs, padding)
    return ~(causal & words)


def future_only(inputs, padding):
    """The upper triangle."""
    causal, words = _parts(inputs, padding)
    return causal.mT & words


def itself_hidden(inputs, padding):
    """A strict triangle."""
    causal, words = _parts(inputs, padding)
    return causal.tril(-1) & words


def one_word_ahead(inputs, padding):
    """A triangle that shows the next word, too."""
    causal, words = _parts(inputs, padding)
    return torch.ones_like(causal).tril(1) & words


def padding_hides_queries(inputs, padding):
    """Padding along the axis of the queries."""
    causal, words = _parts(inputs, padding)
    return causal & words.mT


def no_axis_for_heads(inputs, padding):
    """Without the axis for heads."""
    causal, words = _parts(inputs, padding)
    return (causal & words)[:, 0]


def zero_is_padding(inputs, padding):
    """Takes the id 0 for padding, whatever the argument says."""
    causal, words = _parts(inputs, 0)
    return causal & words


def by_positions(inputs, padding):
    """Right: compares positions."""
    places = torch.arange(inputs.shape[1])
    return (places[None, :] <= places[:, None]) & (inputs != padding)[:, None, None]


def by_loop(inputs, padding):
    """Right: row by row."""
    batch, length = inputs.shape
    mask = torch.zeros(batch, 1, length, length, dtype=torch.bool)
    for place in range(length):
        mask[:, 0, place, : place + 1] = inputs[:, : place + 1] != padding
    return mask


def by_fill(inputs, padding):
    """Right: starts from all True and closes what may not be seen."""
    batch, length = inputs.shape
    mask = torch.ones(batch, 1, length, length, dtype=torch.bool)
    mask &= ~torch.ones(length, length, dtype=torch.bool).triu(1)
    return mask.masked_fill((inputs == padding)[:, None, None, :], False)


TARGET_MASK = Exercise(
    id="target_mask",
    title="Neither the future nor padding",
    asks="Make the mask of the decoder's self-attention: causal, and without padding.",
    parameters=("inputs", "padding"),
    driver="tensor_function",
    groups={"values": Group(1, "padded batches"), "edges": Group(1, "no padding, one place")},
    cases=target_mask_cases,
    reference=target_mask_reference,
    misconceptions=(
        Misconception(
            causal_only,
            "Padding can be seen: the mask is the same for every sentence of the batch.",
            "Where does `padding` enter your mask?",
        ),
        Misconception(
            padding_only,
            "The future can be seen: every place sees all words of its sentence.",
            "Which keys may place i see? Look at the upper right corner of your mask.",
        ),
        Misconception(
            one_or_the_other,
            "A key is seen if either rule allows it; both must.",
            "Should a future word be seen if it is no padding?",
        ),
        Misconception(
            true_hides,
            "The mask is the wrong way round: here True means that a key may be seen.",
            "What should entry (0, 0) say?",
        ),
        Misconception(
            future_only,
            "The triangle lies on the wrong side: places see the future and not the past.",
            "Rows are queries, columns are keys: on which side is the past?",
        ),
        Misconception(
            itself_hidden,
            "A place does not see itself, so the first one sees nothing at all.",
            "Its own input is the word *before* the one to predict: may it be seen?",
        ),
        Misconception(
            one_word_ahead,
            "The next word can be seen, and it is just the word to predict.",
            "Does the triangle include the diagonal, or one more?",
        ),
        Misconception(
            padding_hides_queries,
            "Padding closes rows (queries) instead of columns (keys).",
            "Who must not be looked at? Which axis is that?",
        ),
        Misconception(
            no_axis_for_heads,
            "The axis of length 1 for the heads is missing.",
            "Write the shape of the result beside the one in the contract.",
        ),
        Misconception(
            zero_is_padding,
            "The id 0 is taken for padding; the argument says which id is padding.",
            "Look for a constant in your code.",
        ),
    ),
    accepted=(by_positions, by_loop, by_fill),
)
