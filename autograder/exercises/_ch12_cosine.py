"""Chapter 12: matching final states by their direction."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import draw_real, poisoned


def cosine_loss_cases(rng):
    """Equal widths without a projection; a narrower student with one; vectors of all lengths."""
    for group, widths, about in (
        ("equal", (5, 5), "equal widths"),
        ("projection", (3, 5), "a narrower student"),
        ("projection", (4, 4), "equal widths and a projection"),
    ):
        batch, length = 2, 4 if widths == (3, 5) else 3
        real = draw_real(rng, batch, length)
        lengths = rng.uniform(0.3, 3.0, size=(batch, length, 1))
        student = rng.normal(size=(batch, length, widths[0]))
        inputs = {
            "student_states": poisoned(student * lengths, real),
            "teacher_states": poisoned(rng.normal(size=(batch, length, widths[1])), real),
            "projection": rng.normal(size=widths) if group == "projection" else None,
            "real": real,
        }
        yield Case(group, inputs, about)


def cosine_loss_reference(student_states, teacher_states, projection, real):
    """PyTorch's own loss with all targets 1."""
    if projection is not None:
        student_states = student_states @ projection
    student, teacher = student_states[real], teacher_states[real].detach()
    return F.cosine_embedding_loss(student, teacher, torch.ones(len(student)))


def _projected(states, projection):
    return states if projection is None else states @ projection


def _cosines(student_states, teacher_states, projection):
    student = _projected(student_states, projection)
    return F.cosine_similarity(student, teacher_states.detach(), dim=-1)


def cosine_itself(student_states, teacher_states, projection, real):
    """Without 1 −: smaller means worse."""
    return _cosines(student_states, teacher_states, projection)[real].mean()


def minus_the_cosine(student_states, teacher_states, projection, real):
    """The same gradient, another value."""
    return -_cosines(student_states, teacher_states, projection)[real].mean()


def lengths_not_divided_out(student_states, teacher_states, projection, real):
    """The dot product."""
    student = _projected(student_states, projection)
    return 1 - (student * teacher_states.detach()).sum(-1)[real].mean()


def squared_distance(student_states, teacher_states, projection, real):
    """Mean squared error."""
    student = _projected(student_states, projection)
    return F.mse_loss(student[real], teacher_states.detach()[real])


def angle_at_padding(student_states, teacher_states, projection, real):
    """All places."""
    return 1 - _cosines(student_states, teacher_states, projection).mean()


def one_cosine_for_a_sentence(student_states, teacher_states, projection, real):
    """All real states of a sentence as one long vector."""
    student = (_projected(student_states, projection) * real[..., None]).flatten(1)
    teacher = (teacher_states.detach() * real[..., None]).flatten(1)
    return 1 - F.cosine_similarity(student, teacher, dim=-1).mean()


def cosine_of_columns(student_states, teacher_states, projection, real):
    """Along the tokens."""
    student = _projected(student_states, projection)[real]
    return 1 - F.cosine_similarity(student, teacher_states.detach()[real], dim=0).mean()


def projection_transposed(student_states, teacher_states, projection, real):
    """The wrong way round; shapes fit only for equal widths."""
    turned = None if projection is None else projection.mT
    return 1 - _cosines(student_states, teacher_states, turned)[real].mean()


def teacher_projected(student_states, teacher_states, projection, real):
    """Brings the teacher to the student's width."""
    teacher = teacher_states if projection is None else teacher_states @ projection.mT
    return 1 - F.cosine_similarity(student_states, teacher.detach(), dim=-1)[real].mean()


def teacher_turned_too(student_states, teacher_states, projection, real):
    """Nothing is detached."""
    student = _projected(student_states, projection)
    return 1 - F.cosine_similarity(student, teacher_states, dim=-1)[real].mean()


def cosines_summed(student_states, teacher_states, projection, real):
    """Sum over tokens."""
    return (1 - _cosines(student_states, teacher_states, projection)[real]).sum()


