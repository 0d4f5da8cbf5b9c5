"""Chapter 02's challenge: the gradient of attention by hand."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import (
    draw_attention_sizes,
    draw_mask_with_empty_row,
    draw_padding,
    draw_qkv,
    weights_of,
)


def backward_cases(rng):
    """No mask, leading axes, masks with poison and a query that sees nothing."""

    def case(group, about, s, queries, keys, values, mask=None):
        gradient = rng.normal(size=(*queries.shape[:-1], s.d_v))
        inputs = {"queries": queries, "keys": keys, "values": values, "mask": mask}
        return Case(group, {**inputs, "output_gradient": gradient}, about)

    s = draw_attention_sizes(rng)
    yield case("plain", "one sequence, no mask", s, *draw_qkv(rng, s))
    s = draw_attention_sizes(rng)
    s.q = s.k
    yield case("plain", "as many queries as keys", s, *draw_qkv(rng, s))
    s = draw_attention_sizes(rng)
    yield case("leading", "a batch", s, *draw_qkv(rng, s, s.batch))
    queries, keys, values = draw_qkv(rng, s, s.batch)
    padding, keys, values = draw_padding(rng, s.batch, keys, values)
    about = "padding (batch, 1, k), poison in it"
    yield case("masked", about, s, queries, keys, values, padding[:, None])
    mask = draw_mask_with_empty_row(rng, s.batch, s.q, s.k)
    yield case("masked", "a query that sees nothing", s, *draw_qkv(rng, s, s.batch), mask)


def backward_reference(queries, keys, values, mask, output_gradient):
    """Complex steps: the imaginary part of f(x + ih) is h·f′(x), exact to rounding, no formula.

    Only the forward pass appears here, so a slip in a derivation cannot.
    """
    step = 1e-30
    inputs = [queries, keys, values]
    gradients = []
    for which, array in enumerate(inputs):
        # Copy n of the array has entry n moved; the copies run as one more leading axis.
        moves = 1j * step * np.eye(array.size).reshape(array.size, *array.shape)
        q, k, v = (array + moves if i == which else part for i, part in enumerate(inputs))
        scores = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(queries.shape[-1])
        visible = np.broadcast_to(True if mask is None else mask, scores.shape)
        largest = np.where(visible, scores.real, -1e300).max(axis=-1, keepdims=True)
        powers = np.exp(np.where(visible, scores - largest, 0.0)) * visible
        total = powers.sum(axis=-1, keepdims=True)
        weights = powers / np.where(total == 0, 1.0, total)
        losses = np.einsum("...qk,...kv->...qv", weights, v) * output_gradient
        losses = losses.reshape(-1, output_gradient.size).sum(axis=1)
        gradients.append(np.broadcast_to(losses.imag / step, array.size).reshape(array.shape))
    return tuple(gradients)


def _turned(array):
    return np.swapaxes(array, -1, -2)


def _finish(queries, keys, weights, d_scores, output_gradient, scale=None):
    """Carry the gradient of the scaled scores to queries, keys and values."""
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    d_scores = d_scores * scale
    return d_scores @ keys, _turned(d_scores) @ queries, _turned(weights) @ output_gradient


def _scores_gradient(weights, d_weights):
    return weights * (d_weights - (weights * d_weights).sum(axis=-1, keepdims=True))


def diagonal_of_the_jacobian(queries, keys, values, mask, output_gradient):
    """Uses w(1 − w), the diagonal of the softmax's Jacobian, only."""
    weights = weights_of(queries, keys, mask)
    d_weights = output_gradient @ _turned(values)
    d_scores = weights * (1 - weights) * d_weights
    return _finish(queries, keys, weights, d_scores, output_gradient)


def softmax_like_exp(queries, keys, values, mask, output_gradient):
    """Uses w·dw: forgets that the weights share one sum."""
    weights = weights_of(queries, keys, mask)
    d_scores = weights * (output_gradient @ _turned(values))
    return _finish(queries, keys, weights, d_scores, output_gradient)


def softmax_skipped(queries, keys, values, mask, output_gradient):
    """Hands the gradient of the weights on as that of the scores."""
    weights = weights_of(queries, keys, mask)
    d_scores = output_gradient @ _turned(values)
    return _finish(queries, keys, weights, d_scores, output_gradient)


