"""Chapter 11: the loss of a language model that may copy."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def copy_losses_cases(rng):
    """Words that are there already and words that are not; large scores."""
    for group, scale, about in (
        ("values", 1.0, "three rows"),
        ("values", 2.0, "other sizes"),
        ("large", 500.0, "scores in the hundreds"),
    ):
        s = draw_sizes(rng, "batch", "length", among=(2, 3, 5))
        shape = (s.batch, s.length)
        tokens = rng.integers(0, 6, size=shape)
        other = (tokens + rng.integers(1, 6, size=shape)) % 6
        same = rng.random(shape) < 0.5
        same[0, :2] = (True, False)
        given = tokens * same + other * ~same
        yield Case(
            group,
            {
                "word_logits": scale * rng.normal(size=(*shape, 6)),
                "copy_logits": scale * rng.normal(size=shape),
                "given": given,
                "tokens": tokens,
            },
            about,
        )


def copy_losses_reference(word_logits, copy_logits, given, tokens):
    """Puts both ways side by side as log-probabilities and takes their logsumexp."""
    words = word_logits - word_logits.logsumexp(-1, keepdim=True)
    words = words.gather(-1, tokens[..., None])[..., 0] - F.softplus(copy_logits)
    copied = -F.softplus(-copy_logits)
    copied = torch.where(given == tokens, copied, torch.full_like(copied, -torch.inf))
    return -torch.stack([words, copied], -1).logsumexp(-1)


def _mixture(word_logits, copy_logits, given, tokens, same=None):
    p_copy = copy_logits.sigmoid()
    words = word_logits.softmax(-1).gather(-1, tokens[..., None])[..., 0]
    same = (given == tokens).to(words.dtype) if same is None else same
    return p_copy, words, same


def copying_switched_round(word_logits, copy_logits, given, tokens):
    """1 − σ copies."""
    return copy_losses_reference(word_logits, -copy_logits, given, tokens)


def copied_without_looking(word_logits, copy_logits, given, tokens):
    """Copies the right word, whatever the model reads."""
    return copy_losses_reference(word_logits, copy_logits, tokens, tokens)


def never_copied(word_logits, copy_logits, given, tokens):
    """No copying at all."""
    return F.cross_entropy(word_logits.mT, tokens, reduction="none")


def only_copied_if_there(word_logits, copy_logits, given, tokens):
    """A word that is there can only be copied."""
    words = F.cross_entropy(word_logits.mT, tokens, reduction="none")
    return torch.where(given == tokens, F.softplus(-copy_logits), words + F.softplus(copy_logits))


def losses_mixed(word_logits, copy_logits, given, tokens):
    """Mixes logarithms instead of probabilities."""
    p_copy = copy_logits.sigmoid()
    words = F.cross_entropy(word_logits.mT, tokens, reduction="none")
    copied = F.softplus(-copy_logits) * (given == tokens)
    return p_copy * copied + (1 - p_copy) * words


def word_not_weighted(word_logits, copy_logits, given, tokens):
    """softmax + σ: more than 1 in all."""
    p_copy, words, same = _mixture(word_logits, copy_logits, given, tokens)
    return -(p_copy * same + words).log()


def word_of_the_input(word_logits, copy_logits, given, tokens):
    """Asks for the given word."""
    return copy_losses_reference(word_logits, copy_logits, given, given)


def probabilities_mixed(word_logits, copy_logits, given, tokens):
    """Right in small numbers; logarithm of 0."""
    p_copy, words, same = _mixture(word_logits, copy_logits, given, tokens)
    return -(p_copy * same + (1 - p_copy) * words).log()


def floor_under_probabilities(word_logits, copy_logits, given, tokens):
    """Adds a small number before the logarithm: a loss can never be larger than its."""
    p_copy, words, same = _mixture(word_logits, copy_logits, given, tokens)
    return -(p_copy * same + (1 - p_copy) * words + 1e-12).log()


def sigmoid_forgotten(word_logits, copy_logits, given, tokens):
    """The score itself is the weight."""
    _, words, same = _mixture(word_logits, copy_logits, given, tokens)
    return -(copy_logits * same + (1 - copy_logits) * words).abs().clamp(min=1e-9).log()


def averaged_over_words(word_logits, copy_logits, given, tokens):
    """One number."""
    return copy_losses_reference(word_logits, copy_logits, given, tokens).mean()


def copy_by_logaddexp(word_logits, copy_logits, given, tokens):
    """Right: logaddexp, then a choice."""
    log_word = -F.cross_entropy(word_logits.mT, tokens, reduction="none")
    invented = F.logsigmoid(-copy_logits) + log_word
    both = torch.logaddexp(F.logsigmoid(copy_logits), invented)
    return -torch.where(given == tokens, both, invented)


def copy_over_all_words(word_logits, copy_logits, given, tokens):
    """Right: the log-probability of every word, then picks."""
    log_words = word_logits.log_softmax(-1) + F.logsigmoid(-copy_logits)[..., None]
    at_given = F.one_hot(given, word_logits.shape[-1]).bool()
    copied = F.logsigmoid(copy_logits)[..., None].masked_fill(~at_given, -torch.inf)
    return F.nll_loss(torch.logaddexp(log_words, copied).mT, tokens, reduction="none")


def copy_place_by_place(word_logits, copy_logits, given, tokens):
    """Right: a loop."""
    losses = torch.empty_like(copy_logits)
    for place in torch.ones_like(tokens).nonzero().tolist():
        at = tuple(place)
        ways = [word_logits[at].log_softmax(0)[tokens[at]] + F.logsigmoid(-copy_logits[at])]
        if given[at] == tokens[at]:
            ways.append(F.logsigmoid(copy_logits[at]))
        losses[at] = -torch.stack(ways).logsumexp(0)
    return losses


COPY_LOSSES = Exercise(
    id="copy_losses",
    title="A language model that may copy",
    asks="Give −log p of the right word, when a word may also be copied from the input.",
    parameters=("word_logits", "copy_logits", "given", "tokens"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(2, "losses"), "large": Group(1, "large scores")},
    cases=copy_losses_cases,
    reference=copy_losses_reference,
    misconceptions=(
        Misconception(
            copying_switched_round,
            "The probability of copying and its complement are exchanged.",
            "What should a large `copy_logits` make likely?",
        ),
        Misconception(
            copied_without_looking,
            "The right word is copied even where the input holds another one.",
            "Which word can be copied in a place?",
        ),
        Misconception(
            never_copied,
            "Copying has no effect.",
            "Where does `copy_logits` enter your computation?",
        ),
        Misconception(
            only_copied_if_there,
            "Where the input holds the right word only copying counts; the model may also say it "
            "by itself.",
            "In how many ways can the right word come about?",
        ),
        Misconception(
            losses_mixed,
            "Logarithms are mixed; the probabilities are to be mixed, and then the logarithm "
            "taken.",
            "Where does the logarithm stand in the formula?",
        ),
        Misconception(
            word_not_weighted,
            "The model's own probability is not weighted with 1 − c; all words together get more "
            "than 1.",
            "Add up the probabilities of all words.",
        ),
        Misconception(
            word_of_the_input,
            "The loss asks for the word of the input; the original one is wanted.",
            "Which sentence holds the right answers?",
        ),
        Misconception(
            probabilities_mixed,
            "A probability becomes 0, and its logarithm infinite.",
            "Which function adds two probabilities that are given as logarithms?",
        ),
        Misconception(
            floor_under_probabilities,
            "A small number is added to the probability, so no loss can be larger than minus its "
            "logarithm.",
            "Which function adds two probabilities that are given as logarithms?",
        ),
        Misconception(
            sigmoid_forgotten,
            "The score for copying is used as if it were a probability.",
            "What makes a probability out of `copy_logits`?",
        ),
        Misconception(
            averaged_over_words,
            "One mean is given; one loss for each place is asked.",
            "Which shape does the contract ask for?",
        ),
    ),
    accepted=(copy_by_logaddexp, copy_over_all_words, copy_place_by_place),
    equivalent_mutants={
        "`word_logits.log_softmax(dim=-1).gather(-1, tokens[..., None])[..., 0]` → "
        "`word_logits.log_softmax(dim=-1).gather(-1, tokens[..., None])[..., -1]`": "the last axis "
        "has one entry",
    },
)
