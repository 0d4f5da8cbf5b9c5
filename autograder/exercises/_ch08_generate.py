"""Chapter 08: write token by token with a model that sees a limited number of tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def window_model(table: Tensor, tokens: Tensor) -> Tensor:
    """The notebook's model: logits of the next token from at most `context` tokens.

    table: (context, vocabulary, vocabulary). tokens: (length,).
    Raises ValueError for no token and for more than `context` tokens.
    """
    if not 0 < len(tokens) <= len(table):
        raise ValueError(f"this model reads 1 to {len(table)} tokens; it got {len(tokens)}.")
    return table[torch.arange(len(tokens)), tokens.flip(0)].sum(dim=0)


def generate_cases(rng):
    """Prompts shorter and longer than the context; an end token early, in the prompt, never."""

    def case(group, prompt, steps, about, end_at=None, end_in_prompt=False):
        s = draw_sizes(rng, "context", "vocabulary", among=(3, 6, 7))
        context, vocabulary = min(s.context, s.vocabulary), max(s.context, s.vocabulary)
        table = rng.normal(size=(context, vocabulary, vocabulary))
        noise = rng.gumbel(size=(steps, vocabulary))
        end = vocabulary - 1
        table[..., end] -= 60.0  # the end comes only where the noise brings it
        tokens = rng.integers(0, end, size=prompt(context))
        if end_in_prompt:
            tokens[-2] = end
        if end_at is not None:
            noise[end_at, end] += 900.0
        inputs = {"table": table, "prompt": tokens, "noise": noise, "end": end}
        return Case(group, inputs, about)

    yield case("values", lambda context: 2, 9, "a short prompt, no end")
    yield case("values", lambda context: context, 6, "a prompt that fills the context")
    yield case("long", lambda context: context + 3, 5, "a prompt longer than the context")
    yield case("end", lambda context: 3, 7, "the end comes after some steps", end_at=3)
    yield case("end", lambda context: 2, 4, "the end comes at once", end_at=0)
    yield case("end", lambda context: 4, 5, "an end token in the prompt", end_in_prompt=True)
    yield case("end", lambda context: 2, 0, "no step")


def generate_reference(table, prompt, noise, end):
    """In NumPy, with the model's sums written out."""
    weights, tokens = table.numpy(), prompt.tolist()
    for row in noise.numpy():
        logits = row.copy()
        for back in range(min(len(weights), len(tokens))):
            logits += weights[back, tokens[-1 - back]]
        tokens.append(int(np.argmax(logits)))
        if tokens[-1] == end:
            break
    return torch.tensor(tokens)


def _generate(
    table,
    prompt,
    noise,
    end,
    window=lambda tokens, context: tokens[-context:],
    choose=lambda logits, row: (logits + row).argmax(),
    stop=lambda token, end: token == end,
    keep_end=True,
    row=lambda noise, step: noise[step],
):
    tokens = prompt.clone()
    for step in range(len(noise)):
        logits = window_model(table, window(tokens, len(table)))
        token = choose(logits, row(noise, step))
        if stop(token, end):
            return torch.cat([tokens, token[None]]) if keep_end else tokens
        tokens = torch.cat([tokens, token[None]])
    return tokens


def context_overrun(table, prompt, noise, end):
    """Hands the model everything."""
    return _generate(table, prompt, noise, end, window=lambda tokens, context: tokens)


def first_tokens_kept(table, prompt, noise, end):
    """Hands the model the first tokens, so that it reads the same again and again."""
    return _generate(table, prompt, noise, end, window=lambda tokens, context: tokens[:context])


def only_the_last_token(table, prompt, noise, end):
    """Hands the model one token."""
    return _generate(table, prompt, noise, end, window=lambda tokens, context: tokens[-1:])


def context_one_short(table, prompt, noise, end):
    """Leaves one place of the context unused."""
    return _generate(
        table, prompt, noise, end, window=lambda tokens, context: tokens[-(context - 1) :]
    )


def noise_not_used(table, prompt, noise, end):
    """Greedy."""
    return _generate(table, prompt, noise, end, choose=lambda logits, row: logits.argmax())


def noise_multiplied(table, prompt, noise, end):
    """Multiplies logits by noise."""
    return _generate(table, prompt, noise, end, choose=lambda logits, row: (logits * row).argmax())


def noise_on_probabilities(table, prompt, noise, end):
    """Adds the noise after the softmax."""
    return _generate(
        table, prompt, noise, end, choose=lambda logits, row: (logits.softmax(-1) + row).argmax()
    )


