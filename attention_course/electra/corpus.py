"""French sentences as numbers, with tags for each word and forms that do not agree."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_course.data import _fragment_words as lexicon
from attention_course.data.fragment import VOWELS, sentences

PADDING, MASK, START = range(3)
SPECIAL = ("[pad]", "[mask]", "[start]")
FIRST_WORD = len(SPECIAL)  # ids from here on are words
TAGS = 13  # outside, and role (3) × gender (2) × number (2)
UNTAGGED = -100  # the start token has no tag
LONGEST = 8  # words of a sentence

_PLURAL_DETERMINERS = frozenset(("les", "des", "de", "ces", "ses", "leurs"))
_DETERMINERS = _PLURAL_DETERMINERS | frozenset(
    ("le", "la", "l'", "un", "une", "ce", "cet", "cette", "son", "sa", "leur")
)
_PREPOSITIONS = frozenset(french for french, *_ in lexicon.PREPOSITIONS)
_VERBS = lexicon.TRANSITIVE + lexicon.INTRANSITIVE
_FINITE = frozenset(form for verb in _VERBS for form in verb.french) | {"a", "ont"}
_NOUNS = {
    form: (noun.gender == "f", plural)
    for noun in lexicon.NOUNS
    for plural, form in reversed(list(enumerate(noun.french)))  # souris: singular or plural
}


def _forms(adjective: lexicon.Adjective) -> set[str]:
    return {*adjective.french, adjective.before_vowel} - {""}


_BEFORE = frozenset(form for adjective in lexicon.BEFORE for form in _forms(adjective))
_AFTER = frozenset(form for adjective in lexicon.AFTER for form in _forms(adjective))


def _fewer_words() -> dict[str, str]:
    """Map each form to the same form of the first word that agrees and combines as it does.

    Nouns and verbs of a kind that begin alike (vowel or not) become one, and so do adjectives. One
    form is spelled like another of its verb (peint), so a few sentences get a wrong one: see
    `has_slip`.
    """
    representatives, first = {}, {}

    def merge(key: tuple, forms: Sequence[str]) -> None:
        kept = first.setdefault(key, forms)
        for form, other in zip(forms, kept, strict=True):
            representatives.setdefault(form, other)

    for noun in lexicon.NOUNS:
        merge((noun.gender, noun.kind, noun.french[0][0] in VOWELS), noun.french)
    for verb in _VERBS:
        forms = (*verb.french, verb.participle, f"{verb.participle}e", f"{verb.participle}s")
        merge((verb.objects, verb.french[0][0] in VOWELS), forms)
    for adjective in lexicon.BEFORE + lexicon.AFTER:
        alike = adjective.french[0] == adjective.french[1]
        vowel = adjective.french[0][0] in VOWELS
        forms = (*adjective.french, adjective.before_vowel)
        merge((adjective.kinds, alike, vowel, bool(adjective.before_vowel)), forms)
    return representatives


def wrong_forms() -> dict[str, list[str]]:
    """Give the other forms of each adjective, and of each verb in the present."""
    others = defaultdict(set)
    for forms in [
        *map(_forms, lexicon.BEFORE + lexicon.AFTER),
        *(set(verb.french) for verb in _VERBS),
    ]:
        for form in forms:
            others[form] |= forms - {form}
    return {form: sorted(rest) for form, rest in others.items() if rest}


def tags(sentence: Sequence[str]) -> list[int]:
    """Tag each word: 0 outside noun phrases, else 1 + 4 · role + 2 · feminine + plural.

    Roles are 0 subject, 1 object, 2 after a preposition. A noun that is spelled alike in both
    numbers gets that of its determiner.
    """
    found, place, verb_seen = [0] * len(sentence), 0, False
    while place < len(sentence):
        word, noun = sentence[place], place + 1
        while noun < len(sentence) and sentence[noun] in _BEFORE:
            noun += 1
        if word not in _DETERMINERS or noun == len(sentence) or sentence[noun] not in _NOUNS:
            verb_seen |= word in _FINITE
            place += 1
            continue
        end = noun + 1
        while end < len(sentence) and (sentence[end] in _AFTER or sentence[end] == "et"):
            end += 1
        after_preposition = place > 0 and sentence[place - 1] in _PREPOSITIONS
        role = 2 if after_preposition else int(verb_seen)
        feminine, plural = _NOUNS[sentence[noun]]
        plural = plural or word in _PLURAL_DETERMINERS
        found[place:end] = [1 + 4 * role + 2 * feminine + plural] * (end - place)
        place = end
    return found


def has_slip(sentence: Sequence[str]) -> bool:
    """Whether merging words left a wrong form, "a voit" for "a vu": in 1.5 % of the sentences."""
    pairs = set(itertools.pairwise(sentence))
    return any((before, "voit") in pairs for before in ("a", "ont", "pas"))


@dataclass(frozen=True)
class Corpus:
    """Sentences as ids, each with a start token in front.

    `train` is what is read without labels; `labelled` and `test` never occur in it and come with
    one tag for each id. `others[i]` holds the ids of the other forms of word i.
    """

    words: list[str]
    train: list[list[int]]
    labelled: list[tuple[list[int], list[int]]]
    test: list[tuple[list[int], list[int]]]
    others: dict[int, list[int]]

    def sentence(self, ids: Sequence[int]) -> list[str]:
        """Give the words of ids, without start token and padding."""
        return [self.words[i] for i in ids if i >= FIRST_WORD or i == MASK]

    def spoiled(self, ids: Sequence[int], rng: np.random.Generator) -> tuple[list[int], int] | None:
        """Put one adjective or verb into another form: (ids, place); None if there is none."""
        places = [place for place, i in enumerate(ids) if i in self.others]
        if not places:
            return None
        place = int(rng.choice(places))
        spoiled = list(ids)
        spoiled[place] = int(rng.choice(self.others[ids[place]]))
        return spoiled, place


def _simpler_sentences(seed: int) -> Iterator[tuple[str, ...]]:
    """Yield short French sentences of fewer words, none of them twice."""
    simpler, seen = _fewer_words(), set()
    for pair in sentences(seed):
        sentence = tuple(simpler.get(word, word) for word in pair.source)
        if len(sentence) <= LONGEST and sentence not in seen:
            seen.add(sentence)
            yield sentence


def make_corpus(seed: int = 0, train: int = 20_000, labelled: int = 2_000, test: int = 600):
    """Draw a corpus of short sentences of the French side, none of them twice.

    There is one word for each way to agree and combine: with the whole lexicon, training would take
    several times as long.

    Raises:
        ValueError: if a number of sentences is not positive.
    """
    if min(train, labelled, test) < 1:
        raise ValueError(f"give at least one sentence for each part; got {train, labelled, test}.")
    count = train + labelled + test
    drawn = list(itertools.islice(_simpler_sentences(seed), count))
    words = [*SPECIAL, *sorted({word for sentence in drawn for word in sentence})]
    known = {
        form: [other for other in rest if other in words]
        for form, rest in wrong_forms().items()
        if form in words
    }
    others = {form: rest for form, rest in known.items() if rest}
    index = {word: i for i, word in enumerate(words)}
    coded = [[START, *(index[word] for word in sentence)] for sentence in drawn]
    tagged = [
        (ids, [UNTAGGED, *tags(sentence)])
        for ids, sentence in zip(coded[: labelled + test], drawn, strict=False)
    ]
    return Corpus(
        words=words,
        train=coded[labelled + test :],
        labelled=tagged[test:],
        test=tagged[:test],
        others={index[word]: [index[other] for other in rest] for word, rest in others.items()},
    )


def padded(rows: Sequence[Sequence[int]], filler: int = PADDING) -> torch.Tensor:
    """Put rows of unequal length into one int64 tensor (rows, longest)."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows])


def batches(
    rows: Sequence[Sequence[int]], size: int, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """Yield batches without end, each of `size` rows of similar length, (size, longest)."""
    pool = 50 * size
    while True:
        order = torch.randperm(len(rows), generator=generator).tolist()
        groups = []
        for first in range(0, len(order), pool):
            some = sorted(order[first : first + pool], key=lambda i: len(rows[i]))
            groups += [some[i : i + size] for i in range(0, len(some) - size + 1, size)]
        for i in torch.randperm(len(groups), generator=generator).tolist():
            yield padded([rows[j] for j in groups[i]])
