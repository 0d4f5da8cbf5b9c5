"""Chapter 12: soft targets with a temperature."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import (
    divergence,
    draw_real,
    draw_sizes_of_tokens,
    poisoned,
)


def soft_loss_cases(rng):
    """Temperatures above and below 1; padding with poison; large logits."""
    for group, scale, low, high, about in (
        ("values", 2.0, 1.8, 2.5, "a temperature above 1"),
        ("values", 1.5, 0.5, 0.7, "a temperature below 1"),
        ("large", 900.0, 3.0, 4.0, "logits in the hundreds"),
    ):
        batch, length, classes = draw_sizes_of_tokens(rng)
        real = draw_real(rng, batch, length)
        shape = (batch, length, classes)
        yield Case(
            group,
            {
                "student_logits": poisoned(scale * rng.normal(size=shape), real, 6.0),
                "teacher_logits": poisoned(scale * rng.normal(size=shape), real, 6.0),
                "real": real,
                "temperature": round(float(rng.uniform(low, high)), 3),
            },
            about,
        )


def soft_loss_reference(student_logits, teacher_logits, real, temperature):
    """Token by token, logits less their log-sum-exp."""
    total = 0.0
    for row, place in real.nonzero().tolist():
        teacher = teacher_logits[row, place].detach() / temperature
        student = student_logits[row, place] / temperature
        gap = teacher - teacher.logsumexp(0) - student + student.logsumexp(0)
        total = total + torch.dot(teacher.softmax(0), gap)
    return temperature**2 * total / int(real.sum())


def _soft(student_logits, teacher_logits, real, temperature):
    teacher = teacher_logits.detach() / temperature
    return temperature**2 * divergence(teacher, student_logits / temperature)[real].mean()


def temperature_on_the_student_only(student_logits, teacher_logits, real, temperature):
    """T on one side."""
    return _soft(student_logits, temperature * teacher_logits, real, temperature)


def temperature_on_the_teacher_only(student_logits, teacher_logits, real, temperature):
    """T on the other side."""
    return _soft(temperature * student_logits, teacher_logits, real, temperature)


def square_forgotten(student_logits, teacher_logits, real, temperature):
    """No T²."""
    return _soft(student_logits, teacher_logits, real, temperature) / temperature**2


def temperature_not_squared(student_logits, teacher_logits, real, temperature):
    """T for T²."""
    return _soft(student_logits, teacher_logits, real, temperature) / temperature


def logits_times_temperature(student_logits, teacher_logits, real, temperature):
    """Multiplies."""
    return temperature**4 * _soft(student_logits, teacher_logits, real, 1 / temperature)


def direction_turned_round(student_logits, teacher_logits, real, temperature):
    """KL(student ‖ teacher)."""
    teacher, student = teacher_logits.detach() / temperature, student_logits / temperature
    return temperature**2 * divergence(student, teacher)[real].mean()


def padding_counted(student_logits, teacher_logits, real, temperature):
    """All places."""
    return _soft(student_logits, teacher_logits, torch.ones_like(real), temperature)


def divided_by_the_batch(student_logits, teacher_logits, real, temperature):
    """`batchmean` over sentences."""
    return _soft(student_logits, teacher_logits, real, temperature) * real.sum() / len(real)


def batchmean_over_everything(student_logits, teacher_logits, real, temperature):
    """`batchmean` of three axes, padding and all: the first thing that many write."""
    everywhere = torch.ones_like(real)
    return _soft(student_logits, teacher_logits, everywhere, temperature) * real.shape[1]


def divided_by_the_classes_too(student_logits, teacher_logits, real, temperature):
    """`reduction="mean"`."""
    classes = student_logits.shape[-1]
    return _soft(student_logits, teacher_logits, real, temperature) / classes


def divided_by_padding_too(student_logits, teacher_logits, real, temperature):
    """Zeros at padding take part in the mean."""
    return _soft(student_logits, teacher_logits, real, temperature) * real.double().mean()


def sentence_means_first(student_logits, teacher_logits, real, temperature):
    """A mean for each sentence first."""
    teacher = teacher_logits.detach() / temperature
    rows = divergence(teacher, student_logits / temperature) * real
    return temperature**2 * (rows.sum(1) / real.sum(1)).mean()


def probabilities_for_logarithms(student_logits, teacher_logits, real, temperature):
    """`kl_div` with probabilities as its first argument."""
    student = (student_logits / temperature).softmax(-1)[real]
    teacher = (teacher_logits.detach() / temperature).softmax(-1)[real]
    return temperature**2 * F.kl_div(student, teacher, reduction="batchmean")


def divided_after_the_logarithm(student_logits, teacher_logits, real, temperature):
    """log-softmax first, then / T."""
    student = student_logits.log_softmax(-1)[real] / temperature
    teacher = (teacher_logits.detach() / temperature).softmax(-1)[real]
    return temperature**2 * F.kl_div(student, teacher, reduction="batchmean")


def cross_entropy_for_divergence(student_logits, teacher_logits, real, temperature):
    """Without the teacher's entropy: the same gradient, another value."""
    teacher = (teacher_logits.detach() / temperature).softmax(-1)[real]
    student = (student_logits / temperature).log_softmax(-1)[real]
    return -(temperature**2) * (teacher * student).sum(-1).mean()


