"""MiniLM (Wang et al. 2020), a real BERT of six layers, read by the library `transformers`.

Its weights are optional: without their package every function here raises `ModelMissing`, which
says what to install.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from attention_course.bert.reading import piece_tokenizer
from attention_course.pretrained import minilm_config, minilm_vocabulary, minilm_weights

HEADS = 12


@dataclass(frozen=True)
class Batch:
    """Sentences as MiniLM reads them.

    `tokens` and `segments` are int64, `mask` is bool (True for tokens), all (batch, length).
    `pieces` holds each sentence's word pieces, without padding.
    """

    tokens: torch.Tensor
    segments: torch.Tensor
    mask: torch.Tensor
    pieces: list[list[str]]


@dataclass(frozen=True)
class Look:
    """Where the heads look: `weights` holds (heads, tokens, tokens) for each layer."""

    pieces: list[str]
    weights: list[torch.Tensor]


@functools.cache
def tokenizer() -> Any:
    """BERT's uncased tokenizer, with padding to the longest sentence. Raises ModelMissing."""
    return piece_tokenizer(minilm_vocabulary())


def read(sentences: Sequence[str | tuple[str, str]]) -> Batch:
    """Cut sentences, or pairs of sentences, into a padded batch. Raises ModelMissing."""
    encoded = tokenizer().encode_batch(list(sentences))
    columns = (
        torch.tensor([getattr(one, name) for one in encoded])
        for name in ("ids", "type_ids", "attention_mask")
    )
    tokens, segments, mask = columns
    pieces = [
        one.tokens[:length] for one, length in zip(encoded, mask.sum(1).tolist(), strict=True)
    ]
    return Batch(tokens, segments, mask.bool(), pieces)


@functools.cache
def weights() -> dict[str, torch.Tensor]:
    """MiniLM's weights by name, float32; nothing else of the file. Raises ModelMissing."""
    return {name: w for name, w in minilm_weights().items() if w.is_floating_point()}


@functools.cache
def library_model() -> Any:
    """MiniLM in transformers' own `BertModel`. Raises ModelMissing."""
    values = weights()
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(**minilm_config(), attn_implementation="eager"))
    model.load_state_dict(values, strict=False)  # the numbers of places are no weights
    return model.eval()


@torch.no_grad()
def _run(batch: Batch, **options: bool) -> Any:
    return library_model()(
        input_ids=batch.tokens,
        token_type_ids=batch.segments,
        attention_mask=batch.mask.long(),
        **options,
    )


def library_states(batch: Batch) -> torch.Tensor:
    """What transformers computes: (batch, length, 384). Raises ModelMissing."""
    return _run(batch).last_hidden_state


def look(first: str, second: str) -> Look:
    """The attention of all layers and heads on a pair of sentences. Raises ModelMissing."""
    batch = read([(first, second)])
    layers = _run(batch, output_attentions=True).attentions
    return Look(batch.pieces[0], [layer[0] for layer in layers])


@torch.no_grad()
def queries_and_keys(first: str, second: str, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys of one layer, each (heads, tokens, 32). Raises ModelMissing."""
    batch = read([(first, second)])
    states = _run(batch, output_hidden_states=True).hidden_states[layer][0]
    own = library_model().encoder.layer[layer].attention.self
    queries, keys = (
        part(states).unflatten(-1, (HEADS, -1)).transpose(0, 1) for part in (own.query, own.key)
    )
    return queries, keys
