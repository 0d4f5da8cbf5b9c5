"""Exercises of chapter 02: attention in NumPy, up to a self-attention layer and its gradient.

Masks are True where a query may look at a key. A row that may look at nothing gives zeros.
"""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_mask, draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_attend import ATTENTION
from autograder.exercises._ch02_backward import ATTENTION_BACKWARD
from autograder.exercises._ch02_causal import CAUSAL_ATTENTION
from autograder.exercises._ch02_layer import SELF_ATTENTION
from autograder.exercises._ch02_parts import stable_softmax
from autograder.exercises._ch02_scores import MASKED_SOFTMAX, SCALED_SCORES
from autograder.exercises._ch02_shuffle import SHUFFLE_TEST

# --- softmax -------------------------------------------------------------------------------------


def softmax_cases(rng):
    """Any axis, negative ones too; large scores; very unequal rows."""
    s = draw_sizes(rng, "batch", "rows", "columns", among=(2, 3, 5))
    scores = rng.normal(size=(s.batch, s.rows, s.columns))
    yield Case("values", {"scores": scores, "axis": -1}, "three axes, last axis")
    yield Case("values", {"scores": 3 * scores[0], "axis": -1}, "a matrix, last axis")
    yield Case("axes", {"scores": scores, "axis": 0}, "three axes, first axis")
    yield Case("axes", {"scores": scores, "axis": 1}, "three axes, middle axis")
    yield Case("axes", {"scores": scores, "axis": -2}, "a negative axis that is not the last")
    large = scores[0] + 900.0
    yield Case("large", {"scores": large, "axis": -1}, "scores near 900")
    uneven = scores[0] + 2000.0 * np.arange(s.rows)[:, None]
    yield Case("large", {"scores": uneven, "axis": -1}, "rows of very different size")
    low = np.where(draw_mask(rng, s.rows, s.columns), 0.0, -2000.0)
    yield Case("large", {"scores": scores[0] + low, "axis": -1}, "some scores far below others")


def softmax_reference(scores, axis):
    """One line at a time, with Python's own arithmetic on the logarithm of the sum."""
    moved = np.moveaxis(scores, axis, -1)
    result = np.empty_like(moved)
    for index in np.ndindex(moved.shape[:-1]):
        result[index] = np.exp(moved[index] - np.logaddexp.reduce(moved[index]))
    return np.moveaxis(result, -1, axis)


def no_maximum_subtracted(scores, axis):
    """exp overflows for large scores."""
    powers = np.exp(scores)
    return powers / powers.sum(axis=axis, keepdims=True)


def one_maximum_for_all(scores, axis):
    """Subtracts the maximum of the whole array: rows far below it become 0/0."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum(axis=axis, keepdims=True)


def minimum_subtracted(scores, axis):
    """Subtracts the minimum: a row with a low score overflows."""
    powers = np.exp(scores - scores.min(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def always_last_axis(scores, axis):
    """Ignores the argument `axis`."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def sum_over_everything(scores, axis):
    """Divides by the sum of all entries."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def divided_without_exp(scores, axis):
    """Divides the scores themselves by their sum."""
    return scores / scores.sum(axis=axis, keepdims=True)


def changes_the_scores(scores, axis):
    """Subtracts the maximum in the caller's own array."""
    scores -= scores.max(axis=axis, keepdims=True)
    powers = np.exp(scores)
    return powers / powers.sum(axis=axis, keepdims=True)


def sum_without_keepdims(scores, axis):
    """Loses the axis that the division needs."""
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis)


def with_moved_axis(scores, axis):
    """Right: works on the last axis and moves it back."""
    moved = np.moveaxis(scores, axis, -1)
    powers = np.exp(moved - moved.max(axis=-1)[..., None])
    return np.moveaxis(powers / powers.sum(axis=-1)[..., None], -1, axis)


def with_logarithms(scores, axis):
    """Right: exp of the log-softmax."""
    return np.exp(scores - np.logaddexp.reduce(scores, axis=axis, keepdims=True))


