"""Chapter 12: deep layers that teach shallow ones."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import divergence


def self_distillation_cases(rng):
    """Two, three and four exits, temperatures on both sides of 1."""
    for shape, low, high, about in (
        ((3, 2, 4), 1.5, 2.5, "three exits"),
        ((4, 2, 3), 0.5, 0.7, "four exits, a temperature below 1"),
        ((2, 3, 4), 2.5, 3.0, "two exits"),
    ):
        _, batch, classes = shape
        yield Case(
            "values",
            {
                "exits": 1.5 * rng.normal(size=shape),
                "labels": rng.integers(0, classes, batch),
                "temperature": round(float(rng.uniform(low, high)), 3),
                "share": round(float(rng.uniform(0.5, 0.9)), 3),
            },
            about,
        )


def self_distillation_reference(exits, labels, temperature, share):
    """One exit after the other."""
    deepest = torch.distributions.Categorical(logits=exits[-1].detach() / temperature)
    gold = [F.cross_entropy(logits, labels) for logits in exits]
    gaps = [
        torch.distributions.kl_divergence(
            deepest, torch.distributions.Categorical(logits=logits / temperature)
        ).mean()
        for logits in exits[:-1]
    ]
    return sum(gold) / len(gold) + share * temperature**2 * sum(gaps) / len(gaps)


def _gold(exits, labels):
    return torch.stack([F.cross_entropy(logits, labels) for logits in exits])


def _gaps_to(teacher, exits, temperature):
    return temperature**2 * divergence(teacher / temperature, exits / temperature).mean(-1)


def _gaps(exits, temperature):
    return _gaps_to(exits[-1].detach(), exits[:-1], temperature)


def deepest_learns_from_shallow(exits, labels, temperature, share):
    """Nothing is detached."""
    gaps = _gaps_to(exits[-1], exits[:-1], temperature)
    return _gold(exits, labels).mean() + share * gaps.mean()


def shallow_teaches_deep(exits, labels, temperature, share):
    """The first exit is the teacher."""
    gaps = _gaps_to(exits[0].detach(), exits[1:], temperature)
    return _gold(exits, labels).mean() + share * gaps.mean()


def next_exit_teaches(exits, labels, temperature, share):
    """Each exit learns from the next one."""
    gaps = _gaps_to(exits[1:].detach(), exits[:-1], temperature)
    return _gold(exits, labels).mean() + share * gaps.mean()


def deepest_in_the_mean(exits, labels, temperature, share):
    """Divides by all exits: the deepest one's gap to itself is 0."""
    return _gold(exits, labels).mean() + share * _gaps(exits, temperature).sum() / len(exits)


def labels_at_the_deepest_only(exits, labels, temperature, share):
    """Gold for the last exit."""
    gaps = _gaps(exits, temperature)
    return F.cross_entropy(exits[-1], labels) + share * gaps.mean()


def labels_at_the_shallow_only(exits, labels, temperature, share):
    """Gold for all but the last."""
    gaps = _gaps(exits, temperature)
    return _gold(exits[:-1], labels).mean() + share * gaps.mean()


def exits_summed(exits, labels, temperature, share):
    """Sums over exits."""
    gaps = _gaps(exits, temperature)
    return _gold(exits, labels).sum() + share * gaps.sum()


def no_factor_for_the_temperature(exits, labels, temperature, share):
    """No T²."""
    gaps = _gaps(exits, temperature) / temperature**2
    return _gold(exits, labels).mean() + share * gaps.mean()


def labels_softened(exits, labels, temperature, share):
    """T in the gold loss, too."""
    gaps = _gaps(exits, temperature)
    return _gold(exits / temperature, labels).mean() + share * gaps.mean()


def gap_turned_round(exits, labels, temperature, share):
    """KL(shallow ‖ deep)."""
    gaps = divergence(exits[:-1] / temperature, exits[-1:].detach() / temperature).mean(-1)
    return _gold(exits, labels).mean() + share * temperature**2 * gaps.mean()


