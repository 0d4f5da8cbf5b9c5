"""Chapter 14: train a model that must do well on new sequences.

What matters is drawn for each submission, and the labels of the new sequences are not in the
kernel. The wrong versions and the reference do not train: each answers as a model would that was
trained so, in closed form, since every one of them runs for every seed of the audit.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course.capstone import VOCABULARY, make_orders
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

# The floor is 24 of 30 in every group. Over 30 seeds the worst group of a trained encoder had 27;
# who reads only the first and the last token has 24 on average.
TRAINING, GROUPS, SIZE = 600, 16, 30
LONGEST = 12  # places at most: more than the batches have that are trained on


def train_reader_cases(rng):
    """One training run; groups of new sequences, half of them with label 1."""
    first, second = rng.choice(np.arange(1, VOCABULARY), size=2, replace=False)
    tokens, labels = make_orders(rng, TRAINING + 3 * GROUPS * SIZE, int(first), int(second))
    new, answers = tokens[TRAINING:], labels[TRAINING:]
    wanted = rng.permutation(np.arange(GROUPS) % 2)
    rows = {label: iter(np.flatnonzero(answers == label)) for label in (0, 1)}
    groups = [new[[next(rows[label]) for _ in range(SIZE)]] for label in wanted]
    inputs = {
        "tokens": tokens[:TRAINING],
        "labels": labels[:TRAINING],
        "longest": LONGEST,
        "groups": np.stack(groups),
    }
    yield Case("reads", inputs, "new sequences")


class Rule(nn.Module):
    """Logits from which of two tokens stands first."""

    def __init__(self, first: int, second: int):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, tokens):
        """tokens: int64 (batch, length). Returns (batch, 2)."""
        place = [(tokens == token).int().argmax(dim=1) for token in (self.first, self.second)]
        yes = (place[0] < place[1]).float()
        return torch.stack([-yes, yes], dim=1) * 4


def find_rule(tokens, labels) -> Rule:
    """Find the two tokens that are in every sequence, and their order where the label is 1."""
    always = [t for t in range(1, int(tokens.max()) + 1) if bool((tokens == t).any(1).all())]
    rule = Rule(*always[:2])
    right = (rule(tokens).argmax(1) == labels).float().mean()
    return rule if right > 0.5 else Rule(rule.second, rule.first)


def train_reader_reference(tokens, labels, longest):
    """The rule that made the data, found by looking: no training."""
    return find_rule(tokens, labels)


class Linear(nn.Module):
    """A linear model of fixed features, fitted by least squares with a small penalty."""

    def __init__(self, features, tokens, labels):
        super().__init__()
        self.features = features
        x = features(tokens).double()
        penalty = torch.eye(x.shape[1], dtype=torch.float64)
        self.weights = torch.linalg.solve(x.T @ x + penalty, x.T @ (2 * labels.double() - 1))

    def forward(self, tokens):
        """tokens: int64 (batch, length). Returns (batch, 2)."""
        score = self.features(tokens).double() @ self.weights
        return torch.stack([-score, score], dim=1)


class Changed(nn.Module):
    """The right rule, with its logits changed by a function of (logits, tokens)."""

    def __init__(self, rule, change):
        super().__init__()
        self.rule, self.change = rule, change

    def forward(self, tokens):
        """tokens: int64 (batch, length). Returns (batch, 2)."""
        return self.change(self.rule(tokens), tokens)


def counts(tokens):
    """How often each token occurs, (batch, VOCABULARY); padding is not counted."""
    return F.one_hot(tokens, VOCABULARY)[..., 1:].sum(dim=1)


def order_not_seen(tokens, labels, longest):
    """A bag of tokens."""
    return Linear(counts, tokens, labels)


def one_answer_for_all(tokens, labels, longest):
    """The commonest label, always."""
    commonest = int(labels.double().mean() > 0.5)
    return Changed(find_rule(tokens, labels), lambda logits, _: logits * 0 + _one(commonest))


def _one(label: int) -> torch.Tensor:
    return F.one_hot(torch.tensor(label), 2).float()


def wrong_target(tokens, labels, longest):
    """The labels turned round."""
    return find_rule(tokens, 1 - labels)


def dropout_left_on(tokens, labels, longest):
    """Comes back in training mode, with dropout."""
    dropout = nn.Dropout(0.1)
    model = Changed(find_rule(tokens, labels), lambda logits, _: dropout(logits))
    return model.train()


def padding_changes_the_logits(tokens, labels, longest):
    """A mean over all places, padding included."""

    def diluted(logits, tokens):
        return logits * (tokens != 0).float().mean(dim=1, keepdim=True)

    return Changed(find_rule(tokens, labels), diluted)


def table_too_short(tokens, labels, longest):
    """A row for each place of the training batches, and none for further ones."""
    places = nn.Embedding(tokens.shape[1], 2)

    def with_places(logits, tokens):
        return logits + 0 * places(torch.arange(tokens.shape[1])).sum()

    return Changed(find_rule(tokens, labels), with_places)


def rows_cut_short(tokens, labels, longest):
    """A slice of the rows, which ends where the training batches end."""
    rows = torch.zeros(tokens.shape[1], 2)

    def with_places(logits, tokens):
        return logits + 0 * (torch.zeros(*tokens.shape, 2) + rows[: tokens.shape[1]]).sum()

    return Changed(find_rule(tokens, labels), with_places)


class SmallReader(nn.Module):
    """Right: a [CLS] vector in front, one post-LN layer, waves for positions."""

    def __init__(self, longest: int, width: int = 32):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.start = nn.Parameter(torch.randn(width) * 0.1)
        angles = torch.arange(longest)[:, None] / 4.0 ** torch.arange(width // 2).div(4)
        self.register_buffer("waves", torch.cat([angles.sin(), angles.cos()], dim=1))
        self.layer = nn.TransformerEncoderLayer(width, 4, 64, 0.0, batch_first=True)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens):
        """tokens: int64 (batch, length). Returns (batch, 2)."""
        x = self.words(tokens) + self.waves[: tokens.shape[1]]
        x = torch.cat([self.start.expand(len(x), 1, -1), x], dim=1)
        padding = F.pad(tokens == 0, (1, 0))
        return self.out(self.layer(x, src_key_padding_mask=padding)[:, 0])


def with_a_first_vector(tokens, labels, longest):
    """Right: another architecture, AdamW in epochs over shuffled data."""
    torch.manual_seed(1)
    model = SmallReader(longest)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(25):
        for rows in torch.randperm(len(tokens)).split(60):
            loss = F.cross_entropy(model(tokens[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def pairs_in_order(tokens):
    """Whether token a stands somewhere before token b, for all pairs."""
    one_hot = F.one_hot(tokens, VOCABULARY).double()
    before = one_hot.cumsum(dim=1) - one_hot
    return torch.einsum("bla,blc->bac", before, one_hot)[:, 1:, 1:].clamp(max=1).flatten(1)


def linear_in_pairs(tokens, labels, longest):
    """Right: no attention, but features that know order."""
    return Linear(pairs_in_order, tokens, labels)


TRAIN_READER = Exercise(
    id="train_reader",
    title="A model that reads order",
    asks="Train a model on labelled sequences; it must be right about new ones.",
    parameters=("tokens", "labels", "longest", "groups"),
    outputs=("answers", "repeatable", "padding has no effect"),
    driver="trainer",
    seconds=12.0,
    groups={"reads": Group(4, "new sequences, asked twice and with more padding")},
    cases=train_reader_cases,
    reference=train_reader_reference,
    misconceptions=(
        Misconception(
            order_not_seen,
            "Your model is sure of no group of new sequences: it guesses. Either it cannot see the "
            "order of tokens, or its training has not got there, or has learned the training "
            "sequences by heart.",
            "Print the loss while you train. Near 0.69 to the end: does the model know positions? "
            "Falling, but not yet small: more steps or a higher rate. Near 0: see point 2.",
        ),
        Misconception(
            one_answer_for_all,
            "Your model gives the same answer to all new sequences.",
            "Print the logits of some sequences with label 0 and some with label 1.",
        ),
        Misconception(
            wrong_target,
            "Your model has learned the labels turned round: 1 where 0 is right.",
            "Which column of the logits belongs to which label?",
        ),
        Misconception(
            dropout_left_on,
            "The same sequences give other logits when asked again: something is still random.",
            "In which mode does the model come back?",
        ),
        Misconception(
            padding_changes_the_logits,
            "All answers are right, but more padding changes the logits: it is seen, or counted in "
            "a mean.",
            "Where does padding come in: attention, the mean, both?",
        ),
        Misconception(
            table_too_short,
            "The model has no positions beyond the training batches' width.",
            "What is the argument `longest` for?",
        ),
        Misconception(
            rows_cut_short,
            "The model has fewer rows of positions than a wider batch has places.",
            "What is the argument `longest` for?",
        ),
    ),
    accepted=(with_a_first_vector, linear_in_pairs),
    without_mutants="each would train a model, and many changes of a training loop are right: "
    "another rate, fewer steps, another order",
)
