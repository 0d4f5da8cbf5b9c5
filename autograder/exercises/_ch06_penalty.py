"""Chapter 06: a module that runs on any device."""

from __future__ import annotations

import torch
from torch import nn

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def distance_penalty_cases(rng):
    """Given slopes, the slopes it starts with, fewer queries than keys."""

    def case(group, about, queries_are_fewer=True, given=True):
        s = draw_sizes(rng, "batch", "heads", "few", "keys", among=(2, 3, 4, 5))
        q, k = sorted((s.few, s.keys)) if queries_are_fewer else (s.keys, s.keys)
        scores = rng.normal(size=(s.batch, s.heads, q, k))
        inputs = {"build": {"heads": s.heads}, "inputs": {"scores": scores}}
        if given:
            inputs["weights"] = {"slopes": rng.uniform(0.2, 2.0, size=s.heads)}
        return Case(group, inputs, about)

    yield case("values", "as many queries as keys, given slopes", queries_are_fewer=False)
    yield case("values", "fewer queries than keys, given slopes")
    yield case("slopes", "the slopes that it starts with", given=False)


def slopes_of(heads):
    """The slopes 2^(−8/heads), 2^(−16/heads), …, one for each head."""
    return torch.tensor([2.0 ** (-8 * (head + 1) / heads) for head in range(heads)])


def distances(q, k, device):
    """Distance of each query from each key; the queries are the last q of k tokens."""
    positions = torch.arange(k, device=device)
    return (positions[k - q :, None] - positions).abs()


class PenaltyReference(nn.Module):
    """Distances one by one, laid out with operations that know no device."""

    def __init__(self, heads):
        super().__init__()
        self.register_buffer("slopes", 0.5 ** (torch.arange(1, heads + 1) * 8 / heads))

    def forward(self, scores):
        q, k = scores.shape[-2:]
        ones = torch.ones_like(scores[0, 0], dtype=torch.int64)
        keys, queries = ones.cumsum(1), ones.cumsum(0) + (k - q)
        apart = torch.where(keys > queries, keys - queries, queries - keys)
        return scores - torch.einsum("h,qk->hqk", self.slopes, apart.to(scores.dtype))


class _Penalty(nn.Module):
    """What wrong and right versions share."""

    def __init__(self, heads):
        super().__init__()
        self.register_buffer("slopes", slopes_of(heads))

    def forward(self, scores):
        return scores - self.slopes[:, None, None] * self.apart(scores)

    def apart(self, scores):
        return distances(scores.shape[-2], scores.shape[-1], scores.device)


class slopes_not_registered(_Penalty):
    """Keeps the slopes in a plain attribute."""

    def __init__(self, heads):
        super().__init__(heads)
        slopes = self.slopes
        del self.slopes
        self.slopes = slopes


class slopes_are_parameters(_Penalty):
    """Makes the slopes a parameter."""

    def __init__(self, heads):
        super().__init__(heads)
        slopes = self.slopes
        del self.slopes
        self.slopes = nn.Parameter(slopes)


class positions_on_the_cpu(_Penalty):
    """Makes the positions where tensors are made by default."""

    def apart(self, scores):
        return distances(scores.shape[-2], scores.shape[-1], "cpu")


class positions_made_here_and_copied(_Penalty):
    """Makes the positions on the CPU and copies them in each call."""

    def apart(self, scores):
        return distances(scores.shape[-2], scores.shape[-1], "cpu").to(scores.device)


class positions_in_float32(_Penalty):
    """Fixes the type, so that bfloat16 goes in and float32 comes out."""

    def apart(self, scores):
        return super().apart(scores).to(torch.float32)


class queries_start_at_zero(_Penalty):
    """Takes the first query for the first token."""

    def apart(self, scores):
        q, k = scores.shape[-2:]
        rows = torch.arange(q, device=scores.device)[:, None]
        return (rows - torch.arange(k, device=scores.device)).abs()


class distances_have_a_sign(_Penalty):
    """Rewards keys that come later."""

    def apart(self, scores):
        q, k = scores.shape[-2:]
        positions = torch.arange(k, device=scores.device)
        return positions[k - q :, None] - positions


class distances_have_the_other_sign(_Penalty):
    """Rewards keys that came earlier."""

    def apart(self, scores):
        return -distances_have_a_sign.apart(self, scores)


class penalty_is_added(_Penalty):
    """Rewards distance."""

    def forward(self, scores):
        return scores + self.slopes[:, None, None] * self.apart(scores)


class written_into_the_scores(_Penalty):
    """Changes the caller's scores."""

    def forward(self, scores):
        return scores.sub_(self.slopes[:, None, None] * self.apart(scores))


class first_head_has_slope_one(_Penalty):
    """Starts the powers at 2⁰."""

    def __init__(self, heads):
        super().__init__(heads)
        self.slopes = slopes_of(heads) * 2 ** (8 / heads)