def sum_over_queries(queries, keys, values, mask, output_gradient):
    """Sums along the axis of queries inside the softmax's gradient."""
    weights = weights_of(queries, keys, mask)
    d_weights = output_gradient @ _turned(values)
    d_scores = weights * (d_weights - (weights * d_weights).sum(axis=-2, keepdims=True))
    return _finish(queries, keys, weights, d_scores, output_gradient)


def plain_mean_subtracted(queries, keys, values, mask, output_gradient):
    """Subtracts the plain mean over keys and not the weighted one."""
    weights = weights_of(queries, keys, mask)
    d_weights = output_gradient @ _turned(values)
    d_scores = weights * (d_weights - d_weights.mean(axis=-1, keepdims=True))
    return _finish(queries, keys, weights, d_scores, output_gradient)


def scale_forgotten(queries, keys, values, mask, output_gradient):
    """Forgets 1/√d_k on the way back."""
    weights = weights_of(queries, keys, mask)
    d_scores = _scores_gradient(weights, output_gradient @ _turned(values))
    return _finish(queries, keys, weights, d_scores, output_gradient, scale=1.0)


def scale_twice(queries, keys, values, mask, output_gradient):
    """Divides by √d_k twice on the way back."""
    weights = weights_of(queries, keys, mask)
    d_scores = _scores_gradient(weights, output_gradient @ _turned(values))
    return _finish(queries, keys, weights, d_scores, output_gradient, 1 / queries.shape[-1])


def queries_keys_exchanged(queries, keys, values, mask, output_gradient):
    """Returns the gradients of keys and queries in the wrong order."""
    weights = weights_of(queries, keys, mask)
    d_scores = _scores_gradient(weights, output_gradient @ _turned(values))
    d_queries, d_keys, d_values = _finish(queries, keys, weights, d_scores, output_gradient)
    return d_keys, d_queries, d_values


def weights_not_transposed(queries, keys, values, mask, output_gradient):
    """Multiplies the output's gradient by the weights instead of their transpose."""
    weights = weights_of(queries, keys, mask)
    d_scores = _scores_gradient(weights, output_gradient @ _turned(values)) / np.sqrt(
        queries.shape[-1]
    )
    return d_scores @ keys, _turned(d_scores) @ queries, weights @ output_gradient


def mask_forgotten_on_the_way_back(queries, keys, values, mask, output_gradient):
    """Computes weights without the mask: gradient leaks into hidden places."""
    weights = weights_of(queries, keys)
    d_scores = _scores_gradient(weights, output_gradient @ _turned(values))
    return _finish(queries, keys, weights, d_scores, output_gradient)


