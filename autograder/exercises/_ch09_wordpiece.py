"""Chapter 09: WordPiece, the longest piece first."""

from __future__ import annotations

from tokenizers.models import WordPiece

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

UNKNOWN = "[UNK]"
ALPHABET = "abcdefghijklmnopqrstuvwxyz"

# (group, word, pieces, longest, what it tests), spelled in A to G, which stand for drawn letters.
PATTERNS = (
    ("greedy", "ABCD", "A AB ABC B C D ##B ##C ##D ##CD ##BCD", 9, "two ways to cut"),
    ("greedy", "ABCDE", "A AB ABC DE ##D ##E ##CDE ##C ##B D E", 9, "few pieces would do"),
    ("greedy", "ABAB", "AB A B ##A ##B ##AB ##BAB ABA", 9, "a piece that occurs twice"),
    ("greedy", "ABC", "A AB ABC BC ##BC ##C ##ABC", 9, "the word itself is a piece"),
    ("greedy", "G", "A B G ##G ##A", 9, "a word of one letter"),
    ("greedy", "CBADEF", "C CB ##A ##AD ##ADE ##D ##E ##EF ##F ##DEF A ADE", 6, "the longest word"),
    ("unknown", "ABCDE", "A AB B C D E ##B ##D ##E ##DE CDE", 9, "no piece for the middle"),
    ("unknown", "ABCF", "A AB ABC ##B ##C ##CF ##BCF BCF F", 9, "greed leads into a dead end"),
    ("unknown", "BACD", "##B ##BA ##BACD ##A ##C ##D A AC C D", 9, "no piece for the beginning"),
    ("unknown", "ABABAB", "A AB B ABABA ##A ##B ##AB ##BAB", 5, "one letter too long"),
)


def wordpiece_cases(rng):
    """The patterns in drawn letters, with drawn numbers, and pieces that do not fit."""
    for group, word, pieces, longest, about in PATTERNS:
        drawn = rng.permutation(list(ALPHABET))
        letters = dict(zip("ABCDEFG", drawn, strict=False))
        spell = str.maketrans(letters)
        others = ["".join(rng.permutation(drawn[7:14])[:2]) for _ in range(2)]
        own = [UNKNOWN, *(piece.translate(spell) for piece in pieces.split())]
        names = list(dict.fromkeys([*own, *others, *(f"##{other}" for other in others)]))
        ids = rng.permutation(4 * len(names))[: len(names)]
        vocabulary = {name: int(i) for name, i in zip(names, ids, strict=True)}
        inputs = {"word": word.translate(spell), "vocabulary": vocabulary, "longest": longest}
        yield Case(group, inputs, about)


def wordpiece_reference(word, vocabulary, longest):
    """The library `tokenizers`."""
    model = WordPiece(vocabulary, unk_token=UNKNOWN, max_input_chars_per_word=longest)
    return [token.id for token in model.tokenize(word)]


def _pieces(
    word,
    vocabulary,
    longest,
    ends=lambda start, length: range(length, start, -1),
    mark=lambda start: "##" if start else "",
    failed=lambda found, rest, unknown: ([unknown], len(rest)),
    too_long=lambda word, longest: len(word) > longest,
):
    unknown = vocabulary[UNKNOWN]
    if too_long(word, longest):
        return [unknown]
    found, start = [], 0
    while start < len(word):
        for end in ends(start, len(word)):
            piece = mark(start) + word[start:end]
            if piece in vocabulary:
                found.append(vocabulary[piece])
                start = end
                break
        else:
            found, step = failed(found, word[start:], unknown)
            start += step
    return found


def shortest_first(word, vocabulary, longest):
    """Takes the shortest piece that fits."""
    ends = lambda start, length: range(start + 1, length + 1)  # noqa: E731
    return _pieces(word, vocabulary, longest, ends=ends)


def no_marks(word, vocabulary, longest):
    """Looks up pieces in the middle without ##."""
    return _pieces(word, vocabulary, longest, mark=lambda start: "")


def marks_everywhere(word, vocabulary, longest):
    """Looks up the first piece with ##, too."""
    return _pieces(word, vocabulary, longest, mark=lambda start: "##")


def unknown_rest(word, vocabulary, longest):
    """Keeps the pieces found so far and makes the rest unknown."""
    failed = lambda found, rest, unknown: ([*found, unknown], len(rest))  # noqa: E731
    return _pieces(word, vocabulary, longest, failed=failed)


def unknown_letter(word, vocabulary, longest):
    """Makes one letter unknown and goes on."""
    failed = lambda found, rest, unknown: ([*found, unknown], 1)  # noqa: E731
    return _pieces(word, vocabulary, longest, failed=failed)


def unknown_dropped(word, vocabulary, longest):
    """Keeps the pieces found so far and drops the rest."""
    return _pieces(
        word, vocabulary, longest, failed=lambda found, rest, unknown: (found, len(rest))
    )


def _all_cuts(word, vocabulary, start=0):
    if start == len(word):
        yield []
    for end in range(len(word), start, -1):
        piece = ("##" if start else "") + word[start:end]
        if piece in vocabulary:
            for rest in _all_cuts(word, vocabulary, end):
                yield [vocabulary[piece], *rest]


def looks_back(word, vocabulary, longest):
    """Tries a shorter piece when the rest does not work out."""
    if len(word) > longest:
        return [vocabulary[UNKNOWN]]
    return next(_all_cuts(word, vocabulary), [vocabulary[UNKNOWN]])


def fewest_pieces(word, vocabulary, longest):
    """Looks for the cut with the fewest pieces."""
    if len(word) > longest:
        return [vocabulary[UNKNOWN]]
    return min(_all_cuts(word, vocabulary), key=len, default=[vocabulary[UNKNOWN]])


