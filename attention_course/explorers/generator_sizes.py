"""Chapter 11: recorded scores against the width of the generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import traitlets as t

from attention_course.data.electra_records import read_runs
from attention_course.explorers.base import Explorer

MEASURES = {
    "acceptability": "acceptability, % right",
    "tagging": "tagging, % right",
    "points": "points at the wrong word, % of sentences",
    "generator_loss": "generator's loss, nats",
}


class GeneratorSizes(Explorer):
    """The explorer behind `generator_sizes`; `measure` follows the control."""

    files = "generator_sizes"
    title = "How large should the generator be?"

    runs = t.List(t.Dict()).tag(sync=True)
    measures = t.Dict().tag(sync=True)
    measure = t.Unicode("acceptability").tag(sync=True)

    def means(self) -> dict[float, float]:
        """Mean of the present measure over seeds, for each width."""
        shares = sorted({run["share"] for run in self.runs})
        grouped = {
            share: [run[self.measure] for run in self.runs if run["share"] == share]
            for share in shares
        }
        return {share: sum(values) / len(values) for share, values in grouped.items()}

    def text(self) -> str:
        """Means of the present measure, width by width."""
        lines = [f"{MEASURES[self.measure]}, mean over seeds, by width of the generator:"]
        lines += [f"  {share:g} of the width: {mean:.2f}" for share, mean in self.means().items()]
        return "\n".join([*lines, "In the paper 0.25 to 0.5 is best, on GLUE."])

    def frame_height(self) -> int:
        """Buttons, the drawing, the status."""
        return 420


def _recorded() -> list[Mapping[str, Any]]:
    """ELECTRA's runs at the largest budget that all widths have."""
    runs = [run for run in read_runs() if run["objective"] == "ELECTRA"]
    stops = [
        {r["stop"] for r in runs if r["generator_share"] == run["generator_share"]} for run in runs
    ]
    common = max(set.intersection(*stops))
    return [
        {
            "share": run["generator_share"],
            "seed": run["seed"],
            "generator_loss": run["generator_loss"],
            **{name: 100 * run[name] for name in ("acceptability", "tagging", "points")},
        }
        for run in runs
        if run["stop"] == common
    ]


def generator_sizes(
    runs: Sequence[Mapping[str, Any]] | None = None, *, measure: str = "acceptability"
) -> GeneratorSizes:
    """Shows what generators of several widths led to, a dot for each seed.

    Args:
        runs: dicts with "share" (of the discriminator's width), "seed", and a number for each
            measure: "acceptability", "tagging", "points", "generator_loss"; default: recorded ones.
        measure: which of them is drawn at the start.

    Returns:
        The widget; `measure` follows the control.

    Raises:
        TypeError: if a run lacks a number.
        ValueError: if there are no runs, or the measure is unknown.
    """
    if measure not in MEASURES:
        raise ValueError(
            f"measure must be one of {', '.join(MEASURES)}; got {measure!r}. Choose one."
        )
    made = [dict(run) for run in (_recorded() if runs is None else runs)]
    if not made:
        raise ValueError("runs is empty; give at least one run.")
    needed = {"share", "seed", *MEASURES}
    for number, run in enumerate(made):
        missing = sorted(name for name in needed if not isinstance(run.get(name), int | float))
        if missing:
            raise TypeError(f"runs[{number}] must have numbers for {', '.join(missing)}. Add them.")
    return GeneratorSizes(runs=made, measures=MEASURES, measure=measure)