def teacher_learns_too(student_logits, teacher_logits, real, temperature):
    """Nothing is detached."""
    rows = divergence(teacher_logits / temperature, student_logits / temperature)
    return temperature**2 * rows[real].mean()


def square_and_cut_forgotten(student_logits, teacher_logits, real, temperature):
    """No T², nothing detached: the first thing that many write."""
    rows = divergence(teacher_logits / temperature, student_logits / temperature)
    return rows[real].mean()


def softmax_overflows(student_logits, teacher_logits, real, temperature):
    """Logarithm of a softmax."""
    teacher = (teacher_logits.detach() / temperature).softmax(-1)
    student = (student_logits / temperature).softmax(-1)
    return temperature**2 * (teacher * (teacher / student).log()).sum(-1)[real].mean()


def by_kl_div(student_logits, teacher_logits, real, temperature):
    """Right: PyTorch's `kl_div` over real rows, both as logarithms."""
    student, teacher = (
        (logits[real] / temperature).log_softmax(-1)
        for logits in (student_logits, teacher_logits.detach())
    )
    return temperature**2 * F.kl_div(student, teacher, reduction="batchmean", log_target=True)


def by_cross_entropy_less_entropy(student_logits, teacher_logits, real, temperature):
    """Right: cross-entropy minus the teacher's entropy."""
    with torch.no_grad():
        aim = (teacher_logits / temperature).softmax(-1)
        entropy = torch.special.entr(aim).sum(-1)
    crossed = F.cross_entropy((student_logits / temperature).mT, aim.mT, reduction="none")
    return ((crossed - entropy) * real).sum() / real.sum() * temperature**2


def by_hand_with_zeros(student_logits, teacher_logits, real, temperature):
    """Right: by hand, zeros at padding, divided by the number of tokens."""
    student = student_logits / temperature
    student = student - student.logsumexp(-1, keepdim=True)
    teacher = teacher_logits.detach() / temperature
    teacher = teacher - teacher.logsumexp(-1, keepdim=True)
    rows = torch.einsum("blc,blc->bl", teacher.exp(), teacher - student)
    return torch.where(real, rows, 0.0).sum() * temperature * temperature / real.sum()


