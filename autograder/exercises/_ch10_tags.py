"""Exercises of chapter 10 on tags: labels for word pieces, and their loss."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import IGNORED

SPECIAL = -1  # the word number of a piece that belongs to no word


def draw_words(rng, width, cut=0):
    """Draw word numbers of `width` pieces: [CLS], words of 1 to 3 pieces, [SEP], padding."""
    row, word = [SPECIAL], 0
    while len(row) < width - 2 - cut:
        row += [word] * int(rng.permutation([1, 2, 3])[word % 3])
        word += 1
    row = row[: width - 1 - cut]
    return row + [SPECIAL] * (width - len(row)), row[-1] + 1


def draw_pieces(rng, batch, width):
    """Draw (word numbers (batch, width), number of words of each row) of unequal lengths."""
    rows = [draw_words(rng, width, 2 * place) for place in range(batch)]
    order = rng.permutation(batch)
    words = np.array([rows[i][0] for i in order], dtype=np.int64)
    return words, [rows[i][1] for i in order]


# --- piece_labels --------------------------------------------------------------------------------


def piece_labels_cases(rng):
    """Words of one to three pieces; a row whose last words were cut off."""
    for group, batch, extra, about in (
        ("labels", 3, 0, "sentences of unequal lengths"),
        ("labels", 2, 0, "other sentences"),
        ("labels", 3, 2, "the last words have no piece"),
    ):
        words, counts = draw_pieces(rng, batch, int(rng.choice([14, 15, 16])))
        labels = rng.integers(1, 6, size=(batch, max(counts) + extra))
        labels[:, 0] = rng.permutation(5)[:batch] + 1
        yield Case(group, {"labels": labels, "words": words}, about)


def piece_labels_reference(labels, words):
    """Piece by piece, remembering the word before."""
    rows = []
    for own, row in zip(labels.tolist(), words.tolist(), strict=True):
        before, pieces = SPECIAL, []
        for word in row:
            pieces.append(IGNORED if word in (SPECIAL, before) else own[word])
            before = word
        rows.append(pieces)
    return torch.tensor(rows)


def _labels_everywhere(labels, words):
    return labels.gather(1, words.clamp(min=0))


def every_piece_labelled(labels, words):
    """Copies a word's label to all its pieces."""
    return torch.where(words >= 0, _labels_everywhere(labels, words), IGNORED)


def last_piece_labelled(labels, words):
    """Labels last pieces."""
    after = torch.cat([words[:, 1:], words[:, :1]], dim=1)
    place = (words >= 0) & (words != after)
    return torch.where(place, _labels_everywhere(labels, words), IGNORED)


def specials_as_class_zero(labels, words):
    """Labels [CLS], [SEP] and padding 0."""
    return piece_labels_reference(labels, words).masked_fill(words < 0, 0)


def later_pieces_as_class_zero(labels, words):
    """Labels later pieces 0."""
    right = piece_labels_reference(labels, words)
    return right.masked_fill((words >= 0) & (right == IGNORED), 0)


