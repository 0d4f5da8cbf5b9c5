"""Exercises of chapter 13 on XLNet's orders: the masks of two streams, and the loss."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def draw_orders(rng, batch, length):
    """Draw a different order for each row, int64 (batch, length); none is its own inverse.

    In each, the place predicted last is not the last place and the first is not place 0.
    """
    orders = []
    while len(orders) < batch:
        order = rng.permutation(length)
        rank = order.argsort()
        plain = (order == rank).all() or order[0] == 0 or order[-1] == length - 1
        backwards = (order[::-1] == rank).all()
        if not plain and not backwards and all((order != other).any() for other in orders):
            orders.append(order)
    return np.array(orders, dtype=np.int64)


# --- permutation_masks ---------------------------------------------------------------------------


def permutation_masks_cases(rng):
    """Two batches of orders; left to right and right to left; one place."""
    s = draw_sizes(rng, "batch", "length", among=(2, 3))
    for length in (6, 5):
        inputs = {"order": draw_orders(rng, s.batch, length)}
        yield Case("masks", inputs, f"{s.batch} orders of {length} places")
    known = np.stack([np.arange(5), np.arange(5)[::-1]]).astype(np.int64)
    yield Case("edges", {"order": known}, "left to right, and right to left")
    yield Case("edges", {"order": np.zeros((3, 1), np.int64)}, "one place")


def permutation_masks_reference(order):
    """Step by step, collecting what has been predicted."""
    batch, length = order.shape
    content = torch.zeros(batch, length, length, dtype=torch.bool)
    query = content.clone()
    for b in range(batch):
        known = []
        for place in order[b].tolist():
            query[b, place, known] = True
            known.append(place)
            content[b, place, known] = True
    return content, query


def _compared(rank, content=torch.le, query=torch.lt):
    mine, other = rank[:, :, None], rank[:, None, :]
    return content(other, mine), query(other, mine)


def order_taken_for_rank(order):
    """Compares entries of `order` itself."""
    return _compared(order)


def content_hides_itself(order):
    """Both streams strict."""
    return _compared(order.argsort(-1), content=torch.lt)


def query_sees_itself(order):
    """Neither stream strict."""
    return _compared(order.argsort(-1), query=torch.le)


def streams_exchanged(order):
    """Gives (query, content)."""
    return _compared(order.argsort(-1))[::-1]


def sees_what_comes_later(order):
    """Sees the places after its own in the order."""
    return _compared(order.argsort(-1), content=torch.ge, query=torch.gt)


def left_to_right(order):
    """A causal mask, whatever the order."""
    return _compared(torch.arange(order.shape[1]).expand(order.shape))


def rows_in_the_order_of_steps(order):
    """Rows are steps instead of places."""
    content, query = _compared(order.argsort(-1))
    index = order[:, :, None].expand(content.shape)
    return content.gather(1, index), query.gather(1, index)


def true_is_hidden(order):
    """Turned round."""
    content, query = _compared(order.argsort(-1))
    return ~content, ~query


def first_order_for_all(order):
    """The first row's order for the whole batch."""
    return _compared(order[:1].expand(order.shape).argsort(-1))


def causal_and_order(order):
    """Both earlier in the order and to the left."""
    content, query = _compared(order.argsort(-1))
    return content.tril(), query.tril()


def masks_by_scatter(order):
    """Right: ranks written to their places."""
    steps = torch.arange(order.shape[1]).expand(order.shape)
    rank = torch.empty_like(order).scatter_(1, order, steps)
    query = rank.unsqueeze(1) < rank.unsqueeze(2)
    return query | torch.eye(order.shape[1], dtype=torch.bool), query


def masks_by_reordering(order):
    """Right: two triangles, rows and columns moved to their places."""
    batch, length = order.shape
    results = []
    for diagonal in (0, -1):
        triangle = torch.ones(length, length, dtype=torch.bool).tril(diagonal)
        mask = torch.zeros(batch, length, length, dtype=torch.bool)
        for b in range(batch):
            mask[b][order[b][:, None], order[b]] = triangle
        results.append(mask)
    return tuple(results)


def masks_in_numpy(order):
    """Right: NumPy."""
    rank = np.argsort(order.numpy(), axis=1)
    query = rank[:, None, :] < rank[:, :, None]
    content = rank[:, None, :] <= rank[:, :, None]
    return torch.from_numpy(content), torch.from_numpy(query)


