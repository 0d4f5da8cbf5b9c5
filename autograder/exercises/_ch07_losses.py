"""Exercises of chapter 07 on training: the losses of all steps, and the warm-up of the rate."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import IGNORED, draw_targets

# --- step_losses ---------------------------------------------------------------------------------


def step_losses_cases(rng):
    """With and without smoothing; poison where there is no word; large logits."""
    s = draw_sizes(rng, "batch", "length", "words", among=(3, 4, 5))

    for group, scale, smoothing, about in (
        ("values", 1.0, 0.0, "no smoothing"),
        ("smoothing", 2.0, round(float(rng.uniform(0.3, 0.4)), 3), "more smoothing"),
        ("large", 900.0, 0.1, "logits in the hundreds, smoothing"),
    ):
        end, *words = (int(i) for i in rng.permutation(s.words))
        targets = draw_targets(rng, s.batch, s.length, words, end)
        logits = scale * rng.normal(size=(s.batch, s.length, s.words))
        logits[targets == IGNORED] *= 20.0
        inputs = {"logits": logits, "targets": targets, "smoothing": smoothing}
        yield Case(group, inputs, about)


def step_losses_reference(logits, targets, smoothing):
    """PyTorch's own loss."""
    losses = F.cross_entropy(
        logits.mT, targets, reduction="none", ignore_index=IGNORED, label_smoothing=smoothing
    )
    return losses.sum(), losses


def _losses(logits, targets, right, other):
    """Losses of all steps, when the aim is `right` for the right word and `other` for others."""
    log_probabilities = logits.log_softmax(-1)
    picked = log_probabilities.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return -(right - other) * picked - other * log_probabilities.sum(-1)


def _summed(losses, targets):
    losses = losses * (targets != IGNORED)
    return losses.sum(), losses


def ignored_places_counted(logits, targets, smoothing):
    """Counts places that hold no word, as if they held word 0."""
    share = smoothing / logits.shape[-1]
    losses = _losses(logits, targets, 1 - smoothing + share, share)
    return losses.sum(), losses


def mean_instead_of_sum(logits, targets, smoothing):
    """Takes the mean over real words."""
    total, losses = step_losses_reference(logits, targets, smoothing)
    return total / (targets != IGNORED).sum(), losses


def mean_of_all_places(logits, targets, smoothing):
    """Takes the mean over all places, those without a word included."""
    _, losses = step_losses_reference(logits, targets, smoothing)
    return losses.mean(), losses


def mean_of_sentences(logits, targets, smoothing):
    """Sums each sentence, then takes the mean over sentences."""
    _, losses = step_losses_reference(logits, targets, smoothing)
    return losses.sum(dim=1).mean(), losses


def end_not_counted(logits, targets, smoothing):
    """Leaves the last word of every row out, as if the end token were padding."""
    after = torch.nn.functional.pad(targets[:, 1:], (0, 1), value=IGNORED)
    return step_losses_reference(logits, targets.masked_fill(after == IGNORED, IGNORED), smoothing)


def shifted_again(logits, targets, smoothing):
    """Compares each prediction with the word after its target."""
    later = torch.nn.functional.pad(targets[:, 1:], (0, 1), value=IGNORED)
    return step_losses_reference(logits, later, smoothing)


def softmax_twice(logits, targets, smoothing):
    """Feeds probabilities to a loss that takes logits."""
    return step_losses_reference(logits.softmax(-1), targets, smoothing)


def smoothing_forgotten(logits, targets, smoothing):
    """Ignores the smoothing."""
    return step_losses_reference(logits, targets, 0.0)


def smoothing_over_the_others(logits, targets, smoothing):
    """Shares the smoothing out among the other words only."""
    share = smoothing / (logits.shape[-1] - 1)
    return _summed(_losses(logits, targets, 1 - smoothing, share), targets)


def smoothing_leaks(logits, targets, smoothing):
    """Gives each other word its share, and the right one none: they don't sum to 1."""
    share = smoothing / logits.shape[-1]
    return _summed(_losses(logits, targets, 1 - smoothing, share), targets)


