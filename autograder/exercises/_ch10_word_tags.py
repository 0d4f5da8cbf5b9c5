"""Exercise of chapter 10 on tags: from pieces back to words."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_tags import SPECIAL, draw_words


def word_tags_cases(rng):
    """Pieces of a word disagree; words that were cut off."""
    for group, cut, about in (
        ("tags", 0, "pieces that disagree"),
        ("tags", 0, "another sentence"),
        ("cut", 3, "the last words have no piece"),
    ):
        tags = int(rng.choice([5, 6, 7]))
        row, count = draw_words(rng, int(rng.choice([13, 14, 15])), 2)
        words = np.array(row, dtype=np.int64)
        best = rng.integers(1, tags, size=len(words))
        first = np.array([w >= 0 and w not in row[:i] for i, w in enumerate(row)])
        for place in np.flatnonzero(~first[1:]) + 1:  # later pieces say something else, louder
            best[place] = (best[place - 1] % (tags - 1)) + 1
        logits = rng.normal(size=(len(words), tags))
        logits[np.arange(len(words)), best] += np.where(first, 4.0, 9.0)
        yield Case(group, {"logits": logits, "words": words, "count": count + cut}, about)


def word_tags_reference(logits, words, count):
    """A dict of each word's first place."""
    first = {}
    for place, word in enumerate(words.tolist()):
        first.setdefault(word, place)
    return [int(logits[first[w]].argmax()) if w in first else 0 for w in range(count)]


def _tags(logits, words, count, place_of):
    """Tags of words when `place_of(places)` chooses among a word's places."""
    best = logits.argmax(-1)
    tags = []
    for word in range(count):
        places = (words == word).nonzero()[:, 0]
        tags.append(int(best[place_of(places)]) if len(places) else 0)
    return tags


def last_piece_asked(logits, words, count):
    """Takes last pieces."""
    return _tags(logits, words, count, lambda places: places[-1])


def every_piece_tagged(logits, words, count):
    """One tag for each piece."""
    return logits.argmax(-1)[words >= 0].tolist()


def specials_tagged_too(logits, words, count):
    """Keeps [CLS] and shifts all words."""
    first = [0, *(p for p in range(1, len(words)) if words[p] >= 0 and words[p] != words[p - 1])]
    tags = logits.argmax(-1)[first].tolist()
    return (tags + [0] * count)[:count]


def pieces_averaged(logits, words, count):
    """Averages the logits of a word's pieces."""
    tags = []
    for word in range(count):
        mine = logits[words == word]
        tags.append(int(mine.mean(0).argmax()) if len(mine) else 0)
    return tags


def place_for_word(logits, words, count):
    """Takes place w + 1 for word w, as if each word had one piece."""
    best = logits.argmax(-1).tolist()
    return [best[w + 1] if w in words.tolist() and w + 1 < len(best) else 0 for w in range(count)]


def least_likely_tag(logits, words, count):
    """argmin."""
    return word_tags_reference(-logits, words, count)


def cut_words_left_out(logits, words, count):
    """Gives no tag to words without a piece."""
    return word_tags_reference(logits, words, int(words.max()) + 1)


def cut_words_repeat_the_last(logits, words, count):
    """Repeats the last tag."""
    tags = cut_words_left_out(logits, words, count)
    return (tags + tags[-1:] * count)[:count]


def by_neighbouring_pieces(logits, words, count):
    """Right: a mask of first pieces, filled up with zeros."""
    before = torch.cat([words.new_tensor([SPECIAL]), words[:-1]])
    tags = logits[(words != before) & (words >= 0)].argmax(dim=-1)
    return F.pad(tags, (0, count - len(tags)))


def backwards(logits, words, count):
    """Right: walks back, so that the first piece has the last word."""
    tags = [0] * count
    for place in range(len(words) - 1, -1, -1):
        if words[place] != SPECIAL:
            tags[words[place]] = logits[place].argmax().item()
    return tags


def by_comparing(logits, words, count):
    """Right: a table words × pieces."""
    table = words == torch.arange(count)[:, None]
    tags = logits.argmax(-1)[table.int().argmax(dim=1)]
    return torch.where(table.any(dim=1), tags, 0).tolist()


WORD_TAGS = Exercise(
    id="word_tags",
    title="Back to words",
    asks="Give one tag for each word: that of its first piece.",
    parameters=("logits", "words", "count"),
    driver="tensor_function",
    groups={
        "tags": Group(1, "pieces that disagree"),
        "cut": Group(1, "words without a piece"),
    },
    cases=word_tags_cases,
    reference=word_tags_reference,
    misconceptions=(
        Misconception(
            last_piece_asked,
            "The last piece of a word is asked; only first pieces were trained.",
            "Which piece had a label in training?",
        ),
        Misconception(
            every_piece_tagged,
            "There is a tag for every piece; one for each word is asked for.",
            "How long should the result be?",
        ),
        Misconception(
            specials_tagged_too,
            "[CLS] has a tag, and all words are one place late.",
            "Which pieces have the word number −1?",
        ),
        Misconception(
            pieces_averaged,
            "The pieces of a word are averaged; only first pieces were trained.",
            "Which piece had a label in training?",
        ),
        Misconception(
            place_for_word,
            "Places are taken for words, as if each word had one piece.",
            "Where does `words` say to which word a piece belongs?",
        ),
        Misconception(
            least_likely_tag,
            "The tag with the lowest logit is taken.",
            "Does a likely tag have a high or a low logit?",
        ),
        Misconception(
            cut_words_left_out,
            "Words without a piece are missing: the result should have `count` tags.",
            "How long is your result if the text was cut?",
        ),
        Misconception(
            cut_words_repeat_the_last,
            "Words without a piece repeat a tag; by the contract they get 0.",
            "What does point 3 say?",
        ),
    ),
    accepted=(by_neighbouring_pieces, backwards, by_comparing),
    equivalent_mutants={
        "`logits.argmax(dim=-1)` → `logits.argmax(dim=1)`": "there are two axes",
    },
)
