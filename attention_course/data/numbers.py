"""Number words, French → English: a small translation task that still needs some care.

French counts by sixties and twenties (70 is "soixante dix", 97 "quatre vingt dix sept"), so words
do not match one by one. Hyphens are left out, each word is a token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LARGEST = 999_999
_SPELLED = {
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
    "seize",
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "en tens": "- - twenty thirty forty fifty sixty seventy eighty ninety",
}
_FRENCH, _ENGLISH, _ENGLISH_TENS = (words.split() for words in _SPELLED.values())
_FRENCH_TENS = {2: "vingt", 3: "trente", 4: "quarante", 5: "cinquante", 6: "soixante"}


@dataclass(frozen=True)
class NumberPair:
    """A number in French and in English words."""

    number: int
    source: tuple[str, ...]
    target: tuple[str, ...]


def _french_below_100(n: int) -> list[str]:
    if n < 17:
        return [_FRENCH[n]]
    if n < 20:
        return ["dix", _FRENCH[n - 10]]
    if n >= 80:
        rest = n - 80
        return ["quatre", "vingt", *_french_below_100(rest)] if rest else ["quatre", "vingts"]
    tens = min(n // 10, 6)
    rest = n - 10 * tens
    link = ["et"] if rest in (1, 11) else []
    return [_FRENCH_TENS[tens], *link, *(_french_below_100(rest) if rest else [])]


def _french_below_1000(n: int, ends: bool) -> list[str]:
    """`ends` is true if nothing follows: then "cents" and "vingts" keep their s."""
    hundreds, rest = divmod(n, 100)
    words = [] if hundreds < 2 else [_FRENCH[hundreds]]
    if hundreds:
        words.append("cents" if hundreds > 1 and not rest and ends else "cent")
    if rest:
        words += _french_below_100(rest)
        if words[-1] == "vingts" and not ends:
            words[-1] = "vingt"
    return words


def _english_below_1000(n: int) -> list[str]:
    hundreds, rest = divmod(n, 100)
    words = [_ENGLISH[hundreds], "hundred"] if hundreds else []
    if rest >= 20:
        words.append(_ENGLISH_TENS[rest // 10])
        rest %= 10
    return words + ([_ENGLISH[rest]] if rest else [])


def number_pair(n: int) -> NumberPair:
    """Spell a number from 0 to 999,999. Raises ValueError for others."""
    if not 0 <= n <= LARGEST:
        raise ValueError(f"n must lie from 0 to {LARGEST:,}; got {n}.")
    if n == 0:
        return NumberPair(0, ("zéro",), ("zero",))
    thousands, rest = divmod(n, 1000)
    french, english = [], []
    if thousands:
        french = [] if thousands == 1 else _french_below_1000(thousands, ends=False)
        french.append("mille")
        english = [*_english_below_1000(thousands), "thousand"]
    french += _french_below_1000(rest, ends=True)
    english += _english_below_1000(rest)
    return NumberPair(n, tuple(french), tuple(english))


def number_splits(seed: int, train: int, test: int) -> dict[str, list[NumberPair]]:
    """Draw different numbers, as many long ones as short ones, for "train" and "test".

    Raises ValueError if more than half of all numbers are asked for.
    """
    if train < 0 or test < 0 or train + test > LARGEST // 2:
        raise ValueError(f"train + test must be at most {LARGEST // 2:,}; got {train} and {test}.")
    rng, drawn = np.random.default_rng(seed), {}
    while len(drawn) < train + test:
        drawn[int(10 ** rng.uniform(0, 6))] = None
    pairs = [number_pair(n) for n in rng.permutation(list(drawn))]
    return {"train": pairs[:train], "test": pairs[train:]}
