"""Chapter 11: original or replaced, and a loss on every word."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch11_parts import (
    FIRST_WORD,
    PADDING,
    draw_chosen,
    draw_corrupted,
    draw_tokens,
)


def replaced_labels_cases(rng):
    """Samples that equal the original, samples that are special ids, padding."""
    for batch, length, about in ((3, 9, "three rows"), (2, 12, "two rows"), (4, 7, "four rows")):
        tokens = draw_tokens(rng, batch, length)
        chosen = draw_chosen(rng, tokens)
        yield Case(
            "values",
            {
                "tokens": tokens,
                "chosen": chosen,
                "corrupted": draw_corrupted(rng, tokens, chosen),
                "first_word": FIRST_WORD,
            },
            about,
        )


def replaced_labels_reference(tokens, chosen, corrupted, first_word):
    """Place by place in plain Python."""
    pairs = [zip(*rows, strict=True) for rows in zip(tokens.tolist(), corrupted.tolist())]  # noqa: B905
    replaced = [[a != b for a, b in row] for row in pairs]
    counted = [[i >= first_word for i in row] for row in tokens.tolist()]
    return torch.tensor(replaced), torch.tensor(counted)


def every_chosen_word(tokens, chosen, corrupted, first_word):
    """Chosen means replaced."""
    return chosen.clone(), tokens >= first_word


def original_is_true(tokens, chosen, corrupted, first_word):
    """True = original."""
    return corrupted == tokens, tokens >= first_word


def only_chosen_counted(tokens, chosen, corrupted, first_word):
    """Counts the chosen words only."""
    return corrupted != tokens, chosen.clone()


def everything_counted(tokens, chosen, corrupted, first_word):
    """Counts special tokens and padding."""
    return corrupted != tokens, torch.ones_like(chosen)


def padding_not_counted(tokens, chosen, corrupted, first_word):
    """Counts start and end tokens."""
    return corrupted != tokens, tokens != PADDING


def counted_by_the_samples(tokens, chosen, corrupted, first_word):
    """Asks the corrupted sentence what is a word."""
    return corrupted != tokens, corrupted >= first_word


def first_word_not_counted(tokens, chosen, corrupted, first_word):
    """Takes `first_word` itself for a special id."""
    return corrupted != tokens, tokens > first_word


def replaced_by_larger(tokens, chosen, corrupted, first_word):
    """Larger instead of different."""
    return corrupted > tokens, tokens >= first_word


def one_label_for_the_row(tokens, chosen, corrupted, first_word):
    """Is anything replaced in this row?"""
    different = (corrupted != tokens).any(dim=1, keepdim=True)
    return different.expand(tokens.shape), tokens >= first_word


def labels_by_difference(tokens, chosen, corrupted, first_word):
    """Right: a difference that is not 0."""
    return (tokens - corrupted).bool(), tokens > first_word - 1


def labels_by_not_equal(tokens, chosen, corrupted, first_word):
    """Right: not equal; not special."""
    return ~torch.eq(tokens, corrupted), ~(tokens < first_word)


def labels_inside_chosen(tokens, chosen, corrupted, first_word):
    """Right: looks at chosen places only, since nothing else can differ."""
    replaced = torch.zeros_like(chosen)
    replaced[chosen] = tokens[chosen] != corrupted[chosen]
    return replaced, tokens.ge(first_word)


REPLACED_LABELS = Exercise(
    id="replaced_labels",
    title="Original or replaced",
    asks="Say for each place whether its word was replaced, and whether the place counts.",
    parameters=("tokens", "chosen", "corrupted", "first_word"),
    outputs=("replaced", "counted"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(2, "labels and places that count")},
    cases=replaced_labels_cases,
    reference=replaced_labels_reference,
    misconceptions=(
        Misconception(
            every_chosen_word,
            "Every chosen word is called replaced, also where the sample is the original word.",
            "What is the label of a sample that equals the original?",
        ),
        Misconception(
            original_is_true,
            "The labels are turned round: True has to mean replaced.",
            "Which of the two is True?",
        ),
        Misconception(
            only_chosen_counted,
            "Only chosen words count; then most of what ELECTRA learns from is lost.",
            "For which words does the contract ask the discriminator?",
        ),
        Misconception(
            everything_counted,
            "Padding and special tokens count, too.",
            "Which ids are words?",
        ),
        Misconception(
            padding_not_counted,
            "Start and end tokens count; they are never replaced.",
            "Which ids are words?",
        ),
        Misconception(
            counted_by_the_samples,
            "A place where the generator drew a special token does not count any more.",
            "Which sentence says whether a place held a word?",
        ),
        Misconception(
            first_word_not_counted,
            "The id `first_word` itself does not count.",
            "Is it a word, by the contract?",
        ),
        Misconception(
            replaced_by_larger,
            "Only a larger id counts as replaced.",
            "Ids have no order that means anything.",
        ),
        Misconception(
            one_label_for_the_row,
            "Every place of a row gets the same label.",
            "The labels have one entry for each place.",
        ),
    ),
    accepted=(labels_by_difference, labels_by_not_equal, labels_inside_chosen),
)


def discriminator_loss_cases(rng):
    """Unequal numbers of places that count; poison elsewhere; large scores."""
    for group, scale, about in (
        ("values", 1.5, "three rows"),
        ("values", 1.0, "other sizes"),
        ("large", 900.0, "scores in the hundreds"),
    ):
        s = draw_sizes(rng, "batch", "length", among=(3, 5, 6, 7))
        tokens = draw_tokens(rng, s.batch, s.length + 3)
        chosen = draw_chosen(rng, tokens)
        counted = tokens >= FIRST_WORD
        logits = scale * rng.normal(size=tokens.shape)
        logits[~counted] = 7.0 * scale + rng.normal(size=(~counted).sum())
        replaced = chosen & (rng.random(tokens.shape) < 0.7)
        replaced[tuple(chosen.nonzero()[axis][0] for axis in range(2))] = True
        inputs = {"logits": logits, "replaced": replaced, "counted": counted}
        yield Case(group, inputs, about)


def discriminator_loss_reference(logits, replaced, counted):
    """Mean of log(1 + exp(−z)), where z is the score for the right answer."""
    signs = torch.where(replaced, -1.0, 1.0).to(logits.dtype)
    return F.softplus(signs[counted] * logits[counted]).mean()


def _losses(logits, replaced):
    return F.binary_cross_entropy_with_logits(logits, replaced.to(logits.dtype), reduction="none")


def everything_averaged(logits, replaced, counted):
    """All places."""
    return _losses(logits, replaced).mean()


def divided_by_all(logits, replaced, counted):
    """Sum over words, divided by all places."""
    return (_losses(logits, replaced) * counted).mean()


def summed_up(logits, replaced, counted):
    """Sum instead of mean."""
    return _losses(logits, replaced)[counted].sum()


def mean_of_rows(logits, replaced, counted):
    """Mean of the rows' means."""
    rows = (_losses(logits, replaced) * counted).sum(1) / counted.sum(1)
    return rows.mean()


