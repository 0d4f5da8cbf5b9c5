"""Chapter 11: choosing words, and putting samples in their places."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch11_parts import (
    FIRST_WORD,
    MASK,
    PADDING,
    VOCABULARY,
    draw_chosen,
    draw_tokens,
)

# --- choose_positions ----------------------------------------------------------------------------


def choose_positions_cases(rng):
    """Rows of unequal lengths; large scores where there is no word; rows that are short.

    In the long rows the share comes to 0.7 of a word more than a whole number, so that rounding
    matters, and the best word of a row is the first of all ids.
    """
    for group, share, batch, length, shift, about in (
        ("values", None, 3, 12, 0.0, "three rows"),
        ("values", None, 2, 14, -2.0, "negative scores"),
        ("short", 0.15, 5, 7, 0.0, "rows too short for the share"),
        ("short", 0.11, 3, 6, 0.0, "one word in each row"),
    ):
        tokens = draw_tokens(rng, batch, length)
        scores = rng.random((batch, length)) + shift
        scores[tokens < FIRST_WORD] += 3.0
        words = tokens >= FIRST_WORD
        if share is None:
            most = int(words.sum(axis=1).max())
            share = (most // 3 + 0.7) / most
            best = np.where(words, scores, -np.inf).argmax(axis=1)
            tokens[np.arange(batch), best] = FIRST_WORD
        inputs = {"scores": scores, "tokens": tokens, "first_word": FIRST_WORD, "share": share}
        yield Case(group, inputs, about)


def _choose(scores, words, count, largest=True):
    """Choose `count(row)` of the places where `words` is True; `count` gets words and row."""
    chosen = torch.zeros_like(words)
    for row in range(len(scores)):
        hidden = scores[row].masked_fill(~words[row], -torch.inf if largest else torch.inf)
        chosen[row, hidden.argsort(descending=largest)[: count(row)]] = True
    return chosen


def choose_positions_reference(scores, tokens, first_word, share):
    """Sorts each row in plain Python."""
    chosen = torch.zeros(tokens.shape, dtype=torch.bool)
    for row, ids in enumerate(tokens.tolist()):
        places = [place for place, i in enumerate(ids) if i >= first_word]
        places.sort(key=lambda place: -scores[row, place])
        for place in places[: max(1, math.floor(share * len(places)))]:
            chosen[row, place] = True
    return chosen


def _count(words, share, round_=math.floor, least=1):
    return lambda row: max(least, round_(share * int(words[row].sum())))


def specials_chosen(scores, tokens, first_word, share):
    """Ranks all places; counts words."""
    words = tokens >= first_word
    return _choose(scores, torch.ones_like(words), _count(words, share))


def all_but_padding(scores, tokens, first_word, share):
    """Leaves out padding only."""
    real = tokens != PADDING
    return _choose(scores, real, _count(real, share))


def share_of_the_length(scores, tokens, first_word, share):
    """Takes the share of the padded length."""
    words = tokens >= first_word
    count = max(1, math.floor(share * tokens.shape[1]))
    return _choose(scores, words, lambda row: min(count, int(words[row].sum())))


def lowest_chosen(scores, tokens, first_word, share):
    """Takes the smallest scores."""
    words = tokens >= first_word
    return _choose(scores, words, _count(words, share), largest=False)


def none_in_short_rows(scores, tokens, first_word, share):
    """Without "at least one"."""
    words = tokens >= first_word
    return _choose(scores, words, _count(words, share, least=0))


def rounded_up(scores, tokens, first_word, share):
    """Rounds up."""
    words = tokens >= first_word
    return _choose(scores, words, _count(words, share, round_=math.ceil))


def rounded_to_nearest(scores, tokens, first_word, share):
    """Rounds to the nearest whole number."""
    words = tokens >= first_word
    return _choose(scores, words, _count(words, share, round_=round))


def first_word_left_out(scores, tokens, first_word, share):
    """Takes `first_word` itself for a special id."""
    words = tokens > first_word
    return _choose(scores, words, _count(words, share))


def others_get_zero(scores, tokens, first_word, share):
    """Multiplies scores with the mask of words: 0 beats a negative score."""
    words = tokens >= first_word
    return _choose(scores * words, torch.ones_like(words), _count(words, share))


def best_of_the_batch(scores, tokens, first_word, share):
    """Ranks the whole batch at once."""
    words = tokens >= first_word
    flat = _choose(scores.reshape(1, -1), words.reshape(1, -1), _count(words.reshape(1, -1), share))
    return flat.reshape(words.shape)


def each_by_itself(scores, tokens, first_word, share):
    """Compares every score with the share, as if drawing."""
    return (scores > 1 - share) & (tokens >= first_word)


def chosen_by_topk(scores, tokens, first_word, share):
    """Right: topk row by row."""
    words = tokens >= first_word
    chosen = torch.zeros_like(words)
    for row, (values, real) in enumerate(zip(scores, words, strict=True)):
        count = max(1, int(share * real.sum()))
        chosen[row, values.masked_fill(~real, -1e9).topk(count).indices] = True
    return chosen


def chosen_by_rank(scores, tokens, first_word, share):
    """Right: the rank of each score among the words of its row."""
    words = tokens >= first_word
    above = (scores[:, None, :] > scores[:, :, None]) & words[:, None, :]
    counts = (words.sum(1, keepdim=True) * share).floor().clamp(min=1)
    return words & (above.sum(-1) < counts)


def chosen_by_threshold(scores, tokens, first_word, share):
    """Right: everything from the k-th largest score of the row on."""
    words = torch.ge(tokens, first_word)
    ordered = torch.where(words, scores, -torch.inf).sort(dim=1, descending=True).values
    counts = torch.floor(share * words.sum(dim=1)).long().clamp(min=1)
    least = ordered.gather(1, counts[:, None] - 1)
    return words.logical_and(scores >= least)


CHOOSE_POSITIONS = Exercise(
    id="choose_positions",
    title="Choose the words to hide",
    asks="Choose in each row the given share of its words, those with the largest scores.",
    parameters=("scores", "tokens", "first_word", "share"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(1, "long rows"), "short": Group(1, "short rows")},
    cases=choose_positions_cases,
    reference=choose_positions_reference,
    misconceptions=(
        Misconception(
            specials_chosen,
            "Special tokens or padding are chosen.",
            "Which ids are words, by the contract?",
        ),
        Misconception(
            all_but_padding,
            "Only padding is left out; start and end tokens are chosen too.",
            "Which ids are words, by the contract?",
        ),
        Misconception(
            share_of_the_length,
            "The share is taken of the padded length; padding further would choose more.",
            "How many words has each row?",
        ),
        Misconception(
            lowest_chosen,
            "The words with the smallest scores are chosen.",
            "Which end of the order does your code take?",
        ),
        Misconception(
            none_in_short_rows,
            "In a short row nothing is chosen.",
            "What does the contract say about a share that is less than one word?",
        ),
        Misconception(
            rounded_up,
            "The number of words is rounded up.",
            "Read the contract on rounding.",
        ),
        Misconception(
            rounded_to_nearest,
            "The number of words is rounded to the nearest whole number.",
            "Read the contract on rounding.",
        ),
        Misconception(
            first_word_left_out,
            "The id `first_word` itself is left out.",
            "Is it a word, by the contract?",
        ),
        Misconception(
            others_get_zero,
            "Places that are no words have the score 0, which beats every negative score.",
            "Which score can never win?",
        ),
        Misconception(
            best_of_the_batch,
            "The largest scores of the whole batch are chosen; each row has its own share.",
            "Count what is chosen in each row.",
        ),
        Misconception(
            each_by_itself,
            "Each score is compared with the share by itself; so the number of chosen words is "
            "left to chance.",
            "How many words of a row are to be chosen? Which ones?",
        ),
    ),
    accepted=(chosen_by_topk, chosen_by_rank, chosen_by_threshold),
)

# --- corrupt -------------------------------------------------------------------------------------


def corrupt_cases(rng):
    """Several rows; samples that equal the original are among them."""
    for group, batch, length, about in (
        ("values", 3, 8, "three rows"),
        ("values", 2, 11, "two longer rows"),
        ("edges", 1, 9, "one row"),
    ):
        tokens = draw_tokens(rng, batch, length)
        chosen = draw_chosen(rng, tokens)
        chosen[:, 1] = chosen[0, 2] = True  # so the order of reading matters
        originals = tokens[chosen]
        samples = rng.permutation(np.arange(VOCABULARY, VOCABULARY + 90))[: len(originals)]
        if batch > 1:
            kept = rng.integers(len(samples))
            samples[kept] = originals[kept]
        yield Case(
            group, {"tokens": tokens, "chosen": chosen, "samples": samples, "mask": MASK}, about
        )


def corrupt_reference(tokens, chosen, samples, mask):
    """One place after the other."""
    masked, corrupted, drawn = tokens.tolist(), tokens.tolist(), iter(samples.tolist())
    for row, place in chosen.nonzero().tolist():
        masked[row][place], corrupted[row][place] = mask, next(drawn)
    return torch.tensor(masked), torch.tensor(corrupted)


def mask_left_in(tokens, chosen, samples, mask):
    """The discriminator's input still has [MASK]."""
    masked = tokens.masked_fill(chosen, mask)
    return masked, masked.clone()


