"""Chapter 05: what several of its exercises draw their cases from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

# (batch, length, d_model, heads), all different; small, since a check stores what every known
# mistake gives.
SIZES = ((3, 4, 6, 2), (2, 5, 6, 3), (2, 4, 6, 3), (2, 3, 8, 4))


def draw_block_sizes(rng: np.random.Generator) -> SimpleNamespace:
    """Draw batch, length, d_model, heads and d_hidden, all different."""
    batch, length, d_model, heads = SIZES[rng.integers(len(SIZES))]
    d_hidden = int(rng.choice([7, 9, 10]))
    return SimpleNamespace(
        batch=batch, length=length, d_model=d_model, heads=heads, d_hidden=d_hidden
    )


def draw_gain_and_bias(rng: np.random.Generator, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a LayerNorm's gain and bias, each of shape (width,): far from ones and zeros."""
    return 1.0 + 0.5 * rng.normal(size=width), rng.normal(size=width)


def draw_linear(
    rng: np.random.Generator, width_in: int, width_out: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw weight (width_out, width_in) and bias (width_out,) as `nn.Linear` stores them."""
    weight = rng.normal(size=(width_out, width_in)) / np.sqrt(width_in)
    return weight, 0.5 * rng.normal(size=width_out)


def draw_layer_weights(
    rng: np.random.Generator, d_model: int, d_hidden: int
) -> dict[str, np.ndarray]:
    """Draw all parameters of one encoder layer under the names of `nn.TransformerEncoderLayer`."""
    weights: dict[str, np.ndarray] = {}
    linears = {
        "self_attn.in_proj_": (d_model, 3 * d_model),
        "self_attn.out_proj.": (d_model, d_model),
        "linear1.": (d_model, d_hidden),
        "linear2.": (d_hidden, d_model),
    }
    for name, widths in linears.items():
        weights[f"{name}weight"], weights[f"{name}bias"] = draw_linear(rng, *widths)
    for name in ("norm1.", "norm2."):
        weights[f"{name}weight"], weights[f"{name}bias"] = draw_gain_and_bias(rng, d_model)
    return weights


def draw_stack_weights(
    rng: np.random.Generator, layers: int, d_model: int, d_hidden: int, final_norm: bool
) -> dict[str, np.ndarray]:
    """Draw the parameters of a stack: `layers.0.…`, `layers.1.…`, and `norm.…` if there is one."""
    weights = {
        f"layers.{layer}.{name}": array
        for layer in range(layers)
        for name, array in draw_layer_weights(rng, d_model, d_hidden).items()
    }
    if final_norm:
        weights["norm.weight"], weights["norm.bias"] = draw_gain_and_bias(rng, d_model)
    return weights