def smoothing_turned_round(logits, targets, smoothing):
    """Puts the smoothing on the right word and the rest on all."""
    return step_losses_reference(logits, targets, 1 - smoothing)


def exp_without_maximum(logits, targets, smoothing):
    """Takes exp, divides, and takes the logarithm: overflows."""
    powers = logits.exp()
    log_probabilities = (powers / powers.sum(-1, keepdim=True)).log()
    picked = log_probabilities.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    losses = -(1 - smoothing) * picked - smoothing * log_probabilities.mean(-1)
    losses = losses.masked_fill(targets == IGNORED, 0.0)
    return losses.sum(), losses


def probabilities_instead_of_logarithms(logits, targets, smoothing):
    """Takes minus the probability of the right word, without a logarithm."""
    probabilities = logits.softmax(-1)
    picked = probabilities.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return _summed(-(1 - smoothing) * picked - smoothing * probabilities.mean(-1), targets)


def by_target_distribution(logits, targets, smoothing):
    """Right: writes the smoothed distribution down."""
    words = logits.shape[-1]
    aim = F.one_hot(targets.clamp(min=0), words) * (1 - smoothing) + smoothing / words
    losses = -(aim * logits.log_softmax(-1)).sum(-1)
    losses = torch.where(targets == IGNORED, 0.0, losses)
    return losses.sum(), losses


def by_logsumexp(logits, targets, smoothing):
    """Right: log-sum-exp minus the expected logit."""
    picked = logits.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    expected = (1 - smoothing) * picked + smoothing * logits.mean(-1)
    losses = (logits.logsumexp(-1) - expected) * (targets != IGNORED)
    return losses.sum(), losses


def step_by_step(logits, targets, smoothing):
    """Right: a loop over places that hold a word."""
    losses = torch.zeros(targets.shape, dtype=logits.dtype)
    for row, place in (targets != IGNORED).nonzero().tolist():
        one = F.cross_entropy(logits[row, place], targets[row, place], label_smoothing=smoothing)
        losses[row, place] = one
    return losses.sum(), losses


STEP_LOSSES = Exercise(
    id="step_losses",
    title="One loss for each step",
    asks="Give the cross-entropy of every step and their sum; with label smoothing.",
    parameters=("logits", "targets", "smoothing"),
    outputs=("total", "losses", "gradient of logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(1, "without smoothing"),
        "smoothing": Group(1, "with smoothing"),
        "large": Group(1, "large logits"),
    },
    cases=step_losses_cases,
    reference=step_losses_reference,
    tolerance=Tolerance(1e-5, 1e-6),  # `one_hot(…) * smoothing` is float32, and right
    misconceptions=(
        Misconception(
            ignored_places_counted,
            "Places that hold no word (−100) are counted.",
            "What is the loss of a place without a word, by the contract?",
        ),
        Misconception(
            mean_instead_of_sum,
            "The total is a mean over words; the contract asks for the sum.",
            "What does the total become if a sentence is twice as long?",
        ),
        Misconception(
            mean_of_all_places,
            "The total is a mean over all places, padding among them; the contract asks for the "
            "sum.",
            "Does the total change when a batch is padded further?",
        ),
        Misconception(
            mean_of_sentences,
            "The total is a mean over sentences; the contract asks for the sum.",
            "Compare your total with the sum of your losses.",
        ),
        Misconception(
            end_not_counted,
            "The last word of each sentence, the end token, has no loss: the decoder would never "
            "learn to stop.",
            "Which number marks the places to leave out?",
        ),
        Misconception(
            shifted_again,
            "Each prediction is compared with the word after its target; inputs were shifted "
            "already.",
            "Row i of the logits belongs to which column of the targets here?",
        ),
        Misconception(
            softmax_twice,
            "A softmax was taken before a loss that takes another one.",
            "Does your loss function expect logits or probabilities?",
        ),
        Misconception(
            smoothing_forgotten,
            "The smoothing has no effect.",
            "Where does `smoothing` enter your computation?",
        ),
        Misconception(
            smoothing_over_the_others,
            "The smoothing goes to the other words only; by the contract every word gets a share, "
            "the right one too.",
            "By which number does the contract divide the smoothing?",
        ),
        Misconception(
            smoothing_leaks,
            "The smoothed target does not sum to 1: the right word did not get its share.",
            "Add up the target distribution.",
        ),
        Misconception(
            smoothing_turned_round,
            "Smoothing and its complement are exchanged.",
            "How much should the right word get if the smoothing is small?",
        ),
        Misconception(
            exp_without_maximum,
            "exp overflows for large logits, or a probability vanishes and its logarithm is "
            "infinite.",
            "Is there one function for the logarithm of the softmax?",
        ),
        Misconception(
            probabilities_instead_of_logarithms,
            "There is no logarithm: this is minus the probability, not the cross-entropy.",
            "What is the loss of a word that gets the probability 1? And 0?",
        ),
    ),
    accepted=(by_target_distribution, by_logsumexp, step_by_step),
)

