"""Chapter 12: one step of distillation, with a teacher that stays as it is."""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import draw_model


def distillation_step_cases(rng):
    """A teacher with dropout that arrives in training mode; stale gradients in the student."""
    for group, dropout, about in (
        ("values", 0.0, "a teacher without dropout"),
        ("dropout", 0.5, "a teacher with dropout"),
    ):
        student, teacher = (draw_model(rng, 2, width, n, 3) for width, n in ((3, 1), (4, 2)))
        inputs = {
            "student": student,
            "teacher": teacher,
            "stale": {name: rng.normal(size=array.shape) for name, array in student.items()},
            "x": 2 * rng.normal(size=(3, 4, 2)),
            "dropout": dropout,
            "learning_rate": round(float(rng.uniform(0.2, 0.4)), 3),
        }
        yield Case(group, inputs, about)


def step(student, teacher, optimizer, x, loss):
    """Five lines that the wrong versions change."""
    student.train()
    teacher.eval()
    with torch.no_grad():
        aim = teacher(x)
    optimizer.zero_grad()
    value = loss(student(x), aim)
    value.backward()
    optimizer.step()
    return value


def teacher_in_training_mode(student, teacher, optimizer, x, loss):
    """Dropout stays on."""
    teacher.eval = teacher.train
    return step(student, teacher, optimizer, x, loss)


def student_left_in_eval(student, teacher, optimizer, x, loss):
    """Never calls train()."""
    student.train = student.eval
    return step(student, teacher, optimizer, x, loss)


def teacher_recorded(student, teacher, optimizer, x, loss):
    """Detached, but the run is recorded first."""
    student.train()
    teacher.eval()
    optimizer.zero_grad()
    value = loss(student(x), teacher(x).detach())
    value.backward()
    optimizer.step()
    return value


def teacher_gets_gradients(student, teacher, optimizer, x, loss):
    """Nothing is cut off."""
    student.train()
    teacher.eval()
    optimizer.zero_grad()
    value = loss(student(x), teacher(x))
    value.backward()
    optimizer.step()
    return value


def old_gradients_kept(student, teacher, optimizer, x, loss):
    """No zero_grad."""
    optimizer.zero_grad = lambda: None
    return step(student, teacher, optimizer, x, loss)


def gradients_cleared_too_late(student, teacher, optimizer, x, loss):
    """Clears between backward and step."""
    student.train()
    teacher.eval()
    with torch.no_grad():
        aim = teacher(x)
    value = loss(student(x), aim)
    value.backward()
    optimizer.zero_grad()
    optimizer.step()
    return value


def no_step(student, teacher, optimizer, x, loss):
    """Forgets the step."""
    optimizer.step = lambda: None
    return step(student, teacher, optimizer, x, loss)


def two_steps(student, teacher, optimizer, x, loss):
    """Steps twice."""
    value = step(student, teacher, optimizer, x, loss)
    optimizer.step()
    return value


def arguments_exchanged(student, teacher, optimizer, x, loss):
    """`loss(teacher, student)`."""
    student.train()
    teacher.eval()
    with torch.no_grad():
        aim = teacher(x)
    optimizer.zero_grad()
    value = loss(aim, student(x))
    value.backward()
    optimizer.step()
    return value


def loss_after_the_step(student, teacher, optimizer, x, loss):
    """Measures again."""
    step(student, teacher, optimizer, x, loss)
    return loss(student(x), teacher(x).detach()).detach()


def by_inference_mode(student, teacher, optimizer, x, loss):
    """Right: inference_mode, then a clone that autograd may save."""
    teacher.train(False)
    student.train(True)
    with torch.inference_mode():
        aim = teacher(x)
    for parameter in student.parameters():
        parameter.grad = None
    value = loss(student(x), aim.clone())
    value.backward()
    optimizer.step()
    return value.detach()


def by_freezing(student, teacher, optimizer, x, loss):
    """Right: freezes the teacher's parameters."""
    teacher.eval().requires_grad_(False)
    optimizer.zero_grad(set_to_none=False)
    value = loss(student.train()(x), teacher(x))
    value.backward()
    optimizer.step()
    return value


def by_autograd(student, teacher, optimizer, x, loss):
    """Right: asks autograd for the student's gradients."""
    with torch.set_grad_enabled(False):
        aim = teacher.eval()(x)
    student.train()
    parameters = list(student.parameters())
    value = loss(student(x), aim)
    for parameter, gradient in zip(parameters, torch.autograd.grad(value, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()
    return float(value)


DISTILLATION_STEP = Exercise(
    id="distillation_step",
    title="A step with a frozen teacher",
    asks="Make one training step of the student; leave the teacher as it is, without its dropout.",
    parameters=("student", "teacher", "stale", "x", "dropout", "learning_rate"),
    outputs=(
        "loss",
        "student's weights",
        "teacher's weights",
        "teacher's gradients",
        "training mode of student and teacher",
        "teacher recorded for gradients",
        "steps",
    ),
    driver="distillation_step",
    seconds=5.0,
    groups={
        "values": Group(2, "a teacher without dropout"),
        "dropout": Group(2, "a teacher with dropout"),
    },
    cases=distillation_step_cases,
    reference=step,
    misconceptions=(
        Misconception(
            teacher_in_training_mode,
            "The teacher ran in training mode: its dropout makes the targets noisy.",
            "Which method switches dropout off?",
        ),
        Misconception(
            student_left_in_eval,
            "The student ran in evaluation mode while it was trained.",
            "In which mode must the student be?",
        ),
        Misconception(
            teacher_recorded,
            "The teacher's run was recorded for gradients that nobody needs; that costs memory.",
            "Which context manager switches recording off?",
        ),
        Misconception(
            teacher_gets_gradients,
            "The loss sent gradients to the teacher.",
            "Which context manager switches recording off?",
        ),
        Misconception(
            old_gradients_kept,
            "Gradients of the step before were still there.",
            "What has to happen before `backward`?",
        ),
        Misconception(
            gradients_cleared_too_late,
            "The new gradients were cleared before the step.",
            "In which order come `zero_grad`, `backward` and `step`?",
        ),
        Misconception(
            no_step,
            "The student's weights did not move.",
            "In which order come `zero_grad`, `backward` and `step`?",
        ),
        Misconception(
            two_steps,
            "The optimizer made two steps.",
            "Count the calls of `step`.",
        ),
        Misconception(
            loss_after_the_step,
            "The loss that came back was measured after the step.",
            "Which loss does the contract ask for?",
        ),
        Misconception(
            arguments_exchanged,
            "The loss got the teacher's logits first.",
            "In which order does `loss` take its arguments?",
        ),
    ),
    accepted=(by_inference_mode, by_freezing, by_autograd),
    equivalent_mutants={
        "`return value.detach()` → `return value`": (
            "the contract asks for the loss, detached or not"
        ),
    },
)
