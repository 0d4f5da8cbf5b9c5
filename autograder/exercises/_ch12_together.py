"""Chapter 12: two learners that teach each other."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import divergence, draw_sizes_of_tokens


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
