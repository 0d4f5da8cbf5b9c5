"""Exercises of chapter 10 on what lies below a head: gradients of tokens, features of layers."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import draw_padding

# --- token_gradients -----------------------------------------------------------------------------


def token_gradients_cases(rng):
    """Sentences of unequal lengths; large numbers in the padding."""
    for group, poison, about in (
        ("values", 1.0, "a batch"),
        ("values", 1.0, "another batch"),
        ("padding", 6.0, "large numbers in the padding"),
    ):
        s = draw_sizes(rng, "batch", "length", "d_model", "inner", "classes", among=(3, 5, 6, 7, 8))
        mask = draw_padding(rng, s.batch, s.length)
        embeddings = rng.normal(size=(s.batch, s.length, s.d_model))
        embeddings[~mask] *= poison
        shapes = {
            "queries": (s.d_model, s.inner),
            "keys": (s.d_model, s.inner),
            "values": (s.d_model, s.d_model),
            "head": (s.d_model, s.classes),
        }
        inputs = {
            "embeddings": embeddings,
            "mask": mask,
            "weights": {
                name: rng.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()
            },
            "labels": rng.integers(0, s.classes, s.batch),
        }
        yield Case(group, inputs, about)


def _hidden(x, mask, weights):
    """One attention layer with a residual, written out."""
    scores = (x @ weights["queries"]) @ (x @ weights["keys"]).mT / weights["keys"].shape[1] ** 0.5
    shares = scores.masked_fill(~mask[:, None], -torch.inf).softmax(dim=-1)
    return x + shares @ (x @ weights["values"])


def token_gradients_reference(embeddings, mask, weights, labels):
    """The chain rule by hand down to the first row of scores, where it is short."""
    queries, keys, values = (embeddings @ weights[n] for n in ("queries", "keys", "values"))
    width = keys.shape[-1] ** 0.5
    scores = (queries[:, :1] * keys).sum(-1) / width
    shares = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    first = embeddings[:, 0] + (shares[..., None] * values).sum(1)
    share = (first @ weights["head"]).softmax(dim=-1)
    wrong = (share - F.one_hot(labels, share.shape[-1])) / len(labels)
    upstream = wrong @ weights["head"].T
    gradient = shares[..., None] * (upstream @ weights["values"].T)[:, None]
    of_shares = (values * upstream[:, None]).sum(-1)
    of_scores = shares * (of_shares - (shares * of_shares).sum(1, keepdim=True)) / width
    gradient = gradient + of_scores[..., None] * (queries[:, :1] @ weights["keys"].T)
    of_query = (of_scores[..., None] * keys).sum(1)
    gradient[:, 0] += upstream + of_query @ weights["queries"].T
    return gradient.norm(dim=-1)


def _gradients(embeddings, mask, weights, labels, loss=None, wrt_hidden=False, size=None):
    """Autograd, with parts that wrong versions exchange."""
    x = embeddings.clone().requires_grad_()
    hidden = _hidden(x, mask, weights)
    logits = hidden @ weights["head"]
    loss = loss or (lambda logits: F.cross_entropy(logits[:, 0], labels))
    (gradient,) = torch.autograd.grad(loss(logits), hidden if wrt_hidden else x)
    return size(gradient) if size else gradient.norm(dim=-1)


def gradients_of_the_output(embeddings, mask, weights, labels):
    """Differentiates for the layer's output instead of its input."""
    return _gradients(embeddings, mask, weights, labels, wrt_hidden=True)


def loss_at_every_token(embeddings, mask, weights, labels):
    """Gives every token the loss."""

    def loss(logits):
        return F.cross_entropy(logits.flatten(0, 1), labels.repeat_interleave(logits.shape[1]))

    return _gradients(embeddings, mask, weights, labels, loss)


