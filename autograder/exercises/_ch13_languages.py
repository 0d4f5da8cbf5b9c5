"""Exercises of chapter 13 on many languages: XLM's pairs of sentences, and fertility."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

IGNORED = -100

# --- pack_translation ----------------------------------------------------------------------------


def pack_translation_cases(rng):
    """Sentences of different lengths; chosen places in both, separators among them."""
    lengths = [int(n) for n in rng.permutation([3, 4, 5, 6])]
    for group, source, target, about in (
        ("packed", lengths[0], lengths[1], "two sentences"),
        ("packed", lengths[2], lengths[3], "two others, other ids"),
        ("edges", 1, lengths[0], "a source of one word"),
    ):
        separator, mask, *words = (int(i) for i in 10 + rng.permutation(50))
        total = source + target + 4
        edges = (0, source + 1, source + 2, total - 1)
        inside = [place for place in range(total) if place not in edges]
        chosen = {inside[0], inside[-1], *(int(p) for p in rng.choice(inside, 2))}
        chosen |= {int(edges[rng.integers(1, 3)])}
        first = int(rng.integers(2, 6))
        inputs = {
            "source": words[:source],
            "target": words[source : source + target],
            "separator": separator,
            "mask": mask,
            "languages": [first, first + int(rng.integers(1, 4))],
            "chosen": [int(place) for place in rng.permutation(sorted(chosen))],
        }
        yield Case(group, inputs, about)


def pack_translation_reference(source, target, separator, mask, languages, chosen):
    """Column by column of a table of places."""
    columns = []
    for language, words in zip(languages, (source, target), strict=True):
        for position, word in enumerate([separator, *words, separator]):
            inner = 0 < position <= len(words)
            hidden = inner and len(columns) in chosen
            columns.append((mask if hidden else word, position, language, word if hidden else -100))
    return tuple(list(row) for row in zip(*columns, strict=True))


def _packed(
    source,
    target,
    separator,
    mask,
    languages,
    chosen,
    front=True,
    middle=2,
    restart=True,
    keep_separators=True,
    split=None,
    label=lambda word, hidden: word if hidden else IGNORED,
    from_zero=True,
):
    first = [separator] * front + [*source, separator]
    second = [separator] * (middle - 1) + [*target, separator]
    words = first + second
    lengths = len(first), len(second)
    positions = [*range(lengths[0]), *range(lengths[1])] if restart else [*range(len(words))]
    border = lengths[0] if split is None else lengths[0] + split
    of = [languages[0]] * border + [languages[1]] * (len(words) - border)
    edges = {place for place, word in enumerate(words) if word == separator}
    hidden = [
        place in chosen and not (keep_separators and place in edges) for place in range(len(words))
    ]
    tokens = [mask if gone else word for word, gone in zip(words, hidden, strict=True)]
    labels = [label(word, gone) for word, gone in zip(words, hidden, strict=True)]
    return tokens, [p + (not from_zero) for p in positions], of, labels


def positions_run_on(**given):
    """Positions are not reset."""
    return _packed(**given, restart=False)


def one_separator_between(**given):
    """One separator in the middle."""
    return _packed(**given, middle=1)


def no_separator_in_front(**given):
    """The row starts with a word."""
    return _packed(**given, front=False)


def separators_masked(**given):
    """Separators are hidden like words."""
    return _packed(**given, keep_separators=False)


def one_language(**given):
    """All places get the first language."""
    return _packed(**given, split=len(given["target"]) + 2)


def language_changes_late(**given):
    """The target's first separator belongs to the source."""
    return _packed(**given, split=1)


def language_changes_early(**given):
    """The source's last separator belongs to the target."""
    return _packed(**given, split=-1)


def labels_everywhere(**given):
    """Every place has a label."""
    return _packed(**given, label=lambda word, hidden: word)


def labels_after_masking(**given):
    """The label is what stands there after the masking."""
    return _packed(**given, label=lambda word, hidden: given["mask"] if hidden else IGNORED)


