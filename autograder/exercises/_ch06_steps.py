"""Chapter 06: a loss that stays finite in mixed precision, and a step over micro-batches."""

from __future__ import annotations

import copy

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception

IGNORED = -100

# --- mixed_loss ----------------------------------------------------------------------------------


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

# --- accumulated_step ----------------------------------------------------------------------------


def accumulated_step_cases(rng):
    """Micro-batches of unequal length and padding; old gradients; one without any target."""

    def case(group, about, lengths, empty=None):
        s = draw_sizes(rng, "rows", "d_model", "classes", among=(2, 3, 5))
        batches, counts = [], set()
        for number, length in enumerate(lengths):
            x = rng.normal(size=(s.rows, length, s.d_model)) * (1 + number)
            targets = rng.integers(0, s.classes, size=(s.rows, length))
            real = draw_lengths(rng, s.rows, length)
            while real.sum() in counts:  # numbers of tokens differ, or a mean of means is right
                real = draw_lengths(rng, s.rows, length)
            counts.add(real.sum())
            targets[np.arange(length) >= real[:, None]] = IGNORED
            if number == empty:
                targets[:] = IGNORED
            batches.append((x, targets))
        shapes = {"weight": (s.classes, s.d_model), "bias": (s.classes,)}
        draw = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        stale = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        inputs = {"weights": draw, "stale": stale, "batches": batches, "learning_rate": 0.5}
        return Case(group, inputs, about)

    yield case("unequal", "three micro-batches", (6, 3, 4))
    yield case("unequal", "two micro-batches", (3, 7))
    yield case("alone", "a single micro-batch", (5,))
    yield case("alone", "one of them holds padding only", (5, 4, 3), empty=1)


def accumulated_step_reference(model, optimizer, batches):
    """The gradient of the big batch by formula: (softmax − one-hot) over all tokens."""
    weight = model.weight
    gradients, loss, tokens = [torch.zeros_like(weight), torch.zeros_like(model.bias)], 0.0, 0
    for x, targets in batches:
        kept = targets != IGNORED
        inputs, labels = x[kept], targets[kept]
        if not len(labels):
            continue
        logits = model(x)[kept]
        logs = logits - logits.logsumexp(-1, keepdim=True)
        picked = torch.eye(len(model.bias), dtype=weight.dtype)[labels]
        apart = (logs.exp() - picked).detach()
        gradients[0] += apart.T @ inputs
        gradients[1] += apart.sum(0)
        loss, tokens = loss - float((logs * picked).sum()), tokens + len(labels)
        (logs * 0).sum().backward()  # the driver counts backward passes
    for parameter, gradient in zip((weight, model.bias), gradients, strict=True):
        parameter.grad = gradient / tokens
    optimizer.step()
    return loss / tokens


def _sum_of(model, x, targets):
    return F.cross_entropy(model(x).flatten(0, 1), targets.flatten(), reduction="sum")


def _tokens(batches):
    return sum(int((targets != IGNORED).sum()) for _, targets in batches)


def _accumulate(model, optimizer, batches, divisor=None, share=None, **changes):
    """A step over micro-batches with single parts exchanged."""
    if not changes.get("keep_old"):
        optimizer.zero_grad()
    divisor = _tokens(batches) if divisor is None else divisor
    loss = 0.0
    for x, targets in batches:
        if changes.get("zero_inside"):
            optimizer.zero_grad()
        part = _sum_of(model, x, targets) / divisor
        part = part if share is None else share(model, x, targets)
        part.backward()
        if changes.get("step_inside"):
            optimizer.step()
        loss += part.item()
    if not changes.get("step_inside") and not changes.get("no_step"):
        optimizer.step()
    return loss * changes.get("loss_factor", 1)


def _mean_of(model, x, targets):
    tokens = (targets != IGNORED).sum().clamp(min=1)
    return _sum_of(model, x, targets) / tokens


