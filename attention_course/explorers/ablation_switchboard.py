"""Chapter 11: three switches between BERT and ELECTRA."""

from __future__ import annotations

import traitlets as t

from attention_course.explorers.base import Explorer

# name: (reads samples, says words, asked about every word, GLUE average of Clark et al. 2020)
OBJECTIVES = {
    "BERT": (False, True, False, 82.2),
    "Replace MLM": (True, True, False, 82.4),
    "All-Tokens MLM": (True, True, True, 84.3),
    "ELECTRA 15%": (True, False, False, 82.4),
    "ELECTRA": (True, False, True, 85.0),
}

_ORIGINAL = ["les", "chats", "noirs", "dorment", "dans", "le", "jardin", "."]
_DRAWN = {1: "chiens", 3: "dorment"}  # the second is the original word


class AblationSwitchboard(Explorer):
    """The explorer behind `ablation_switchboard`; its traits follow the controls."""

    files = "ablation_switchboard"
    title = "From BERT to ELECTRA with three switches"

    original = t.List(t.Unicode()).tag(sync=True)
    drawn = t.Dict().tag(sync=True)
    objectives = t.List(t.Dict()).tag(sync=True)
    samples = t.Bool(True).tag(sync=True)
    says_words = t.Bool(False).tag(sync=True)
    everywhere = t.Bool(True).tag(sync=True)

    def name(self) -> str | None:
        """The objective that the switches make; None if the paper has none."""
        switches = (self.samples, self.says_words, self.everywhere)
        return next((name for name, row in OBJECTIVES.items() if row[:3] == switches), None)

    def table(self) -> list[tuple[str, str, str]]:
        """For each word: what the model reads, and what it should say ("" if it is not asked)."""
        rows = []
        for place, word in enumerate(self.original):
            sample = self.drawn.get(str(place))
            read = word if sample is None else sample if self.samples else "[MASK]"
            say = word if self.says_words else "original" if read == word else "replaced"
            asked = self.everywhere or sample is not None
            rows.append((word, read, say if asked else ""))
        return rows

    def text(self) -> str:
        """The objective and its table."""
        lines = [self.name() or "No objective of the paper."]
        for word, read, say in self.table():
            lines.append(
                f"  {word}: reads {read}, " + (f"should say {say}" if say else "not asked")
            )
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, four lines of the table, the status."""
        return 300


def ablation_switchboard(objective: str = "ELECTRA") -> AblationSwitchboard:
    """Shows what each of five objectives reads, where it is asked, and what it should say.

    Args:
        objective: where the switches stand at the start.

    Returns:
        The widget; `samples`, `says_words` and `everywhere` follow the controls.

    Raises:
        ValueError: for an unknown objective.
    """
    if objective not in OBJECTIVES:
        raise ValueError(
            f"objective must be one of {', '.join(OBJECTIVES)}; got {objective!r}. Choose one."
        )
    samples, says_words, everywhere, _ = OBJECTIVES[objective]
    return AblationSwitchboard(
        original=_ORIGINAL,
        drawn={str(place): word for place, word in _DRAWN.items()},
        objectives=[
            {"name": name, "samples": a, "says_words": b, "everywhere": c, "glue": glue}
            for name, (a, b, c, glue) in OBJECTIVES.items()
        ],
        samples=samples,
        says_words=says_words,
        everywhere=everywhere,
    )
