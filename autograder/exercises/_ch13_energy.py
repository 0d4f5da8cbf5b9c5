"""Exercise of chapter 13 on the energy and carbon of a training run, with an interval."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def training_footprint_cases(rng):
    """Random intervals; exact numbers; the limits of what is possible; what must be refused."""

    def interval(low, high):
        middle = rng.uniform(low, high)
        return [float(middle), float(middle * rng.uniform(1.2, 1.5))]

    def inputs(**changes):
        return {
            "flops": float(rng.uniform(2, 9)) * 1e19,
            "peak": float(rng.uniform(2, 9)) * 1e13,
            "utilisation": interval(0.2, 0.5),
            "watts": interval(200, 400),
            "pue": interval(1.1, 1.3),
            "grid": interval(100, 400),
            **changes,
        }

    yield Case("interval", inputs(), "a run on some hardware")
    yield Case("interval", inputs(), "another run")
    exact = {name: [value[0]] * 2 for name, value in inputs().items() if isinstance(value, list)}
    yield Case("limits", inputs(**exact), "no uncertainty")
    best = {"utilisation": [0.4, 1.0], "pue": [1.0, 1.4], "grid": [0.0, 300.0]}
    yield Case("limits", inputs(**best), "perfect hardware, hall and grid at one end")
    for changes, about in (
        ({"utilisation": [0.3, 1.2]}, "more than the peak"),
        ({"utilisation": [0.0, 0.5]}, "a utilisation of 0"),
        ({"pue": [0.9, 1.2]}, "a hall that gives energy back"),
        ({"utilisation": [0.5, 0.3]}, "an interval that is turned round"),
        ({"watts": [400.0, 300.0]}, "another one that is turned round"),
    ):
        yield Case("refused", inputs(**changes), about)


def training_footprint_reference(flops, peak, utilisation, watts, pue, grid):
    """All corners of the box, then the smallest and the largest."""
    for low, high in (utilisation, watts, pue, grid):
        if low > high:
            raise ValueError("an interval is turned round")
    if utilisation[0] <= 0 or utilisation[1] > 1 or pue[0] < 1:
        raise ValueError("impossible")
    u, w, p, g = np.meshgrid(utilisation, watts, pue, grid, indexing="ij")
    joules = flops / (peak * u) * w * p
    hours = joules / 3.6e6
    kilograms = hours * g / 1000
    return [hours.min(), hours.max()], [kilograms.min(), kilograms.max()]


def _refuse(utilisation, watts, pue, grid):
    turned = any(low > high for low, high in (utilisation, watts, pue, grid))
    if turned or utilisation[0] <= 0 or utilisation[1] > 1 or pue[0] < 1:
        raise ValueError("no such run")


def _footprint(
    flops,
    peak,
    utilisation,
    watts,
    pue,
    grid,
    joules=3.6e6,
    gram=1e-3,
    refuse=_refuse,
    seconds=lambda flops, peak, u: flops / (peak * u),
    hall=lambda energy, p: energy * p,
):
    refuse(utilisation, watts, pue, grid)
    u, w, p, g = (np.array(pair, dtype=float) for pair in (utilisation, watts, pue, grid))
    energy = hall(seconds(flops, peak, u[::-1]) * w, p) / joules
    return energy, energy * g * gram


def low_with_low(flops, peak, utilisation, watts, pue, grid):
    """Takes the low utilisation for the low energy."""
    return _footprint(
        flops,
        peak,
        utilisation,
        watts,
        pue,
        grid,
        seconds=lambda flops, peak, u: flops / (peak * u[::-1]),
    )


def middle_of_utilisation(flops, peak, utilisation, watts, pue, grid):
    """The mean utilisation at both ends."""
    return _footprint(
        flops,
        peak,
        utilisation,
        watts,
        pue,
        grid,
        seconds=lambda flops, peak, u: flops / (peak * u.mean()),
    )


def utilisation_multiplied(flops, peak, utilisation, watts, pue, grid):
    """Less use, less energy."""
    return _footprint(
        flops,
        peak,
        utilisation,
        watts,
        pue,
        grid,
        seconds=lambda flops, peak, u: flops / peak * u[::-1],
    )


def always_at_the_peak(flops, peak, utilisation, watts, pue, grid):
    """Ignores the utilisation."""
    return _footprint(
        flops, peak, utilisation, watts, pue, grid, seconds=lambda flops, peak, u: flops / peak
    )


def watt_hours(flops, peak, utilisation, watts, pue, grid):
    """Wh for kWh."""
    return _footprint(flops, peak, utilisation, watts, pue, grid, joules=3600.0)


def kilojoules(flops, peak, utilisation, watts, pue, grid):
    """kJ for kWh."""
    return _footprint(flops, peak, utilisation, watts, pue, grid, joules=1000.0)


def grams(flops, peak, utilisation, watts, pue, grid):
    """g for kg."""
    return _footprint(flops, peak, utilisation, watts, pue, grid, gram=1.0)


def hall_forgotten(flops, peak, utilisation, watts, pue, grid):
    """No PUE."""
    return _footprint(flops, peak, utilisation, watts, pue, grid, hall=lambda energy, p: energy)


def hall_divides(flops, peak, utilisation, watts, pue, grid):
    """Divides by the PUE."""
    return _footprint(
        flops, peak, utilisation, watts, pue, grid, hall=lambda energy, p: energy / p[::-1]
    )


def hall_adds_only_the_rest(flops, peak, utilisation, watts, pue, grid):
    """PUE − 1: cooling without the computers."""
    return _footprint(
        flops, peak, utilisation, watts, pue, grid, hall=lambda energy, p: energy * (p - 1)
    )


def nothing_refused(flops, peak, utilisation, watts, pue, grid):
    """Computes whatever comes; zero becomes infinity."""
    with np.errstate(divide="ignore"):
        return _footprint(flops, peak, utilisation, watts, pue, grid, refuse=lambda *_: None)


def footprint_by_ends(flops, peak, utilisation, watts, pue, grid):
    """Right: each end by itself, plain numbers."""
    _refuse(utilisation, watts, pue, grid)
    energy = []
    for end in (0, 1):
        hours = flops / (peak * utilisation[1 - end]) / 3600
        energy.append(hours * watts[end] / 1000 * pue[end])
    return energy, [energy[0] * grid[0] / 1000, energy[1] * grid[1] / 1000]


def footprint_by_sorting(flops, peak, utilisation, watts, pue, grid):
    """Right: both products, sorted."""
    if not 0 < utilisation[0] <= utilisation[1] <= 1 or not 1 <= pue[0] <= pue[1]:
        raise ValueError("utilisation or pue")
    if watts[0] > watts[1] or grid[0] > grid[1]:
        raise ValueError("low > high")
    inverse = np.sort(1 / np.array(utilisation))
    energy = inverse * np.array(watts) * np.array(pue) * (flops / peak / 3.6e6)
    return energy, energy * np.array(grid) / 1e3


def footprint_by_corners(flops, peak, utilisation, watts, pue, grid):
    """Right: the reference's way, in lists."""
    _refuse(utilisation, watts, pue, grid)
    runs = [
        (flops / peak / u * w * p / 3.6e6, g)
        for u in utilisation
        for w in watts
        for p in pue
        for g in grid
    ]
    energy = [kwh for kwh, _ in runs]
    carbon = [kwh * g / 1000 for kwh, g in runs]
    return np.array([min(energy), max(energy)]), np.array([min(carbon), max(carbon)])