PERMUTATION_MASKS = Exercise(
    id="permutation_masks",
    title="An order becomes two masks",
    asks="Say which places each place sees in the content stream and in the query stream.",
    parameters=("order",),
    outputs=("content mask", "query mask"),
    driver="tensor_function",
    groups={
        "masks": Group(2, "batches of orders"),
        "edges": Group(1, "left to right, right to left, one place"),
    },
    cases=permutation_masks_cases,
    reference=permutation_masks_reference,
    misconceptions=(
        Misconception(
            order_taken_for_rank,
            "`order[t]` is a place; it was read as the step of place t.",
            "At which step is place 0 predicted in the example? Which function turns an order "
            "round?",
        ),
        Misconception(
            content_hides_itself,
            "The content stream does not see its own token; it must, for others to read it.",
            "Whose content is vector i of the content stream?",
        ),
        Misconception(
            query_sees_itself,
            "The query stream sees the token that it is to predict.",
            "What is place i of the query stream there to predict?",
        ),
        Misconception(
            streams_exchanged,
            "The two masks are exchanged.",
            "Which one is returned first?",
        ),
        Misconception(
            sees_what_comes_later,
            "Places see what comes *later* in the order.",
            "Which tokens are known when a place is predicted?",
        ),
        Misconception(
            left_to_right,
            "The masks are causal from left to right, whatever the order.",
            "Where does `order` enter your masks?",
        ),
        Misconception(
            rows_in_the_order_of_steps,
            "Row t belongs to step t; rows have to stand at their places.",
            "Is row 0 about place 0, or about the place that is predicted first?",
        ),
        Misconception(
            true_is_hidden,
            "The masks are turned round: True = may be seen.",
            "What does the place predicted last see?",
        ),
        Misconception(
            first_order_for_all,
            "All rows of the batch get the first row's order.",
            "Has your comparison a batch axis?",
        ),
        Misconception(
            causal_and_order,
            "On top of the order, places see only what stands to their left.",
            "May a place see one to its right that was predicted before it?",
        ),
    ),
    accepted=(masks_by_scatter, masks_by_reordering, masks_in_numpy),
    equivalent_mutants={
        "`order.argsort(dim=-1)` → `order.argsort(dim=1)`": "there are two axes",
    },
)

# --- permutation_loss ----------------------------------------------------------------------------


def permutation_loss_cases(rng):
    """Some targets, many, one; the logits of other places are huge and must not matter."""
    for group, batch, length, vocabulary, targets, about in (
        ("some", 3, 7, 5, 2, "two targets in each row"),
        ("some", 2, 6, 7, 4, "more targets than context"),
        ("edges", 3, 5, 6, 1, "one target"),
        ("edges", 2, 5, 7, 5, "every place is a target"),
    ):
        order = draw_orders(rng, batch, length)
        logits = rng.normal(size=(batch, length, vocabulary))
        if targets <= length // 2:
            context = order[:, :-targets]
            for b in range(batch):
                logits[b, context[b]] *= 40
        tokens = rng.integers(vocabulary, size=(batch, length))
        inputs = {"logits": logits, "tokens": tokens, "order": order, "targets": targets}
        yield Case(group, inputs, about)


def permutation_loss_reference(logits, tokens, order, targets):
    """Target by target."""
    losses = []
    for b in range(len(order)):
        for place in order[b].tolist()[order.shape[1] - targets :]:
            row = logits[b, place]
            losses.append(torch.logsumexp(row, dim=0) - row[int(tokens[b, place])])
    return sum(losses) / len(losses)


def _loss(logits, tokens, places, reduction="mean"):
    rows = logits.gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))
    return functional.cross_entropy(
        rows.flatten(0, 1), tokens.gather(1, places).flatten(), reduction=reduction
    )


def every_place(logits, tokens, order, targets):
    """A loss for the context, too."""
    return _loss(logits, tokens, order)


def first_of_the_order(logits, tokens, order, targets):
    """The places predicted first."""
    return _loss(logits, tokens, order[:, :targets])


def last_places(logits, tokens, order, targets):
    """The last places of the text."""
    places = torch.arange(order.shape[1]).expand(order.shape)
    return _loss(logits, tokens, places[:, -targets:])


def order_as_rank(logits, tokens, order, targets):
    """Takes places whose entry of `order` is large."""
    return _loss(logits, tokens, order.argsort(-1)[:, -targets:])


def logits_in_order(logits, tokens, order, targets):
    """Takes row t of the logits for step t."""
    places = order[:, -targets:]
    return functional.cross_entropy(
        logits[:, -targets:].flatten(0, 1), tokens.gather(1, places).flatten()
    )


