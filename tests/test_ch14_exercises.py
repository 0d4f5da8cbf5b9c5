"""What chapter 14 promises: a task that no shortcut solves, drivers that see, hidden labels."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from attention_course.capstone import (
    LONGEST,
    SHORTEST,
    VOCABULARY,
    GivenReader,
    attention_of,
    logits_without,
    make_orders,
    make_task,
)
from attention_course.drivers.trained import FLOOR, UNDECIDED
from autograder.audit.answers import read_answer
from autograder.audit.checks import check_mutants
from autograder.audit.trials import Report, make_trial
from autograder.exercises._ch14_leaks import LEAKS
from autograder.exercises._ch14_train import (
    GROUPS,
    SIZE,
    TRAIN_READER,
    TRAINING,
    Linear,
    find_rule,
    one_answer_for_all,
)
from autograder.masters import SOLUTIONS

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def test_sequences_are_what_the_text_says():
    tokens, labels = make_orders(np.random.default_rng(0), 1_001, 3, 7)
    assert labels.sum() == 501
    lengths = (tokens != 0).sum(1)
    assert set(lengths.tolist()) == set(range(SHORTEST, LONGEST + 1))
    assert all((row[:n] > 0).all() for row, n in zip(tokens, lengths, strict=True))
    assert ((tokens == 3).sum(1) == 1).all() and ((tokens == 7).sum(1) == 1).all()
    assert (((tokens == 3).argmax(1) < (tokens == 7).argmax(1)) == labels).all()
    assert len({row.tobytes() for row in tokens}) == len(tokens)


def test_nothing_is_tested_that_was_trained_on():
    (case,) = TRAIN_READER.make_cases(4)
    trained = {row.tobytes() for row in case.inputs["tokens"]}
    new = case.inputs["groups"]
    assert (len(trained), new.shape) == (TRAINING, (GROUPS, SIZE, LONGEST))
    assert not trained & {row.tobytes() for group in new for row in group}
    task = make_task(4)
    both = torch.cat([task.tokens, task.test_tokens])
    assert len(both.unique(dim=0)) == len(both)


def test_the_kernel_gets_no_label_of_a_new_sequence():
    cases = [TRAIN_READER.make_cases(seed)[0] for seed in range(5)]
    assert {tuple(case.inputs) for case in cases} == {("tokens", "labels", "longest", "groups")}
    answers = [TRAIN_READER.expected([case])[0].outputs["answers"] for case in cases]
    assert all(sorted(answer) == [0] * 8 + [1] * 8 for answer in answers)
    assert len({tuple(answer) for answer in answers}) == 5


def by_heart(tokens, labels, longest):
    """Knows the training sequences, and answers 0 to all others."""
    known = dict(zip(map(tuple, tokens.tolist()), labels.tolist(), strict=True))

    class Memory(nn.Module):
        def forward(self, tokens):
            found = torch.tensor([known.get(tuple(row), 0) for row in tokens.tolist()])
            return nn.functional.one_hot(found, 2).double()

    return Memory()


def linear_in(features):
    return lambda tokens, labels, longest: Linear(features, tokens, labels)


def ones(tokens):
    return nn.functional.one_hot(tokens, VOCABULARY)


def ends(tokens):
    last = (tokens != 0).sum(dim=1) - 1
    return torch.cat([ones(tokens[:, 0]), ones(tokens.gather(1, last[:, None])[:, 0])], dim=1)


@functools.cache
def public_rule():
    public = TRAIN_READER.make_cases(0)[0].inputs
    return find_rule(torch.from_numpy(public["tokens"]), torch.from_numpy(public["labels"]))


def the_public_pair(tokens, labels, longest):
    """The tokens that matter in the case that everybody sees."""
    return public_rule()


SHORTCUTS = {
    "a bag of tokens": linear_in(lambda tokens: ones(tokens).sum(dim=1)),
    "the first token": linear_in(lambda tokens: ones(tokens[:, 0])),
    "the first and the last token": linear_in(ends),
    "the length": linear_in(lambda tokens: ones((tokens != 0).sum(dim=1))),
    "learned by heart": by_heart,
    "one answer for all": one_answer_for_all,
    "the public case's tokens": the_public_pair,
}


@pytest.fixture(scope="module")
def drawn():
    return [TRAIN_READER.make_cases(seed) for seed in range(1, 9)]


@pytest.mark.parametrize("name", SHORTCUTS)
def test_a_shortcut_earns_nothing_on_any_seed(name, drawn):
    for cases in drawn:
        outcomes = TRAIN_READER.run(SHORTCUTS[name], cases)
        assert TRAIN_READER.judge(outcomes, cases, []).points == 0


def test_the_floor_is_a_share_of_each_group():
    (case,) = TRAIN_READER.make_cases(2)
    rule = find_rule(*(torch.from_numpy(case.inputs[name]) for name in ("tokens", "labels")))

    def wrong_in(count):
        class Spoilt(nn.Module):
            def forward(self, tokens):
                logits = rule(tokens).reshape(GROUPS, SIZE, 2).clone()
                logits[0, :count] *= -1
                return logits.flatten(0, 1)

        return TRAIN_READER.run(lambda tokens, labels, longest: Spoilt(), [case])[0]

    allowed = SIZE - round(FLOOR * SIZE)
    (right,) = TRAIN_READER.expected([case])
    assert (wrong_in(allowed).outputs["answers"] == right.outputs["answers"]).all()
    spoilt = wrong_in(allowed + 1).outputs["answers"]
    assert spoilt[0] == UNDECIDED and (spoilt[1:] == right.outputs["answers"][1:]).all()


@pytest.mark.parametrize(
    "candidate, words",
    [
        (lambda tokens, labels, longest: 3, "an `nn.Module`, is expected"),
        (lambda tokens, labels, longest: nn.Embedding(10, 2), "logits (batch, 2) are expected"),
        (3, "a function is expected"),
    ],
)
def test_what_is_no_reader_is_told_so(candidate, words):
    (outcome,) = TRAIN_READER.run(candidate, TRAIN_READER.make_cases(1))
    assert outcome.status == "unusable" and words in outcome.message


def test_why_there_are_no_mutants_is_said():
    chapter = next(SOLUTIONS.glob("14_*.py")).stem
    report, answer = Report("leaks"), read_answer(chapter, "leaks")
    exercise = replace(LEAKS, without_mutants="a reason")
    check_mutants(report, [make_trial(report, exercise, 0)], answer)
    assert report.notes == ["leaks: no mutants: a reason."] and "mutants" not in report.facts


def test_attention_is_read_as_the_model_computes_it():
    torch.manual_seed(0)
    model = GivenReader().eval()
    tokens = torch.tensor([3, 1, 4, 1, 5])
    weights = attention_of(model, tokens)
    assert weights.shape == (2, 4, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 5))
    layer = model.encoder.encoder.layers[0]
    x = model.encoder.words(tokens) + model.encoder.places.weight[:5]
    y = layer.norm1(x)[None]
    first = layer.self_attn(y, y, y, average_attn_weights=False)[1][0]
    torch.testing.assert_close(weights[0], first)
    padded = torch.cat([tokens, torch.zeros(2, dtype=torch.int64)])
    torch.testing.assert_close(attention_of(model, padded)[..., :5, :5], weights)
    with pytest.raises(ValueError, match=r"no `nn\.MultiheadAttention`"):
        attention_of(nn.Linear(2, 2), tokens)


def test_a_hidden_key_is_read_by_nobody():
    torch.manual_seed(1)
    model = GivenReader().eval()
    tokens = torch.tensor([3, 1, 4, 0])
    plain = model(tokens[None])[0].detach()
    torch.testing.assert_close(logits_without(model, tokens, 3), plain)  # nobody reads padding
    hidden = logits_without(model, tokens, 1)
    assert not torch.allclose(hidden, plain)
    x = model.encoder.words(tokens[None]) + model.encoder.places.weight[:4]
    mask = torch.tensor([[False, True, False, True]])
    states = model.encoder.out(model.encoder.encoder(x, src_key_padding_mask=mask))[0, :3]
    torch.testing.assert_close(hidden, states.mean(dim=0).detach())
