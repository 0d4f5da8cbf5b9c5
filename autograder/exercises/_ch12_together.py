"""Chapter 12: learners that teach each other, and layers that teach layers."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import divergence, draw_sizes_of_tokens

# --- co_distillation_losses ----------------------------------------------------------------------


def co_distillation_cases(rng):
    """Random logits and labels; a share of 0; large logits."""
    for group, scale, share, about in (
        ("values", 1.5, round(float(rng.uniform(0.4, 0.8)), 3), "a share below 1"),
        ("values", 1.5, round(float(rng.uniform(1.5, 2.5)), 3), "a share above 1"),
        ("large", 700.0, 0.7, "logits in the hundreds"),
    ):
        _, batch, classes = draw_sizes_of_tokens(rng)
        yield Case(
            group,
            {
                "first_logits": scale * rng.normal(size=(batch, classes)),
                "second_logits": scale * rng.normal(size=(batch, classes)),
                "labels": rng.integers(0, classes, batch),
                "share": share,
                "upstream": rng.uniform(0.5, 2.0, 2) * [1.0, 2.5],
            },
            about,
        )


def co_distillation_reference(first_logits, second_logits, labels, share):
    """Expected log-probabilities, from logits less their log-sum-exp."""

    def one(own, other):
        ours = own - own.logsumexp(-1, keepdim=True)
        theirs = (other - other.logsumexp(-1, keepdim=True)).detach()
        gaps = torch.linalg.vecdot(theirs.exp(), theirs - ours)
        return (share * gaps - ours[torch.arange(len(labels)), labels]).mean()

    return torch.stack([one(first_logits, second_logits), one(second_logits, first_logits)])


def _both(first, second, labels, one):
    return torch.stack([one(first, second, labels), one(second, first, labels)])


def gradients_cross(first_logits, second_logits, labels, share):
    """Nothing is detached."""

    def one(own, other, labels):
        return F.cross_entropy(own, labels) + share * divergence(other, own).mean()

    return _both(first_logits, second_logits, labels, one)


def own_side_detached(first_logits, second_logits, labels, share):
    """Cuts off the wrong side."""

    def one(own, other, labels):
        return F.cross_entropy(own, labels) + share * divergence(other, own.detach()).mean()

    return _both(first_logits, second_logits, labels, one)


def other_direction(first_logits, second_logits, labels, share):
    """KL(own ‖ other)."""

    def one(own, other, labels):
        return F.cross_entropy(own, labels) + share * divergence(own, other.detach()).mean()

    return _both(first_logits, second_logits, labels, one)


def gold_labels_forgotten(first_logits, second_logits, labels, share):
    """Only each other."""

    def one(own, other, labels):
        return share * divergence(other.detach(), own).mean()

    return _both(first_logits, second_logits, labels, one)


def share_forgotten(first_logits, second_logits, labels, share):
    """A plain sum."""
    return co_distillation_reference(first_logits, second_logits, labels, 1.0)


def share_taken_from_the_labels(first_logits, second_logits, labels, share):
    """(1 − share) · gold + share · other."""

    def one(own, other, labels):
        gap = divergence(other.detach(), own).mean()
        return (1 - share) * F.cross_entropy(own, labels) + share * gap

    return _both(first_logits, second_logits, labels, one)


def one_way_only(first_logits, second_logits, labels, share):
    """The second learns from the first; the first from labels alone."""
    losses = co_distillation_reference(first_logits, second_logits, labels, share)
    return torch.stack([F.cross_entropy(first_logits, labels), losses[1]])


def losses_exchanged(first_logits, second_logits, labels, share):
    """The second's loss first."""
    return co_distillation_reference(second_logits, first_logits, labels, share)


def hard_choices_exchanged(first_logits, second_logits, labels, share):
    """The other's choice as a label."""

    def one(own, other, labels):
        return F.cross_entropy(own, labels) + share * F.cross_entropy(own, other.argmax(-1))

    return _both(first_logits, second_logits, labels, one)


def losses_of_examples_summed(first_logits, second_logits, labels, share):
    """A sum over the batch."""
    return len(labels) * co_distillation_reference(first_logits, second_logits, labels, share)


def exponentials_overflow(first_logits, second_logits, labels, share):
    """Logarithms of softmaxes."""

    def one(own, other, labels):
        ours, theirs = own.softmax(-1), other.detach().softmax(-1)
        gap = (theirs * (theirs / ours).log()).sum(-1).mean()
        return F.cross_entropy(own, labels) + share * gap

    return _both(first_logits, second_logits, labels, one)