SOFT_LOSS = Exercise(
    id="soft_loss",
    title="Soft targets with a temperature",
    asks="Give T² times the mean divergence of the student from the softened teacher.",
    parameters=("student_logits", "teacher_logits", "real", "temperature"),
    outputs=("loss", "gradient of student_logits", "gradient of teacher_logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(3, "temperatures above and below 1"),
        "large": Group(1, "large logits"),
    },
    cases=soft_loss_cases,
    reference=soft_loss_reference,
    misconceptions=(
        Misconception(
            temperature_on_the_student_only,
            "Only the student's logits are divided by the temperature.",
            "Both distributions are softened.",
        ),
        Misconception(
            temperature_on_the_teacher_only,
            "Only the teacher's logits are divided by the temperature.",
            "Both distributions are softened.",
        ),
        Misconception(
            square_forgotten,
            "The factor T² is missing.",
            "How do the gradients shrink when T grows?",
        ),
        Misconception(
            temperature_not_squared,
            "The factor is T instead of T².",
            "How do the gradients shrink when T grows?",
        ),
        Misconception(
            logits_times_temperature,
            "The logits are multiplied by the temperature, which makes them sharper.",
            "Should a high temperature give a flatter distribution?",
        ),
        Misconception(
            direction_turned_round,
            "This is KL(student ‖ teacher): the two are exchanged.",
            "Whose probabilities weigh the logarithms?",
        ),
        Misconception(
            padding_counted,
            "Places without a token are counted.",
            "Which places does `real` mark?",
        ),
        Misconception(
            divided_by_the_batch,
            "The sum is divided by the number of sentences: `batchmean` of three axes does that.",
            "How many tokens are there?",
        ),
        Misconception(
            batchmean_over_everything,
            "Padding is counted, and the sum is divided by the number of sentences: `batchmean` of "
            "three axes does that.",
            "Pick the real tokens first. How many axes are left then?",
        ),
        Misconception(
            divided_by_the_classes_too,
            'The sum is divided by the number of classes, too: `reduction="mean"` does that.',
            "One divergence for each token: a sum over classes.",
        ),
        Misconception(
            divided_by_padding_too,
            "The sum is divided by all places, padding too.",
            "How many tokens are there?",
        ),
        Misconception(
            sentence_means_first,
            "Each sentence is averaged first, so a token in a short one weighs more.",
            "Every token should weigh the same.",
        ),
        Misconception(
            probabilities_for_logarithms,
            "`kl_div` got probabilities where it wants log-probabilities.",
            "A divergence is never negative. What does `F.kl_div` ask of its first argument?",
        ),
        Misconception(
            divided_after_the_logarithm,
            "The student's log-probabilities are divided by T: they no longer sum to 1.",
            "Divide the logits, then take the log-softmax.",
        ),
        Misconception(
            cross_entropy_for_divergence,
            "This is the cross-entropy; the divergence is smaller by the teacher's entropy.",
            "What should the loss be if student and teacher agree?",
        ),
        Misconception(
            teacher_learns_too,
            "The loss sends a gradient to the teacher.",
            "Cut the teacher's logits off.",
        ),
        Misconception(
            square_and_cut_forgotten,
            "Two things: the factor T² is missing, and the loss sends a gradient to the teacher.",
            "Read points 1 and 3 of the contract again.",
        ),
        Misconception(
            softmax_overflows,
            "A probability vanishes and its logarithm is infinite.",
            "Is there one function for the logarithm of the softmax?",
        ),
    ),
    accepted=(by_kl_div, by_cross_entropy_less_entropy, by_hand_with_zeros),
    equivalent_mutants={
        "`(student_logits[real] / temperature).log_softmax(dim=-1)` → `(student_logits[real] "
        "/ temperature).log_softmax(dim=1)`": ("the rows were picked: axis 1 is the last one"),
        "`(teacher_logits[real].detach() / temperature).log_softmax(dim=-1)` → "
        "`(teacher_logits[real].detach() / temperature).log_softmax(dim=1)`": (
            "the rows were picked: axis 1 is the last one"
        ),
        "`(teacher.exp() * (teacher - student)).sum(dim=-1)` → `(teacher.exp() * (teacher - "
        "student)).sum(dim=1)`": ("the rows were picked: axis 1 is the last one"),
    },
)
