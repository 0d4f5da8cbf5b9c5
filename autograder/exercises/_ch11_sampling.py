"""Chapter 11: drawing the generator's words with Gumbel noise."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def sample_tokens_cases(rng):
    """Temperatures below and above 1; one and two axes of places; logits around 1000."""
    for group, temperature, scale, about in (
        ("values", 1.0, 1.5, "temperature 1"),
        ("values", 1.0, 0.4, "nearly uniform"),
        ("temperature", 0.3, 1.0, "a low temperature"),
        ("temperature", 3.0, 4.0, "a high temperature"),
        ("large", 1.2, 1.5, "logits around 1000"),
    ):
        s = draw_sizes(rng, "batch", "places", among=(4, 5, 6))
        lead = (s.batch, s.places) if group != "temperature" else (s.batch * s.places,)
        logits = scale * rng.normal(size=(*lead, 7)) + 1000.0 * (group == "large")
        uniform = rng.uniform(0.02, 0.98, size=logits.shape)
        yield Case(group, {"logits": logits, "uniform": uniform, "temperature": temperature}, about)


def sample_tokens_reference(logits, uniform, temperature):
    """A race: the word with the smallest exponential waiting time, in logarithms and NumPy."""
    waiting = np.log(-np.log(uniform.numpy())) - logits.numpy() / temperature
    return torch.from_numpy(np.argsort(waiting, axis=-1)[..., 0])


def _noise(uniform):
    return -torch.log(-torch.log(uniform))


def always_the_best(logits, uniform, temperature):
    """argmax without noise."""
    return logits.argmax(-1)


def temperature_multiplied(logits, uniform, temperature):
    """logits · T."""
    return (logits * temperature + _noise(uniform)).argmax(-1)


def temperature_without_effect(logits, uniform, temperature):
    """Divides the sum of logits and noise: the order stays."""
    return ((logits + _noise(uniform)) / temperature).argmax(-1)


def noise_turned_round(logits, uniform, temperature):
    """Subtracts the noise."""
    return (logits / temperature - _noise(uniform)).argmax(-1)


def uniform_noise(logits, uniform, temperature):
    """Adds the uniform numbers as they are."""
    return (logits / temperature + uniform).argmax(-1)


def one_logarithm(logits, uniform, temperature):
    """Adds −log u."""
    return (logits / temperature - uniform.log()).argmax(-1)


def noise_on_probabilities(logits, uniform, temperature):
    """Adds the noise to probabilities."""
    return ((logits / temperature).softmax(-1) + _noise(uniform)).argmax(-1)


def a_vector_for_each_word(logits, uniform, temperature):
    """One-hot vectors that let the gradient through."""
    sums = logits / temperature + _noise(uniform)
    soft = sums.softmax(-1)
    return F.one_hot(sums.argmax(-1), logits.shape[-1]) + soft - soft.detach()


def cumulated_shares(logits, uniform, temperature):
    """Compares one number with cumulated probabilities: a sample, but another one."""
    reached = (logits / temperature).softmax(-1).cumsum(-1)
    return (reached < uniform[..., :1]).sum(-1).clamp(max=logits.shape[-1] - 1)


def noise_of_one_word(logits, uniform, temperature):
    """The same noise for all words: no effect on the order, but on nothing else either."""
    return (logits / temperature * _noise(uniform)).argmax(-1)


def exponential_overflows(logits, uniform, temperature):
    """Right in small numbers; exp overflows."""
    return ((logits / temperature).exp() / -uniform.log()).argmax(-1)


def by_race(logits, uniform, temperature):
    """Right: probabilities divided by exponential numbers."""
    return ((logits / temperature).softmax(-1) / -torch.log(uniform)).argmax(dim=-1)


def by_log_probabilities(logits, uniform, temperature):
    """Right: noise on log-probabilities."""
    scaled = F.log_softmax(logits / temperature, dim=-1)
    return torch.max(scaled - (-uniform.log()).log(), dim=-1).indices


def word_by_word(logits, uniform, temperature):
    """Right: a loop over places; the noise times T instead of the logits over T."""
    rows = (logits + temperature * _noise(uniform)).reshape(-1, logits.shape[-1])
    best = [max(range(len(row)), key=row.tolist().__getitem__) for row in rows]
    return torch.tensor(best).reshape(logits.shape[:-1])


SAMPLE_TOKENS = Exercise(
    id="sample_tokens",
    title="Draw words with Gumbel noise",
    asks="Draw one id for each row of logits, with given uniform numbers and a temperature.",
    parameters=("logits", "uniform", "temperature"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(1, "temperature 1"),
        "temperature": Group(1, "other temperatures"),
        "large": Group(1, "large logits"),
    },
    cases=sample_tokens_cases,
    reference=sample_tokens_reference,
    misconceptions=(
        Misconception(
            always_the_best,
            "The most probable word is taken every time: `uniform` has no effect.",
            "What makes two samples from the same logits differ?",
        ),
        Misconception(
            temperature_multiplied,
            "The logits are multiplied with the temperature: a low one makes samples wilder.",
            "Which samples should a temperature near 0 give?",
        ),
        Misconception(
            temperature_without_effect,
            "The temperature has no effect: dividing logits and noise alike keeps the order.",
            "Which of the two terms does the contract divide?",
        ),
        Misconception(
            noise_turned_round,
            "The noise is subtracted.",
            "Count the minus signs of the noise: there are two, and none in front.",
        ),
        Misconception(
            uniform_noise,
            "The uniform numbers are added as they are; they are not Gumbel noise yet.",
            "Which function turns u into noise?",
        ),
        Misconception(
            one_logarithm,
            "The noise has one logarithm; Gumbel noise has two.",
            "Which function turns u into noise?",
        ),
        Misconception(
            noise_on_probabilities,
            "The noise is added to probabilities; it belongs to logits.",
            "Is there a softmax that should not be there?",
        ),
        Misconception(
            a_vector_for_each_word,
            "The result is a one-hot vector for each place, and a gradient flows through it; whole "
            "numbers are asked for, and they carry none.",
            "What shape and which kind of numbers does the contract ask for?",
        ),
        Misconception(
            cumulated_shares,
            "One uniform number is compared with cumulated probabilities. That draws rightly, too, "
            "but not by Gumbel noise, so the samples are other ones.",
            "How many uniform numbers does the contract use for one sample?",
        ),
        Misconception(
            noise_of_one_word,
            "Logits and noise are multiplied; they are to be added.",
            "Read the formula of the contract again.",
        ),
        Misconception(
            exponential_overflows,
            "exp overflows for large logits.",
            "Can you do without exp?",
        ),
    ),
    accepted=(by_race, by_log_probabilities, word_by_word),
)
