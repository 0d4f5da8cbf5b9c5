"""Chapter 08: windows of one long text, and a split that leaks nothing."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- batch_windows -------------------------------------------------------------------------------


def batch_windows_cases(rng):
    """Starts in any order, overlapping; the last possible one; starts that do not fit."""

    def case(group, count, starts, length, about):
        tokens = 100 + rng.permutation(count)
        inputs = {"tokens": tokens.astype(np.int64), "starts": np.array(starts), "length": length}
        return Case(group, inputs, about)

    for _ in range(2):
        s = draw_sizes(rng, "batch", "length", among=(2, 3, 5, 6))
        count = 6 * s.length + int(rng.integers(4, 9))
        starts = 2 + rng.permutation(count - s.length - 4)[: s.batch]
        yield case("values", count, starts, s.length, "a batch of windows")
    length = int(rng.integers(4, 7))
    yield case("ends", 12, [11 - length, 0], length, "the last and the first window that fit")
    yield case("ends", length + 1, [0, 0], length, "one window fits")
    yield case("refused", 12, [2, 12 - length], length, "one start too late")
    yield case("refused", 12, [1, -1], length, "a negative start")


def batch_windows_reference(tokens, starts, length):
    """Number by number."""
    inputs = []
    for start in starts.tolist():
        if start < 0 or start + length + 1 > len(tokens):
            raise ValueError("a window does not fit")
        inputs.append([int(tokens[start + i]) for i in range(length + 1)])
    return torch.tensor(inputs)[:, :-1], torch.tensor(inputs)[:, 1:]


def _fit(tokens, starts, length):
    if starts.min() < 0 or starts.max() + length + 1 > len(tokens):
        raise ValueError("a window does not fit")


def _windows(tokens, starts, length):
    """Windows of any starts; what does not fit is cut to the text."""
    index = starts[:, None] + torch.arange(length)
    return tokens[index.clamp(0, len(tokens) - 1)]


def targets_not_shifted(tokens, starts, length):
    """The targets are the inputs."""
    _fit(tokens, starts, length)
    inputs = _windows(tokens, starts, length)
    return inputs, inputs.clone()


def targets_shifted_back(tokens, starts, length):
    """The targets are the tokens before."""
    _fit(tokens, starts, length)
    return _windows(tokens, starts, length), _windows(tokens, starts - 1, length)


def targets_two_ahead(tokens, starts, length):
    """The targets are two tokens ahead."""
    _fit(tokens, starts, length)
    return _windows(tokens, starts, length), _windows(tokens, starts + 2, length)


def targets_wrap_round(tokens, starts, length):
    """The last target is the window's own first token."""
    _fit(tokens, starts, length)
    inputs = _windows(tokens, starts, length)
    return inputs, inputs.roll(-1, dims=1)


def next_window_as_target(tokens, starts, length):
    """The targets are the next window."""
    _fit(tokens, starts, length)
    return _windows(tokens, starts, length), _windows(tokens, starts + length, length)


def starts_count_windows(tokens, starts, length):
    """Start i means the i-th window."""
    _fit(tokens, starts, length)
    return _windows(tokens, starts * length, length), _windows(tokens, starts * length + 1, length)


def time_comes_first(tokens, starts, length):
    """The axes are exchanged."""
    _fit(tokens, starts, length)
    inputs, targets = _windows(tokens, starts, length), _windows(tokens, starts + 1, length)
    return inputs.T.contiguous(), targets.T.contiguous()


def targets_come_first(tokens, starts, length):
    """Returns the two the other way round."""
    _fit(tokens, starts, length)
    return _windows(tokens, starts + 1, length), _windows(tokens, starts, length)


def one_shorter(tokens, starts, length):
    """Takes `length` tokens in all, so that inputs are one shorter."""
    _fit(tokens, starts, length)
    windows = _windows(tokens, starts, length)
    return windows[:, :-1], windows[:, 1:]


def last_target_not_thought_of(tokens, starts, length):
    """Lets a window begin whose last target is behind the end."""
    if starts.min() < 0 or starts.max() + length > len(tokens):
        raise ValueError("a window does not fit")
    return _windows(tokens, starts, length), _windows(tokens, starts + 1, length)


def last_window_refused(tokens, starts, length):
    """Refuses the last window that fits."""
    if starts.min() < 0 or starts.max() + length + 1 >= len(tokens):
        raise ValueError("a window does not fit")
    return _windows(tokens, starts, length), _windows(tokens, starts + 1, length)


def negative_starts_wrap_round(tokens, starts, length):
    """Counts negative starts from the end, as indexing does."""
    _fit(tokens, starts.clamp(min=0), length)
    index = (starts[:, None] + torch.arange(length)) % len(tokens)
    return tokens[index], tokens[(index + 1) % len(tokens)]


