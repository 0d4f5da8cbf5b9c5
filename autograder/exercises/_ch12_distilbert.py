"""Chapter 12: a student cut out of its teacher, as DistilBERT was."""

from __future__ import annotations

import copy

import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import draw_model


def initialise_cases(rng):
    """Even and odd numbers of teacher layers."""
    for group, layers, about in (
        ("even", (2, 4), "two layers of four"),
        ("odd", (2, 3), "two layers of three"),
    ):
        student, teacher = (draw_model(rng, 3, 2, count, 4) for count in layers)
        yield Case(group, {"student": student, "teacher": teacher}, about)


def initialise_reference(student, teacher):
    """One state dict with renamed layers."""
    state = {}
    for name, tensor in teacher.state_dict().items():
        parts = name.split(".")
        if parts[0] == "layers":
            if int(parts[1]) % 2:
                continue
            parts[1] = str(int(parts[1]) // 2)
        state[".".join(parts)] = tensor.clone()
    student.load_state_dict(state)


def _fill(student, teacher, chosen, whole=("embedding", "head")):
    for name in whole:
        getattr(student, name).load_state_dict(getattr(teacher, name).state_dict())
    for layer, number in zip(student.layers, chosen, strict=False):
        layer.load_state_dict(teacher.layers[number].state_dict())


def _even(student):
    return range(0, 2 * len(student.layers), 2)


def first_layers_taken(student, teacher):
    """0, 1, 2 …"""
    _fill(student, teacher, range(len(student.layers)))


def last_layers_taken(student, teacher):
    """The last ones."""
    count = len(teacher.layers)
    _fill(student, teacher, range(count - len(student.layers), count))


def odd_layers_taken(student, teacher):
    """1, 3, 5 …"""
    _fill(student, teacher, [min(n + 1, len(teacher.layers) - 1) for n in _even(student)])


def order_reversed(student, teacher):
    """Every second layer, from the top."""
    _fill(student, teacher, list(_even(student))[::-1])


def first_layer_everywhere(student, teacher):
    """Layer 0 into all."""
    _fill(student, teacher, [0] * len(student.layers))


def embedding_forgotten(student, teacher):
    """Layers and head."""
    _fill(student, teacher, _even(student), whole=("head",))


def head_forgotten(student, teacher):
    """Embedding and layers."""
    _fill(student, teacher, _even(student), whole=("embedding",))


def layers_forgotten(student, teacher):
    """Embedding and head."""
    _fill(student, teacher, [])


def weights_without_biases(student, teacher):
    """Copies `weight` only."""
    before = [layer.bias.detach().clone() for layer in student.layers]
    _fill(student, teacher, _even(student))
    for layer, bias in zip(student.layers, before, strict=True):
        layer.bias.data = bias


def parameters_shared(student, teacher):
    """Assigns: student and teacher hold the same memory."""
    for ours, theirs in zip(student.layers, teacher.layers[::2], strict=True):
        ours.weight, ours.bias = theirs.weight, theirs.bias
    student.embedding.weight, student.head.weight = teacher.embedding.weight, teacher.head.weight


def embedding_and_head_shared(student, teacher):
    """Copies the layers, but the student's other modules are the teacher's own."""
    _fill(student, teacher, _even(student), whole=())
    student.embedding, student.head = teacher.embedding, teacher.head


def student_frozen(student, teacher):
    """Freezes what it copied."""
    _fill(student, teacher, _even(student))
    student.requires_grad_(False)


def teacher_filled(student, teacher):
    """The wrong way round."""
    _fill(teacher, student, [0] * 0)
    for ours, theirs in zip(student.layers, teacher.layers[::2], strict=True):
        theirs.load_state_dict(ours.state_dict())


def module_by_module(student, teacher):
    """Right: loads module by module."""
    _fill(student, teacher, _even(student))


def by_deep_copies(student, teacher):
    """Right: replaces the student's modules by copies."""
    student.embedding = copy.deepcopy(teacher.embedding)
    student.head = copy.deepcopy(teacher.head)
    student.layers = torch.nn.ModuleList(copy.deepcopy(layer) for layer in teacher.layers[::2])


def parameter_by_parameter(student, teacher):
    """Right: copies into the memory of each parameter, found by name."""
    with torch.no_grad():
        for name, parameter in student.named_parameters():
            first, *rest = name.split(".")
            if first == "layers":
                rest[0] = str(2 * int(rest[0]))
            parameter.copy_(teacher.get_parameter(".".join([first, *rest])))


INITIALISE_FROM_TEACHER = Exercise(
    id="initialise_from_teacher",
    title="Every second layer",
    asks="Fill a student of half the depth with every second layer of its teacher.",
    parameters=("student", "teacher"),
    outputs=(
        "student's weights",
        "teacher's weights",
        "trainable parameters of the student",
        "teacher's weights after the student has changed",
    ),
    driver="initialiser",
    seconds=5.0,
    groups={
        "even": Group(1.5, "an even number of layers"),
        "odd": Group(0.5, "an odd number of layers"),
    },
    cases=initialise_cases,
    reference=initialise_reference,
    misconceptions=(
        Misconception(
            first_layers_taken,
            "The student got the teacher's first layers, one after the other.",
            "Every *second* layer.",
        ),
        Misconception(
            last_layers_taken,
            "The student got the teacher's last layers.",
            "Every *second* layer, beginning with number 0.",
        ),
        Misconception(
            odd_layers_taken,
            "Layers 1, 3 … were taken; the contract begins with number 0.",
            "Which layer of the teacher becomes the student's first?",
        ),
        Misconception(
            order_reversed,
            "The right layers, from the top down.",
            "The student's layer 0 reads the embedding.",
        ),
        Misconception(
            first_layer_everywhere,
            "Every layer got the teacher's layer 0.",
            "What does your loop variable do?",
        ),
        Misconception(
            embedding_forgotten,
            "The embedding is not the teacher's.",
            "Which modules have weights, apart from layers?",
        ),
        Misconception(
            head_forgotten,
            "The head is not the teacher's.",
            "Which modules have weights, apart from layers?",
        ),
        Misconception(
            layers_forgotten,
            "The layers are not the teacher's.",
            "How are the names of the student's layers numbered?",
        ),
        Misconception(
            weights_without_biases,
            "The biases of the layers were not copied.",
            "Which parameters does a layer have?",
        ),
        Misconception(
            parameters_shared,
            "Student and teacher hold the same parameters: if one learns, the other changes.",
            "Copy the numbers, not the parameters.",
        ),
        Misconception(
            embedding_and_head_shared,
            "Embedding and head are the teacher's own: if the student learns, the teacher changes.",
            "Copy the numbers, not the modules.",
        ),
        Misconception(
            student_frozen,
            "The student's parameters are frozen, so it cannot learn.",
            "Which of the two should be trained?",
        ),
        Misconception(
            teacher_filled,
            "The teacher was filled from the student.",
            "Whose `load_state_dict` is to be called?",
        ),
    ),
    accepted=(module_by_module, by_deep_copies, parameter_by_parameter),
)
