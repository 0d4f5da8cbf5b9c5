"""Exercise of chapter 13 on XLNet's two streams."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from attention_course.judging import Case
from autograder.case_making import draw_mask, draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch13_orders import draw_orders, permutation_masks_reference


def two_streams_cases(rng):
    """Masks of orders, in which one row is empty; any masks; large scores."""
    s = draw_sizes(rng, "d_model", "d_k", "d_v", among=(3, 5, 6))
    length = 4
    for group, batch, size, kind, about in (
        ("order", 2, 1.0, "order", "masks of random orders"),
        ("order", 1, 1.0, "any", "any masks; each row sees something"),
        ("large", 1, 40.0, "order", "large scores"),
    ):
        shape = (batch, length, length)
        masks = [draw_mask(rng, *shape) for _ in range(2)]
        if kind == "order":
            order = torch.from_numpy(draw_orders(rng, batch, length))
            masks = [mask.numpy() for mask in permutation_masks_reference(order)]
        inputs = {
            "content": rng.normal(size=(batch, length, s.d_model)),
            "query": rng.normal(size=(batch, length, s.d_model)),
            "content_mask": masks[0],
            "query_mask": masks[1],
            "w_q": size * rng.normal(size=(s.d_model, s.d_k)),
            "w_k": rng.normal(size=(s.d_model, s.d_k)),
            "w_v": rng.normal(size=(s.d_model, s.d_v)),
            "upstream": rng.normal(size=(batch, length, s.d_v)),
        }
        yield Case(group, inputs, about)


def two_streams_reference(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Place by place; only what may be seen is ever touched."""
    results = []
    for stream, mask in ((query, query_mask), (content, content_mask)):
        rows = []
        for b, i in np.ndindex(*mask.shape[:2]):
            seen = content[b, mask[b, i]]
            if len(seen) == 0:
                rows.append(torch.zeros(w_v.shape[1], dtype=w_v.dtype))
                continue
            scores = (seen @ w_k) @ (stream[b, i] @ w_q) / np.sqrt(w_k.shape[1])
            rows.append(torch.softmax(scores, dim=0) @ (seen @ w_v))
        results.append(torch.stack(rows).unflatten(0, mask.shape[:2]))
    return tuple(results)


def _attend(queries, keys, values, mask, scale=None, empty=0.0):
    scores = queries @ keys.mT / (queries.shape[-1] ** 0.5 if scale is None else scale)
    weights = scores.masked_fill(~mask, -1e30).softmax(dim=-1)
    return (weights @ values).where(mask.any(-1, keepdim=True), empty)


def _streams(
    content,
    query,
    content_mask,
    query_mask,
    w_q,
    w_k,
    w_v,
    attend=_attend,
    content_asks=None,
    query_asks=None,
    query_reads=None,
    query_takes=None,
):
    keys, values = content @ w_k, content @ w_v
    query_keys = keys if query_reads is None else query_reads @ w_k
    query_values = values if query_takes is None else query_takes @ w_v
    query_asks = query if query_asks is None else query_asks
    content_asks = content if content_asks is None else content_asks
    return (
        attend(query_asks @ w_q, query_keys, query_values, query_mask),
        attend(content_asks @ w_q, keys, values, content_mask),
    )