# --- warm_up_rate --------------------------------------------------------------------------------


def warm_up_rate_cases(rng):
    """Steps before, at and after the end of the warm-up; step 0 and negative steps."""
    for about in ("steps of a short training", "steps of another training"):
        warm_up, d_model = (int(size) for size in rng.choice([20, 30, 50, 70], 2, replace=False))
        before, after = rng.integers(2, warm_up, 3), rng.integers(warm_up + 1, 9 * warm_up, 3)
        steps = np.concatenate([[1], before, [warm_up], after]).astype(np.int64)
        inputs = {"steps": rng.permutation(steps), "d_model": d_model, "warm_up": warm_up}
        yield Case("values", inputs, about)
    steps = rng.integers(1, 9 * warm_up, size=(2, 3))
    inputs = {"steps": steps, "d_model": d_model, "warm_up": warm_up}
    yield Case("values", inputs, "two axes")
    for wrong, about in ((0, "step 0"), (-int(rng.integers(1, 9)), "a negative step")):
        refused = steps.copy()
        refused[1, rng.integers(3)] = wrong
        inputs = {"steps": refused, "d_model": d_model, "warm_up": warm_up}
        yield Case("refused", inputs, about)


def _refuse(steps):
    if (np.asarray(steps) < 1).any():
        raise ValueError("steps are counted from 1.")


def warm_up_rate_reference(steps, d_model, warm_up):
    """Two cases, one step at a time."""
    _refuse(steps)
    rates = np.empty(steps.shape)
    for index, step in np.ndenumerate(steps):
        peak = 1 / np.sqrt(d_model * warm_up)
        rising, falling = step / warm_up, np.sqrt(warm_up / step)
        rates[index] = peak * (rising if step <= warm_up else falling)
    return rates


def _rates(steps, d_model, warm_up):
    _refuse(steps)
    steps = steps.astype(float)
    return d_model**-0.5, steps**-0.5, steps * warm_up**-1.5


def larger_of_the_two(steps, d_model, warm_up):
    """max for min."""
    factor, falling, rising = _rates(steps, d_model, warm_up)
    return factor * np.maximum(falling, rising)


def width_forgotten(steps, d_model, warm_up):
    """Without d_model^−0.5."""
    _, falling, rising = _rates(steps, d_model, warm_up)
    return np.minimum(falling, rising)


def width_multiplies(steps, d_model, warm_up):
    """√d_model instead of 1/√d_model."""
    factor, falling, rising = _rates(steps, d_model, warm_up)
    return np.minimum(falling, rising) / factor


def never_falls(steps, d_model, warm_up):
    """Stays at the peak."""
    factor, _, rising = _rates(steps, d_model, warm_up)
    return factor * np.minimum(warm_up**-0.5, rising)


def never_rises(steps, d_model, warm_up):
    """No warm-up."""
    factor, falling, _ = _rates(steps, d_model, warm_up)
    return factor * falling


def wrong_power_of_warm_up(steps, d_model, warm_up):
    """warm_up^−0.5 in the rising part."""
    factor, falling, rising = _rates(steps, d_model, warm_up)
    return factor * np.minimum(falling, rising * warm_up)


