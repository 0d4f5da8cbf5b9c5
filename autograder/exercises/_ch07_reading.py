"""Exercises of chapter 07 on judging a translator: exact match, and alignments."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- sentences_right -----------------------------------------------------------------------------


# How many guesses are right, hold a wrong word, stop late, stop early, or swap two words: all
# different, so that no two wrong ways of counting agree.
KINDS = np.repeat(["right", "word", "late", "early", "swap"], [6, 4, 2, 1, 3])


def _sentences(rng, width, end, words):
    """Draw rows of different words, of unequal lengths, with `end` after them and junk after it."""
    rows = np.array([rng.choice(words, width, replace=False) for _ in KINDS])
    for row, length in zip(rows, rng.integers(2, width - 2, len(rows)), strict=True):
        row[length] = end
    return rows.astype(np.int64)


def _spoilt(rng, targets, end, words):
    """Copy target rows, with new junk after the end, and spoil them as `KINDS` says."""
    guesses = targets.copy()
    for row, kind in zip(guesses, rng.permutation(KINDS), strict=True):
        place = int(np.argmax(row == end))
        row[place + 1 :] = rng.choice([*words, end], size=len(row) - place - 1)
        if kind == "word":
            row[rng.integers(place)] = max(words) + 1
        elif kind == "late":
            row[place] = rng.choice(words)
        elif kind == "early":
            row[place - 1] = end
        elif kind == "swap":
            row[:2] = row[1::-1]
    return guesses


def sentences_right_cases(rng):
    """Right rows with other junk after the end; wrong words; early and late ends; other widths."""
    for group, extra, about in (
        ("same", 0, "guesses as wide as the targets"),
        ("same", 0, "another batch"),
        ("widths", 2, "wider guesses"),
        ("widths", -1, "narrower guesses"),
    ):
        end, *words = (int(i) for i in rng.permutation(np.arange(3, 12)))
        targets = _sentences(rng, 7, end, words)
        guesses = _spoilt(rng, targets, end, words)
        if extra > 0:
            more = rng.choice(words, size=(len(KINDS), extra))
            guesses = np.concatenate([guesses, more], axis=1)
        elif extra < 0:
            guesses = guesses[:, :extra]
        inputs = {"guesses": guesses, "targets": targets, "end": end}
        yield Case(group, inputs, about)


def _cut(row, end):
    """The words before the first `end`, and whether there is one."""
    return (row[: row.index(end)], True) if end in row else (row, False)


def sentences_right_reference(guesses, targets, end):
    """Sentence by sentence, as Python lists."""
    pairs = zip(guesses.tolist(), targets.tolist(), strict=True)
    return float(np.mean([_cut(guess, end) == _cut(target, end) for guess, target in pairs]))


def _common(guesses, targets):
    width = min(guesses.shape[1], targets.shape[1])
    return guesses[:, :width], targets[:, :width]


def _until_end(rows, end):
    """True up to the first `end`, the end included."""
    ended = (rows == end).long()
    return ended.cumsum(1) - ended == 0


def share_of_words(guesses, targets, end):
    """Counts words instead of sentences."""
    a, b = _common(guesses, targets)
    counted = _until_end(b, end)
    return float(((a == b) & counted).sum() / counted.sum())


def junk_counts(guesses, targets, end):
    """Compares what comes after the end, too."""
    a, b = _common(guesses, targets)
    return float((a == b).all(dim=1).double().mean())


def end_not_compared(guesses, targets, end):
    """Compares up to the target's end, without the end itself."""
    a, b = _common(guesses, targets)
    return float(((a == b) | ~_until_end(b, end) | (b == end)).all(dim=1).double().mean())


def order_ignored(guesses, targets, end):
    """Compares bags of words."""
    pairs = zip(guesses.tolist(), targets.tolist(), strict=True)
    bags = [set(_cut(guess, end)[0]) == set(_cut(target, end)[0]) for guess, target in pairs]
    return float(np.mean(bags))


def guess_says_how_far(guesses, targets, end):
    """Compares up to the guess's end, without the end itself."""
    a, b = _common(guesses, targets)
    return float(((a == b) | ~_until_end(a, end) | (a == end)).all(dim=1).double().mean())


def lengths_only(guesses, targets, end):
    """Compares where the sentences end."""
    pairs = zip(guesses.tolist(), targets.tolist(), strict=True)
    return float(np.mean([len(_cut(g, end)[0]) == len(_cut(t, end)[0]) for g, t in pairs]))


def cut_at_last_end(guesses, targets, end):
    """Cuts the guess at the last end, not at the first."""

    def cut(row):
        return row[: len(row) - 1 - row[::-1].index(end)] if end in row else [*row, None]

    pairs = zip(guesses.tolist(), targets.tolist(), strict=True)
    return float(np.mean([cut(guess) == _cut(target, end)[0] for guess, target in pairs]))


def number_instead_of_share(guesses, targets, end):
    """Gives how many are right."""
    return sentences_right_reference(guesses, targets, end) * len(targets)


