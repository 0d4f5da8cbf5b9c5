"""Chapter 08: BART's corruptions of a text."""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch08_t5 import draw_spans, draw_tokens

# --- mask_and_delete -----------------------------------------------------------------------------


def mask_and_delete_cases(rng):
    """Chosen positions in any order, neighbours among them; none; all."""

    def case(group, length, chosen, about):
        tokens = draw_tokens(rng, length)
        inputs = {"tokens": tokens, "chosen": chosen, "mask_token": int(rng.integers(2, 9))}
        return Case(group, inputs, about)

    for _ in range(2):
        length = int(rng.integers(9, 14))
        first = int(rng.integers(1, 4))
        chosen = [first + 3, first, first + 1, length - 1]
        yield case("some", length, chosen, "some positions, neighbours among them")
    length = int(rng.integers(5, 9))
    chosen = [int(i) for i in rng.permutation(length)[:3]]
    yield case("some", length, chosen, "three positions in any order")
    yield case("edges", 6, [0], "the first position")
    yield case("edges", 5, [], "no position")
    yield case("edges", 4, [3, 1, 0, 2], "every position")


def mask_and_delete_reference(tokens, chosen, mask_token):
    """Asks every position whether it is chosen."""
    masked = [mask_token if i in chosen else token for i, token in enumerate(tokens)]
    return masked, [token for i, token in enumerate(tokens) if i not in chosen]


def deletes_from_a_shrinking_list(tokens, chosen, mask_token):
    """Each deletion moves what stands behind."""
    masked, _ = mask_and_delete_reference(tokens, chosen, mask_token)
    deleted = list(tokens)
    for i in sorted(chosen):
        del deleted[min(i, len(deleted) - 1)]
    return masked, deleted


def keeps_only_the_chosen(tokens, chosen, mask_token):
    """Deletes everything else."""
    masked, _ = mask_and_delete_reference(tokens, chosen, mask_token)
    return masked, [token for i, token in enumerate(tokens) if i in chosen]


def masks_everything_else(tokens, chosen, mask_token):
    """Masks the positions that were not chosen."""
    _, deleted = mask_and_delete_reference(tokens, chosen, mask_token)
    return [token if i in chosen else mask_token for i, token in enumerate(tokens)], deleted


def deletes_what_equals_a_mask(tokens, chosen, mask_token):
    """Returns the same masked text twice."""
    masked, _ = mask_and_delete_reference(tokens, chosen, mask_token)
    return masked, list(masked)


def writes_into_the_tokens(tokens, chosen, mask_token):
    """Masks in the caller's own list."""
    deleted = [token for i, token in enumerate(tokens) if i not in chosen]
    for i in chosen:
        tokens[i] = mask_token
    return tokens, deleted


def deleted_comes_first(tokens, chosen, mask_token):
    """Returns the two the other way round."""
    return mask_and_delete_reference(tokens, chosen, mask_token)[::-1]


def one_mask_for_neighbours(tokens, chosen, mask_token):
    """Neighbours share a mask, as in text infilling."""
    masked, deleted = mask_and_delete_reference(tokens, chosen, mask_token)
    joined = [
        token for i, token in enumerate(masked) if not (i in chosen and i > 0 and i - 1 in chosen)
    ]
    return joined, deleted


def positions_from_one(tokens, chosen, mask_token):
    """Counts positions from 1."""
    return mask_and_delete_reference(tokens, [i - 1 for i in chosen], mask_token)


def masked_on_a_copy(tokens, chosen, mask_token):
    """Right: writes into a copy; deletes from the end."""
    masked, deleted = tokens.copy(), tokens.copy()
    for i in sorted(chosen, reverse=True):
        masked[i] = mask_token
        deleted.pop(i)
    return masked, deleted


def masked_with_tensors(tokens, chosen, mask_token):
    """Right: a boolean tensor picks."""
    row, hidden = torch.tensor(tokens), torch.zeros(len(tokens), dtype=torch.bool)
    hidden[torch.tensor(chosen, dtype=torch.long)] = True
    return row.masked_fill(hidden, mask_token).tolist(), row[~hidden].tolist()