def nothing_masked(tokens, chosen, samples, mask):
    """The generator sees the words."""
    return tokens.clone(), tokens.masked_scatter(chosen, samples)


def exchanged(tokens, chosen, samples, mask):
    """(corrupted, masked)."""
    return corrupt_reference(tokens, chosen, samples, mask)[::-1]


def column_after_column(tokens, chosen, samples, mask):
    """Reads the samples column by column."""
    corrupted = tokens.mT.masked_scatter(chosen.mT, samples).mT
    return tokens.masked_fill(chosen, mask), corrupted


def last_sample_first(tokens, chosen, samples, mask):
    """Samples in reverse."""
    return tokens.masked_fill(chosen, mask), tokens.masked_scatter(chosen, samples.flip(0))


def one_sample_for_all(tokens, chosen, samples, mask):
    """The first sample everywhere."""
    return tokens.masked_fill(chosen, mask), tokens.masked_fill(chosen, int(samples[0]))


def the_others_masked(tokens, chosen, samples, mask):
    """Hides what was not chosen."""
    corrupted = tokens.masked_scatter(chosen, samples)
    return tokens.masked_fill(~chosen, mask), corrupted


def tokens_overwritten(tokens, chosen, samples, mask):
    """Writes into the caller's tokens."""
    masked = tokens.masked_fill(chosen, mask)
    tokens[chosen] = samples
    return masked, tokens