def no_limit(word, vocabulary, longest):
    """Ignores `longest`."""
    return _pieces(word, vocabulary, longest, too_long=lambda word, longest: False)


def limit_one_too_low(word, vocabulary, longest):
    """A word of just `longest` letters is unknown."""
    return _pieces(word, vocabulary, longest, too_long=lambda word, longest: len(word) >= longest)


def cut_to_the_limit(word, vocabulary, longest):
    """Cuts the word's end off."""
    return _pieces(word[:longest], vocabulary, longest)


def from_the_right(word, vocabulary, longest):
    """Takes the longest piece at the end of the word first."""
    if len(word) > longest:
        return [vocabulary[UNKNOWN]]
    found, end = [], len(word)
    while end:
        for start in range(end):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                found.insert(0, vocabulary[piece])
                end = start
                break
        else:
            return [vocabulary[UNKNOWN]]
    return found


def whole_words_only(word, vocabulary, longest):
    """Looks up the word, and that is all."""
    known = len(word) <= longest and word in vocabulary
    return [vocabulary[word if known else UNKNOWN]]


def by_recursion(word, vocabulary, longest):
    """Right: the first piece, then the rest of the word."""

    def cut(rest, mark):
        if not rest:
            return []
        for end in range(len(rest), 0, -1):
            if mark + rest[:end] in vocabulary:
                after = cut(rest[end:], "##")
                return None if after is None else [vocabulary[mark + rest[:end]], *after]
        return None

    pieces = cut(word, "") if len(word) <= longest else None
    return [vocabulary[UNKNOWN]] if pieces is None else pieces


def by_shrinking(word, vocabulary, longest):
    """Right: drops the last letter until a piece fits; gives a tuple."""
    rest, pieces = word, []
    while rest and len(word) <= longest:
        piece = rest if rest == word else "##" + rest
        while piece.removeprefix("##") and piece not in vocabulary:
            piece = piece[:-1]
        if piece not in vocabulary:
            return (vocabulary[UNKNOWN],)
        pieces.append(vocabulary[piece])
        rest = rest[len(piece.removeprefix("##")) :]
    return tuple(pieces) or (vocabulary[UNKNOWN],)


def by_sorted_pieces(word, vocabulary, longest):
    """Right: asks all pieces, the longest first."""
    if len(word) > longest:
        return [vocabulary[UNKNOWN]]
    ordered = sorted(vocabulary, key=len, reverse=True)
    first = [piece for piece in ordered if piece[0] != "#" and piece != UNKNOWN]
    later = [piece for piece in ordered if piece.startswith("##")]
    spelled, found = "", []
    while spelled != word:
        options = later if spelled else first
        rest = word[len(spelled) :]
        fitting = [piece for piece in options if rest.startswith(piece.removeprefix("##"))]
        if not fitting:
            return [vocabulary[UNKNOWN]]
        found.append(vocabulary[fitting[0]])
        spelled += fitting[0].removeprefix("##")
    return found


WORDPIECE = Exercise(
    id="wordpiece",
    title="WordPiece",
    asks="Cut a word into pieces of a vocabulary: always the longest that fits, from the left.",
    parameters=("word", "vocabulary", "longest"),
    outputs=("tokens",),
    driver="sequence_function",
    groups={
        "greedy": Group(2, "the longest piece first"),
        "unknown": Group(1, "words that cannot be cut, or are too long"),
    },
    cases=wordpiece_cases,
    reference=wordpiece_reference,
    misconceptions=(
        Misconception(
            shortest_first,
            "The shortest piece that fits is taken.",
            "From which end should the search for a piece begin?",
        ),
        Misconception(
            no_marks,
            "Pieces inside the word are looked up without their ##.",
            "How is a piece spelled that does not begin a word?",
        ),
        Misconception(
            marks_everywhere,
            "The first piece, too, is looked up with ##.",
            "Which pieces have ## in the vocabulary, and which have not?",
        ),
        Misconception(
            unknown_rest,
            "The pieces found before the failure are kept; the whole word is unknown.",
            "How many tokens has a word that cannot be cut?",
        ),
        Misconception(
            unknown_letter,
            "One letter is made unknown, and the search goes on behind it.",
            "How many tokens has a word that cannot be cut?",
        ),
        Misconception(
            unknown_dropped,
            "What could not be cut is missing from the result.",
            "Which token stands for a word that cannot be cut?",
        ),
        Misconception(
            looks_back,
            "After a dead end a shorter piece was tried. WordPiece is greedy: no looking back.",
            "What does the exercise say if no piece fits at some place?",
        ),
        Misconception(
            fewest_pieces,
            "The cut with the fewest pieces was chosen, not the longest piece at each place.",
            "At each place, only the next piece matters.",
        ),
        Misconception(
            no_limit,
            "A word longer than `longest` was cut all the same.",
            "Where does your code use `longest`?",
        ),
        Misconception(
            limit_one_too_low,
            "A word of exactly `longest` letters was made unknown.",
            "Longer than `longest`, or as long?",
        ),
        Misconception(
            cut_to_the_limit,
            "A word that is too long was shortened; it is unknown as a whole.",
            "Read what the exercise says about long words.",
        ),
        Misconception(
            from_the_right,
            "The search runs from the end of the word to its beginning.",
            "At which end of the word does the first piece stand?",
        ),
        Misconception(
            whole_words_only,
            "Only whole words are looked up.",
            "What if the word is not in the vocabulary but its parts are?",
        ),
    ),
    accepted=(by_recursion, by_shrinking, by_sorted_pieces),
)
