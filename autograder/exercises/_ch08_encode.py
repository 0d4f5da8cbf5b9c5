"""Chapter 08: byte-pair encoding, from text to tokens."""

from __future__ import annotations

import itertools

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch08_bpe import (
    Pair,
    all_pairs,
    draw_text,
    expansions,
    in_bytes,
    in_characters,
    merge,
    merge_first_only,
    merge_from_the_right,
    train,
)


def _learned(rng, foreign: int = 0, merges: int = 8) -> tuple[str, list[Pair]]:
    text = draw_text(rng, 26, foreign)
    return text, train(text + text[: len(text) // 2], merges)


def bpe_encode_cases(rng):
    """Merges of another text; overlapping merges, whose order decides; texts beyond ASCII."""
    for _ in range(2):
        text, merges = _learned(rng)
        yield Case("order", {"text": draw_text(rng, 10) + text[:9], "merges": merges}, "ASCII")
    a, b, c = (int(byte) for byte in rng.choice(range(97, 123), size=3, replace=False))
    merges = [(b, c), (a, b), (a, 256), (257, c), (258, 258)]
    text = "".join(map(chr, [a, b, c, a, b, c, b, a, b, a, b, c, a, b, a]))
    yield Case("order", {"text": text, "merges": merges}, "merges that compete for a letter")
    merges = [(a, b), (b, c), (256, c), (c, 256)]
    yield Case("order", {"text": text, "merges": merges}, "merges that compete for a letter")
    merges = [(a, a), (256, 256), (256, a), (b, a)]
    text = "".join(chr(x) for x in [a] * 3 + [b] + [a] * 7 + [b, c] + [a] * 5)
    yield Case("order", {"text": text, "merges": merges}, "runs of one letter")
    text, merges = _learned(rng, 10)
    yield Case("bytes", {"text": draw_text(rng, 5, 5) + "🦉", "merges": merges}, "beyond ASCII")
    yield Case("bytes", {"text": "", "merges": merges}, "an empty text")
    yield Case("bytes", {"text": draw_text(rng, 3, 2), "merges": []}, "no merges: bytes")


def bpe_encode_reference(text, merges):
    """One pass for each merge, by Python's str.replace on characters of a private plane."""
    base = 0xF0000
    line = "".join(chr(base + byte) for byte in text.encode("utf-8"))
    for number, pair in enumerate(merges):
        line = line.replace("".join(chr(base + token) for token in pair), chr(base + 256 + number))
    return [ord(character) - base for character in line]


def _apply(text, merges, order=lambda numbered: numbered, split=in_bytes, join=merge, first=256):
    tokens = split(text)
    for number, pair in order(list(enumerate(merges))):
        tokens = join(tokens, tuple(pair), first + number)
    return tokens


def longest_token_first(text, merges):
    """Takes the longest token that fits, from the left, as WordPiece does."""
    table, rest, tokens = expansions(merges), text.encode(), []
    while rest:
        fitting = [token for token, piece in table.items() if rest.startswith(piece)]
        tokens.append(max(fitting, key=lambda token: (len(table[token]), -token)))
        rest = rest[len(table[tokens[-1]]) :]
    return tokens


def last_merge_first(text, merges):
    """Applies the merges in reverse order."""
    return _apply(text, merges, order=lambda numbered: numbered[::-1])


def encodes_characters(text, merges):
    """Starts from characters."""
    return _apply(text, merges, split=in_characters)


def encodes_first_occurrence(text, merges):
    """Merges each pair once."""
    return _apply(text, merges, join=merge_first_only)


def encodes_from_the_right(text, merges):
    """Merges runs from the right."""
    return _apply(text, merges, join=merge_from_the_right)


def encodes_one_too_low(text, merges):
    """The first merge gets the number 255."""
    return _apply(text, merges, first=255)


def leftmost_pair_first(text, merges):
    """Merges whatever pair comes first in the text, whichever merge it is."""
    tokens, table = in_bytes(text), {tuple(pair): 256 + i for i, pair in enumerate(merges)}
    i = 0
    while i < len(tokens) - 1:
        new = table.get((tokens[i], tokens[i + 1]))
        if new is None:
            i += 1
        else:
            tokens[i : i + 2] = [new]
            i = max(i - 1, 0)
    return tokens


def merges_bytes_only(text, merges):
    """One pass over the bytes: merged tokens are never merged again."""
    tokens, table = in_bytes(text), {tuple(pair): 256 + i for i, pair in enumerate(merges)}
    result, i = [], 0
    while i < len(tokens):
        new = table.get(tuple(tokens[i : i + 2]))
        result.append(tokens[i] if new is None else new)
        i += 1 if new is None else 2
    return result


def encoded_by_rank(text, merges):
    """Right: looks for the earliest merge that applies, until none does."""
    rank = {tuple(pair): i for i, pair in enumerate(merges)}
    tokens = list(text.encode("utf-8"))
    while True:
        pairs = [(rank[pair], pair) for pair in all_pairs(tokens) if pair in rank]
        if not pairs:
            return tokens
        number, pair = min(pairs)
        tokens = merge(tokens, pair, 256 + number)


def encoded_one_place_at_a_time(text, merges):
    """Right: merges one place at a time, of the earliest merge the leftmost; gives a tuple."""
    rank = {tuple(pair): i for i, pair in enumerate(merges)}
    tokens = list(text.encode("utf-8"))
    while True:
        places = [
            (rank[pair], i) for i, pair in enumerate(itertools.pairwise(tokens)) if pair in rank
        ]
        if not places:
            return tuple(tokens)
        number, i = min(places)
        tokens = [*tokens[:i], 256 + number, *tokens[i + 2 :]]


def encoded_with_a_stack(text, merges):
    """Right: one pass for each merge, with a stack of what has been read."""
    tokens = [*text.encode("utf-8")]
    for new, (left, right) in enumerate(merges, start=256):
        stack = []
        for token in tokens:
            if token == right and stack and stack[-1] == left:
                stack.pop()
                token = new
            stack.append(token)
        tokens = stack
    return tokens


BPE_ENCODE = Exercise(
    id="bpe_encode",
    title="Byte-pair encoding: text to tokens",
    asks="Apply the merges to a text, in the order in which they were learned.",
    parameters=("text", "merges"),
    outputs=("tokens",),
    driver="sequence_function",
    groups={
        "order": Group(1, "merges in the order of their training"),
        "bytes": Group(1, "any Unicode text, also an empty one"),
    },
    cases=bpe_encode_cases,
    reference=bpe_encode_reference,
    misconceptions=(
        Misconception(
            longest_token_first,
            "The longest token that fits is taken from the left: that is WordPiece's rule.",
            "Byte-pair encoding replays its merges: in which order?",
        ),
        Misconception(
            last_merge_first,
            "The merges are applied from the last to the first.",
            "A late merge needs tokens that an early one makes.",
        ),
        Misconception(
            encodes_characters,
            "The text is split into characters and not into bytes.",
            "Which function of a string gives its UTF-8 bytes?",
        ),
        Misconception(
            encodes_first_occurrence,
            "Each pair is merged in one place only.",
            "Can a pair stand in the text more than once?",
        ),
        Misconception(
            encodes_from_the_right,
            "Runs of equal tokens are merged from the right.",
            "Training merged from the left; encoding has to do the same.",
        ),
        Misconception(
            encodes_one_too_low,
            "The first merge makes token 255, which is a byte.",
            "What is the number of the first token after the bytes?",
        ),
        Misconception(
            leftmost_pair_first,
            "Pairs are merged as they come in the text, whichever merge was learned first.",
            "Two merges may compete for one token: which of them goes first?",
        ),
        Misconception(
            merges_bytes_only,
            "Only pairs of bytes are merged; merged tokens are not looked at again.",
            "May a merge's left or right token be larger than 255?",
        ),
    ),
    accepted=(encoded_by_rank, encoded_one_place_at_a_time, encoded_with_a_stack),
)
