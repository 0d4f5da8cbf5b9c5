"""Chapter 11: the discriminator's head."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


class DiscriminatorHeadReference(nn.Module):
    """The formula, with the Gaussian's distribution function in place of a GELU."""

    def __init__(self, d_model):
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)
        self.dense_prediction = nn.Linear(d_model, 1)

    def forward(self, states):
        """Give scores (batch, length)."""
        hidden = states @ self.dense.weight.T + self.dense.bias
        hidden = hidden * (1 + torch.erf(hidden / 2**0.5)) / 2
        return torch.einsum("...d,od->...o", hidden, self.dense_prediction.weight).sum(-1) + (
            self.dense_prediction.bias
        )


def discriminator_head_cases(rng):
    """Two sizes; one place."""
    for group, lengths, about in (
        ("values", None, "several places"),
        ("values", None, "other sizes"),
        ("edges", 1, "one place"),
    ):
        s = draw_sizes(rng, "batch", "length", "d_model", among=(2, 3, 5, 6))
        length = lengths or s.length
        weights = {
            "dense.weight": rng.normal(size=(s.d_model, s.d_model)),
            "dense.bias": rng.normal(size=s.d_model),
            "dense_prediction.weight": rng.normal(size=(1, s.d_model)),
            "dense_prediction.bias": rng.normal(size=1),
        }
        yield Case(
            group,
            {
                "build": {"d_model": s.d_model},
                "weights": weights,
                "inputs": {"states": rng.normal(size=(s.batch, length, s.d_model))},
                "upstream": rng.normal(size=(s.batch, length)),
            },
            about,
        )


class _Head(nn.Module):
    """Right unless something is overridden."""

    def __init__(self, d_model):
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)
        self.dense_prediction = nn.Linear(d_model, 1)

    def bend(self, hidden):
        """The activation."""
        return F.gelu(hidden)

    def forward(self, states):
        """Give scores."""
        return self.dense_prediction(self.bend(self.dense(states))).squeeze(-1)


class no_activation(_Head):
    """Two linear maps in a row."""

    def bend(self, hidden):
        return hidden


class relu_instead(_Head):
    """ReLU."""

    def bend(self, hidden):
        return hidden.relu()


class tanh_instead(_Head):
    """tanh, as in BERT's pooler."""

    def bend(self, hidden):
        return hidden.tanh()


class sigmoid_taken(_Head):
    """Probabilities for logits."""

    def forward(self, states):
        return super().forward(states).sigmoid()


class last_axis_left(_Head):
    """(batch, length, 1)."""

    def forward(self, states):
        return super().forward(states)[..., None]


class first_place_only(_Head):
    """One score for each sentence, from its first place."""

    def forward(self, states):
        return super().forward(states)[:, 0]


class first_map_left_out(_Head):
    """The second map only."""

    def forward(self, states):
        return self.dense_prediction(states).squeeze(-1)


class residual_added(_Head):
    """A residual link around the first map."""

    def bend(self, hidden):
        return F.gelu(hidden)

    def forward(self, states):
        return self.dense_prediction(states + F.gelu(self.dense(states))).squeeze(-1)


class activation_at_the_end(_Head):
    """Both maps, then GELU."""

    def forward(self, states):
        return F.gelu(self.dense_prediction(self.dense(states))).squeeze(-1)


class head_by_index(_Head):
    """Right: takes the only feature by its index."""

    def forward(self, states):
        return self.dense_prediction(nn.GELU()(self.dense(states)))[..., 0]


class head_by_hand(_Head):
    """Right: products written out, a dot product at the end."""

    def forward(self, states):
        hidden = F.gelu(states @ self.dense.weight.mT + self.dense.bias)
        return hidden @ self.dense_prediction.weight[0] + self.dense_prediction.bias


class head_by_normal(_Head):
    """Right: GELU as x · Φ(x)."""

    def bend(self, hidden):
        return hidden * torch.special.ndtr(hidden)

    def forward(self, states):
        return self.dense_prediction(self.bend(self.dense(states))).flatten(1)


DISCRIMINATOR_HEAD = Exercise(
    id="discriminator_head",
    title="The discriminator's head",
    asks="Give one score for each place: a linear map, GELU, a linear map to one number.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=("scores", "gradient of states"),
    driver="module",
    seconds=5.0,
    groups={"values": Group(1, "several places"), "edges": Group(1, "one place")},
    cases=discriminator_head_cases,
    reference=DiscriminatorHeadReference,
    misconceptions=(
        Misconception(
            no_activation,
            "There is no GELU: two linear maps in a row are one.",
            "What stands between the two maps?",
        ),
        Misconception(
            relu_instead,
            "A ReLU is used; the contract says GELU.",
            "Which activation does the contract name?",
        ),
        Misconception(
            tanh_instead,
            "A tanh is used; that is BERT's pooler.",
            "Which activation does the contract name?",
        ),
        Misconception(
            sigmoid_taken,
            "A sigmoid was taken; the loss expects scores and takes it itself.",
            "Does the contract ask for scores or for probabilities?",
        ),
        Misconception(
            last_axis_left,
            "The result still has an axis of length 1 at the end.",
            "Which shape does the contract ask for?",
        ),
        Misconception(
            first_place_only,
            "There is one score for each sentence; every place needs its own.",
            "Which shape does the contract ask for?",
        ),
        Misconception(
            first_map_left_out,
            "The first map, `dense`, has no effect.",
            "Where is `dense` used?",
        ),
        Misconception(
            residual_added,
            "The states are added to the hidden layer; there is no residual link here.",
            "Read the formula of the contract again.",
        ),
        Misconception(
            activation_at_the_end,
            "The GELU stands at the end; it belongs between the two maps.",
            "Read the formula of the contract again.",
        ),
    ),
    accepted=(head_by_index, head_by_hand, head_by_normal),
)
