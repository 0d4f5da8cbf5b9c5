"""Exercise of chapter 10: precision, recall and F1 of entities, strictly read."""

from __future__ import annotations

import re
from collections import Counter

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import draw_telling

KINDS = ("PER", "LOC", "ORG")


def _draw_sentence(rng, words):
    """Draw tags of `words` words: entities of one to three words, often side by side."""
    tags = []
    while len(tags) < words:
        kind = str(rng.choice(KINDS))
        inside = int(rng.integers(0, 3))
        tags += [f"B-{kind}", *[f"I-{kind}"] * inside] if rng.random() < 0.6 else ["O"]
    tags = tags[:words]
    return [
        f"B{tag[1:]}" if place == 0 and tag[0] == "I" else tag for place, tag in enumerate(tags)
    ]


def _disturbed(rng, tags, strays):
    """Guesses: some tags changed; with `strays`, I- tags without a beginning."""
    guesses = list(tags)
    for place in rng.choice(len(tags), 2, replace=False):
        guesses[place] = str(rng.choice(["O", *(f"B-{kind}" for kind in KINDS)]))
    if strays:
        for place in rng.choice(len(tags), 2, replace=False):
            guesses[place] = f"I-{rng.choice(KINDS)}"
        return guesses
    return _begun(guesses)


def _begun(tags):
    """Make every I- that continues nothing a B-."""
    result = []
    for tag in tags:
        if tag[0] == "I" and (not result or result[-1][1:] != tag[1:]):
            tag = f"B{tag[1:]}"
        result.append(tag)
    return result


def entity_f1_cases(rng):
    """Right and wrong entities, side by side; strays; nothing found; nothing to find."""

    def draw(strays):
        truths = [_draw_sentence(rng, int(words)) for words in rng.permutation([5, 7, 8])]
        guesses = [_disturbed(rng, tags, strays) for tags in truths]
        return {"guesses": guesses, "truths": truths}

    def telling(strays, *wrong):
        return draw_telling(lambda: draw(strays), entity_f1_reference, wrong)

    strict = (words_counted, kinds_ignored, precision_and_recall_exchanged, mean_of_sentences)
    yield Case("entities", telling(False, *strict), "three sentences")
    more = (beginnings_counted, neighbours_joined, sentences_joined, share_of_tags)
    yield Case("entities", telling(False, *more), "entities side by side")
    yield Case("strays", telling(True, strays_begin, any_kind_continues), "I- without a beginning")
    yield Case("strays", telling(True, strays_begin, neighbours_joined), "more of them")
    truths = [_draw_sentence(rng, 6)]
    truths[0][2] = "B-PER"
    nothing = [["O"] * 6]
    yield Case("nothing", {"guesses": nothing, "truths": truths}, "nothing found")
    yield Case("nothing", {"guesses": truths, "truths": nothing}, "nothing to find")
    yield Case("nothing", {"guesses": truths, "truths": truths}, "everything right")


def _entities(sentences, goes_on=None, starts=None):
    """A bag of (sentence, first word, last word, kind)."""
    goes_on = goes_on or (lambda tag, kind: tag == f"I-{kind}")
    starts = starts or (lambda tag: tag[0] == "B")
    found = []
    for number, tags in enumerate(sentences):
        place = 0
        while place < len(tags):
            if not starts(tags[place]):
                place += 1
                continue
            first, kind = place, tags[place][2:]
            place += 1
            while place < len(tags) and goes_on(tags[place], kind):
                place += 1
            found.append((number, first, place - 1, kind))
    return found


def _scores(guesses, truths):
    """(precision, recall, F1) of two lists of entities."""
    right = sum((Counter(guesses) & Counter(truths)).values())
    precision = right / len(guesses) if guesses else 0.0
    recall = right / len(truths) if truths else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def entity_f1_reference(guesses, truths):
    """Lists of entities."""
    return _scores(_entities(guesses), _entities(truths))


def words_counted(guesses, truths):
    """Counts words that are tagged."""
    words = [
        [(n, p, tag) for n, tags in enumerate(part) for p, tag in enumerate(tags) if tag != "O"]
        for part in (guesses, truths)
    ]
    return _scores(*words)


def share_of_tags(guesses, truths):
    """Share of right tags, three times."""
    pairs = [
        a == b
        for one, other in zip(guesses, truths, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    share = sum(pairs) / len(pairs)
    return share, share, share


def kinds_ignored(guesses, truths):
    """Compares places only."""
    return _scores(*([entity[:3] for entity in _entities(part)] for part in (guesses, truths)))


def beginnings_counted(guesses, truths):
    """Compares first words and kinds."""
    parts = ([(n, first, kind) for n, first, _, kind in _entities(p)] for p in (guesses, truths))
    return _scores(*parts)


def precision_and_recall_exchanged(guesses, truths):
    """Exchanges the arguments."""
    return entity_f1_reference(truths, guesses)


def mean_of_sentences(guesses, truths):
    """Averages over sentences."""
    rows = [entity_f1_reference([a], [b]) for a, b in zip(guesses, truths, strict=True)]
    return tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))


def sentences_joined(guesses, truths):
    """Forgets from which sentence an entity is."""
    return _scores(*(sorted({e[1:] for e in _entities(part)}) for part in (guesses, truths)))