def sentence_cosines_first(student_states, teacher_states, projection, real):
    """A mean for each sentence first."""
    rows = (1 - _cosines(student_states, teacher_states, projection)) * real
    return (rows.sum(1) / real.sum(1)).mean()


def by_unit_vectors(student_states, teacher_states, projection, real):
    """Right: normalise, multiply."""
    student = F.normalize(_projected(student_states, projection)[real], dim=-1)
    teacher = F.normalize(teacher_states[real].detach(), dim=-1)
    return 1 - (student * teacher).sum(-1).mean()


def by_norms(student_states, teacher_states, projection, real):
    """Right: by hand, zeros at padding."""
    student = _projected(student_states, projection)
    with torch.no_grad():
        teacher = teacher_states / teacher_states.norm(dim=-1, keepdim=True)
    cosines = torch.einsum("bld,bld->bl", student, teacher) / student.norm(dim=-1)
    return ((1 - cosines) * real).sum() / real.sum()


def by_half_the_squared_distance(student_states, teacher_states, projection, real):
    """Right: for unit vectors, half the squared distance."""
    student = F.normalize(_projected(student_states, projection), dim=-1)
    teacher = F.normalize(teacher_states.detach(), dim=-1)
    return ((student - teacher) ** 2).sum(-1)[real].mean() / 2


COSINE_LOSS = Exercise(
    id="cosine_loss",
    title="Final states, by direction",
    asks="Give the mean of one minus the cosine of student's and teacher's states.",
    parameters=("student_states", "teacher_states", "projection", "real"),
    outputs=("loss", "gradient of student_states", "gradient of teacher_states"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "equal": Group(1.5, "equal widths"),
        "projection": Group(1.5, "a projection"),
    },
    cases=cosine_loss_cases,
    reference=cosine_loss_reference,
    misconceptions=(
        Misconception(
            cosine_itself,
            "This is the cosine itself: minimising it turns the student away.",
            "What should the loss be for two vectors of the same direction?",
        ),
        Misconception(
            minus_the_cosine,
            "This is minus the cosine; the contract adds 1.",
            "What should the loss be for two vectors of the same direction?",
        ),
        Misconception(
            lengths_not_divided_out,
            "The dot product is taken without dividing by the lengths.",
            "What should happen to the loss if a state is doubled?",
        ),
        Misconception(
            squared_distance,
            "This is a squared distance; only the direction should count.",
            "What should happen to the loss if a state is doubled?",
        ),
        Misconception(
            angle_at_padding,
            "Places without a token are counted.",
            "Which places does `real` mark?",
        ),
        Misconception(
            one_cosine_for_a_sentence,
            "A whole sentence is taken for one vector.",
            "One cosine for each token.",
        ),
        Misconception(
            cosine_of_columns,
            "The cosine runs along the tokens.",
            "Which axis holds the features?",
        ),
        Misconception(
            projection_transposed,
            "The projection is used transposed.",
            "Which of its axes is the student's width?",
        ),
        Misconception(
            teacher_projected,
            "The teacher is projected to the student's width.",
            "Which of the two does the contract project?",
        ),
        Misconception(
            teacher_turned_too,
            "The loss sends a gradient to the teacher.",
            "Cut the teacher's states off.",
        ),
        Misconception(
            cosines_summed,
            "The losses are summed; the contract asks for their mean.",
            "What happens to your loss if the batch is twice as large?",
        ),
        Misconception(
            sentence_cosines_first,
            "Each sentence is averaged first, so a token in a short one weighs more.",
            "Every token should weigh the same.",
        ),
    ),
    accepted=(by_unit_vectors, by_norms, by_half_the_squared_distance),
    equivalent_mutants={
        "`F.cosine_similarity(student_states, teacher_states.detach(), dim=-1)` → "
        "`F.cosine_similarity(teacher_states.detach(), student_states, dim=-1)`": (
            "a cosine is the same from both sides"
        ),
    },
)
