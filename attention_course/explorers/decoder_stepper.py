"""Chapter 07: step through a recorded translation, greedy or with beams."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 30
MODES = ("greedy", "beams")


class DecoderStepper(Explorer):
    """The explorer behind `decoder_stepper`; `step` and `mode` follow the reader."""

    files = "decoder_stepper"
    title = "Decoder stepper: a translation word by word, and where each step looks"

    source_tokens = t.List(t.Unicode()).tag(sync=True)
    greedy = t.List(t.Dict()).tag(sync=True)
    beams = t.List(t.List(t.Dict())).tag(sync=True)
    mode = t.Unicode("greedy").tag(sync=True)
    step = t.Int(1).tag(sync=True)

    def text(self) -> str:
        """The source, every greedy step, and what the beams end with."""
        lines = [f"Source: {' '.join(self.source_tokens)}", "Greedy steps:"]
        for number, step in enumerate(self.greedy, 1):
            weights = step["weights"]
            best = max(range(len(weights)), key=weights.__getitem__)
            word, share = step["candidates"][0]
            lines.append(
                f"  {number}: writes {word} ({share:.2f}), looks mostly at "
                f"{self.source_tokens[best]} ({weights[best]:.2f})"
            )
        finished = [beam for step in self.beams for beam in step if beam["finished"]]
        for beam in sorted(finished, key=lambda beam: -beam["score"]):
            lines.append(f"Beam, score {beam['score']:.3f}: {beam['sentence']}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Room for two lines of source words and for the candidates."""
        return 400


@functools.cache
def _recorded() -> dict:
    path = Path(__file__).parent / "recorded_run.json"
    return json.loads(path.read_text(encoding="utf-8"))


def decoder_stepper(
    run: Mapping | None = None, *, mode: str = "greedy", step: int = 1
) -> DecoderStepper:
    """Shows a recorded translation step by step: the source under attention, the next word's
    candidates, or the beams.

    Args:
        run: what `attention_course.translation.record_greedy` gives: "source", words; "greedy",
            steps with "word", "candidates" (pairs of word and probability) and "weights" (one for
            each source word). "beams" is optional: for each step a list of beams with "words",
            "sum", "score", "finished" and "weights". Default: a run that comes with the course.
        mode: "greedy" or "beams", shown first.
        step: shown first, from 0 (nothing written) on.

    Returns:
        The widget; `stepper.step` and `stepper.mode` follow the reader.

    Raises:
        TypeError: if `run` is no dict with these parts.
        ValueError: if counts do not fit, or `mode` or `step` is none of the run's.
    """
    run = _recorded() if run is None else run
    try:
        source, greedy = run["source"], run["greedy"]
        beams = run.get("beams", [])
        steps = [
            {
                "word": step["word"],
                "candidates": [[str(word), float(share)] for word, share in step["candidates"]],
                "weights": _weights(step["weights"], len(source), f"greedy step {number}"),
            }
            for number, step in enumerate(greedy, 1)
        ]
        beam_steps = [
            [
                {
                    "sentence": " ".join(beam["words"]),
                    "sum": float(beam["sum"]),
                    "score": float(beam["score"]),
                    "finished": bool(beam["finished"]),
                    "weights": _weights(beam["weights"], len(source), f"beam step {number}"),
                }
                for beam in some
            ]
            for number, some in enumerate(beams, 1)
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise TypeError(
            f"run must be a dict with 'source' and 'greedy' as record_greedy(...) gives it; "
            f"{type(error).__name__}: {error}. Pass its result as it is."
        ) from None
    tokens = validate.token_list("run['source']", source, len(source), "words")
    validate.at_most("run['source']", len(tokens), LIMIT, "words")
    shown = {"greedy": steps, "beams": beam_steps}
    if mode not in MODES or not shown[mode]:
        known = [name for name in MODES if shown[name]]
        raise ValueError(f"mode must be one of {known} for this run; got {mode!r}. Choose another.")
    validate.index("step", step, len(shown[mode]) + 1, "states")
    return DecoderStepper(
        source_tokens=tokens, greedy=steps, beams=beam_steps, mode=mode, step=step
    )


def _weights(weights: Sequence[float], count: int, where: str) -> list[float]:
    """`weights` as plain numbers, one for each source word."""
    result = [float(weight) for weight in weights]
    if len(result) != count:
        raise ValueError(
            f"{where} must have a weight for each of the {count} source words; got {len(result)}. "
            f"Pass the row of this step only, without padding."
        )
    return result