class PenaltyByView(nn.Module):
    """Right: a view of the slopes, one range for rows and one for columns."""

    def __init__(self, heads):
        super().__init__()
        self.register_buffer("slopes", torch.exp2(-8 * torch.arange(1, heads + 1) / heads))

    def forward(self, scores):
        q, k = scores.shape[-2:]
        rows = torch.arange(k - q, k, device=scores.device).unsqueeze(-1)
        columns = torch.arange(k, device=scores.device).unsqueeze(0)
        return scores - self.slopes.view(-1, 1, 1) * torch.abs(columns - rows)


class PenaltyFromTheScores(nn.Module):
    """Right: `new_tensor`-like functions and `to(scores)` inherit the device."""

    def __init__(self, heads):
        super().__init__()
        ratio = 2 ** (-8 / heads)
        self.slopes = nn.Buffer(torch.tensor([ratio**power for power in range(1, heads + 1)]))

    def forward(self, scores):
        steps = scores.new_ones(scores.shape[-1]).cumsum(0)
        apart = (steps[-scores.shape[-2] :].unsqueeze(1) - steps).abs()
        return torch.addcmul(scores, self.slopes.reshape(-1, 1, 1), apart, value=-1)


class PenaltyHeadByHead(nn.Module):
    """Right: a loop over heads."""

    def __init__(self, heads):
        super().__init__()
        self.register_buffer("slopes", torch.pow(2.0, -(torch.arange(heads) + 1.0) * 8 / heads))

    def forward(self, scores):
        apart = distances(*scores.shape[-2:], scores.device).to(scores.dtype)
        heads = [scores[:, h] - slope * apart for h, slope in enumerate(self.slopes)]
        return torch.stack(heads, dim=1)


DISTANCE_PENALTY = Exercise(
    id="distance_penalty",
    title="A module that runs anywhere",
    asks="Lower each score by its head's slope times a distance, on any device.",
    parameters=("build", "inputs", "weights"),
    groups={
        "values": Group(2, "given slopes, on the CPU and elsewhere"),
        "slopes": Group(1, "the slopes that it starts with"),
    },
    cases=distance_penalty_cases,
    reference=PenaltyReference,
    outputs=(
        "result",
        "number of parameters",
        "tensors made on the CPU when the scores are elsewhere",
        "bits of the result for scores in bfloat16",
    ),
    driver="portable_module",
    tolerance=Tolerance(1e-5, 1e-6),  # slopes may be made in float32
    misconceptions=(
        Misconception(
            slopes_not_registered,
            "The `state_dict` has no `slopes`: a plain attribute is neither moved nor saved, and a "
            "buffer with `persistent=False` is not saved.",
            "Which method of `nn.Module` takes a name and a tensor that is not trained?",
        ),
        Misconception(
            slopes_are_parameters,
            "The slopes are a parameter, so an optimiser would change them.",
            "What is the name for a module's tensor that moves with it and is not trained?",
        ),
        Misconception(
            positions_on_the_cpu,
            "A tensor is made on the CPU and meets scores that are elsewhere.",
            "Where does `torch.arange` put its result if you don't say?",
        ),
        Misconception(
            positions_made_here_and_copied,
            "A tensor is made on the CPU in each call and then copied over: it works, and waits.",
            "Functions that make tensors can be told the device.",
        ),
        Misconception(
            positions_in_float32,
            "A tensor of type float32 turns the result into float32, whatever the scores are.",
            "What does PyTorch give for float32 times bfloat16? And for integers times bfloat16?",
        ),
        Misconception(
            queries_start_at_zero,
            "The queries are taken for the first tokens, not for the last ones.",
            "At which position does the first of q queries stand among k keys?",
        ),
        Misconception(
            distances_have_a_sign,
            "Keys after the query get a negative distance, so their scores rise.",
            "Can a distance be negative?",
        ),
        Misconception(
            penalty_is_added,
            "Far keys get higher scores than near ones.",
            "Should the score of a far key rise or fall?",
        ),
        Misconception(
            written_into_the_scores,
            "The caller's `scores` were changed.",
            "Methods that end in an underscore write into their tensor.",
        ),
        Misconception(
            first_head_has_slope_one,
            "The powers begin one step too early: the first slope is 1.",
            "What does the formula give for head 0?",
        ),
        Misconception(
            distances_have_the_other_sign,
            "Keys before the query get a negative distance, so their scores rise.",
            "Can a distance be negative?",
        ),
    ),
    accepted=(PenaltyByView, PenaltyFromTheScores, PenaltyHeadByHead),
    equivalent_mutants={
        "`scores.shape[-2:]` → `scores.shape[2:]`": "scores have four axes",
        "`positions[k - q:, None] - positions` → "
        "`positions - positions[k - q:, None]`": "a distance is the same both ways",
    },
)
