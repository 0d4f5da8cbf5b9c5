"""Chapter 08: training byte-pair encoding. Tokens 0 to 255 are bytes, merge i makes 256 + i."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

Pair = tuple[int, int]

SYLLABLES = ("ba", "na", "ka", "lo", "mi", "the", "ing", "er", "aa", "ee", "sto", " ", " ", ", ")
FOREIGN = ("é", "ß", "Ω", "日本", "語", "🦉", "ñ", "–", "ñañ", "żółw")


def draw_text(rng, syllables: int, foreign: int = 0) -> str:
    """Draw a text with repetitions: syllables, and `foreign` pieces beyond ASCII among them."""
    pieces = [str(piece) for piece in rng.choice(SYLLABLES, size=syllables)]
    for piece in rng.choice(FOREIGN, size=foreign):
        pieces.insert(int(rng.integers(len(pieces) + 1)), str(piece))
    return "".join(pieces)


def in_bytes(text: str) -> list[int]:
    """The tokens before any merge."""
    return list(text.encode("utf-8"))


def in_characters(text: str) -> list[int]:
    """Code points for tokens: beyond ASCII they collide with the numbers of merges."""
    return [ord(character) for character in text]


def merge(tokens: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Replace `pair` from left to right; what has been used is not used again."""
    merged, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            merged.append(new)
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return merged


def merge_from_the_right(tokens: Sequence[int], pair: Pair, new: int) -> list[int]:
    """In "aaa" the last two become one."""
    return merge(tokens[::-1], pair[::-1], new)[::-1]


