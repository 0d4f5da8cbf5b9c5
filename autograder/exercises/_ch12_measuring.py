"""Chapter 12: measuring honestly, the size of a model and the time that several models take."""

from __future__ import annotations

import statistics

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

# --- model_size ----------------------------------------------------------------------------------


def model_size_cases(rng):
    """Parameters of several number formats; frozen and tied ones; buffers."""

    def arrays(kinds):
        return {
            name: (10 * rng.normal(size=rng.integers(2, 9, size=axes))).astype(kind)
            for name, (axes, kind) in kinds.items()
        }

    plain = {"embedding": (2, "float32"), "layer": (2, "float32"), "head": (1, "float64")}
    for group, kinds, buffers, tied, frozen, about in (
        ("values", plain, {}, [], [], "two number formats"),
        ("values", plain, {}, [], ["layer"], "a frozen layer"),
        ("shared", plain, {}, [("output", "embedding")], [], "tied embeddings"),
        (
            "shared",
            {**plain, "small": (2, "float16")},
            {"positions": (1, "int64"), "codes": (2, "int8")},
            [("output", "embedding"), ("again", "small")],
            ["head"],
            "tied parts, half precision, buffers",
        ),
    ):
        inputs = {"parameters": arrays(kinds), "buffers": arrays(buffers)}
        yield Case(group, {**inputs, "tied": tied, "frozen": frozen}, about)


def model_size_reference(model):
    """By data pointers of the state dict and of the parameters."""
    parameters = {p.data_ptr(): p for p in model.parameters()}.values()
    tensors = {t.data_ptr(): t for t in model.state_dict().values()}.values()
    return (
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(t.untyped_storage().nbytes() for t in tensors),
    )


def _bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def _sizes(model, parameters=None, data=None):
    parameters = list(model.parameters()) if parameters is None else parameters
    data = _bytes([*parameters, *model.buffers()]) if data is None else data
    count = sum(p.numel() for p in parameters)
    return count, sum(p.numel() for p in parameters if p.requires_grad), data


def tied_counted_twice(model):
    """By names."""
    parameters = [p for _, p in model.named_parameters(remove_duplicate=False)]
    return _sizes(model, parameters)


def tied_bytes_counted_twice(model):
    """Bytes by the state dict's names."""
    return _sizes(model, data=_bytes(model.state_dict().values()))


def always_four_bytes(model):
    """Takes every number for float32."""
    return _sizes(model, data=4 * sum(t.numel() for t in [*model.parameters(), *model.buffers()]))


def buffers_forgotten(model):
    """Parameters only."""
    return _sizes(model, data=_bytes(model.parameters()))


def buffers_are_parameters(model):
    """Counts buffers among the parameters."""
    buffers = sum(b.numel() for b in model.buffers())
    count, trainable, data = _sizes(model)
    return count + buffers, trainable, data


def frozen_left_out(model):
    """Counts what is trained, only."""
    _, trainable, data = _sizes(model)
    return trainable, trainable, data


def frozen_called_trainable(model):
    """Counts everything as trainable."""
    count, _, data = _sizes(model)
    return count, count, data


def tensors_counted(model):
    """Counts tensors, not numbers."""
    _, _, data = _sizes(model)
    parameters = list(model.parameters())
    return len(parameters), sum(p.requires_grad for p in parameters), data


def bits_for_bytes(model):
    """Eight times as much."""
    count, trainable, data = _sizes(model)
    return count, trainable, 8 * data


def by_modules_lists(model):
    """Right: PyTorch's lists hold each tensor once."""
    return _sizes(model)


def by_identity(model):
    """Right: a dict by identity."""
    once = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    size, count, trainable = 0, 0, 0
    for tensor in once.values():
        size += tensor.nbytes
        if isinstance(tensor, torch.nn.Parameter):
            count += tensor.numel()
            trainable += tensor.numel() * tensor.requires_grad
    return count, int(trainable), size


def by_shapes(model):
    """Right: NumPy, products of shapes and sizes of items."""

    def numbers(tensors):
        return [int(np.prod(t.shape)) for t in tensors]

    parameters, buffers = list(model.parameters()), list(model.buffers())
    counts = numbers(parameters)
    widths = [t.element_size() for t in parameters + buffers]
    size = int(np.dot(counts + numbers(buffers), widths))
    return sum(counts), sum(numbers([p for p in parameters if p.requires_grad])), size


