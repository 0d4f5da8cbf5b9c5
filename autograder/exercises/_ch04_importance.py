"""Chapter 04, the challenge: how much does the loss hang on each head?"""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch04_parts import draw_layer


def head_importance_cases(rng):
    """Sizes that differ, as many heads as examples, a single example."""
    s = draw_sizes(rng, "batch", "heads", "length", "d_head", among=(2, 3, 4, 5))
    yield _case(rng, "batch", (s.batch, s.heads, s.length, s.d_head), "a batch")
    yield _case(rng, "batch", (3, 3, 2, 4), "as many examples as heads")
    yield _case(rng, "one", (1, 5, 3, 2), "a single example")


def _case(rng, group, shape, about):
    """Draw until examples disagree about the sign of every head's gradient."""
    batch, heads, length, d_head = shape
    layer = draw_layer(rng, heads * d_head)
    given = {"head_outputs": rng.normal(size=shape)}
    given |= {name: layer[name] for name in ("w_out", "b_out")}
    while True:
        given["target"] = 3 * rng.normal(size=(batch, length, heads * d_head))
        slopes = _by_example(**{name: torch.from_numpy(value) for name, value in given.items()})
        disagree = (slopes.amin(dim=0) < 0).all() and (slopes.amax(dim=0) > 0).all()
        if batch == 1 or (disagree and (slopes.mean(dim=0) < 0).any()):
            return Case(group, given, about)


def _losses(head_outputs, gates, w_out, b_out, target):
    """The loss of each example."""
    rows = w_out.unflatten(0, (head_outputs.shape[1], -1))
    output = torch.einsum("bhld,h,hdo->blo", head_outputs, gates, rows) + b_out
    return ((output - target) ** 2).sum(dim=(1, 2))


def head_importance_reference(head_outputs, w_out, b_out, target):
    """Steps of one to both sides: exact, since the loss is a parabola in each gate."""
    heads, found = head_outputs.shape[1], []
    for h in range(heads):
        step = torch.zeros(heads, dtype=w_out.dtype)
        step[h] = 1.0
        up, down = (
            _losses(head_outputs, 1 + sign * step, w_out, b_out, target) for sign in (1, -1)
        )
        found.append(((up - down) / 2).abs().mean())
    return torch.stack(found)


def _by_example(head_outputs, w_out, b_out, target, at=1.0):
    """Gradient by every gate for every example, (batch, heads)."""
    rows = []
    for x, wanted in zip(head_outputs, target, strict=True):
        gates = torch.full((len(x),), at, dtype=w_out.dtype, requires_grad=True)
        loss = _losses(x[None], gates, w_out, b_out, wanted[None]).sum()
        rows.append(torch.autograd.grad(loss, gates)[0])
    return torch.stack(rows)


def absolute_value_at_the_end(**inputs):
    """Gradients of different examples cancel."""
    return _by_example(**inputs).mean(dim=0).abs()


def no_absolute_value(**inputs):
    """Signed."""
    return _by_example(**inputs).mean(dim=0)


def summed_over_examples(**inputs):
    """Sum for mean."""
    return _by_example(**inputs).abs().sum(dim=0)


def mean_over_heads(**inputs):
    """One number for each example."""
    return _by_example(**inputs).abs().mean(dim=1)


def loss_averaged_over_entries(**inputs):
    """Mean squared error of an example, not the sum."""
    target = inputs["target"]
    return _by_example(**inputs).abs().mean(dim=0) / target[0].numel()


def gradient_at_closed_gates(**inputs):
    """Gates of 0."""
    return _by_example(**inputs, at=0.0).abs().mean(dim=0)


def loss_without_the_head(head_outputs, w_out, b_out, target):
    """Switches the head off and takes the difference of the losses."""
    eye = torch.eye(head_outputs.shape[1], dtype=w_out.dtype)
    full = _losses(head_outputs, torch.ones_like(eye[0]), w_out, b_out, target)
    off = [_losses(head_outputs, 1 - row, w_out, b_out, target) for row in eye]
    return torch.stack([(one - full).abs().mean() for one in off])


def gradients_squared(**inputs):
    """Squares for absolute values."""
    return (_by_example(**inputs) ** 2).mean(dim=0)


def sizes_of_the_heads(head_outputs, w_out, b_out, target):
    """How large the heads are, whatever the loss."""
    return head_outputs.abs().mean(dim=(0, 2, 3))


