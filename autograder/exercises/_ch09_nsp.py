"""Chapter 09: pairs for next-sentence prediction."""

from __future__ import annotations

import math
from itertools import chain, pairwise

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def nsp_pairs_cases(rng):
    """Documents of unequal length; one of a single sentence; draws on the borders."""

    def case(group, about, lengths, draws=None):
        ids = [int(i) for i in rng.permutation(50)]
        documents, used = [], 0
        for length in lengths:
            documents.append(ids[used : used + length])
            used += length
        count = sum(length - 1 for length in lengths)
        if draws is None:
            uniforms = rng.permutation(np.resize([0.1, 0.7, 0.3, 0.9], count))
            uniforms = np.round(uniforms + rng.uniform(-0.09, 0.09, count), 3)
        else:
            uniforms = np.resize(draws, count)
        places = rng.permutation(np.linspace(0.02, 0.97, count))
        return Case(
            group,
            {
                "documents": documents,
                "uniforms": [float(u) for u in uniforms],
                "places": [float(round(v, 3)) for v in places],
            },
            about,
        )

    first, second, third = (int(n) for n in rng.permutation([3, 4, 6]))
    yield case("pairs", "three documents", [first, second, third])
    yield case("pairs", "all true neighbours", [third, first], draws=[0.2, 0.4])
    yield case("random", "all at random", [second, third, first], draws=[0.6, 0.8])
    yield case("random", "a draw of exactly one half", [first, 2, second], draws=[0.5, 0.499])
    yield case("random", "a document of one sentence", [second, 1, third, 2])
    yield case("random", "no pair at all", [1, 1])


def nsp_pairs_reference(documents, uniforms, places):
    """With positions in the whole collection."""
    sentences = [(d, s) for d, document in enumerate(documents) for s in document]
    firsts, seconds, labels = [], [], []
    draws = iter(zip(uniforms, places, strict=True))
    for (d, sentence), (after_d, after) in pairwise(sentences):
        if d != after_d:
            continue
        uniform, place = next(draws)
        others = [s for number, s in sentences if number != d]
        is_random = uniform >= 0.5
        firsts.append(sentence)
        seconds.append(others[math.floor(place * len(others))] if is_random else after)
        labels.append(int(is_random))
    return firsts, seconds, labels


def _pairs(
    documents,
    uniforms,
    places,
    true=lambda u: u < 0.5,
    pool=lambda documents, d, i: [s for e, doc in enumerate(documents) if e != d for s in doc],
    number=lambda place, count: int(place * count),
    label=lambda is_true: int(not is_true),
    keep_first=lambda first, second: (first, second),
    step=1,
):
    firsts, seconds, labels, k = [], [], [], 0
    for d, document in enumerate(documents):
        for i in range(0, len(document) - 1, step):
            is_true = true(uniforms[k])
            second = document[i + 1]
            if not is_true:
                options = pool(documents, d, i)
                second = options[number(places[k], len(options)) % len(options)]
            first, second = keep_first(document[i], second)
            firsts.append(first)
            seconds.append(second)
            labels.append(label(is_true))
            k += 1
    return firsts, seconds, labels


def labels_reversed(**given):
    """1 for a true neighbour."""
    return _pairs(**given, label=int)


def always_true(**given):
    """No random second sentence."""
    return _pairs(**given, true=lambda u: True)


def true_above_one_half(**given):
    """True neighbours for large draws."""
    return _pairs(**given, true=lambda u: u >= 0.5)


def one_half_is_true(**given):
    """u ≤ ½ is a true neighbour."""
    return _pairs(**given, true=lambda u: u <= 0.5)


def random_from_everywhere(**given):
    """Random sentences may come from the same document."""
    return _pairs(**given, pool=lambda documents, d, i: [s for doc in documents for s in doc])


def random_from_the_same_document(**given):
    """Random sentences come from the same document."""
    return _pairs(**given, pool=lambda documents, d, i: documents[d])


def random_from_the_next_document(**given):
    """Random sentences come from the document behind."""
    return _pairs(**given, pool=lambda documents, d, i: documents[(d + 1) % len(documents)])


def rounded_place(**given):
    """Rounds to the nearest place."""
    return _pairs(**given, number=lambda place, count: round(place * count))


def place_among_one_less(**given):
    """Multiplies by one less than there are."""
    return _pairs(**given, number=lambda place, count: int(place * (count - 1)))


def pairs_do_not_overlap(**given):
    """Every sentence is in one pair only."""
    return _pairs(**given, step=2)


def label_zero_for_all(**given):
    """Random pairs are labelled as true ones."""
    return _pairs(**given, label=lambda is_true: 0)


def pairs_turned_round(**given):
    """The second sentence comes first."""
    return _pairs(**given, keep_first=lambda first, second: (second, first))


