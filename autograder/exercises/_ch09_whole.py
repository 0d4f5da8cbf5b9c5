"""Chapter 09: whole-word masking."""

from __future__ import annotations

from itertools import pairwise

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

SPECIAL = ("[CLS]", "[SEP]", "[PAD]")
SYLLABLES = ("ba", "do", "fi", "gu", "ke", "lo", "mi", "na", "pu", "ra", "se", "to", "vu", "wi")


def whole_word_mask_cases(rng):
    """Words of one to four pieces; two sentences and padding; a budget that few words fit."""

    def case(group, about, sizes, percent, order=None, second=0, padding=0):
        rank = rng.permutation(len(sizes)) if order is None else order
        pieces, scores = ["[CLS]"], [float(rng.random())]
        for number, (size, place) in enumerate(zip(sizes, rank, strict=True)):
            if second and number == second:
                pieces.append("[SEP]")
                scores.append(0.001)
            drawn = [str(rng.choice(SYLLABLES)) for _ in range(size)]
            pieces += [drawn[0], *(f"##{piece}" for piece in drawn[1:])]
            # Later pieces of a word have scores that would lead elsewhere.
            later = [(20 - place) / 1000, *(float(x) for x in rng.random(3))]
            scores += [(place + 1) / 20, *later[: size - 1]]
        pieces += ["[SEP]", *["[PAD]"] * padding]
        scores += [float(x) / 100 for x in rng.random(1 + padding)]
        inputs = {"pieces": pieces, "scores": scores, "percent": percent}
        return Case(group, inputs, about)

    sizes = [int(n) for n in rng.permutation([1, 1, 2, 2, 3, 1, 2])]
    yield case("words", "a quarter of a sentence", sizes, 25)
    sizes = [int(n) for n in rng.permutation([1, 3, 2, 1, 4, 2, 1, 3])]
    yield case("words", "35 % of two sentences, padded", sizes, 35, second=4, padding=3)
    order = [int(n) for n in rng.permutation(5)]
    by_rank = [2, 4, 1, 3, 1]  # sizes by rank: 11 pieces, room for 5: 2, (4), 1, (3), 1
    yield case("skips", "words that do not fit", [by_rank[r] for r in order], 46, order)
    order = [int(n) for n in rng.permutation(6)]
    by_rank = [3, 2, 2, 1, 3, 2]  # 13 pieces, room for 6: 3, 2, (2), 1, full
    yield case("skips", "others that do not fit", [by_rank[r] for r in order], 47, order)
    order = [int(n) for n in rng.permutation(4)]
    by_rank = [2, 1, 1, 1]  # 5 pieces, room for 0, so for 1: (2), 1
    yield case("skips", "at least one piece", [by_rank[r] for r in order], 15, order, padding=2)
    yield case("skips", "no word fits", [3, 2], 15)