def by_masks(guesses, targets, end):
    """Right: pads to one width and compares up to the first end of each."""
    width = max(guesses.shape[1], targets.shape[1])
    a, b = (
        torch.nn.functional.pad(x, (0, width - x.shape[1]), value=-1) for x in (guesses, targets)
    )
    a, b = (x.masked_fill(~_until_end(x, end), -1) for x in (a, b))
    return (a == b).all(dim=1).double().mean()


def by_text(guesses, targets, end):
    """Right: compares as text."""

    def text(row):
        before, found, _ = (" " + " ".join(map(str, row.tolist())) + " ").partition(f" {end} ")
        return before + found

    right = sum(text(guess) == text(target) for guess, target in zip(guesses, targets, strict=True))
    return right / len(targets)


def by_loop_over_words(guesses, targets, end):
    """Right: walks through both until one of them ends."""
    right = 0
    for guess, target in zip(guesses.tolist(), targets.tolist(), strict=True):
        for a, b in zip(guess, target, strict=False):
            if a != b:
                break
            if a == end:
                right += 1
                break
    return right / len(targets)


SENTENCES_RIGHT = Exercise(
    id="sentences_right",
    title="Exact match",
    asks="Give the share of guesses that equal their target up to and including the end token.",
    parameters=("guesses", "targets", "end"),
    driver="tensor_function",
    groups={"same": Group(1, "equal widths"), "widths": Group(1, "wider and narrower guesses")},
    cases=sentences_right_cases,
    reference=sentences_right_reference,
    misconceptions=(
        Misconception(
            share_of_words,
            "Words are counted, not sentences: one wrong word makes the whole sentence wrong.",
            "What is averaged: entries or rows?",
        ),
        Misconception(
            junk_counts,
            "What comes after the end token is compared as well.",
            "Up to where do two rows have to agree?",
        ),
        Misconception(
            end_not_compared,
            "A guess that goes on after the target's last word is called right.",
            "Does the end token itself have to agree?",
        ),
        Misconception(
            order_ignored,
            "The order of the words, or how often they occur, does not count.",
            "Are 'a b' and 'b a' the same sentence?",
        ),
        Misconception(
            guess_says_how_far,
            "A guess that stops too early is called right.",
            "Whose end says how far to compare?",
        ),
        Misconception(
            lengths_only,
            "Only the lengths are compared.",
            "Does your result change when a word is exchanged for another one?",
        ),
        Misconception(
            cut_at_last_end,
            "The guess is cut at its last end token; a sentence is over at the first.",
            "What if junk after the end holds the end token again?",
        ),
        Misconception(
            number_instead_of_share,
            "This is the number of right sentences, not their share.",
            "Which values can a share take?",
        ),
    ),
    accepted=(by_masks, by_text, by_loop_over_words),
)

# --- alignment_accuracy --------------------------------------------------------------------------


def alignment_accuracy_cases(rng):
    """Sentences of unequal lengths, words without a link and with several; one head; one row."""
    s = draw_sizes(rng, "batch", "heads", among=(2, 3, 5))
    for group, batch, heads, about in (
        ("values", s.batch, s.heads, "a batch of unequal lengths"),
        ("values", s.heads, s.batch, "another batch"),
        ("edges", 1, s.heads, "one sentence"),
        ("edges", s.batch, 1, "one head"),
    ):
        target, source = (int(size) for size in rng.choice([6, 7, 8, 9], 2, replace=False))
        lengths = rng.permutation([target, *rng.integers(2, target, batch - 1)])
        words = np.arange(target) < lengths[:, None]
        scores = 2 * rng.normal(size=(batch, heads, target, source))
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        best = weights.argmax(axis=-1)
        aim = best[:, 0].copy()  # a link where a head looks, or elsewhere
        chosen = rng.integers(heads, size=aim.shape)
        aim = np.take_along_axis(best, chosen[:, None], axis=1)[:, 0]
        links = np.arange(source) == aim[..., None]
        links |= rng.random(links.shape) < 0.1
        has_link = words & (rng.random(words.shape) < 0.75)
        has_link[np.arange(batch), rng.integers(2, size=batch)] = True
        inputs = {"weights": weights, "links": links & has_link[..., None]}
        yield Case(group, inputs, about)


def alignment_accuracy_reference(weights, links):
    """Word by word."""
    weights, links = weights.numpy(), links.numpy()
    batch, heads, target, _ = weights.shape
    found = np.zeros(heads)
    for sentence, head, word in np.ndindex(batch, heads, target):
        found[head] += links[sentence, word, np.argmax(weights[sentence, head, word])]
    return torch.from_numpy(found / links.any(-1).sum())


def _hits(weights, links, best=None):
    """Whether each head's strongest source word is a link, (batch, heads, target)."""
    best = weights.argmax(dim=-1) if best is None else best
    several = links[:, None].expand(weights.shape)
    return several.gather(-1, best[..., None])[..., 0].double()


def every_row_counted(weights, links):
    """Counts words without a link as wrong."""
    return _hits(weights, links).mean(dim=(0, 2))


def mean_of_sentence_shares(weights, links):
    """Takes the share in each sentence first."""
    counted = links.any(-1)[:, None]
    return ((_hits(weights, links) * counted).sum(-1) / counted.sum(-1)).mean(0)


