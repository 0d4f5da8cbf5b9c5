"""Chapter 12: matching where layers look, their attention weights."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import draw_real


def draw_attention(rng, layers, heads, keys):
    """Draw weights (layers, batch, heads, length, length), exactly 0 at hidden keys."""
    batch, length = keys.shape
    scores = 1.5 * rng.normal(size=(layers, batch, heads, length, length))
    powers = np.exp(scores) * keys[:, None, None, :]
    return powers / powers.sum(-1, keepdims=True)


def attention_loss_cases(rng):
    """Without padding; with padding, where weights are exactly 0; a key the teacher never uses."""
    for group, layer_map, layers, heads, about in (
        ("values", [(1, 2), (0, 1)], (2, 3), 2, "two pairs, no padding"),
        ("padding", [(0, 2)], (2, 3), 1, "one pair, padding"),
        ("padding", [(1, 0), (0, 2)], (2, 3), 1, "two pairs out of order, padding"),
    ):
        batch, length = 2, 3
        real = draw_real(rng, batch, length)
        if group == "values":
            real[:] = True
        student, teacher = (draw_attention(rng, count, heads, real) for count in layers)
        if group == "padding":
            teacher[:, real.all(1), :, :, 0] = 0.0  # a key that the student alone looks at
            teacher /= teacher.sum(-1, keepdims=True)
        inputs = {
            "student_weights": student,
            "teacher_weights": teacher,
            "layer_map": layer_map,
            "real": real,
        }
        yield Case(group, inputs, about)


def attention_loss_reference(student_weights, teacher_weights, layer_map, real):
    """Row by row over the keys that the teacher uses."""
    losses = []
    for s, t in layer_map:
        for sentence, query in real.nonzero().tolist():
            for head in range(student_weights.shape[2]):
                teacher = teacher_weights[t, sentence, head, query].detach()
                student = student_weights[s, sentence, head, query]
                used = teacher > 0
                losses.append((teacher[used] * (teacher[used] / student[used]).log()).sum())
    return torch.stack(losses).mean()


def _picked(student_weights, teacher_weights, layer_map):
    s, t = (list(places) for places in zip(*layer_map, strict=True))
    return student_weights[s], teacher_weights[t].detach()


def _rows(student, teacher):
    """Divergence of every row (pairs, batch, heads, length), with unused keys left out."""
    safe = torch.where(teacher > 0, student, 1.0)
    return (torch.xlogy(teacher, teacher) - teacher * safe.log()).sum(-1)


def _over_queries(rows, real):
    return rows.movedim(2, -1)[:, real].mean()


def zero_times_infinity(student_weights, teacher_weights, layer_map, real):
    """0 · log 0."""
    student, teacher = _picked(student_weights, teacher_weights, layer_map)
    return _over_queries((teacher * (teacher.log() - student.log())).sum(-1), real)


def zero_times_infinity_backwards(student_weights, teacher_weights, layer_map, real):
    """Right values; but the gradient of log 0 is infinite."""
    student, teacher = _picked(student_weights, teacher_weights, layer_map)
    rows = torch.xlogy(teacher, teacher) - torch.where(teacher > 0, teacher * student.log(), 0.0)
    return _over_queries(rows.sum(-1), real)


def zero_times_infinity_in_real_rows(student_weights, teacher_weights, layer_map, real):
    """The same, real queries picked first: NaN in their gradients only."""
    student, teacher = (
        weights.transpose(2, 3)[:, real]
        for weights in _picked(student_weights, teacher_weights, layer_map)
    )
    terms = torch.where(teacher > 0, teacher * (teacher.log() - student.log()), 0.0)
    return terms.sum(-1).mean()


def attention_turned_round(student_weights, teacher_weights, layer_map, real):
    """KL(student ‖ teacher), with a floor under the teacher's zeros."""
    student, teacher = _picked(student_weights, teacher_weights, layer_map)
    return _over_queries(_rows(teacher.clamp(min=1e-12), student), real)


def padded_queries_counted(student_weights, teacher_weights, layer_map, real):
    """All queries."""
    return _rows(*_picked(student_weights, teacher_weights, layer_map)).mean()


def keys_averaged(student_weights, teacher_weights, layer_map, real):
    """A mean over keys, too."""
    student, teacher = _picked(student_weights, teacher_weights, layer_map)
    return _over_queries(_rows(student, teacher), real) / real.shape[1]


def heads_summed(student_weights, teacher_weights, layer_map, real):
    """A sum over heads and a mean over the rest."""
    rows = _rows(*_picked(student_weights, teacher_weights, layer_map))
    return _over_queries(rows, real) * rows.shape[2]


def layers_summed(student_weights, teacher_weights, layer_map, real):
    """A sum over pairs."""
    rows = _rows(*_picked(student_weights, teacher_weights, layer_map))
    return _over_queries(rows, real) * len(layer_map)


def squared_differences(student_weights, teacher_weights, layer_map, real):
    """MSE of weights."""
    student, teacher = _picked(student_weights, teacher_weights, layer_map)
    return _over_queries(((student - teacher) ** 2).mean(-1), real)


def softmax_once_more(student_weights, teacher_weights, layer_map, real):
    """Takes weights for scores."""
    student, teacher = _picked(student_weights, teacher_weights, layer_map)
    return _over_queries(_rows(student.softmax(-1), teacher.softmax(-1)), real)


def entropy_left_in(student_weights, teacher_weights, layer_map, real):
    """Cross-entropy."""
    student, teacher = _picked(student_weights, teacher_weights, layer_map)
    safe = torch.where(teacher > 0, student, 1.0)
    return _over_queries(-(teacher * safe.log()).sum(-1), real)