TRAINING_FOOTPRINT = Exercise(
    id="training_footprint",
    title="Energy and carbon, as an interval",
    asks="From operations to kilowatt-hours and kilograms, with the least and the most.",
    parameters=("flops", "peak", "utilisation", "watts", "pue", "grid"),
    outputs=("energy", "carbon"),
    driver="function",
    groups={
        "interval": Group(1, "runs with uncertain numbers"),
        "limits": Group(1, "exact numbers, and the best that is possible"),
        "refused": Group(1, "what there cannot be"),
    },
    cases=training_footprint_cases,
    reference=training_footprint_reference,
    misconceptions=(
        Misconception(
            low_with_low,
            "The low utilisation was taken for the low energy.",
            "Does a device that is used badly need more or less time?",
        ),
        Misconception(
            middle_of_utilisation,
            "Both ends have the same utilisation.",
            "Which utilisation gives the least energy, which the most?",
        ),
        Misconception(
            utilisation_multiplied,
            "The utilisation multiplies the time; it divides it.",
            "How long does a run take at half the speed?",
        ),
        Misconception(
            always_at_the_peak,
            "The utilisation is not used: no run reaches the peak.",
            "How many operations in a second are really done?",
        ),
        Misconception(
            watt_hours,
            "The energy is in Wh; kWh are asked.",
            "How many joules are in one kilowatt-hour?",
        ),
        Misconception(
            kilojoules,
            "The energy is in kJ; kWh are asked.",
            "How many joules are in one kilowatt-hour?",
        ),
        Misconception(
            grams,
            "The carbon is in grams; kilograms are asked.",
            "In which unit does `grid` come?",
        ),
        Misconception(
            hall_forgotten,
            "The data centre's own needs (PUE) are missing.",
            "Which of the six arguments have you not used?",
        ),
        Misconception(
            hall_divides,
            "The energy is divided by the PUE.",
            "Does cooling make the bill larger or smaller?",
        ),
        Misconception(
            hall_adds_only_the_rest,
            "That is the energy for cooling alone.",
            "What does a PUE of 1 mean?",
        ),
        Misconception(
            nothing_refused,
            "Impossible numbers are not refused.",
            "Point 5 of the contract lists what to refuse.",
        ),
    ),
    accepted=(footprint_by_ends, footprint_by_sorting, footprint_by_corners),
    equivalent_mutants={
        f"`(utilisation, watts, pue, grid)` → `({other})`": "all are asked the same question"
        for other in (
            "watts, utilisation, pue, grid",
            "utilisation, pue, watts, grid",
            "utilisation, watts, grid, pue",
        )
    },
)
