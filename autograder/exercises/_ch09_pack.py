"""Chapter 09: one or two sentences in one sequence."""

from __future__ import annotations

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def pack_sentences_cases(rng):
    """One sentence, two; shorter than the room, just as long, longer; ties while cutting."""

    def case(group, first, second, longest, about):
        cls, separator, padding, *words = (int(i) for i in rng.permutation(60))
        drawn = [words[i] for i in rng.permutation(len(words))]
        inputs = {
            "first": drawn[:first],
            "second": None if second is None else drawn[first : first + second],
            "longest": longest,
            "cls": cls,
            "separator": separator,
            "padding": padding,
        }
        return Case(group, inputs, about)

    a, b = (int(n) for n in rng.permutation([3, 4, 5])[:2])
    yield case("one", a, None, a + 4, "one sentence, padded")
    yield case("two", a, b, a + b + 5, "two sentences, padded")
    yield case("two", b, a, a + b + 3, "two sentences that just fit")
    yield case("cut", a + 4, None, a + 2, "one sentence, too long")
    yield case("cut", a + 6, b, a + b + 4, "the first one is too long")
    yield case("cut", a, b + 5, a + b + 5, "the second one is too long")
    yield case("cut", 5 + a, 5 + a, 2 * a + 4, "two of equal length")
    yield case("cut", 6 + a, 8 + a, 2 * a + 6, "both too long")


