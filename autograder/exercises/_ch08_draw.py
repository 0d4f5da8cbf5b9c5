"""Chapter 08: drawing a token."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def draw_token_cases(rng):
    """Rows with uniform numbers over the whole range; temperatures; hidden tokens; refusals."""

    def case(group, logits, uniforms, temperature, about):
        inputs = {"logits": logits, "uniforms": uniforms, "temperature": temperature}
        return Case(group, inputs, about)

    s = draw_sizes(rng, "batch", "length", among=(2, 3))
    vocabulary = int(rng.integers(6, 9))
    logits = rng.normal(size=(12, vocabulary))
    uniforms = (np.arange(12) + rng.uniform(0.2, 0.8, size=12)) / 12
    yield case("values", logits, rng.permutation(uniforms), 1.0, "a batch, temperature 1")
    logits = rng.normal(size=(s.batch, s.length, vocabulary))
    uniforms = rng.uniform(0.02, 0.98, size=(s.batch, s.length))
    yield case("values", logits, uniforms, 1.0, "two leading axes")
    for temperature in (0.5, 2.5):
        logits = 1.5 * rng.normal(size=(15, vocabulary))
        uniforms = (rng.permutation(15) + rng.uniform(0.2, 0.8, size=15)) / 15
        yield case("temperature", logits, uniforms, temperature, f"temperature {temperature}")
    rows = logits[:6].reshape(2, 3, vocabulary)
    yield case("edges", rows, uniforms[:6].reshape(2, 3), 0.0, "temperature 0")
    tied = np.round(logits[:3], 2)
    tied[:, [2, 4]] = 5.0
    yield case("edges", tied, uniforms[:3], 0.0, "temperature 0, two largest logits")
    hidden = logits[:4].copy()
    hidden[:, [0, 3, vocabulary - 1]] = -np.inf
    ends = np.array([0.0, 0.999999, 0.0, 0.999999])
    yield case("edges", hidden, ends, 1.0, "hidden tokens, uniform numbers of 0 and next to 1")
    yield case("edges", logits[:2], uniforms[:2], -1.0, "a negative temperature")


def draw_token_reference(logits, uniforms, temperature):
    """Adds up probabilities in Python until they exceed the number."""
    if temperature < 0:
        raise ValueError("temperature must not be negative")
    rows, drawn = logits.reshape(-1, logits.shape[-1]).tolist(), []
    for row, uniform in zip(rows, uniforms.flatten().tolist(), strict=True):
        if temperature == 0:
            drawn.append(row.index(max(row)))
            continue
        powers = [math.exp((x - max(row)) / temperature) for x in row]
        rest, token = uniform * math.fsum(powers), 0
        while rest >= powers[token]:
            rest -= powers[token]
            token += 1
        drawn.append(token)
    return torch.tensor(drawn).reshape(uniforms.shape)


def _draw(probabilities, uniforms, at_most=False):
    reached = probabilities.cumsum(dim=-1)
    below = reached < uniforms[..., None] if at_most else reached <= uniforms[..., None]
    return below.sum(dim=-1).clamp(max=probabilities.shape[-1] - 1)


def _check(temperature):
    if temperature < 0:
        raise ValueError("temperature must not be negative")


def _by_rule(logits, uniforms, temperature, warm):
    """Draw with `warm` in the place of the softmax of logits / temperature."""
    _check(temperature)
    if temperature == 0:
        return logits.argmax(dim=-1)
    return _draw(warm(logits, temperature), uniforms)


def _softmax(logits, temperature):
    return (logits / temperature).softmax(dim=-1)


def temperature_multiplied(logits, uniforms, temperature):
    """Multiplies by the temperature."""
    return _by_rule(logits, uniforms, temperature, lambda x, t: (x * t).softmax(dim=-1))


def temperature_on_probabilities(logits, uniforms, temperature):
    """Divides probabilities, and normalises the temperature away."""
    return _by_rule(logits, uniforms, temperature, lambda x, t: x.softmax(dim=-1))


def root_of_temperature(logits, uniforms, temperature):
    """Divides by √T."""
    return _by_rule(logits, uniforms, temperature, lambda x, t: (x / t**0.5).softmax(dim=-1))


def always_the_largest(logits, uniforms, temperature):
    """Greedy, whatever the uniform numbers."""
    _check(temperature)
    return logits.argmax(dim=-1)


def rank_for_token(logits, uniforms, temperature):
    """Draws from the sorted row and returns the place in it."""

    def warm(x, t):
        return _softmax(x, t).sort(dim=-1, descending=True).values

    return _by_rule(logits, uniforms, temperature, warm)


def one_token_too_late(logits, uniforms, temperature):
    """Takes the token behind the drawn one."""
    tokens = _by_rule(logits, uniforms, temperature, _softmax)
    late = (tokens + 1).clamp(max=logits.shape[-1] - 1)
    return tokens if temperature == 0 else late


def counted_from_the_end(logits, uniforms, temperature):
    """Adds up from the last token."""

    def warm(x, t):
        return _softmax(x, t).flip(-1)

    tokens = _by_rule(logits, uniforms, temperature, warm)
    return tokens if temperature == 0 else logits.shape[-1] - 1 - tokens


def one_number_for_all_rows(logits, uniforms, temperature):
    """Uses the first uniform number everywhere."""
    first = torch.zeros_like(uniforms) + uniforms.flatten()[0]
    return _by_rule(logits, first, temperature, _softmax)


def zero_probability_may_be_drawn(logits, uniforms, temperature):
    """Takes the first token whose sum is at least the number: with 0 a hidden one."""
    _check(temperature)
    if temperature == 0:
        return logits.argmax(dim=-1)
    return _draw(_softmax(logits, temperature), uniforms, at_most=True)


def division_by_zero(logits, uniforms, temperature):
    """Does nothing special about temperature 0."""
    _check(temperature)
    return _draw(_softmax(logits, temperature), uniforms)


def negative_temperature_accepted(logits, uniforms, temperature):
    """Draws the improbable."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    return _draw(_softmax(logits, temperature), uniforms)


