"""Chapter 09: the corruption of masked language modelling, 80 / 10 / 10."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import IGNORED, draw_padding_mask


def mlm_corrupt_cases(rng):
    """Long and short rows, padded; draws on the borders; rows without any word."""

    def case(group, about, batch, length, percent, padded=True, borders=False, empty=False):
        ids = [int(i) for i in rng.permutation(30)]
        special, mask_token, words = ids[:4], ids[3], ids[4:]
        cls, separator, padding = special[:3]
        tokens = rng.choice(words, size=(batch, length))
        seen = draw_padding_mask(rng, batch, length - 3) if padded else np.ones((batch, length - 3))
        lengths = seen.sum(1).astype(int) + 3
        tokens[:, 0] = cls
        for row, end in enumerate(lengths):
            tokens[row, end - 1] = separator
            tokens[row, end:] = padding
        if empty:
            tokens[0, 1:] = padding
        uniforms = rng.integers(0, 10_000, size=(batch, length)) / 10_000
        if borders:  # every branch for certain, and both borders
            values = [0.8, 0.9, 0.1, 0.85, 0.95, 0.79, 0.899]
            uniforms = np.stack([rng.permutation(np.resize(values, length)) for _ in range(batch)])
        count = batch * length
        return Case(
            group,
            {
                "tokens": tokens.astype(np.int64),
                "special": rng.permutation(special).astype(np.int64),
                "percent": percent,
                "scores": (rng.permutation(count).reshape(batch, length) / count).round(3),
                "uniforms": uniforms,
                "replacements": rng.choice(words, size=(batch, length)).astype(np.int64),
                "mask_token": mask_token,
            },
            about,
        )

    yield case("all", "every word is selected, draws on the borders", 2, 12, 100, borders=True)
    yield case("all", "every word is selected", 2, 11, 100)
    yield case("some", "15 % of long rows", 2, 19, 15, padded=False, borders=True)
    yield case("some", "40 % of rows of unequal lengths", 3, 12, 40, borders=True)
    yield case("some", "a third of other rows, rounded down", 2, 14, 33)
    yield case("few", "short rows: at least one word each", 3, 8, 15)
    yield case("few", "a row without a word", 3, 9, 15, empty=True)


def mlm_corrupt_reference(tokens, special, percent, scores, uniforms, replacements, mask_token):
    """Position by position, in Python."""
    inputs, labels, never = tokens.tolist(), [], set(special.tolist())
    for row, words in enumerate(tokens.tolist()):
        places = [place for place, word in enumerate(words) if word not in never]
        places.sort(key=lambda place, row=row: float(scores[row, place]))
        chosen = places[: max(1, percent * len(places) // 100)]
        labels.append([word if p in chosen else IGNORED for p, word in enumerate(words)])
        for place in chosen:
            draw = float(uniforms[row, place])
            if draw < 0.8:
                inputs[row][place] = mask_token
            elif draw < 0.9:
                inputs[row][place] = int(replacements[row, place])
    return torch.tensor(inputs), torch.tensor(labels)


def _words(tokens, special):
    return ~torch.isin(tokens, special)


def _select(words, scores, percent, least=1, round_up=0, whole_rows=False, largest=False):
    count = words.sum(dim=1)
    if whole_rows:
        count = torch.full_like(count, words.shape[1])
    wanted = ((percent * count + round_up) // 100).clamp(min=least)
    order = -scores if largest else scores
    rank = order.masked_fill(~words, torch.inf).argsort(dim=1).argsort(dim=1)
    return (rank < wanted[:, None]) & words


def _corrupt(
    tokens,
    special,
    percent,
    scores,
    uniforms,
    replacements,
    mask_token,
    select=_select,
    words=_words,
    borders=(0.8, 0.9),
    everywhere=False,
    label=lambda tokens, chosen, inputs: tokens.masked_fill(~chosen, IGNORED),
):
    chosen = select(words(tokens, special), scores, percent)
    masked = chosen & (uniforms < borders[0])
    swapped = (uniforms >= borders[0]) & (uniforms < borders[1])
    if not everywhere:
        swapped &= chosen
    inputs = torch.where(masked, mask_token, torch.where(swapped, replacements, tokens))
    return inputs, label(tokens, chosen, inputs)


def every_token_labelled(**given):
    """Labels every token."""
    return _corrupt(**given, label=lambda tokens, chosen, inputs: tokens.clone())


def labels_read_afterwards(**given):
    """Reads the labels from the corrupted inputs."""
    return _corrupt(
        **given, label=lambda tokens, chosen, inputs: inputs.masked_fill(~chosen, IGNORED)
    )


def only_changed_labelled(**given):
    """The kept ones get no label."""
    return _corrupt(
        **given,
        label=lambda tokens, chosen, inputs: tokens.masked_fill(inputs == tokens, IGNORED),
    )


def specials_selected(**given):
    """Selects among all places, [CLS] and padding too."""
    return _corrupt(**given, words=lambda tokens, special: torch.ones_like(tokens).bool())


def padding_selected(**given):
    """Knows one special token only: what stands at the beginning of each row."""
    return _corrupt(**given, words=lambda tokens, special: tokens != tokens[:, :1])


def always_masked(**given):
    """Every selected word becomes [MASK]."""
    return _corrupt(**given, borders=(2.0, 2.0))


def never_kept(**given):
    """80 / 20 / 0."""
    return _corrupt(**given, borders=(0.8, 2.0))


def never_replaced(**given):
    """80 / 0 / 20."""
    return _corrupt(**given, borders=(0.8, 0.8))


def masked_at_the_border(**given):
    """u ≤ 0.8 gives a mask, u ≤ 0.9 a replacement."""
    after = np.nextafter(0.8, 1), np.nextafter(0.9, 1)
    return _corrupt(**given, borders=after)


def replaced_outside_the_selection(**given):
    """Replaces words that were not selected."""
    return _corrupt(**given, everywhere=True)


def kept_and_replaced_exchanged(**given):
    """Keeps from 0.8 to 0.9 and replaces above."""
    turned = torch.where(given["uniforms"] >= 0.8, 1.7 - given["uniforms"], given["uniforms"])
    turned = torch.where(given["uniforms"] >= 0.9, 0.85, turned)
    turned = torch.where((given["uniforms"] >= 0.8) & (given["uniforms"] < 0.9), 0.95, turned)
    return _corrupt(**{**given, "uniforms": turned})


def largest_scores_selected(**given):
    """Selects the words of the largest scores."""
    return _corrupt(**given, select=lambda *x: _select(*x, largest=True))


def scores_as_probabilities(**given):
    """Selects wherever the score is below the share."""
    return _corrupt(**given, select=lambda words, scores, percent: words & (scores < percent / 100))


def none_in_short_rows(**given):
    """Forgets the minimum of one."""
    return _corrupt(**given, select=lambda *x: _select(*x, least=0))


def rounded_up(**given):
    """Rounds up."""
    return _corrupt(**given, select=lambda *x: _select(*x, round_up=99))


def share_of_the_whole_row(**given):
    """Takes the share of all places, padding included."""
    return _corrupt(**given, select=lambda *x: _select(*x, whole_rows=True))


def share_of_the_whole_batch(**given):
    """Selects over all rows at once."""

    def select(words, scores, percent):
        return _select(words.reshape(1, -1), scores.reshape(1, -1), percent).reshape(words.shape)

    return _corrupt(**given, select=select)


def written_in_place(**given):
    """Writes into the caller's tokens."""
    inputs, labels = _corrupt(**given)
    given["tokens"][:] = inputs
    return given["tokens"], labels


