"""Exercise of chapter 10: choose the answer's span."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import draw_telling

LENGTH = 12
BEGIN, END = 4, 10  # the passage: places BEGIN to END − 1; before it [CLS] and a question


def _draw(rng, shift, threshold, context=True):
    """Draw scores in steps of a half, so that ties happen and sums are exact."""
    allowed = np.zeros(LENGTH, dtype=bool)
    allowed[BEGIN:END] = context
    scores = rng.integers(-4, 5, size=(2, LENGTH)) / 2 + shift
    scores[:, [1, 2, 3, 10, 11]] += rng.integers(2, 6)  # poison: a question, [SEP], padding
    scores[:, 0] = rng.integers(-4, 0, size=2) / 2 + shift
    return {
        "start_scores": scores[0],
        "end_scores": scores[1],
        "allowed": allowed,
        "longest": int(rng.choice([2, 3, 4])),
        "threshold": threshold,
    }


def best_span_cases(rng):
    """Spans that tempt; all scores negative; ties; thresholds around the best score."""

    def telling(*wrong, shift=0.0, threshold=-50.0):
        return draw_telling(
            lambda: _draw(rng, shift, threshold), best_span_reference, wrong, tensors=True
        )

    yield Case("valid", telling(each_end_by_itself, start_first), "ends before the start tempt")
    yield Case("valid", telling(any_length, one_token_too_long), "long spans tempt")
    yield Case("valid", telling(question_allowed, end_first), "tokens of the question tempt")
    yield Case("valid", telling(one_token_too_short), "the longest span that is allowed")
    yield Case("valid", telling(inner_tokens_counted), "scores between the ends")
    yield Case(
        "ties", telling(last_of_equal_ones, shorter_of_equal_ones), "two spans with the same score"
    )
    yield Case(
        "ties",
        telling(shorter_of_equal_ones, last_of_equal_ones),
        "two spans with the same score again",
    )
    inputs = telling(invalid_pairs_as_zero, each_end_by_itself, shift=-9.0)
    yield Case("ties", inputs, "all scores are negative")
    for extra, about in (
        (-0.5, "a threshold just below the difference"),
        (0.5, "a threshold just above the difference"),
        (0.0, "a threshold that equals the difference"),
    ):
        inputs = telling(start_first)
        gap = _gap(inputs)
        yield Case("no answer", {**inputs, "threshold": gap + extra}, about)
    inputs = telling(start_first)
    for name in ("start_scores", "end_scores"):
        inputs[name][0] += 9.0
    yield Case("no answer", {**inputs, "threshold": -0.5}, "[CLS] has the best score")
    inputs = _draw(rng, 0.0, -50.0, context=False)
    yield Case("no answer", inputs, "no place is allowed")


def _gap(inputs):
    """Best span's score minus that of [CLS]."""
    start, end = inputs["start_scores"], inputs["end_scores"]
    first, last = best_span_reference(
        **{n: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for n, v in inputs.items()}
    )
    return float(start[first] + end[last] - start[0] - end[0])


def _choose(start_scores, end_scores, allowed, longest, threshold, pairs=None, key=None, more=None):
    """The best of all pairs, with parts that wrong versions exchange."""
    start, end, places = start_scores.tolist(), end_scores.tolist(), range(len(allowed))
    pairs = pairs or (
        (i, j) for i in places for j in places if i <= j < i + longest and allowed[i] and allowed[j]
    )
    score = key or (lambda i, j: start[i] + end[j])
    best = max(pairs, key=lambda pair: score(*pair), default=None)
    more = more or (lambda best, nothing: best > nothing + threshold)
    if best is None or not more(start[best[0]] + end[best[1]], start[0] + end[0]):
        return 0, 0
    return best


def best_span_reference(start_scores, end_scores, allowed, longest, threshold):
    """A sorted list of all valid pairs."""
    start, end = start_scores.tolist(), end_scores.tolist()
    ranked = sorted(
        (-(start[i] + end[j]), i, j)
        for i in range(len(start))
        for j in range(i, min(i + longest, len(start)))
        if allowed[i] and allowed[j]
    )
    if not ranked or -ranked[0][0] - (start[0] + end[0]) <= threshold:
        return 0, 0
    return ranked[0][1:]


def _context(allowed):
    return [place for place, seen in enumerate(allowed.tolist()) if seen]


def each_end_by_itself(start_scores, end_scores, allowed, longest, threshold):
    """The best start and the best end."""
    places = _context(allowed)
    if not places:
        return 0, 0
    i = max(places, key=lambda place: start_scores[place].item())
    j = max(places, key=lambda place: end_scores[place].item())
    return _choose(start_scores, end_scores, allowed, longest, threshold, [(i, j)])


