"""Chapter 09: the losses of pre-training, of words and of sentences."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import IGNORED, draw

# --- mlm_loss ------------------------------------------------------------------------------------


def mlm_loss_cases(rng):
    """Rows with unequal numbers of selected places; sharp logits; nothing selected."""

    def case(group, about, scale=1.0, counts=None):
        s = draw_sizes(rng, "batch", "length", "vocabulary", among=(3, 4, 5))
        batch, length = min(s.batch, s.length), max(s.batch, s.length)
        logits = scale * draw(rng, (batch, length, s.vocabulary))
        labels = rng.integers(1, s.vocabulary, size=(batch, length))
        counts = np.resize([1, 3, 2], batch) if counts is None else np.resize(counts, batch)
        rank = rng.permuted(np.broadcast_to(np.arange(length), (batch, length)), axis=1)
        labels[rank >= counts[:, None]] = IGNORED
        if counts.any():
            labels[0, rank[0].argmin()] = 0  # 0 is a word like others
        if scale > 100:
            first = int(rank[0].argmin())
            logits[0, first, labels[0, first]] -= 2000.0  # a probability of 0 in floating point
        return Case(group, {"logits": logits, "labels": labels.astype(np.int64)}, about)

    yield case("values", "some places of each row")
    yield case("values", "others, sharper logits", scale=3.0)
    yield case("edges", "one selected place in all", counts=[1, 0, 0, 0, 0])
    yield case("edges", "no selected place at all", counts=[0])
    yield case("edges", "logits of some hundred", scale=300.0)


def mlm_loss_reference(logits, labels):
    """One selected place after the other."""
    losses = [
        torch.logsumexp(logits[row, place], 0) - logits[row, place, label]
        for row, labels_of_row in enumerate(labels.tolist())
        for place, label in enumerate(labels_of_row)
        if label != IGNORED
    ]
    return torch.stack(losses).mean() if losses else 0.0 * logits.sum()


def _losses(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none", ignore_index=IGNORED)


def _mean(logits, labels):
    chosen = labels != IGNORED
    return _losses(logits, labels).sum() / chosen.sum().clamp(min=1)


def nan_for_nothing(logits, labels):
    """The mean over nothing."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def all_places_divide(logits, labels):
    """Divides by the number of all places."""
    return _losses(logits, labels).mean()


def every_place_counts(logits, labels):
    """Takes −100 for the word 0."""
    return F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten())


def mean_of_rows(logits, labels):
    """Averages rows, then over rows."""
    counts = (labels != IGNORED).sum(1)
    return (_losses(logits, labels).sum(1) / counts.clamp(min=1)).mean()


def summed(logits, labels):
    """Never divides."""
    return _losses(logits, labels).sum()


def softmax_first(logits, labels):
    """Hands probabilities to the cross-entropy."""
    return _mean(logits.softmax(-1), labels)


def word_zero_left_out(logits, labels):
    """Leaves out places whose label is 0, too."""
    return _mean(logits, labels.masked_fill(labels == 0, IGNORED))


def shifted(logits, labels):
    """Place i is asked for the word at i + 1, as in a GPT."""
    return _mean(logits[:, :-1], labels[:, 1:])


def logarithm_of_a_softmax(logits, labels):
    """log(softmax): log 0 is −∞."""
    chosen = labels != IGNORED
    picked = logits.softmax(-1).gather(2, labels.clamp(min=0)[..., None])[..., 0]
    return torch.where(chosen, -picked.log(), 0.0).sum() / chosen.sum().clamp(min=1)


def perplexity_given(logits, labels):
    """exp of the loss."""
    return _mean(logits, labels).exp()


def best_word_counts(logits, labels):
    """The loss of the word that the model likes best."""
    best = logits.argmax(-1).masked_fill(labels == IGNORED, IGNORED)
    return _mean(logits, best)


def cut_from_the_graph(logits, labels):
    """A new tensor of the right value: no gradient."""
    return torch.tensor(float(_mean(logits, labels)), dtype=logits.dtype)


def picked_first(logits, labels):
    """Right: picks the selected places, then the loss."""
    chosen = labels != IGNORED
    if not chosen.any():
        return logits.sum() * 0
    return F.cross_entropy(logits[chosen], labels[chosen])


def by_gather(logits, labels):
    """Right: log-softmax and gather, a sum over a count."""
    chosen = (labels >= 0).double()
    logs = torch.log_softmax(logits, dim=-1)
    picked = logs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(picked * chosen).sum() / max(float(chosen.sum()), 1.0)


def by_sum(logits, labels):
    """Right: PyTorch's sum, divided by hand."""
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    count = int((labels != IGNORED).sum())
    return total / count if count else total


