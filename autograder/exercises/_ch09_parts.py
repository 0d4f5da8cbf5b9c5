"""What the exercises of chapter 09 share: weights under Hugging Face's names, masks, batches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autograder.case_making import draw_lengths

IGNORED = -100  # PyTorch's mark for a target that does not count
EPSILON = 1e-12  # of every LayerNorm in BERT


def draw(rng, shape: tuple[int, ...]) -> np.ndarray:
    """Draw normal numbers of four decimals: shorter files of cases, and no check is weaker."""
    return rng.normal(size=shape).round(4)


def draw_weights(rng, shapes: Mapping[str, tuple[int, ...]], size: float = 1.0) -> dict:
    """Draw an array for each name: matrices of rows of unit length on average, gains around 1.

    `size` scales everything but LayerNorms.
    """
    weights = {}
    for name, shape in shapes.items():
        array = draw(rng, shape)
        if "LayerNorm" in name:
            array = 0.5 * array + name.endswith("weight")
        else:
            array *= size / (np.sqrt(shape[1]) if len(shape) == 2 else 1.0)
        weights[name] = array
    return weights


def draw_padding_mask(rng, batch: int, longest: int) -> np.ndarray:
    """Draw a mask (batch, longest), True for tokens: sequences of unequal lengths."""
    return np.arange(longest) < draw_lengths(rng, batch, longest)[:, None]


def layer_shapes(d_model: int, d_hidden: int) -> dict[str, tuple[int, ...]]:
    """Shapes of one encoder layer's parameters by their names in Hugging Face's BERT."""
    square, vector = (d_model, d_model), (d_model,)
    shapes = {}
    for name in ("self.query", "self.key", "self.value", "output.dense"):
        shapes |= {f"attention.{name}.weight": square, f"attention.{name}.bias": vector}
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes |= {f"{name}.weight": vector, f"{name}.bias": vector}
    shapes |= {
        "intermediate.dense.weight": (d_hidden, d_model),
        "intermediate.dense.bias": (d_hidden,),
    }
    return shapes | {"output.dense.weight": (d_model, d_hidden), "output.dense.bias": vector}


def embedding_shapes(vocabulary: int, positions: int, segments: int, d_model: int):
    """Shapes of the embeddings' parameters by their names in Hugging Face's BERT."""
    return {
        "word_embeddings.weight": (vocabulary, d_model),
        "position_embeddings.weight": (positions, d_model),
        "token_type_embeddings.weight": (segments, d_model),
        "LayerNorm.weight": (d_model,),
        "LayerNorm.bias": (d_model,),
    }
