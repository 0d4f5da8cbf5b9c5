"""Chapter 12: three losses in one sum, as DistilBERT was trained."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch12_parts import (
    divergence,
    draw_labels,
    draw_real,
    gold,
    poisoned,
)

NAMES = ("student_logits", "teacher_logits", "student_states", "teacher_states")


def triple_loss_cases(rng):
    """Labels at some tokens only; shares that differ; one share of 0."""
    for group, shares, about in (
        ("values", (5.0, 2.0, 1.0), "the shares of DistilBERT's code"),
        ("zero", (2.0, 0.0, 1.5), "no share for the gold labels"),
    ):
        batch, length, classes, d_model = 2, 3, 6, 2
        real = draw_real(rng, batch, length)
        labelled = real & (rng.random(real.shape) < 0.5)
        row, place = first_token(real)
        labelled[row, place] = True
        other = next(p for p in range(length) if real[row, p] and p != place)
        labelled[row, other] = False  # a token without a label
        arrays = [
            poisoned(2 * rng.normal(size=(batch, length, width)), real, 6.0)
            for width in (classes, classes, d_model, d_model)
        ]
        inputs = {
            **dict(zip(NAMES, arrays, strict=True)),
            "labels": draw_labels(rng, labelled, classes),
            "real": real,
            "temperature": round(float(rng.uniform(1.8, 3.0)), 3),
            "shares": shares,
        }
        yield Case(group, inputs, about)


def first_token(real):
    """The row with most tokens, and its first token."""
    row = int(real.sum(1).argmax())
    return row, int(real[row].argmax())


def _soft(student_logits, teacher_logits, real, temperature):
    teacher, student = teacher_logits.detach() / temperature, student_logits / temperature
    return temperature**2 * divergence(teacher, student)[real].mean()


def _cosine(student_states, teacher_states, real):
    return 1 - F.cosine_similarity(student_states, teacher_states.detach(), dim=-1)[real].mean()


def _parts(given):
    """The three losses (soft, gold, cosine) of a call's arguments."""
    return (
        _soft(
            given["student_logits"], given["teacher_logits"], given["real"], given["temperature"]
        ),
        gold(given["student_logits"], given["labels"]),
        _cosine(given["student_states"], given["teacher_states"], given["real"]),
    )


def _sum(parts, shares):
    return sum(share * part for share, part in zip(shares, parts, strict=True))


def triple_loss_reference(**given):
    """PyTorch's three losses."""
    real, temperature = given["real"], given["temperature"]
    logs = (given["student_logits"][real] / temperature).log_softmax(-1)
    aim = (given["teacher_logits"][real].detach() / temperature).softmax(-1)
    states, aims = given["student_states"][real], given["teacher_states"][real].detach()
    parts = (
        temperature**2 * F.kl_div(logs, aim, reduction="batchmean"),
        gold(given["student_logits"], given["labels"]),
        F.cosine_embedding_loss(states, aims, torch.ones(len(states))),
    )
    return torch.stack(parts) @ torch.tensor(given["shares"], dtype=torch.float64)


def soft_and_gold_exchanged(**given):
    """Shares in the order (gold, soft, cosine)."""
    soft, gold_part, cosine = _parts(given)
    return _sum((gold_part, soft, cosine), given["shares"])


def shares_made_to_sum_to_one(**given):
    """Divides by the sum of the shares."""
    return _sum(_parts(given), given["shares"]) / sum(given["shares"])


def shares_ignored(**given):
    """A plain sum."""
    return sum(_parts(given))


def square_missing(**given):
    """No T²."""
    soft, *others = _parts(given)
    return _sum((soft / given["temperature"] ** 2, *others), given["shares"])


def gold_softened_too(**given):
    """T on the gold labels as well."""
    soft, _, cosine = _parts(given)
    softened = gold(given["student_logits"] / given["temperature"], given["labels"])
    return _sum((soft, softened, cosine), given["shares"])


def soft_at_labels_only(**given):
    """Soft targets where there is a gold label."""
    _, gold_part, cosine = _parts(given)
    labelled = given["labels"] >= 0
    soft = _soft(given["student_logits"], given["teacher_logits"], labelled, given["temperature"])
    return _sum((soft, gold_part, cosine), given["shares"])


def gold_at_every_token(**given):
    """−100 counts as class 0."""
    soft, _, cosine = _parts(given)
    losses = F.cross_entropy(
        given["student_logits"].mT, given["labels"].clamp(min=0), reduction="none"
    )
    return _sum((soft, losses[given["real"]].mean(), cosine), given["shares"])


def cosine_rewarded_wrongly(**given):
    """Adds the cosine itself."""
    soft, gold_part, cosine = _parts(given)
    return _sum((soft, gold_part, 1 - cosine), given["shares"])


def cosine_left_out(**given):
    """Two losses."""
    soft, gold_part, cosine = _parts(given)
    return _sum((soft, gold_part, 0.0 * cosine), given["shares"])


def everything_at_padding(**given):
    """`real` is not used."""
    return _sum(_parts({**given, "real": torch.ones_like(given["real"])}), given["shares"])