def windows_by_unfold(tokens, starts, length):
    """Right: all windows as a view, then the wanted ones."""
    windows = tokens.unfold(0, length + 1, 1)
    if ((starts < 0) | (starts >= len(windows))).any():
        raise ValueError("starts")
    return windows[starts, :-1], windows[starts, 1:]


def windows_by_stacking(tokens, starts, length):
    """Right: slices, stacked."""
    last = len(tokens) - length - 1
    if any(start < 0 or start > last for start in starts.tolist()):
        raise ValueError(f"starts must be from 0 to {last}")
    inputs = torch.stack([tokens[start : start + length] for start in starts])
    targets = torch.stack([tokens[start + 1 : start + 1 + length] for start in starts])
    return inputs, targets


def windows_by_index(tokens, starts, length):
    """Right: one matrix of places."""
    places = starts.unsqueeze(1) + torch.arange(length).unsqueeze(0)
    if not (places.min() >= 0 and places.max() + 1 < tokens.numel()):
        raise ValueError("does not fit")
    return torch.take(tokens, places), torch.take(tokens, places + 1)


BATCH_WINDOWS = Exercise(
    id="batch_windows",
    title="A batch of windows from one long text",
    asks="Cut windows out of a text at given starts: inputs, and targets one token ahead.",
    parameters=("tokens", "starts", "length"),
    outputs=("inputs", "targets"),
    driver="tensor_function",
    groups={
        "values": Group(1, "windows inside the text"),
        "ends": Group(1, "the first and the last window that fit"),
        "refused": Group(1, "windows that do not fit"),
    },
    cases=batch_windows_cases,
    reference=batch_windows_reference,
    misconceptions=(
        Misconception(
            targets_not_shifted,
            "The targets are the inputs themselves.",
            "At each place, which token should the model predict?",
        ),
        Misconception(
            targets_shifted_back,
            "The targets are one token behind the inputs.",
            "Does the target come before or after its input in the text?",
        ),
        Misconception(
            targets_two_ahead,
            "The targets are two tokens ahead.",
            "Compare the second input with the first target.",
        ),
        Misconception(
            targets_wrap_round,
            "The last target is the window's own first token (`roll` wraps round).",
            "Which token of the text follows the window's last one?",
        ),
        Misconception(
            next_window_as_target,
            "The targets are the whole next window.",
            "By how many tokens are targets ahead of inputs?",
        ),
        Misconception(
            starts_count_windows,
            "A start is read as the number of a window and not of a token.",
            "At which token should the first window begin?",
        ),
        Misconception(
            time_comes_first,
            "The axes are exchanged: (length, batch).",
            "Which axis comes first in the contract?",
        ),
        Misconception(
            targets_come_first,
            "The two results come in the wrong order.",
            "Which one does the contract name first?",
        ),
        Misconception(
            one_shorter,
            "Inputs and targets are one token too short.",
            "How many tokens of the text does a window need for `length` inputs and targets?",
        ),
        Misconception(
            last_target_not_thought_of,
            "A window is let in whose last target would stand behind the end of the text.",
            "Which is the last token that a window needs?",
        ),
        Misconception(
            last_window_refused,
            "The last window that fits is refused.",
            "May the last target be the last token of the text?",
        ),
        Misconception(
            negative_starts_wrap_round,
            "Negative starts are counted from the end.",
            "What does the contract say about starts outside the text?",
        ),
    ),
    accepted=(windows_by_unfold, windows_by_stacking, windows_by_index),
)

# --- split_windows -------------------------------------------------------------------------------


def split_windows_cases(rng):
    """Cuts inside the text; parts that just fit one window; parts in which none fits."""

    def case(group, count, cut, length, about):
        return Case(group, {"count": count, "cut": cut, "length": length}, about)

    for _ in range(2):
        length = int(rng.integers(3, 6))
        cut = int(rng.integers(4, 7)) * length + 2
        rest = length * int(rng.integers(3, 5)) + int(rng.integers(2, length))
        yield case("values", cut + rest, cut, length, "the last validation window is cut off")
    length = int(rng.integers(3, 7))
    yield case("ends", 5 * length + 1, 2 * length, length, "validation windows fill their part")
    yield case("ends", 2 * length + 2, length + 1, length, "one window in each part")
    yield case("refused", 3 * length, 2 * length, length, "no validation window fits")
    yield case("refused", 3 * length, length, length, "no training window fits")


def split_windows_reference(count, cut, length):
    """Tries every start."""
    training = [s for s in range(count) if s + length + 1 <= cut]
    validation = [s for s in range(cut, count) if s + length + 1 <= count]
    validation = [s for s in validation if (s - cut) % length == 0]
    if not training or not validation:
        raise ValueError("a part is too short")
    return torch.tensor(training), torch.tensor(validation)


