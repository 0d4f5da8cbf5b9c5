"""Chapter 08: what temperature, top-k and top-p make of a distribution over tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 24

# Invented; the notebook shows logits of a trained model.
_TOKENS = ["be", "have", "see", "say", "die", "go", "sleep", "live", "the", "banish", "of", "quite"]
_LOGITS = [4.2, 2.9, 2.7, 2.6, 2.1, 2.0, 1.2, 0.9, 0.7, 0.1, -0.4, -1.3]


class SamplingExplorer(Explorer):
    """The explorer behind `sampling_explorer`; its traits follow the sliders."""

    files = "sampling_explorer"
    title = "Sampling: temperature, top-k and top-p"

    tokens = t.List(t.Unicode()).tag(sync=True)
    logits = t.List(t.Float()).tag(sync=True)
    temperature = t.Float(1.0).tag(sync=True)
    k = t.Int(1).tag(sync=True)
    p = t.Float(1.0).tag(sync=True)

    def probabilities(self) -> np.ndarray:
        """What is drawn from, (tokens,): first the temperature, then top-k, then top-p."""
        scores = np.array(self.logits) / self.temperature
        order = np.argsort(-scores, kind="stable")[: self.k]
        powers = np.exp(scores[order] - scores[order[0]])
        powers /= powers.sum()
        before = np.cumsum(powers) - powers
        kept = before < self.p if self.p < 1 else np.full(len(order), True)
        result = np.zeros(len(scores))
        result[order[kept]] = powers[kept] / powers[kept].sum()
        return result

    def text(self) -> str:
        """One line for each token that may be drawn, then the entropy."""
        probabilities = self.probabilities()
        kept = [i for i in np.argsort(-probabilities, kind="stable") if probabilities[i] > 0]
        nats = -sum(probabilities[i] * math.log(probabilities[i]) for i in kept) + 0.0
        lines = [
            f"temperature {self.temperature:.2f}, top-k {self.k}, top-p {self.p:.2f}: "
            f"{len(kept)} of {len(self.tokens)} tokens may be drawn:"
        ]
        lines += [f"  {self.tokens[i]!r}: {probabilities[i]:.3f}" for i in kept]
        lines.append(f"  entropy {nats:.2f} nats: as unsure as among {math.exp(nats):.1f} tokens")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, one line for each token, and the status."""
        return 190 + 24 * len(self.tokens)


def sampling_explorer(
    logits: object = None,
    tokens: Sequence[str] | None = None,
    *,
    temperature: float = 1.0,
    k: int | None = None,
    p: float = 1.0,
) -> SamplingExplorer:
    """Shows which tokens may be drawn, and how likely each is.

    The temperature comes first, then top-k, then top-p on what is left.

    Args:
        logits: real numbers, shape (tokens,), 2 to 24 of them; default: a small example.
        tokens: one string for each logit.
        temperature: at the start, from 0.1 to 3; logits are divided by it.
        k: at the start, from 1 to the number of tokens; default: all.
        p: at the start, from 0.05 to 1.

    Returns:
        The widget; `temperature`, `k` and `p` follow the controls.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if counts do not fit or a number lies outside its range.
    """
    if logits is None:
        logits, tokens = _LOGITS, _TOKENS if tokens is None else tokens
    array = validate.array("logits", logits, "(tokens,)", 1)
    if len(array) < 2:
        raise ValueError("logits must hold at least 2 numbers; got 1. One token needs no draw.")
    validate.at_most("logits", len(array), LIMIT, "tokens")
    names = validate.token_list("tokens", tokens, len(array), "logits")
    k = len(array) if k is None else k
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(array):
        raise ValueError(
            f"k must be a whole number from 1 to {len(array)}, the number of tokens; got {k!r}. "
            f"Choose one."
        )
    return SamplingExplorer(
        tokens=names,
        logits=validate.lists(array),
        temperature=validate.number("temperature", temperature, 0.1, 3.0),
        k=k,
        p=validate.number("p", p, 0.05, 1.0),
    )