def same_tensor_twice(tokens, chosen, samples, mask):
    """Both names mean one copy."""
    masked = corrupted = tokens.clone()
    masked[chosen] = mask
    corrupted[chosen] = samples
    return masked, corrupted


def written_into_copies(tokens, chosen, samples, mask):
    """Right: two copies."""
    masked, corrupted = tokens.clone(), tokens.clone()
    masked[chosen], corrupted[chosen] = mask, samples
    return masked, corrupted


def with_places_numbered(tokens, chosen, samples, mask):
    """Right: a running number finds the sample of a place."""
    number = (chosen.flatten().cumsum(0) - 1).clamp(min=0).view(chosen.shape)
    return torch.where(chosen, mask, tokens), torch.where(chosen, samples[number], tokens)


def with_index_put(tokens, chosen, samples, mask):
    """Right: rows and columns of the chosen places."""
    places = chosen.nonzero(as_tuple=True)
    fill = torch.full_like(samples, mask)
    return tokens.index_put(places, fill), tokens.index_put(places, samples)


CORRUPT = Exercise(
    id="corrupt",
    title="Two inputs from one sentence",
    asks="Give what the generator reads and what the discriminator reads.",
    parameters=("tokens", "chosen", "samples", "mask"),
    outputs=("masked", "corrupted"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(1, "several rows"), "edges": Group(1, "one row")},
    cases=corrupt_cases,
    reference=corrupt_reference,
    misconceptions=(
        Misconception(
            mask_left_in,
            "The discriminator's input still contains [MASK], which gives the places away.",
            "What stands in a chosen place of `corrupted`?",
        ),
        Misconception(
            nothing_masked,
            "The generator's input still shows the words that it has to guess.",
            "What stands in a chosen place of `masked`?",
        ),
        Misconception(
            exchanged,
            "The two results are exchanged.",
            "Which of the two is returned first?",
        ),
        Misconception(
            column_after_column,
            "The samples are put in column by column.",
            "In which order are the samples listed, by the contract?",
        ),
        Misconception(
            last_sample_first,
            "The samples are put in from the last to the first.",
            "In which order are the samples listed, by the contract?",
        ),
        Misconception(
            one_sample_for_all,
            "Every chosen place gets the same sample.",
            "`samples` has one entry for each chosen place.",
        ),
        Misconception(
            the_others_masked,
            "The words that were *not* chosen are hidden.",
            "Where is `chosen` True?",
        ),
        Misconception(
            tokens_overwritten,
            "The caller's `tokens` are overwritten; they are needed for the labels.",
            "Does your code write into a copy?",
        ),
        Misconception(
            same_tensor_twice,
            "Both results are the same tensor: the second writing undoes the first.",
            "How many copies of `tokens` does your code make?",
        ),
    ),
    accepted=(written_into_copies, with_places_numbered, with_index_put),
)
