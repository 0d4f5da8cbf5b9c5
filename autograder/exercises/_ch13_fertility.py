"""Exercise of chapter 13 on fertility: into how many pieces a language's words are cut."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

SPECIAL = ["[CLS]", "[SEP]", "[PAD]"]
SYLLABLES = ("ka", "mo", "ri", "tel", "su", "vin", "no", "ja")


def _sentence(rng, words, most):
    pieces = []
    for _ in range(words):
        count = int(rng.integers(1, most + 1))
        some = [SYLLABLES[i] for i in rng.integers(len(SYLLABLES), size=count)]
        pieces += [some[0], *("##" + piece for piece in some[1:])]
    return pieces


def fertility_cases(rng):
    """Three languages in any order, unequal sentences, padding; one language."""
    for group, names, count, about in (
        ("rate", ["sw", "de", "fi"], 7, "three languages"),
        ("rate", ["en", "tr"], 5, "two languages"),
        ("edges", ["ga"], 2, "one language"),
    ):
        names = [names[i] for i in rng.permutation(len(names))]
        if names == sorted(names):
            names = names[::-1]
        languages = [*names, *names, *(names[i] for i in rng.integers(len(names), size=count))]
        languages = [languages[i] for i in rng.permutation(len(languages))][: count + len(names)]
        languages += [name for name in names if languages.count(name) < 2] * 2
        tokens = []
        for row, language in enumerate(languages):
            words = _sentence(rng, 2 + (3 * row) % 7, 2 + names.index(language))
            words += ["mo", "##" + "ri"]  # at least one word of two pieces
            padding = ["[PAD]"] * int(rng.integers(0, 4))
            tokens.append(["[CLS]", *words, "[SEP]", *padding])
        inputs = {"tokens": tokens, "languages": languages, "names": names, "special": SPECIAL}
        yield Case(group, inputs, about)


def fertility_reference(tokens, languages, names, special):
    """Text first: pieces glued to words, then counted."""
    result = []
    for name in names:
        rows = [row for row, language in zip(tokens, languages, strict=True) if language == name]
        pieces = [piece for row in rows for piece in row if piece not in special]
        words = " ".join(pieces).replace(" ##", "").split()
        result.append(len(pieces) / len(words))
    return result


def _counts(tokens, special):
    """Give (pieces, words) of one sentence."""
    pieces = [piece for piece in tokens if piece not in special]
    return len(pieces), sum(not piece.startswith("##") for piece in pieces)


def _by_language(tokens, languages, names, special, rate=lambda p, w: p.sum() / w.sum()):
    counts = np.array([_counts(row, special) for row in tokens], dtype=float)
    of = np.array(languages)
    return [float(rate(*counts[of == name].T)) for name in names]


def mean_of_sentences(tokens, languages, names, special):
    """A rate for each sentence, then the mean."""
    return _by_language(tokens, languages, names, special, lambda p, w: (p / w).mean())


def specials_counted(tokens, languages, names, special):
    """Special tokens count as words."""
    return _by_language(tokens, languages, names, [])


def padding_counted(tokens, languages, names, special):
    """Leaves out all special tokens but padding."""
    return _by_language(tokens, languages, names, [s for s in special if s != "[PAD]"])


def words_in_a_piece(tokens, languages, names, special):
    """The inverse."""
    return _by_language(tokens, languages, names, special, lambda p, w: w.sum() / p.sum())


def continuations_alone(tokens, languages, names, special):
    """Counts pieces with ## only."""
    return _by_language(tokens, languages, names, special, lambda p, w: (p - w).sum() / w.sum())


def continued_share(tokens, languages, names, special):
    """The share of pieces with ##."""
    return _by_language(tokens, languages, names, special, lambda p, w: (p - w).sum() / p.sum())


def pieces_in_a_sentence(tokens, languages, names, special):
    """Pieces for each sentence."""
    return _by_language(tokens, languages, names, special, lambda p, w: p.mean())


def alphabetical(tokens, languages, names, special):
    """Languages in alphabetical order."""
    return _by_language(tokens, languages, sorted(names), special)


def all_languages_together(tokens, languages, names, special):
    """One rate for all."""
    counts = np.array([_counts(row, special) for row in tokens])
    return [float(counts[:, 0].sum() / counts[:, 1].sum())] * len(names)


def last_sentence_only(tokens, languages, names, special):
    """Later sentences overwrite earlier ones."""
    return _by_language(tokens, languages, names, special, lambda p, w: p[-1] / w[-1])


def fertility_by_dict(tokens, languages, names, special):
    """Right: two dictionaries."""
    pieces, words = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for row, language in zip(tokens, languages, strict=True):
        for piece in row:
            if piece in special:
                continue
            pieces[language] += 1
            words[language] += not piece.startswith("##")
    return [pieces[name] / words[name] for name in names]


def fertility_in_numpy(tokens, languages, names, special):
    """Right: an array."""
    return np.array(_by_language(tokens, languages, names, special))


def fertility_by_starts(tokens, languages, names, special):
    """Right: 1 + continuations for each word."""
    result = []
    for name in names:
        flat = []
        for row, language in zip(tokens, languages, strict=True):
            if language == name:
                flat.extend(row)
        flat = [piece for piece in flat if piece not in set(special)]
        starts = sum(piece[:2] != "##" for piece in flat)
        result.append(1 + (len(flat) - starts) / starts)
    return tuple(result)


LANGUAGE_FERTILITY = Exercise(
    id="language_fertility",
    title="Pieces for a word",
    asks="Say for each language how many pieces a word is cut into.",
    parameters=("tokens", "languages", "names", "special"),
    outputs=("fertility",),
    driver="function",
    groups={
        "rate": Group(1, "several languages"),
        "edges": Group(1, "one language"),
    },
    cases=fertility_cases,
    reference=fertility_reference,
    misconceptions=(
        Misconception(
            mean_of_sentences,
            "A rate for each sentence, then the mean: short sentences count too much.",
            "Sum first, divide once.",
        ),
        Misconception(
            specials_counted,
            "Special tokens were counted.",
            "[PAD] is no word of any language.",
        ),
        Misconception(
            padding_counted,
            "Padding was counted.",
            "Which tokens are in `special`?",
        ),
        Misconception(
            words_in_a_piece,
            "The fraction is turned round.",
            "Can a word have less than one piece?",
        ),
        Misconception(
            continuations_alone,
            "Only pieces with ## were counted; a word's first piece is a piece, too.",
            "What is the fertility if no word is cut?",
        ),
        Misconception(
            continued_share,
            "That is the share of pieces with ##, not the number of pieces for a word.",
            "What is the fertility if no word is cut?",
        ),
        Misconception(
            pieces_in_a_sentence,
            "That is pieces for a sentence, not for a word.",
            "What do you divide by?",
        ),
        Misconception(
            alphabetical,
            "The languages are in alphabetical order; `names` gives another one.",
            "Which argument says in which order the results stand?",
        ),
        Misconception(
            all_languages_together,
            "All languages get the same rate, that of the whole corpus.",
            "Which sentences belong to a language?",
        ),
        Misconception(
            last_sentence_only,
            "Only the last sentence of a language was counted.",
            "Add up, don't overwrite.",
        ),
    ),
    accepted=(fertility_by_dict, fertility_in_numpy, fertility_by_starts),
)
