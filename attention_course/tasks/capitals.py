"""Which words of a line are names? Plays in small letters, a tag for every word.

The labels cost nothing, since the text holds them: a word that is written with a capital in the
middle of a sentence is nearly always a name. Some words get no label: signs, the first word of a
line or of a sentence, and "I" and "O", which have a capital whatever they mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from attention_course.data.shakespeare import load_shakespeare

NO_LABEL = -100
DIRECTION = re.compile(r"\[[^\]]*\]")  # what is done on the stage
BEGINNING = re.compile(r"^ACT I\.$", re.MULTILINE)
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*|[^\sA-Za-z]")
FEWEST = 5  # words: shorter lines are mostly the names of speakers


@dataclass(frozen=True)
class Line:
    """Words and signs in small letters; for each of them 1 (capital), 0 (none) or `NO_LABEL`."""

    words: tuple[str, ...]
    tags: tuple[int, ...]


def tagged(text: str) -> Line:
    """Take the capitals of a line away, and keep them as tags."""
    words = WORD.findall(text)
    tags, begins = [], True
    for word in words:
        if not word[0].isalpha():
            begins = begins or word in ".?!"
            tags.append(NO_LABEL)
            continue
        free = begins or word.partition("'")[0] in ("I", "O")
        tags.append(NO_LABEL if free else int(word[0].isupper()))
        begins = False
    return Line(tuple(word.lower() for word in words), tuple(tags))


def read_parts() -> list[list[Line]]:
    """Lines of the plays in seven parts; the last one holds two plays."""
    _, *parts = BEGINNING.split(DIRECTION.sub("", load_shakespeare()))
    return [
        [tagged(line) for line in part.splitlines() if len(line.split()) >= FEWEST]
        for part in parts
    ]


def draw_lines(rng: np.random.Generator, lines: Sequence[Line], count: int) -> list[Line]:
    """Draw `count` lines, half of them with a name, in random order."""
    chosen = []
    for named in (True, False):
        places = [place for place, line in enumerate(lines) if (1 in line.tags) == named]
        chosen += rng.choice(places, count // 2, replace=False).tolist()
    return [lines[place] for place in rng.permutation(chosen)]


@dataclass(frozen=True)
class Pieces:
    """Lines as word pieces, all int64 or bool (lines, longest).

    `ids`, 0 = padding. `firsts`, True = first piece of a word. `labels`, the word's tag at its
    first piece and `NO_LABEL` everywhere else.
    """

    ids: Tensor
    firsts: Tensor
    labels: Tensor


def as_pieces(tokenizer: Tokenizer, lines: Sequence[Line]) -> Pieces:
    """Cut words into pieces, and hand each tag to the first piece of its word."""
    encodings = tokenizer.encode_batch([list(line.words) for line in lines], is_pretokenized=True)
    shape = len(lines), max(len(encoding.ids) for encoding in encodings)
    ids = torch.zeros(shape, dtype=torch.int64)
    labels = torch.full(shape, NO_LABEL)
    firsts = torch.zeros(shape, dtype=torch.bool)
    for row, (line, encoding) in enumerate(zip(lines, encodings, strict=True)):
        ids[row, : len(encoding.ids)] = torch.tensor(encoding.ids)
        for word, pieces in groupby(range(len(encoding.ids)), encoding.word_ids.__getitem__):
            if word is not None:
                place = next(pieces)
                firsts[row, place] = True
                labels[row, place] = line.tags[word]
    return Pieces(ids, firsts, labels)


def by_word(guesses: Tensor, firsts: Tensor) -> list[list[bool]]:
    """Read guesses, bool (lines, longest), off the first piece of each word."""
    return [row[first].tolist() for row, first in zip(guesses, firsts, strict=True)]


def names(lines: Iterable[Sequence[bool]]) -> set[tuple[int, int, int]]:
    """Runs of words with a capital: (line, first word, last word).

    Two names that touch are one run: with a single kind of entity and few neighbours, capital or
    not is enough, and no B- or I- is needed.
    """
    found = set()
    for number, line in enumerate(lines):
        for capital, run in groupby(range(len(line)), line.__getitem__):
            if capital:
                places = list(run)
                found.add((number, places[0], places[-1]))
    return found


def name_f1(lines: Sequence[Line], guesses: Sequence[Sequence[bool]]) -> float:
    """F1 of whole names; words without a label count as small in both."""
    true = names([[tag == 1 for tag in line.tags] for line in lines])
    guessed = names(
        [guess and tag != NO_LABEL for guess, tag in zip(row, line.tags, strict=True)]
        for row, line in zip(guesses, lines, strict=True)
    )
    return 2 * len(true & guessed) / max(len(true) + len(guessed), 1)


def word_by_word(train: Sequence[Line], lines: Sequence[Line]) -> list[list[bool]]:
    """Guess what each word was most often in `train`; a word that was not there is small."""
    counts = Counter()
    for line in train:
        for word, tag in zip(line.words, line.tags, strict=True):
            counts[word] += {1: 1, 0: -1}.get(tag, 0)
    return [[counts[word] > 0 for word in line.words] for line in lines]
