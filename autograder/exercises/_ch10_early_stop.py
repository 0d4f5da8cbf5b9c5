"""Exercise of chapter 10 on fine-tuning: when to stop."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import draw_telling


def early_stop_cases(rng):
    """Scores that fall, rise again too late, creep up; no stop at all."""

    def telling(*wrong, epochs=9, stops=True):
        def draw():
            steps = rng.integers(-6, 7, size=epochs) / 16
            return {
                "scores": (0.5 + steps).tolist(),
                "patience": int(rng.choice([2, 3])),
                "least": float(rng.choice([0.0625, 0.125])),
            }

        while True:
            inputs = draw_telling(draw, early_stop_reference, wrong)
            best, stop = early_stop_reference(**inputs)
            ended = stop - best == inputs["patience"]
            if ended == stops and best < stop:
                return inputs

    yield Case("stop", telling(best_of_all, last_for_best), "a better score comes too late")
    yield Case("stop", telling(patience_never_reset, compared_with_the_one_before), "ups and downs")
    yield Case("stop", telling(lower_is_better, one_epoch_late), "ups and downs again")
    yield Case("stop", telling(one_epoch_early, least_forgotten), "small gains")
    top = round(float(rng.uniform(0.6, 0.8)), 3)
    scores = [top, top - 0.03, *(top - rng.uniform(0.1, 0.4, 4).round(3)).tolist()]
    inputs = {"scores": scores, "patience": int(rng.choice([2, 3])), "least": 0.0625}
    yield Case("stop", inputs, "the first epoch is the best")
    yield Case("least", telling(equal_counts, least_forgotten), "gains that equal the least one")
    yield Case("least", telling(small_gains_kept), "small gains that add up")
    yield Case("least", telling(best_is_one_late, epochs=4, stops=False), "no stop")


def _stop(scores, patience, least, better=None, keep=None, reset=True):
    """(best, stop), with parts that wrong versions exchange."""
    better = better or (lambda score, best: score > best + least)
    best, bad, mark = 0, 0, scores[0]
    for epoch, score in enumerate(scores[1:], 1):
        if better(score, mark):
            best, mark, bad = epoch, score, 0 if reset else bad
        else:
            bad += 1
            mark = keep(score, mark) if keep else mark
        if bad >= patience:
            return best, epoch
    return best, len(scores) - 1


def early_stop_reference(scores, patience, least):
    """Looks from each best epoch for the next one within reach."""
    best = 0
    while True:
        ahead = range(best + 1, min(best + patience + 1, len(scores)))
        gains = [epoch for epoch in ahead if scores[epoch] - scores[best] > least]
        if not gains:
            return best, min(best + patience, len(scores) - 1)
        best = gains[0]


def best_of_all(scores, patience, least):
    """Takes the best of all scores, also of those after the stop."""
    return int(np.argmax(scores)), early_stop_reference(scores, patience, least)[1]


def last_for_best(scores, patience, least):
    """Keeps the last epoch's weights."""
    _, stop = early_stop_reference(scores, patience, least)
    return stop, stop


def patience_never_reset(scores, patience, least):
    """Counts all epochs without a gain."""
    return _stop(scores, patience, least, reset=False)


def compared_with_the_one_before(scores, patience, least):
    """Compares with the epoch before."""
    return _stop(scores, patience, least, keep=lambda score, mark: score)


def lower_is_better(scores, patience, least):
    """Reads scores as losses."""
    return _stop(scores, patience, least, better=lambda score, best: score < best - least)


def one_epoch_late(scores, patience, least):
    """More than `patience` epochs."""
    return _stop(scores, patience + 1, least)


def one_epoch_early(scores, patience, least):
    """Counts the best epoch itself."""
    return _stop(scores, patience - 1, least)


def least_forgotten(scores, patience, least):
    """Every gain counts."""
    return _stop(scores, patience, 0.0)


def equal_counts(scores, patience, least):
    """At least `least`."""
    return _stop(scores, patience, least, better=lambda score, best: score >= best + least)


def small_gains_kept(scores, patience, least):
    """Moves the mark with every small gain, so that creeping up never counts."""
    return _stop(scores, patience, least, keep=max)


def best_is_one_late(scores, patience, least):
    """Counts the best epoch from 1."""
    best, stop = early_stop_reference(scores, patience, least)
    return best + 1, stop


def by_counting(scores, patience, least):
    """Right: a counter."""
    return _stop(scores, patience, least)


def by_arrays(scores, patience, least):
    """Right: arrays, and the epoch of the last gain."""
    values, best, epoch = np.asarray(scores), 0, 0
    while epoch + 1 < len(values) and epoch - best < patience:
        epoch += 1
        if values[epoch] > values[best] + least:
            best = epoch
    return np.int64(best), np.int64(epoch)


def by_remaining_patience(scores, patience, least):
    """Right: counts down."""
    left, mark, best, epoch = patience, -np.inf, -1, -1
    for epoch, score in enumerate(scores):
        if score > mark + least:
            left, mark, best = patience, score, epoch
            continue
        left -= 1
        if not left:
            break
    return [best, epoch]


EARLY_STOP = Exercise(
    id="early_stop",
    title="When to stop",
    asks="Find the epoch to keep and the epoch after which to stop.",
    parameters=("scores", "patience", "least"),
    outputs=("best", "stop"),
    groups={
        "stop": Group(1, "ups and downs"),
        "least": Group(1, "small gains, and no stop"),
    },
    cases=early_stop_cases,
    reference=early_stop_reference,
    misconceptions=(
        Misconception(
            best_of_all,
            "The best epoch lies after the stop: it was never trained.",
            "Which scores exist when training stops?",
        ),
        Misconception(
            last_for_best,
            "The last epoch is kept; by then the score had fallen.",
            "Which epoch's weights do you want to use?",
        ),
        Misconception(
            patience_never_reset,
            "Epochs without a gain are counted in all; they have to come in a row.",
            "What happens to your counter when there is a gain?",
        ),
        Misconception(
            compared_with_the_one_before,
            "Each score is compared with the one before, not with the best.",
            "With which score does point 2 compare?",
        ),
        Misconception(
            lower_is_better,
            "Lower scores count as better: that would be right for losses.",
            "Is an accuracy of 0.9 better than one of 0.8?",
        ),
        Misconception(
            one_epoch_late,
            "Training stops one epoch too late.",
            "After how many epochs in a row without a gain does point 3 stop?",
        ),
        Misconception(
            one_epoch_early,
            "Training stops one epoch too early.",
            "After how many epochs in a row without a gain does point 3 stop?",
        ),
        Misconception(
            least_forgotten,
            "Every small gain counts.",
            "Where does `least` enter your code?",
        ),
        Misconception(
            equal_counts,
            "A gain that equals `least` counts; it has to be larger.",
            "Does the contract say “more than” or “at least”?",
        ),
        Misconception(
            small_gains_kept,
            "Small gains move the mark, so that a score that creeps up never counts as a gain.",
            "Which score is compared with, when the last gain was too small?",
        ),
        Misconception(
            best_is_one_late,
            "The best epoch is counted from 1.",
            "Which number does the first epoch have?",
        ),
    ),
    accepted=(by_counting, by_arrays, by_remaining_patience),
)