def in_place_on_a_copy(scores, axis):
    """Right: changes only its own copy."""
    result = np.array(scores, dtype=np.float64)
    result -= result.max(axis=axis, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(axis=axis, keepdims=True)
    return result


SOFTMAX = Exercise(
    id="softmax",
    title="Stable softmax over any axis",
    asks="Turn scores into weights that are positive and sum to 1 along `axis`, for any scores.",
    parameters=("scores", "axis"),
    forbidden=("*softmax*",),
    groups={
        "values": Group(1, "weights along the last axis"),
        "axes": Group(1, "any axis"),
        "large": Group(1, "large and very unequal scores"),
    },
    cases=softmax_cases,
    reference=softmax_reference,
    misconceptions=(
        Misconception(
            no_maximum_subtracted,
            "exp of a large score overflows to infinity, and infinity / infinity is NaN.",
            "What can be subtracted from all scores of a row without changing the weights?",
        ),
        Misconception(
            one_maximum_for_all,
            "One maximum is subtracted from the whole array, so rows far below it become 0/0.",
            "Which maximum belongs to which row? Think of `axis` and `keepdims`.",
        ),
        Misconception(
            minimum_subtracted,
            "The smallest score is subtracted, so scores far above it still overflow.",
            "After the subtraction, which is the largest number that exp may meet?",
        ),
        Misconception(
            always_last_axis,
            "The softmax runs along the last axis whatever `axis` says.",
            "Find every place of your code where an axis is named.",
        ),
        Misconception(
            sum_over_everything,
            "The weights sum to 1 over the whole array and not along `axis`.",
            "Sum your result along `axis`: what should every one of these sums be?",
        ),
        Misconception(
            divided_without_exp,
            "The scores are divided by their sum with no exp: negative scores stay negative.",
            "Which function makes a positive number of any score?",
        ),
        Misconception(
            changes_the_scores,
            "The caller's `scores` are overwritten: `-=` works in place.",
            "`scores - …` makes a new array.",
        ),
        Misconception(
            sum_without_keepdims,
            "The sum loses an axis, so the division lines up with the wrong axis or none.",
            "Print the shape of the sum; `keepdims=True` keeps the axis with length 1.",
        ),
    ),
    accepted=(with_moved_axis, with_logarithms, in_place_on_a_copy),
)

# --- decoder_step --------------------------------------------------------------------------------


def decoder_step_cases(rng):
    """One state, batches of states, and scores that overflow exp."""
    for _ in range(2):
        s = draw_sizes(rng, "length", "d")
        state, encoder_states = rng.normal(size=s.d), rng.normal(size=(s.length, s.d))
        inputs = {"state": state, "encoder_states": encoder_states}
        yield Case("one", inputs, "one sentence, no batch axis")
    s = draw_sizes(rng, "batch", "other", "length", "d", among=(2, 3, 5, 6))
    state = rng.normal(size=(s.batch, s.d))
    encoder_states = rng.normal(size=(s.batch, s.length, s.d))
    inputs = {"state": state, "encoder_states": encoder_states}
    yield Case("batch", inputs, "a batch of sentences")
    inputs = {
        "state": rng.normal(size=(s.batch, s.other, s.d)),
        "encoder_states": rng.normal(size=(s.batch, s.other, s.length, s.d)),
    }
    yield Case("batch", inputs, "two leading axes")
    shift = 900 * state / (state**2).sum(axis=-1, keepdims=True)
    inputs = {"state": state, "encoder_states": encoder_states + shift[:, None]}
    yield Case("large", inputs, "scores near 900")


def decoder_step_reference(state, encoder_states):
    """Sentence by sentence, word by word."""
    weights = np.empty(encoder_states.shape[:-1])
    context = np.zeros(state.shape)
    for index in np.ndindex(state.shape[:-1]):
        scores = [float(np.dot(word, state[index])) for word in encoder_states[index]]
        weights[index] = np.exp(np.array(scores) - np.logaddexp.reduce(scores))
        for weight, word in zip(weights[index], encoder_states[index], strict=True):
            context[index] += weight * word
    return context, weights


def _decoder_scores(state, encoder_states):
    return np.einsum("...d,...ld->...l", state, encoder_states)


def _decoder_context(weights, encoder_states):
    return np.einsum("...l,...ld->...d", weights, encoder_states)


def scaled_by_root(state, encoder_states):
    """Divides the scores by √d, which this exercise does not ask for."""
    scores = _decoder_scores(state, encoder_states) / np.sqrt(state.shape[-1])
    weights = stable_softmax(scores)
    return _decoder_context(weights, encoder_states), weights


def scores_as_weights(state, encoder_states):
    """Takes the raw scores for weights: no softmax."""
    weights = _decoder_scores(state, encoder_states)
    return _decoder_context(weights, encoder_states), weights


def best_word_only(state, encoder_states):
    """Takes the word of the largest score with weight 1."""
    scores = _decoder_scores(state, encoder_states)
    weights = (scores == scores.max(axis=-1, keepdims=True)).astype(float)
    return _decoder_context(weights, encoder_states), weights


def softmax_over_first_axis(state, encoder_states):
    """Softmax along axis 0, which is the batch as soon as there is one."""
    weights = stable_softmax(_decoder_scores(state, encoder_states), axis=0)
    return _decoder_context(weights, encoder_states), weights


def plain_mean_as_context(state, encoder_states):
    """The context is the mean of all encoder states, whatever the weights."""
    weights = stable_softmax(_decoder_scores(state, encoder_states))
    return encoder_states.mean(axis=-2), weights


def weights_before_context(state, encoder_states):
    """Returns the two results in the wrong order."""
    weights = stable_softmax(_decoder_scores(state, encoder_states))
    return weights, _decoder_context(weights, encoder_states)


def only_without_batch(state, encoder_states):
    """Right for one sentence; a batch has no such product."""
    scores = encoder_states @ state
    powers = np.exp(scores - scores.max())
    weights = powers / powers.sum()
    return weights @ encoder_states, weights


def overflowing_weights(state, encoder_states):
    """exp overflows for large scores."""
    powers = np.exp(_decoder_scores(state, encoder_states))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return _decoder_context(weights, encoder_states), weights


def decoder_by_matmul(state, encoder_states):
    """Right: matrix products with an axis of length one."""
    scores = (encoder_states @ state[..., None])[..., 0]
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return (weights[..., None, :] @ encoder_states)[..., 0, :], weights


def decoder_by_broadcasting(state, encoder_states):
    """Right: multiplies and sums, no matrix product."""
    scores = (state[..., None, :] * encoder_states).sum(axis=-1)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return (weights[..., None] * encoder_states).sum(axis=-2), weights


def decoder_by_recursion(state, encoder_states):
    """Right: takes a batch apart, one sentence after the other."""
    if state.ndim == 1:
        scores = encoder_states @ state
        powers = np.exp(scores - scores.max())
        return powers / powers.sum() @ encoder_states, powers / powers.sum()
    parts = [decoder_by_recursion(s, e) for s, e in zip(state, encoder_states, strict=True)]
    return np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])


