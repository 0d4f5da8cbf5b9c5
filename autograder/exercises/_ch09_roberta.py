"""Chapter 09: static and dynamic masking."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def epoch_scores_cases(rng):
    """More epochs than copies; as many; dynamic; sentences out of order."""

    def case(group, about, rounds, count, length, epoch, copies):
        order = [int(i) for i in rng.permutation(count)]
        sentences = np.array([*order[: max(2, count - 2)], order[0]])
        inputs = {
            "scores": rng.integers(0, 10_000, size=(rounds, count, length)) / 10_000,
            "sentences": sentences,
            "epoch": epoch,
            "copies": copies,
        }
        return Case(group, inputs, about)

    yield case("static", "epoch 5 of 3 copies", 8, 6, 4, 5, 3)
    yield case("static", "epoch 6 of 2 copies", 7, 5, 3, 6, 2)
    yield case("static", "as many copies as rounds", 4, 4, 5, 2, 4)
    yield case("static", "one copy for ever", 6, 5, 3, 4, 1)
    yield case("dynamic", "dynamic, the last epoch that has numbers", 6, 6, 4, 5, None)
    yield case("dynamic", "dynamic, the first epoch", 4, 5, 3, 0, None)
    yield case("dynamic", "dynamic, no numbers left", 4, 5, 3, 4, None)
    yield case("dynamic", "more copies than numbers", 4, 6, 3, 1, 5)


def epoch_scores_reference(scores, sentences, epoch, copies):
    """Sentence by sentence."""
    used = epoch if copies is None else epoch - copies * (epoch // copies)
    if max(used + 1, copies or 0) > len(scores):
        raise ValueError("not enough numbers")
    return torch.stack([scores[used][int(number)] for number in sentences])


def _epoch_scores(
    scores, sentences, epoch, copies, used=lambda e, c: e if c is None else e % c, check=True
):
    number = used(epoch, copies)
    if check and (number >= len(scores) or (copies or 0) > len(scores)):
        raise ValueError("not enough numbers")
    return scores[number % len(scores), sentences]


def never_static(**given):
    """Always new numbers."""
    return _epoch_scores(**given, used=lambda e, c: e)


def never_dynamic(**given):
    """Dynamic masking takes the first numbers for ever."""
    return _epoch_scores(**given, used=lambda e, c: 0 if c is None else e % c)


def one_copy_for_ever(**given):
    """Static masking knows one copy."""
    return _epoch_scores(**given, used=lambda e, c: e if c is None else 0)


def consecutive_epochs_share(**given):
    """Uses each copy for several epochs in a row."""
    return _epoch_scores(**given, used=lambda e, c: e if c is None else e // c)


def stays_at_the_last_copy(**given):
    """Uses the last copy for ever once all have been used."""
    return _epoch_scores(**given, used=lambda e, c: e if c is None else min(e, c - 1))


def counts_from_one(**given):
    """The first epoch is 1."""
    return _epoch_scores(**given, used=lambda e, c: e + 1 if c is None else (e - 1) % c)


def wraps_without_a_word(**given):
    """Starts anew when the numbers are used up."""
    return _epoch_scores(**given, check=False)


def copies_not_counted(**given):
    """Asks only whether the present epoch has numbers."""
    number = given["epoch"] if given["copies"] is None else given["epoch"] % given["copies"]
    if number >= len(given["scores"]):
        raise ValueError("not enough numbers")
    return given["scores"][number, given["sentences"]]


def in_order_of_the_corpus(**given):
    """Takes the first rows instead of those of the sentences."""
    rows = torch.arange(len(given["sentences"]))
    return _epoch_scores(**{**given, "sentences": rows})


def sentence_and_epoch_exchanged(scores, sentences, epoch, copies):
    """Indexes the axes in the other order."""
    _epoch_scores(scores, sentences, epoch, copies)
    number = epoch if copies is None else epoch % copies
    return scores[sentences % len(scores), number % scores.shape[1]]


def by_index_select(scores, sentences, epoch, copies):
    """Right: index_select, an `or`."""
    rounds = scores.shape[0]
    used = epoch % (copies or rounds)
    if (copies is None and epoch >= rounds) or (copies is not None and copies > rounds):
        raise ValueError(f"{rounds} rounds of numbers are too few")
    return torch.index_select(scores[used], 0, sentences)


def by_cutting(scores, sentences, epoch, copies):
    """Right: keeps the copies, then indexes."""
    if copies is not None:
        if len(scores) < copies:
            raise ValueError("fewer numbers than copies")
        scores, epoch = scores[:copies], epoch % copies
    if not epoch < len(scores):
        raise ValueError("no numbers for this epoch")
    return scores[epoch][sentences].clone()


def by_gather(scores, sentences, epoch, copies):
    """Right: gather along the axis of sentences."""
    needed = epoch + 1 if copies is None else copies
    if needed > scores.shape[0]:
        raise ValueError(f"{needed} rounds needed")
    used = epoch if copies is None else divmod(epoch, copies)[1]
    index = sentences[:, None].expand(-1, scores.shape[2])
    return scores[used].gather(0, index)


EPOCH_SCORES = Exercise(
    id="epoch_scores",
    title="Static and dynamic masking",
    asks="Give the random numbers that select a batch's words in an epoch.",
    parameters=("scores", "sentences", "epoch", "copies"),
    outputs=("scores",),
    driver="tensor_function",
    groups={
        "static": Group(1, "a number of copies"),
        "dynamic": Group(1, "new numbers for every epoch, and too few numbers"),
    },
    cases=epoch_scores_cases,
    reference=epoch_scores_reference,
    misconceptions=(
        Misconception(
            never_static,
            "Static masking got new numbers in every epoch.",
            "Which numbers does epoch `copies` use?",
        ),
        Misconception(
            never_dynamic,
            "Dynamic masking got the same numbers in every epoch.",
            "What should differ between two epochs if `copies` is None?",
        ),
        Misconception(
            one_copy_for_ever,
            "Only the first copy was used.",
            "How many maskings of a sentence does the model see in `copies` epochs?",
        ),
        Misconception(
            consecutive_epochs_share,
            "Epochs in a row share a copy.",
            "Copies 0, 1, 2, 0, 1, 2, …: which operator gives that?",
        ),
        Misconception(
            stays_at_the_last_copy,
            "After the last copy it was used for ever; it starts again with the first.",
            "Copies 0, 1, 2, 0, 1, 2, …: which operator gives that?",
        ),
        Misconception(
            counts_from_one,
            "Epochs are counted from 1.",
            "Which numbers does epoch 0 use?",
        ),
        Misconception(
            wraps_without_a_word,
            "Too few numbers were not refused.",
            "Read the point on `ValueError` again.",
        ),
        Misconception(
            copies_not_counted,
            "More copies were asked for than there are numbers, and this was not refused.",
            "Which epochs would need the last copy?",
        ),
        Misconception(
            in_order_of_the_corpus,
            "The rows are the first ones of the corpus, not those of `sentences`.",
            "Which sentence does row i of the batch hold?",
        ),
        Misconception(
            sentence_and_epoch_exchanged,
            "Epoch and sentence are exchanged as indices.",
            "Which axis of `scores` is which?",
        ),
    ),
    accepted=(by_index_select, by_cutting, by_gather),
)