def neighbours_joined(guesses, truths):
    """Joins entities of one kind that stand side by side."""

    def goes_on(tag, kind):
        return tag[2:] == kind

    return _scores(*(_entities(part, goes_on) for part in (guesses, truths)))


def strays_begin(guesses, truths):
    """Lets an I- without a beginning start an entity."""

    def starts(tag):
        return tag != "O"

    return _scores(*(_entities(part, starts=starts) for part in (guesses, truths)))


def any_kind_continues(guesses, truths):
    """Lets an I- of another kind continue."""

    def goes_on(tag, kind):
        return tag[0] == "I"

    return _scores(*(_entities(part, goes_on) for part in (guesses, truths)))


def nothing_to_find_is_right(guesses, truths):
    """1 where there is nothing to divide by."""
    found, wanted = _entities(guesses), _entities(truths)
    precision, recall, f1 = _scores(found, wanted)
    return (precision if found else 1.0), (recall if wanted else 1.0), f1


def by_walking(guesses, truths):
    """Right: one pass with an open entity."""

    def read(sentences):
        entities = set()
        for number, tags in enumerate(sentences):
            first = None
            for place, tag in enumerate([*tags, "O"]):
                if first is not None and tag != f"I-{tags[first][2:]}":
                    entities.add((number, first, place, tags[first][2:]))
                    first = None
                if tag.startswith("B-"):
                    first = place
        return entities

    found, wanted = read(guesses), read(truths)
    right = len(found & wanted)
    precision = right / max(len(found), 1)
    recall = right / max(len(wanted), 1)
    return precision, recall, 2 * right / max(len(found) + len(wanted), 1)


def by_text(guesses, truths):
    """Right: regular expressions over the tags."""

    def read(sentences):
        found = set()
        for number, tags in enumerate(sentences):
            text = " ".join(tags) + " "
            for match in re.finditer(r"B-(\w+)(?: I-\1)*(?= )", text):
                found.add((number, text[: match.start()].count(" "), match.group()))
        return found

    found, wanted = read(guesses), read(truths)
    right = len(found & wanted)
    if not right:
        return 0.0, 0.0, 0.0
    return right / len(found), right / len(wanted), 2 * right / (len(found) + len(wanted))


def by_sentence(guesses, truths):
    """Right: adds up counts of sentences."""
    right = found = wanted = 0
    for a, b in zip(guesses, truths, strict=True):
        a, b = set(_entities([a])), set(_entities([b]))
        right, found, wanted = right + len(a & b), found + len(a), wanted + len(b)
    precision = right / found if found else 0.0
    recall = right / wanted if wanted else 0.0
    return precision, recall, 2 / (1 / precision + 1 / recall) if right else 0.0


ENTITY_F1 = Exercise(
    id="entity_f1",
    title="Entities, strictly",
    asks="Give precision, recall and F1 of whole entities over all sentences.",
    parameters=("guesses", "truths"),
    outputs=("precision", "recall", "f1"),
    groups={
        "entities": Group(2, "right and wrong entities"),
        "strays": Group(1, "I- without a beginning"),
        "nothing": Group(1, "nothing found, nothing to find"),
    },
    cases=entity_f1_cases,
    reference=entity_f1_reference,
    misconceptions=(
        Misconception(
            words_counted,
            "Words are counted; an entity of three words is *one* entity.",
            "What is right about an entity of which two of three words are found?",
        ),
        Misconception(
            share_of_tags,
            "This is the share of right tags; most of them may be O.",
            "What would a tagger that always says O get?",
        ),
        Misconception(
            kinds_ignored,
            "The kind of an entity does not matter in your count.",
            "Is a place that is found as a person found?",
        ),
        Misconception(
            beginnings_counted,
            "Only beginnings are compared; the end has to be right, too.",
            "Which numbers describe an entity completely?",
        ),
        Misconception(
            precision_and_recall_exchanged,
            "Precision and recall are exchanged.",
            "Precision is a share of what: of the guesses or of the truths?",
        ),
        Misconception(
            mean_of_sentences,
            "Scores are averaged over sentences; entities of all sentences are counted together.",
            "How often do you divide?",
        ),
        Misconception(
            sentences_joined,
            "Entities at the same place of different sentences are taken for one.",
            "What tells two sentences apart in your set?",
        ),
        Misconception(
            neighbours_joined,
            "Two entities of a kind side by side became one; B- begins a new one.",
            "What does a B- right after an entity mean?",
        ),
        Misconception(
            strays_begin,
            "An I- without a beginning started an entity; by the contract it is none.",
            "Which tag must an entity begin with?",
        ),
        Misconception(
            any_kind_continues,
            "An I- of another kind continued the entity.",
            "Which tags may follow B-PER in the same entity?",
        ),
        Misconception(
            nothing_to_find_is_right,
            "Where there is nothing to divide by, the contract asks for 0.",
            "What is the precision of a tagger that finds nothing, by point 4?",
        ),
    ),
    accepted=(by_walking, by_text, by_sentence),
    equivalent_mutants=dict.fromkeys(
        (
            "`found.add((number, first, place, tags[first]))` → "
            "`found.add((first, number, place, tags[first]))`",
            "`found.add((number, first, place, tags[first]))` → "
            "`found.add((number, place, first, tags[first]))`",
            "`found.add((number, first, place, tags[first]))` → "
            "`found.add((number, first, tags[first], place))`",
        ),
        "the order of an entity's parts is free",
    ),
)