def labels_of_the_rest(**given):
    """Labels where nothing is hidden."""
    return _packed(**given, label=lambda word, hidden: IGNORED if hidden else word)


def source_never_masked(**given):
    """Hides words of the target only."""
    chosen = [place for place in given["chosen"] if place > len(given["source"]) + 1]
    return _packed(**{**given, "chosen": chosen})


def positions_from_one(**given):
    """Counts positions from 1."""
    return _packed(**given, from_zero=False)


def packed_by_parts(**given):
    """Right: joined from two halves."""
    return _packed(**given)


def packed_in_numpy(source, target, separator, mask, languages, chosen):
    """Right: arrays and a boolean mask."""
    words = np.array([separator, *source, separator, separator, *target, separator])
    positions = np.r_[0 : len(source) + 2, 0 : len(target) + 2]
    language = np.repeat(languages, [len(source) + 2, len(target) + 2])
    hidden = np.isin(np.arange(len(words)), chosen) & (words != separator)
    tokens = np.where(hidden, mask, words).tolist()
    labels = np.where(hidden, words, -100).tolist()
    return tokens, positions.tolist(), language.tolist(), labels


def packed_word_by_word(source, target, separator, mask, languages, chosen):
    """Right: masks afterwards, in place of its own lists."""
    tokens, positions, of = [], [], []
    for language, words in ((languages[0], source), (languages[1], target)):
        tokens += [separator, *words, separator]
        positions += range(len(words) + 2)
        of += [language] * (len(words) + 2)
    labels = [-100] * len(tokens)
    for place in chosen:
        if tokens[place] not in (separator, mask):
            labels[place], tokens[place] = tokens[place], mask
    return tokens, positions, of, labels


PACK_TRANSLATION = Exercise(
    id="pack_translation",
    title="Two languages in one row",
    asks="Pack a sentence and its translation for a masked model: XLM's translation objective.",
    parameters=("source", "target", "separator", "mask", "languages", "chosen"),
    outputs=("tokens", "positions", "languages", "labels"),
    driver="sequence_function",
    groups={
        "packed": Group(2, "two sentences, words hidden in both"),
        "edges": Group(1, "a source of one word"),
    },
    cases=pack_translation_cases,
    reference=pack_translation_reference,
    misconceptions=(
        Misconception(
            positions_run_on,
            "Positions run on in the target; they start again at 0.",
            "Which places of the two sentences should look alike to the model?",
        ),
        Misconception(
            one_separator_between,
            "There is one separator between the sentences; each has two of its own.",
            "Count the separators in the example.",
        ),
        Misconception(
            no_separator_in_front,
            "The separator in front of the source is missing.",
            "Count the separators in the example.",
        ),
        Misconception(
            separators_masked,
            "A separator was hidden.",
            "What becomes of a chosen place that holds a separator?",
        ),
        Misconception(
            one_language,
            "All places have the source's language.",
            "`languages` holds two numbers.",
        ),
        Misconception(
            language_changes_late,
            "The separator in front of the target has the source's language.",
            "Each sentence owns the separators on both its sides.",
        ),
        Misconception(
            language_changes_early,
            "The separator behind the source has the target's language.",
            "Each sentence owns the separators on both its sides.",
        ),
        Misconception(
            labels_everywhere,
            "Every place has a label, hidden or not.",
            "Which places does the loss ask about?",
        ),
        Misconception(
            labels_after_masking,
            "The labels are read after the masking: the loss would ask for the mask itself.",
            "What is the model to guess at a hidden place?",
        ),
        Misconception(
            labels_of_the_rest,
            "Labels stand where nothing is hidden.",
            "Which places does the loss ask about?",
        ),
        Misconception(
            source_never_masked,
            "Only words of the target are hidden.",
            "Hidden words in *both* languages: each can be found in the other one.",
        ),
        Misconception(
            positions_from_one,
            "Positions start at 1.",
            "Which position has the first separator?",
        ),
    ),
    accepted=(packed_by_parts, packed_in_numpy, packed_word_by_word),
)

# --- fertility -----------------------------------------------------------------------------------

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
