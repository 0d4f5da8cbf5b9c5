"""Chapter 08: BART's moves of whole sentences, and the shifted input of its decoder."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch08_t5 import draw_tokens

# --- reorder_document ----------------------------------------------------------------------------


def reorder_document_cases(rng):
    """Documents with and without a stop at the end; orders that are not their own inverse."""

    def case(group, lengths, about, stop_at_end=True, start=None):
        full_stop = int(rng.integers(2, 9))
        tokens = draw_tokens(rng, sum(lengths))
        document, position = [], 0
        for length in lengths:
            document += [*tokens[position : position + length], full_stop]
            position += length
        document = document if stop_at_end else document[:-1]
        shift = int(rng.integers(1, len(lengths)))
        order = [int(i) for i in np.roll(np.arange(len(lengths)), shift)]
        if len(lengths) == 4:  # no power of a plain roll
            order = [[1, 3, 0, 2], [2, 0, 3, 1], [3, 0, 1, 2], [1, 2, 3, 0]][rng.integers(4)]
        # Rotation starts in the second sentence or later, and not in the middle of the document.
        start = lengths[0] + 3 if start is None else start
        inputs = {"tokens": document, "full_stop": full_stop, "order": order, "start": start}
        return Case(group, inputs, about)

    lengths = [int(n) for n in rng.permutation([2, 3, 5])]
    yield case("sentences", lengths, "three sentences")
    yield case("sentences", [int(n) for n in rng.permutation([2, 3, 4, 6])], "four sentences")
    lengths = [int(n) for n in rng.permutation([2, 3, 4, 5])]
    yield case("tail", lengths, "the last sentence has no full stop", stop_at_end=False)
    yield case("start", [3, 2, 4], "a rotation that starts at the first token", start=0)


def reorder_document_reference(tokens, full_stop, order, start):
    """Numbers the sentence of every token, then picks by number."""
    number, numbers = 0, []
    for token in tokens:
        numbers.append(number)
        number += token == full_stop
    pairs = list(zip(tokens, numbers, strict=True))
    permuted = [token for wanted in order for token, n in pairs if n == wanted]
    return permuted, [tokens[(start + i) % len(tokens)] for i in range(len(tokens))]


def sentences(tokens: list[int], full_stop: int) -> list[list[int]]:
    """Cut behind every full stop."""
    parts: list[list[int]] = [[]]
    for token in tokens:
        parts[-1].append(token)
        if token == full_stop:
            parts.append([])
    return parts if parts[-1] else parts[:-1]


def _joined(parts) -> list[int]:
    return [token for part in parts for token in part]


def _permuted(tokens, full_stop, order) -> list[int]:
    parts = sentences(tokens, full_stop)
    return _joined(parts[i] for i in order)


def _rotated(tokens, start) -> list[int]:
    return tokens[start:] + tokens[:start]


def order_the_other_way(tokens, full_stop, order, start):
    """Sentence i goes to place order[i]."""
    parts, places = sentences(tokens, full_stop), [[]] * len(order)
    for part, place in zip(parts, order, strict=True):
        places[place] = part
    return _joined(places), _rotated(tokens, start)


def full_stops_lost(tokens, full_stop, order, start):
    """Splits at full stops and forgets them."""
    permuted = [token for token in _permuted(tokens, full_stop, order) if token != full_stop]
    return permuted, _rotated(tokens, start)


def tail_lost(tokens, full_stop, order, start):
    """What stands behind the last full stop is dropped."""
    parts = [part for part in sentences(tokens, full_stop) if part[-1] == full_stop]
    return _joined(parts[i] for i in order if i < len(parts)), _rotated(tokens, start)


def full_stop_begins_a_sentence(tokens, full_stop, order, start):
    """Cuts in front of every full stop."""
    parts: list[list[int]] = [[]]
    for token in tokens:
        if token == full_stop and len(parts) < len(order):
            parts.append([])
        parts[-1].append(token)
    return _joined(parts[i] for i in order), _rotated(tokens, start)


def rotation_without_the_beginning(tokens, full_stop, order, start):
    """What stood before the start is gone."""
    return _permuted(tokens, full_stop, order), tokens[start:]


def rotation_the_other_way(tokens, full_stop, order, start):
    """Brings the end to the front."""
    cut = len(tokens) - start
    return _permuted(tokens, full_stop, order), _rotated(tokens, cut)


def rotation_of_the_permuted(tokens, full_stop, order, start):
    """Rotates what has been permuted."""
    permuted = _permuted(tokens, full_stop, order)
    return permuted, _rotated(permuted, start)


def rotation_by_sentences(tokens, full_stop, order, start):
    """Rotates to the beginning of a sentence."""
    while start and tokens[start - 1] != full_stop:
        start -= 1
    return _permuted(tokens, full_stop, order), _rotated(tokens, start)


def rotated_then_permuted(tokens, full_stop, order, start):
    """Returns the two the other way round."""
    return _rotated(tokens, start), _permuted(tokens, full_stop, order)


def reordered_with_tensors(tokens, full_stop, order, start):
    """Right: tensor_split at the stops, roll for the rotation."""
    row = torch.tensor(tokens)
    ends = (row[:-1] == full_stop).nonzero().flatten() + 1
    parts = torch.tensor_split(row, ends)
    return torch.cat([parts[i] for i in order]).tolist(), torch.roll(row, -start).tolist()


def reordered_with_positions(tokens, full_stop, order, start):
    """Right: looks for the next full stop with `index`."""
    parts, begin = [], 0
    while begin < len(tokens):
        end = tokens.index(full_stop, begin) + 1 if full_stop in tokens[begin:] else len(tokens)
        parts.append(tokens[begin:end])
        begin = end
    permuted = []
    for i in order:
        permuted.extend(parts[i])
    return permuted, [*tokens[start:], *tokens[:start]]


def reordered_by_sorting(tokens, full_stop, order, start):
    """Right: sorts tokens by the place of their sentence; sorting keeps the order inside."""
    places = {sentence: place for place, sentence in enumerate(order)}
    numbers = [tokens[:i].count(full_stop) for i in range(len(tokens))]
    ranked = sorted(range(len(tokens)), key=lambda i: places[numbers[i]])
    twice = tokens * 2
    return tuple(tokens[i] for i in ranked), tuple(twice[start : start + len(tokens)])


REORDER_DOCUMENT = Exercise(
    id="reorder_document",
    title="BART: sentence permutation and document rotation",
    asks="Put the sentences into a given order; and start the document at a given token.",
    parameters=("tokens", "full_stop", "order", "start"),
    outputs=("permuted", "rotated"),
    driver="sequence_function",
    groups={
        "sentences": Group(1, "sentences that end with a full stop"),
        "tail": Group(1, "a last sentence without a full stop"),
        "start": Group(1, "a rotation that changes nothing"),
    },
    cases=reorder_document_cases,
    reference=reorder_document_reference,
    misconceptions=(
        Misconception(
            order_the_other_way,
            "Sentence i goes to place order[i]; the contract reads `order` the other way.",
            "Which sentence should come first, in the example?",
        ),
        Misconception(
            full_stops_lost,
            "The full stops are gone.",
            "To which sentence does a full stop belong?",
        ),
        Misconception(
            tail_lost,
            "What stands behind the last full stop is lost.",
            "Is a piece without a full stop a sentence as well?",
        ),
        Misconception(
            full_stop_begins_a_sentence,
            "The text is cut in front of the full stops and not behind them.",
            "Which is the last token of the first sentence?",
        ),
        Misconception(
            rotation_without_the_beginning,
            "What stood before `start` is lost.",
            "How long is a rotated document?",
        ),
        Misconception(
            rotation_the_other_way,
            "The rotation goes the other way round.",
            "Which token of the document should come first?",
        ),
        Misconception(
            rotation_of_the_permuted,
            "The rotated text has been permuted as well.",
            "Both corruptions start from the original document.",
        ),
        Misconception(
            rotation_by_sentences,
            "The rotation starts at the beginning of a sentence.",
            "May a rotation start in the middle of a sentence?",
        ),
        Misconception(
            rotated_then_permuted,
            "The two results come in the wrong order.",
            "Which one does the contract name first?",
        ),
    ),
    accepted=(reordered_with_tensors, reordered_with_positions, reordered_by_sorting),
    equivalent_mutants={
        "`sentences, sentence = ([], [])` → "
        "`sentence, sentences = ([], [])`": "both begin as empty lists",
    },
)

# --- bart_decoder_input --------------------------------------------------------------------------

IGNORED = -100


def bart_decoder_input_cases(rng):
    """Full batches, ignored labels behind the end and inside, one label only."""

    def case(group, batch, length, ignored, about):
        labels = rng.integers(10, 60, size=(batch, length))
        labels[ignored] = IGNORED
        start, padding = (int(n) for n in rng.permutation(9)[:2])
        return Case(group, {"labels": labels, "start": start, "padding": padding}, about)

    s = draw_sizes(rng, "batch", "length")
    nothing = np.zeros((s.batch, s.length), dtype=bool)
    yield case("shift", s.batch, s.length, nothing, "no ignored labels")
    yield case("shift", 3, 1, np.zeros((3, 1), dtype=bool), "a single label in each row")
    batch, length = int(rng.integers(3, 5)), int(rng.integers(6, 9))
    behind = np.arange(length) >= draw_lengths(rng, batch, length)[:, None]
    yield case("ignored", batch, length, behind, "ignored labels behind the end")
    inside = np.zeros((2, 7), dtype=bool)
    inside[0, [0, 3]] = inside[1, [2, 6]] = True
    yield case("ignored", 2, 7, inside, "ignored labels inside, at the first and last place")


def bart_decoder_input_reference(labels, start, padding):
    """Number by number."""
    rows = [[start, *(int(n) for n in row[:-1])] for row in labels]
    return torch.tensor([[padding if n == IGNORED else n for n in row] for row in rows])


def _started(labels, start):
    return F.pad(labels[:, :-1], (1, 0), value=start)


def ignored_labels_stay(labels, start, padding):
    """−100 goes to the embedding."""
    return _started(labels, start)


def shifted_to_the_left(labels, start, padding):
    """The decoder gets the future."""
    shifted = F.pad(labels[:, 1:], (0, 1), value=start)
    return shifted.masked_fill(shifted == IGNORED, padding)


def not_shifted(labels, start, padding):
    """The decoder sees what it should say; the first label becomes the start."""
    given = labels.clone()
    given[:, 0] = start
    return given.masked_fill(given == IGNORED, padding)


def last_label_wraps_round(labels, start, padding):
    """roll puts the last label first."""
    rolled = labels.roll(1, dims=1)
    return rolled.masked_fill(rolled == IGNORED, padding)


def one_longer(labels, start, padding):
    """Keeps the last label."""
    longer = F.pad(labels, (1, 0), value=start)
    return longer.masked_fill(longer == IGNORED, padding)


def ignored_becomes_start(labels, start, padding):
    """Replaces −100 by the start token."""
    shifted = _started(labels, start)
    return shifted.masked_fill(shifted == IGNORED, start)


def padding_at_the_start(labels, start, padding):
    """Fills the first place with padding."""
    shifted = _started(labels, padding)
    return shifted.masked_fill(shifted == IGNORED, padding)


def writes_into_the_labels(labels, start, padding):
    """Shifts in the caller's tensor."""
    labels[:, 1:] = labels[:, :-1].clone()
    labels[:, 0] = start
    labels[labels == IGNORED] = padding
    return labels