def drawn_by_searching(logits, uniforms, temperature):
    """Right: searchsorted in the sums."""
    if temperature < 0:
        raise ValueError("T")
    if temperature == 0:
        return logits.argmax(dim=-1)
    reached = torch.softmax(logits / temperature, dim=-1).cumsum(dim=-1)
    return torch.searchsorted(reached, uniforms[..., None], right=True)[..., 0]


def drawn_by_powers(logits, uniforms, temperature):
    """Right: probabilities to the power 1/T, normalised; argmax finds the first that exceeds."""
    if temperature < 0:
        raise ValueError("T")
    if temperature == 0:
        return torch.max(logits, dim=-1).indices
    powers = logits.softmax(dim=-1) ** (1 / temperature)
    reached = (powers / powers.sum(dim=-1, keepdim=True)).cumsum(dim=-1)
    return (reached > uniforms[..., None]).int().argmax(dim=-1)


def drawn_row_by_row(logits, uniforms, temperature):
    """Right: NumPy, one row after the other."""
    if temperature < 0:
        raise ValueError("T")
    drawn = np.zeros(uniforms.shape, dtype=np.int64)
    for index in np.ndindex(*uniforms.shape):
        row = logits[index].numpy()
        if temperature == 0:
            drawn[index] = row.argmax()
            continue
        weights = np.exp((row - row.max()) / temperature)
        cut = float(uniforms[index]) * weights.sum()
        drawn[index] = np.searchsorted(weights.cumsum(), cut, side="right")
    return torch.from_numpy(drawn)


DRAW_TOKEN = Exercise(
    id="draw_token",
    title="Draw a token, at a temperature",
    asks="Turn logits into probabilities at a temperature, and a uniform number into a token.",
    parameters=("logits", "uniforms", "temperature"),
    outputs=("token",),
    driver="tensor_function",
    groups={
        "values": Group(1, "temperature 1"),
        "temperature": Group(1, "other temperatures"),
        "edges": Group(1, "temperature 0, hidden tokens, numbers of 0, negative temperatures"),
    },
    cases=draw_token_cases,
    reference=draw_token_reference,
    misconceptions=(
        Misconception(
            temperature_multiplied,
            "The logits are multiplied by the temperature: hot becomes cold.",
            "Should a low temperature make the largest logit stand out more or less?",
        ),
        Misconception(
            temperature_on_probabilities,
            "The temperature has no effect; dividing probabilities and normalising them undoes it.",
            "What has to be divided: what goes into the softmax or what comes out?",
        ),
        Misconception(
            root_of_temperature,
            "The logits are divided by the root of the temperature.",
            "There is no root here: the one of attention has another reason.",
        ),
        Misconception(
            always_the_largest,
            "The most probable token is always taken: the uniform numbers are not used.",
            "Where do `uniforms` enter?",
        ),
        Misconception(
            rank_for_token,
            "The result is a place in the sorted row and not a token.",
            "Is sorting needed at all?",
        ),
        Misconception(
            one_token_too_late,
            "The token behind the right one is taken.",
            "Which is the first token whose sum exceeds the number?",
        ),
        Misconception(
            counted_from_the_end,
            "The probabilities are added up from the last token.",
            "A uniform number next to 0 should give which token?",
        ),
        Misconception(
            one_number_for_all_rows,
            "All rows use the same uniform number.",
            "Which axes do `uniforms` and `logits` share?",
        ),
        Misconception(
            zero_probability_may_be_drawn,
            "With the number 0 a token of probability 0 is drawn.",
            "“At least” or “more than”? Try a row whose first logit is −inf.",
        ),
        Misconception(
            division_by_zero,
            "At temperature 0 the logits are divided by 0.",
            "Towards which token do the probabilities tend as T goes to 0?",
        ),
        Misconception(
            negative_temperature_accepted,
            "A negative temperature is accepted: it prefers the improbable.",
            "The contract says what to do with it.",
        ),
    ),
    accepted=(drawn_by_searching, drawn_by_powers, drawn_row_by_row),
)
