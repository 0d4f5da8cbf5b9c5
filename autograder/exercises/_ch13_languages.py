"""Exercise of chapter 13 on XLM's pairs of sentences in two languages."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

IGNORED = -100


def pack_translation_cases(rng):
    """Sentences of different lengths; chosen places in both, separators among them."""
    lengths = [int(n) for n in rng.permutation([3, 4, 5, 6])]
    for group, source, target, about in (
        ("packed", lengths[0], lengths[1], "two sentences"),
        ("packed", lengths[2], lengths[3], "two others, other ids"),
        ("edges", 1, lengths[0], "a source of one word"),
    ):
        separator, mask, *words = (int(i) for i in 10 + rng.permutation(50))
        total = source + target + 4
        edges = (0, source + 1, source + 2, total - 1)
        inside = [place for place in range(total) if place not in edges]
        chosen = {inside[0], inside[-1], *(int(p) for p in rng.choice(inside, 2))}
        chosen |= {int(edges[rng.integers(1, 3)])}
        first = int(rng.integers(2, 6))
        inputs = {
            "source": words[:source],
            "target": words[source : source + target],
            "separator": separator,
            "mask": mask,
            "languages": [first, first + int(rng.integers(1, 4))],
            "chosen": [int(place) for place in rng.permutation(sorted(chosen))],
        }
        yield Case(group, inputs, about)


def pack_translation_reference(source, target, separator, mask, languages, chosen):
    """Column by column of a table of places."""
    columns = []
    for language, words in zip(languages, (source, target), strict=True):
        for position, word in enumerate([separator, *words, separator]):
            inner = 0 < position <= len(words)
            hidden = inner and len(columns) in chosen
            columns.append((mask if hidden else word, position, language, word if hidden else -100))
    return tuple(list(row) for row in zip(*columns, strict=True))


def _packed(
    source,
    target,
    separator,
    mask,
    languages,
    chosen,
    front=True,
    middle=2,
    restart=True,
    keep_separators=True,
    split=None,
    label=lambda word, hidden: word if hidden else IGNORED,
    from_zero=True,
):
    first = [separator] * front + [*source, separator]
    second = [separator] * (middle - 1) + [*target, separator]
    words = first + second
    lengths = len(first), len(second)
    positions = [*range(lengths[0]), *range(lengths[1])] if restart else [*range(len(words))]
    border = lengths[0] if split is None else lengths[0] + split
    of = [languages[0]] * border + [languages[1]] * (len(words) - border)
    edges = {place for place, word in enumerate(words) if word == separator}
    hidden = [
        place in chosen and not (keep_separators and place in edges) for place in range(len(words))
    ]
    tokens = [mask if gone else word for word, gone in zip(words, hidden, strict=True)]
    labels = [label(word, gone) for word, gone in zip(words, hidden, strict=True)]
    return tokens, [p + (not from_zero) for p in positions], of, labels


def positions_run_on(**given):
    """Positions are not reset."""
    return _packed(**given, restart=False)


def one_separator_between(**given):
    """One separator in the middle."""
    return _packed(**given, middle=1)


def no_separator_in_front(**given):
    """The row starts with a word."""
    return _packed(**given, front=False)


def separators_masked(**given):
    """Separators are hidden like words."""
    return _packed(**given, keep_separators=False)


def one_language(**given):
    """All places get the first language."""
    return _packed(**given, split=len(given["target"]) + 2)


def language_changes_late(**given):
    """The target's first separator belongs to the source."""
    return _packed(**given, split=1)


def language_changes_early(**given):
    """The source's last separator belongs to the target."""
    return _packed(**given, split=-1)


def labels_everywhere(**given):
    """Every place has a label."""
    return _packed(**given, label=lambda word, hidden: word)


def labels_after_masking(**given):
    """The label is what stands there after the masking."""
    return _packed(**given, label=lambda word, hidden: given["mask"] if hidden else IGNORED)