def start_first(start_scores, end_scores, allowed, longest, threshold):
    """The best start, then the best end for it."""
    places = _context(allowed)
    if not places:
        return 0, 0
    i = max(places, key=lambda place: start_scores[place].item())
    pairs = [(i, j) for j in places if i <= j < i + longest]
    return _choose(start_scores, end_scores, allowed, longest, threshold, pairs)


def end_first(start_scores, end_scores, allowed, longest, threshold):
    """The best end, then the best start for it."""
    places = _context(allowed)
    if not places:
        return 0, 0
    j = max(places, key=lambda place: end_scores[place].item())
    pairs = [(i, j) for i in places if i <= j < i + longest]
    return _choose(start_scores, end_scores, allowed, longest, threshold, pairs)


def any_length(start_scores, end_scores, allowed, longest, threshold):
    """No limit."""
    return _choose(start_scores, end_scores, allowed, 99, threshold)


def one_token_too_long(start_scores, end_scores, allowed, longest, threshold):
    """j − i ≤ longest."""
    return _choose(start_scores, end_scores, allowed, longest + 1, threshold)


def one_token_too_short(start_scores, end_scores, allowed, longest, threshold):
    """j − i + 1 < longest."""
    return _choose(start_scores, end_scores, allowed, longest - 1, threshold)


def question_allowed(start_scores, end_scores, allowed, longest, threshold):
    """Any place but [CLS]."""
    every = torch.ones_like(allowed)
    every[0] = False
    return _choose(start_scores, end_scores, every, longest, threshold)


def invalid_pairs_as_zero(start_scores, end_scores, allowed, longest, threshold):
    """Multiplies with a mask: invalid pairs score 0."""
    both = allowed[:, None] & allowed
    valid = both.triu() & both.tril(longest - 1)
    scores = (start_scores[:, None] + end_scores) * valid
    i, j = divmod(int(scores.argmax()), len(allowed))
    return _choose(start_scores, end_scores, allowed, longest, threshold, [(i, j)])


def last_of_equal_ones(start_scores, end_scores, allowed, longest, threshold):
    """>= instead of >."""
    places = _context(allowed)
    pairs = [(i, j) for i in places[::-1] for j in places[::-1] if i <= j < i + longest]
    return _choose(start_scores, end_scores, allowed, longest, threshold, pairs)


def shorter_of_equal_ones(start_scores, end_scores, allowed, longest, threshold):
    """Prefers the shorter span."""
    start, end = start_scores.tolist(), end_scores.tolist()

    def key(i, j):
        return start[i] + end[j], i - j

    return _choose(start_scores, end_scores, allowed, longest, threshold, key=key)


def inner_tokens_counted(start_scores, end_scores, allowed, longest, threshold):
    """Adds up the scores of all tokens of the span."""
    both = ((start_scores + end_scores) / 2).tolist()

    def key(i, j):
        return sum(both[i : j + 1])

    return _choose(start_scores, end_scores, allowed, longest, threshold, key=key)


def always_an_answer(start_scores, end_scores, allowed, longest, threshold):
    """Ignores [CLS]."""
    return _choose(
        start_scores, end_scores, allowed, longest, threshold, more=lambda best, nothing: True
    )


def threshold_on_the_wrong_side(start_scores, end_scores, allowed, longest, threshold):
    """Subtracts the threshold."""
    return _choose(
        *(start_scores, end_scores, allowed, longest, threshold),
        more=lambda best, nothing: best > nothing - threshold,
    )


def threshold_forgotten(start_scores, end_scores, allowed, longest, threshold):
    """Compares with [CLS] alone."""
    return _choose(
        start_scores, end_scores, allowed, longest, threshold, more=lambda best, none: best > none
    )


def equal_is_enough(start_scores, end_scores, allowed, longest, threshold):
    """At least the threshold."""
    return _choose(
        *(start_scores, end_scores, allowed, longest, threshold),
        more=lambda best, nothing: best >= nothing + threshold,
    )


def score_against_threshold(start_scores, end_scores, allowed, longest, threshold):
    """Compares the score, not the difference, with the threshold."""
    return _choose(
        start_scores,
        end_scores,
        allowed,
        longest,
        threshold,
        more=lambda best, nothing: best > threshold,
    )


