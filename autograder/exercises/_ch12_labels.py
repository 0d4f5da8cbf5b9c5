"""Chapter 12: learning from labels, the gold ones and the teacher's."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import (
    NO_LABEL,
    draw_labels,
    draw_real,
    draw_sizes_of_tokens,
    gold,
    poisoned,
)

# --- gold_loss -----------------------------------------------------------------------------------


def gold_loss_cases(rng):
    """Padding with poison; large logits; no label at all."""
    for group, scale, about in (
        ("values", 2.0, "places without a label"),
        ("values", 900.0, "logits in the hundreds"),
        ("values", 2.0, "one label"),
        ("none", 2.0, "no label at all"),
    ):
        batch, length, classes = draw_sizes_of_tokens(rng)
        real = draw_real(rng, batch, length)
        if about == "one label":
            real = np.arange(batch * length).reshape(batch, length) == rng.integers(1, 3)
        logits = poisoned(scale * rng.normal(size=(batch, length, classes)), real, 5.0)
        labels = draw_labels(rng, real & (group != "none"), classes)
        yield Case(group, {"logits": logits, "labels": labels}, about)


def gold_loss_reference(logits, labels):
    """PyTorch's own loss, summed, by the number of labels."""
    total = F.cross_entropy(logits.mT, labels, ignore_index=NO_LABEL, reduction="sum")
    return total / max(1, int((labels != NO_LABEL).sum()))


def _token_losses(logits, labels):
    return F.cross_entropy(logits.mT, labels, ignore_index=NO_LABEL, reduction="none")


def nan_without_labels(logits, labels):
    """PyTorch's mean: 0/0."""
    return gold(logits, labels)


def unlabelled_as_class_zero(logits, labels):
    """Takes −100 for class 0."""
    return F.cross_entropy(logits.mT, labels.clamp(min=0))


def summed_labels(logits, labels):
    """Sum over labels."""
    return _token_losses(logits, labels).sum()


def mean_over_all_places(logits, labels):
    """Divides by all places."""
    return _token_losses(logits, labels).mean()


def mean_of_sentence_means(logits, labels):
    """A mean for each sentence first."""
    counts = (labels != NO_LABEL).sum(1).clamp(min=1)
    return (_token_losses(logits, labels).sum(1) / counts).mean()


def softmax_before_loss(logits, labels):
    """Probabilities into a loss that wants logits."""
    return gold_loss_reference(logits.softmax(-1), labels)


def minus_the_probability(logits, labels):
    """No logarithm."""
    picked = logits.softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    kept = labels != NO_LABEL
    return -(picked * kept).sum() / kept.sum().clamp(min=1)


def exp_overflows(logits, labels):
    """Logarithm of a hand-made softmax."""
    powers = logits.exp()
    picked = (powers / powers.sum(-1, keepdim=True)).log()
    kept = labels != NO_LABEL
    picked = picked.gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -torch.where(kept, picked, 0.0).sum() / kept.sum().clamp(min=1)


def by_selection(logits, labels):
    """Right: picks the labelled rows first."""
    kept = labels != NO_LABEL
    if not kept.any():
        return 0.0 * logits.sum()
    return F.cross_entropy(logits[kept], labels[kept])


def by_logsumexp(logits, labels):
    """Right: log-sum-exp minus the right logit."""
    kept = labels != NO_LABEL
    picked = logits.gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return ((logits.logsumexp(-1) - picked) * kept).sum() / kept.sum().clamp(min=1)


def label_by_label(logits, labels):
    """Right: a loop."""
    places = (labels != NO_LABEL).nonzero().tolist()
    total = torch.zeros((), dtype=logits.dtype)
    for row, place in places:
        total = total - logits[row, place].log_softmax(0)[labels[row, place]]
    return total / (len(places) or 1)


GOLD_LOSS = Exercise(
    id="gold_loss",
    title="Gold labels",
    asks="Give the mean cross-entropy over labelled places.",
    parameters=("logits", "labels"),
    outputs=("loss", "gradient of logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(1.5, "labels here and there"),
        "none": Group(0.5, "a batch without labels"),
    },
    cases=gold_loss_cases,
    reference=gold_loss_reference,
    misconceptions=(
        Misconception(
            nan_without_labels,
            "Without any label, the mean is 0 divided by 0.",
            "What does the contract say about a batch without labels?",
        ),
        Misconception(
            unlabelled_as_class_zero,
            "Places without a label are counted, as if theirs were class 0.",
            "What does −100 mean?",
        ),
        Misconception(
            summed_labels,
            "The losses are summed; the contract asks for their mean.",
            "What happens to your loss if the batch is twice as large?",
        ),
        Misconception(
            mean_over_all_places,
            "The sum is divided by all places, also those without a label.",
            "How many labels are there?",
        ),
        Misconception(
            mean_of_sentence_means,
            "Each sentence is averaged first, so a label in a short one weighs more.",
            "Every label should weigh the same.",
        ),
        Misconception(
            softmax_before_loss,
            "A softmax was taken before a loss that takes another one.",
            "Does your loss function expect logits or probabilities?",
        ),
        Misconception(
            minus_the_probability,
            "There is no logarithm: this is minus the probability.",
            "What is the loss of a label that gets the probability 1? And 0?",
        ),
        Misconception(
            exp_overflows,
            "exp overflows for large logits, or a probability vanishes.",
            "Is there one function for the logarithm of the softmax?",
        ),
    ),
    accepted=(by_selection, by_logsumexp, label_by_label),
)

# --- hard_label_loss -----------------------------------------------------------------------------


