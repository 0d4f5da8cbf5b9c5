"""Chapter 06: measure time on a device that works on its own, and say what limits it."""

from __future__ import annotations

import statistics

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- median_seconds ------------------------------------------------------------------------------


def median_seconds_cases(rng):
    """A device that lags behind; slow first runs; outliers; an even number of runs."""

    def case(group, about, repeats, warm_up=2):
        timed = rng.uniform(0.02, 0.06, size=repeats)
        timed[0] = 0.01  # with work left over from before it becomes the longest
        timed[1 + rng.integers(repeats - 1)] *= 10
        durations = [*rng.uniform(1.0, 2.0, size=warm_up), *timed]
        launch = float(rng.uniform(0.001, 0.003))
        inputs = {"durations": [float(d) for d in durations], "launch": launch}
        return Case(group, {**inputs, "warm_up": warm_up, "repeats": repeats}, about)

    yield case("odd", "five runs after two for warming up", 5)
    yield case("odd", "seven runs after three for warming up", 7, warm_up=3)
    yield case("odd", "five runs with no warm-up", 5, warm_up=0)
    yield case("even", "six runs after one for warming up", 6, warm_up=1)
    yield case("even", "eight runs after two for warming up", 8)


def timed(run, synchronise, clock, warm_up, repeats):
    """All times of the runs that count."""
    for _ in range(warm_up):
        run()
    synchronise()
    seconds = []
    for _ in range(repeats):
        start = clock()
        run()
        synchronise()
        seconds.append(clock() - start)
    return seconds


def median_seconds_reference(run, synchronise, clock, warm_up, repeats):
    """The clock is read between runs only, and NumPy finds the median of the differences."""
    for _ in range(warm_up):
        run()
    synchronise()
    readings = [clock()]
    for _ in range(repeats):
        run()
        synchronise()
        readings.append(clock())
    return float(np.median(np.diff(readings)))


def never_waits(run, synchronise, clock, warm_up, repeats):
    """Does without `synchronise`: only the handing over is timed."""
    return statistics.median(timed(run, lambda: None, clock, warm_up, repeats))


def warm_up_leaks_in(run, synchronise, clock, warm_up, repeats):
    """Starts the clock while the device is still at the runs before."""
    for _ in range(warm_up):
        run()
    seconds = []
    for _ in range(repeats):
        start = clock()
        run()
        synchronise()
        seconds.append(clock() - start)
    return statistics.median(seconds)


def mean_of_the_runs(run, synchronise, clock, warm_up, repeats):
    """Lets one slow run pull the result up."""
    return statistics.mean(timed(run, synchronise, clock, warm_up, repeats))


def shortest_run(run, synchronise, clock, warm_up, repeats):
    """Gives the minimum."""
    return min(timed(run, synchronise, clock, warm_up, repeats))


def no_warm_up(run, synchronise, clock, warm_up, repeats):
    """Counts the first runs."""
    return statistics.median(timed(run, synchronise, clock, 0, repeats))


def warm_up_is_timed_too(run, synchronise, clock, warm_up, repeats):
    """Makes all runs and takes the median of all."""
    return statistics.median(timed(run, synchronise, clock, 0, warm_up + repeats))


def total_over_repeats(run, synchronise, clock, warm_up, repeats):
    """Waits once at the end and divides; no median can be had this way."""
    for _ in range(warm_up):
        run()
    synchronise()
    start = clock()
    for _ in range(repeats):
        run()
    synchronise()
    return (clock() - start) / repeats


def lower_of_the_middle_two(run, synchronise, clock, warm_up, repeats):
    """Takes the lower of the two middle runs, as `torch.median` does."""
    return statistics.median_low(timed(run, synchronise, clock, warm_up, repeats))


def upper_of_the_middle_two(run, synchronise, clock, warm_up, repeats):
    """Takes the upper of the two middle runs, as `sorted(...)[n // 2]` does."""
    return statistics.median_high(timed(run, synchronise, clock, warm_up, repeats))


def middle_unsorted(run, synchronise, clock, warm_up, repeats):
    """Takes the run in the middle of the series."""
    seconds = timed(run, synchronise, clock, warm_up, repeats)
    half = repeats // 2
    return seconds[half] if repeats % 2 else (seconds[half - 1] + seconds[half]) / 2