def nothing_detached(**given):
    """The teacher learns."""
    _, gold_part, _ = _parts(given)
    temperature, real = given["temperature"], given["real"]
    rows = divergence(given["teacher_logits"] / temperature, given["student_logits"] / temperature)
    soft = temperature**2 * rows[real].mean()
    cosines = F.cosine_similarity(given["student_states"], given["teacher_states"], dim=-1)
    return _sum((soft, gold_part, 1 - cosines[real].mean()), given["shares"])


def in_one_sum(**given):
    """Right: three parts by hand."""
    return _sum(_parts(given), given["shares"])


def by_cross_entropies(**given):
    """Right: cross-entropy less entropy, unit vectors."""
    real, temperature = given["real"], given["temperature"]
    soft_share, gold_share, cosine_share = given["shares"]
    aim = (given["teacher_logits"].detach()[real] / temperature).softmax(-1)
    crossed = F.cross_entropy(given["student_logits"][real] / temperature, aim)
    soft = temperature**2 * (crossed - torch.special.entr(aim).sum(-1).mean())
    kept = given["labels"] != -100
    hard = F.cross_entropy(given["student_logits"][kept], given["labels"][kept])
    ours = F.normalize(given["student_states"][real], dim=-1)
    theirs = F.normalize(given["teacher_states"].detach()[real], dim=-1)
    return (
        soft_share * soft + gold_share * hard + cosine_share * (1 - (ours * theirs).sum(-1).mean())
    )


def by_zeros_at_padding(**given):
    """Right: zeros at padding, divided by the number of tokens."""
    real, temperature, labels = given["real"], given["temperature"], given["labels"]
    count = real.sum()
    aim = (given["teacher_logits"].detach() / temperature).log_softmax(-1)
    logs = (given["student_logits"] / temperature).log_softmax(-1)
    soft = (F.kl_div(logs, aim, reduction="none", log_target=True).sum(-1) * real).sum() / count
    picked = given["student_logits"].log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])
    hard = -(picked[..., 0] * (labels >= 0)).sum() / (labels >= 0).sum()
    cosines = F.cosine_similarity(given["student_states"], given["teacher_states"].detach(), dim=2)
    away = ((1 - cosines) * real).sum() / count
    a, b, c = given["shares"]
    return a * temperature**2 * soft + b * hard + c * away


TRIPLE_LOSS = Exercise(
    id="triple_loss",
    title="Three losses together",
    asks="Add soft targets, gold labels and cosines of states, each with its share.",
    parameters=(*NAMES, "labels", "real", "temperature", "shares"),
    outputs=(
        "loss",
        "gradient of student_logits",
        "gradient of student_states",
        "gradient of teacher_logits",
        "gradient of teacher_states",
    ),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(2, "three shares"),
        "zero": Group(1, "a share of 0"),
    },
    cases=triple_loss_cases,
    reference=triple_loss_reference,
    misconceptions=(
        Misconception(
            soft_and_gold_exchanged,
            "The shares of soft targets and of gold labels are exchanged.",
            "In which order does `shares` hold them?",
        ),
        Misconception(
            shares_made_to_sum_to_one,
            "The sum is divided by the sum of the shares.",
            "A share of 5 multiplies its loss by 5.",
        ),
        Misconception(
            shares_ignored,
            "The shares have no effect.",
            "Where does `shares` enter?",
        ),
        Misconception(
            square_missing,
            "The soft loss lacks its factor T².",
            "Compare with the exercise on soft targets.",
        ),
        Misconception(
            gold_softened_too,
            "The temperature was applied to the gold labels' loss, too.",
            "Which of the three losses has a temperature?",
        ),
        Misconception(
            soft_at_labels_only,
            "Soft targets are used only where there is a gold label.",
            "The teacher has an opinion on every token.",
        ),
        Misconception(
            gold_at_every_token,
            "Tokens without a label are counted in the gold loss, as if theirs were class 0.",
            "What does −100 mean?",
        ),
        Misconception(
            cosine_rewarded_wrongly,
            "The cosine itself is added; the loss is one minus it.",
            "What should this part be for two vectors of the same direction?",
        ),
        Misconception(
            cosine_left_out,
            "The states have no effect.",
            "Count the parts of the sum.",
        ),
        Misconception(
            everything_at_padding,
            "Places without a token are counted.",
            "Which places does `real` mark?",
        ),
        Misconception(
            nothing_detached,
            "The loss sends a gradient to the teacher.",
            "Cut off both the teacher's logits and its states.",
        ),
    ),
    accepted=(in_one_sum, by_cross_entropies, by_zeros_at_padding),
    equivalent_mutants={
        "`(student_logits[real] / temperature).log_softmax(dim=-1)` → `(student_logits[real] "
        "/ temperature).log_softmax(dim=1)`": ("the rows were picked: axis 1 is the last one"),
        "`(teacher_logits[real].detach() / temperature).log_softmax(dim=-1)` → "
        "`(teacher_logits[real].detach() / temperature).log_softmax(dim=1)`": (
            "the rows were picked: axis 1 is the last one"
        ),
        "`(teacher.exp() * (teacher - student)).sum(dim=-1)` → `(teacher.exp() * (teacher - "
        "student)).sum(dim=1)`": ("the rows were picked: axis 1 is the last one"),
        "`F.cosine_similarity(student_states, teacher_states.detach(), dim=-1)` → "
        "`F.cosine_similarity(teacher_states.detach(), student_states, dim=-1)`": (
            "a cosine is the same from both sides"
        ),
    },
)