def source_words_choose(weights, links):
    """Takes for every source word the target word that attends to it most."""
    best = weights.argmax(dim=-2)
    hits = links.mT[:, None].expand(weights.mT.shape).gather(-1, best[..., None])[..., 0]
    counted = links.any(-2)[:, None]
    return (hits * counted).double().sum(dim=(0, 2)) / counted.sum()


def weight_on_links(weights, links):
    """Adds up the weight on links instead of asking where the largest is."""
    return (weights * links[:, None]).sum(dim=(0, 2, 3)) / links.any(-1).sum()


def heads_averaged_first(weights, links):
    """One number for the mean of all heads."""
    mean = weights.mean(dim=1, keepdim=True)
    share = (_hits(mean, links).sum(dim=(0, 2)) / links.any(-1).sum()).expand(weights.shape[1])
    return share.clone()


def one_step_late(weights, links):
    """Compares each row with the links of the word before."""
    moved = links.roll(1, dims=1)
    moved[:, 0] = False
    return _hits(weights, moved).sum(dim=(0, 2)) / links.any(-1).sum()


def only_the_first_link(weights, links):
    """Accepts the first link of a word only."""
    first = links.double().argmax(dim=-1)[:, None]
    hits = (weights.argmax(dim=-1) == first) & links.any(-1)[:, None]
    return hits.double().sum(dim=(0, 2)) / links.any(-1).sum()


def divided_by_links(weights, links):
    """Divides by the number of links, not of words that have one."""
    return _hits(weights, links).sum(dim=(0, 2)) / links.sum()


def all_heads_together(weights, links):
    """Takes one number over all heads."""
    counted = links.any(-1)[:, None].expand(_hits(weights, links).shape)
    return (_hits(weights, links) * counted).sum() / counted.sum()


def weakest_word(weights, links):
    """argmin for argmax."""
    return _hits(weights, links, weights.argmin(dim=-1)).sum(dim=(0, 2)) / links.any(-1).sum()


def by_one_hot(weights, links):
    """Right: one-hot of the argmax, times the links."""
    best = torch.nn.functional.one_hot(weights.argmax(-1), weights.shape[-1])
    return torch.einsum("bhts,bts->h", best.double(), links.double()) / links.any(-1).sum()


def by_selecting_words(weights, links):
    """Right: picks the words with a link first."""
    counted = links.any(dim=-1)
    rows, allowed = weights.transpose(1, 2)[counted], links[counted]
    hits = [
        allowed[torch.arange(len(allowed)), rows[:, h].argmax(-1)] for h in range(rows.shape[1])
    ]
    return torch.stack(hits).double().mean(dim=1)


def by_head(weights, links):
    """Right: head by head."""
    best = weights.argmax(dim=-1, keepdim=True)
    shares = []
    for head in range(weights.shape[1]):
        hit = torch.take_along_dim(links, best[:, head], dim=-1).squeeze(-1)
        shares.append(hit[links.any(dim=-1)].double().mean())
    return torch.stack(shares)


ALIGNMENT_ACCURACY = Exercise(
    id="alignment_accuracy",
    title="Does cross-attention find the word?",
    asks="Give, for each head, the share of target words whose strongest source word is a link.",
    parameters=("weights", "links"),
    driver="tensor_function",
    groups={"values": Group(2, "batches"), "edges": Group(1, "one sentence, one head")},
    cases=alignment_accuracy_cases,
    reference=alignment_accuracy_reference,
    misconceptions=(
        Misconception(
            every_row_counted,
            "Words without any link, padding among them, count as wrong.",
            "Which target words does the contract leave out?",
        ),
        Misconception(
            mean_of_sentence_shares,
            "The share is taken in each sentence first, so that words of short ones weigh more.",
            "How many divisions does the contract ask for?",
        ),
        Misconception(
            source_words_choose,
            "The largest weight is taken along the target axis: source words choose.",
            "Who has to choose whom? Which axis is that?",
        ),
        Misconception(
            weight_on_links,
            "Weights on links are added up; the contract asks where the *largest* weight lies.",
            "Each word is either right or wrong: where is that in your code?",
        ),
        Misconception(
            heads_averaged_first,
            "The heads are averaged before the question is asked.",
            "One number for each head: which axis must survive until the end?",
        ),
        Misconception(
            one_step_late,
            "Each row is compared with the links of the word before it.",
            "Row i belongs to the step that gives which word?",
        ),
        Misconception(
            only_the_first_link,
            "Only a word's first link is accepted; any of its links is right.",
            "What if two entries of a row of `links` are True?",
        ),
        Misconception(
            divided_by_links,
            "The number of links is divided by, not the number of words that have one.",
            "What is counted, words or links?",
        ),
        Misconception(
            all_heads_together,
            "All heads are counted together; the contract asks for one share each.",
            "Which shape should the result have?",
        ),
        Misconception(
            weakest_word,
            "The smallest weight is looked for.",
            "Which source word does a head attend to most?",
        ),
    ),
    accepted=(by_one_hot, by_selecting_words, by_head),
)
