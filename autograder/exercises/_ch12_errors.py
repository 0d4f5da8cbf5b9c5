"""Chapter 12: does the student copy its teacher's mistakes?"""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import NO_LABEL


def copied_errors_cases(rng):
    """Answers of every kind, each kind in another number; no label at some places."""
    for group, mistakes, about in (
        ("values", 3, "a teacher that errs"),
        ("values", 3, "another one"),
        ("edges", 1, "a teacher with one mistake"),
        ("edges", 0, "a teacher without a mistake"),
    ):
        counts = rng.permutation([3, 4, 5, 6])
        if mistakes < 3:
            counts = [5, mistakes, 0, 0]
        yield Case(group, _answers(rng, *counts, unlabelled=int(rng.integers(6, 9))), about)


def _answers(rng, student_alone_wrong, copied, differently_wrong, teacher_alone_wrong, unlabelled):
    """Answers of student and teacher, so many of each kind; both are right elsewhere."""
    batch, length, classes = 5, 7, 4
    label = rng.integers(0, classes, batch * length)
    wrong = (label + rng.integers(1, classes, batch * length)) % classes
    other = (wrong + 1) % classes
    other = np.where(other == label, (other + 1) % classes, other)
    kinds = np.repeat(
        [1, 2, 3, 4, 5],
        [student_alone_wrong, copied, differently_wrong, teacher_alone_wrong, unlabelled],
    )
    kinds = rng.permutation(np.append(kinds, np.zeros(batch * length - len(kinds), dtype=int)))
    arrays = {
        "student": np.choose(kinds, [label, wrong, wrong, other, label, wrong]),
        "teacher": np.choose(kinds, [label, label, wrong, wrong, wrong, wrong]),
        "labels": np.where(kinds == 5, NO_LABEL, label),
    }
    return {name: a.reshape(batch, length).astype(np.int64) for name, a in arrays.items()}


def copied_errors_reference(student, teacher, labels):
    """By Python loops."""
    rows = [
        (s, t, g)
        for s, t, g in zip(
            student.flatten().tolist(),
            teacher.flatten().tolist(),
            labels.flatten().tolist(),
            strict=True,
        )
        if g != NO_LABEL
    ]
    errors = [(s, t) for s, t, g in rows if t != g]
    agreement = sum(s == t for s, t, _ in rows) / len(rows)
    return agreement, sum(s == t for s, t in errors) / len(errors) if errors else 0.0


def _share(hits, among):
    return float((hits & among).sum() / among.sum()) if among.any() else 0.0


def _agreement(student, teacher, labels):
    return _share(student == teacher, labels != NO_LABEL)


def _errors(answers, labels):
    return (answers != labels) & (labels != NO_LABEL)


def unlabelled_places_counted(student, teacher, labels):
    """Every place counts; where there is no label, the teacher is wrong."""
    return float((student == teacher).double().mean()), _share(
        student == teacher, teacher != labels
    )


def accuracy_for_agreement(student, teacher, labels):
    """Compares the student with the gold labels."""
    copied = _share(student == teacher, _errors(teacher, labels))
    return _share(student == labels, labels != NO_LABEL), copied


def any_error_is_a_copy(student, teacher, labels):
    """The student is wrong, too, no matter how."""
    copied = _share(_errors(student, labels), _errors(teacher, labels))
    return _agreement(student, teacher, labels), copied


def among_the_students_errors(student, teacher, labels):
    """Share of the student's mistakes that are the teacher's."""
    copied = _share(student == teacher, _errors(student, labels))
    return _agreement(student, teacher, labels), copied


def among_all_tokens(student, teacher, labels):
    """Divides by all labelled tokens."""
    copied = _share((student == teacher) & _errors(teacher, labels), labels != NO_LABEL)
    return _agreement(student, teacher, labels), copied


def among_all_errors(student, teacher, labels):
    """Divides by the tokens where one of them errs."""
    either = _errors(teacher, labels) | _errors(student, labels)
    copied = _share((student == teacher) & _errors(teacher, labels), either)
    return _agreement(student, teacher, labels), copied


def students_and_teachers_places_exchanged(student, teacher, labels):
    """Counts corrected mistakes."""
    corrected = _share(student != teacher, _errors(teacher, labels))
    return _agreement(student, teacher, labels), corrected


def undefined_for_a_perfect_teacher(student, teacher, labels):
    """0/0."""
    errors = _errors(teacher, labels)
    copied = float((student == teacher)[errors].double().mean())
    return _agreement(student, teacher, labels), copied


def by_masked_rows(student, teacher, labels):
    """Right: selects, then means."""
    kept = labels != NO_LABEL
    student, teacher, labels = student[kept], teacher[kept], labels[kept]
    same = (student == teacher).double()
    wrong = teacher != labels
    return same.mean(), same[wrong].mean() if wrong.any() else 0.0


def by_numpy(student, teacher, labels):
    """Right: NumPy, with a floor of one for the count."""
    student, teacher, labels = (t.numpy() for t in (student, teacher, labels))
    kept = labels != NO_LABEL
    wrong = kept & (teacher != labels)
    same = student == teacher
    return np.mean(same[kept]), (same & wrong).sum() / max(wrong.sum(), 1)


def by_counting(student, teacher, labels):
    """Right: integer counts and Python's division."""
    kept = (labels != NO_LABEL).int()
    same = (student == teacher).int() * kept
    wrong = (teacher != labels).int() * kept
    errors = int(wrong.sum())
    copied = int((same * wrong).sum()) / errors if errors else 0.0
    return int(same.sum()) / int(kept.sum()), copied


COPIED_ERRORS = Exercise(
    id="copied_errors",
    title="Does the student copy mistakes?",
    asks="Give how often student and teacher agree, and how many of its mistakes are copied.",
    parameters=("student", "teacher", "labels"),
    outputs=("agreement", "copied"),
    driver="tensor_function",
    groups={
        "values": Group(1.5, "a teacher that errs"),
        "edges": Group(0.5, "one mistake, and none"),
    },
    cases=copied_errors_cases,
    reference=copied_errors_reference,
    misconceptions=(
        Misconception(
            unlabelled_places_counted,
            "Places without a label are counted.",
            "What does −100 mean?",
        ),
        Misconception(
            accuracy_for_agreement,
            "The first number compares the student with the labels: that is its accuracy.",
            "Which two answers agree?",
        ),
        Misconception(
            any_error_is_a_copy,
            "Every mistake of the student counts as a copy, also another wrong class.",
            "A copy is the *same* class.",
        ),
        Misconception(
            among_the_students_errors,
            "This is the share of the student's mistakes, not of the teacher's.",
            "Out of which tokens is the share taken?",
        ),
        Misconception(
            among_all_tokens,
            "Copies are divided by all labelled tokens.",
            "Out of which tokens is the share taken?",
        ),
        Misconception(
            among_all_errors,
            "Copies are divided by the tokens where either of them errs.",
            "Out of which tokens is the share taken?",
        ),
        Misconception(
            students_and_teachers_places_exchanged,
            "This counts mistakes of the teacher that the student did *not* copy.",
            "Equal or unequal?",
        ),
        Misconception(
            undefined_for_a_perfect_teacher,
            "If the teacher makes no mistake, 0 is divided by 0.",
            "What does the contract say about a perfect teacher?",
        ),
    ),
    accepted=(by_masked_rows, by_numpy, by_counting),
)