def mean_of_means(model, optimizer, batches):
    """Averages micro-batches as if they held equally many tokens."""
    count = len(batches)
    return _accumulate(model, optimizer, batches, share=lambda *a: _mean_of(*a) / count)


def means_added(model, optimizer, batches):
    """Adds the means of micro-batches."""
    return _accumulate(model, optimizer, batches, share=_mean_of)


def sums_added(model, optimizer, batches):
    """Never divides."""
    return _accumulate(model, optimizer, batches, divisor=1)


def all_places_counted(model, optimizer, batches):
    """Divides by all places, padding too."""
    places = sum(targets.numel() for _, targets in batches)
    return _accumulate(model, optimizer, batches, divisor=places)


def old_gradients_kept(model, optimizer, batches):
    """Adds to the gradients of the step before."""
    return _accumulate(model, optimizer, batches, keep_old=True)


def cleared_in_the_loop(model, optimizer, batches):
    """Clears in each micro-batch, so that only the last one counts."""
    return _accumulate(model, optimizer, batches, zero_inside=True)


def step_in_the_loop(model, optimizer, batches):
    """Makes a step after each micro-batch."""
    return _accumulate(model, optimizer, batches, step_inside=True)


def no_step_at_all(model, optimizer, batches):
    """Leaves the gradients, and the weights as they were."""
    return _accumulate(model, optimizer, batches, no_step=True)


def one_backward_for_all(model, optimizer, batches):
    """Adds losses up and calls backward once: all graphs are held until then."""
    optimizer.zero_grad()
    loss = sum(_sum_of(model, x, targets) for x, targets in batches) / _tokens(batches)
    loss.backward()
    optimizer.step()
    return loss.item()


def one_big_batch(model, optimizer, batches):
    """Puts all rows into one batch, which is what there was no memory for."""
    optimizer.zero_grad()
    longest = max(x.shape[1] for x, _ in batches)
    xs = [F.pad(x, (0, 0, 0, longest - x.shape[1])) for x, _ in batches]
    targets = [F.pad(t, (0, longest - t.shape[1]), value=IGNORED) for _, t in batches]
    loss = F.cross_entropy(model(torch.cat(xs)).flatten(0, 1), torch.cat(targets).flatten())
    loss.backward()
    optimizer.step()
    return loss.item()


def loss_of_the_last_batch(model, optimizer, batches):
    """Makes the right step and returns the last micro-batch's mean."""
    with torch.no_grad():
        loss = _mean_of(model, *batches[-1]).item()
    _accumulate(model, optimizer, batches)
    return loss


def empty_batch_is_nan(model, optimizer, batches):
    """Weighs the means of micro-batches; the mean of an empty one is NaN."""
    tokens = _tokens(batches)

    def share(model, x, targets):
        mean = F.cross_entropy(model(x).flatten(0, 1), targets.flatten())
        return mean * (targets != IGNORED).sum() / tokens

    return _accumulate(model, optimizer, batches, share=share)


def step_by_sums(model, optimizer, batches):
    """Right: sums over all tokens' number, counted first."""
    optimizer.zero_grad()
    tokens, loss = sum((t != IGNORED).sum() for _, t in batches), 0
    for x, targets in batches:
        logits = model(x.flatten(0, 1))
        part = F.cross_entropy(logits, targets.flatten(), reduction="sum") / tokens
        part.backward()
        loss = loss + part.detach()
    optimizer.step()
    return loss


def step_by_dividing_gradients(model, optimizer, batches):
    """Right: sums in the loop, gradients divided once at the end."""
    for parameter in model.parameters():
        parameter.grad = None
    loss, tokens = 0.0, 0
    for x, targets in batches:
        total = _sum_of(model, x, targets)
        total.backward()
        loss, tokens = loss + total.item(), tokens + int((targets >= 0).sum())
    for parameter in model.parameters():
        parameter.grad /= tokens
    optimizer.step()
    return loss / tokens