def keys_from_each_stream(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """The query stream attends to itself."""
    masks = content_mask, query_mask
    return _streams(content, query, *masks, w_q, w_k, w_v, query_reads=query, query_takes=query)


def values_from_each_stream(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """The query stream takes values of its own."""
    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v, query_takes=query)


def queries_know_the_content(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Queries of both streams are made from contents."""
    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v, query_asks=content)


def one_query_for_both(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Queries of both streams are made from the query stream."""
    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v, content_asks=query)


def masks_exchanged(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """The two masks change places."""
    return _streams(content, query, query_mask, content_mask, w_q, w_k, w_v)


def query_mask_not_used(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """The content's mask in both streams: a place sees what it predicts."""
    return _streams(content, query, content_mask, content_mask, w_q, w_k, w_v)


def content_mask_not_used(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """The query's mask in both streams: contents do not see themselves."""
    return _streams(content, query, query_mask, query_mask, w_q, w_k, w_v)


def results_exchanged(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """(content, query)."""
    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v)[::-1]


def masks_turned(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """True = hidden."""
    return _streams(content, query, ~content_mask, ~query_mask, w_q, w_k, w_v)


def nan_in_empty_rows(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Minus infinity, also where nothing is left."""

    def attend(queries, keys, values, mask):
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ values

    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v, attend=attend)


def everything_in_empty_rows(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """A large negative number: who sees nothing sees everything."""

    def attend(queries, keys, values, mask):
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        return scores.masked_fill(~mask, -1e9).softmax(dim=-1) @ values

    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v, attend=attend)


def not_scaled(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """No root."""

    def attend(*parts):
        return _attend(*parts, scale=1.0)

    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v, attend=attend)


def scaled_by_the_model(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """√d_model."""

    def attend(*parts):
        return _attend(*parts, scale=content.shape[-1] ** 0.5)

    return _streams(content, query, content_mask, query_mask, w_q, w_k, w_v, attend=attend)


def streams_as_one(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Right: both streams as one row of queries over the same keys."""
    queries = torch.cat([query, content], dim=1) @ w_q
    mask = torch.cat([query_mask, content_mask], dim=1)
    result = _attend(queries, content @ w_k, content @ w_v, mask)
    return result.chunk(2, dim=1)


def streams_by_sdpa(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Right: PyTorch's attention, which gives zeros in empty rows; masked to be sure."""
    results = []
    for stream, mask in ((query, query_mask), (content, content_mask)):
        output = functional.scaled_dot_product_attention(
            stream @ w_q, content @ w_k, content @ w_v, attn_mask=mask
        )
        results.append(torch.where(mask.any(-1)[..., None], output, 0.0))
    return results


def streams_by_weights(content, query, content_mask, query_mask, w_q, w_k, w_v):
    """Right: masked weights set to 0 after the softmax of what is left."""

    def attend(stream, mask):
        scores = torch.einsum("bid,bjd->bij", stream @ w_q, content @ w_k) / w_q.shape[1] ** 0.5
        scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
        return (scores.softmax(-1) * mask) @ (content @ w_v)

    return attend(query, query_mask), attend(content, content_mask)


TWO_STREAMS = Exercise(
    id="two_streams",
    title="Two streams",
    asks="Let both streams attend to contents, each with its own queries and its own mask.",
    parameters=(
        "content",
        "query",
        "content_mask",
        "query_mask",
        "w_q",
        "w_k",
        "w_v",
        "upstream",
    ),
    outputs=("query stream", "content stream", "gradient of content", "gradient of query"),
    driver="tensor_function",
    groups={
        "order": Group(3, "masks of orders, and others"),
        "large": Group(1, "large scores"),
    },
    cases=two_streams_cases,
    reference=two_streams_reference,
    misconceptions=(
        Misconception(
            keys_from_each_stream,
            "The query stream takes keys and values from itself; it knows no tokens.",
            "Where do the tokens that a query looks at stand?",
        ),
        Misconception(
            values_from_each_stream,
            "The query stream takes its values from itself.",
            "Where does *what is read* come from, in both streams?",
        ),
        Misconception(
            queries_know_the_content,
            "The queries of the query stream are made from contents: the answer leaks in.",
            "What may a place know about itself before it is predicted?",
        ),
        Misconception(
            one_query_for_both,
            "The content stream asks with queries of the query stream.",
            "Each stream asks for itself.",
        ),
        Misconception(
            masks_exchanged,
            "The two masks are exchanged.",
            "Which stream may see its own token?",
        ),
        Misconception(
            query_mask_not_used,
            "Both streams use `content_mask`: the query stream sees what it is to predict.",
            "Which mask belongs to which stream?",
        ),
        Misconception(
            content_mask_not_used,
            "Both streams use `query_mask`: no content sees itself.",
            "Which mask belongs to which stream?",
        ),
        Misconception(
            results_exchanged,
            "The results are exchanged.",
            "Which stream is returned first?",
        ),
        Misconception(
            masks_turned,
            "The masks are read the wrong way round.",
            "True = may be seen; what does `masked_fill` fill?",
        ),
        Misconception(
            nan_in_empty_rows,
            "A row that sees nothing becomes NaN.",
            "What does the contract want of the place that is predicted first?",
        ),
        Misconception(
            everything_in_empty_rows,
            "A row that sees nothing gets the mean of all values: it sees what it predicts.",
            "What does the contract want of the place that is predicted first?",
        ),
        Misconception(
            not_scaled,
            "Scores are not divided by √d_k.",
            "Point 3 of the contract has a root.",
        ),
        Misconception(
            scaled_by_the_model,
            "Scores are divided by √d_model.",
            "How long are the vectors whose products you take?",
        ),
    ),
    accepted=(streams_as_one, streams_by_sdpa, streams_by_weights),
    equivalent_mutants={"`w_k.shape[-1]` → `w_k.shape[1]`": "there are two axes"},
)