def across_documents(documents, uniforms, places):
    """The last sentence of a document is paired with the first of the next."""
    whole = [sentence for document in documents for sentence in document]
    firsts, seconds, labels = [], [], []
    for k, (first, second) in enumerate(pairwise(whole)):
        u, place = uniforms[k % len(uniforms)], places[k % len(places)]
        home = next(document for document in documents if first in document)
        others = [sentence for sentence in whole if sentence not in home]
        firsts.append(first)
        seconds.append(second if u < 0.5 else others[int(place * len(others))])
        labels.append(int(u >= 0.5))
    return firsts, seconds, labels


def by_slicing(documents, uniforms, places):
    """Right: zips each document with itself."""
    draws, rows = list(zip(uniforms, places, strict=True)), []
    for d, document in enumerate(documents):
        others = list(chain(*documents[:d], *documents[d + 1 :]))
        for first, after in pairwise(document):
            u, place = draws.pop(0)
            if u < 0.5:
                rows.append((first, after, 0))
            else:
                rows.append((first, others[int(len(others) * place)], 1))
    return tuple(zip(*rows, strict=True)) if rows else ([], [], [])


def by_comprehensions(documents, uniforms, places):
    """Right: one list after the other."""
    starts = [(d, i) for d, document in enumerate(documents) for i in range(len(document) - 1)]
    labels = [0 if u < 0.5 else 1 for u in uniforms[: len(starts)]]
    pools = [
        [s for e in range(len(documents)) if e != d for s in documents[e]]
        for d in range(len(documents))
    ]
    seconds = [
        pools[d][math.floor(place * len(pools[d]))] if label else documents[d][i + 1]
        for (d, i), label, place in zip(starts, labels, places, strict=True)
    ]
    return [documents[d][i] for d, i in starts], seconds, labels


def by_flat_list(documents, uniforms, places):
    """Right: one flat list and where each document begins and ends."""
    flat, ends = [], []
    for document in documents:
        flat += document
        ends.append(len(flat))
    firsts, seconds, labels = [], [], []
    start = 0
    for end in ends:
        for i in range(start, end - 1):
            k = len(labels)
            other = int(places[k] * (len(flat) - (end - start)))
            other = other if other < start else other + end - start
            labels.append(0 if uniforms[k] < 0.5 else 1)
            firsts.append(flat[i])
            seconds.append(flat[other] if labels[k] else flat[i + 1])
        start = end
    return firsts, seconds, labels


NSP_PAIRS = Exercise(
    id="nsp_pairs",
    title="Pairs for next-sentence prediction",
    asks="Pair each sentence with its neighbour or with one of another document; label the pairs.",
    parameters=("documents", "uniforms", "places"),
    outputs=("firsts", "seconds", "labels"),
    driver="sequence_function",
    groups={
        "pairs": Group(1, "three documents; true neighbours"),
        "random": Group(1, "random second sentences, short documents"),
    },
    cases=nsp_pairs_cases,
    reference=nsp_pairs_reference,
    misconceptions=(
        Misconception(
            labels_reversed,
            "The labels are the wrong way round.",
            "Which label has a true neighbour here?",
        ),
        Misconception(
            always_true,
            "Every second sentence is the true neighbour.",
            "What do `uniforms` decide?",
        ),
        Misconception(
            true_above_one_half,
            "Draws of one half and more gave true neighbours.",
            "Which draws give the neighbour?",
        ),
        Misconception(
            one_half_is_true,
            "A draw of exactly one half gave a true neighbour.",
            "Is the border part of the first half or of the second?",
        ),
        Misconception(
            random_from_everywhere,
            "A random sentence may come from the same document.",
            "Could the random sentence be the true neighbour by accident?",
        ),
        Misconception(
            random_from_the_same_document,
            "Random sentences come from the same document.",
            "Which documents do random sentences come from?",
        ),
        Misconception(
            random_from_the_next_document,
            "Random sentences come from one other document only.",
            "*All* other documents, one behind the other.",
        ),
        Misconception(
            rounded_place,
            "The place was rounded to the nearest number.",
            "Round down: which is the largest place that can come out?",
        ),
        Misconception(
            place_among_one_less,
            "The draw was multiplied by one less than there are sentences.",
            "A draw is below 1: can the product reach the count itself?",
        ),
        Misconception(
            pairs_do_not_overlap,
            "Each sentence is in one pair only.",
            "How many pairs does a document of four sentences give?",
        ),
        Misconception(
            label_zero_for_all,
            "Random pairs have the label of true ones.",
            "What is the label if the second sentence is random?",
        ),
        Misconception(
            pairs_turned_round,
            "The two sentences of a pair are exchanged.",
            "Which of the two comes first in the text?",
        ),
        Misconception(
            across_documents,
            "The last sentence of a document was paired with the first of the next document.",
            "How many neighbours has the last sentence of a document?",
        ),
    ),
    accepted=(by_slicing, by_comprehensions, by_flat_list),
    equivalent_mutants={
        f"`firsts, seconds, labels = ([], [], [])` → `{other} = ([], [], [])`": "three empty "
        "lists: which is which is decided later"
        for other in ("seconds, firsts, labels", "firsts, labels, seconds")
    },
)
