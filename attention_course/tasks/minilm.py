"""MiniLM in PyTorch's own encoder: word pieces in, the output of every layer out.

The weights (Wang et al. 2020, tuned for sentence vectors) are optional; without their package
`ModelMissing` says what to install.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn

from attention_course.pretrained import minilm_config, minilm_vocabulary, minilm_weights

# Hugging Face's names within a layer, and PyTorch's.
NAMES = {
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}


def minilm_tokenizer(longest: int = 64) -> Tokenizer:
    """Make BERT's uncased word-piece tokenizer: [CLS] … [SEP], cut at `longest` pieces."""
    vocabulary = {piece: number for number, piece in enumerate(minilm_vocabulary())}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    tokenizer.enable_truncation(longest)
    return tokenizer


def tokenized(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Word pieces of several texts: int64 ids and a bool mask, both (texts, longest of them)."""
    rows = [torch.tensor(encoding.ids) for encoding in tokenizer.encode_batch(list(texts))]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return ids, ids != 0


class MiniLM(nn.Module):
    """Embeddings and six post-norm layers, with MiniLM's weights."""

    def __init__(self):
        super().__init__()
        config, weights = minilm_config(), minilm_weights()
        width, epsilon = config["hidden_size"], config["layer_norm_eps"]
        self.words = nn.Embedding(config["vocab_size"], width)
        self.places = nn.Embedding(config["max_position_embeddings"], width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                *(width, config["num_attention_heads"], config["intermediate_size"], 0.0, "gelu"),
                layer_norm_eps=epsilon,
                batch_first=True,
            )
            for _ in range(config["num_hidden_layers"])
        )
        self.load_state_dict(_renamed(weights, len(self.layers)))

    def embed(self, ids: Tensor) -> Tensor:
        """Vectors before the first layer: (batch, length) → (batch, length, 384)."""
        return self.norm(self.words(ids) + self.places.weight[: ids.shape[1]])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """All layers' outputs, embeddings first: (layers + 1, batch, length, 384)."""
        states = [self.embed(ids)]
        for layer in self.layers:
            states.append(layer(states[-1], src_key_padding_mask=~mask))
        return torch.stack(states)


def _renamed(weights: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """MiniLM's weights under the names of `MiniLM`; the one segment there is goes to the places."""
    front = "embeddings."
    renamed = {
        "words.weight": weights[front + "word_embeddings.weight"],
        "places.weight": weights[front + "position_embeddings.weight"]
        + weights[front + "token_type_embeddings.weight"][0],
        "norm.weight": weights[front + "LayerNorm.weight"],
        "norm.bias": weights[front + "LayerNorm.bias"],
    }
    for number in range(layers):
        old, new = f"encoder.layer.{number}.", f"layers.{number}."
        for kind in ("weight", "bias"):
            parts = [
                weights[f"{old}attention.self.{part}.{kind}"] for part in ("query", "key", "value")
            ]
            renamed[f"{new}self_attn.in_proj_{kind}"] = torch.cat(parts)
            for theirs, ours in NAMES.items():
                renamed[f"{new}{ours}.{kind}"] = weights[f"{old}{theirs}.{kind}"]
    return renamed


@torch.no_grad()
def mean_vectors(model: MiniLM, tokenizer: Tokenizer, texts: Sequence[str], batch: int = 64):
    """Mean vectors of texts at every layer: float32 (layers + 1, texts, 384), in the texts' order.

    Texts of like length are read together, so that there is little padding to compute.
    """
    lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts))]
    order = sorted(range(len(texts)), key=lengths.__getitem__)
    result = torch.empty(len(model.layers) + 1, len(texts), model.norm.normalized_shape[0])
    for low in range(0, len(order), batch):
        rows = order[low : low + batch]
        ids, mask = tokenized(tokenizer, [texts[row] for row in rows])
        states = model(ids, mask)
        result[:, rows] = (states * mask[..., None]).sum(2) / mask.sum(1)[:, None]
    return result