def loss_at_the_mean(embeddings, mask, weights, labels):
    """Puts the loss on the mean over tokens."""

    def loss(logits):
        mean = (logits * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return F.cross_entropy(mean, labels)

    return _gradients(embeddings, mask, weights, labels, loss)


def losses_summed(embeddings, mask, weights, labels):
    """Sums over the batch."""

    def loss(logits):
        return F.cross_entropy(logits[:, 0], labels, reduction="sum")

    return _gradients(embeddings, mask, weights, labels, loss)


def logits_for_loss(embeddings, mask, weights, labels):
    """Differentiates the right class's logit, not the loss."""

    def loss(logits):
        return logits[:, 0].gather(1, labels[:, None]).mean()

    return _gradients(embeddings, mask, weights, labels, loss)


def squares_without_a_root(embeddings, mask, weights, labels):
    """Sums squares and takes no root."""
    return _gradients(embeddings, mask, weights, labels, size=lambda g: (g**2).sum(-1))


def sum_of_the_entries(embeddings, mask, weights, labels):
    """Adds up the entries with their signs."""
    return _gradients(embeddings, mask, weights, labels, size=lambda g: g.sum(-1))


def sum_of_sizes(embeddings, mask, weights, labels):
    """Adds up absolute values."""
    return _gradients(embeddings, mask, weights, labels, size=lambda g: g.abs().sum(-1))


def mask_forgotten(embeddings, mask, weights, labels):
    """Lets padding be seen."""
    return _gradients(embeddings, torch.ones_like(mask), weights, labels)


def by_backward(embeddings, mask, weights, labels):
    """Right: backward() and .grad."""
    x = embeddings.detach().clone()
    x.requires_grad = True
    logits = _hidden(x, mask, weights)[:, 0] @ weights["head"]
    F.cross_entropy(logits, labels).backward()
    return x.grad.pow(2).sum(dim=2).sqrt()


def by_sentence(embeddings, mask, weights, labels):
    """Right: one sentence after the other."""
    rows = []
    for x, seen, label in zip(embeddings, mask, labels, strict=True):
        x = x[None].detach().requires_grad_()
        logits = (_hidden(x, seen[None], weights) @ weights["head"])[0, 0]
        loss = (logits.logsumexp(0) - logits[label]) / len(labels)
        rows.append(torch.linalg.vector_norm(torch.autograd.grad(loss, x)[0][0], dim=-1))
    return torch.stack(rows)


def by_weights(embeddings, mask, weights, labels):
    """Right: the loss written out, gradients collected by torch.autograd.backward."""
    x = torch.nn.Parameter(embeddings)
    logits = (_hidden(x, mask, weights) @ weights["head"])[:, 0]
    right = logits.log_softmax(-1)[torch.arange(len(labels)), labels]
    torch.autograd.backward(-right.mean())
    return torch.einsum("bld,bld->bl", x.grad, x.grad) ** 0.5


TOKEN_GRADIENTS = Exercise(
    id="token_gradients",
    title="Who learns when [CLS] has the loss",
    asks="Put the loss on the first token only; give each embedding's gradient as a length.",
    parameters=("embeddings", "mask", "weights", "labels"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(1, "sentences of unequal lengths"),
        "padding": Group(1, "large numbers in the padding"),
    },
    cases=token_gradients_cases,
    reference=token_gradients_reference,
    misconceptions=(
        Misconception(
            gradients_of_the_output,
            "This is the gradient for the layer's output: there only the first token has one.",
            "For which tensor do you ask the gradient?",
        ),
        Misconception(
            loss_at_every_token,
            "Every token has a loss; only the first may have one.",
            "Which rows of the layer's output go into the head?",
        ),
        Misconception(
            loss_at_the_mean,
            "The head reads the mean over tokens; only the first token's vector may go in.",
            "Which rows of the layer's output go into the head?",
        ),
        Misconception(
            losses_summed,
            "The losses of the batch are added up; their mean is asked for.",
            "What happens to the gradients when the batch grows?",
        ),
        Misconception(
            logits_for_loss,
            "A logit is differentiated, not the cross-entropy.",
            "Where does your code use the softmax?",
        ),
        Misconception(
            squares_without_a_root,
            "These are squared lengths.",
            "How is the length of a vector defined?",
        ),
        Misconception(
            sum_of_the_entries,
            "The entries are added up with their signs, so they cancel.",
            "How is the length of a vector defined?",
        ),
        Misconception(
            sum_of_sizes,
            "Absolute values are added up; the Euclidean length is asked for.",
            "How is the length of a vector defined?",
        ),
        Misconception(
            mask_forgotten,
            "Padding is seen, so it gets a gradient, and it takes weight from the tokens.",
            "What do you hand over as `mask`?",
        ),
    ),
    accepted=(by_backward, by_sentence, by_weights),
    equivalent_mutants={
        "`embeddings.clone()` → `embeddings`": "no number of the caller's tensor changes",
    },
)

# --- layer_features ------------------------------------------------------------------------------

WAYS = ("last", "second last", "sum", "sum of last four", "last four side by side")


def layer_features_cases(rng):
    """Each way once, a stack of another size, an unknown way."""

    def states():
        s = draw_sizes(rng, "batch", "length", "d_model", among=(2, 3, 5))
        return rng.normal(size=(int(rng.choice([7, 9])), s.batch, s.length, s.d_model))

    for group, ways in (("one", WAYS[:2]), ("several", WAYS[2:])):
        for way in ways:
            yield Case(group, {"states": states(), "way": way}, way)
    yield Case("several", {"states": states(), "way": "first"}, "an unknown way")


def layer_features_reference(states, way):
    """NumPy."""
    if way not in WAYS:
        raise ValueError(f"way must be one of {WAYS}; got {way!r}.")
    layers = list(states.numpy())[1:]
    return torch.from_numpy(
        {
            "last": lambda: layers[-1],
            "second last": lambda: layers[-2],
            "sum": lambda: np.sum(layers, axis=0),
            "sum of last four": lambda: np.sum(layers[-4:], axis=0),
            "last four side by side": lambda: np.concatenate(layers[-4:], axis=-1),
        }[way]()
    )


def _except(way, states, *exchanged):
    """The right features but for the ways in `exchanged`: pairs of a way and a function."""
    for other, function in exchanged:
        if way == other:
            return function(states)
    return layer_features_reference(states, way)


def embeddings_summed_too(states, way):
    """Counts the embeddings as a layer."""
    return _except(way, states, ("sum", lambda s: s.sum(0)))


def lowest_layer_for_last(states, way):
    """Counts from the bottom."""
    return _except(way, states, ("last", lambda s: s[0]), ("second last", lambda s: s[1]))


def one_layer_too_low(states, way):
    """Takes the third last for the second last."""
    return _except(way, states, ("second last", lambda s: s[-3]))


def means_for_sums(states, way):
    """Averages."""
    return _except(
        way,
        states,
        ("sum", lambda s: s[1:].mean(0)),
        ("sum of last four", lambda s: s[-4:].mean(0)),
    )


def top_layer_first(states, way):
    """Puts the highest layer first."""
    return _except(
        way, states, ("last four side by side", lambda s: torch.cat(list(s[-4:].flip(0)), -1))
    )


def along_the_sentence(states, way):
    """Joins along the axis of tokens."""
    return _except(way, states, ("last four side by side", lambda s: torch.cat(list(s[-4:]), 1)))


def lowest_four(states, way):
    """Takes the four lowest layers."""
    return _except(
        way,
        states,
        ("sum of last four", lambda s: s[1:5].sum(0)),
        ("last four side by side", lambda s: torch.cat(list(s[1:5]), -1)),
    )


def features_mixed(states, way):
    """Puts the layers' axis before the features' and flattens the wrong way round."""
    return _except(
        way, states, ("last four side by side", lambda s: s[-4:].movedim(0, -1).flatten(-2))
    )


def unknown_ways_accepted(states, way):
    """Takes the last layer for every unknown way."""
    return layer_features_reference(states, way if way in WAYS else "last")


def by_ifs(states, way):
    """Right: branches."""
    if way == "last":
        return states[-1]
    if way == "second last":
        return states[-2]
    if way == "sum":
        return states[1:].sum(dim=0)
    top = states[-4:]
    if way == "sum of last four":
        return top.sum(dim=0)
    if way == "last four side by side":
        return torch.cat(tuple(top), dim=-1)
    raise ValueError(way)


def by_moving_axes(states, way):
    """Right: moves the layers' axis and flattens."""
    if way not in WAYS:
        raise ValueError(way)
    layers = {"last": (-1, None), "second last": (-2, -1), "sum": (1, None)}
    chosen = states[slice(*layers.get(way, (-4, None)))]
    if way == "last four side by side":
        return chosen.movedim(0, -2).flatten(start_dim=-2)
    return chosen.sum(0)


def by_loop(states, way):
    """Right: adds layer by layer."""
    if way not in WAYS:
        raise ValueError(way)
    low, high = {"last": (1, 0), "second last": (2, 1), "sum": (len(states) - 1, 0)}.get(
        way, (4, 0)
    )
    chosen = [states[len(states) - place] for place in range(low, high, -1)]
    if way == "last four side by side":
        return torch.cat(chosen, dim=3 - 1)
    total = torch.zeros_like(states[0])
    for layer in chosen:
        total = total + layer
    return total


LAYER_FEATURES = Exercise(
    id="layer_features",
    title="Features from several layers",
    asks="Make one vector for each token from the outputs of all layers, in five ways.",
    parameters=("states", "way"),
    driver="tensor_function",
    groups={
        "one": Group(1, "one layer"),
        "several": Group(1, "several layers, and an unknown way"),
    },
    cases=layer_features_cases,
    reference=layer_features_reference,
    misconceptions=(
        Misconception(
            embeddings_summed_too,
            "The embeddings, entry 0 of `states`, are in the sum; they are no layer's output.",
            "What does `states[0]` hold?",
        ),
        Misconception(
            lowest_layer_for_last,
            "Layers are counted from the bottom: the last one is the highest.",
            "Which entry of `states` does the head usually read?",
        ),
        Misconception(
            one_layer_too_low,
            "The third last layer is taken for the second last.",
            "Which index does the last entry have, counted from the end?",
        ),
        Misconception(
            means_for_sums,
            "Layers are averaged; their sum is asked for.",
            "How does your result grow with the number of layers?",
        ),
        Misconception(
            top_layer_first,
            "The four layers stand side by side from the highest down; the contract starts low.",
            "Which layer's features come first?",
        ),
        Misconception(
            along_the_sentence,
            "The layers are joined along the tokens; they belong side by side on the last axis.",
            "How many tokens should the result have?",
        ),
        Misconception(
            lowest_four,
            "The four lowest layers are taken.",
            "Which slice holds the *last* four?",
        ),
        Misconception(
            features_mixed,
            "The features of the four layers are interleaved one by one; each layer's stay "
            "together.",
            "Look at the first entries of one token: from how many layers are they?",
        ),
        Misconception(
            unknown_ways_accepted,
            "An unknown way is taken for another one; it has to be refused.",
            "What happens in your code if no branch fits?",
        ),
    ),
    accepted=(by_ifs, by_moving_axes, by_loop),
)