def hard_label_cases(rng):
    """Padding with poison; large logits; negative logits only."""
    for group, scale, shift, about in (
        ("values", 2.0, 0.0, "places without a token"),
        ("values", 2.0, -9.0, "negative logits"),
        ("large", 800.0, 0.0, "logits in the hundreds"),
    ):
        batch, length, classes = draw_sizes_of_tokens(rng)
        real = draw_real(rng, batch, length)
        shape = (batch, length, classes)
        yield Case(
            group,
            {
                "student_logits": poisoned(scale * rng.normal(size=shape) + shift, real, 5.0),
                "teacher_logits": poisoned(scale * rng.normal(size=shape) + shift, real, 5.0),
                "real": real,
            },
            about,
        )


def hard_label_reference(student_logits, teacher_logits, real):
    """NumPy finds the labels, PyTorch's loss ignores the padding."""
    labels = np.argmax(teacher_logits.detach().numpy(), axis=-1)
    labels = np.where(real.numpy(), labels, NO_LABEL)
    return gold(student_logits, torch.from_numpy(labels))


def _hard(student_logits, labels, real):
    losses = F.cross_entropy(student_logits.mT, labels, reduction="none")
    return losses[real].mean()


def padding_learned_too(student_logits, teacher_logits, real):
    """All places."""
    return _hard(student_logits, teacher_logits.argmax(-1), torch.ones_like(real))


def roles_exchanged(student_logits, teacher_logits, real):
    """The teacher learns from the student."""
    return _hard(teacher_logits, student_logits.argmax(-1), real)


def students_own_choice(student_logits, teacher_logits, real):
    """The student learns from itself."""
    return _hard(student_logits, student_logits.argmax(-1), real)


def soft_labels_instead(student_logits, teacher_logits, real):
    """Cross-entropy with the teacher's probabilities."""
    aim = teacher_logits.detach().softmax(-1)
    return -(aim * student_logits.log_softmax(-1)).sum(-1)[real].mean()


def least_likely_class(student_logits, teacher_logits, real):
    """argmin."""
    return _hard(student_logits, teacher_logits.argmin(-1), real)


def hard_labels_summed(student_logits, teacher_logits, real):
    """Sum over tokens."""
    return _hard(student_logits, teacher_logits.argmax(-1), real) * real.sum()


def divided_by_all_places(student_logits, teacher_logits, real):
    """Mean over padding, too, with zeros there."""
    losses = F.cross_entropy(student_logits.mT, teacher_logits.argmax(-1), reduction="none")
    return (losses * real).mean()


def sentences_averaged_first(student_logits, teacher_logits, real):
    """A mean for each sentence first."""
    losses = F.cross_entropy(student_logits.mT, teacher_logits.argmax(-1), reduction="none")
    return ((losses * real).sum(1) / real.sum(1)).mean()


def class_over_the_batch(student_logits, teacher_logits, real):
    """One class for the whole batch: that of the mean logits."""
    labels = teacher_logits.mean((0, 1)).argmax().expand(real.shape)
    return _hard(student_logits, labels, real)


def real_rows_only(student_logits, teacher_logits, real):
    """Right: takes the real rows first."""
    return F.cross_entropy(student_logits[real], teacher_logits[real].argmax(-1))


def with_one_hot(student_logits, teacher_logits, real):
    """Right: a one-hot aim."""
    aim = F.one_hot(teacher_logits.argmax(-1), student_logits.shape[-1]) * real[..., None]
    return -(aim * student_logits.log_softmax(-1)).sum() / real.sum()


def with_sorted_classes(student_logits, teacher_logits, real):
    """Right: sorts, and gathers."""
    labels = teacher_logits.sort(-1).indices[..., -1:]
    picked = student_logits.gather(-1, labels)[..., 0] - student_logits.logsumexp(-1)
    return -(picked.masked_fill(~real, 0.0).sum() / real.sum())


HARD_LABEL_LOSS = Exercise(
    id="hard_label_loss",
    title="The teacher's labels",
    asks="Give the mean cross-entropy of the student with the classes that the teacher chooses.",
    parameters=("student_logits", "teacher_logits", "real"),
    outputs=("loss", "gradient of student_logits", "gradient of teacher_logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(1.5, "usual and negative logits"),
        "large": Group(0.5, "large logits"),
    },
    cases=hard_label_cases,
    reference=hard_label_reference,
    misconceptions=(
        Misconception(
            padding_learned_too,
            "Places without a token are counted.",
            "Which places does `real` mark?",
        ),
        Misconception(
            roles_exchanged,
            "The teacher learns from the student here.",
            "Whose logits should get the gradient?",
        ),
        Misconception(
            students_own_choice,
            "The labels are the student's own choices.",
            "Whose logits decide on the label?",
        ),
        Misconception(
            soft_labels_instead,
            "These are soft labels: all the teacher's probabilities take part.",
            "A hard label is one class.",
        ),
        Misconception(
            least_likely_class,
            "The label is the class that the teacher finds least likely.",
            "Largest or smallest logit?",
        ),
        Misconception(
            hard_labels_summed,
            "The losses are summed; the contract asks for their mean.",
            "What happens to your loss if the batch is twice as large?",
        ),
        Misconception(
            divided_by_all_places,
            "The sum is divided by all places, padding too.",
            "How many tokens are there?",
        ),
        Misconception(
            sentences_averaged_first,
            "Each sentence is averaged first, so a token in a short one weighs more.",
            "Every token should weigh the same.",
        ),
        Misconception(
            class_over_the_batch,
            "One class serves for all tokens.",
            "Over which axis does the teacher choose?",
        ),
    ),
    accepted=(real_rows_only, with_one_hot, with_sorted_classes),
    equivalent_mutants={
        "`teacher_logits[real].argmax(dim=-1)` → `teacher_logits[real].argmax(dim=1)`": (
            "the rows were picked: axis 1 is the last one"
        ),
    },
)
