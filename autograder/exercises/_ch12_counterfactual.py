"""Chapter 12: student and teacher compared after the same swap in both."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import divergence, draw_model


def counterfactual_cases(rng):
    """A student of two layers, a teacher of three; two pairs out of order, then one."""
    for group, layer_map, places, about in (
        ("values", [(1, 0), (0, 2)], [1], "two pairs of layers"),
        ("one", [(0, 2)], [1, 3], "one pair"),
    ):
        width, classes = 2, 5
        inputs = {
            "student": draw_model(rng, width, 3, 2, classes),
            "teacher": draw_model(rng, width, 4, 3, classes),
            "layer_map": layer_map,
            "base": 2 * rng.normal(size=(2, 4, width)),
            "source": 2 * rng.normal(size=(2, 4, width)),
            "places": places,
        }
        yield Case(group, inputs, about)


def counterfactual_reference(student, teacher, swap, layer_map, base, source):
    """Pair by pair, by PyTorch's distributions."""
    losses = []
    for ours, theirs in layer_map:
        with torch.no_grad():
            aim = torch.distributions.Categorical(logits=swap(teacher, theirs, base, source))
        found = torch.distributions.Categorical(logits=swap(student, ours, base, source))
        losses.append(torch.distributions.kl_divergence(aim, found).mean())
    return sum(losses) / len(losses)


def _gaps(student, teacher, swap, layer_map, base, source):
    return torch.stack(
        [
            divergence(
                swap(teacher, theirs, base, source).detach(), swap(student, ours, base, source)
            ).mean()
            for ours, theirs in layer_map
        ]
    )


def plain_runs_compared(student, teacher, swap, layer_map, base, source):
    """No swap at all."""
    return divergence(teacher(base).detach(), student(base)).mean()


def teacher_not_swapped(student, teacher, swap, layer_map, base, source):
    """The teacher's aim is its plain run."""
    aim = teacher(base).detach()
    gaps = [divergence(aim, swap(student, ours, base, source)).mean() for ours, _ in layer_map]
    return torch.stack(gaps).mean()


def student_not_swapped(student, teacher, swap, layer_map, base, source):
    """The student runs plainly."""
    gaps = [
        divergence(swap(teacher, theirs, base, source).detach(), student(base)).mean()
        for _, theirs in layer_map
    ]
    return torch.stack(gaps).mean()


def same_layer_in_both(student, teacher, swap, layer_map, base, source):
    """The student's layer number for both."""
    return _gaps(student, teacher, swap, [(s, s) for s, _ in layer_map], base, source).mean()


def pair_turned_round(student, teacher, swap, layer_map, base, source):
    """Reads (teacher, student); a student without that layer takes its last."""
    turned = [(min(t, len(student.layers) - 1), s) for s, t in layer_map]
    return _gaps(student, teacher, swap, turned, base, source).mean()


def base_for_source(student, teacher, swap, layer_map, base, source):
    """The base's activations into the source's run."""
    return _gaps(student, teacher, swap, layer_map, source, base).mean()


def gaps_summed(student, teacher, swap, layer_map, base, source):
    """A sum over pairs."""
    return _gaps(student, teacher, swap, layer_map, base, source).sum()


def first_pair_only(student, teacher, swap, layer_map, base, source):
    """One pair."""
    return _gaps(student, teacher, swap, layer_map, base, source)[0]


def teacher_intervened_with_gradient(student, teacher, swap, layer_map, base, source):
    """Nothing is cut off."""
    gaps = [
        divergence(swap(teacher, theirs, base, source), swap(student, ours, base, source)).mean()
        for ours, theirs in layer_map
    ]
    return torch.stack(gaps).mean()


def student_weighs_the_logarithms(student, teacher, swap, layer_map, base, source):
    """KL(student ‖ teacher)."""
    gaps = [
        divergence(
            swap(student, ours, base, source), swap(teacher, theirs, base, source).detach()
        ).mean()
        for ours, theirs in layer_map
    ]
    return torch.stack(gaps).mean()


def tokens_summed(student, teacher, swap, layer_map, base, source):
    """`batchmean` of three axes."""
    return _gaps(student, teacher, swap, layer_map, base, source).mean() * base.shape[1]


def in_a_list(student, teacher, swap, layer_map, base, source):
    """Right: a list of gaps."""
    return _gaps(student, teacher, swap, layer_map, base, source).mean()


def by_kl_div(student, teacher, swap, layer_map, base, source):
    """Right: PyTorch's `kl_div` on flat rows."""
    loss = 0.0
    for ours, theirs in layer_map:
        with torch.no_grad():
            aim = swap(teacher, theirs, base, source).log_softmax(-1).flatten(0, 1)
        logs = swap(student, ours, base, source).log_softmax(-1).flatten(0, 1)
        loss = loss + F.kl_div(logs, aim, reduction="batchmean", log_target=True)
    return loss / len(layer_map)


def in_two_stacks(student, teacher, swap, layer_map, base, source):
    """Right: all logits of each model first."""
    with torch.no_grad():
        aims = torch.stack([swap(teacher, t, base, source) for _, t in layer_map]).softmax(-1)
    logits = torch.stack([swap(student, s, base, source) for s, _ in layer_map])
    crossed = F.cross_entropy(logits.movedim(-1, 1), aims.movedim(-1, 1))
    return crossed - torch.special.entr(aims).sum(-1).mean()


COUNTERFACTUAL_LOSS = Exercise(
    id="counterfactual_loss",
    title="Same surgery, same answer",
    asks="Compare student and teacher after the same swap in both, over the pairs of a layer map.",
    parameters=("student", "teacher", "layer_map", "base", "source", "places"),
    outputs=("loss", "gradients of the student", "gradients of the teacher"),
    driver="counterfactual",
    seconds=5.0,
    groups={
        "values": Group(2, "two pairs of layers"),
        "one": Group(1, "one pair"),
    },
    cases=counterfactual_cases,
    reference=counterfactual_reference,
    misconceptions=(
        Misconception(
            plain_runs_compared,
            "Nothing was swapped: this compares plain runs.",
            "Where is `swap` called?",
        ),
        Misconception(
            teacher_not_swapped,
            "Only the student was swapped; the teacher's aim is its plain run.",
            "What would the teacher say after the same surgery?",
        ),
        Misconception(
            student_not_swapped,
            "Only the teacher was swapped.",
            "What would the student say after the same surgery?",
        ),
        Misconception(
            same_layer_in_both,
            "The same layer number was used in both models.",
            "Which entry of a pair belongs to the teacher?",
        ),
        Misconception(
            pair_turned_round,
            "A pair is read as (teacher, student).",
            "Which entry of a pair comes first?",
        ),
        Misconception(
            base_for_source,
            "Base and source are exchanged.",
            "In which order does `swap` take them?",
        ),
        Misconception(
            gaps_summed,
            "The pairs are summed; the contract asks for their mean.",
            "What happens to your loss if a pair is listed twice?",
        ),
        Misconception(
            first_pair_only,
            "Only the first pair was used.",
            "Does your loop return too early?",
        ),
        Misconception(
            teacher_intervened_with_gradient,
            "The loss sends a gradient to the teacher.",
            "Which context manager switches recording off?",
        ),
        Misconception(
            student_weighs_the_logarithms,
            "This is KL(student ‖ teacher): the two are exchanged.",
            "Whose probabilities weigh the logarithms?",
        ),
        Misconception(
            tokens_summed,
            "The sum is divided by the number of sentences only.",
            "The mean runs over all tokens.",
        ),
    ),
    accepted=(in_a_list, by_kl_div, in_two_stacks),
)