def by_topk(tokens, special, percent, scores, uniforms, replacements, mask_token):
    """Right: row by row with topk, then index assignment."""
    inputs, labels = tokens.clone(), torch.full_like(tokens, IGNORED)
    for row in range(len(tokens)):
        places = torch.nonzero((tokens[row][:, None] != special).all(1))[:, 0]
        if len(places) == 0:
            continue
        count = max(1, len(places) * percent // 100)
        chosen = places[scores[row, places].topk(count, largest=False).indices]
        labels[row, chosen] = tokens[row, chosen]
        draws = uniforms[row, chosen]
        inputs[row, chosen[draws < 0.8]] = mask_token
        swapped = chosen[(draws >= 0.8) & (draws < 0.9)]
        inputs[row, swapped] = replacements[row, swapped]
    return inputs, labels


def by_threshold(tokens, special, percent, scores, uniforms, replacements, mask_token):
    """Right: the last score that is selected as a threshold."""
    words = sum(tokens == number for number in special) == 0
    hidden = torch.where(words, scores, torch.inf)
    counts = torch.clamp(percent * words.sum(1, keepdim=True) // 100, min=1)
    limit = hidden.sort(dim=1).values.gather(1, counts - 1)
    chosen = words & (hidden <= limit)
    inputs = tokens.clone()
    inputs[chosen & (uniforms < 0.8)] = mask_token
    swapped = chosen & (uniforms >= 0.8) & (uniforms < 0.9)
    inputs[swapped] = replacements[swapped]
    return inputs, torch.where(chosen, tokens, IGNORED)


def by_python_loop(tokens, special, percent, scores, uniforms, replacements, mask_token):
    """Right: plain loops over a copy."""
    inputs, labels = tokens.clone(), tokens.clone()
    for row in range(tokens.shape[0]):
        open_places = {i for i, t in enumerate(tokens[row].tolist()) if t not in special.tolist()}
        chosen = []
        while open_places - set(chosen) and len(chosen) < max(1, percent * len(open_places) // 100):
            chosen.append(min(open_places - set(chosen), key=lambda i: scores[row, i].item()))
        for place in range(tokens.shape[1]):
            if place not in chosen:
                labels[row, place] = IGNORED
            elif uniforms[row, place] < 0.8:
                inputs[row, place] = mask_token
            elif uniforms[row, place] < 0.9:
                inputs[row, place] = replacements[row, place]
    return inputs, labels


MLM_CORRUPT = Exercise(
    id="mlm_corrupt",
    title="Masked language modelling: corrupt",
    asks="Select 15 % of the words; mask 80 %, replace 10 %, keep 10 % of them; make labels.",
    parameters=(
        *("tokens", "special", "percent", "scores"),
        *("uniforms", "replacements", "mask_token"),
    ),
    outputs=("inputs", "labels"),
    driver="tensor_function",
    groups={
        "all": Group(2, "every word selected: 80 / 10 / 10"),
        "some": Group(1, "a share of the words"),
        "few": Group(1, "short rows, and rows without a word"),
    },
    cases=mlm_corrupt_cases,
    reference=mlm_corrupt_reference,
    misconceptions=(
        Misconception(
            every_token_labelled,
            "Every token has a label; only the selected ones should.",
            "What stands in `labels` where nothing was selected?",
        ),
        Misconception(
            labels_read_afterwards,
            "The labels were read after the corruption: they ask for [MASK].",
            "Which word shall the model find, the one in `tokens` or the one in `inputs`?",
        ),
        Misconception(
            only_changed_labelled,
            "Words that were selected and kept have no label.",
            "Does a selected word that stays as it is count in the loss?",
        ),
        Misconception(
            specials_selected,
            "Special tokens were selected, padding among them.",
            "Among which places may you select?",
        ),
        Misconception(
            padding_selected,
            "Only [CLS] was left out; there are other special tokens.",
            "`special` lists all of them.",
        ),
        Misconception(
            always_masked,
            "Every selected word became [MASK].",
            "What happens for draws of 0.8 and more?",
        ),
        Misconception(
            never_kept,
            "No selected word was kept: draws of 0.9 and more were replaced.",
            "There are three cases.",
        ),
        Misconception(
            never_replaced,
            "No selected word was replaced by another one.",
            "What is `replacements` for?",
        ),
        Misconception(
            masked_at_the_border,
            "A draw of exactly 0.8 (or 0.9) went to the wrong side.",
            "Is the border part of the first range or of the second?",
        ),
        Misconception(
            replaced_outside_the_selection,
            "Words that were not selected were replaced, too.",
            "Which places may change at all?",
        ),
        Misconception(
            kept_and_replaced_exchanged,
            "From 0.8 to 0.9 words were kept, and above they were replaced.",
            "Which range belongs to `replacements`?",
        ),
        Misconception(
            largest_scores_selected,
            "The words with the largest scores were selected.",
            "Smallest or largest scores first?",
        ),
        Misconception(
            scores_as_probabilities,
            "Every word was selected whose score is below the share: how many, is then chance.",
            "The exercise says how many words of a row are selected.",
        ),
        Misconception(
            none_in_short_rows,
            "Nothing was selected in a short row.",
            "What is 15 % of 5 words, rounded down? And what does the exercise add?",
        ),
        Misconception(
            rounded_up,
            "The number of selected words was rounded up.",
            "`//` rounds down.",
        ),
        Misconception(
            share_of_the_whole_row,
            "The share was taken of the whole row, special tokens and padding included.",
            "15 % of what?",
        ),
        Misconception(
            share_of_the_whole_batch,
            "The share was taken of the whole batch: some rows got more than others.",
            "Each row by itself.",
        ),
        Misconception(
            written_in_place,
            "The caller's `tokens` were changed.",
            "Work on a copy, or use `torch.where`.",
        ),
    ),
    accepted=(by_topk, by_threshold, by_python_loop),
)
