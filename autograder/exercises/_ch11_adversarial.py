"""Chapter 11: a generator that is rewarded for the discriminator's mistakes."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def adversarial_loss_cases(rng):
    """Samples that are original and samples that are not; two baselines."""
    for size, about in ((7, "seven samples"), (5, "five samples"), (9, "another baseline")):
        replaced = rng.random(size) < 0.6
        replaced[:2] = (True, False)
        yield Case(
            "values",
            {
                "log_probabilities": -3 * rng.random(size) - 0.1,
                "discriminator_logits": 1.5 * rng.normal(size=size),
                "replaced": replaced,
                "baseline": round(float(rng.uniform(0.4, 1.2)), 3),
            },
            about,
        )


def adversarial_loss_reference(log_probabilities, discriminator_logits, replaced, baseline):
    """The reward in NumPy, where no gradient can flow."""
    scores = discriminator_logits.detach().numpy()
    losses = F.softplus(torch.from_numpy(scores * (1 - 2 * replaced.numpy())))
    return ((baseline - losses) * log_probabilities).mean()


def _reward(logits, replaced):
    return F.binary_cross_entropy_with_logits(logits, replaced.to(logits.dtype), reduction="none")


def reward_not_detached(log_probabilities, discriminator_logits, replaced, baseline):
    """Gradient through the reward."""
    reward = _reward(discriminator_logits, replaced) - baseline
    return -(reward * log_probabilities).mean()


def helps_the_discriminator(log_probabilities, discriminator_logits, replaced, baseline):
    """Sign."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return (reward * log_probabilities).mean()


def baseline_forgotten(log_probabilities, discriminator_logits, replaced, baseline):
    """Without baseline."""
    return -(_reward(discriminator_logits, replaced).detach() * log_probabilities).mean()


def baseline_added(log_probabilities, discriminator_logits, replaced, baseline):
    """Adds it."""
    reward = _reward(discriminator_logits, replaced).detach() + baseline
    return -(reward * log_probabilities).mean()


def probability_instead(log_probabilities, discriminator_logits, replaced, baseline):
    """p for log p: the true gradient of the expectation only if all words are summed over."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return -(reward * log_probabilities.exp()).mean()


def summed_samples(log_probabilities, discriminator_logits, replaced, baseline):
    """Sum."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return -(reward * log_probabilities).sum()


def replaced_only_rewarded(log_probabilities, discriminator_logits, replaced, baseline):
    """Replaced samples only."""
    reward = _reward(discriminator_logits, replaced).detach() - baseline
    return -(reward * log_probabilities)[replaced].mean()


def one_reward_for_all(log_probabilities, discriminator_logits, replaced, baseline):
    """The mean of the mistakes for every sample."""
    reward = _reward(discriminator_logits, replaced).detach().mean() - baseline
    return -(reward * log_probabilities).mean()


def rewarded_for_looking_real(log_probabilities, discriminator_logits, replaced, baseline):
    """The score for "original" is the reward, as in a GAN, whether it is replaced or not."""
    reward = F.softplus(discriminator_logits).detach() - baseline
    return -(reward * log_probabilities).mean()


def nothing_flows(log_probabilities, discriminator_logits, replaced, baseline):
    """Detaches all."""
    reward = _reward(discriminator_logits, replaced) - baseline
    return -(reward * log_probabilities).mean().detach()


def reinforce_no_grad(log_probabilities, discriminator_logits, replaced, baseline):
    """Right: no_grad."""
    with torch.no_grad():
        reward = _reward(discriminator_logits, replaced) - baseline
    return -(reward * log_probabilities).mean()


def reinforce_dot(log_probabilities, discriminator_logits, replaced, baseline):
    """Right: a dot product."""
    z = discriminator_logits.detach()
    reward = torch.where(replaced, -F.logsigmoid(z), -F.logsigmoid(-z)) - baseline
    return -torch.dot(reward, log_probabilities) / len(reward)


def reinforce_loop(log_probabilities, discriminator_logits, replaced, baseline):
    """Right: sample by sample with plain numbers."""
    rewards = _reward(discriminator_logits.detach(), replaced).tolist()
    terms = [(baseline - r) * p for r, p in zip(rewards, log_probabilities, strict=True)]
    return sum(terms) / len(terms)


ADVERSARIAL_LOSS = Exercise(
    id="adversarial_loss",
    title="Challenge: a generator that wants to fool",
    asks="Give the REINFORCE loss of a generator rewarded for the discriminator's mistakes.",
    parameters=("log_probabilities", "discriminator_logits", "replaced", "baseline"),
    outputs=("loss", "gradient of log_probabilities", "gradient of discriminator_logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(3, "loss and gradients")},
    cases=adversarial_loss_cases,
    reference=adversarial_loss_reference,
    tolerance=Tolerance(1e-5, 1e-6),
    misconceptions=(
        Misconception(
            reward_not_detached,
            "The gradient flows into the discriminator as well, and teaches it to be wrong.",
            "Is the reward a plain number for autograd?",
        ),
        Misconception(
            helps_the_discriminator,
            "The sign is turned round: samples that are found out become more likely.",
            "A loss goes *down*. What should then happen to log p of a rewarded sample?",
        ),
        Misconception(
            baseline_forgotten,
            "The baseline has no effect.",
            "What is subtracted from the reward?",
        ),
        Misconception(
            baseline_added,
            "The baseline is added to the reward.",
            "What is subtracted from the reward?",
        ),
        Misconception(
            probability_instead,
            "Probabilities are weighted; REINFORCE weights log-probabilities, since the samples "
            "were drawn.",
            "Is there an exp that should not be there?",
        ),
        Misconception(
            summed_samples,
            "The terms are added up; the mean is asked.",
            "By what do you divide?",
        ),
        Misconception(
            replaced_only_rewarded,
            "Samples that equal the original word are left out.",
            "For which samples does the contract ask?",
        ),
        Misconception(
            one_reward_for_all,
            "All samples get the same reward, the mean; each should get its own.",
            "Does your cross-entropy give one number, or one for each place?",
        ),
        Misconception(
            rewarded_for_looking_real,
            "The reward looks at the score only, not at whether the discriminator was wrong.",
            "What is the discriminator's loss for a sample that is the original word?",
        ),
        Misconception(
            nothing_flows,
            "No gradient reaches the generator.",
            "Detach the reward, and nothing else.",
        ),
    ),
    accepted=(reinforce_no_grad, reinforce_dot, reinforce_loop),
)
