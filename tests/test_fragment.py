"""The generated translation data: disjoint splits, true links, and shortcuts that fail."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from attention_course.data import _fragment_words as words
from attention_course.data.fragment import is_held_out, translation_splits

SPLITS = translation_splits(3, 4000, 400)


def test_splits_are_disjoint_repeatable_and_full():
    assert {name: len(pairs) for name, pairs in SPLITS.items()} == {
        "train": 4000,
        "test": 400,
        "new pairs": 400,
        "longer": 400,
    }
    sources = [pair.source for pairs in SPLITS.values() for pair in pairs]
    assert len(set(sources)) == len(sources)
    assert translation_splits(3, 30, 5)["train"] == SPLITS["train"][:30]
    assert translation_splits(4, 30, 5)["train"] != SPLITS["train"][:30]


def test_the_splits_are_what_they_are_called():
    for name in ("train", "test", "longer"):
        assert not any(is_held_out(d) for pair in SPLITS[name] for d in pair.described)
    assert all(any(map(is_held_out, pair.described)) for pair in SPLITS["new pairs"])
    seen = {word for pair in SPLITS["train"] for word in pair.source}
    assert seen >= {word for pairs in SPLITS.values() for pair in pairs for word in pair.source}
    means = {n: np.mean([len(p.source) for p in pairs]) for n, pairs in SPLITS.items()}
    assert means["longer"] > means["test"] + 5


def test_each_source_has_one_translation_and_every_word_a_link():
    found = defaultdict(set)
    for pairs in SPLITS.values():
        for pair in pairs:
            found[pair.source].add(pair.target)
            assert len(pair.links) == len(pair.target)
            assert all(places and max(places) < len(pair.source) for places in pair.links)
    assert all(len(targets) == 1 for targets in found.values())


@pytest.mark.parametrize(
    ("french", "english"),
    [
        ("l'", "the"),
        ("chèvre", "goat"),
        ("bel", "beautiful"),
        ("pas", "not"),
        ("parapluies", "umbrellas"),
        ("?", "?"),
    ],
)
def test_links_join_words_that_translate_each_other(french, english):
    joined = Counter(
        pair.target[i]
        for pair in SPLITS["train"]
        for i, places in enumerate(pair.links)
        for place in places
        if pair.source[place] == french
    )
    share = joined[english] / sum(joined.values())
    assert share > 0.9 or (french == "l'" and set(joined) <= {"the", "him", "her"})


def test_spelling_rules_hold():
    for pair in SPLITS["train"]:
        for first, second in zip(pair.source, pair.source[1:], strict=False):
            if first in ("l'", "n'", "qu'", "bel", "vieil", "cet"):
                assert second[0] in "aeiouhéêèâîœ", pair
            if first in ("le", "la", "ne", "que", "beau", "ce"):
                assert second[0] not in "aeiouhéêèâîœ", pair
        for first, second in zip(pair.target, pair.target[1:], strict=False):
            if first == "an":
                assert second[0] in "aeiou", pair
            if first == "a":
                assert second[0] not in "aeiou" or second == "useful", pair


def test_shortcuts_fail():
    train, test = SPLITS["train"], SPLITS["test"]
    majority = Counter(pair.target for pair in train).most_common(1)[0][0]
    assert np.mean([pair.target == majority for pair in test]) < 0.01

    counts = defaultdict(Counter)  # word by word, in the order of the source
    for pair in train:
        for i, places in enumerate(pair.links):
            counts[pair.source[min(places)]][pair.target[i]] += 1
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    guesses = [tuple(best[word] for word in pair.source if word in best) for pair in test]
    right = np.mean([guess == pair.target for guess, pair in zip(guesses, test, strict=True)])
    assert right < 0.25

    bags = defaultdict(list)  # the translation of the training sentence with the nearest bag
    for pair in train:
        bags[frozenset(pair.source)].append(pair)
    keys = list(bags)

    def nearest(pair):
        bag = frozenset(pair.source)
        return max(keys, key=lambda key: len(bag & key) / len(bag | key))

    some = test[:60]
    assert np.mean([bags[nearest(pair)][0].target == pair.target for pair in some]) < 0.1


def test_a_bag_of_words_does_not_say_who_does_what_to_whom():
    animate = {form for noun in words.NOUNS if noun.kind in "pa" for form in noun.english}
    prepositions = {english for _, english, _ in words.PREPOSITIONS}
    first_by_alphabet = []
    for pair in SPLITS["train"]:
        nouns = [word for word in pair.target if word in animate]
        if len(nouns) == 2 and nouns[0] != nouns[1] and not prepositions & set(pair.target):
            first_by_alphabet.append(nouns[0] < nouns[1])
    assert len(first_by_alphabet) > 100
    assert 0.4 < np.mean(first_by_alphabet) < 0.6


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="must not be negative; got -1 and 5"):
        translation_splits(0, -1, 5)
