"""Exercise of chapter 10 on many languages: pieces of words."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

STEMS = ["bar", "lo", "mi", "tu", "ken", "sa", "por", "ti", "el", "na"]


def fertility_cases(rng):
    """Sentences of unequal lengths, words of one to four pieces."""
    for about in ("three sentences", "five sentences"):
        sentences = []
        for words in rng.permutation([2, 3, 5, 7, 8])[: 3 if about[0] == "t" else 5]:
            sentence = []
            for count in rng.choice([1, 1, 2, 3, 4], size=words):
                pieces = [str(piece) for piece in rng.choice(STEMS, count)]
                sentence.append([pieces[0], *(f"##{piece}" for piece in pieces[1:])])
            sentences.append(sentence)
        sentences[0][0] = [STEMS[0], "##lo", "##mi"]
        sentences[-1][-1] = ["[UNK]"]
        yield Case("fertility", {"sentences": sentences}, about)


def fertility_reference(sentences):
    """Counts."""
    counts = np.array([len(word) for sentence in sentences for word in sentence])
    return float(counts.mean()), float((counts > 1).mean())


def mean_of_sentence_means(sentences):
    """Averages each sentence first."""
    rows = [fertility_reference([sentence]) for sentence in sentences]
    return tuple(np.mean(rows, axis=0).tolist())


def later_pieces_only(sentences):
    """Counts pieces that begin with ##."""
    pieces, split = fertility_reference(sentences)
    return pieces - 1, split


def words_per_piece(sentences):
    """Divides the wrong way round."""
    pieces, split = fertility_reference(sentences)
    return 1 / pieces, split


def pieces_per_sentence(sentences):
    """Divides by sentences."""
    pieces, split = fertility_reference(sentences)
    words = sum(len(sentence) for sentence in sentences) / len(sentences)
    return pieces * words, split


def whole_words(sentences):
    """Gives the share of words that are whole."""
    pieces, split = fertility_reference(sentences)
    return pieces, 1 - split


def share_of_later_pieces(sentences):
    """Gives the share of pieces that begin with ##."""
    pieces, _ = fertility_reference(sentences)
    return pieces, 1 - 1 / pieces


def unknown_words_left_out(sentences):
    """Does not count [UNK]."""
    return fertility_reference([[w for w in s if w != ["[UNK]"]] for s in sentences])


def different_pieces_only(sentences):
    """Counts each piece of the vocabulary once."""
    words = [word for sentence in sentences for word in sentence]
    pieces = {piece for word in words for piece in word}
    return len(pieces) / len(words), fertility_reference(sentences)[1]


def by_sums(sentences):
    """Right: sums."""
    words = sum(map(len, sentences))
    pieces = sum(len(word) for sentence in sentences for word in sentence)
    return pieces / words, sum(len(w) != 1 for s in sentences for w in s) / words


def by_prefix(sentences):
    """Right: looks at ##."""
    words = [word for sentence in sentences for word in sentence]
    later = sum(piece.startswith("##") for word in words for piece in word)
    return 1 + later / len(words), sum("##" in "".join(w) for w in words) / len(words)


def by_loop(sentences):
    """Right: a loop."""
    words = pieces = split = 0
    for sentence in sentences:
        for word in sentence:
            words, pieces, split = words + 1, pieces + len(word), split + bool(word[1:])
    return np.float64(pieces / words), np.float64(split / words)


FERTILITY = Exercise(
    id="pieces_per_word",
    title="Pieces for a word",
    asks="Give the number of pieces per word, and the share of words that are split.",
    parameters=("sentences",),
    outputs=("fertility", "split"),
    groups={"fertility": Group(1, "sentences of unequal lengths")},
    cases=fertility_cases,
    reference=fertility_reference,
    misconceptions=(
        Misconception(
            mean_of_sentence_means,
            "Each sentence is averaged first, so that words of short ones weigh more.",
            "How many divisions does each number need?",
        ),
        Misconception(
            later_pieces_only,
            "Only pieces after the first are counted.",
            "What is the fertility if no word is split?",
        ),
        Misconception(
            words_per_piece,
            "This is words per piece.",
            "Can fertility be smaller than 1?",
        ),
        Misconception(
            pieces_per_sentence,
            "This is pieces per sentence.",
            "By what do you divide?",
        ),
        Misconception(
            whole_words,
            "This is the share of whole words.",
            "How many pieces has a word that is split?",
        ),
        Misconception(
            share_of_later_pieces,
            "This is a share of pieces; a share of words is asked for.",
            "How often does a word of four pieces count?",
        ),
        Misconception(
            unknown_words_left_out,
            "Words that became [UNK] are left out; each is a word of one piece.",
            "How many words does the text have?",
        ),
        Misconception(
            different_pieces_only,
            "Pieces that come again are counted once.",
            "Do you count pieces of the text or of the vocabulary?",
        ),
    ),
    accepted=(by_sums, by_prefix, by_loop),
)