def pack_sentences_reference(first, second, longest, cls, separator, padding):
    """Computes how much of each is kept, without a loop."""
    if second is None:
        parts = [[cls, *first[: longest - 2], separator]]
    else:
        room = longest - 3
        kept = min(len(second), max(room // 2, room - len(first)))
        parts = [[cls, *first[: room - kept], separator], [*second[:kept], separator]]
    tokens = [token for part in parts for token in part]
    segments = [number for number, part in enumerate(parts) for _ in part]
    missing = longest - len(tokens)
    mask = [True] * len(tokens) + [False] * missing
    return tokens + [padding] * missing, segments + [0] * missing, mask


def _cut(first, second, room, tie_cuts_second=True):
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        longer = len(first) > len(second) or (len(first) == len(second) and not tie_cuts_second)
        (first if longer else second).pop()
    return first, second


def _pack(
    first,
    second,
    longest,
    cls,
    separator,
    padding,
    cut=_cut,
    join=lambda a, b, cls, sep: [[cls, *a, sep], [*b, sep]],
    padded_segment=0,
):
    if second is None:
        parts = [[cls, *cut(first, [], longest - 2)[0], separator]]
    else:
        parts = join(*cut(first, second, longest - 3), cls, separator)
    tokens = [token for part in parts for token in part]
    segments = [number for number, part in enumerate(parts) for _ in part]
    missing = longest - len(tokens)
    mask = [True] * len(tokens) + [False] * missing
    return tokens + [padding] * missing, segments + [padded_segment] * missing, mask


def segments_all_zero(**inputs):
    """The second sentence has segment 0, too."""
    tokens, segments, mask = _pack(**inputs)
    return tokens, [0] * len(segments), mask


def separator_in_the_second(**inputs):
    """The first separator counts to the second segment."""
    return _pack(**inputs, join=lambda a, b, cls, sep: [[cls, *a], [sep, *b, sep]])


def padding_in_the_second(**inputs):
    """Padding has segment 1."""
    return _pack(**inputs, padded_segment=1)


def no_last_separator(**inputs):
    """No separator behind the second sentence."""
    tokens, segments, mask = _pack(**inputs, join=lambda a, b, cls, sep: [[cls, *a, sep], [*b]])
    return tokens, segments, mask


def cls_twice(**inputs):
    """The second sentence begins with [CLS], too."""
    fewer = dict(inputs)
    if inputs["second"] is not None:
        fewer["longest"] -= 1
    tokens, segments, mask = _pack(
        **fewer, join=lambda a, b, cls, sep: [[cls, *a, sep], [cls, *b, sep]]
    )
    missing = inputs["longest"] - len(tokens)
    return (
        tokens + [inputs["padding"]] * missing,
        segments + [0] * missing,
        mask + [False] * missing,
    )


def end_cut_off(**inputs):
    """Packs everything, then cuts off the end, separator and all."""
    long = {**inputs, "longest": max(inputs["longest"], 60)}
    return tuple(part[: inputs["longest"]] for part in _pack(**long))


def only_the_second_cut(**inputs):
    """Cuts the second sentence, and the first one only if nothing is left of the second."""

    def cut(first, second, room):
        kept = min(len(second), max(room - len(first), 0))
        return first[: room - kept], second[:kept]

    return _pack(**inputs, cut=cut)


def half_for_each(**inputs):
    """Gives each sentence half of the room, whether the other one needs its half or not."""

    def cut(first, second, room):
        if not second or len(first) + len(second) <= room:
            return first[:room], second
        return first[: room - room // 2], second[: room // 2]

    return _pack(**inputs, cut=cut)


def ties_cut_the_first(**inputs):
    """Of two sentences of equal length the first is cut."""
    return _pack(**inputs, cut=lambda a, b, room: _cut(a, b, room, tie_cuts_second=False))


def shorter_one_cut(**inputs):
    """Cuts the shorter sentence first."""

    def cut(first, second, room):
        first, second = list(first), list(second)
        while len(first) + len(second) > room:
            shorter = len(first) < len(second) if first and second else bool(first)
            (first if shorter else second).pop()
        return first, second

    return _pack(**inputs, cut=cut)


def beginnings_cut(**inputs):
    """Cuts words at the beginning."""
    reverse = {
        name: value[::-1] if isinstance(value, list) else value for name, value in inputs.items()
    }

    def turned(a, b, room):
        first, second = _cut(a, b, room)
        return first[::-1], second[::-1]

    return _pack(**reverse, cut=turned)


def room_without_specials(**inputs):
    """Cuts to `longest` words and forgets that special tokens need room."""
    return _pack(**inputs, cut=lambda a, b, room: _cut(a, b, inputs["longest"]))


def mask_inverted(**inputs):
    """True for padding."""
    tokens, segments, mask = _pack(**inputs)
    return tokens, segments, [not seen for seen in mask]


def mask_of_words_only(**inputs):
    """The special tokens cannot be seen."""
    tokens, segments, _ = _pack(**inputs)
    special = (inputs["cls"], inputs["separator"], inputs["padding"])
    return tokens, segments, [token not in special for token in tokens]


def by_slices(first, second, longest, cls, separator, padding):
    """Right: counts what has to go, then slices."""
    keep = [len(first), 0 if second is None else len(second)]
    specials = 2 if second is None else 3
    for _ in range(max(sum(keep) + specials - longest, 0)):
        keep[keep[1] >= keep[0]] -= 1
    tokens = [cls, *first[: keep[0]], separator]
    segments = [0] * len(tokens)
    if second is not None:
        tokens += [*second[: keep[1]], separator]
        segments += [1] * (keep[1] + 1)
    length = len(tokens)
    tokens += [padding] * (longest - length)
    segments += [0] * (longest - length)
    return tokens, segments, [place < length for place in range(longest)]


def by_assignment(first, second, longest, cls, separator, padding):
    """Right: fills lists that are long enough from the start; gives tuples."""
    first, second_words = _cut(first, second or [], longest - (2 if second is None else 3))
    tokens, segments, mask = [padding] * longest, [0] * longest, [False] * longest
    words = [cls, *first, separator]
    if second is not None:
        words += [*second_words, separator]
    for place, word in enumerate(words):
        tokens[place], mask[place] = word, True
        segments[place] = int(place >= len(first) + 2)
    return tuple(tokens), tuple(segments), tuple(mask)


def token_by_token(first, second, longest, cls, separator, padding):
    """Right: a list of (token, segment, seen)."""
    a, b = _cut(first, [] if second is None else second, longest - 2 - (second is not None))
    rows = [(token, 0, True) for token in (cls, *a, separator)]
    if second is not None:
        rows += [(token, 1, True) for token in (*b, separator)]
    while len(rows) < longest:
        rows.append((padding, 0, False))
    return [list(column) for column in zip(*rows, strict=True)]


PACK_SENTENCES = Exercise(
    id="pack_sentences",
    title="One or two sentences in one sequence",
    asks="Pack sentences with [CLS] and [SEP], segments, padding and mask; cut what is too long.",
    parameters=("first", "second", "longest", "cls", "separator", "padding"),
    outputs=("tokens", "segments", "mask"),
    driver="sequence_function",
    groups={
        "one": Group(1, "one sentence"),
        "two": Group(1, "two sentences"),
        "cut": Group(2, "sentences that are too long"),
    },
    cases=pack_sentences_cases,
    reference=pack_sentences_reference,
    misconceptions=(
        Misconception(
            segments_all_zero,
            "The second sentence has segment 0 like the first.",
            "How shall the model tell the two sentences apart?",
        ),
        Misconception(
            separator_in_the_second,
            "The separator between the sentences has segment 1; it ends the first sentence.",
            "Which sentence does each separator close?",
        ),
        Misconception(
            padding_in_the_second,
            "Padding has segment 1.",
            "Read the point on padding again.",
        ),
        Misconception(
            no_last_separator,
            "The second sentence is not closed by a separator.",
            "How many separators have two sentences?",
        ),
        Misconception(
            cls_twice,
            "There are two [CLS]; a sequence has one, at its beginning.",
            "Count the special tokens of the example.",
        ),
        Misconception(
            end_cut_off,
            "Everything was packed and then cut, so the last separator is lost.",
            "Cut the sentences before you put in the special tokens.",
        ),
        Misconception(
            only_the_second_cut,
            "Only the second sentence was cut, though the first was longer.",
            "Which sentence loses the next token?",
        ),
        Misconception(
            half_for_each,
            "Each sentence got half of the room, though one needed less.",
            "One token at a time: which sentence is the longer one *now*?",
        ),
        Misconception(
            ties_cut_the_first,
            "Of two sentences of equal length the first was cut.",
            "What does the exercise say about equal lengths?",
        ),
        Misconception(
            shorter_one_cut,
            "The shorter sentence was cut.",
            "Which of the two can spare a token?",
        ),
        Misconception(
            beginnings_cut,
            "Sentences lost their beginnings, not their ends.",
            "Which end does `pop()` take from?",
        ),
        Misconception(
            room_without_specials,
            "The special tokens were not counted: the result is longer than `longest`.",
            "How many places are left for words?",
        ),
        Misconception(
            mask_inverted,
            "The mask is the wrong way round: here True means that a token may be seen.",
            "What should the mask say of [CLS]?",
        ),
        Misconception(
            mask_of_words_only,
            "[CLS] and [SEP] are hidden; only padding should be.",
            "Which tokens are in the sequence for no other reason than its length?",
        ),
    ),
    accepted=(by_slices, by_assignment, token_by_token),
)
