"""Chapter 08: byte-pair encoding, one merge after the other."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import traitlets as t

from attention_course.explorers.base import Explorer

LONGEST = 120  # characters
MOST = 30  # merges

_TEXT = "low lower lowest, new newer newest, slow slower slowest"


class BpeSteps(Explorer):
    """The explorer behind `bpe_steps`; `source` and `step` follow the controls."""

    files = "bpe_steps"
    title = "Byte-pair encoding, merge by merge"

    source = t.Unicode().tag(sync=True)
    step = t.Int(0).tag(sync=True)
    most = t.Int(MOST).tag(sync=True)

    def history(self) -> list[list[bytes]]:
        """The text's tokens before any merge, and after each; at most `most` merges."""
        spelled = [bytes([byte]) for byte in range(256)]
        tokens = list(self.source.encode("utf-8"))
        states = [tokens]
        while len(states) <= self.most:
            counts = Counter(pairwise(tokens))
            pair = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
            if counts[pair] < 2:
                break
            spelled.append(spelled[pair[0]] + spelled[pair[1]])
            tokens = _merged(tokens, pair, len(spelled) - 1)
            states.append(tokens)
        return [[spelled[token] for token in state] for state in states]

    def text(self) -> str:
        """The tokens after the present number of merges."""
        states = self.history()
        step = min(self.step, len(states) - 1)
        shown = " | ".join(token.decode("utf-8", errors="replace") for token in states[step])
        return (
            f"{len(self.source)} characters, {len(states[0])} bytes; after {step} of "
            f"{len(states) - 1} merges {len(states[step])} tokens:\n  {shown}"
        )

    def frame_height(self) -> int:
        """Room for the text, its tokens and the table of pairs."""
        return 430


def _merged(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    result: list[int] = []
    for token in tokens:
        if result and (result[-1], token) == pair:
            result[-1] = new
        else:
            result.append(token)
    return result


def bpe_steps(source: str = _TEXT, *, step: int = 0) -> BpeSteps:
    """Shows byte-pair encoding on a text that the reader types, merge by merge.

    Ties go to the pair with the smaller numbers; merging stops when no pair occurs twice.

    Args:
        source: the text at the start, at most 120 characters.
        step: how many merges are done at the start.

    Returns:
        The widget; `source` and `step` follow the controls.

    Raises:
        TypeError: if `source` is no string.
        ValueError: if it is too long, or `step` is no whole number from 0 to 30.
    """
    if not isinstance(source, str):
        raise TypeError(
            f"source must be a string; got {type(source).__name__}. Decode or join it first."
        )
    if len(source) > LONGEST:
        raise ValueError(
            f"source has {len(source)} characters; this figure shows at most {LONGEST}. "
            f"Pass a slice of it."
        )
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= MOST:
        raise ValueError(f"step must be a whole number from 0 to {MOST}; got {step!r}. Choose one.")
    return BpeSteps(source=source, step=step)
