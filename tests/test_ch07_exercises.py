"""What chapter 07's exercises promise: agreement with PyTorch, hidden places, counted work."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention_course.drivers.decoding import PROJECTIONS, TableModel
from attention_course.drivers.tensors import as_tensors
from autograder.exercises._ch07_beam import _log_probabilities
from autograder.exercises.ch07_encoder_decoder import (
    BEAM_SEARCH,
    CACHED_STEP,
    CROSS_ATTENTION,
    DECODER_BLOCK,
    EXERCISES,
    GREEDY_DECODE,
    STEP_LOSSES,
    WARM_UP_RATE,
)

# The two assembled modules take long; the audit asks about them.
QUICK = [exercise for exercise in EXERCISES if exercise.driver != "module"]


@pytest.mark.parametrize("exercise", QUICK, ids=lambda exercise: exercise.id)
def test_every_misconception_is_caught_and_named_and_right_answers_pass(exercise):
    cases = exercise.make_cases(1)
    mistakes = exercise.known_mistakes(cases)
    for right in exercise.accepted:
        verdict = exercise.judge(exercise.run(right, cases), cases, mistakes)
        assert verdict.points == exercise.points, (right.__name__, verdict)
    for wrong, mistake in zip(exercise.misconceptions, mistakes, strict=True):
        verdict = exercise.judge(mistake.outcomes, cases, mistakes)
        assert verdict.points < exercise.points, wrong.name
        assert verdict.misconception == wrong.name, (verdict.misconception, wrong.name)


def weighted(exercise, seed=3):
    """(module of the reference with its weights, tensors of the call) of each case."""
    for case in exercise.make_cases(seed):
        module = exercise.reference(**case.inputs["build"]).double()
        module.load_state_dict(as_tensors(case.inputs["weights"]))
        yield module, as_tensors(case.inputs["inputs"])


@pytest.mark.parametrize("exercise", [CROSS_ATTENTION, DECODER_BLOCK], ids=lambda e: e.id)
def test_padding_of_the_source_does_not_matter(exercise):
    hidden = 0
    for module, given in weighted(exercise):
        mask = given["memory_mask"]
        hidden += int((~mask).sum())
        other = {**given, "memory": torch.where(mask[..., None], given["memory"], -7.0)}
        torch.testing.assert_close(module(**other), module(**given), rtol=1e-10, atol=1e-10)
    assert hidden


def test_the_block_is_causal():
    for module, given in weighted(DECODER_BLOCK):
        whole = module(**given)
        start = {**given, "x": given["x"][:, :1]}
        torch.testing.assert_close(module(**start), whole[:, :1], rtol=1e-10, atol=1e-10)


def test_gains_and_biases_of_the_block_are_random():
    for case in DECODER_BLOCK.make_cases(0):
        norms = [w for name, w in case.inputs["weights"].items() if "norm" in name]
        assert len(norms) == 6 and all(len(set(w.tolist())) == len(w) for w in norms)


def test_losses_are_those_of_the_smoothed_distribution():
    for case in STEP_LOSSES.make_cases(4):
        logits, targets, smoothing = (case.inputs[n] for n in ("logits", "targets", "smoothing"))
        _, losses = STEP_LOSSES.reference(**as_tensors(case.inputs))
        for place in np.argwhere(targets >= 0):
            row, right = logits[tuple(place)], targets[tuple(place)]
            aim = np.full(len(row), smoothing / len(row))
            aim[right] += 1 - smoothing
            expected = (aim * (np.logaddexp.reduce(row) - row)).sum()
            np.testing.assert_allclose(losses[tuple(place)], expected, rtol=1e-9)
        assert (losses[torch.tensor(targets) < 0] == 0).all()


def test_the_rate_peaks_at_the_end_of_the_warm_up():
    rates = WARM_UP_RATE.reference(np.arange(1, 200), 32, 50)
    assert rates.argmax() + 1 == 50
    np.testing.assert_allclose(rates.max(), 1 / np.sqrt(32 * 50))


def test_a_cached_pass_equals_the_whole_pass_and_projects_each_position_once():
    for case, outcome in zip(
        CACHED_STEP.make_cases(6), CACHED_STEP.expected(CACHED_STEP.make_cases(6)), strict=True
    ):
        weights, x, memory, mask = as_tensors(
            [case.inputs[name] for name in ("weights", "x", "memory", "memory_mask")]
        )
        q, k, v = (x @ weights[f"self_{part}"] for part in ("queries", "keys", "values"))
        y = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        k, v = (memory @ weights[f"cross_{part}"] for part in ("keys", "values"))
        seen = F.scaled_dot_product_attention(
            y @ weights["cross_queries"], k, v, attn_mask=mask[:, None]
        )
        np.testing.assert_allclose(outcome.outputs["output"], y + seen, rtol=1e-9, atol=1e-9)
        counts = outcome.outputs["positions projected in each step"]
        assert counts.shape == (x.shape[1], len(PROJECTIONS))
        source = memory.shape[1]
        expected = {"cross_keys": source, "cross_values": source}
        assert counts[0].tolist() == [expected.get(name, 1) for name in PROJECTIONS]
        assert all(
            row.tolist() == [0 if name in expected else 1 for name in PROJECTIONS]
            for row in counts[1:]
        )


def model_of(case):
    given = as_tensors({name: v for name, v in case.inputs.items() if name != "counted"})
    return TableModel(**given.pop("model")), given


def test_greedy_rows_end_at_different_steps_and_batches_equal_single_sentences():
    for seed in range(2):
        for case in GREEDY_DECODE.make_cases(seed):
            model, given = model_of(case)
            tokens = GREEDY_DECODE.reference(model=model, **given)
            assert model.encoder_calls == 1 and model.decoder_calls == tokens.shape[1]
            for row, sentence in zip(tokens, given["source"], strict=True):
                alone = GREEDY_DECODE.reference(model=model, **{**given, "source": sentence[None]})[
                    0
                ]
                assert row[: len(alone)].tolist() == alone.tolist()
                assert (row[len(alone) :] == given["padding"]).all()


def test_one_beam_is_greedy_and_scores_are_those_of_the_tokens():
    for seed in range(2):
        for case in BEAM_SEARCH.make_cases(seed):
            model, given = model_of(case)
            tokens, score = BEAM_SEARCH.reference(model=model, **given)
            memory, total, prefix = model.encode(given["source"]), 0.0, [given["start"]]
            for word in tokens.tolist():
                total += _log_probabilities(model, memory, [prefix])[0][word]
                prefix.append(word)
            assert score == pytest.approx(total / len(tokens) ** given["power"])
            if given["beams"] == 1:
                greedy = GREEDY_DECODE.reference(
                    model=model,
                    padding=-1,  # 0 is a word here
                    **{name: given[name] for name in ("source", "start", "end", "longest")},
                )
                assert greedy[0].tolist() == tokens.tolist()


def test_the_layer_itself_may_not_be_called():
    class Inherited(nn.TransformerDecoderLayer):
        def __init__(self, d_model, heads, d_hidden):
            super().__init__(d_model, heads, d_hidden, dropout=0.0, batch_first=True)

        def forward(self, x, memory, memory_mask):
            future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            return super().forward(x, memory, tgt_mask=future, memory_key_padding_mask=~memory_mask)

    cases = DECODER_BLOCK.make_cases(0)
    verdict = DECODER_BLOCK.judge(DECODER_BLOCK.run(Inherited, cases), cases, [])
    assert verdict.points == 0 and verdict.difference.kind == "forbidden call"


def test_public_cases_stay_small():
    for exercise in EXERCISES:
        for case in exercise.make_cases(0):
            sizes = [v.size for v in case.inputs.values() if isinstance(v, np.ndarray)]
            assert max(sizes, default=0) <= 600, exercise.id
