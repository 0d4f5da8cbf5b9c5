"""Chapter 06: one step over several micro-batches."""

from __future__ import annotations

import copy

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception

IGNORED = -100


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
