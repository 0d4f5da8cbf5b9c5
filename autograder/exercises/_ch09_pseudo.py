"""Chapter 09: a sentence's pseudo-perplexity, with a model made of three tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import draw


def blank_model(table: Tensor, tokens: Tensor) -> Tensor:
    """The notebook's model: each place's logits from the words around it, and from its own.

    table: (5, vocabulary, vocabulary), one for each distance from −2 to 2. tokens: (batch, length).
    Gives (batch, length, vocabulary). Raises ValueError unless tokens have two axes.
    """
    if tokens.dim() != 2:
        raise ValueError(f"tokens must have axes (batch, length); got {tuple(tokens.shape)}.")
    reach, length = len(table) // 2, tokens.shape[1]
    words = F.one_hot(tokens, table.shape[1]).to(table.dtype)
    words = F.pad(words, (0, 0, reach, reach))  # nothing stands beyond the ends
    return sum(words[:, k : k + length] @ table[k] for k in range(len(table)))


def logits_at(table: np.ndarray, words: Sequence[int], place: int) -> np.ndarray:
    """The same for one place of one sentence, in NumPy, with the sums written out."""
    logits = np.zeros(table.shape[2])
    for k in range(len(table)):
        at = place + k - len(table) // 2
        if 0 <= at < len(words):
            logits += table[k, words[at]]
    return logits


def pseudo_perplexity_cases(rng):
    """A model that reads the word itself; specials in between; one word."""

    def case(group, about, length, vocabulary, separators=1):
        ids = [int(i) for i in rng.permutation(vocabulary)]
        special, mask_token, words = ids[:3], ids[2], ids[3:]
        tokens = rng.choice(words, size=length)
        tokens[0], tokens[-1] = special[0], special[1]
        if separators > 1:
            tokens[length // 2] = special[1]
        table = 1.2 * draw(rng, (5, vocabulary, vocabulary))
        table[2] += 4.0 * np.eye(vocabulary)  # a word that can be seen is known
        inputs = {
            "table": table,
            "tokens": tokens.astype(np.int64),
            "special": rng.permutation(special).astype(np.int64),
            "mask_token": mask_token,
        }
        return Case(group, inputs, about)

    yield case("values", "a sentence", 7, 8)
    yield case("values", "another one", 6, 9)
    yield case("edges", "two sentences", 9, 8, separators=2)
    yield case("edges", "one word", 3, 7)


def pseudo_perplexity_reference(table, tokens, special, mask_token):
    """In NumPy, one word after the other."""
    weights, words, never = table.numpy(), tokens.tolist(), special.tolist()
    total, count = 0.0, 0
    for place, word in enumerate(words):
        if word in never:
            continue
        masked = [*words[:place], mask_token, *words[place + 1 :]]
        logits = logits_at(weights, masked, place)
        highest = logits.max()
        total += highest + np.log(np.exp(logits - highest).sum()) - logits[word]
        count += 1
    return math.exp(total / count)


def _score(
    table,
    tokens,
    special,
    mask_token,
    rows=lambda tokens, place, mask: tokens.index_fill(0, torch.tensor([place]), mask),
    asked=lambda tokens, special: [
        i for i, word in enumerate(tokens.tolist()) if word not in special.tolist()
    ],
    read=lambda place, length: place,
    word=lambda tokens, place, mask: tokens[place],
    finish=lambda logs, length: torch.exp(-logs.mean()),
):
    logs = []
    for place in asked(tokens, special):
        logits = blank_model(table, rows(tokens, place, mask_token)[None])[0]
        logs.append(
            logits[read(place, len(tokens))].log_softmax(-1)[word(tokens, place, mask_token)]
        )
    return finish(torch.stack(logs), len(tokens))


def nothing_masked(**given):
    """The model sees the word."""
    return _score(**given, rows=lambda tokens, place, mask: tokens)


def everything_masked(**given):
    """Masks all words at once."""
    special = given["special"]

    def rows(tokens, place, mask):
        return torch.where(torch.isin(tokens, special), tokens, mask)

    return _score(**given, rows=rows)


def future_masked(**given):
    """Masks the word and all behind it, as if the model read from left to right."""
    special = given["special"]

    def rows(tokens, place, mask):
        behind = (torch.arange(len(tokens)) >= place) & ~torch.isin(tokens, special)
        return torch.where(behind, mask, tokens)

    return _score(**given, rows=rows)


def masks_stay(**given):
    """Words that were asked for stay masked."""
    special = given["special"]

    def rows(tokens, place, mask):
        before = (torch.arange(len(tokens)) <= place) & ~torch.isin(tokens, special)
        return torch.where(before, mask, tokens)

    return _score(**given, rows=rows)


def specials_asked(**given):
    """Asks for [CLS] and [SEP], too."""
    return _score(**given, asked=lambda tokens, special: range(len(tokens)))


def divided_by_the_length(**given):
    """Divides by the number of all tokens."""
    return _score(**given, finish=lambda logs, length: torch.exp(-logs.sum() / length))


def loss_given(**given):
    """No exponential."""
    return _score(**given, finish=lambda logs, length: -logs.mean())


def mean_of_exponentials(**given):
    """Averages 1/p."""
    return _score(**given, finish=lambda logs, length: torch.exp(-logs).mean())


def probability_given(**given):
    """exp of the mean logarithm: the sign is missing."""
    return _score(**given, finish=lambda logs, length: torch.exp(logs.mean()))


def log_likelihood_given(**given):
    """The sum of the logarithms."""
    return _score(**given, finish=lambda logs, length: logs.sum())


def mask_token_asked(**given):
    """Asks how probable the mask is."""
    return _score(**given, word=lambda tokens, place, mask: mask)


def place_before_read(**given):
    """Reads the logits one place earlier, as of a GPT."""
    return _score(**given, read=lambda place, length: place - 1)


def by_batch(table, tokens, special, mask_token):
    """Right: one row for each word, one call of the model."""
    places = torch.nonzero(~torch.isin(tokens, special)).flatten()
    rows = tokens.repeat(len(places), 1)
    number = torch.arange(len(places))
    rows[number, places] = mask_token
    logs = blank_model(table, rows).log_softmax(dim=-1)
    return torch.exp(-logs[number, places, tokens[places]].mean())


def by_cross_entropy(table, tokens, special, mask_token):
    """Right: a diagonal of masks, cross-entropy; gives a float."""
    diagonal = torch.eye(len(tokens), dtype=torch.bool)
    logits = blank_model(table, torch.where(diagonal, mask_token, tokens))
    own = torch.diagonal(logits, dim1=0, dim2=1).T
    keep = (tokens[:, None] != special).all(dim=1)
    return math.exp(torch.nn.functional.cross_entropy(own[keep], tokens[keep]).item())


def by_probabilities(table, tokens, special, mask_token):
    """Right: a geometric mean of probabilities."""
    product, count = 1.0, 0
    for place in range(len(tokens)):
        if (tokens[place] == special).any():
            continue
        masked = tokens.clone()
        masked[place] = mask_token
        product *= blank_model(table, masked[None])[0, place].softmax(-1)[tokens[place]]
        count += 1
    return product ** (-1 / count)


PSEUDO_PERPLEXITY = Exercise(
    id="pseudo_perplexity",
    title="Pseudo-perplexity",
    asks="Mask one word at a time, and combine the losses to one number.",
    parameters=("table", "tokens", "special", "mask_token"),
    outputs=("pseudo-perplexity",),
    driver="tensor_function",
    groups={
        "values": Group(2, "a sentence"),
        "edges": Group(1, "two sentences, one word"),
    },
    cases=pseudo_perplexity_cases,
    reference=pseudo_perplexity_reference,
    misconceptions=(
        Misconception(
            nothing_masked,
            "Nothing was masked: the model has read the word that it is asked for.",
            "What stands at the place in question when the model is called?",
        ),
        Misconception(
            everything_masked,
            "All words were masked at the same time.",
            "How many masks does the model see in each call?",
        ),
        Misconception(
            future_masked,
            "What stands behind the word was masked, too; BERT may read it.",
            "How many masks does the model see in each call?",
        ),
        Misconception(
            masks_stay,
            "Words that were asked for earlier are still masked.",
            "Start every call from the original tokens.",
        ),
        Misconception(
            specials_asked,
            "Special tokens were asked for as well.",
            "What is `special` for?",
        ),
        Misconception(
            divided_by_the_length,
            "The sum was divided by all tokens, special ones included.",
            "Over how many words is the mean?",
        ),
        Misconception(
            loss_given,
            "This is the mean loss.",
            "What is the last step from a loss to a perplexity?",
        ),
        Misconception(
            mean_of_exponentials,
            "Exponentials were averaged.",
            "Which comes first, exp or the mean?",
        ),
        Misconception(
            probability_given,
            "The sign is missing: the result is a probability, below 1.",
            "Is a perplexity larger or smaller than 1?",
        ),
        Misconception(
            log_likelihood_given,
            "This is the sum of the logarithms.",
            "Mean, sign, exp.",
        ),
        Misconception(
            mask_token_asked,
            "The model was asked how probable [MASK] is.",
            "Which word stood there?",
        ),
        Misconception(
            place_before_read,
            "The logits were read one place before the mask, as with a GPT.",
            "Where does BERT predict a masked word?",
        ),
    ),
    accepted=(by_batch, by_cross_entropy, by_probabilities),
    equivalent_mutants={
        "`(~torch.isin(tokens, special)).nonzero()[:, 0]` → "
        "`(~torch.isin(tokens, special)).nonzero()[:, -1]`": "there is one "
        "column: the first is the last",
    },
)
