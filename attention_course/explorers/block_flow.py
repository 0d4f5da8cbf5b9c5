"""Chapter 05: what each part of a block does to the size and likeness of tokens, layer by layer."""

from __future__ import annotations

import itertools

import numpy as np
import traitlets as t

from attention_course.explorers.base import Explorer

DEEPEST = 24
NORMS = ("none", "pre", "post")
TOKENS, WIDTH, HEADS = 12, 32, 4
LARGEST, SMALLEST = 1e9, 1e-9  # what a size is cut to


class BlockFlow(Explorer):
    """The explorer behind `block_flow`; its traits follow the controls.

    `sizes` and `likeness` map a setting, such as "residual mlp pre", to one number for the input
    and one for each layer.
    """

    files = "block_flow"
    title = "Block flow: size and likeness of tokens through a stack of blocks"

    sizes = t.Dict().tag(sync=True)
    likeness = t.Dict().tag(sync=True)
    residual = t.Bool(False).tag(sync=True)
    mlp = t.Bool(False).tag(sync=True)
    norm = t.Unicode("none").tag(sync=True)
    depth = t.Int(12).tag(sync=True)

    @property
    def setting(self) -> str:
        """The present setting, as a key of `sizes` and `likeness`."""
        return _key(self.residual, self.mlp, self.norm)

    def text(self) -> str:
        """Size and likeness of the input and of every layer."""
        sizes, likeness = self.sizes[self.setting], self.likeness[self.setting]
        lines = [
            f"Attention, {'with' if self.residual else 'no'} residual links, "
            f"{'with' if self.mlp else 'no'} MLP, norm: {self.norm}; {self.depth} layers."
        ]
        lines += [
            f"  {'input' if layer == 0 else f'layer {layer}'}: size {sizes[layer]:.3g}, "
            f"tokens alike {likeness[layer]:.2f}"
            for layer in range(self.depth + 1)
        ]
        return "\n".join(lines)

    def frame_height(self) -> int:
        """The same for all inputs: the panels have a fixed size."""
        return 520


def block_flow(
    *,
    residual: bool = False,
    mlp: bool = False,
    norm: str = "none",
    depth: int = 12,
    seed: int = 0,
) -> BlockFlow:
    """Shows how large token vectors are and how alike, through up to 24 untrained layers.

    Size is the root mean square of all numbers; likeness is the mean cosine between different
    tokens. All settings use the same 12 tokens and the same random weights.

    Args:
        residual: whether residual links are on at the start.
        mlp: whether the MLP is on at the start.
        norm: "none", "pre" (before each sublayer) or "post" (after the sum), at the start.
        depth: layers shown at the start, from 1 to 24.
        seed: of tokens and weights.

    Returns:
        The widget; `residual`, `mlp`, `norm` and `depth` follow the controls.

    Raises:
        ValueError: if `norm` is unknown or `depth` lies outside.
    """
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}; got {norm!r}. Choose one.")
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= DEEPEST:
        raise ValueError(
            f"depth must be a whole number from 1 to {DEEPEST}; got {depth!r}. Choose one."
        )
    sizes, likeness = {}, {}
    for setting in itertools.product((False, True), (False, True), NORMS):
        states = _states(*setting, np.random.default_rng(seed))
        key = _key(*setting)
        sizes[key] = [_short(np.sqrt(np.mean(state**2))) for state in states]
        likeness[key] = [round(_mean_cosine(state), 3) for state in states]
    return BlockFlow(
        sizes=sizes,
        likeness=likeness,
        residual=bool(residual),
        mlp=bool(mlp),
        norm=norm,
        depth=depth,
    )


def _key(residual: bool, mlp: bool, norm: str) -> str:
    return " ".join(["residual"] * residual + ["mlp"] * mlp + [norm])


def _short(size: float) -> float:
    return float(f"{min(max(size, SMALLEST), LARGEST):.3g}")


def _mean_cosine(tokens: np.ndarray) -> float:
    """Mean cosine between different rows of (tokens, width)."""
    unit = tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), 1e-300)
    products = unit @ unit.T
    return float((products.sum() - np.trace(products)) / (len(unit) * (len(unit) - 1)))


def _normalised(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def _attend(x: np.ndarray, w_qkv: np.ndarray, w_out: np.ndarray) -> np.ndarray:
    """Multi-head self-attention: (tokens, width) to the same."""
    queries, keys, values = (x @ w_qkv).reshape(len(x), 3, HEADS, -1).transpose(1, 2, 0, 3)
    scores = queries @ keys.swapaxes(1, 2) / np.sqrt(WIDTH / HEADS)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return (weights @ values).transpose(1, 0, 2).reshape(x.shape) @ w_out


def _states(residual: bool, mlp: bool, norm: str, rng: np.random.Generator) -> list[np.ndarray]:
    """The input and what each of the deepest stack's layers gives, each (tokens, width).

    Weights are drawn for all parts in every setting, so that settings share them. A stack whose
    numbers leave the range stops growing there.
    """

    def draw(rows: int, columns: int) -> np.ndarray:
        return rng.normal(size=(rows, columns)) / np.sqrt(rows)

    def around(x: np.ndarray, sublayer) -> np.ndarray:
        added = sublayer(_normalised(x) if norm == "pre" else x)
        total = x + added if residual else added
        total = _normalised(total) if norm == "post" else total
        return np.clip(total, -LARGEST, LARGEST)

    states = [rng.normal(size=(TOKENS, WIDTH))]
    for _ in range(DEEPEST):
        w_qkv, w_out = draw(WIDTH, 3 * WIDTH), draw(WIDTH, WIDTH)
        w_in, w_back = draw(WIDTH, 4 * WIDTH), draw(4 * WIDTH, WIDTH)
        x = around(states[-1], lambda tokens, q=w_qkv, o=w_out: _attend(tokens, q, o))
        if mlp:
            x = around(x, lambda tokens, i=w_in, o=w_back: np.maximum(tokens @ i, 0.0) @ o)
        states.append(x)
    return states
