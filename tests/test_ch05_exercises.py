"""What chapter 05's exercises promise: agreement with PyTorch, sharing, padding, counts."""

import copy

import numpy as np
import torch
from torch import nn

from attention_course.drivers.tensors import as_tensors
from autograder.exercises._ch05_block import EncoderBlockReference
from autograder.exercises._ch05_padded import PaddedEncoderReference
from autograder.exercises.ch05_transformer_block import (
    BERT_PARAMETERS,
    DROPOUT,
    ENCODER_BLOCK,
    ENCODER_STACK,
    GRADIENT_NORMS,
    LAYER_NORM,
    MLP,
    PACKED_MLP,
    PADDED_ENCODER,
)


def test_bert_has_its_published_size_to_the_unit():
    counts = [BERT_PARAMETERS.reference(**c.inputs) for c in BERT_PARAMETERS.make_cases(0)[-3:]]
    assert counts == [109_482_240, 335_141_888, 109_482_240 - 768 * 769]


def test_counts_agree_with_modules():
    for case in BERT_PARAMETERS.make_cases(7)[:3]:
        shape = dict(case.inputs)
        width, heads, hidden = (shape[name] for name in ("d_model", "heads", "d_hidden"))
        rows = [shape[name] for name in ("vocabulary", "positions", "segments")]
        parts = [nn.Embedding(number, width) for number in rows] + [nn.LayerNorm(width)]
        parts += [nn.TransformerEncoderLayer(width, heads, hidden)] * shape["layers"]
        parts += [nn.Linear(width, width)] * shape["pooler"]
        built = sum(p.numel() for part in parts for p in part.parameters())
        assert BERT_PARAMETERS.reference(**shape) == built


def test_all_parameters_are_far_from_what_a_fresh_module_has():
    for exercise in (ENCODER_BLOCK, ENCODER_STACK, PADDED_ENCODER):
        for case in exercise.make_cases(4):
            for name, array in case.inputs["weights"].items():
                assert np.abs(array).min() < np.abs(array).max(), name
                assert np.abs(array - 1).max() > 0.1, name
                assert np.abs(array).max() > 0.1, name


def test_sizes_of_modules_differ_from_each_other():
    for seed in range(10):
        for case in ENCODER_BLOCK.make_cases(seed):
            sizes = [*case.inputs["inputs"]["x"].shape, case.inputs["build"]["heads"]]
            sizes.append(case.inputs["build"]["d_hidden"])
            assert len(set(sizes)) == len(sizes) and min(sizes) > 1


def test_the_block_takes_the_weights_of_pytorchs_layer():
    layer = nn.TransformerEncoderLayer(6, 2, 10, dropout=0.0, activation="gelu", batch_first=True)
    solution = ENCODER_BLOCK.accepted[1](6, 2, 10, norm_first=False)
    solution.load_state_dict(layer.state_dict())
    x = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(solution(x), layer(x))


def test_the_block_treats_tokens_alike():
    """Shuffled tokens in, equally shuffled outputs out."""
    for case in ENCODER_BLOCK.make_cases(2):
        given = as_tensors(copy.deepcopy(dict(case.inputs)))
        module = EncoderBlockReference(**given["build"]).double()
        module.load_state_dict(given["weights"])
        x = given["inputs"]["x"]
        order = torch.arange(x.shape[1]).roll(2)
        torch.testing.assert_close(module(x[:, order]), module(x)[:, order])


def test_padding_does_not_matter():
    for seed in range(3):
        for case in PADDED_ENCODER.make_cases(seed):
            given = as_tensors(copy.deepcopy(dict(case.inputs)))
            module = PaddedEncoderReference(**given["build"]).double()
            module.load_state_dict(given["weights"])
            x, lengths = given["inputs"]["x"], given["inputs"]["lengths"]
            real = torch.arange(x.shape[1]) < lengths[:, None]
            assert not real.all()
            other = torch.where(real[..., None], x, -7.0)
            for one, two in zip(module(x, lengths), module(other, lengths), strict=True):
                torch.testing.assert_close(one, two, rtol=0, atol=0)


def test_each_seed_has_padding_between_tokens():
    for seed in range(20):
        masks = [case.inputs["real"] for case in PACKED_MLP.make_cases(seed)]
        gaps = [(np.diff(mask.astype(int), axis=1) > 0).any() for mask in masks]
        assert gaps == [False, True, False, True]


def test_layer_norm_sees_rows_below_epsilon_and_a_constant_row():
    for seed in range(10):
        variances = [case.inputs["x"].var(axis=-1) for case in LAYER_NORM.make_cases(seed)]
        assert any((v < 1e-5).all() for v in variances)
        assert any((v == 0).any() and (v > 0.01).any() for v in variances)


def test_dropout_keeps_the_border_and_drops_something():
    for seed in range(10):
        for case in DROPOUT.make_cases(seed):
            uniform, p = case.inputs["uniform"], case.inputs["p"]
            if case.group == "training":
                assert (uniform == p).any() and (uniform < p).any() and (uniform > p).any()


def test_gradients_through_twenty_layers_are_measurable():
    for case in GRADIENT_NORMS.make_cases(3):
        norms = GRADIENT_NORMS.reference(**as_tensors(dict(case.inputs)))
        assert len(norms) == len(case.inputs["weights"])
        assert norms.min() > 1e-6, case.about
    assert max(len(c.inputs["weights"]) for c in GRADIENT_NORMS.make_cases(3)) == 20


def test_the_forms_of_gelu_differ_by_far_more_than_the_tolerance():
    for case in MLP.make_cases(5):
        inputs = as_tensors(dict(case.inputs))
        if inputs["activation"] == "gelu":
            other = MLP.reference(**{**inputs, "activation": "gelu_tanh"})
            assert (MLP.reference(**inputs) - other).abs().max() > 1e-5