def next_in_the_text(logits, tokens, order, targets):
    """Shifts: row i for token i + 1."""
    places = order[:, -targets:]
    return _loss(logits, tokens.roll(-1, dims=1), places)


def next_in_the_order(logits, tokens, order, targets):
    """The row of the step before, as a left-to-right model would."""
    places, before = order[:, -targets:], order.roll(1, dims=1)[:, -targets:]
    rows = logits.gather(1, before[..., None].expand(-1, -1, logits.shape[-1]))
    return functional.cross_entropy(rows.flatten(0, 1), tokens.gather(1, places).flatten())


def summed(logits, tokens, order, targets):
    """The sum."""
    return _loss(logits, tokens, order[:, -targets:], reduction="sum")


def summed_in_rows(logits, tokens, order, targets):
    """The sum over a row's targets, the mean over rows."""
    return targets * _loss(logits, tokens, order[:, -targets:])


def divided_by_the_length(logits, tokens, order, targets):
    """Targets only, but divided by all places."""
    return _loss(logits, tokens, order[:, -targets:], reduction="sum") / order.numel()


def softmax_twice(logits, tokens, order, targets):
    """Softmax in front of a cross-entropy."""
    return _loss(logits.softmax(-1), tokens, order[:, -targets:])


def loss_by_ranks(logits, tokens, order, targets):
    """Right: a mask of the places whose rank is large."""
    chosen = order.argsort(dim=-1) >= order.shape[1] - targets
    return functional.cross_entropy(logits[chosen], tokens[chosen])


def loss_by_ignoring(logits, tokens, order, targets):
    """Right: −100 where there is no target."""
    labels = torch.full_like(tokens, -100)
    places = order[:, order.shape[1] - targets :]
    labels.scatter_(1, places, tokens.gather(1, places))
    return functional.cross_entropy(logits.swapaxes(1, 2), labels)


def loss_by_log_softmax(logits, tokens, order, targets):
    """Right: log-softmax, one entry of each row, a mean."""
    logs = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    return -logs.gather(1, order[:, -targets:]).mean()


PERMUTATION_LOSS = Exercise(
    id="permutation_loss",
    title="A loss for the last places of the order",
    asks="Take the cross-entropy of the places that the order predicts last.",
    parameters=("logits", "tokens", "order", "targets"),
    outputs=("loss", "gradient of logits"),
    driver="tensor_function",
    groups={
        "some": Group(2, "some places are targets"),
        "edges": Group(1, "one target, or all places"),
    },
    cases=permutation_loss_cases,
    reference=permutation_loss_reference,
    misconceptions=(
        Misconception(
            every_place,
            "Places that are context only get a loss, too.",
            "How many predictions does each row of the batch make?",
        ),
        Misconception(
            first_of_the_order,
            "The targets are taken from the front of the order, where there is hardly any context.",
            "Which places of an order have seen most?",
        ),
        Misconception(
            last_places,
            "The targets are the last places of the text; they should be the last of the *order*.",
            "Where does `order` enter?",
        ),
        Misconception(
            order_as_rank,
            "`order[t]` is a place; it was read as the step of place t.",
            "In the example, which two places are predicted last?",
        ),
        Misconception(
            logits_in_order,
            "Row t of the logits was taken for step t; rows stand at their places.",
            "Gather rows of logits by the same places as tokens.",
        ),
        Misconception(
            next_in_the_text,
            "Row i is compared with token i + 1. The query stream predicts its *own* place.",
            "Is there anything left to shift here?",
        ),
        Misconception(
            next_in_the_order,
            "Each target is compared with the row of the step before it.",
            "The query stream of place i predicts place i. Is there anything left to shift?",
        ),
        Misconception(
            summed,
            "The losses are summed; the mean is asked.",
            "How does your result change if the batch is repeated?",
        ),
        Misconception(
            summed_in_rows,
            "The losses of a row are summed; the mean over all targets is asked.",
            "How does your result change with the number of targets?",
        ),
        Misconception(
            divided_by_the_length,
            "The sum is divided by all places, not by the number of targets.",
            "How many losses are in the sum?",
        ),
        Misconception(
            softmax_twice,
            "A softmax stands in front of a function that has one inside.",
            "What does `F.cross_entropy` expect: logits or probabilities?",
        ),
    ),
    accepted=(loss_by_ranks, loss_by_ignoring, loss_by_log_softmax),
)