def by_kl_div(first_logits, second_logits, labels, share):
    """Right: PyTorch's losses."""
    first, second = first_logits.log_softmax(-1), second_logits.log_softmax(-1)
    options = {"reduction": "batchmean", "log_target": True}
    return torch.stack(
        [
            F.nll_loss(first, labels) + share * F.kl_div(first, second.detach(), **options),
            F.nll_loss(second, labels) + share * F.kl_div(second, first.detach(), **options),
        ]
    )


def stacked(first_logits, second_logits, labels, share):
    """Right: both at once along a new axis; the flipped stack is the other's."""
    logs = torch.stack([first_logits, second_logits]).log_softmax(-1)
    others = logs.detach().flip(0)
    gold = -logs.gather(-1, labels.expand(2, -1)[..., None])[..., 0]
    gaps = (others.exp() * (others - logs)).sum(-1)
    return (gold + share * gaps).mean(1)


def by_entropies(first_logits, second_logits, labels, share):
    """Right: cross-entropy less entropy."""
    losses = []
    for own, other in ((first_logits, second_logits), (second_logits, first_logits)):
        with torch.no_grad():
            aim = other.softmax(-1)
            entropy = torch.special.entr(aim).sum(-1).mean()
        gap = F.cross_entropy(own, aim) - entropy
        losses.append(F.cross_entropy(own, labels) + share * gap)
    return torch.stack(losses)


CO_DISTILLATION_LOSSES = Exercise(
    id="co_distillation_losses",
    title="Two learners teach each other",
    asks="Give both losses of two learners; no gradient may cross from one to the other.",
    parameters=("first_logits", "second_logits", "labels", "share", "upstream"),
    outputs=("losses", "gradient of first_logits", "gradient of second_logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(2.5, "several shares"),
        "large": Group(0.5, "large logits"),
    },
    cases=co_distillation_cases,
    reference=co_distillation_reference,
    misconceptions=(
        Misconception(
            gradients_cross,
            "A learner's loss sends a gradient to the other one.",
            "Who is the teacher in each of the two losses?",
        ),
        Misconception(
            own_side_detached,
            "The learner itself was cut off, not its teacher of the moment.",
            "Who is to learn from the divergence?",
        ),
        Misconception(
            other_direction,
            "The divergence runs the other way round.",
            "Whose probabilities weigh the logarithms?",
        ),
        Misconception(
            gold_labels_forgotten,
            "The gold labels have no effect: nothing keeps the two from agreeing on nonsense.",
            "Where do `labels` enter?",
        ),
        Misconception(
            share_forgotten,
            "`share` has no effect.",
            "Where does it enter?",
        ),
        Misconception(
            share_taken_from_the_labels,
            "The labels' part is multiplied by 1 − share; the contract leaves it whole.",
            "Read point 2 of the contract again.",
        ),
        Misconception(
            one_way_only,
            "Only one of the two learns from the other.",
            "Both are teachers.",
        ),
        Misconception(
            losses_exchanged,
            "The two losses are exchanged.",
            "Whose loss comes first?",
        ),
        Misconception(
            hard_choices_exchanged,
            "The learners exchange hard labels; the contract asks for distributions.",
            "Which divergence does the contract name?",
        ),
        Misconception(
            losses_of_examples_summed,
            "The losses are summed over the batch; the contract asks for their mean.",
            "What happens to your losses if the batch is twice as large?",
        ),
        Misconception(
            exponentials_overflow,
            "A probability vanishes and its logarithm is infinite.",
            "Is there one function for the logarithm of the softmax?",
        ),
    ),
    accepted=(by_kl_div, stacked, by_entropies),
    equivalent_mutants={
        "`own.log_softmax(dim=-1)` → `own.log_softmax(dim=1)`": (
            "of two axes, axis 1 is the last one"
        ),
        "`other.detach().log_softmax(dim=-1)` → `other.detach().log_softmax(dim=1)`": (
            "of two axes, axis 1 is the last one"
        ),
        "`(theirs.exp() * (theirs - ours)).sum(dim=-1)` → `(theirs.exp() * (theirs - "
        "ours)).sum(dim=1)`": ("of two axes, axis 1 is the last one"),
    },
)

# --- self_distillation_loss ----------------------------------------------------------------------


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
