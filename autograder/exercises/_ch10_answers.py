"""Exercises of chapter 10 on answers as texts: cut out of the passage, and scored."""

from __future__ import annotations

import re
import string
from collections import Counter

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

WORDS = [
    *("river", "stone", "lamp", "cloud", "garden", "window"),
    *("paper", "silver", "copper", "morning", "winter", "bridge"),
]
TRAPS = ["theatre", "anthem", "atlas", "thesis", "anchor", "thermal"]  # they hold a, an or the

# --- answer_text ---------------------------------------------------------------------------------


def answer_text_cases(rng):
    """A passage with signs, spaces of any width and capitals; no answer."""
    for first, last, about in (
        (4, 6, "three tokens"),
        (3, 4, "a sign without a space before it"),
        (7, 7, "one token"),
        (5, 8, "two spaces in a row"),
    ):
        words = [str(word) for word in rng.choice(WORDS, 8, replace=False)]
        words[1], words[4] = words[1].title(), words[4].upper()
        text, offsets = "", [(0, 0), (0, 3), (0, 0)]  # [CLS], a question of one token, [SEP]
        for place, word in enumerate(words):
            gap = {0: "", 1: "", 3: "  "}.get(place, " ")
            offsets.append((len(text) + len(gap), len(text) + len(gap) + len(word)))
            text += gap + word
            if place == 0:
                text += ", "
        inputs = {"text": text, "offsets": np.array(offsets, dtype=np.int64)}
        yield Case("text", {**inputs, "first": first, "last": last}, about)
    yield Case("text", {**inputs, "first": 0, "last": 0}, "no answer")


def answer_text_reference(text, offsets, first, last):
    """Character by character."""
    low, high = offsets[first].min(), offsets[last].max()
    return "".join(letter for place, letter in enumerate(text) if low <= place < high)


def tokens_joined(text, offsets, first, last):
    """Joins tokens by spaces."""
    return " ".join(text[low:high] for low, high in offsets[first : last + 1])


def tokens_run_together(text, offsets, first, last):
    """Joins tokens by nothing."""
    return "".join(text[low:high] for low, high in offsets[first : last + 1])


def last_token_missing(text, offsets, first, last):
    """Ends where the last token begins."""
    return text[offsets[first, 0] : offsets[last, 0]]


def one_character_more(text, offsets, first, last):
    """Takes the character after the end, too."""
    return text[offsets[first, 0] : offsets[last, 1] + 1] if last else ""


def one_character_less(text, offsets, first, last):
    """Leaves the last character out."""
    return text[offsets[first, 0] : max(offsets[last, 1] - 1, 0)]


def in_small_letters(text, offsets, first, last):
    """Lower-cases."""
    return answer_text_reference(text, offsets, first, last).lower()


def spaces_tidied(text, offsets, first, last):
    """Makes one space of several."""
    return " ".join(answer_text_reference(text, offsets, first, last).split())


def only_the_first_token(text, offsets, first, last):
    """Takes one token."""
    return text[offsets[first, 0] : offsets[first, 1]]


def by_slice(text, offsets, first, last):
    """Right: one slice."""
    return text[int(offsets[first][0]) : int(offsets[last][1])]


def by_list(text, offsets, first, last):
    """Right: Python lists; no answer on its own."""
    if first == 0:
        return ""
    places = offsets.tolist()
    return text[places[first][0] :][: places[last][1] - places[first][0]]


def by_bytes(text, offsets, first, last):
    """Right: through an array of characters."""
    return "".join(np.array(list(text))[offsets[first, 0] : offsets[last, 1]].tolist())


