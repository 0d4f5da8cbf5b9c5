"""What chapter 02's exercises promise: agreement with PyTorch, masks, causality, gradients."""

import numpy as np
import torch

from autograder.exercises import _ch02_backward as backward
from autograder.exercises.ch02_attention import (
    ATTENTION,
    ATTENTION_BACKWARD,
    CAUSAL_ATTENTION,
    DECODER_STEP,
    EXERCISES,
    MASKED_SOFTMAX,
    SELF_ATTENTION,
    SHUFFLE_TEST,
)

SEEDS = range(20)


def tensors(inputs):
    return {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}


def test_attention_agrees_with_pytorch_where_every_query_sees_something():
    compared = 0
    for seed in SEEDS:
        for case in ATTENTION.make_cases(seed):
            given = tensors(case.inputs)
            mask = given.get("mask")
            if mask is not None and not mask.any(dim=-1).all():
                continue
            expected = torch.nn.functional.scaled_dot_product_attention(
                given["queries"], given["keys"], given["values"], attn_mask=mask
            )
            output, weights = ATTENTION.reference(**case.inputs)
            np.testing.assert_allclose(output, expected.numpy(), rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(weights.sum(axis=-1), 1)
            compared += 1
    assert compared >= 4 * len(SEEDS)


def test_the_layer_agrees_with_pytorch():
    for case in SELF_ATTENTION.make_cases(5):
        given = tensors(case.inputs)
        mask = given.get("mask")
        if mask is not None and not mask.any(dim=-1).all():
            continue
        x = given["x"]
        expected = torch.nn.functional.scaled_dot_product_attention(
            x @ given["w_q"], x @ given["w_k"], x @ given["w_v"], attn_mask=mask
        )
        np.testing.assert_allclose(SELF_ATTENTION.reference(**case.inputs), expected, rtol=1e-9)


def test_what_is_hidden_does_not_matter():
    for case in MASKED_SOFTMAX.make_cases(7):
        scores, mask = case.inputs["scores"], case.inputs["mask"]
        other = np.where(mask, scores, 1e6)
        first, second = (MASKED_SOFTMAX.reference(s, mask) for s in (scores, other))
        np.testing.assert_array_equal(first, second)
        assert (first[~np.broadcast_to(mask, scores.shape)] == 0).all()


def test_each_exercise_with_masks_has_a_row_that_sees_nothing():
    for exercise in (MASKED_SOFTMAX, ATTENTION, SELF_ATTENTION, ATTENTION_BACKWARD):
        for seed in SEEDS:
            masks = [c.inputs.get("mask") for c in exercise.make_cases(seed)]
            masks = [mask for mask in masks if mask is not None]
            assert any((~mask).all(axis=-1).any() for mask in masks), exercise.id
            assert any(mask.any(axis=-1).all() for mask in masks), exercise.id


def test_causal_queries_are_the_last_tokens():
    for case in CAUSAL_ATTENTION.make_cases(3):
        queries, keys, values = (case.inputs[name] for name in ("queries", "keys", "values"))
        q, k = queries.shape[-2], keys.shape[-2]
        output, weights = CAUSAL_ATTENTION.reference(queries, keys, values)
        assert (weights[..., -1, :] > 0).all()
        assert (weights[..., 0, k - q + 1 :] == 0).all()
        mask = torch.ones(q, k, dtype=torch.bool).tril(k - q)
        expected = torch.nn.functional.scaled_dot_product_attention(
            *map(torch.tensor, (queries, keys, values)), attn_mask=mask
        )
        np.testing.assert_allclose(output, expected, rtol=1e-9, atol=1e-11)


def test_a_decoder_step_is_attention_with_one_query_and_no_scaling():
    for case in DECODER_STEP.make_cases(2):
        state, encoder_states = case.inputs["state"], case.inputs["encoder_states"]
        context, _ = DECODER_STEP.reference(**case.inputs)
        queries = torch.tensor(state[..., None, :])
        keys = torch.tensor(encoder_states)
        expected = torch.nn.functional.scaled_dot_product_attention(queries, keys, keys, scale=1.0)
        np.testing.assert_allclose(context, expected[..., 0, :], rtol=1e-9)


def test_only_positions_make_a_gap():
    for seed in SEEDS:
        for case in SHUFFLE_TEST.make_cases(seed):
            order = case.inputs["order"]
            assert (order != np.argsort(order)).any()
            _, _, gap = SHUFFLE_TEST.reference(**case.inputs)
            assert gap < 1e-14 if case.group == "bag" else gap > 1e-2


def test_complex_steps_agree_with_autograd():
    for seed in range(5):
        for case in ATTENTION_BACKWARD.make_cases(seed):
            given = tensors(case.inputs)
            parts = [given[name].requires_grad_() for name in ("queries", "keys", "values")]
            scores = parts[0] @ parts[1].mT / parts[0].shape[-1] ** 0.5
            mask = given["mask"]
            if mask is not None:
                scores = scores.masked_fill(~mask, -1e30)
            weights = scores.softmax(dim=-1)
            weights = weights if mask is None else weights * mask
            (weights @ parts[2]).backward(given["output_gradient"])
            found = backward.backward_reference(**case.inputs)
            for gradient, part in zip(found, parts, strict=True):
                np.testing.assert_allclose(gradient, part.grad, rtol=1e-9, atol=1e-10)


def test_public_cases_stay_small():
    for exercise in EXERCISES:
        for case in exercise.make_cases(0):
            for value in case.inputs.values():
                assert not isinstance(value, np.ndarray) or value.size <= 400
