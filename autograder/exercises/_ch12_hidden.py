"""Chapter 12: matching hidden states by a layer map."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import draw_real, poisoned


def hidden_loss_cases(rng):
    """A student of two layers and a teacher of four; maps that skip; narrower and equal widths."""
    for group, layer_map, widths, about in (
        ("values", [(1, 2), (2, 4)], (2, 4), "every second layer, a narrower student"),
        ("values", [(2, 1)], (2, 2), "one pair, equal widths"),
        ("embeddings", [(0, 0), (2, 3), (1, 1)], (4, 2), "the embeddings too, out of order"),
    ):
        batch, length = 2, 3
        real = draw_real(rng, batch, length)
        student = rng.normal(size=(3, batch, length, widths[0]))
        teacher = rng.normal(size=(5, batch, length, widths[1]))
        inputs = {
            "student_states": poisoned(student, real, 10.0),
            "teacher_states": poisoned(teacher, real, 10.0),
            "layer_map": layer_map,
            "projection": rng.normal(size=widths),
            "real": real,
        }
        yield Case(group, inputs, about)


def hidden_loss_reference(student_states, teacher_states, layer_map, projection, real):
    """One pair after the other, PyTorch's own loss."""
    losses = [
        F.mse_loss((student_states[s] @ projection)[real], teacher_states[t][real].detach())
        for s, t in layer_map
    ]
    return sum(losses) / len(losses)


def _pairs(layer_map):
    return [list(places) for places in zip(*layer_map, strict=True)]


def _hidden(student_states, teacher_states, layer_map, projection, real):
    """Squared differences (pairs, tokens, width)."""
    s, t = _pairs(layer_map)
    difference = student_states[s] @ projection - teacher_states[t].detach()
    return difference[:, real] ** 2


def pairs_turned_round(student_states, teacher_states, layer_map, projection, real):
    """Reads a pair as (teacher, student); the student has fewer layers, so it wraps round."""
    turned = [(t % len(student_states), s) for s, t in layer_map]
    return _hidden(student_states, teacher_states, turned, projection, real).mean()


def map_ignored(student_states, teacher_states, layer_map, projection, real):
    """Layer i learns from layer i."""
    same = [(s, s) for s, _ in layer_map]
    return _hidden(student_states, teacher_states, same, projection, real).mean()


def embeddings_not_counted(student_states, teacher_states, layer_map, projection, real):
    """One layer too far."""
    moved = [((s + 1) % len(student_states), (t + 1) % len(teacher_states)) for s, t in layer_map]
    return _hidden(student_states, teacher_states, moved, projection, real).mean()


def last_layers_only(student_states, teacher_states, layer_map, projection, real):
    """The last state of both."""
    return _hidden(student_states, teacher_states, [(-1, -1)], projection, real).mean()


def pairs_summed(student_states, teacher_states, layer_map, projection, real):
    """Sum over pairs, mean over the rest."""
    squares = _hidden(student_states, teacher_states, layer_map, projection, real)
    return squares.mean((1, 2)).sum()


def features_summed(student_states, teacher_states, layer_map, projection, real):
    """A squared distance for each token."""
    return _hidden(student_states, teacher_states, layer_map, projection, real).sum(-1).mean()


def root_of_the_mean(student_states, teacher_states, layer_map, projection, real):
    """RMSE."""
    return _hidden(student_states, teacher_states, layer_map, projection, real).mean().sqrt()


def absolute_differences(student_states, teacher_states, layer_map, projection, real):
    """L1."""
    return _hidden(student_states, teacher_states, layer_map, projection, real).sqrt().mean()


def states_of_padding(student_states, teacher_states, layer_map, projection, real):
    """All places."""
    everywhere = torch.ones_like(real)
    return _hidden(student_states, teacher_states, layer_map, projection, everywhere).mean()


def zeros_of_padding(student_states, teacher_states, layer_map, projection, real):
    """Divides by padding, too."""
    squares = _hidden(student_states, teacher_states, layer_map, projection, real)
    return squares.mean() * real.double().mean()


