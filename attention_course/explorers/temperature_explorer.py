"""Chapter 12: what a temperature shows of a teacher's opinions on each token."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 24  # tokens
SHOWN = 10  # classes of each token that are drawn; the others are added up

# Invented; the notebook shows logits of a trained teacher.
_TOKENS = ["elle", "aime", "son", "cheval"]
_CLASSES = ["she", "he", "likes", "loves", "her", "his", "their", "horse", "cow", "the"]
_LOGITS = [
    [9.1, 5.5, 0.3, 0.1, 4.8, 2.0, 1.9, 0.2, 0.1, 1.3],
    [0.4, 0.2, 8.0, 6.9, 0.3, 0.1, 0.2, 0.6, 0.4, 0.1],
    [1.6, 1.1, 0.2, 0.3, 6.2, 5.6, 4.0, 0.4, 0.2, 2.6],
    [0.2, 0.3, 0.9, 0.6, 0.1, 0.2, 0.1, 8.8, 5.1, 0.7],
]
_LABELS = [0, 2, 4, 7]


class TemperatureExplorer(Explorer):
    """The explorer behind `temperature_explorer`; `token` and `temperature` follow the reader."""

    files = "temperature_explorer"
    title = "Opinions of a teacher at a temperature"

    tokens = t.List(t.Unicode()).tag(sync=True)
    classes = t.List(t.List(t.Unicode())).tag(sync=True)  # of each token, the likeliest first
    logits = t.List(t.List(t.Float())).tag(sync=True)  # in the same order
    rest = t.List(t.List(t.Float())).tag(sync=True)  # logits of all other classes
    labels = t.List(t.Unicode(allow_none=True)).tag(sync=True)
    token = t.Int(0).tag(sync=True)
    temperature = t.Float(1.0).tag(sync=True)

    def probabilities(self) -> np.ndarray:
        """Of the chosen token's classes, the likeliest first, then the others: (classes,)."""
        scores = np.array(self.logits[self.token] + self.rest[self.token]) / self.temperature
        powers = np.exp(scores - scores.max())
        return powers / powers.sum()

    def text(self) -> str:
        """The likeliest classes of the chosen token, the sum of the others, and the entropy."""
        shares = self.probabilities()
        names = self.classes[self.token]
        label = self.labels[self.token]
        right = "" if label is None else f" (label: {label})"
        lines = [f"{self.tokens[self.token]!r}{right} at temperature {self.temperature:.2f}:"]
        lines += [f"  {name}: {share:.3f}" for name, share in zip(names, shares, strict=False)]
        if len(shares) > len(names):
            others = shares[len(names) :].sum()
            lines.append(f"  {len(shares) - len(names)} others together: {others:.3f}")
        nats = -float(sum(share * math.log(share) for share in shares if share > 0))
        lines.append(f"  entropy {nats:.2f} nats: as unsure as among {math.exp(nats):.1f} classes")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, a bar for each class, the status."""
        return 260 + 24 * (SHOWN + 1)


def temperature_explorer(
    logits: object = None,
    tokens: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    *,
    labels: Sequence[int] | None = None,
    token: int = 0,
    temperature: float = 1.0,
) -> TemperatureExplorer:
    """Shows a teacher's probabilities for one token, softened by a temperature.

    Args:
        logits: real numbers, shape (tokens, classes), at most 24 tokens; default: a small example.
        tokens: one string for each row.
        classes: one string for each column.
        labels: the right class of each token, negative where there is none.
        token: the one that is shown first, from 0.
        temperature: at the start, from 0.1 to 20.

    Returns:
        The widget; `token` and `temperature` follow the reader.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if counts do not fit or a number lies outside its range.
    """
    if logits is None:
        logits, labels = _LOGITS, _LABELS if labels is None else labels
        tokens, classes = tokens or _TOKENS, classes or _CLASSES
    array = validate.array("logits", logits, "(tokens, classes)", 2)
    count, width = array.shape
    validate.at_most("logits", count, LIMIT, "tokens")
    if width < 2:
        raise ValueError("logits must have at least 2 classes; got 1. One class leaves no choice.")
    names = validate.token_list("classes", classes, width, "columns")
    words = validate.token_list("tokens", tokens, count, "rows")
    validate.index("token", token, count, "tokens")
    order = np.argsort(-array, axis=1, kind="stable")
    ordered = np.take_along_axis(array, order, axis=1)
    return TemperatureExplorer(
        tokens=words,
        classes=[[names[i] for i in row[:SHOWN]] for row in order],
        logits=validate.lists(ordered[:, :SHOWN]),
        rest=validate.lists(ordered[:, SHOWN:]),
        labels=_label_names(labels, names, count),
        token=token,
        temperature=validate.number("temperature", temperature, 0.1, 20.0),
    )


def _label_names(labels, names: list[str], count: int) -> list[str | None]:
    if labels is None:
        return [None] * count
    numbers = [int(label) for label in labels]
    if len(numbers) != count:
        raise ValueError(
            f"labels must hold a class for each of the {count} tokens; got {len(numbers)}. "
            f"Use -100 for a token without a label."
        )
    if max(numbers) >= len(names):
        raise ValueError(
            f"labels must lie below {len(names)}, the number of classes; got {max(numbers)}. "
            f"Counting starts at 0."
        )
    return [names[number] if number >= 0 else None for number in numbers]