ANSWER_TEXT = Exercise(
    id="answer_text",
    title="From tokens to characters",
    asks="Cut the answer out of the passage, exactly as it stands there.",
    parameters=("text", "offsets", "first", "last"),
    outputs=("text",),
    driver="sequence_function",
    groups={"text": Group(1, "answers as they stand in the passage")},
    cases=answer_text_cases,
    reference=answer_text_reference,
    misconceptions=(
        Misconception(
            tokens_joined,
            "Tokens were joined by single spaces; the passage may have none there, or two.",
            "Do you need the tokens between the first and the last?",
        ),
        Misconception(
            tokens_run_together,
            "The spaces between tokens are lost.",
            "Do you need the tokens between the first and the last?",
        ),
        Misconception(
            last_token_missing,
            "The text ends where the last token begins; that token belongs to the answer.",
            "Which of the two offsets of the last token do you use?",
        ),
        Misconception(
            one_character_more,
            "One character too many: the second offset is already the one after the token.",
            "How many characters has a token with the offsets (3, 5)?",
        ),
        Misconception(
            one_character_less,
            "The last character is missing: the second offset is the one after the token.",
            "How many characters has a token with the offsets (3, 5)?",
        ),
        Misconception(
            in_small_letters,
            "Capitals are lost: an uncased model reads small letters, but the passage has them.",
            "From which text do you cut?",
        ),
        Misconception(
            spaces_tidied,
            "Spaces were tidied; the passage's own are asked for.",
            "What happens between cutting and returning?",
        ),
        Misconception(
            only_the_first_token,
            "Only the first token is given.",
            "Where does `last` enter your code?",
        ),
    ),
    accepted=(by_slice, by_list, by_bytes),
)

# --- exact_match_and_f1 --------------------------------------------------------------------------


def exact_match_and_f1_cases(rng):
    """Signs, capitals, articles; repeated words; several truths; nothing at all."""

    def draw():
        words = [str(word) for word in rng.permutation(WORDS)]
        return words, [str(trap) for trap in rng.permutation(TRAPS)]

    (a, b, c, d, e, *_), (trap, other, *_) = draw()
    yield Case(
        "normal form",
        {"guess": f"The {a}  {b.title()}!", "truths": [f"{c} {d}", f"{a}, {b}"]},
        "the same words with other signs, spaces, capitals and an article",
    )
    rest = re.sub("the|an|a", "", trap)
    inputs = {"guess": f"{trap} {other}", "truths": [f"{rest} {other} {c}"]}
    yield Case("normal form", inputs, "words in which articles hide")
    inputs = {"guess": f"{a}-{b} in the U.S.", "truths": [f"{a}{b} in US"]}
    yield Case("normal form", inputs, "signs within words")
    inputs = {"guess": f"an {a} of a {b}", "truths": [f"{c} {a} of {b} {d}"]}
    yield Case("normal form", inputs, "articles in the middle")
    (a, b, c, d, e, *_), _ = draw()
    yield Case(
        "overlap",
        {"guess": f"{a} {b} {b} {b} {c}", "truths": [f"{b} {d} {b} {e} {a} {d}"]},
        "words that come twice",
    )
    yield Case(
        "overlap",
        {"guess": f"{a} {b} {c}", "truths": [f"{d} {e}", f"{b} {a} {d} {e}", f"{a} {e}"]},
        "three truths",
    )
    yield Case("overlap", {"guess": f"{a} {b}", "truths": [f"{b} {a}"]}, "another order")
    for guess, truths, about in (
        ("", [""], "rightly no answer"),
        ("The", [""], "an article alone, and no answer"),
        ("", [f"{a} {b}"], "no answer where there is one"),
        (a, [""], "an answer where there is none"),
    ):
        yield Case("empty", {"guess": guess, "truths": truths}, about)


def _words(text):
    """Words in normal form, one token at a time."""
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return [word for word in plain.split() if word not in ("a", "an", "the")]


def _f1(guess, truth, shared=lambda a, b: sum((Counter(a) & Counter(b)).values())):
    if not guess or not truth:
        return float(guess == truth)
    common = shared(guess, truth)
    return 2 * common / (len(guess) + len(truth))