def masked_by_filtering(tokens, chosen, mask_token):
    """Right: masks with a value that no token has, then leaves it out."""
    marks = [None if i in set(chosen) else token for i, token in enumerate(tokens)]
    masked = tuple(mask_token if mark is None else mark for mark in marks)
    return masked, tuple(mark for mark in marks if mark is not None)


MASK_AND_DELETE = Exercise(
    id="mask_and_delete",
    title="BART: token masking and token deletion",
    asks="Corrupt a text twice: chosen tokens masked, and chosen tokens deleted.",
    parameters=("tokens", "chosen", "mask_token"),
    outputs=("masked", "deleted"),
    driver="sequence_function",
    groups={
        "some": Group(1, "some positions"),
        "edges": Group(1, "the first position, none, all"),
    },
    cases=mask_and_delete_cases,
    reference=mask_and_delete_reference,
    misconceptions=(
        Misconception(
            deletes_from_a_shrinking_list,
            "While the list shrinks, the positions behind a deleted token move.",
            "Delete position 1 of `[5, 6, 7, 8]`: at which position is the 7 now?",
        ),
        Misconception(
            keeps_only_the_chosen,
            "The chosen tokens are kept and all others are deleted.",
            "Which of the two should go?",
        ),
        Misconception(
            masks_everything_else,
            "The tokens that were not chosen are masked.",
            "Which of the two should the mask hide?",
        ),
        Misconception(
            deletes_what_equals_a_mask,
            "Nothing has been deleted: both results are the masked text.",
            "How long should the second result be?",
        ),
        Misconception(
            writes_into_the_tokens,
            "The masks are written into the caller's own list.",
            "Work on a copy: `list(tokens)`.",
        ),
        Misconception(
            deleted_comes_first,
            "The two results come in the wrong order.",
            "Which one does the contract name first?",
        ),
        Misconception(
            one_mask_for_neighbours,
            "Masked neighbours share one mask; that is text infilling.",
            "How long should the masked text be?",
        ),
        Misconception(
            positions_from_one,
            "Positions are counted from 1.",
            "Which position does the first token have in Python?",
        ),
    ),
    accepted=(masked_on_a_copy, masked_with_tensors, masked_by_filtering),
)

# --- text_infilling ------------------------------------------------------------------------------


def text_infilling_cases(rng):
    """Spans of several lengths; length 0 at the start, inside and at the end; side by side."""

    def case(group, length, starts, lengths, about):
        inputs = {"tokens": draw_tokens(rng, length), "starts": starts, "lengths": lengths}
        return Case(group, {**inputs, "mask_token": int(rng.integers(2, 9))}, about)

    for spans in (2, 3):
        length = int(rng.integers(14, 19))
        starts, lengths = draw_spans(rng, length, spans)
        yield case("spans", length, starts, lengths, f"{spans} spans")
    yield case("empty", 7, [2, 5], [0, 1], "a span of length 0 inside the text")
    yield case("empty", 8, [0, 3, 8], [0, 2, 0], "spans of length 0 at both ends")
    yield case("empty", 9, [1, 4, 6], [3, 0, 2], "spans of length 0 between others")
    yield case("edges", 6, [0, 2, 5], [2, 3, 1], "spans side by side, nothing left")
    yield case("edges", 5, [], [], "no span")


def text_infilling_reference(tokens, starts, lengths, mask_token):
    """Asks of every position what begins there and what is covered."""
    spans = list(zip(starts, lengths, strict=True))
    covered = {position for start, length in spans for position in range(start, start + length)}
    result = []
    for position in range(len(tokens) + 1):
        result += [mask_token] * sum(start == position for start, _ in spans)
        if position < len(tokens) and position not in covered:
            result.append(tokens[position])
    return result


def _fill(tokens, starts, lengths, masks):
    result, done = [], 0
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        result += tokens[done:start] + masks(number, length)
        done = start + length
    return result + tokens[done:]


def a_mask_for_each_token(tokens, starts, lengths, mask_token):
    """As many masks as tokens."""
    return _fill(tokens, starts, lengths, lambda number, length: [mask_token] * length)


def empty_spans_left_out(tokens, starts, lengths, mask_token):
    """Length 0 gives no mask."""
    return _fill(tokens, starts, lengths, lambda number, length: [mask_token] * (length > 0))