DECODER_STEP = Exercise(
    id="decoder_step",
    title="One decoder step that looks back",
    asks="Weigh the encoder states by their dot product with the state, and average them.",
    parameters=("state", "encoder_states"),
    outputs=("context", "weights"),
    groups={
        "one": Group(1, "one sentence"),
        "batch": Group(1, "batches of sentences"),
        "large": Group(1, "large scores"),
    },
    cases=decoder_step_cases,
    reference=decoder_step_reference,
    misconceptions=(
        Misconception(
            scaled_by_root,
            "The scores are divided by √d; Luong's dot score in this exercise has no scaling.",
            "Read point 1 of the contract again. The division comes in exercise 3.",
        ),
        Misconception(
            scores_as_weights,
            "The raw scores serve as weights: they may be negative and do not sum to 1.",
            "What turns any scores into positive weights that sum to 1?",
        ),
        Misconception(
            best_word_only,
            "Only the best word counts. Attention is soft: every word keeps some weight.",
            "Compare an arg-max with a softmax on the scores of the first case.",
        ),
        Misconception(
            softmax_over_first_axis,
            "The softmax runs along the first axis, which in a batch is not the words.",
            "For each sentence of a batch, over which axis should the weights sum to 1?",
        ),
        Misconception(
            plain_mean_as_context,
            "The context is the plain mean of the encoder states: the weights are not used.",
            "Each encoder state enters the context with its own weight.",
        ),
        Misconception(
            weights_before_context,
            "The two results come in the wrong order.",
            "The contract names the order: which of the two is first?",
        ),
        Misconception(
            only_without_batch,
            "The products fit one sentence only; with a batch the axes do not line up.",
            "Write the shapes with a batch axis, then make the state (..., d, 1) or use einsum.",
        ),
        Misconception(
            overflowing_weights,
            "exp of a large score overflows to infinity, and infinity / infinity is NaN.",
            "Your `softmax` of exercise 1 solves this: can you use it here?",
        ),
    ),
    accepted=(decoder_by_matmul, decoder_by_broadcasting, decoder_by_recursion),
)

EXERCISES = [
    SOFTMAX,
    DECODER_STEP,
    SCALED_SCORES,
    MASKED_SOFTMAX,
    ATTENTION,
    CAUSAL_ATTENTION,
    SELF_ATTENTION,
    SHUFFLE_TEST,
    ATTENTION_BACKWARD,
]
