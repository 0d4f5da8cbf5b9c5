"""The three views of bertviz 1.4.1, in any notebook and with no network.

bertviz fetches require.js, jQuery and d3 from the internet and runs in the notebook page itself,
which current JupyterLab does not let it do. Here its own HTML and JavaScript run in a sandboxed
frame together with the parts of d3 that it calls. What is changed in them (`_adapt`): the tag that
fetches require.js goes, the second copy of the data in a comment goes, and the model view fits its
width to the page and its rows to few heads. `bertviz_host.js` adds keyboard access.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attention_course.explorers import validate
from attention_course.explorers.frame import code_for_script, sandboxed_frame

_HERE = Path(__file__).parent
_LESS_THAN = "\ue000"  # stands for "<" in tokens while bertviz writes its JavaScript
_STYLE = """
:focus { outline: none; }
:is(select, text, rect):focus-visible { outline: 2px solid #8a2be2; }
g:has(> rect:focus-visible) > .attn_background { stroke: #8a2be2; stroke-opacity: 1; }
g:has(> rect:focus-visible) > path { fill: #8a2be2; }
"""


class BertvizView:
    """A view that shows itself as the last value of a cell; `print` gives it in words."""

    def __init__(self, inner: str, *, title: str, height: float, text: str):
        self.title, self.height, self._text = title, int(height), text
        self._inner = inner

    def text(self) -> str:
        """What the view shows, in words."""
        return f"{self.title}\n{self._text}"

    def to_html(self) -> str:
        """A frame that works with no kernel and no network, and a text fold."""
        d3 = (_HERE / "vendor" / "d3_subset.min.js").read_text(encoding="utf-8")
        host = (_HERE / "bertviz_host.js").read_text(encoding="utf-8")
        scripts = f"<script>{code_for_script(d3)}\n{code_for_script(host)}</script>\n"
        return sandboxed_frame(
            scripts + self._inner,
            title=self.title,
            height=self.height,
            text=self.text(),
            style=_STYLE,
        )

    def __repr__(self):
        return self.text()

    def _repr_html_(self):
        return self.to_html()


def head_view(
    weights: object,
    tokens: Sequence[str],
    *,
    key_tokens: Sequence[str] | None = None,
    layer: int = 0,
) -> BertvizView:
    """bertviz's head view: one layer at a time, lines from each query to the keys it reads.

    Args:
        weights: after the softmax, shape (heads, queries, keys) or (1, heads, queries, keys) for
            one layer; for several, a list of these. NumPy arrays or tensors.
        tokens: one string for each query, and for each key if there are no `key_tokens`.
        key_tokens: one string for each key, for cross-attention.
        layer: shown first, from 0.

    Returns:
        The view; several in one notebook do not disturb each other. Its output grows with
        layers x heads x queries x keys: about 8 bytes for each weight above some 60 kB.

    Raises:
        TypeError: if weights or tokens are of the wrong kind.
        ValueError: if shapes and token counts do not fit, or weights lie outside 0 to 1.
    """
    layers, rows, columns = _checked(weights, tokens, key_tokens)
    validate.index("layer", layer, len(layers), "layers")
    from bertviz import head_view as original

    page = original(**_arguments(layers, rows, columns, key_tokens), layer=layer)
    return BertvizView(
        _adapt(page.data),
        title="Attention by head",
        height=22.5 * max(len(rows), len(columns)) + 95,
        text=_strongest(layers, rows, columns),
    )


def model_view(
    weights: object, tokens: Sequence[str], *, key_tokens: Sequence[str] | None = None
) -> BertvizView:
    """bertviz's model view: a small picture of every head of every layer; a click enlarges one.

    Arguments, result and errors are those of `head_view`, without `layer`.
    """
    layers, rows, columns = _checked(weights, tokens, key_tokens)
    from bertviz import model_view as original

    page = original(**_arguments(layers, rows, columns, key_tokens), display_mode="light")
    longest, heads = max(len(rows), len(columns)), layers.shape[1]
    thumbnails = len(layers) * (longest * min(14, 84 / heads) + 10) + 38
    detail = longest * 18 + 55
    return BertvizView(
        _adapt(page.data),
        title="Attention of all layers and heads",
        height=max(thumbnails, detail) + 60,
        text=_strongest(layers, rows, columns),
    )


def encoder_decoder_view(
    *,
    encoder: object,
    decoder: object,
    cross: object,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    layer: int = 0,
) -> BertvizView:
    """bertviz's head view of a whole encoder-decoder; its menu chooses one of three attentions.

    Args:
        encoder: weights of the encoder's self-attention, in the forms that `head_view` takes:
            (heads, source, source) for each layer.
        decoder: the same of the decoder's self-attention, (heads, target, target) for each layer.
        cross: the same of cross-attention, (heads, target, source) for each layer.
        source_tokens: one string for each source token.
        target_tokens: one string for each token that the decoder reads.
        layer: shown first, from 0.

    Returns:
        The view. Cross-attention is shown first.

    Raises:
        TypeError: if weights or tokens are of the wrong kind.
        ValueError: if shapes and token counts do not fit, or weights lie outside 0 to 1.
    """
    given = {
        "encoder": (encoder, source_tokens, source_tokens),
        "decoder": (decoder, target_tokens, target_tokens),
        "cross": (cross, target_tokens, source_tokens),
    }
    checked = {
        name: _checked(weights, rows, columns, name)
        for name, (weights, rows, columns) in given.items()
    }
    counts = {name: len(layers) for name, (layers, _, _) in checked.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"encoder, decoder and cross must have as many layers as each other; got {counts}. "
            f"Show them in views of their own: head_view(...)."
        )
    validate.index("layer", layer, counts["cross"], "layers")
    from bertviz import head_view as original

    page = original(
        **{f"{name}_attention": _rounded(layers) for name, (layers, _, _) in checked.items()},
        encoder_tokens=_disguise(checked["encoder"][1]),
        decoder_tokens=_disguise(checked["decoder"][1]),
        prettify_tokens=False,
        html_action="return",
        layer=layer,
    )
    # bertviz lists encoder, decoder, cross; what is special about this model comes first here.
    html = _replace(page.data, '"default_filter": "0"', '"default_filter": "2"')
    html = _replace(html, '<option value="2">', '<option value="2" selected>')
    layers, rows, columns = checked["cross"]
    return BertvizView(
        _adapt(html),
        title="Attention of encoder and decoder, by head",
        height=22.5 * max(len(rows), len(columns)) + 95,
        text="Cross-attention.\n" + _strongest(layers, rows, columns),
    )


def neuron_view(
    queries: object,
    keys: object,
    tokens: Sequence[str],
    *,
    causal: bool = False,
    layer: int = 0,
    head: int = 0,
) -> BertvizView:
    """bertviz's neuron view: how each query and key entry makes up a score.

    The weights are softmax(q · k / sqrt(d_k)), under a causal mask if asked for.

    Args:
        queries: shape (heads, tokens, d_k) or (1, heads, tokens, d_k) for one layer; for several,
            a list of these. NumPy arrays or tensors.
        keys: the same shape.
        tokens: one string for each token.
        causal: whether a query sees only itself and what stands before it.
        layer: shown first, from 0.
        head: shown first, from 0.

    Returns:
        The view: hover over a token, then click the plus sign, or use Tab and Enter.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes and token counts do not fit.
    """
    q = validate.layers("queries", queries, "(heads, tokens, d_k)")
    k = validate.layers("keys", keys, "(heads, tokens, d_k)")
    if q.shape != k.shape:
        raise ValueError(
            f"keys must have the shape of queries, (layers, heads, tokens, d_k) = {q.shape}; "
            f"got {k.shape}. This view shows self-attention only."
        )
    names = validate.token_list("tokens", tokens, q.shape[2], "tokens")
    validate.index("layer", layer, q.shape[0], "layers")
    validate.index("head", head, q.shape[1], "heads")
    weights = _softmax_of_products(q, k, causal)
    from bertviz.neuron_view import show

    recorded = _Recorded(weights, q, k, _disguise(names))
    # Model type "gpt2" adds no special tokens; it also says "causal", which is set right below.
    page = show(
        recorded,
        "gpt2",
        recorded,
        "-",
        display_mode="light",
        html_action="return",
        layer=layer,
        head=head,
    )
    html = _replace(
        page.data, '"bidirectional": false', f'"bidirectional": {str(not causal).lower()}'
    )
    return BertvizView(
        _adapt(html) + "<script>fit(980)</script>",
        title="Queries and keys, entry by entry",
        height=26 * len(names) + 170,
        text=_strongest(weights, names, names),
    )


class _Recorded:
    """Plays model and tokenizer of the neuron view: it gives back what was recorded."""

    def __init__(self, weights, queries, keys, tokens):
        import torch

        self._tokens = tokens
        self._layers = [
            {
                name: torch.from_numpy(np.round(values[None], 4))
                for name, values in (("attn", w), ("queries", q), ("keys", k))
            }
            for w, q, k in zip(weights, queries, keys, strict=True)
        ]

    def eval(self):
        return self

    def __call__(self, _token_ids):
        return (self._layers,)

    def tokenize(self, _sentence):
        return self._tokens

    def convert_tokens_to_ids(self, tokens):
        return list(range(len(tokens)))


def _softmax_of_products(q: np.ndarray, k: np.ndarray, causal: bool) -> np.ndarray:
    """Attention weights, (layers, heads, tokens, tokens)."""
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[2], dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _checked(
    weights, tokens, key_tokens, name: str = "weights"
) -> tuple[np.ndarray, list[str], list[str]]:
    """Weights as (layers, heads, queries, keys), and the names of queries and keys."""
    layers = validate.layers(name, weights, "(heads, queries, keys)")
    queries, keys = layers.shape[2:]
    low, high = layers.min(), layers.max()
    if low < -1e-6 or high > 1 + 1e-3:
        raise ValueError(
            f"{name} must lie from 0 to 1; got {low:.3g} to {high:.3g}. "
            f"Pass what comes after the softmax, without dropout: model.eval()."
        )
    rows = validate.token_list("tokens", tokens, queries, "queries")
    if key_tokens is None and queries != keys:
        raise ValueError(
            f"weights have {queries} queries but {keys} keys; got no key_tokens. "
            f"Pass key_tokens with a name for each key."
        )
    columns = rows if key_tokens is None else key_tokens
    return layers, rows, validate.token_list("key_tokens", columns, keys, "keys")


def _arguments(layers, rows, columns, key_tokens) -> dict:
    """What bertviz's head and model view are called with."""
    attention = _rounded(layers)
    shared = {"html_action": "return", "prettify_tokens": False}
    if key_tokens is None:
        return shared | {"attention": attention, "tokens": _disguise(rows)}
    return shared | {
        "cross_attention": attention,
        "decoder_tokens": _disguise(rows),
        "encoder_tokens": _disguise(columns),
    }


def _rounded(layers: np.ndarray) -> list:
    """One tensor (1, heads, queries, keys) for each layer, with four decimals."""
    import torch

    return [torch.from_numpy(np.round(layer[None], 4)) for layer in layers]


def _disguise(tokens: list[str]) -> list[str]:
    return [token.replace("<", _LESS_THAN) for token in tokens]


def _replace(page: str, old: str, new: str) -> str:
    if old not in page:
        raise RuntimeError(f"bertviz is not the version this module is written for: no {old!r}")
    return page.replace(old, new)


def _adapt(page: str) -> str:
    """bertviz's page without its network tag and duplicate data, with the tokens' "<" back."""
    page = re.sub(r'<script src="https://cdnjs[^"]*"></script>', "", page)
    page = re.sub(
        r"const params = (.*); // HACK: \1 is a template[^\n]*", r"const params = \1;", page
    )
    if "DIV_WIDTH" in page:
        page = _replace(
            page, "DIV_WIDTH = 970", "DIV_WIDTH = Math.max(480, Math.min(970, innerWidth - 24))"
        )
        page = _replace(
            page, "7 * (12 / config.totalHeads)", "Math.min(14, 7 * (12 / config.totalHeads))"
        )
    return page.replace("\\ue000", "\\u003c")


def _strongest(layers: np.ndarray, rows: list[str], columns: list[str]) -> str:
    """The strongest key of each query, mean over the heads, layer by layer."""
    lines = []
    for i, mean in enumerate(layers.mean(axis=1)):
        lines.append(f"Layer {i}, mean of {layers.shape[1]} heads, strongest key of each query:")
        lines += [
            f"  {row} -> {columns[int(weights.argmax())]} ({weights.max():.2f})"
            for row, weights in zip(rows, mean, strict=True)
        ]
    return "\n".join(lines)
