"""Chapter 08: T5's span corruption."""

from __future__ import annotations

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def draw_spans(rng, length: int, spans: int, shortest: int = 1, gap: int = 1):
    """Draw (starts, lengths) of spans inside a text, at least `gap` tokens apart.

    Of two spans or more, at least two have different lengths, and one is longer than 1.
    """
    lengths = [int(n) for n in rng.integers(shortest, 4, size=spans)]
    lengths[int(rng.integers(spans))] = 3
    if spans > 1 and len(set(lengths)) == 1:
        lengths[0] = 2
    free = length - sum(lengths) - gap * (spans - 1)
    cuts = sorted(int(c) for c in rng.integers(0, free + 1, size=spans))
    starts = [cut + sum(lengths[:i]) + gap * i for i, cut in enumerate(cuts)]
    return starts, lengths


def draw_tokens(rng, length: int, low: int = 10, high: int = 90) -> list[int]:
    """Draw tokens, all different."""
    return [int(token) for token in low + rng.permutation(high - low)[:length]]


def span_corruption_cases(rng):
    """Several spans; spans at the ends and side by side; no span at all."""

    def case(group, length, starts, lengths, about):
        return Case(
            group,
            {
                "tokens": draw_tokens(rng, length),
                "starts": starts,
                "lengths": lengths,
                "first_sentinel": int(rng.integers(95, 120)),
            },
            about,
        )

    for spans in (2, 3):
        length = int(rng.integers(14, 19))
        starts, lengths = draw_spans(rng, length - 2, spans)
        yield case("spans", length, [s + 1 for s in starts], lengths, f"{spans} spans")
    yield case("edges", 11, [0, 4, 9], [2, 1, 2], "spans at both ends")
    yield case("edges", 12, [2, 4, 7], [2, 3, 1], "spans side by side")
    yield case("edges", 6, [], [], "no span")
    yield case("edges", 5, [0], [5], "everything is one span")


def span_corruption_reference(tokens, starts, lengths, first_sentinel):
    """Asks of every position which span it is in."""
    inside = {s + i: number for number, s in enumerate(starts) for i in range(lengths[number])}
    inputs, targets = [], []
    for position, token in enumerate(tokens):
        number = inside.get(position)
        if number is None:
            inputs.append(token)
            continue
        if starts[number] == position:
            inputs.append(first_sentinel - number)
            targets.append(first_sentinel - number)
        targets.append(token)
    return inputs, [*targets, first_sentinel - len(starts)]


def _corrupt(
    tokens,
    starts,
    lengths,
    first_sentinel,
    sentinel=lambda first, number: first - number,
    closing=True,
    keep_spans=False,
    name_targets=True,
):
    inputs, targets, done = [], [], 0
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        mark = sentinel(first_sentinel, number)
        inputs += [*tokens[done:start], mark]
        done = start if keep_spans else start + length
        targets += [mark] if name_targets else []
        targets += tokens[start : start + length]
    closing_mark = [sentinel(first_sentinel, len(starts))] if closing else []
    return inputs + tokens[done:], targets + closing_mark


def sentinels_count_up(tokens, starts, lengths, first_sentinel):
    """The second sentinel is one more than the first."""
    return _corrupt(tokens, starts, lengths, first_sentinel, sentinel=lambda f, n: f + n)


def one_sentinel_for_all(tokens, starts, lengths, first_sentinel):
    """Every span gets the first sentinel."""
    return _corrupt(tokens, starts, lengths, first_sentinel, sentinel=lambda f, n: f)


def no_closing_sentinel(tokens, starts, lengths, first_sentinel):
    """The targets end with the last span."""
    return _corrupt(tokens, starts, lengths, first_sentinel, closing=False)


def spans_stay_in_the_inputs(tokens, starts, lengths, first_sentinel):
    """Sentinels are put in front of the spans, which stay."""
    return _corrupt(tokens, starts, lengths, first_sentinel, keep_spans=True)


def targets_without_sentinels(tokens, starts, lengths, first_sentinel):
    """The targets are the missing tokens, without a word about where they belong."""
    return _corrupt(tokens, starts, lengths, first_sentinel, name_targets=False)


def a_sentinel_for_each_token(tokens, starts, lengths, first_sentinel):
    """Each token of a span becomes a sentinel, as with BERT's masks."""
    inputs, targets = _corrupt(tokens, starts, lengths, first_sentinel)
    inputs = list(tokens)
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        inputs[start : start + length] = [first_sentinel - number] * length
    return inputs, targets


def starts_after_earlier_spans_are_gone(tokens, starts, lengths, first_sentinel):
    """Counts the later starts in the text that is already shorter."""
    inputs, targets = list(tokens), []
    for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        targets += [first_sentinel - number, *inputs[start : start + length]]
        inputs[start : start + length] = [first_sentinel - number]
    return inputs, [*targets, first_sentinel - len(starts)]