MLM_LOSS = Exercise(
    id="mlm_loss",
    title="The masked-LM loss",
    asks="Mean cross-entropy over the selected places only.",
    parameters=("logits", "labels"),
    outputs=("loss", "gradient of logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(1, "some places of each row"),
        "edges": Group(1, "no selected place, large logits"),
    },
    cases=mlm_loss_cases,
    reference=mlm_loss_reference,
    misconceptions=(
        Misconception(
            nan_for_nothing,
            "Where no place is selected, the mean is 0/0: NaN.",
            "What does the exercise ask for in that case?",
        ),
        Misconception(
            all_places_divide,
            "The sum is divided by the number of all places.",
            "Over how many losses is the mean?",
        ),
        Misconception(
            every_place_counts,
            "Places that were not selected count as well.",
            "What does the label −100 say?",
        ),
        Misconception(
            mean_of_rows,
            "Each row was averaged first: selected places of some rows weigh more.",
            "By how many places should the sum of all losses be divided?",
        ),
        Misconception(
            summed,
            "The losses are summed; a mean is asked for.",
            "Should twice as many selected places give twice the loss?",
        ),
        Misconception(
            softmax_first,
            "`cross_entropy` takes logits and applies the softmax itself.",
            "How often is a softmax applied in your computation?",
        ),
        Misconception(
            word_zero_left_out,
            "Places whose word is number 0 were left out.",
            "Which label, and which only, marks a place that does not count?",
        ),
        Misconception(
            shifted,
            "Each place was asked for the word after it, as in a GPT.",
            "Does BERT predict the next word or the word at the same place?",
        ),
        Misconception(
            logarithm_of_a_softmax,
            "The softmax of very unequal logits holds zeros, and log 0 is −∞.",
            "Which function gives the logarithm of a softmax in one step?",
        ),
        Misconception(
            perplexity_given,
            "This is the perplexity, exp of the loss.",
            "Drop one function.",
        ),
        Misconception(
            best_word_counts,
            "The loss is that of the word with the largest logit, not of the label.",
            "Where do the labels enter?",
        ),
        Misconception(
            cut_from_the_graph,
            "The value is right but has no gradient.",
            "Look for `float`, `.item()`, `torch.tensor` or `detach`.",
        ),
    ),
    accepted=(picked_first, by_gather, by_sum),
)

# --- pretraining_loss ----------------------------------------------------------------------------


def pretraining_loss_cases(rng):
    """Both labels, one only; a padded batch; confident answers."""

    def case(group, about, labels, scale=1.0):
        s = draw_sizes(rng, "length", "vocabulary", among=(3, 4))
        batch = len(labels)
        mlm_labels = rng.integers(1, s.vocabulary, size=(batch, s.length))
        rank = rng.permuted(np.broadcast_to(np.arange(s.length), (batch, s.length)), axis=1)
        mlm_labels[rank >= np.resize([1, 3, 2], batch)[:, None]] = IGNORED
        mlm_labels[0, rank[0].argmin()] = 0
        return Case(
            group,
            {
                "mlm_logits": scale * draw(rng, (batch, s.length, s.vocabulary)),
                "mlm_labels": mlm_labels.astype(np.int64),
                "nsp_logits": scale * draw(rng, (batch, 2)),
                "nsp_labels": np.array(labels, dtype=np.int64),
            },
            about,
        )

    yield case("values", "both labels", [int(x) for x in rng.permutation([0, 1, 1])])
    yield case("values", "mostly true neighbours", [int(x) for x in rng.permutation([0, 0, 1])])
    yield case("edges", "true neighbours only", [0, 0, 0])
    yield case("edges", "confident and partly wrong", [1, 0, 1], scale=30.0)