def first_layers_matched(student_weights, teacher_weights, layer_map, real):
    """Layer i learns from layer i."""
    same = [(s, s) for s, _ in layer_map]
    return _over_queries(_rows(*_picked(student_weights, teacher_weights, same)), real)


def one_layer_further(student_weights, teacher_weights, layer_map, real):
    """Takes index 0 for an embedding's."""
    counts = len(student_weights), len(teacher_weights)
    moved = [((s - 1) % counts[0], (t - 1) % counts[1]) for s, t in layer_map]
    return _over_queries(_rows(*_picked(student_weights, teacher_weights, moved)), real)


def teacher_looks_elsewhere(student_weights, teacher_weights, layer_map, real):
    """Nothing is detached."""
    s, t = (list(places) for places in zip(*layer_map, strict=True))
    return _over_queries(_rows(student_weights[s], teacher_weights[t].clamp(min=1e-30)), real)


def by_a_floor(student_weights, teacher_weights, layer_map, real):
    """Right: both clamped from below."""
    total = 0.0
    for s, t in layer_map:
        student = student_weights[s].clamp(min=1e-12)
        teacher = teacher_weights[t].detach()
        rows = (teacher * (teacher.clamp(min=1e-12).log() - student.log())).sum(-1)
        total = total + rows.transpose(1, 2)[real].mean()
    return total / len(layer_map)


def by_kl_div(student_weights, teacher_weights, layer_map, real):
    """Right: PyTorch's `kl_div`; keys that the teacher does not use get weight 1 before the log."""
    losses = []
    for s, t in layer_map:
        teacher = teacher_weights[t].detach()
        logs = student_weights[s].masked_fill(teacher == 0, 1.0).log()
        rows = F.kl_div(logs, teacher, reduction="none").sum(-1)
        queries = real[:, None, :].expand_as(rows)
        losses.append(rows.masked_select(queries).mean())
    return torch.stack(losses).mean()


def by_small_additions(student_weights, teacher_weights, layer_map, real):
    """Right to many digits: adds a tiny number before every logarithm."""
    pairs = torch.tensor(layer_map)
    student, teacher = student_weights[pairs[:, 0]], teacher_weights[pairs[:, 1]].detach()
    rows = (teacher * ((teacher + 1e-10) / (student + 1e-10)).log()).sum(-1)
    weights = real[None, :, None].expand_as(rows).double()
    return (rows * weights).sum() / weights.sum()


ATTENTION_LOSS = Exercise(
    id="attention_loss",
    title="Attention weights, by a layer map",
    asks="Give the mean divergence of attention rows over the pairs of a layer map.",
    parameters=("student_weights", "teacher_weights", "layer_map", "real"),
    outputs=("loss", "gradient of student_weights", "gradient of teacher_weights"),
    driver="tensor_function",
    seconds=5.0,
    tolerance=Tolerance(1e-5, 1e-7),  # a tiny number added before the logarithm is right
    groups={
        "values": Group(1.5, "without padding"),
        "padding": Group(1.5, "weights that are 0"),
    },
    cases=attention_loss_cases,
    reference=attention_loss_reference,
    misconceptions=(
        Misconception(
            zero_times_infinity,
            "A weight of 0 gives 0 · log 0, which is NaN.",
            "What should a key with the teacher's weight 0 add?",
        ),
        Misconception(
            zero_times_infinity_backwards,
            "The loss is right, but its gradient is NaN: log 0 was computed and then thrown away.",
            "Replace the zeros *before* the logarithm.",
        ),
        Misconception(
            zero_times_infinity_in_real_rows,
            "The loss is right, but its gradient is NaN: log 0 was computed and then thrown away.",
            "Replace the zeros *before* the logarithm.",
        ),
        Misconception(
            attention_turned_round,
            "This is KL(student ‖ teacher): the two are exchanged.",
            "Whose weights stand in front of the logarithms?",
        ),
        Misconception(
            padded_queries_counted,
            "Queries that are no tokens are counted.",
            "Which queries does `real` mark?",
        ),
        Misconception(
            keys_averaged,
            "A mean is taken over keys; a divergence is a sum over them.",
            "One divergence for each query.",
        ),
        Misconception(
            heads_summed,
            "The heads are summed; the contract asks for their mean.",
            "What happens to your loss with twice as many heads?",
        ),
        Misconception(
            layers_summed,
            "The pairs are summed; the contract asks for their mean.",
            "What happens to your loss if a pair is listed twice?",
        ),
        Misconception(
            squared_differences,
            "These are squared differences; the contract asks for a divergence.",
            "Each row is a distribution over keys.",
        ),
        Misconception(
            softmax_once_more,
            "A softmax was taken of what are weights already.",
            "What do the rows of the inputs sum to?",
        ),
        Misconception(
            entropy_left_in,
            "This is the cross-entropy; the divergence is smaller by the teacher's entropy.",
            "What should the loss be if both look at the same places?",
        ),
        Misconception(
            first_layers_matched,
            "Layer i of the student learns from layer i of the teacher, whatever the map says.",
            "Where does the second entry of a pair enter?",
        ),
        Misconception(
            one_layer_further,
            "The indices are one off: embeddings have no attention, so index 0 is the first layer.",
            "The map's numbers are indices into the first axis, as they are.",
        ),
        Misconception(
            teacher_looks_elsewhere,
            "The loss sends a gradient to the teacher.",
            "Cut the teacher's weights off.",
        ),
    ),
    accepted=(by_a_floor, by_kl_div, by_small_additions),
    equivalent_mutants={
        "`weights.masked_fill(unused, 1.0)` → `weights.masked_fill(unused, 2.0)`": (
            "any positive number will do for a key that is multiplied by 0"
        ),
        "`rows.transpose(1, 2)` → `rows.transpose(2, 1)`": (
            "the order of two exchanged axes does not matter"
        ),
    },
)