def step_by_weighted_means(model, optimizer, batches):
    """Right: means weighted by their share of tokens; empty micro-batches left out."""
    optimizer.zero_grad(set_to_none=False)
    counts = [int((targets != IGNORED).sum()) for _, targets in batches]
    losses = []
    for (x, targets), count in zip(batches, counts, strict=True):
        if count:
            mean = F.cross_entropy(model(x).flatten(0, 1), targets.flatten())
            (mean * count / sum(counts)).backward()
            losses.append(mean.item() * count)
    optimizer.step()
    return sum(losses) / sum(counts)


def step_by_autograd(model, optimizer, batches):
    """Right: `torch.autograd.grad` on a list of its own, put in place at the end."""
    parameters = list(model.parameters())
    gathered, loss, tokens = [torch.zeros_like(p) for p in parameters], 0.0, _tokens(batches)
    for x, targets in copy.copy(batches):
        part = _sum_of(model, x, targets) / tokens
        found = torch.autograd.grad(part, parameters)
        gathered = [a + b for a, b in zip(gathered, found, strict=True)]
        loss += float(part)
    for parameter, gradient in zip(parameters, gathered, strict=True):
        parameter.grad = gradient
    optimizer.step()
    return np.float64(loss)


ACCUMULATED_STEP = Exercise(
    id="accumulated_step",
    title="A big batch in small pieces",
    asks="Make one step over micro-batches that equals the step of the big batch.",
    parameters=("weights", "stale", "batches", "learning_rate"),
    groups={
        "unequal": Group(3, "micro-batches with unequal numbers of tokens"),
        "alone": Group(1, "a single micro-batch, one of padding only"),
    },
    cases=accumulated_step_cases,
    reference=accumulated_step_reference,
    outputs=(
        "loss",
        "weight afterwards",
        "bias afterwards",
        "number of steps",
        "number of backward passes",
        "positions in the model at once",
    ),
    driver="accumulated_step",
    misconceptions=(
        Misconception(
            mean_of_means,
            "All micro-batches count alike, so a token in a short one weighs more.",
            "How many tokens does each micro-batch hold, and how many all of them?",
        ),
        Misconception(
            means_added,
            "The means of the micro-batches are added: the step is several times too long.",
            "By which number would the big batch divide?",
        ),
        Misconception(
            sums_added,
            "The sum over tokens is never divided: the step is far too long.",
            "By which number would the big batch divide?",
        ),
        Misconception(
            all_places_counted,
            "Padding is counted among the tokens that the sum is divided by.",
            "Which places have a target?",
        ),
        Misconception(
            old_gradients_kept,
            "The gradients of an earlier step are still there and were added to.",
            "What does `backward` do with a gradient that is there already?",
        ),
        Misconception(
            cleared_in_the_loop,
            "Gradients are cleared in every micro-batch: only the last one counts.",
            "How often, and when, should gradients be cleared?",
        ),
        Misconception(
            step_in_the_loop,
            "There is a step after every micro-batch; later ones see changed weights.",
            "How many steps would the big batch make?",
        ),
        Misconception(
            no_step_at_all,
            "The weights are where they were: there is no step.",
            "Which method of the optimiser changes the weights?",
        ),
        Misconception(
            one_backward_for_all,
            "There is one backward pass for all: until then every graph is kept in memory.",
            "When can the memory of a micro-batch's graph be given back?",
        ),
        Misconception(
            one_big_batch,
            "All rows go through the model at once: that is the memory one wanted to save.",
            "What is the largest batch that the model should see?",
        ),
        Misconception(
            loss_of_the_last_batch,
            "The step is right; the loss that is returned is that of one micro-batch.",
            "Over which tokens does the contract take the mean?",
        ),
        Misconception(
            empty_batch_is_nan,
            "The mean over no token is NaN, and NaN times 0 is NaN.",
            "What is the *sum* over no token?",
        ),
    ),
    accepted=(
        step_by_sums,
        step_by_dividing_gradients,
        step_by_weighted_means,
        step_by_autograd,
    ),
)