def labels_of_the_rest(**given):
    """Labels where nothing is hidden."""
    return _packed(**given, label=lambda word, hidden: IGNORED if hidden else word)


def source_never_masked(**given):
    """Hides words of the target only."""
    chosen = [place for place in given["chosen"] if place > len(given["source"]) + 1]
    return _packed(**{**given, "chosen": chosen})


def positions_from_one(**given):
    """Counts positions from 1."""
    return _packed(**given, from_zero=False)


def packed_by_parts(**given):
    """Right: joined from two halves."""
    return _packed(**given)


def packed_in_numpy(source, target, separator, mask, languages, chosen):
    """Right: arrays and a boolean mask."""
    words = np.array([separator, *source, separator, separator, *target, separator])
    positions = np.r_[0 : len(source) + 2, 0 : len(target) + 2]
    language = np.repeat(languages, [len(source) + 2, len(target) + 2])
    hidden = np.isin(np.arange(len(words)), chosen) & (words != separator)
    tokens = np.where(hidden, mask, words).tolist()
    labels = np.where(hidden, words, -100).tolist()
    return tokens, positions.tolist(), language.tolist(), labels


def packed_word_by_word(source, target, separator, mask, languages, chosen):
    """Right: masks afterwards, in place of its own lists."""
    tokens, positions, of = [], [], []
    for language, words in ((languages[0], source), (languages[1], target)):
        tokens += [separator, *words, separator]
        positions += range(len(words) + 2)
        of += [language] * (len(words) + 2)
    labels = [-100] * len(tokens)
    for place in chosen:
        if tokens[place] not in (separator, mask):
            labels[place], tokens[place] = tokens[place], mask
    return tokens, positions, of, labels


PACK_TRANSLATION = Exercise(
    id="pack_translation",
    title="Two languages in one row",
    asks="Pack a sentence and its translation for a masked model: XLM's translation objective.",
    parameters=("source", "target", "separator", "mask", "languages", "chosen"),
    outputs=("tokens", "positions", "languages", "labels"),
    driver="sequence_function",
    groups={
        "packed": Group(2, "two sentences, words hidden in both"),
        "edges": Group(1, "a source of one word"),
    },
    cases=pack_translation_cases,
    reference=pack_translation_reference,
    misconceptions=(
        Misconception(
            positions_run_on,
            "Positions run on in the target; they start again at 0.",
            "Which places of the two sentences should look alike to the model?",
        ),
        Misconception(
            one_separator_between,
            "There is one separator between the sentences; each has two of its own.",
            "Count the separators in the example.",
        ),
        Misconception(
            no_separator_in_front,
            "The separator in front of the source is missing.",
            "Count the separators in the example.",
        ),
        Misconception(
            separators_masked,
            "A separator was hidden.",
            "What becomes of a chosen place that holds a separator?",
        ),
        Misconception(
            one_language,
            "All places have the source's language.",
            "`languages` holds two numbers.",
        ),
        Misconception(
            language_changes_late,
            "The separator in front of the target has the source's language.",
            "Each sentence owns the separators on both its sides.",
        ),
        Misconception(
            language_changes_early,
            "The separator behind the source has the target's language.",
            "Each sentence owns the separators on both its sides.",
        ),
        Misconception(
            labels_everywhere,
            "Every place has a label, hidden or not.",
            "Which places does the loss ask about?",
        ),
        Misconception(
            labels_after_masking,
            "The labels are read after the masking: the loss would ask for the mask itself.",
            "What is the model to guess at a hidden place?",
        ),
        Misconception(
            labels_of_the_rest,
            "Labels stand where nothing is hidden.",
            "Which places does the loss ask about?",
        ),
        Misconception(
            source_never_masked,
            "Only words of the target are hidden.",
            "Hidden words in *both* languages: each can be found in the other one.",
        ),
        Misconception(
            positions_from_one,
            "Positions start at 1.",
            "Which position has the first separator?",
        ),
    ),
    accepted=(packed_by_parts, packed_in_numpy, packed_word_by_word),
)
