"""French → English sentences of a small grammar, with known word alignments.

Made, not collected: agreement of gender and number (which English drops), adjectives that move,
negation in two parts, the passé composé, object pronouns before the verb, questions, relative
clauses, "a" or "an" by the next English word, and possessives that agree with the thing owned in
French and with the owner in English. Each French sentence has exactly one translation.

`translation_splits` gives what is needed for training and tests.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from attention_course.data import _fragment_words as words

VOWELS = "aeiouhéêèâîœ"  # every h of the lexicon is silent
LONGEST_SOURCE = 40  # words; no sentence is longer
ANIMATE = "pa"


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation.

    `links[i]` holds the places of those source words that target word i translates, never none.
    `described` holds (adjective, noun), in English, wherever an adjective describes a noun.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[frozenset[int], ...]
    described: frozenset[tuple[str, str]] = frozenset()


@dataclass
class _Phrase:
    """Words under construction. `target` holds (English word, places of its source words)."""

    source: list[str] = field(default_factory=list)
    target: list[tuple[str, list[int]]] = field(default_factory=list)
    described: set[tuple[str, str]] = field(default_factory=set)
    gender: str = "m"
    plural: int = 0

    def add(self, french: str, english: str | None = None) -> int:
        """Append a French word, and its translation if one is given; return its place."""
        self.source.append(french)
        place = len(self.source) - 1
        if english is not None:
            self.target.append((english, [place]))
        return place

    def append(self, other: _Phrase) -> None:
        """Append another phrase."""
        offset = len(self.source)
        self.source += other.source
        self.target += [(word, [offset + i for i in places]) for word, places in other.target]
        self.described |= other.described


@functools.cache
def _nouns_of(kinds: str) -> list[words.Noun]:
    return [noun for noun in words.NOUNS if noun.kind in kinds]


class _Sampler:
    """Draws phrases and sentences from the grammar."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def choose(self, options):
        """Draw one of a list."""
        return options[int(self._rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self._rng.random() < probability)

    def _adjectives(self, options, kind: str, most: int) -> list[words.Adjective]:
        if not most:
            return []
        fitting = [adjective for adjective in options if kind in adjective.kinds]
        places = self._rng.permutation(len(fitting))[:most]
        return [fitting[place] for place in places]

    def noun_phrase(self, kinds: str, owner: tuple[str, int] | None = None) -> _Phrase:
        """Determiner, adjectives, noun. `owner` is (gender, plural) of the subject, if there is."""
        noun = self.choose(_nouns_of(kinds))
        phrase = _Phrase(gender=noun.gender, plural=int(self.chance(0.35)))
        form = 2 * phrase.plural + (noun.gender == "f")
        before = self._adjectives(words.BEFORE, noun.kind, int(self.chance(0.3)))
        count = int(self.chance(0.4)) + int(self.chance(0.1))
        after = self._adjectives(words.AFTER, noun.kind, count)

        french_noun = noun.french[phrase.plural]
        front = [self._first_form(a, form, french_noun) for a in before]
        first = front[0] if front else french_noun
        english = [adjective.english for adjective in before + after]
        first_english = english[0] if english else noun.english[phrase.plural]
        french, translation = self._determiner(phrase, first, bool(front), first_english, owner)
        phrase.add(french, translation)
        for word, adjective in zip(front, before, strict=True):
            phrase.add(word, adjective.english)
        place = phrase.add(french_noun)
        for number, adjective in enumerate(after):
            if number:
                phrase.add("et", "and")
            phrase.add(adjective.french[form], adjective.english)
        phrase.target.append((noun.english[phrase.plural], [place]))
        phrase.described = {(word, noun.english[0]) for word in english}
        return phrase

    @staticmethod
    def _first_form(adjective: words.Adjective, form: int, following: str) -> str:
        special = adjective.before_vowel and form == 0 and following[0] in VOWELS
        return adjective.before_vowel if special else adjective.french[form]

    def _determiner(self, phrase, first, adjective_first, english, owner) -> tuple[str, str]:
        """French and English determiner before the words `first` and `english`."""
        plural, feminine, vowel = phrase.plural, phrase.gender == "f", first[0] in VOWELS
        kind = self._rng.random()
        if owner and kind < 0.25:
            gender, several = owner
            translation = "their" if several else ("his" if gender == "m" else "her")
            if several:
                return ("leurs" if plural else "leur"), translation
            return ("ses" if plural else "sa" if feminine and not vowel else "son"), translation
        if kind < 0.6:
            return ("les" if plural else "l'" if vowel else "la" if feminine else "le"), "the"
        if kind < 0.85:
            if plural:
                return ("de" if adjective_first else "des"), "some"
            sounds_open = english[0] in "aeiou" and english != "useful"
            return ("une" if feminine else "un"), ("an" if sounds_open else "a")
        if plural:
            return "ces", "these"
        return ("cette" if feminine else "cet" if vowel else "ce"), "this"

    def subject(self) -> _Phrase:
        """A pronoun, or a noun phrase, sometimes with a relative clause."""
        if self.chance(0.3):
            french, english, gender, plural = self.choose(words.PRONOUNS)
            phrase = _Phrase(gender=gender, plural=plural)
            phrase.add(french, english)
            return phrase
        phrase = self.noun_phrase(ANIMATE)
        if self.chance(0.12):
            verb = self.choose(words.INTRANSITIVE)
            phrase.add("qui", "that")
            phrase.add(verb.french[phrase.plural], verb.english[0 if phrase.plural else 1])
        return phrase

    def _pronoun(self, verb, past: bool) -> tuple[str, str, str]:
        """Object pronoun before the verb: French, English, ending of the participle."""
        several = self.chance(0.4)
        if several:
            return "les", "them", ("" if verb.participle[-1] == "s" else "s")
        feminine = self.chance(0.5)
        french = "l'" if past else ("la" if feminine else "le")
        return french, ("her" if feminine else "him"), ("e" if feminine else "")

    def sentence(self, prepositions: int | None = None) -> Pair:
        """A whole sentence, with so many prepositional phrases (by chance 0 or 1 if None)."""
        question, past, negative = (self.chance(p) for p in (0.15, 0.4, 0.3))
        subject = self.subject()
        verb = self.choose(words.TRANSITIVE if self.chance(0.75) else words.INTRANSITIVE)
        takes_pronoun = "p" in verb.objects and (past or verb.french[0][0] not in VOWELS)
        pronoun = self._pronoun(verb, past) if takes_pronoun and self.chance(0.25) else None

        whole, asked = _Phrase(), []
        if question:
            asked = [whole.add("est-ce"), whole.add(self._that(subject.source[0]))]
        whole.append(subject)
        self._verb_group(whole, subject, verb, past, negative, pronoun, asked)
        owner = (subject.gender, subject.plural)
        if verb.objects and not pronoun:
            whole.append(self.noun_phrase(verb.objects, owner))
        count = int(self.chance(0.4)) if prepositions is None else prepositions
        for _ in range(count):
            french, english, kinds = self.choose(words.PREPOSITIONS)
            whole.add(french, english)
            whole.append(self.noun_phrase(kinds, owner))
        whole.add(*("??" if question else ".."))
        return Pair(
            tuple(whole.source),
            tuple(word for word, _ in whole.target),
            tuple(frozenset(places) for _, places in whole.target),
            frozenset(whole.described),
        )

    @staticmethod
    def _that(following: str) -> str:
        return "qu'" if following[0] in VOWELS else "que"

    @staticmethod
    def _verb_group(whole, subject, verb, past, negative, pronoun, asked) -> None:
        """Append the verb with negation, auxiliary and pronoun; English gets "do" where needed."""
        plural, begins = subject.plural, len(whole.target) - len(subject.target)
        verb_form = ("ont" if plural else "a") if past else verb.french[plural]
        first = pronoun[0] if pronoun else verb_form
        negation = [whole.add("n'" if first[0] in VOWELS else "ne")] if negative else []
        pronoun_place = [whole.add(pronoun[0])] if pronoun else []
        finite = [whole.add(verb_form)]
        negation += [whole.add("pas")] if negative else []
        main = [whole.add(verb.participle + (pronoun[2] if pronoun else ""))] if past else finite

        base, third, past_form = verb.english
        do = "did" if past else "do" if plural else "does"
        if asked:
            whole.target.insert(begins, (do, asked))
        elif negative:
            whole.target.append((do, [*negation[:1], *finite]))
        if negative:
            whole.target.append(("not", negation))
        if asked or negative:
            whole.target.append((base, main))
        else:
            whole.target.append((past_form if past else base if plural else third, finite + main))
        if pronoun:
            whole.target.append((pronoun[1], pronoun_place + (main if past else [])))


def sentences(seed: int, prepositions: int | None = None) -> Iterator[Pair]:
    """Yield sentence pairs without end, none of them twice.

    `prepositions` is the number of prepositional phrases; by chance 0 or 1 if None. The same seed
    gives the same pairs.
    """
    sampler, seen = _Sampler(np.random.default_rng(seed)), set()
    while True:
        pair = sampler.sentence(prepositions)
        if pair.source not in seen:
            seen.add(pair.source)
            yield pair


@functools.cache
def is_held_out(described: tuple[str, str]) -> bool:
    """Tell whether (adjective, noun), in English, is a combination that no training pair has."""
    adjectives = [adjective.english for adjective in words.BEFORE + words.AFTER]
    nouns = [noun.english[0] for noun in words.NOUNS]
    return (adjectives.index(described[0]) * 7 + nouns.index(described[1]) * 3) % 12 == 0


def translation_splits(seed: int, train: int, test: int) -> dict[str, list[Pair]]:
    """Draw training and test pairs; no source sentence is in two splits.

    Args:
        seed: the same seed gives the same pairs.
        train: number of training pairs, for "train".
        test: number of pairs in each of the test splits: "test" (drawn as "train" is), "new pairs"
            (each describes a noun by an adjective that never describes it in "train") and "longer"
            (two or three prepositional phrases; "train" has at most one).

    Raises:
        ValueError: if a number is negative.
    """
    if train < 0 or test < 0:
        raise ValueError(f"train and test must not be negative; got {train} and {test}.")
    sizes = {"train": train, "test": test, "new pairs": test, "longer": test}
    splits: dict[str, list[Pair]] = {name: [] for name in sizes}
    for pair in sentences(seed):
        new = any(map(is_held_out, pair.described))
        name = "new pairs" if new else "train" if len(splits["train"]) < train else "test"
        if len(splits[name]) < sizes[name]:
            splits[name].append(pair)
        if all(len(splits[name]) == sizes[name] for name in ("train", "test", "new pairs")):
            break
    for prepositions in (2, 3):
        goal = test // 2 if prepositions == 2 else test
        for pair in sentences(seed + 1, prepositions):
            if len(splits["longer"]) >= goal:
                break
            if not any(map(is_held_out, pair.described)):
                splits["longer"].append(pair)
    return splits