def projected_after_the_difference(student_states, teacher_states, layer_map, projection, real):
    """Projects the teacher down."""
    s, t = _pairs(layer_map)
    difference = student_states[s] - teacher_states[t].detach() @ projection.mT
    return (difference[:, real] ** 2).mean()


def teacher_moves_too(student_states, teacher_states, layer_map, projection, real):
    """Nothing is detached."""
    s, t = _pairs(layer_map)
    difference = student_states[s] @ projection - teacher_states[t]
    return (difference[:, real] ** 2).mean()


def all_pairs_at_once(student_states, teacher_states, layer_map, projection, real):
    """Right: index lists, one product."""
    s, t = torch.tensor(layer_map).T
    return F.mse_loss(
        (student_states @ projection)[s][:, real], teacher_states.detach()[t][:, real]
    )


def masked_sums(student_states, teacher_states, layer_map, projection, real):
    """Right: zeros at padding, divided by the count."""
    total, count = 0.0, 0
    for s, t in layer_map:
        difference = torch.matmul(student_states[s], projection) - teacher_states[t].detach()
        total = total + (difference.square() * real[..., None]).sum()
        count = count + real.sum() * projection.shape[1]
    return total / count


def token_by_token(student_states, teacher_states, layer_map, projection, real):
    """Right: a loop over tokens."""
    losses = []
    for s, t in layer_map:
        for row, place in real.nonzero().tolist():
            state = projection.T @ student_states[s, row, place]
            losses.append(((state - teacher_states[t, row, place].detach()) ** 2).mean())
    return torch.stack(losses).mean()


HIDDEN_LOSS = Exercise(
    id="hidden_loss",
    title="Hidden states, by a layer map",
    asks="Give the mean squared error of projected hidden states over the pairs of a layer map.",
    parameters=("student_states", "teacher_states", "layer_map", "projection", "real"),
    outputs=("loss", "gradient of student_states", "gradient of teacher_states"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(2, "layers"),
        "embeddings": Group(1, "the embeddings too"),
    },
    cases=hidden_loss_cases,
    reference=hidden_loss_reference,
    misconceptions=(
        Misconception(
            pairs_turned_round,
            "A pair is read as (teacher, student).",
            "Which entry of a pair comes first?",
        ),
        Misconception(
            map_ignored,
            "Layer i of the student learns from layer i of the teacher, whatever the map says.",
            "Where does the second entry of a pair enter?",
        ),
        Misconception(
            embeddings_not_counted,
            "The indices are one off: index 0 is the embedding's output.",
            "The map's numbers are indices into the first axis, as they are.",
        ),
        Misconception(
            last_layers_only,
            "Only the last states are compared.",
            "Which pairs does the map list?",
        ),
        Misconception(
            pairs_summed,
            "The losses of the pairs are summed; the contract asks for their mean.",
            "What happens to your loss if a pair is listed twice?",
        ),
        Misconception(
            features_summed,
            "The squares are summed over the features; the contract asks for their mean.",
            "What happens to your loss if the teacher is twice as wide?",
        ),
        Misconception(
            root_of_the_mean,
            "There is a root; the contract asks for the mean square itself.",
            "Drop the root.",
        ),
        Misconception(
            absolute_differences,
            "These are absolute differences; the contract asks for squares.",
            "What is squared?",
        ),
        Misconception(
            states_of_padding,
            "Places without a token are counted.",
            "Which places does `real` mark?",
        ),
        Misconception(
            zeros_of_padding,
            "The sum is divided by all places, padding too.",
            "How many tokens are there?",
        ),
        Misconception(
            projected_after_the_difference,
            "The teacher is projected to the student's width.",
            "Which of the two does the contract project?",
        ),
        Misconception(
            teacher_moves_too,
            "The loss sends a gradient to the teacher.",
            "Cut the teacher's states off.",
        ),
    ),
    accepted=(all_pairs_at_once, masked_sums, token_by_token),
    equivalent_mutants={
        "`F.mse_loss((student_states[ours] @ projection)[real], "
        "teacher_states[theirs][real].detach())` → "
        "`F.mse_loss(teacher_states[theirs][real].detach(), (student_states[ours] @ "
        "projection)[real])`": ("a squared difference is the same from both sides"),
    },
)