def by_matrix(start_scores, end_scores, allowed, longest, threshold):
    """Right: a matrix of all pairs."""
    scores = start_scores[:, None] + end_scores[None, :]
    gap = torch.arange(len(allowed)) - torch.arange(len(allowed))[:, None]
    valid = (gap >= 0) & (gap < longest) & allowed[:, None] & allowed[None, :]
    scores = torch.where(valid, scores, -torch.inf)
    best = scores.argmax()
    if scores.max() - (start_scores[0] + end_scores[0]) > threshold:
        return best // len(allowed), best % len(allowed)
    return 0, 0


def by_loops(start_scores, end_scores, allowed, longest, threshold):
    """Right: two loops that keep the best."""
    best, span = start_scores[0] + end_scores[0] + threshold, (0, 0)
    for i in range(1, len(start_scores)):
        for j in range(i, min(len(start_scores), i + longest)):
            if allowed[i] and allowed[j] and start_scores[i] + end_scores[j] > best:
                best, span = start_scores[i] + end_scores[j], (i, j)
    return span


def by_lengths(start_scores, end_scores, allowed, longest, threshold):
    """Right: one length after the other, ties settled in the end."""
    found = []
    for length in range(1, longest + 1):
        ends = end_scores[length - 1 :]
        starts = start_scores[: len(ends)]
        both = allowed[: len(ends)] & allowed[length - 1 :]
        found += [
            (-score, i, i + length - 1)
            for i, score in enumerate((starts + ends).tolist())
            if both[i]
        ]
    if not found:
        return [0, 0]
    score, i, j = min(found)
    return [i, j] if -score > float(start_scores[0] + end_scores[0]) + threshold else [0, 0]


BEST_SPAN = Exercise(
    id="best_span",
    title="The best valid span",
    asks="Choose the span with the best start and end scores, or no answer.",
    parameters=("start_scores", "end_scores", "allowed", "longest", "threshold"),
    outputs=("first", "last"),
    driver="tensor_function",
    groups={
        "valid": Group(2, "spans that tempt, but are not valid"),
        "ties": Group(1, "equal scores, negative scores"),
        "no answer": Group(1, "thresholds, and no place at all"),
    },
    cases=best_span_cases,
    reference=best_span_reference,
    misconceptions=(
        Misconception(
            each_end_by_itself,
            "Start and end are chosen independently, so the end may come before the start.",
            "Which *pairs* are valid?",
        ),
        Misconception(
            start_first,
            "The best start is fixed before ends are looked at; the best pair may have another.",
            "How many pairs do you compare?",
        ),
        Misconception(
            end_first,
            "The best end is fixed before starts are looked at; the best pair may have another.",
            "How many pairs do you compare?",
        ),
        Misconception(
            any_length,
            "There is no limit for the length.",
            "Where does `longest` enter your code?",
        ),
        Misconception(
            one_token_too_long,
            "Spans may be one token too long: from i to j there are j − i + 1 tokens.",
            "How many tokens has the span (3, 3)?",
        ),
        Misconception(
            one_token_too_short,
            "Spans of exactly `longest` tokens are left out.",
            "How many tokens has the span (3, 3)?",
        ),
        Misconception(
            question_allowed,
            "The span lies in the question or in padding.",
            "Where does `allowed` enter your code?",
        ),
        Misconception(
            invalid_pairs_as_zero,
            "Invalid pairs have the score 0, which wins when all valid scores are negative.",
            "Which score can never be the largest?",
        ),
        Misconception(
            last_of_equal_ones,
            "Among equal scores the last span is taken; the contract wants the smallest start, "
            "then the smallest end.",
            "Does your comparison replace a span by an equally good one?",
        ),
        Misconception(
            shorter_of_equal_ones,
            "Among equal scores the shortest span is taken; the contract compares starts first.",
            "What does point 3 say about ties?",
        ),
        Misconception(
            inner_tokens_counted,
            "Scores of tokens between the ends are counted.",
            "Which two numbers make the score of a span?",
        ),
        Misconception(
            always_an_answer,
            "There is always an answer; [CLS] may win, too.",
            "With what does point 4 compare the best span's score?",
        ),
        Misconception(
            threshold_on_the_wrong_side,
            "A larger threshold makes *more* answers; it should make fewer.",
            "Which side of the comparison does the threshold make harder to reach?",
        ),
        Misconception(
            threshold_forgotten,
            "The threshold has no effect.",
            "Where does `threshold` enter your code?",
        ),
        Misconception(
            equal_is_enough,
            "A difference that equals the threshold counts as an answer.",
            "Does the contract say “larger” or “at least”?",
        ),
        Misconception(
            score_against_threshold,
            "The score itself is compared with the threshold; its lead over [CLS] should be.",
            "What is subtracted in point 4?",
        ),
    ),
    accepted=(by_matrix, by_loops, by_lengths),
)