def shares_of_the_importance(**inputs):
    """Divides by the total."""
    found = _by_example(**inputs).abs().mean(dim=0)
    return found / found.sum()


def importance_by_loop(head_outputs, w_out, b_out, target):
    """Right: a backward pass for each example."""
    total = 0.0
    for x, wanted in zip(head_outputs, target, strict=True):
        gates = torch.ones(len(x), 1, 1, dtype=x.dtype, requires_grad=True)
        merged = (x * gates).transpose(0, 1).flatten(1)
        ((merged @ w_out + b_out - wanted) ** 2).sum().backward()
        total = total + gates.grad.flatten().abs()
    return total / len(head_outputs)


def importance_by_formula(head_outputs, w_out, b_out, target):
    """Right: the chain rule on paper."""
    rows = w_out.unflatten(0, (head_outputs.shape[1], -1))
    parts = torch.einsum("bhld,hdo->bhlo", head_outputs, rows)
    error = parts.sum(dim=1) + b_out - target
    return (2 * parts * error[:, None]).sum(dim=(2, 3)).abs().mean(dim=0)


def importance_by_gates_for_each_example(head_outputs, w_out, b_out, target):
    """Right: a gate for every example and head, one backward pass for all."""
    gates = head_outputs.new_ones(head_outputs.shape[:2]).requires_grad_()
    gated = head_outputs * gates[..., None, None]
    output = gated.transpose(1, 2).flatten(2) @ w_out + b_out
    (gradient,) = torch.autograd.grad((output - target).square().sum(), gates)
    return gradient.abs().mean(dim=0)


_EACH = "Each example needs a gradient of its own before anything is averaged."

HEAD_IMPORTANCE = Exercise(
    id="head_importance",
    title="Which heads matter?",
    asks="Give the mean size of the loss's derivative by each head's gate, example by example.",
    parameters=("head_outputs", "w_out", "b_out", "target"),
    driver="tensor_function",
    outputs=("importance",),
    groups={
        "batch": Group(2, "batches"),
        "one": Group(1, "a single example"),
    },
    cases=head_importance_cases,
    reference=head_importance_reference,
    misconceptions=(
        Misconception(
            absolute_value_at_the_end,
            "The absolute value is taken after the mean, so examples that pull in opposite "
            "directions cancel.",
            _EACH,
        ),
        Misconception(
            no_absolute_value,
            "The sign is still there.",
            "The *size* of the gradient is asked for.",
        ),
        Misconception(
            summed_over_examples,
            "The sizes are summed over the examples; their mean is asked for.",
            "The result must not grow with the batch.",
        ),
        Misconception(
            mean_over_heads,
            "The mean runs over the heads; it should run over the examples.",
            "The result has one number for each head.",
        ),
        Misconception(
            loss_averaged_over_entries,
            "The loss of an example is the *sum* of the squared errors, not their mean.",
            "Read point 2 again.",
        ),
        Misconception(
            gradient_at_closed_gates,
            "The gradient is taken where all gates are 0; it is asked for where all are 1.",
            "The layer as it is has gates of 1.",
        ),
        Misconception(
            loss_without_the_head,
            "This is how much the loss changes when the head is switched off: a good measure too, "
            "but not the one asked for.",
            "Take the derivative at gate 1.",
        ),
        Misconception(gradients_squared, "The gradients are squared.", "Take absolute values."),
        Misconception(
            sizes_of_the_heads,
            "This says how large the heads are and does not look at the loss.",
            "Use `target`.",
        ),
        Misconception(
            shares_of_the_importance,
            "The result is divided by its sum.",
            "Leave out the division.",
        ),
    ),
    accepted=(
        importance_by_loop,
        importance_by_formula,
        importance_by_gates_for_each_example,
    ),
    equivalent_mutants={
        "`(head_outputs * gates).transpose(1, 2)` → `(head_outputs * gates).transpose(2, 1)`": (
            "the same exchange of two axes"
        ),
        "`head_outputs * gates` → `head_outputs / gates`": (
            "at 1, the derivatives of g and of 1/g differ by their sign"
        ),
        "`output - target` → `target - output`": "the difference is squared",
        "`gradient[:, :, 0, 0]` → `gradient[:, :, -1, 0]`": "this axis has length 1",
        "`gradient[:, :, 0, 0]` → `gradient[:, :, 0, -1]`": "this axis has length 1",
    },
)