def whole_text_as_target(tokens, starts, lengths, first_sentinel):
    """The target is the uncorrupted text, as BART has it."""
    inputs, _ = _corrupt(tokens, starts, lengths, first_sentinel)
    return inputs, list(tokens)


def neighbouring_spans_joined(tokens, starts, lengths, first_sentinel):
    """Spans side by side get one sentinel together."""
    new_starts, new_lengths = [], []
    for start, length in zip(starts, lengths, strict=True):
        if new_starts and new_starts[-1] + new_lengths[-1] == start:
            new_lengths[-1] += length
        else:
            new_starts.append(start)
            new_lengths.append(length)
    return _corrupt(tokens, new_starts, new_lengths, first_sentinel)


def corrupted_with_slices(tokens, starts, lengths, first_sentinel):
    """Right: walks from span to span."""
    inputs, targets, position = [], [], 0
    for number in range(len(starts)):
        start, end = starts[number], starts[number] + lengths[number]
        inputs.extend(tokens[position:start])
        for side in (inputs, targets):
            side.append(first_sentinel - number)
        targets.extend(tokens[start:end])
        position = end
    inputs.extend(tokens[position:])
    targets.append(first_sentinel - len(starts))
    return inputs, targets


def corrupted_from_the_end(tokens, starts, lengths, first_sentinel):
    """Right: replaces the last span first, so that earlier starts stay true."""
    inputs, targets = list(tokens), [first_sentinel - len(starts)]
    for number in reversed(range(len(starts))):
        span = slice(starts[number], starts[number] + lengths[number])
        targets = [first_sentinel - number, *tokens[span], *targets]
        inputs[span] = [first_sentinel - number]
    return tuple(inputs), tuple(targets)


def corrupted_by_recursion(tokens, starts, lengths, first_sentinel):
    """Right: the first span, then the rest of the text."""
    if not starts:
        return list(tokens), [first_sentinel]
    start, end = starts[0], starts[0] + lengths[0]
    inputs, targets = corrupted_by_recursion(
        tokens[end:], [s - end for s in starts[1:]], lengths[1:], first_sentinel - 1
    )
    return (
        [*tokens[:start], first_sentinel, *inputs],
        [first_sentinel, *tokens[start:end], *targets],
    )


SPAN_CORRUPTION = Exercise(
    id="span_corruption",
    title="T5's span corruption",
    asks="Cut given spans out, leave sentinels, and write the spans behind them as the target.",
    parameters=("tokens", "starts", "lengths", "first_sentinel"),
    outputs=("inputs", "targets"),
    driver="sequence_function",
    groups={
        "spans": Group(2, "several spans"),
        "edges": Group(1, "spans at the ends, side by side, everything, nothing"),
    },
    cases=span_corruption_cases,
    reference=span_corruption_reference,
    misconceptions=(
        Misconception(
            sentinels_count_up,
            "The sentinels' numbers go up; T5's go down from the end of the vocabulary.",
            "What is the second sentinel of the example?",
        ),
        Misconception(
            one_sentinel_for_all,
            "All spans get the same sentinel, so nobody knows which answer fills which hole.",
            "Where does the number of the span enter?",
        ),
        Misconception(
            no_closing_sentinel,
            "The targets lack the sentinel that ends them.",
            "What stands behind the last span in the example?",
        ),
        Misconception(
            spans_stay_in_the_inputs,
            "The sentinels are put in, but the spans are still there to be copied.",
            "Where does the input go on behind a sentinel?",
        ),
        Misconception(
            targets_without_sentinels,
            "The targets hold the missing tokens only.",
            "How would the model say which hole it is filling?",
        ),
        Misconception(
            a_sentinel_for_each_token,
            "Every token of a span is replaced; T5 puts one sentinel for the whole span.",
            "How long should the input of the example be?",
        ),
        Misconception(
            starts_after_earlier_spans_are_gone,
            "The starts are those of the original text, but are used in the shortened one.",
            "After the first cut, where is the second span?",
        ),
        Misconception(
            whole_text_as_target,
            "The target is the whole text: that is BART's. T5's is short.",
            "Read the contract's point on `targets`.",
        ),
        Misconception(
            neighbouring_spans_joined,
            "Two spans side by side have become one.",
            "Each given span keeps its own sentinel.",
        ),
    ),
    accepted=(corrupted_with_slices, corrupted_from_the_end, corrupted_by_recursion),
    equivalent_mutants={
        "`inputs, targets, done = ([], [], 0)` → "
        "`targets, inputs, done = ([], [], 0)`": "both begin as empty lists",
    },
)