def whole_word_mask_reference(pieces, scores, percent):
    """Keeps a set of positions and asks for every word in order."""
    starts = [
        i for i, piece in enumerate(pieces) if piece not in SPECIAL and not piece.startswith("##")
    ]
    words = {}
    for start in starts:
        end = start + 1
        while pieces[end].startswith("##"):
            end += 1
        words[start] = range(start, end)
    total = sum(map(len, words.values()))
    budget, chosen = max(1, percent * total // 100), set()
    for start in sorted(starts, key=lambda start: scores[start]):
        if len(chosen | set(words[start])) <= budget:
            chosen |= set(words[start])
    return sorted(chosen)


def _words(pieces):
    words = []
    for place, piece in enumerate(pieces):
        if piece in SPECIAL:
            continue
        if piece.startswith("##"):
            words[-1].append(place)
        else:
            words.append([place])
    return words


def _choose(
    pieces,
    scores,
    percent,
    words=_words,
    least=1,
    count=len,
    size=len,
    full="skip",
    order=lambda words, scores: sorted(words, key=lambda word: scores[word[0]]),
    taken=lambda word: word,
):
    groups = words(pieces)
    total = sum(map(len, groups)) if count is len else count(groups, pieces)
    budget, chosen, used = max(least, percent * total // 100), [], 0
    for word in order(groups, scores):
        if used + size(word) > budget:
            if full == "skip":
                continue
            if full == "stop" or used >= budget:
                break
        chosen += taken(word)
        used += size(word)
    return sorted(chosen)


def pieces_as_words(**given):
    """Selects pieces, not words."""
    return _choose(
        **given,
        words=lambda pieces: [[i] for i, piece in enumerate(pieces) if piece not in SPECIAL],
    )


def first_pieces_only(**given):
    """Masks the first piece of each selected word."""
    return _choose(**given, taken=lambda word: word[:1])


def words_counted(**given):
    """The budget is a share of the words, each of which counts 1."""
    return _choose(**given, count=lambda groups, pieces: len(groups), size=lambda word: 1)


def stops_at_the_first_misfit(**given):
    """Stops when a word does not fit."""
    return _choose(**given, full="stop")


def budget_overrun(**given):
    """Takes the word that crosses the budget, too."""
    return _choose(**given, full="take")


def specials_counted(**given):
    """The budget is a share of all pieces, special ones too."""
    return _choose(**given, count=lambda groups, pieces: len(pieces))


def specials_selected(**given):
    """[CLS], [SEP] and padding are words like others."""

    def words(pieces):
        groups = []
        for place, piece in enumerate(pieces):
            if piece.startswith("##"):
                groups[-1].append(place)
            else:
                groups.append([place])
        return groups

    return _choose(**given, words=words)


def largest_scores_first(**given):
    """Starts with the largest score."""
    return _choose(
        **given, order=lambda words, scores: sorted(words, key=lambda word: -scores[word[0]])
    )


def smallest_score_of_the_pieces(**given):
    """A word has the smallest score of its pieces."""
    return _choose(
        **given,
        order=lambda words, scores: sorted(words, key=lambda word: min(scores[i] for i in word)),
    )


def mean_score_of_the_pieces(**given):
    """A word has the mean score of its pieces."""

    def order(words, scores):
        return sorted(words, key=lambda word: sum(scores[i] for i in word) / len(word))

    return _choose(**given, order=order)


def order_of_the_text(**given):
    """Ignores the scores."""
    return _choose(**given, order=lambda words, scores: words)


def nothing_in_short_sentences(**given):
    """Forgets that the budget is at least 1."""
    return _choose(**given, least=0)


def continuations_join_the_next_word(**given):
    """Attaches ## pieces to the word behind them."""

    def words(pieces):
        groups, open_group = [], []
        for place in reversed(range(len(pieces))):
            if pieces[place] in SPECIAL:
                continue
            open_group.insert(0, place)
            if not pieces[place - 1].startswith("##"):
                groups.insert(0, open_group)
                open_group = []
        return groups

    return _choose(**given, words=words)


def by_boundaries(pieces, scores, percent):
    """Right: cuts the list wherever a word begins."""
    cuts = [i for i, piece in enumerate(pieces) if not piece.startswith("##")] + [len(pieces)]
    words = [list(range(a, b)) for a, b in pairwise(cuts) if pieces[a] not in SPECIAL]
    left = max(1, sum(len(word) for word in words) * percent // 100)
    chosen = []
    for word in sorted(words, key=lambda word: scores[word[0]]):
        if len(word) <= left:
            left -= len(word)
            chosen.extend(word)
    return sorted(chosen)


def by_flags(pieces, scores, percent):
    """Right: a flag for each piece; gives a tuple."""
    real = [piece not in SPECIAL for piece in pieces]
    budget, flags = max(1, percent * sum(real) // 100), [False] * len(pieces)
    for _, start in sorted(zip(scores, range(len(pieces)), strict=True)):
        if not real[start] or pieces[start][:2] == "##":
            continue
        end = start + 1
        while end < len(pieces) and pieces[end][:2] == "##":
            end += 1
        if sum(flags) + end - start <= budget:
            flags[start:end] = [True] * (end - start)
    return tuple(i for i, flag in enumerate(flags) if flag)


def by_word_numbers(pieces, scores, percent):
    """Right: numbers the words of all pieces first."""
    numbers, number = [], -1
    for piece in pieces:
        number += not piece.startswith("##")
        numbers.append(number)
    members = {}
    for place, (piece, number) in enumerate(zip(pieces, numbers, strict=True)):
        if piece not in SPECIAL:
            members.setdefault(number, []).append(place)
    room = max(percent * sum(len(m) for m in members.values()) // 100, 1)
    result = []
    for _, places in sorted(members.items(), key=lambda item: scores[item[1][0]]):
        if len(result) + len(places) <= room:
            result += places
    result.sort()
    return result


WHOLE_WORD_MASK = Exercise(
    id="whole_word_mask",
    title="Whole-word masking",
    asks="Select whole words until the budget of pieces is used up.",
    parameters=("pieces", "scores", "percent"),
    outputs=("places",),
    driver="sequence_function",
    groups={
        "words": Group(2, "words of several pieces"),
        "skips": Group(1, "words that do not fit any more"),
    },
    cases=whole_word_mask_cases,
    reference=whole_word_mask_reference,
    misconceptions=(
        Misconception(
            pieces_as_words,
            "Single pieces were selected: a word may be half masked.",
            "Which pieces belong to one word?",
        ),
        Misconception(
            first_pieces_only,
            "Only the first piece of each selected word is in the result.",
            "What should happen to its ## pieces?",
        ),
        Misconception(
            words_counted,
            "The budget counts words; it counts pieces.",
            "How many pieces does a word of three pieces use up?",
        ),
        Misconception(
            stops_at_the_first_misfit,
            "The selection ended at the first word that did not fit.",
            "Might a shorter word behind it still fit?",
        ),
        Misconception(
            budget_overrun,
            "A word was taken that does not fit into the budget.",
            "Ask before you take a word.",
        ),
        Misconception(
            specials_counted,
            "The budget is a share of all pieces, [CLS], [SEP] and padding included.",
            "15 % of what?",
        ),
        Misconception(
            specials_selected,
            "Special tokens were treated as words.",
            "Which three pieces can never be selected?",
        ),
        Misconception(
            largest_scores_first,
            "The words with the largest scores came first.",
            "Smallest or largest score first?",
        ),
        Misconception(
            smallest_score_of_the_pieces,
            "A word was given the smallest score of its pieces.",
            "Which piece's score is the word's?",
        ),
        Misconception(
            mean_score_of_the_pieces,
            "A word was given the mean score of its pieces.",
            "Which piece's score is the word's?",
        ),
        Misconception(
            order_of_the_text,
            "Words were taken in the order of the text.",
            "Where do the scores enter?",
        ),
        Misconception(
            nothing_in_short_sentences,
            "The budget of a short sentence was 0.",
            "What does the exercise say about the least budget?",
        ),
        Misconception(
            continuations_join_the_next_word,
            "## pieces were attached to the word behind them.",
            "Which word does a ## piece continue?",
        ),
    ),
    accepted=(by_boundaries, by_flags, by_word_numbers),
    equivalent_mutants={
        f"`piece not in ('[CLS]', '[SEP]', '[PAD]')` → `piece not in {other}`": "the order in a "
        "collection that is searched does not matter"
        for other in ("('[SEP]', '[CLS]', '[PAD]')", "('[CLS]', '[PAD]', '[SEP]')")
    },
)