def merge_first_only(tokens: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Only the first occurrence is merged."""
    for i in range(len(tokens) - 1):
        if tuple(tokens[i : i + 2]) == pair:
            return [*tokens[:i], new, *tokens[i + 2 :]]
    return list(tokens)


def all_pairs(tokens: Sequence[int]) -> Counter:
    """Every two neighbours, overlapping ones too."""
    return Counter(itertools.pairwise(tokens))


def pairs_without_overlap(tokens: Sequence[int]) -> Counter:
    """In "aaa" only one pair of "a" is counted."""
    counts, last = Counter(), {}
    for i, pair in enumerate(itertools.pairwise(tokens)):
        if last.get(pair) != i - 1:
            counts[pair] += 1
            last[pair] = i
    return counts


def train(
    text: str,
    merges: int,
    split: Callable[[str], list[int]] = in_bytes,
    count: Callable[[Sequence[int]], Counter] = all_pairs,
    key: Callable[[tuple[Pair, int]], tuple] = lambda item: (-item[1], item[0]),
    join: Callable[[Sequence[int], Pair, int], list[int]] = merge,
    least: int = 2,
    first: int = 256,
) -> list[Pair]:
    """Train with one part exchanged: all mistakes are made of this."""
    tokens, learned = split(text), []
    for number in range(merges):
        counts = count(tokens)
        if not counts:
            break
        pair, often = min(counts.items(), key=key)
        if often < least:
            break
        learned.append(pair)
        tokens = join(tokens, pair, first + number)
    return learned


def expansions(merges: Iterable[Pair]) -> dict[int, bytes]:
    """The bytes of every token."""
    table = {byte: bytes([byte]) for byte in range(256)}
    for number, (left, right) in enumerate(merges):
        table[256 + number] = table[left] + table[right]
    return table


# --- bpe_train -----------------------------------------------------------------------------------


def bpe_train_cases(rng):
    """Repetitions, ties, runs of one letter, texts beyond ASCII, texts that run out of pairs."""
    for _ in range(2):
        text = draw_text(rng, 24)
        yield Case("merges", {"text": text, "merges": 6}, "a text in ASCII")
    letter, left, right = (str(x) for x in rng.choice(list("abcdefgh"), size=3, replace=False))
    # In a run of three there are two pairs; without overlap `left + right` would be as frequent.
    parts = [letter * 3 + right, left + right, letter * 3 + left, left + right, left + right]
    text = "".join(part + end for part, end in zip(parts, "1234-", strict=True))
    yield Case("merges", {"text": text, "merges": 3}, "runs of one letter")
    yield Case("ties", {"text": _tied(rng), "merges": 4}, "several pairs equally often")
    yield Case("ties", {"text": _tied(rng), "merges": 3}, "several pairs equally often")
    text = draw_text(rng, 8, 8)
    text += "".join(sorted({c for c in text if ord(c) > 127})) * 2
    yield Case("bytes", {"text": text, "merges": 5}, "a text beyond ASCII")
    text = draw_text(rng, 4)
    yield Case("end", {"text": text, "merges": 60}, "no pair is left that occurs twice")


def _tied(rng) -> str:
    """Words of two letters, each twice, with a different character behind every word."""
    letters = [str(letter) for letter in rng.choice(list("bcdefgkmnprst"), size=8, replace=False)]
    words = [letters[i] + letters[i + 1] for i in (0, 2, 4, 6)]
    ends = rng.permutation(list("0123456789+-*/="))[: 2 * len(words)]
    both = [words[i] for i in rng.permutation(2 * len(words)) % len(words)]
    # The smallest pair does not come first, so that the order of the text decides nothing.
    smallest = min(words)
    first = next(word for word in both if word != smallest)
    both.remove(first)
    return "".join(word + str(end) for word, end in zip([first, *both], ends, strict=True))


def bpe_train_reference(text, merges):
    """Counts with a table of places; merges by splitting a string of code points."""
    # Tokens as characters of the private planes: Python's own str.replace merges from the left.
    base = 0xF0000
    line = "".join(chr(base + byte) for byte in text.encode("utf-8"))
    learned = []
    while len(learned) < merges:
        pairs = [line[i : i + 2] for i in range(len(line) - 1)]
        best = max(sorted(set(pairs)), key=pairs.count, default="")
        if pairs.count(best) < 2:
            break
        learned.append(tuple(ord(character) - base for character in best))
        line = line.replace(best, chr(base + 255 + len(learned)))
    return learned


def characters_as_tokens(text, merges):
    """Starts from characters instead of bytes."""
    return train(text, merges, split=in_characters)


def first_of_equals(text, merges):
    """Among pairs that occur equally often the one that comes first in the text wins."""
    return train(text, merges, key=lambda item: -item[1])


def largest_of_equals(text, merges):
    """Among equals the largest pair wins."""
    return train(text, merges, key=lambda item: (-item[1], -item[0][0], -item[0][1]))


def rarest_pair_first(text, merges):
    """Merges the pair that occurs least often."""
    return train(text, merges, key=lambda item: (item[1], item[0]), least=1)


def counts_without_overlap(text, merges):
    """Counts a run of three equal tokens as one pair."""
    return train(text, merges, count=pairs_without_overlap)


def merges_from_the_right(text, merges):
    """Replaces occurrences from the right."""
    return train(text, merges, join=merge_from_the_right)


def merges_one_occurrence(text, merges):
    """Replaces only the first occurrence of each pair."""
    return train(text, merges, join=merge_first_only)


def merges_single_pairs(text, merges):
    """Goes on with pairs that occur once."""
    return train(text, merges, least=1)


def counts_only_once(text, merges):
    """Takes the most frequent pairs of the bytes and never merges."""
    counts = all_pairs(in_bytes(text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [pair for pair, often in ranked[:merges] if often >= 2]


def numbers_from_zero(text, merges):
    """New tokens are 0, 1, ..., which are bytes."""
    return train(text, merges, first=0)


def trained_with_sorting(text, merges):
    """Right: sorts all pairs by how often they occur, then by their numbers."""
    tokens = list(text.encode())
    learned = []
    for new in range(256, 256 + merges):
        pairs = list(itertools.pairwise(tokens))
        ranked = sorted(set(pairs), key=lambda pair: (-pairs.count(pair), pair))
        if not ranked or pairs.count(ranked[0]) == 1:
            return learned
        learned.append(ranked[0])
        result = []
        for token in tokens:
            # A pair is complete as soon as its right half comes; a new token starts afresh.
            if result and (result[-1], token) == ranked[0]:
                result[-1] = new
            else:
                result.append(token)
        tokens = result
    return learned


def trained_with_dictionary(text, merges):
    """Right: a dictionary of counts; gives lists and not tuples."""
    tokens, learned = [int(byte) for byte in bytes(text, "utf-8")], []
    for step in range(merges):
        counts: dict[Pair, int] = {}
        for i in range(1, len(tokens)):
            pair = (tokens[i - 1], tokens[i])
            counts[pair] = counts.get(pair, 0) + 1
        best = None
        for pair, often in counts.items():
            if often > 1 and (
                best is None or often > counts[best] or (often == counts[best] and pair < best)
            ):
                best = pair
        if best is None:
            break
        learned.append(list(best))
        tokens = merge(tokens, best, 256 + step)
    return learned


def trained_by_recursion(text, merges):
    """Right: one merge, then the rest."""

    def rest(tokens, left, new):
        counts = Counter(itertools.pairwise(tokens))
        most = max(counts.values(), default=0)
        if left == 0 or most < 2:
            return []
        pair = min(pair for pair in counts if counts[pair] == most)
        return [pair, *rest(merge(tokens, pair, new), left - 1, new + 1)]

    return rest(in_bytes(text), merges, 256)


BPE_TRAIN = Exercise(
    id="bpe_train",
    title="Byte-pair encoding: learn the merges",
    asks="Merge the most frequent pair of neighbours again and again, starting from bytes.",
    parameters=("text", "merges"),
    outputs=("merges",),
    driver="sequence_function",
    groups={
        "merges": Group(1, "the most frequent pair, again and again"),
        "ties": Group(1, "pairs that occur equally often"),
        "bytes": Group(1, "texts beyond ASCII"),
        "end": Group(1, "texts in which no pair is left"),
    },
    cases=bpe_train_cases,
    reference=bpe_train_reference,
    misconceptions=(
        Misconception(
            characters_as_tokens,
            "The first tokens are characters and not bytes.",
            "How many tokens does “é” start with? `text.encode(...)` shows it.",
        ),
        Misconception(
            first_of_equals,
            "Among equally frequent pairs the first one of the text wins (`most_common`, `max`).",
            "The contract names which of them comes first: compare the pairs themselves too.",
        ),
        Misconception(
            largest_of_equals,
            "Among equally frequent pairs the largest one wins.",
            "Which of them does the contract take? Beware of `max` over (count, pair).",
        ),
        Misconception(
            rarest_pair_first,
            "The rarest pair is merged.",
            "A merge should shorten the text as much as possible: which pair does that?",
        ),
        Misconception(
            counts_without_overlap,
            "A run such as “aaa” counts as one pair “aa”.",
            "The contract counts all neighbours: how many are there in “aaa”?",
        ),
        Misconception(
            merges_from_the_right,
            "In a run such as “aaa” the last two are merged and not the first two.",
            "From which side does the contract replace?",
        ),
        Misconception(
            merges_one_occurrence,
            "Only the first occurrence of the pair is replaced.",
            "After a merge, should the pair still be found in the text?",
        ),
        Misconception(
            merges_single_pairs,
            "Pairs that occur only once are merged too.",
            "Read the contract's point on when to stop.",
        ),
        Misconception(
            counts_only_once,
            "Pairs are counted once, in the bytes: merged tokens never take part in a pair.",
            "What has to be counted again after every merge?",
        ),
        Misconception(
            numbers_from_zero,
            "The new tokens' numbers are those of bytes.",
            "Which is the first number that no byte has?",
        ),
    ),
    accepted=(trained_with_sorting, trained_with_dictionary, trained_by_recursion),
)