def same_noise_every_step(table, prompt, noise, end):
    """Uses the first row of noise at every step."""
    return _generate(table, prompt, noise, end, row=lambda noise, step: noise[0])


def never_stops(table, prompt, noise, end):
    """Goes on behind the end."""
    return _generate(table, prompt, noise, end, stop=lambda token, end: False)


def end_left_out(table, prompt, noise, end):
    """Stops, but does not write the end."""
    return _generate(table, prompt, noise, end, keep_end=False)


def prompt_left_out(table, prompt, noise, end):
    """Gives the new tokens only."""
    return _generate(table, prompt, noise, end)[len(prompt) :]


def stops_at_any_end(table, prompt, noise, end):
    """An end token in the prompt stops it, too."""
    if (prompt == end).any():
        return prompt.clone()
    return _generate(table, prompt, noise, end)


def generated_in_a_list(table, prompt, noise, end):
    """Right: a Python list, made a tensor for every step."""
    tokens = prompt.tolist()
    for row in noise:
        recent = torch.tensor(tokens[-len(table) :])
        tokens.append(int(torch.argmax(window_model(table, recent) + row)))
        if tokens[-1] == end:
            break
    return torch.tensor(tokens)


def generated_into_a_buffer(table, prompt, noise, end):
    """Right: a tensor of the final length, cut at the end."""
    buffer = torch.cat([prompt, torch.zeros(len(noise), dtype=torch.long)])
    for step in range(len(noise)):
        n = len(prompt) + step
        scores = window_model(table, buffer[max(0, n - len(table)) : n]) + noise[step]
        buffer[n] = scores.max(dim=0).indices
        if buffer[n] == end:
            return buffer[: n + 1]
    return buffer


def generated_by_recursion(table, prompt, noise, end):
    """Right: one token, then the rest."""
    if len(noise) == 0:
        return prompt.clone()
    logits = window_model(table, prompt[-len(table) :])
    token = (logits + noise[0]).argmax(dim=-1, keepdim=True)
    longer = torch.cat([prompt, token])
    return longer if token == end else generated_by_recursion(table, longer, noise[1:], end)


GENERATE = Exercise(
    id="generate",
    title="Write token by token",
    asks="Let a model write: crop to its context, add noise, take the largest, stop at the end.",
    parameters=("table", "prompt", "noise", "end"),
    outputs=("tokens",),
    driver="tensor_function",
    groups={
        "values": Group(1, "short prompts"),
        "long": Group(1, "a prompt longer than the context"),
        "end": Group(1, "the end token"),
    },
    cases=generate_cases,
    reference=generate_reference,
    misconceptions=(
        Misconception(
            context_overrun,
            "The model gets more tokens than it can read.",
            "How many tokens are there after some steps, and how many does the model take?",
        ),
        Misconception(
            first_tokens_kept,
            "The model gets the first tokens and never sees what it has just written.",
            "Which tokens should go when there are too many?",
        ),
        Misconception(
            only_the_last_token,
            "The model gets one token, whatever its context.",
            "How many tokens may the model read?",
        ),
        Misconception(
            context_one_short,
            "One place of the context is left unused.",
            "How many tokens may the model read at most?",
        ),
        Misconception(
            noise_not_used,
            "The noise is not used: this is greedy decoding.",
            "What turns the arg-max into a draw?",
        ),
        Misconception(
            noise_multiplied,
            "The logits are multiplied by the noise.",
            "How do logits and noise come together in the contract?",
        ),
        Misconception(
            noise_on_probabilities,
            "The noise is added to probabilities.",
            "To what does the contract add the noise?",
        ),
        Misconception(
            same_noise_every_step,
            "Every step uses the first row of the noise.",
            "Which row belongs to step i?",
        ),
        Misconception(
            never_stops,
            "It goes on writing behind the end token.",
            "What should happen as soon as the new token is `end`?",
        ),
        Misconception(
            end_left_out,
            "The end token itself is missing from the result.",
            "Does the contract want the end token in the result?",
        ),
        Misconception(
            prompt_left_out,
            "The result lacks the prompt.",
            "What does the result begin with?",
        ),
        Misconception(
            stops_at_any_end,
            "An end token in the prompt stops it at once.",
            "Which tokens are looked at for the end?",
        ),
    ),
    accepted=(generated_in_a_list, generated_into_a_buffer, generated_by_recursion),
    equivalent_mutants={
        "`prompt.clone()` → `prompt`": "`torch.cat` makes a new tensor, and nothing is written",
        "`(logits + row).argmax(dim=-1, keepdim=True)` → "
        "`(logits + row).argmax(dim=0, keepdim=True)`": "there is one axis only",
    },
)