def _scores(guess, truths, words=_words, f1=_f1, exact=None, pick=max):
    pairs = [(words(guess), words(truth)) for truth in truths]
    exact = exact or (lambda a, b: float(a == b))
    return pick([exact(a, b) for a, b in pairs]), pick([f1(a, b) for a, b in pairs])


def exact_match_and_f1_reference(guess, truths):
    """Lists of words and counters."""
    return _scores(guess, truths)


def not_normalised(guess, truths):
    """Compares texts as they are."""
    return _scores(guess, truths, words=str.split)


def capitals_kept(guess, truths):
    """Does not lower-case."""

    def words(text):
        kept = "".join(x for x in text if x not in string.punctuation).split()
        return [word for word in kept if word.lower() not in ("a", "an", "the")]

    return _scores(guess, truths, words)


def articles_kept(guess, truths):
    """Keeps articles."""

    def words(text):
        return "".join(x for x in text.lower() if x not in string.punctuation).split()

    return _scores(guess, truths, words)


def articles_cut_out_of_words(guess, truths):
    """Removes articles wherever their letters stand."""

    def words(text):
        plain = "".join(x for x in text.lower() if x not in string.punctuation)
        return re.sub(r"the|an|a", "", plain).split()

    return _scores(guess, truths, words)


def signs_made_spaces(guess, truths):
    """Replaces punctuation by spaces."""

    def words(text):
        plain = "".join(" " if x in string.punctuation else x for x in text.lower())
        return [word for word in plain.split() if word not in ("a", "an", "the")]

    return _scores(guess, truths, words)


def repeated_words_once(guess, truths):
    """Sets instead of bags."""

    def f1(guess, truth):
        return _f1(sorted(set(guess)), sorted(set(truth)))

    return _scores(guess, truths, f1=f1)


def repeated_words_too_often(guess, truths):
    """Counts each of the guess's words that the truth holds."""

    def f1(guess, truth):
        return _f1(guess, truth, shared=lambda a, b: sum(word in b for word in a))

    return _scores(guess, truths, f1=f1)


def precision_for_f1(guess, truths):
    """Share of the guess's words."""

    def f1(guess, truth):
        same = _f1(guess, truth) * (len(guess) + len(truth)) / 2
        return same / len(guess) if guess and truth else float(guess == truth)

    return _scores(guess, truths, f1=f1)


def recall_for_f1(guess, truths):
    """Share of the truth's words."""

    def f1(guess, truth):
        same = _f1(guess, truth) * (len(guess) + len(truth)) / 2
        return same / len(truth) if guess and truth else float(guess == truth)

    return _scores(guess, truths, f1=f1)


def mean_over_truths(guess, truths):
    """Averages over truths."""
    return _scores(guess, truths, pick=lambda scores: sum(scores) / len(scores))


def only_the_first_truth(guess, truths):
    """Looks at one truth."""
    return _scores(guess, truths[:1])


def order_ignored(guess, truths):
    """Exact match of bags."""
    return _scores(guess, truths, exact=lambda a, b: float(sorted(a) == sorted(b)))


def empty_is_always_wrong(guess, truths):
    """0 whenever a side is empty."""
    return _scores(guess, truths, f1=lambda a, b: _f1(a, b) if a and b else 0.0)


def by_expressions(guess, truths):
    """Right: regular expressions."""

    def normal(text):
        text = re.sub(f"[{re.escape(string.punctuation)}]", "", text.lower())
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    exact = max(normal(guess) == normal(truth) for truth in truths)
    best = 0.0
    for truth in truths:
        a, b = normal(guess).split(), normal(truth).split()
        same = sum(min(a.count(word), b.count(word)) for word in set(a))
        if not a or not b:
            best = max(best, float(a == b))
        elif same:
            precision, recall = same / len(a), same / len(b)
            best = max(best, 2 * precision * recall / (precision + recall))
    return float(exact), best