def share_of_the_whole(exits, labels, temperature, share):
    """(1 − share) · gold."""
    gaps = _gaps(exits, temperature)
    return (1 - share) * _gold(exits, labels).mean() + share * gaps.mean()


def all_at_once(exits, labels, temperature, share):
    """Right: one tensor for all exits."""
    return _gold(exits, labels).mean() + share * _gaps(exits, temperature).mean()


def by_flat_batches(exits, labels, temperature, share):
    """Right: exits and examples in one long batch."""
    count = len(exits)
    gold = F.cross_entropy(exits.flatten(0, 1), labels.repeat(count))
    aim = (exits[-1].detach() / temperature).log_softmax(-1).repeat(count - 1, 1)
    logs = (exits[:-1].flatten(0, 1) / temperature).log_softmax(-1)
    gap = F.kl_div(logs, aim, reduction="batchmean", log_target=True)
    return gold + share * gap * temperature**2


def exit_by_exit(exits, labels, temperature, share):
    """Right: a loop, the teacher unbound first."""
    *shallow, deep = exits.unbind(0)
    with torch.no_grad():
        aim = F.softmax(deep / temperature, dim=-1)
        entropy = -(aim * aim.log()).sum(-1).mean()
    loss = F.cross_entropy(deep, labels) / len(exits)
    for logits in shallow:
        loss = loss + F.cross_entropy(logits, labels) / len(exits)
        gap = F.cross_entropy(logits / temperature, aim) - entropy
        loss = loss + share * temperature**2 * gap / len(shallow)
    return loss


SELF_DISTILLATION_LOSS = Exercise(
    id="self_distillation_loss",
    title="Deep layers teach shallow ones",
    asks="Give the loss of a model with an exit after each layer, the deepest teaching the others.",
    parameters=("exits", "labels", "temperature", "share"),
    outputs=("loss", "gradient of exits"),
    driver="tensor_function",
    seconds=5.0,
    groups={"values": Group(3, "two to four exits")},
    cases=self_distillation_cases,
    reference=self_distillation_reference,
    misconceptions=(
        Misconception(
            deepest_learns_from_shallow,
            "The divergence sends a gradient to the deepest exit, its teacher.",
            "Cut the teacher off.",
        ),
        Misconception(
            shallow_teaches_deep,
            "The first exit teaches here.",
            "Which exit knows most?",
        ),
        Misconception(
            next_exit_teaches,
            "Each exit learns from the next one; the contract names one teacher for all.",
            "Which exit is the teacher?",
        ),
        Misconception(
            deepest_in_the_mean,
            "The divergences are divided by the number of all exits, the teacher's too.",
            "How many exits learn from the deepest?",
        ),
        Misconception(
            labels_at_the_deepest_only,
            "Only the deepest exit gets gold labels.",
            "Which exits does point 1 of the contract name?",
        ),
        Misconception(
            labels_at_the_shallow_only,
            "The deepest exit gets no gold labels, so it never learns.",
            "Which exits does point 1 of the contract name?",
        ),
        Misconception(
            exits_summed,
            "The exits are summed; the contract asks for means.",
            "What happens to your loss with twice as many exits?",
        ),
        Misconception(
            no_factor_for_the_temperature,
            "The factor T² is missing.",
            "Compare with the exercise on soft targets.",
        ),
        Misconception(
            labels_softened,
            "The temperature was applied to the gold labels' loss, too.",
            "Which part of the loss has a temperature?",
        ),
        Misconception(
            gap_turned_round,
            "The divergence runs the other way round.",
            "Whose probabilities weigh the logarithms?",
        ),
        Misconception(
            share_of_the_whole,
            "The labels' part is multiplied by 1 − share; the contract leaves it whole.",
            "Read the last point of the contract again.",
        ),
    ),
    accepted=(all_at_once, by_flat_batches, exit_by_exit),
    equivalent_mutants={
        "`(exits[-1].detach() / temperature).log_softmax(dim=-1)` → `(exits[-1].detach() / "
        "temperature).log_softmax(dim=1)`": ("of two axes, axis 1 is the last one"),
    },
)