def pretraining_loss_reference(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Both losses written out."""
    chosen = mlm_labels != IGNORED
    picked = mlm_logits[chosen]
    words = torch.logsumexp(picked, 1) - picked[torch.arange(len(picked)), mlm_labels[chosen]]
    own = torch.where(nsp_labels == 0, nsp_logits[:, 0], nsp_logits[:, 1])
    return words.mean() + (torch.logsumexp(nsp_logits, 1) - own).mean()


def _mlm(logits, labels, **options):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), **options)


def zero_left_out(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """One criterion for both, which leaves out class 0."""
    nsp = F.cross_entropy(nsp_logits, nsp_labels, ignore_index=0, reduction="sum")
    return _mlm(mlm_logits, mlm_labels) + nsp / (nsp_labels != 0).sum().clamp(min=1)


def mean_of_both(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Halves the sum."""
    return (_mlm(mlm_logits, mlm_labels) + F.cross_entropy(nsp_logits, nsp_labels)) / 2


def mlm_only(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Forgets the sentences."""
    return _mlm(mlm_logits, mlm_labels)


def nsp_only(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Forgets the words."""
    return F.cross_entropy(nsp_logits, nsp_labels)


def one_mean_over_everything(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Puts all single losses together and averages."""
    words = _mlm(mlm_logits, mlm_labels, reduction="sum")
    pairs = F.cross_entropy(nsp_logits, nsp_labels, reduction="sum")
    return (words + pairs) / ((mlm_labels != IGNORED).sum() + len(nsp_labels))


def nsp_summed(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Sums over sentences."""
    return _mlm(mlm_logits, mlm_labels) + F.cross_entropy(nsp_logits, nsp_labels, reduction="sum")


def mlm_summed(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Sums over words."""
    return _mlm(mlm_logits, mlm_labels, reduction="sum") + F.cross_entropy(nsp_logits, nsp_labels)


def nsp_labels_reversed(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """The logits of the two classes are exchanged."""
    return _mlm(mlm_logits, mlm_labels) + F.cross_entropy(nsp_logits, 1 - nsp_labels)


def every_word_counts(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Takes −100 for the word 0."""
    words = _mlm(mlm_logits, mlm_labels.clamp(min=0))
    return words + F.cross_entropy(nsp_logits, nsp_labels)


def divided_by_all_words(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Divides by the number of all places."""
    words = _mlm(mlm_logits, mlm_labels, reduction="none").mean()
    return words + F.cross_entropy(nsp_logits, nsp_labels)


def each_class_by_itself(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Two yes/no questions instead of one choice of two."""
    wanted = F.one_hot(nsp_labels, 2).to(nsp_logits)
    nsp = F.binary_cross_entropy_with_logits(nsp_logits, wanted)
    return _mlm(mlm_logits, mlm_labels) + nsp


def nsp_softmax_twice(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """A softmax before the cross-entropy of sentences."""
    return _mlm(mlm_logits, mlm_labels) + F.cross_entropy(nsp_logits.softmax(-1), nsp_labels)


def by_log_softmax(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Right: log-softmax and nll_loss."""
    words = F.nll_loss(mlm_logits.log_softmax(-1).transpose(1, 2), mlm_labels)
    return F.nll_loss(nsp_logits.log_softmax(-1), nsp_labels) + words


def by_difference(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Right: two classes are one logit, the difference."""
    nsp = F.binary_cross_entropy_with_logits(
        nsp_logits[:, 1] - nsp_logits[:, 0], nsp_labels.to(nsp_logits)
    )
    chosen = mlm_labels >= 0
    return F.cross_entropy(mlm_logits[chosen], mlm_labels[chosen]) + nsp


def by_modules(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """Right: the same criterion object twice."""
    criterion = torch.nn.CrossEntropyLoss()
    words = criterion(mlm_logits.view(-1, mlm_logits.shape[-1]), mlm_labels.view(-1))
    return words + criterion(nsp_logits, nsp_labels)


PRETRAINING_LOSS = Exercise(
    id="pretraining_loss",
    title="Both losses of BERT",
    asks="Add the masked-LM loss and the next-sentence loss.",
    parameters=("mlm_logits", "mlm_labels", "nsp_logits", "nsp_labels"),
    outputs=("loss", "gradient of mlm_logits", "gradient of nsp_logits"),
    driver="tensor_function",
    seconds=5.0,
    groups={
        "values": Group(1, "batches with both labels"),
        "edges": Group(1, "one label only, confident answers"),
    },
    cases=pretraining_loss_cases,
    reference=pretraining_loss_reference,
    misconceptions=(
        Misconception(
            zero_left_out,
            "Pairs with the label 0 were left out, as if 0 meant padding: a model that always says "
            "1 would have no loss.",
            "Which `ignore_index` do the two labels need?",
        ),
        Misconception(
            mean_of_both,
            "The sum of the two losses was halved.",
            "Read point 3 of the exercise again.",
        ),
        Misconception(
            mlm_only,
            "The loss of the sentences is missing.",
            "Where do the `nsp_` arguments enter?",
        ),
        Misconception(
            nsp_only,
            "The loss of the words is missing.",
            "Where do the `mlm_` arguments enter?",
        ),
        Misconception(
            one_mean_over_everything,
            "Words and sentences were averaged together.",
            "Each loss is a mean of its own.",
        ),
        Misconception(
            nsp_summed,
            "The losses of the sentences were summed.",
            "A mean over what?",
        ),
        Misconception(
            mlm_summed,
            "The losses of the words were summed.",
            "A mean over what?",
        ),
        Misconception(
            nsp_labels_reversed,
            "The two classes of sentences are exchanged.",
            "Which column of `nsp_logits` belongs to the label 0?",
        ),
        Misconception(
            every_word_counts,
            "Places that were not selected count as well.",
            "What does the label −100 say?",
        ),
        Misconception(
            divided_by_all_words,
            "The words' loss was divided by the number of all places.",
            "Over how many losses is the mean?",
        ),
        Misconception(
            each_class_by_itself,
            "Each class was treated as a yes/no question of its own.",
            "The two classes exclude each other: which loss says so?",
        ),
        Misconception(
            nsp_softmax_twice,
            "`cross_entropy` applies the softmax itself.",
            "How often is a softmax applied to `nsp_logits`?",
        ),
    ),
    accepted=(by_log_softmax, by_difference, by_modules),
)