def _starts(count, cut, length, first=0, last=0, training_step=1, step=None, begin=0, end=0):
    """Starts with an offset for each mistake."""
    training = torch.arange(first, cut - length + last, training_step)
    validation = torch.arange(cut + begin, count - length + end, step or length)
    if len(training) < 1 or len(validation) < 1:
        raise ValueError("a part is too short")
    return training, validation


def training_looks_over_the_cut(count, cut, length):
    """Training windows may begin anywhere before the cut."""
    return _starts(count, cut, length, last=length)


def training_target_over_the_cut(count, cut, length):
    """The last training target is the first validation token."""
    return _starts(count, cut, length, last=1)


def last_training_window_lost(count, cut, length):
    """The last window that fits is missing."""
    return _starts(count, cut, length, last=-1)


def validation_begins_before_the_cut(count, cut, length):
    """The first validation window begins one before the cut, so as to predict its first token."""
    return _starts(count, cut, length, begin=-1)


def validation_windows_overlap(count, cut, length):
    """All validation starts: every token is predicted several times."""
    return _starts(count, cut, length, step=1)


def validation_leaves_gaps(count, cut, length):
    """Steps of length + 1: every so often a token is not predicted."""
    return _starts(count, cut, length, step=length + 1)


def validation_beyond_the_end(count, cut, length):
    """The last validation window has no last target."""
    return _starts(count, cut, length, end=length)


def training_windows_apart(count, cut, length):
    """Training windows do not overlap."""
    return _starts(count, cut, length, training_step=length)


def validation_counted_from_zero(count, cut, length):
    """Validation starts are counted from the cut."""
    training, validation = _starts(count, cut, length)
    return training, validation - cut


def short_parts_accepted(count, cut, length):
    """Gives empty tensors for parts in which nothing fits."""
    training = torch.arange(max(cut - length, 0))
    return training, torch.arange(cut, max(count - length, cut), length)


def split_by_masks(count, cut, length):
    """Right: all starts, then conditions."""
    starts = torch.arange(count)
    training = starts[starts + length < cut]
    fits = (starts >= cut) & (starts + length < count) & ((starts - cut) % length == 0)
    if not (len(training) and fits.any()):
        raise ValueError("too short")
    return training, starts[fits]


def split_by_counting(count, cut, length):
    """Right: computes how many windows there are."""
    windows = (count - cut - 1) // length
    if cut <= length or windows < 1:
        raise ValueError("too short")
    return torch.arange(cut - length), cut + length * torch.arange(windows)


def split_by_ranges(count, cut, length):
    """Right: Python's ranges."""
    training, validation = range(cut - length), range(cut, count - length, length)
    if not training or not validation:
        raise ValueError("too short")
    return torch.tensor(list(training)), torch.tensor(list(validation))


SPLIT_WINDOWS = Exercise(
    id="split_windows",
    title="Training and validation windows without a leak",
    asks="Give the starts of all training windows, and of validation windows side by side.",
    parameters=("count", "cut", "length"),
    outputs=("training", "validation"),
    driver="tensor_function",
    groups={
        "values": Group(1, "no window crosses the cut"),
        "ends": Group(1, "windows that just fit"),
        "refused": Group(1, "parts in which no window fits"),
    },
    cases=split_windows_cases,
    reference=split_windows_reference,
    misconceptions=(
        Misconception(
            training_looks_over_the_cut,
            "Training windows reach over the cut: the model trains on validation tokens.",
            "Where does the last training window end?",
        ),
        Misconception(
            training_target_over_the_cut,
            "The last training target is a validation token.",
            "How many tokens does a window need with its last target?",
        ),
        Misconception(
            last_training_window_lost,
            "The last training window that fits is missing.",
            "May the last target be token `cut − 1`?",
        ),
        Misconception(
            validation_begins_before_the_cut,
            "The first validation window begins with a training token.",
            "Which is the first token of the validation part?",
        ),
        Misconception(
            validation_windows_overlap,
            "Validation windows overlap: tokens are predicted more than once.",
            "How far apart do windows begin if every target is to occur once?",
        ),
        Misconception(
            validation_leaves_gaps,
            "Between two validation windows a token is left that is never a target.",
            "Write down the targets of the first two windows.",
        ),
        Misconception(
            validation_beyond_the_end,
            "The last validation window reaches beyond the end.",
            "Where does the last validation window end?",
        ),
        Misconception(
            training_windows_apart,
            "Training windows lie side by side; the contract wants every start.",
            "How many training windows of 3 tokens fit into 6 tokens?",
        ),
        Misconception(
            validation_counted_from_zero,
            "Validation starts are counted from the cut and not from the start of the text.",
            "Which token of the whole text does the first validation window begin with?",
        ),
        Misconception(
            short_parts_accepted,
            "A part in which no window fits gives an empty result.",
            "What does the contract want in this case?",
        ),
    ),
    accepted=(split_by_masks, split_by_counting, split_by_ranges),
)