def median_by_sorting(run, synchronise, clock, warm_up, repeats):
    """Right: sorts, and averages the two places around the middle."""
    seconds = sorted(timed(run, synchronise, clock, warm_up, repeats))
    return (seconds[(repeats - 1) // 2] + seconds[repeats // 2]) / 2


def median_by_statistics(run, synchronise, clock, warm_up, repeats):
    """Right: waits after each run, those for warming up too."""
    seconds = []
    for number in range(warm_up + repeats):
        synchronise()
        start = clock()
        run()
        synchronise()
        if number >= warm_up:
            seconds.append(clock() - start)
    return statistics.median(seconds)


def median_by_quantile(run, synchronise, clock, warm_up, repeats):
    """Right: NumPy's quantile; stops and starts in two lists."""
    starts, stops = [], []
    [run() for _ in range(warm_up)]
    while len(stops) < repeats:
        synchronise()
        starts.append(clock())
        run()
        synchronise()
        stops.append(clock())
    return np.quantile(np.array(stops) - np.array(starts), 0.5)


MEDIAN_SECONDS = Exercise(
    id="median_seconds",
    title="A stopwatch for a device",
    asks="Time a function on a device that works on its own: warm up, wait, take the median.",
    parameters=("durations", "launch", "warm_up", "repeats"),
    groups={
        "odd": Group(2, "an odd number of runs"),
        "even": Group(1, "an even number of runs"),
    },
    cases=median_seconds_cases,
    reference=median_seconds_reference,
    outputs=("seconds", "number of runs"),
    driver="timing",
    misconceptions=(
        Misconception(
            never_waits,
            "The clock is stopped when the work is handed over, not when it is done.",
            "Which function waits for the device? Where is it missing?",
        ),
        Misconception(
            warm_up_leaks_in,
            "The first time holds the rest of the work that was handed over before.",
            "Is the device idle when your clock starts?",
        ),
        Misconception(
            mean_of_the_runs,
            "This is the mean: one slow run moves it a lot.",
            "Which number has as many runs below it as above?",
        ),
        Misconception(
            shortest_run,
            "This is the shortest run, not the median.",
            "Which number has as many runs below it as above?",
        ),
        Misconception(
            no_warm_up,
            "The first runs, slow ones, are counted; there are no runs for warming up.",
            "How often should `run` be called in all?",
        ),
        Misconception(
            warm_up_is_timed_too,
            "The runs for warming up are among those whose median is taken.",
            "How many times should be in your list?",
        ),
        Misconception(
            total_over_repeats,
            "The whole series is timed as one, so what single runs took is lost.",
            "What has to happen between two runs so that each has a time of its own?",
        ),
        Misconception(
            lower_of_the_middle_two,
            "Of an even number of runs this is the lower of the two in the middle.",
            "What does the contract say about an even number? `torch.median` does otherwise.",
        ),
        Misconception(
            upper_of_the_middle_two,
            "Of an even number of runs, the upper of the two in the middle is taken.",
            "The contract says what to do with an even number.",
        ),
        Misconception(
            middle_unsorted,
            "This is the run in the middle of the series, not the one of middle length.",
            "In which order must the times stand before you take the middle?",
        ),
    ),
    accepted=(median_by_sorting, median_by_statistics, median_by_quantile),
)

# --- roofline ------------------------------------------------------------------------------------


def roofline_cases(rng):
    """Products that are limited by arithmetic, by memory, and a thin one."""

    def case(group, about, sizes, balance):
        m, k, n = sizes
        size = int(rng.choice([2, 4, 8]))
        intensity = 2 * m * k * n / (size * (m * k + k * n + m * n))
        bandwidth = float(rng.integers(50, 400)) * 1e9
        inputs = {"m": m, "k": k, "n": n, "bytes_per_number": size, "bandwidth": bandwidth}
        return Case(group, {**inputs, "peak": balance * intensity * bandwidth}, about)

    s = draw_sizes(rng, "m", "k", "n", among=(96, 130, 170, 220, 260))
    yield case("arithmetic", "three sizes of some hundred, slow arithmetic", vars(s).values(), 0.4)
    yield case("arithmetic", "the same, other numbers", (s.n, s.m, s.k), 0.7)
    yield case("memory", "the same sizes, fast arithmetic", vars(s).values(), 3.0)
    yield case("memory", "a matrix with a vector", (s.m, s.k, 1), 20.0)


def roofline_reference(m, k, n, bytes_per_number, peak, bandwidth):
    """Williams, Waterman and Patterson: the lower of two roofs."""
    flops = 2.0 * m * k * n
    traffic = bytes_per_number * float(m * k + k * n + m * n)
    intensity = flops / traffic
    return intensity, flops / min(peak, intensity * bandwidth)


def _roofline(m, k, n, size, peak, bandwidth, flops=None, numbers=None, choose=max):
    flops = 2 * m * k * n if flops is None else flops
    traffic = size * (m * k + k * n + m * n if numbers is None else numbers)
    return flops / traffic, choose(flops / peak, traffic / bandwidth)


def additions_not_counted(m, k, n, bytes_per_number, peak, bandwidth):
    """Counts a multiplication and its addition as one."""
    return _roofline(m, k, n, bytes_per_number, peak, bandwidth, flops=m * k * n)


def result_not_written(m, k, n, bytes_per_number, peak, bandwidth):
    """Forgets that the result goes to memory."""
    return _roofline(m, k, n, bytes_per_number, peak, bandwidth, numbers=m * k + k * n)


def numbers_not_bytes(m, k, n, bytes_per_number, peak, bandwidth):
    """Takes every number for one byte."""
    return _roofline(m, k, n, 1, peak, bandwidth)


def times_added(m, k, n, bytes_per_number, peak, bandwidth):
    """Adds the two times, as if one waited for the other."""
    return _roofline(m, k, n, bytes_per_number, peak, bandwidth, choose=lambda a, b: a + b)


def shorter_time(m, k, n, bytes_per_number, peak, bandwidth):
    """Takes the shorter of the two times."""
    return _roofline(m, k, n, bytes_per_number, peak, bandwidth, choose=min)


def arithmetic_only(m, k, n, bytes_per_number, peak, bandwidth):
    """Ignores the memory."""
    return _roofline(m, k, n, bytes_per_number, peak, bandwidth, choose=lambda a, b: a)


def memory_only(m, k, n, bytes_per_number, peak, bandwidth):
    """Ignores the arithmetic."""
    return _roofline(m, k, n, bytes_per_number, peak, bandwidth, choose=lambda a, b: b)


def intensity_upside_down(m, k, n, bytes_per_number, peak, bandwidth):
    """Gives bytes for each operation."""
    intensity, seconds = _roofline(m, k, n, bytes_per_number, peak, bandwidth)
    return 1 / intensity, seconds


def longer_time(m, k, n, bytes_per_number, peak, bandwidth):
    """Right: the longer of two times."""
    return _roofline(m, k, n, bytes_per_number, peak, bandwidth)


def roof_by_condition(m, k, n, bytes_per_number, peak, bandwidth):
    """Right: asks which side of the ridge it is."""
    flops = 2 * n * m * k
    moved = (m * (k + n) + k * n) * bytes_per_number
    if flops / moved < peak / bandwidth:
        return flops / moved, moved / bandwidth
    return flops / moved, flops / peak


def roof_in_numpy(m, k, n, bytes_per_number, peak, bandwidth):
    """Right: in NumPy, numbers of each matrix by a product of sizes."""
    sides = np.array([[m, k], [k, n], [m, n]], dtype=float)
    moved = sides.prod(axis=1).sum() * bytes_per_number
    seconds = np.array([2.0 * m * n * k, moved]) / np.array([peak, bandwidth])
    return 2.0 * m * n * k / moved, seconds.max()


ROOFLINE = Exercise(
    id="roofline",
    title="What limits a product?",
    asks="Give a product's operations for each byte and the time that a roofline allows it.",
    parameters=("m", "k", "n", "bytes_per_number", "peak", "bandwidth"),
    groups={
        "arithmetic": Group(1, "limited by arithmetic"),
        "memory": Group(1, "limited by memory"),
    },
    cases=roofline_cases,
    reference=roofline_reference,
    outputs=("intensity", "seconds"),
    misconceptions=(
        Misconception(
            additions_not_counted,
            "A multiplication and the addition after it are counted as one operation.",
            "How many multiplications and how many additions does one entry of the result need?",
        ),
        Misconception(
            result_not_written,
            "Only the two factors are counted as moved.",
            "What else has to travel between memory and processor?",
        ),
        Misconception(
            numbers_not_bytes,
            "Numbers are counted, not bytes.",
            "Where does `bytes_per_number` enter?",
        ),
        Misconception(
            times_added,
            "The two times are added; but arithmetic goes on while memory is read.",
            "Two people work side by side: when are both done?",
        ),
        Misconception(
            shorter_time,
            "This is the shorter of two times; the work is done when both are over.",
            "Two people work side by side: when are both done?",
        ),
        Misconception(
            arithmetic_only,
            "The memory's bandwidth does not enter the time.",
            "How long does it take to move the bytes?",
        ),
        Misconception(
            memory_only,
            "The peak of the arithmetic does not enter the time.",
            "How long does the arithmetic take at its peak?",
        ),
        Misconception(
            intensity_upside_down,
            "The first number is bytes for each operation, the fraction upside down.",
            "The intensity of a large product should be high, not low.",
        ),
    ),
    accepted=(longer_time, roof_by_condition, roof_in_numpy),
)