def by_translating(guess, truths):
    """Right: str.translate; crosses words off."""
    table = str.maketrans("", "", string.punctuation)

    def words(text):
        return [w for w in text.translate(table).casefold().split() if w not in {"a", "an", "the"}]

    scores = []
    for truth in truths:
        a, left = words(guess), words(truth)
        size, same = len(a) + len(left), 0
        for word in a:
            if word in left:
                left.remove(word)
                same += 1
        scores.append(2 * same / size if size else 1.0)
    return float(words(guess) in [words(truth) for truth in truths]), max(scores)


def by_counters(guess, truths):
    """Right: counters throughout."""
    found = Counter(_words(guess))
    f1 = 0.0
    for truth in truths:
        wanted = Counter(_words(truth))
        total = found.total() + wanted.total()
        f1 = max(f1, 2 * (found & wanted).total() / total if total else 1.0)
    return np.float64(any(_words(guess) == _words(truth) for truth in truths)), f1


EXACT_MATCH_AND_F1 = Exercise(
    id="exact_match_and_f1",
    title="How right is an answer?",
    asks="Score an answer as SQuAD does: exact match, and F1 over words.",
    parameters=("guess", "truths"),
    outputs=("exact match", "f1"),
    groups={
        "normal form": Group(1, "signs, spaces, capitals and articles"),
        "overlap": Group(1, "words in common, several truths"),
        "empty": Group(1, "no answer"),
    },
    cases=exact_match_and_f1_cases,
    reference=exact_match_and_f1_reference,
    misconceptions=(
        Misconception(
            not_normalised,
            "Texts are compared as they are.",
            "What happens to both texts before they are compared?",
        ),
        Misconception(
            capitals_kept,
            "Capitals still matter.",
            "Which step of the normal form deals with capitals?",
        ),
        Misconception(
            articles_kept,
            "Articles are still there.",
            "Which three words does the normal form drop?",
        ),
        Misconception(
            articles_cut_out_of_words,
            "Letters of articles were cut out of other words.",
            "What becomes of “theatre”?",
        ),
        Misconception(
            signs_made_spaces,
            "Signs became spaces, so that “U.S.” is two words; they are dropped.",
            "What becomes of “U.S.”?",
        ),
        Misconception(
            repeated_words_once,
            "Each word counts once, however often it comes.",
            "How many words has “new new new”?",
        ),
        Misconception(
            repeated_words_too_often,
            "A word of the truth is matched more than once.",
            "How many words do “b b b” and “b b” share?",
        ),
        Misconception(
            precision_for_f1,
            "This is precision, the share of the guess's words that are right.",
            "Which two shares does F1 balance?",
        ),
        Misconception(
            recall_for_f1,
            "This is recall, the share of the truth's words that were found.",
            "Which two shares does F1 balance?",
        ),
        Misconception(
            mean_over_truths,
            "Scores are averaged over truths; the best one counts.",
            "Must a guess agree with all truths?",
        ),
        Misconception(
            only_the_first_truth,
            "Only the first truth is looked at.",
            "Where is your loop over truths?",
        ),
        Misconception(
            order_ignored,
            "The order of words does not matter for your exact match.",
            "Are “a b” and “b a” the same text?",
        ),
        Misconception(
            empty_is_always_wrong,
            "Two empty texts agree: F1 is 1.",
            "What is the right answer to a question without one?",
        ),
    ),
    accepted=(by_expressions, by_translating, by_counters),
    equivalent_mutants={
        **dict.fromkeys(
            (
                "`word not in ('a', 'an', 'the')` → `word not in ('an', 'a', 'the')`",
                "`word not in ('a', 'an', 'the')` → `word not in ('a', 'the', 'an')`",
            ),
            "the order of articles does not matter",
        ),
        **dict.fromkeys(
            (
                "`[(words(guess), words(truth)) for truth in truths]` → "
                "`[(words(truth), words(guess)) for truth in truths]`",
                "`(a, b)` → `(b, a)`",
                "`f1(a, b)` → `f1(b, a)`",
                "`(a, b)` → `(b, a)` (occurrence 2)",
            ),
            "both scores are symmetric",
        ),
    },
)
