"""What chapter 04's exercises promise beyond the general audit: they agree with PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from autograder.exercises.ch04_multi_head import EXERCISES

BY_ID = {exercise.id: exercise for exercise in EXERCISES}
SEEDS = range(3)
MATRICES = ("w_qkv", "b_qkv", "w_out", "b_out")


def tensors(inputs):
    return {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}


def cases(exercise_id, group=None):
    for seed in SEEDS:
        for case in BY_ID[exercise_id].make_cases(seed):
            if group in (None, case.group):
                yield case


def load(layer, w_qkv, b_qkv, w_out, b_out):
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.tensor(w_qkv.T))
        layer.in_proj_bias.copy_(torch.tensor(b_qkv))
        layer.out_proj.weight.copy_(torch.tensor(w_out.T))
        layer.out_proj.bias.copy_(torch.tensor(b_out))
    return layer


def test_multi_head_is_pytorchs_own_layer():
    for case in cases("multi_head"):
        x, heads = torch.tensor(case.inputs["x"]), case.inputs["heads"]
        layer = nn.MultiheadAttention(x.shape[-1], heads, batch_first=True).double()
        load(layer, *(case.inputs[name] for name in MATRICES))
        with torch.no_grad():
            wanted = layer(x, x, x, average_attn_weights=False)
        found = BY_ID["multi_head"].reference(**case.inputs)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-12, atol=1e-12)


def test_converted_weights_give_the_same_layer_to_twelve_digits():
    generator = torch.Generator().manual_seed(0)
    theirs = nn.MultiheadAttention(6, 3, batch_first=True).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
        x = torch.randn(2, 5, 6, generator=generator).double()
        wanted = theirs(x, x, x)[0].numpy()
    state = {name: value.clone() for name, value in theirs.state_dict().items()}
    matrices = (part.numpy() for part in BY_ID["from_pytorch"].reference(state))
    inputs = dict(zip(MATRICES, matrices, strict=True))
    found, _ = BY_ID["multi_head"].reference(x.numpy(), **inputs, heads=3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_from_heads_undoes_to_heads_exactly():
    for case in cases("to_heads", "heads"):
        x = torch.tensor(case.inputs["x"])
        back = BY_ID["from_heads"].reference(BY_ID["to_heads"].reference(x, case.inputs["heads"]))
        assert torch.equal(back, x)


def test_small_matrices_add_up_to_the_fused_layer():
    for case in cases("multi_head", "heads"):
        given = tensors(case.inputs)
        x, heads = given["x"], given["heads"]
        fused = [given[name] for name in ("w_qkv", "b_qkv", "w_out")]
        small_w, small_b, small_out = BY_ID["slice_heads"].reference(*fused, heads)
        total = given["b_out"]
        for head in range(heads):
            q, k, v = (x @ small_w[part, head] + small_b[part, head] for part in range(3))
            weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
            total = total + weights @ v @ small_out[head]
        wanted, _ = BY_ID["multi_head"].reference(**case.inputs)
        np.testing.assert_allclose(total, wanted, rtol=1e-12, atol=1e-12)


def test_a_change_of_layout_is_seen_for_every_number_of_heads_but_three():
    for case in cases("chunked_from_interleaved"):
        assert case.inputs["heads"] != 3
        found, _ = BY_ID["chunked_from_interleaved"].reference(**tensors(case.inputs))
        changed = not np.array_equal(found, case.inputs["w_qkv"])
        assert changed == (case.inputs["heads"] > 1)


def test_padding_is_large_and_does_not_matter():
    reference = BY_ID["attend_with_padding"].reference
    for case in cases("attend_with_padding"):
        given = tensors(case.inputs)
        padded = torch.arange(given["keys"].shape[2]) >= given["lengths"][:, None]
        assert padded.any()
        hidden = padded[:, None, :, None]
        assert (given["values"].abs() * hidden).max() > 1e4
        other = {
            name: torch.where(hidden, torch.tensor(7.0).double(), given[name])
            for name in ("keys", "values")
        }
        for one, two in zip(reference(**given), reference(**{**given, **other}), strict=True):
            assert torch.equal(one, two)


def test_empty_sentences_give_zeros():
    for case in cases("attend_with_padding", "empty"):
        output, mask = BY_ID["attend_with_padding"].reference(**tensors(case.inputs))
        empty = case.inputs["lengths"] == 0
        assert empty.any() and not output[empty].any() and not mask[empty].any()


def test_pytorchs_own_function_is_refused_as_an_answer():
    exercise = BY_ID["MultiHeadAttention"]
    drawn = exercise.make_cases(1)
    verdict = exercise.judge(exercise.run(exercise.reference, drawn), drawn, [])
    assert verdict.points == 0
    assert "multi_head_attention_forward" in verdict.difference.sentence


def test_importance_is_a_mean_of_sizes_that_would_cancel():
    for case in cases("head_importance", "batch"):
        given = tensors(case.inputs)
        by_example = [
            BY_ID["head_importance"].reference(
                given["head_outputs"][b : b + 1],
                given["w_out"],
                given["b_out"],
                given["target"][b : b + 1],
            )
            for b in range(len(given["target"]))
        ]
        whole = BY_ID["head_importance"].reference(**given)
        np.testing.assert_allclose(whole, torch.stack(by_example).mean(dim=0), rtol=1e-10)


def test_some_case_of_the_layer_tells_the_batch_from_the_width_of_a_head():
    for seed in SEEDS:
        drawn = [
            (*case.inputs["inputs"]["x"].shape, case.inputs["build"]["heads"])
            for case in BY_ID["MultiHeadAttention"].make_cases(seed)
            if case.group == "layer"
        ]
        assert any(batch != width // heads for batch, _, width, heads in drawn)