MODEL_SIZE = Exercise(
    id="model_size",
    title="How large is a model?",
    asks="Count a model's parameters, those that are trained, and its bytes.",
    parameters=("parameters", "buffers", "tied", "frozen"),
    outputs=("parameters", "trainable", "bytes"),
    driver="sized",
    groups={
        "values": Group(1, "number formats and frozen parts"),
        "shared": Group(1, "tied parts and buffers"),
    },
    cases=model_size_cases,
    reference=model_size_reference,
    misconceptions=(
        Misconception(
            tied_counted_twice,
            "A shared parameter was counted once for each of its names.",
            "Which list holds every parameter once?",
        ),
        Misconception(
            tied_bytes_counted_twice,
            "The bytes of a shared parameter were counted once for each of its names.",
            "A state dict lists names; which list holds every tensor once?",
        ),
        Misconception(
            always_four_bytes,
            "Every number was taken for 4 bytes.",
            "How many bytes does one number of a tensor take?",
        ),
        Misconception(
            buffers_forgotten,
            "The bytes lack the buffers.",
            "Which tensors are saved with a model without being parameters?",
        ),
        Misconception(
            buffers_are_parameters,
            "Buffers were counted as parameters.",
            "Which of the three numbers includes buffers?",
        ),
        Misconception(
            frozen_left_out,
            "Frozen parameters are parameters, too.",
            "Which of the three numbers leaves them out?",
        ),
        Misconception(
            frozen_called_trainable,
            "Frozen parameters were counted as trainable.",
            "What says `requires_grad`?",
        ),
        Misconception(
            tensors_counted,
            "Tensors were counted; it should be the numbers in them.",
            "How many numbers does a 3 × 4 matrix hold?",
        ),
        Misconception(
            bits_for_bytes,
            "These are bits.",
            "How many bits has a byte?",
        ),
    ),
    accepted=(by_modules_lists, by_identity, by_shapes),
)

# --- compare_latency -----------------------------------------------------------------------------


def compare_latency_cases(rng):
    """Two and three models on a machine that grows slower; slow first runs; outliers."""

    def case(group, about, models, warm_up, repeats):
        durations = []
        for number in range(models):
            timed = (0.06 - 0.02 * number) * rng.uniform(0.8, 1.2, repeats)
            timed[rng.integers(repeats)] *= 10
            durations.append([*rng.uniform(1.0, 2.0, warm_up), *timed])
        inputs = {
            "durations": [[float(d) for d in series] for series in durations],
            "slowdown": round(float(rng.uniform(1.05, 1.1)), 3),
        }
        return Case(group, {**inputs, "warm_up": warm_up, "repeats": repeats}, about)

    yield case("odd", "two models, five rounds, two runs for warming up", 2, 2, 5)
    yield case("odd", "three models, seven rounds, one for warming up", 3, 1, 7)
    yield case("even", "two models, six rounds, three for warming up", 2, 3, 6)


def compare_latency_reference(runs, clock, warm_up, repeats):
    """A table of all times, NumPy's median of its columns."""
    for _ in range(warm_up):
        for run in runs:
            run()
    table = np.zeros((repeats, len(runs)))
    for place in np.ndindex(table.shape):
        before = clock()
        runs[place[1]]()
        table[place] = clock() - before
    return np.median(table, axis=0).tolist()


def _timed(run, clock):
    before = clock()
    run()
    return clock() - before


def _rounds(runs, clock, warm_up, repeats):
    for _ in range(warm_up):
        for run in runs:
            run()
    rounds = [[_timed(run, clock) for run in runs] for _ in range(repeats)]
    return list(zip(*rounds, strict=True))


def one_model_after_the_other(runs, clock, warm_up, repeats):
    """All runs of a model in a row: later models meet a slower machine."""
    for _ in range(warm_up):
        for run in runs:
            run()
    return [statistics.median(_timed(run, clock) for _ in range(repeats)) for run in runs]


def one_model_after_the_other_warmed(runs, clock, warm_up, repeats):
    """Warms a model up and times it, then the next one."""
    medians = []
    for run in runs:
        for _ in range(warm_up):
            run()
        medians.append(statistics.median(_timed(run, clock) for _ in range(repeats)))
    return medians


def no_warm_up(runs, clock, warm_up, repeats):
    """Counts the first runs."""
    return [statistics.median(times) for times in _rounds(runs, clock, 0, repeats)]


def warm_up_counted(runs, clock, warm_up, repeats):
    """Times the runs for warming up, too."""
    return [statistics.median(times) for times in _rounds(runs, clock, 0, warm_up + repeats)]


def first_model_warmed_only(runs, clock, warm_up, repeats):
    """Warms the first model up."""
    for _ in range(warm_up):
        runs[0]()
    return [statistics.median(times) for times in _rounds(runs, clock, 0, repeats)]


