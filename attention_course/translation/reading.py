"""Look at what a trained translator does: its translations, and its cross-attention."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import nn

from attention_course.translation.models import Memory, TransformerTranslator
from attention_course.translation.text import END, START, Vocabulary, make_batch


@torch.no_grad()
def translate(model: nn.Module, source: torch.Tensor, longest: int = 32) -> torch.Tensor:
    """Give the ids (batch, longest) that the model likes best, word by word.

    Rows go on after their end token; `Vocabulary.sentence` cuts them there.
    """
    memory = model.encode(source)
    words = torch.full((len(source), 1), START)
    for _ in range(longest):
        best = model.decode(words, memory)[:, -1].argmax(dim=-1, keepdim=True)
        words = torch.cat([words, best], dim=1)
        if (words == END).any(dim=1).all():
            break
    return words[:, 1:]


def share_right(model: nn.Module, pairs: Sequence, source: Vocabulary, target: Vocabulary) -> float:
    """Share of pairs that the model translates word for word as given."""
    right = 0
    for first in range(0, len(pairs), 250):
        some = pairs[first : first + 250]
        found = translate(model, make_batch(some, source, target).source).tolist()
        right += sum(
            target.sentence(ids) == list(pair.target) for ids, pair in zip(found, some, strict=True)
        )
    return right / len(pairs)


@contextlib.contextmanager
def _watched(attentions: Iterable[nn.MultiheadAttention]) -> Iterator[list[torch.Tensor]]:
    """Collect the weights (batch, heads, queries, keys) that each of these attentions uses.

    PyTorch's layers do not ask their attention for weights; within the block, hooks do.
    """
    found, hooks = [], []

    def ask_for_weights(_, arguments, options):
        return arguments, {**options, "need_weights": True, "average_attn_weights": False}

    for attention in attentions:
        hooks.append(attention.register_forward_pre_hook(ask_for_weights, with_kwargs=True))
        hooks.append(attention.register_forward_hook(lambda _, __, out: found.append(out[1])))
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def cross_attention(
    model: TransformerTranslator, target_input: torch.Tensor, memory: Memory
) -> torch.Tensor:
    """Weights of the cross-attention of all layers, (layers, batch, heads, target, source)."""
    with _watched(layer.multihead_attn for layer in model.stacks.decoder.layers) as weights:
        model.decode(target_input, memory)
    return torch.stack(weights)


@torch.no_grad()
def all_attention(
    model: TransformerTranslator, source: torch.Tensor, target_input: torch.Tensor
) -> dict[str, list[torch.Tensor]]:
    """Weights of all three attentions for one sentence, as `encoder_decoder_view` takes them.

    Args:
        model: the translator.
        source: ids (1, source).
        target_input: ids (1, target), the start token first.

    Returns:
        "encoder", "decoder" and "cross": for each layer (1, heads, queries, keys).
    """
    layers = model.stacks.decoder.layers
    with (
        _watched(layer.self_attn for layer in model.stacks.encoder.layers) as encoder,
        _watched(layer.self_attn for layer in layers) as decoder,
        _watched(layer.multihead_attn for layer in layers) as cross,
    ):
        model.decode(target_input, model.encode(source))
    return {"encoder": encoder, "decoder": decoder, "cross": cross}