def blind_query_gives_nan(queries, keys, values, mask, output_gradient):
    """A query that sees nothing makes NaN."""
    scores = queries @ _turned(keys) / np.sqrt(queries.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    d_scores = _scores_gradient(weights, output_gradient @ _turned(values))
    return _finish(queries, keys, weights, d_scores, output_gradient)


def blind_query_leaks(queries, keys, values, mask, output_gradient):
    """−1e9 everywhere in a row: hidden values get gradient from a query that sees nothing."""
    scores = queries @ _turned(keys) / np.sqrt(queries.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -1e9)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    d_scores = _scores_gradient(weights, output_gradient @ _turned(values))
    return _finish(queries, keys, weights, d_scores, output_gradient)


def backward_by_output(queries, keys, values, mask, output_gradient):
    """Right: gets the weighted mean of dW from the output, as FlashAttention does."""
    weights = weights_of(queries, keys, mask)
    output = weights @ values
    shared = (output * output_gradient).sum(axis=-1, keepdims=True)
    d_scores = weights * (output_gradient @ _turned(values) - shared) / np.sqrt(queries.shape[-1])
    return d_scores @ keys, _turned(d_scores) @ queries, _turned(weights) @ output_gradient


def backward_by_jacobian(queries, keys, values, mask, output_gradient):
    """Right: the whole Jacobian diag(w) − wwᵀ of each row, by einsum."""
    weights = weights_of(queries, keys, mask)
    d_weights = np.einsum("...qv,...kv->...qk", output_gradient, values)
    jacobian = weights[..., :, None] * np.eye(keys.shape[-2])
    jacobian = jacobian - weights[..., :, None] * weights[..., None, :]
    d_scores = np.einsum("...qkj,...qj->...qk", jacobian, d_weights) * queries.shape[-1] ** -0.5
    d_queries = np.einsum("...qk,...kd->...qd", d_scores, keys)
    d_keys = np.einsum("...qk,...qd->...kd", d_scores, queries)
    return d_queries, d_keys, np.einsum("...qk,...qv->...kv", weights, output_gradient)


def backward_query_by_query(queries, keys, values, mask, output_gradient):
    """Right: loops over queries and adds up what each sends to keys and values."""
    shape = (*queries.shape[:-1], keys.shape[-2])
    visible = np.broadcast_to(True if mask is None else mask, shape)
    d_queries, d_keys, d_values = (np.zeros(part.shape) for part in (queries, keys, values))
    root = np.sqrt(queries.shape[-1])
    for *lead, q in np.ndindex(shape[:-1]):
        lead = tuple(lead)
        row, seen = (*lead, q), visible[(*lead, q)]
        if not seen.any():
            continue
        scores = keys[lead][seen] @ queries[row] / root
        powers = np.exp(scores - scores.max())
        weights = powers / powers.sum()
        d_weights = values[lead][seen] @ output_gradient[row]
        d_scores = weights * (d_weights - weights @ d_weights) / root
        d_queries[row] = d_scores @ keys[lead][seen]
        d_keys[lead][seen] += np.outer(d_scores, queries[row])
        d_values[lead][seen] += np.outer(weights, output_gradient[row])
    return d_queries, d_keys, d_values


ATTENTION_BACKWARD = Exercise(
    id="attention_backward",
    title="Attention backwards, by hand",
    asks="Carry the gradient of the output back to queries, keys and values.",
    parameters=("queries", "keys", "values", "mask", "output_gradient"),
    outputs=("d_queries", "d_keys", "d_values"),
    forbidden=("torch.*",),
    groups={
        "plain": Group(2, "one sequence, no mask"),
        "leading": Group(1, "a batch"),
        "masked": Group(1, "masks"),
    },
    cases=backward_cases,
    reference=backward_reference,
    misconceptions=(
        Misconception(
            diagonal_of_the_jacobian,
            "Only the diagonal w(1 − w) of the softmax's Jacobian is used; a score also lowers "
            "all other weights of its row.",
            "What is the derivative of weight j by score k for j ≠ k?",
        ),
        Misconception(
            softmax_like_exp,
            "The softmax is treated like exp alone: its shared sum is missing.",
            "Which term comes from the denominator of the softmax?",
        ),
        Misconception(
            softmax_skipped,
            "The gradient of the weights is handed on as that of the scores.",
            "Which step of the forward pass lies between scores and weights?",
        ),
        Misconception(
            sum_over_queries,
            "The sum in the softmax's gradient runs over queries.",
            "Over which axis did the softmax normalise?",
        ),
        Misconception(
            plain_mean_subtracted,
            "A plain mean over keys is subtracted where the weighted one belongs.",
            "With which weights is the mean taken? Derive one row with two keys.",
        ),
        Misconception(
            scale_forgotten,
            "The gradients of queries and keys lack the factor 1/√d_k.",
            "Every factor of the forward pass appears once on the way back.",
        ),
        Misconception(
            scale_twice,
            "The factor 1/√d_k appears twice.",
            "Every factor of the forward pass appears once on the way back.",
        ),
        Misconception(
            queries_keys_exchanged,
            "The gradients of keys and queries come in the wrong order.",
            "A gradient has the shape of what it belongs to.",
        ),
        Misconception(
            weights_not_transposed,
            "The values' gradient needs the transposed weights.",
            "A value gathers gradient from all queries: over which axis is that sum?",
        ),
        Misconception(
            mask_forgotten_on_the_way_back,
            "The weights are computed without the mask: gradient leaks into hidden places.",
            "Which weights did the forward pass use?",
        ),
        Misconception(
            blind_query_gives_nan,
            "A query that sees nothing makes NaN; its gradients are zero.",
            "What are the weights of a query that may look at nothing?",
        ),
        Misconception(
            blind_query_leaks,
            "A query that sees nothing sends gradient into hidden keys or values.",
            "What are the weights of a query that may look at nothing?",
        ),
    ),
    accepted=(backward_by_output, backward_by_jacobian, backward_query_by_query),
)
