"""Chapter 06: a loss that stays finite in mixed precision."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

IGNORED = -100


def mixed_loss_cases(rng):
    """Small whole numbers, so that every logit is exact in bfloat16; padding; large logits."""

    def case(group, about, scale=1, padded=True):
        s = draw_sizes(rng, "d_model", "vocabulary", "length", among=(5, 6, 7))
        s.batch = int(rng.choice([2, 3]))
        weight = scale * rng.integers(-2, 3, size=(s.vocabulary, s.d_model)).astype(float)
        x = rng.integers(-2, 3, size=(s.batch, s.length, s.d_model)).astype(float)
        x[..., 0] = np.where(x[..., 0] == 0, 1.0, x[..., 0])
        weight[:, 0] = scale * (rng.permutation(s.vocabulary) - s.vocabulary // 2)
        targets = rng.integers(0, s.vocabulary, size=(s.batch, s.length))
        if padded:
            lengths = rng.permutation(np.arange(1, s.length))[: s.batch]
            targets[np.arange(s.length) >= lengths[:, None]] = IGNORED
        return Case(group, {"weight": weight, "x": x, "targets": targets}, about)

    yield case("values", "no padding", padded=False)
    yield case("values", "padding")
    yield case("large", "logits of a hundred and more", scale=32)
    yield case("large", "such logits, no padding", scale=64, padded=False)


def mixed_loss_reference(model, x, targets):
    """The product is made in bfloat16; the loss in float64, token by token, then in float32."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x).double()
    kept = [
        logits[place].logsumexp(0) - logits[place][targets[place]]
        for place in np.ndindex(targets.shape)
        if targets[place] != IGNORED
    ]
    return torch.stack(kept).mean().float()


def _logits(model, x):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return model(x)


def _flat(logits, targets):
    return logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)


def loss_in_bfloat16(model, x, targets):
    """Hands bfloat16 logits to the loss."""
    return F.cross_entropy(*_flat(_logits(model, x), targets))


def everything_in_float32(model, x, targets):
    """Has no autocast, or one for a device on which the model is not."""
    return F.cross_entropy(*_flat(model(x), targets))


def softmax_in_bfloat16(model, x, targets):
    """Takes probabilities in bfloat16 and their logarithm in float32."""
    powers = _logits(model, x).softmax(dim=-1).float()
    return F.nll_loss(torch.log(powers).reshape(-1, powers.shape[-1]), targets.reshape(-1))


def log_softmax_in_bfloat16(model, x, targets):
    """Turns to float32 one step too late."""
    logs = torch.log_softmax(_logits(model, x), dim=-1).float()
    return F.nll_loss(*_flat(logs, targets))


def model_turned_into_bfloat16(model, x, targets):
    """Changes the type of the caller's weights."""
    logits = model.to(torch.bfloat16)(x.to(torch.bfloat16)).float()
    return F.cross_entropy(*_flat(logits, targets))


def padding_counted(model, x, targets):
    """Divides by all places, padding too."""
    logits, targets = _flat(_logits(model, x).float(), targets)
    return F.cross_entropy(logits, targets, reduction="sum") / targets.numel()


def loss_summed(model, x, targets):
    """Gives the sum over tokens."""
    return F.cross_entropy(*_flat(_logits(model, x).float(), targets), reduction="sum")


def mean_of_sentences(model, x, targets):
    """Averages each sentence first."""
    logits = _logits(model, x).float()
    losses = [F.cross_entropy(a, b) for a, b in zip(logits, targets, strict=True)]
    return torch.stack(losses).mean()


def exp_without_maximum(model, x, targets):
    """Takes exp of logits as they are."""
    logits, targets = _flat(_logits(model, x).float(), targets)
    kept = targets != IGNORED
    logits, targets = logits[kept], targets[kept]
    powers = logits.exp()
    chosen = powers.gather(1, targets[:, None])[:, 0]
    return -torch.log(chosen / powers.sum(dim=1)).mean()


def cut_off_from_the_model(model, x, targets):
    """Runs the model without recording gradients."""
    with torch.no_grad():
        logits = _logits(model, x).float()
    loss = F.cross_entropy(*_flat(logits, targets))
    return loss.requires_grad_()


def loss_by_cross_entropy(model, x, targets):
    """Right: float32 before the library's loss."""
    with torch.autocast(device_type=x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def loss_by_logsumexp(model, x, targets):
    """Right: by hand, classes on their own axis."""
    with torch.autocast(device_type=x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    logits = logits.to(torch.float32)
    kept = targets != IGNORED
    chosen = logits.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    return ((logits.logsumexp(-1) - chosen) * kept).sum() / kept.sum()


def loss_inside_autocast(model, x, targets):
    """Right: the loss inside, where its input is float32 all the same."""
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        logs = F.log_softmax(model(x), dim=-1, dtype=torch.float32)
        return F.nll_loss(logs.transpose(1, 2), targets, ignore_index=IGNORED)


MIXED_LOSS = Exercise(
    id="mixed_loss",
    title="Products in bfloat16, the loss in float32",
    asks="Run a model in mixed precision and compute its loss so that it stays exact and finite.",
    parameters=("weight", "x", "targets"),
    groups={
        "values": Group(2, "logits of moderate size"),
        "large": Group(1, "logits of a hundred and more"),
    },
    cases=mixed_loss_cases,
    reference=mixed_loss_reference,
    outputs=(
        "loss",
        "bits of the loss",
        "bits of the logits",
        "bits of the weight afterwards",
        "the weight gets a gradient",
    ),
    driver="mixed_loss",
    tolerance=Tolerance(1e-6, 2e-5),  # float32 on logits of some hundred
    misconceptions=(
        Misconception(
            loss_in_bfloat16,
            "The loss was computed in bfloat16, with three digits at best.",
            "Of which type are the logits when the loss gets them?",
        ),
        Misconception(
            everything_in_float32,
            "The model ran in float32: no autocast, or one for another device than that of `x`.",
            "Which device is `torch.autocast` told, and is the call of the model inside it?",
        ),
        Misconception(
            softmax_in_bfloat16,
            "The softmax was taken in bfloat16; small probabilities are coarse, or 0 with log −∞.",
            "Which is the first step that must be in float32?",
        ),
        Misconception(
            log_softmax_in_bfloat16,
            "The logits became float32 only after the softmax: its digits are lost by then.",
            "Which is the first step that must be in float32?",
        ),
        Misconception(
            model_turned_into_bfloat16,
            "The caller's weights are bfloat16 now; an optimiser's small steps would vanish.",
            "What changes the type of single operations, and leaves the weights alone?",
        ),
        Misconception(
            padding_counted,
            "Padding is counted in the number that the sum is divided by.",
            "How many tokens have a target?",
        ),
        Misconception(
            loss_summed,
            "This is the sum over tokens, not the mean.",
            "What does the contract divide by?",
        ),
        Misconception(
            mean_of_sentences,
            "Each sentence is averaged first, so a token of a short one weighs more.",
            "Over what does the contract take the mean?",
        ),
        Misconception(
            exp_without_maximum,
            "exp of a large logit overflows in float32 as well.",
            "What can be subtracted from all logits of a token without changing the result?",
        ),
        Misconception(
            cut_off_from_the_model,
            "No gradient reaches the weight: nothing could be trained with this loss.",
            "Where is the way from the loss to the weight cut?",
        ),
    ),
    accepted=(loss_by_cross_entropy, loss_by_logsumexp, loss_inside_autocast),
)