def counted_from_zero(steps, d_model, warm_up):
    """Adds 1 to every step, so that step 0 gets a rate."""
    steps = steps.astype(float) + 1
    return d_model**-0.5 * np.minimum(np.abs(steps) ** -0.5, steps * warm_up**-1.5)


def step_zero_accepted(steps, d_model, warm_up):
    """Refuses nothing: step 0 gives the rate 0."""
    with np.errstate(all="ignore"):
        steps = steps.astype(float)
        return d_model**-0.5 * np.minimum(np.abs(steps) ** -0.5, steps * warm_up**-1.5)


def only_negative_refused(steps, d_model, warm_up):
    """Lets step 0 through."""
    if (steps < 0).any():
        raise ValueError("negative step")
    return step_zero_accepted(steps, d_model, warm_up)


def linear_decay(steps, d_model, warm_up):
    """Falls like 1/step."""
    factor, _, rising = _rates(steps, d_model, warm_up)
    return factor * np.minimum(warm_up**0.5 / steps, rising)


def by_where(steps, d_model, warm_up):
    """Right: chooses between the two parts."""
    if np.min(steps) <= 0:
        raise ValueError("the first step is step 1")
    scale = np.sqrt(d_model)
    return np.where(steps < warm_up, steps / warm_up**1.5, 1 / np.sqrt(steps)) / scale


def one_by_one(steps, d_model, warm_up):
    """Right: Python's min, number by number."""
    if any(step < 1 for step in steps.flat):
        raise ValueError("steps begin at 1")
    rates = [d_model**-0.5 * min(n**-0.5, n * warm_up**-1.5) for n in steps.ravel().tolist()]
    return np.array(rates).reshape(steps.shape)


def from_the_peak(steps, d_model, warm_up):
    """Right: the peak times a factor of at most 1."""
    if not (steps >= 1).all():
        raise ValueError("no step comes before step 1")
    part = steps / warm_up
    return np.minimum(part, part**-0.5) / np.sqrt(d_model * warm_up)


WARM_UP_RATE = Exercise(
    id="warm_up_rate",
    title="A learning rate that warms up",
    asks="Give the learning rate of every step by equation 3; steps before 1 are refused.",
    parameters=("steps", "d_model", "warm_up"),
    groups={"values": Group(1, "rates"), "refused": Group(1, "steps before the first")},
    cases=warm_up_rate_cases,
    reference=warm_up_rate_reference,
    misconceptions=(
        Misconception(
            larger_of_the_two,
            "The larger of the two parts is taken: the rate is highest at step 1 and grows for "
            "ever.",
            "Which of the two parts is small at the start?",
        ),
        Misconception(
            width_forgotten,
            "The width d_model has no effect.",
            "What stands in front of the minimum in the equation?",
        ),
        Misconception(
            width_multiplies,
            "Wide models get a larger rate; the power of d_model is negative.",
            "Look at the sign of the exponent.",
        ),
        Misconception(
            never_falls,
            "After the warm-up the rate stays level.",
            "Which part of the minimum does not contain warm_up?",
        ),
        Misconception(
            never_rises,
            "There is no warm-up: the rate falls from the first step on.",
            "Which part of the minimum grows with the step?",
        ),
        Misconception(
            wrong_power_of_warm_up,
            "The two parts do not meet at step warm_up: the power of warm_up is another one.",
            "Set step = warm_up: both parts must give warm_up^−0.5.",
        ),
        Misconception(
            counted_from_zero,
            "Every step is taken for the next one, as if counting began at 0.",
            "What is the first step called in the contract?",
        ),
        Misconception(
            step_zero_accepted,
            "Steps before 1 are not refused; with the rate 0 a first update would be lost.",
            "Which inputs does the contract refuse, and how?",
        ),
        Misconception(
            only_negative_refused,
            "Step 0 is let through.",
            "Is the smallest step that is allowed 0 or 1?",
        ),
        Misconception(
            linear_decay,
            "After the warm-up the rate falls like 1/step; it should fall like its root.",
            "Look at the exponent of the step.",
        ),
    ),
    accepted=(by_where, one_by_one, from_the_peak),
)
