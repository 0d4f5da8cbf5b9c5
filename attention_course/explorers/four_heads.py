"""Chapter 10: one sentence under four heads: what goes in, what is read, where the loss is."""

from __future__ import annotations

import traitlets as t

from attention_course.explorers.base import Explorer

_SENTENCE = ["ada", "love", "##lace", "lived", "in", "london"]
_ASIDE = "−100"
_TAGS = ["B-PER", "I-PER", _ASIDE, "O", "O", "B-LOC"]

# Each head: its input, and for every token the label that its loss compares with ("" = none).
HEADS = {
    "sentence → class": {
        "tokens": ["[CLS]", *_SENTENCE, "[SEP]"],
        "labels": ["biography", *[""] * 7],
        "says": "One vector is read, that of [CLS] (or the mean of all): one label, one loss.",
    },
    "pair → class": {
        "tokens": ["[CLS]", *_SENTENCE, "[SEP]", "she", "lived", "in", "england", "[SEP]"],
        "labels": ["follows", *[""] * 12],
        "says": "Both sentences go in together, and every word sees both. [CLS] has the loss.",
    },
    "question → span": {
        "tokens": ["[CLS]", "where", "did", "she", "live", "?", "[SEP]", *_SENTENCE, "[SEP]"],
        "labels": [*[""] * 12, "start, end", ""],
        "says": "Every token gets two scores. Two losses, each a choice among places; here both "
        "point to one token. [CLS] stands for “no answer”.",
    },
    "word → tag": {
        "tokens": ["[CLS]", *_SENTENCE, "[SEP]"],
        "labels": [_ASIDE, *_TAGS, _ASIDE],
        "says": "Every token gets a score for each tag; the first piece of each word has a loss. "
        "“##lace” continues a word: −100, no loss.",
    },
}


def _read(head: str, place: int, segment: int, token: str) -> bool:
    """Whether the head looks at a token's vector."""
    passage = segment == 1 and token != "[SEP]"
    everywhere = {"question → span": passage, "word → tag": True}
    return place == 0 or everywhere.get(head, False)


def _segments(tokens: list[str]) -> list[int]:
    """0 up to the first [SEP], 1 after it."""
    first = tokens.index("[SEP]")
    return [int(place > first) for place in range(len(tokens))]


class FourHeads(Explorer):
    """The explorer behind `four_heads`; `head` follows the buttons."""

    files = "four_heads"
    title = "Four heads: what goes in, what is read, where the loss is"

    heads = t.Dict().tag(sync=True)
    head = t.Unicode(next(iter(HEADS))).tag(sync=True)

    def text(self) -> str:
        """Each head with its input, the tokens that it reads, and its labels."""
        lines = []
        for name, head in self.heads.items():
            columns = zip(head["tokens"], head["labels"], strict=True)
            labels = ", ".join(f"{token}: {label}" for token, label in columns if label)
            lines += [f"{name}: {' '.join(head['tokens'])}", f"  labels: {labels}"]
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Buttons, five lines, the status."""
        return 330


def four_heads(head: str | None = None) -> FourHeads:
    """Shows one sentence under four heads; buttons choose the head.

    Args:
        head: shown first: "sentence → class", "pair → class", "question → span" or "word → tag".

    Returns:
        The widget; `heads.head` is the head that the reader chose.

    Raises:
        ValueError: for another head.
    """
    names = list(HEADS)
    if head is not None and head not in names:
        raise ValueError(f"head must be one of {names}; got {head!r}. Choose one of these names.")
    heads = {}
    for name, given in HEADS.items():
        segments = _segments(given["tokens"])
        columns = zip(segments, given["tokens"], strict=True)
        reads = [_read(name, place, *column) for place, column in enumerate(columns)]
        heads[name] = {**given, "segments": segments, "reads": reads}
    return FourHeads(heads=heads, head=head or names[0])