def labels_turned_round(logits, replaced, counted):
    """Labels for original."""
    return _losses(logits, ~replaced)[counted].mean()


def sigmoid_twice(logits, replaced, counted):
    """Probabilities into a loss that takes scores."""
    return _losses(logits.sigmoid(), replaced)[counted].mean()


def replaced_words_only(logits, replaced, counted):
    """The loss of replaced words."""
    return _losses(logits, replaced)[replaced].mean()


def squared_error(logits, replaced, counted):
    """Squared error of the probabilities."""
    return ((logits.sigmoid() - replaced.to(logits.dtype)) ** 2)[counted].mean()


def logarithm_of_zero(logits, replaced, counted):
    """log of a sigmoid."""
    p = logits.sigmoid()
    right = torch.where(replaced, p, 1 - p)
    return -right.log()[counted].mean()


def halves_balanced(logits, replaced, counted):
    """Replaced and original words weigh the same."""
    losses = _losses(logits, replaced)
    return (losses[replaced].mean() + losses[counted & ~replaced].mean()) / 2


def loss_from_weights(logits, replaced, counted):
    """Right: weights that are 1 / number of words."""
    weights = counted.to(logits.dtype) / counted.sum()
    target = replaced.to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, target, weights, reduction="sum")


def loss_from_two_classes(logits, replaced, counted):
    """Right: a cross-entropy over two classes, one with the score 0."""
    both = torch.stack([torch.zeros_like(logits), logits], dim=-1)
    target = replaced.long().masked_fill(~counted, -100)
    return F.cross_entropy(both.flatten(0, 1), target.flatten(), ignore_index=-100)


def loss_from_logsigmoid(logits, replaced, counted):
    """Right: logsigmoid for both answers."""
    losses = torch.where(replaced, -F.logsigmoid(logits), -F.logsigmoid(-logits))
    return losses.masked_fill(~counted, 0.0).sum() / counted.sum()


DISCRIMINATOR_LOSS = Exercise(
    id="discriminator_loss",
    title="A loss on every word",
    asks="Give the mean binary cross-entropy over all places that count.",
    parameters=("logits", "replaced", "counted"),
    outputs=("loss", "gradient of logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(2, "loss and gradient"), "large": Group(1, "large scores")},
    cases=discriminator_loss_cases,
    reference=discriminator_loss_reference,
    tolerance=Tolerance(1e-5, 1e-6),
    misconceptions=(
        Misconception(
            everything_averaged,
            "Padding and special tokens have a loss, too.",
            "Where does `counted` enter your computation?",
        ),
        Misconception(
            divided_by_all,
            "The sum over words is divided by the number of all places; more padding would make "
            "the loss smaller.",
            "By how many places do you divide?",
        ),
        Misconception(
            summed_up,
            "The losses are added up; the mean is asked.",
            "By how many places do you divide?",
        ),
        Misconception(
            mean_of_rows,
            "The mean is taken row by row and then over rows: words of short rows weigh more.",
            "Every word of the batch has the same weight, by the contract.",
        ),
        Misconception(
            labels_turned_round,
            "Labels are turned round: a large score has to mean replaced.",
            "What does a large score mean, by the contract?",
        ),
        Misconception(
            sigmoid_twice,
            "A sigmoid was taken before a loss that takes another one.",
            "Does your loss function expect scores or probabilities?",
        ),
        Misconception(
            replaced_words_only,
            "Only replaced words have a loss; to call everything replaced would be perfect.",
            "Which places count?",
        ),
        Misconception(
            squared_error,
            "This is a squared error of probabilities, no cross-entropy.",
            "Where is the logarithm?",
        ),
        Misconception(
            logarithm_of_zero,
            "For large scores a probability becomes 0 or 1, and its logarithm infinite.",
            "Is there one function for sigmoid and logarithm together?",
        ),
        Misconception(
            halves_balanced,
            "Replaced and original words are averaged separately, so that both weigh the same.",
            "Every word of the batch has the same weight, by the contract.",
        ),
    ),
    accepted=(loss_from_weights, loss_from_two_classes, loss_from_logsigmoid),
)