def empty_spans_take_a_token(tokens, starts, lengths, mask_token):
    """Length 0 replaces one token."""
    longer = [max(length, 1) for length in lengths]
    return _fill(tokens, starts, longer, lambda number, length: [mask_token])


def spans_only_deleted(tokens, starts, lengths, mask_token):
    """No mask at all."""
    return _fill(tokens, starts, lengths, lambda number, length: [])


def a_mask_of_its_own_for_each_span(tokens, starts, lengths, mask_token):
    """Numbers the masks, as T5 does."""
    return _fill(tokens, starts, lengths, lambda number, length: [mask_token - number])


def starts_in_the_shortened_text(tokens, starts, lengths, mask_token):
    """Replaces from the left, so that later starts are wrong."""
    result = list(tokens)
    for start, length in zip(starts, lengths, strict=True):
        result[start : start + length] = [mask_token]
    return result


def lengths_as_ends(tokens, starts, lengths, mask_token):
    """The span reaches one token too far."""
    longer = [length + 1 for length in lengths]
    return _fill(tokens, starts, longer, lambda number, length: [mask_token])


def masks_behind_the_span(tokens, starts, lengths, mask_token):
    """The mask stands behind the first token after the span."""
    result, done = [], 0
    for start, length in zip(starts, lengths, strict=True):
        result += [*tokens[done:start], *tokens[start + length : start + length + 1], mask_token]
        done = start + length + 1
    return result + tokens[done:]


def filled_from_the_end(tokens, starts, lengths, mask_token):
    """Right: the last span first."""
    result = list(tokens)
    for start, length in sorted(zip(starts, lengths, strict=True), reverse=True):
        result[start : start + length] = [mask_token]
    return result


def filled_with_an_offset(tokens, starts, lengths, mask_token):
    """Right: remembers how much the text has grown or shrunk."""
    result, moved = tokens[:], 0
    for start, length in zip(starts, lengths, strict=True):
        result = [*result[: start + moved], mask_token, *result[start + moved + length :]]
        moved += 1 - length
    return tuple(result)


def filled_with_tensors(tokens, starts, lengths, mask_token):
    """Right: pieces of a tensor, joined."""
    row, mask, done, pieces = torch.tensor(tokens), torch.tensor([mask_token]), 0, []
    for start, length in zip(starts, lengths, strict=True):
        pieces += [row[done:start], mask]
        done = start + length
    return torch.cat([*pieces, row[done:]]).tolist()


TEXT_INFILLING = Exercise(
    id="text_infilling",
    title="BART: text infilling",
    asks="Replace each given span, of any length also 0, by one mask.",
    parameters=("tokens", "starts", "lengths", "mask_token"),
    outputs=("corrupted",),
    driver="sequence_function",
    groups={
        "spans": Group(1, "spans of one token or more"),
        "empty": Group(1, "spans of length 0"),
        "edges": Group(1, "nothing left, and nothing to do"),
    },
    cases=text_infilling_cases,
    reference=text_infilling_reference,
    misconceptions=(
        Misconception(
            a_mask_for_each_token,
            "There are as many masks as tokens: that tells the model how many are missing.",
            "How many masks does one span get?",
        ),
        Misconception(
            empty_spans_left_out,
            "A span of length 0 leaves no mask.",
            "What should the model learn from a mask with nothing behind it?",
        ),
        Misconception(
            empty_spans_take_a_token,
            "A span of length 0 swallows a token.",
            "How many tokens may be missing where the length is 0?",
        ),
        Misconception(
            spans_only_deleted,
            "The spans are gone, but nothing marks where they were.",
            "What stands in the place of a span?",
        ),
        Misconception(
            a_mask_of_its_own_for_each_span,
            "The masks are numbered as T5's sentinels; BART has one mask for all.",
            "Which token does every span become?",
        ),
        Misconception(
            starts_in_the_shortened_text,
            "The starts are those of the original text, but are used in the changed one.",
            "After the first span, by how much has the rest moved?",
        ),
        Misconception(
            lengths_as_ends,
            "One token too many is replaced.",
            "Which is the first token behind a span that starts at 3 and has length 2?",
        ),
        Misconception(
            masks_behind_the_span,
            "The mask stands one token too late.",
            "Which token comes right after the mask?",
        ),
    ),
    accepted=(filled_from_the_end, filled_with_an_offset, filled_with_tensors),
)