def mean_time(runs, clock, warm_up, repeats):
    """Means."""
    return [statistics.mean(times) for times in _rounds(runs, clock, warm_up, repeats)]


def fastest_time(runs, clock, warm_up, repeats):
    """Minima."""
    return [min(times) for times in _rounds(runs, clock, warm_up, repeats)]


def rounds_reversed(runs, clock, warm_up, repeats):
    """The last model first."""
    times = _rounds(runs[::-1], clock, warm_up, repeats)
    return [statistics.median(series) for series in times[::-1]]


def ratio_to_the_first(runs, clock, warm_up, repeats):
    """Divides by the first model's time."""
    medians = [statistics.median(times) for times in _rounds(runs, clock, warm_up, repeats)]
    return [median / medians[0] for median in medians]


def lower_middle(runs, clock, warm_up, repeats):
    """The lower of the two in the middle."""
    return [statistics.median_low(times) for times in _rounds(runs, clock, warm_up, repeats)]


def middle_of_the_series(runs, clock, warm_up, repeats):
    """Unsorted."""
    series = _rounds(runs, clock, warm_up, repeats)
    half = repeats // 2
    if repeats % 2:
        return [times[half] for times in series]
    return [(times[half - 1] + times[half]) / 2 for times in series]


def with_statistics(runs, clock, warm_up, repeats):
    """Right: Python's median."""
    return [statistics.median(times) for times in _rounds(runs, clock, warm_up, repeats)]


def sorted_columns(runs, clock, warm_up, repeats):
    """Right: one loop over all rounds; sorts, and averages around the middle."""
    times = [[] for _ in runs]
    for number in range(warm_up + repeats):
        for place, run in enumerate(runs):
            start = clock()
            run()
            stop = clock()
            if number >= warm_up:
                times[place].append(stop - start)
    return [
        (sorted(series)[(repeats - 1) // 2] + sorted(series)[repeats // 2]) / 2 for series in times
    ]


def by_quantile(runs, clock, warm_up, repeats):
    """Right: a tensor of times."""
    [run() for _ in range(warm_up) for run in runs]
    flat = [_timed(run, clock) for _ in range(repeats) for run in runs]
    table = torch.tensor(flat, dtype=torch.float64).reshape(repeats, len(runs))
    return table.quantile(0.5, dim=0)


COMPARE_LATENCY = Exercise(
    id="compare_latency",
    title="A fair race",
    asks="Time several models in turns: warm up, then rounds; give the median of each.",
    parameters=("durations", "slowdown", "warm_up", "repeats"),
    outputs=("seconds", "runs of each model"),
    driver="race",
    groups={
        "odd": Group(2, "an odd number of rounds"),
        "even": Group(1, "an even number of rounds"),
    },
    cases=compare_latency_cases,
    reference=compare_latency_reference,
    misconceptions=(
        Misconception(
            one_model_after_the_other,
            "All rounds of one model were run in a row: what the machine does meanwhile hits "
            "the models unequally.",
            "Which loop must be the outer one?",
        ),
        Misconception(
            one_model_after_the_other_warmed,
            "One model was warmed up and timed, then the next one: what the machine does meanwhile "
            "hits the models unequally.",
            "Which loop must be the outer one?",
        ),
        Misconception(
            no_warm_up,
            "The first runs, slow ones, are counted; there are no runs for warming up.",
            "How often should each model run in all?",
        ),
        Misconception(
            warm_up_counted,
            "The runs for warming up are among those whose median is taken.",
            "How many times should there be for each model?",
        ),
        Misconception(
            first_model_warmed_only,
            "Only the first model was warmed up.",
            "Every model has slow first runs.",
        ),
        Misconception(
            mean_time,
            "This is the mean: one slow run moves it a lot.",
            "Which number has as many runs below it as above?",
        ),
        Misconception(
            fastest_time,
            "This is the shortest time, not the median.",
            "Which number has as many runs below it as above?",
        ),
        Misconception(
            rounds_reversed,
            "In each round the models ran from the last to the first.",
            "The contract says in which order.",
        ),
        Misconception(
            ratio_to_the_first,
            "These are ratios; the contract asks for seconds.",
            "What is the unit of your result?",
        ),
        Misconception(
            lower_middle,
            "Of an even number of times this is the lower of the two in the middle.",
            "What does the contract say about an even number?",
        ),
        Misconception(
            middle_of_the_series,
            "This is the time in the middle of the series, not the one of middle length.",
            "In which order must the times stand before you take the middle?",
        ),
    ),
    accepted=(with_statistics, sorted_columns, by_quantile),
)