def shifted_along_the_batch(labels, start, padding):
    """Shifts along the batch."""
    shifted = torch.cat([torch.full_like(labels[:1], start), labels[:-1]])
    return shifted.masked_fill(shifted == IGNORED, padding)


def shifted_with_cat(labels, start, padding):
    """Right: a column of starts, then all but the last label."""
    first = labels.new_full((labels.shape[0], 1), start)
    shifted = torch.cat([first, labels[:, :-1]], dim=1)
    return torch.where(shifted == IGNORED, padding, shifted)


def shifted_with_roll(labels, start, padding):
    """Right: roll, then overwrite the first column."""
    shifted = torch.roll(labels, 1, dims=-1)
    shifted[:, 0] = start
    shifted[shifted == IGNORED] = padding
    return shifted


def shifted_into_zeros(labels, start, padding):
    """Right: a new tensor, filled in."""
    shifted = torch.zeros(labels.shape, dtype=torch.long)
    shifted[:, 1:] = labels[:, :-1].clamp(min=-1)
    shifted[:, 0] = start
    shifted.masked_fill_(shifted.lt(0), padding)
    return shifted


BART_DECODER_INPUT = Exercise(
    id="bart_decoder_input",
    title="What BART's decoder is given",
    asks="Shift the labels to the right behind a start token; no ignored label may be left.",
    parameters=("labels", "start", "padding"),
    outputs=("decoder_input",),
    driver="tensor_function",
    groups={
        "shift": Group(1, "labels that all count"),
        "ignored": Group(1, "labels of −100"),
    },
    cases=bart_decoder_input_cases,
    reference=bart_decoder_input_reference,
    misconceptions=(
        Misconception(
            ignored_labels_stay,
            "−100 is still there; an embedding has no row for it.",
            "Which token may stand where a label is ignored?",
        ),
        Misconception(
            shifted_to_the_left,
            "The labels are shifted to the left: the decoder is given what comes next.",
            "Before it says the first label, what may the decoder have seen?",
        ),
        Misconception(
            not_shifted,
            "The labels are not shifted: the decoder only has to copy its input.",
            "At the place where label i is due, which label was the last one said?",
        ),
        Misconception(
            last_label_wraps_round,
            "The last label has come round to the front.",
            "What stands in the first column?",
        ),
        Misconception(
            one_longer,
            "The result is one token longer than the labels.",
            "After the last label nothing is to be said: is it needed as an input?",
        ),
        Misconception(
            ignored_becomes_start,
            "Ignored labels have become start tokens.",
            "Which argument says what to put there?",
        ),
        Misconception(
            padding_at_the_start,
            "The rows begin with padding and not with the start token.",
            "Which argument begins every row?",
        ),
        Misconception(
            writes_into_the_labels,
            "The caller's labels are overwritten, and the loss needs them.",
            "Make a new tensor.",
        ),
        Misconception(
            shifted_along_the_batch,
            "The shift runs along the batch: row i holds the labels of row i − 1.",
            "Which axis is time?",
        ),
    ),
    accepted=(shifted_with_cat, shifted_with_roll, shifted_into_zeros),
)