def specials_get_a_label(labels, words):
    """−1 picks the last word's label."""
    picked = labels[torch.arange(len(words))[:, None], words]
    new = torch.ones_like(words, dtype=torch.bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    return torch.where(new, picked, IGNORED)


def one_word_late(labels, words):
    """Counts words from 1."""
    return piece_labels_reference(labels.roll(1, dims=1), words)


def labels_in_a_row(labels, words):
    """Lays labels out from place 1 on, as if each word had one piece."""
    result = torch.full_like(words, IGNORED)
    width = min(labels.shape[1], words.shape[1] - 1)
    result[:, 1 : 1 + width] = labels[:, :width]
    return result.masked_fill(words < 0, IGNORED)


def first_word_left_out(labels, words):
    """Takes word 0 for no word."""
    return piece_labels_reference(labels, words).masked_fill(words <= 0, IGNORED)


def by_neighbours(labels, words):
    """Right: compares each piece with the one before."""
    first = words != torch.nn.functional.pad(words, (1, 0), value=SPECIAL)[:, :-1]
    return _labels_everywhere(labels, words).masked_fill(~first | (words < 0), IGNORED)


def by_differences(labels, words):
    """Right: torch.diff and torch.where."""
    steps = torch.diff(words, dim=1, prepend=words[:, :1])
    return torch.where(
        (steps != 0) & (words != SPECIAL), _labels_everywhere(labels, words), IGNORED
    )


def by_sets(labels, words):
    """Right: remembers the words seen."""
    result = torch.full_like(words, IGNORED)
    for row in range(len(words)):
        seen = {SPECIAL}
        for place, word in enumerate(words[row].tolist()):
            if word not in seen:
                result[row, place] = labels[row, word]
            seen.add(word)
    return result


PIECE_LABELS = Exercise(
    id="piece_labels",
    title="Labels for word pieces",
    asks="Give each word's label to its first piece, and −100 to everything else.",
    parameters=("labels", "words"),
    driver="tensor_function",
    groups={"labels": Group(2, "words of one to three pieces")},
    cases=piece_labels_cases,
    reference=piece_labels_reference,
    misconceptions=(
        Misconception(
            every_piece_labelled,
            "Every piece of a word has its label: a name of three pieces would count three times.",
            "How many of a word's pieces should have a label?",
        ),
        Misconception(
            last_piece_labelled,
            "The last piece of each word has the label; the first one should.",
            "With which neighbour do you compare a piece?",
        ),
        Misconception(
            specials_as_class_zero,
            "[CLS], [SEP] and padding have the label 0, a real class.",
            "Which number says that a place gets no loss?",
        ),
        Misconception(
            later_pieces_as_class_zero,
            "Later pieces have the label 0, a real class.",
            "Which number says that a place gets no loss?",
        ),
        Misconception(
            specials_get_a_label,
            "The word number −1 picked a label: Python counts it from the end.",
            "What does `labels[0, -1]` give?",
        ),
        Misconception(
            one_word_late,
            "Labels are one word late.",
            "Which number does the first word have?",
        ),
        Misconception(
            labels_in_a_row,
            "The labels stand in a row, as if every word had one piece.",
            "Where does `words` say to which word a piece belongs?",
        ),
        Misconception(
            first_word_left_out,
            "Word 0 has no label: only −1 means “no word”.",
            "Is 0 a word's number?",
        ),
    ),
    accepted=(by_neighbours, by_differences, by_sets),
)

# --- tag_loss ------------------------------------------------------------------------------------


def tag_loss_cases(rng):
    """Rows with few and many labels; large numbers where there is none; class 0 present."""
    for group, poison, scale, about in (
        ("values", 1.0, 1.0, "a batch"),
        ("values", 30.0, 1.5, "large numbers where there is no label"),
        ("large", 2.0, 800.0, "logits in the hundreds"),
    ):
        s = draw_sizes(rng, "batch", "tags", among=(3, 5, 6))
        words, _ = draw_pieces(rng, s.batch, 14 if s.batch > 3 else 11)
        labels = piece_labels_reference(*_tensors(rng, words, s.tags)).numpy()
        first = tuple(np.argwhere(labels >= 0)[0])
        labels[first] = 0
        logits = scale * rng.normal(size=(*labels.shape, s.tags))
        logits[labels == IGNORED] *= poison
        yield Case(group, {"logits": logits, "labels": labels}, about)


def _tensors(rng, words, tags):
    labels = rng.integers(0, tags, size=(len(words), words.max() + 1))
    return torch.from_numpy(labels), torch.from_numpy(words)


def tag_loss_reference(logits, labels):
    """Picks the places that have a label."""
    place = labels != IGNORED
    return F.cross_entropy(logits[place], labels[place])


def _token_losses(logits, labels):
    log_probabilities = logits.log_softmax(-1)
    return -log_probabilities.gather(-1, labels.clamp(min=0)[..., None])[..., 0]


def padding_as_class_zero(logits, labels):
    """Counts every place, with class 0 where there is no label."""
    return _token_losses(logits, labels).mean()


def divided_by_all_places(logits, labels):
    """Leaves places out of the sum, but not of the count."""
    return (_token_losses(logits, labels) * (labels != IGNORED)).mean()


def mean_of_sentences(logits, labels):
    """Averages each sentence first."""
    place = labels != IGNORED
    return ((_token_losses(logits, labels) * place).sum(1) / place.sum(1)).mean()


def losses_added(logits, labels):
    """Sums."""
    return (_token_losses(logits, labels) * (labels != IGNORED)).sum()


def class_zero_ignored(logits, labels):
    """Ignores class 0 as well."""
    return F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten(), ignore_index=0)


def divided_by_sentences(logits, labels):
    """Divides by the batch."""
    return losses_added(logits, labels) / len(labels)


def softmax_twice(logits, labels):
    """Feeds probabilities to a loss that takes logits."""
    return tag_loss_reference(logits.softmax(-1), labels)


def logarithm_of_the_softmax(logits, labels):
    """log after exp: overflows."""
    powers = logits.exp()
    place = labels != IGNORED
    share = powers.gather(-1, labels.clamp(min=0)[..., None])[..., 0] / powers.sum(-1)
    return -share[place].log().mean()


def with_ignore_index(logits, labels):
    """Right: PyTorch ignores −100 by itself."""
    return F.cross_entropy(logits.flatten(end_dim=1), labels.flatten())


def with_classes_second(logits, labels):
    """Right: classes on axis 1."""
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED)


def by_masked_sum(logits, labels):
    """Right: sum of losses over number of labels."""
    place = labels >= 0
    return torch.where(place, _token_losses(logits, labels), 0.0).sum() / place.sum()


TAG_LOSS = Exercise(
    id="tag_loss",
    title="The loss of tags",
    asks="Give the mean cross-entropy over all places of the batch that have a label.",
    parameters=("logits", "labels"),
    outputs=("loss", "gradient of logits"),
    driver="tensor_function",
    groups={
        "values": Group(1, "rows with few and many labels"),
        "large": Group(1, "large logits"),
    },
    cases=tag_loss_cases,
    reference=tag_loss_reference,
    misconceptions=(
        Misconception(
            padding_as_class_zero,
            "Places without a label count, as if their label were class 0.",
            "How many places have a label?",
        ),
        Misconception(
            divided_by_all_places,
            "The sum is divided by the number of all places, not by that of labels.",
            "How many places have a label?",
        ),
        Misconception(
            mean_of_sentences,
            "Each sentence is averaged first, so that words of short ones weigh more.",
            "How many divisions does the contract ask for?",
        ),
        Misconception(
            losses_added,
            "The losses are added up; their mean is asked for.",
            "What happens to the loss when the batch grows?",
        ),
        Misconception(
            class_zero_ignored,
            "Class 0 is ignored, but it is a class like any other.",
            "Which number marks places without a label?",
        ),
        Misconception(
            divided_by_sentences,
            "The sum is divided by the number of sentences.",
            "How many places have a label?",
        ),
        Misconception(
            softmax_twice,
            "A softmax was taken before a loss that takes another one.",
            "Does your loss function expect logits or probabilities?",
        ),
        Misconception(
            logarithm_of_the_softmax,
            "exp overflows for large logits, or a probability vanishes and its logarithm is "
            "infinite.",
            "Is there one function for the logarithm of the softmax?",
        ),
    ),
    accepted=(with_ignore_index, with_classes_second, by_masked_sum),
)
