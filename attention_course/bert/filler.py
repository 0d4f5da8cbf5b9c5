"""The blank filler: a small BERT with its head that comes with the course.

`experiments/bert_filler.py` trained it on the English side of the fragment of grammar. Its weights
have the names of Hugging Face's BERT, so code that takes BERT's weights takes these. Blanks were
always [MASK]: this model fills blanks and is not meant for anything else.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attention_course.bert.reading import BLANK, UNKNOWN, piece_tokenizer
from attention_course.checkpoints import CHECKPOINTS, Checkpoint, load
from attention_course.explorers.blank_filler import blank_sets, key

FILLER = CHECKPOINTS / "bert_filler.safetensors"
ENCODER, HEAD = "bert.", "cls.predictions."


@dataclass(frozen=True)
class Filler:
    """The blank filler.

    `weights` are the encoder's, by name; `head` those of the masked-LM head: `dense`, `LayerNorm`
    and `bias`. All are float32. `pieces` are the word pieces by number, `heads` how many each layer
    has, `d_model` its width. `about` tells how it was made and what it knows.
    """

    weights: dict[str, Tensor]
    head: dict[str, Tensor]
    pieces: list[str]
    heads: int
    d_model: int
    about: dict[str, Any]

    @functools.cached_property
    def tokenizer(self) -> Any:
        """The library's tokenizer for these pieces."""
        return piece_tokenizer(self.pieces)

    @property
    def blank(self) -> int:
        """The number of [MASK]."""
        return self.pieces.index(BLANK)

    def tokens(self, text: str) -> Tensor:
        """Numbers of a text's pieces between [CLS] and [SEP], int64 (1, length).

        A [MASK] in the text is a blank. Raises ValueError for a text that is empty, too long or
        holds a character that no piece has.
        """
        found = self.tokenizer.encode(text)
        most = len(self.weights["embeddings.position_embeddings.weight"])
        if not 2 < len(found.ids) <= most:
            raise ValueError(
                f"the text has {len(found.ids) - 2} pieces; the filler reads 1 to {most - 2}."
            )
        if UNKNOWN in found.tokens:
            place = found.tokens.index(UNKNOWN)
            word = text[slice(*found.offsets[place])]
            raise ValueError(f"the filler cannot spell {word!r}: use other words.")
        return torch.tensor([found.ids])

    @functools.cached_property
    def library_model(self) -> Any:
        """The same weights in transformers' own `BertForMaskedLM`."""
        from transformers import BertConfig, BertForMaskedLM

        config = BertConfig(**self.about["sizes"], attn_implementation="eager")
        model = BertForMaskedLM(config)
        stored = {ENCODER + name: w for name, w in self.weights.items()}
        stored |= {HEAD + library_name(name): w for name, w in self.head.items()}
        model.load_state_dict(stored, strict=False)  # its output matrix is the word table
        model.tie_weights()
        return model.eval()

    @torch.no_grad()
    def logits(self, tokens: Tensor) -> Tensor:
        """What transformers computes: (batch, length, pieces)."""
        return self.library_model(input_ids=tokens).logits

    def fill(self, text: str, most: int = 5) -> list[list[tuple[str, float]]]:
        """The best pieces for each [MASK] of a text, with their probabilities."""
        tokens = self.tokens(text)
        chances = self.logits(tokens)[0].softmax(-1)
        return [self.best(chances[place], most) for place in (tokens[0] == self.blank).nonzero()]

    def best(self, chances: Tensor, most: int) -> list[tuple[str, float]]:
        """The most probable pieces of a distribution over all of them."""
        values, numbers = chances.flatten().topk(most)
        return [(self.pieces[n], float(p)) for p, n in zip(values, numbers, strict=True)]

    @torch.no_grad()
    def every_blank(self, text: str) -> tuple[list[str], dict[str, Any]]:
        """What `blank_filler` shows: the pieces of a text, and all sets of one or two blanks."""
        original = self.tokens(text)
        words = [self.pieces[number] for number in original[0]]
        sets = blank_sets(words)
        tokens = original.repeat(len(sets), 1)
        for row, places in enumerate(sets):
            tokens[row, list(places)] = self.blank
        found = self.library_model(input_ids=tokens, output_attentions=True)
        looks = torch.stack(found.attentions).mean(dim=(0, 2))
        chances = found.logits.softmax(-1)
        return words, dict(self._answers(sets, chances, looks))

    def _answers(self, sets, chances, looks) -> Iterator[tuple[str, dict]]:
        for row, places in enumerate(sets):
            entry = {
                str(place): {
                    "words": [[w, round(p, 2)] for w, p in self.best(chances[row, place], 4)],
                    "weights": [round(float(weight), 2) for weight in looks[row, place]],
                }
                for place in places
            }
            yield key(places), entry


def library_name(name: str) -> str:
    """Name of a head's parameter in the library: the first two layers lie in a `transform`."""
    return name if name == "bias" else f"transform.{name}"


def from_checkpoint(found: Checkpoint) -> Filler:
    """Take a checkpoint of `experiments/bert_filler.py` apart."""

    def named(start: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(start): weight
            for name, weight in found.weights.items()
            if name.startswith(start)
        }

    head = {name.removeprefix("transform."): weight for name, weight in named(HEAD).items()}
    sizes = found.about["sizes"]
    return Filler(
        weights=named(ENCODER),
        head=head,
        pieces=found.about["pieces"],
        heads=sizes["num_attention_heads"],
        d_model=sizes["hidden_size"],
        about=found.about,
    )


@functools.cache
def load_filler() -> Filler:
    """Read the filler that comes with the course. Raises CheckpointError if it is damaged."""
    return from_checkpoint(load(FILLER))
