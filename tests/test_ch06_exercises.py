"""What chapter 06's exercises promise: agreement with PyTorch, bounds, places, finite losses."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.source_rules.notebook import Notebook
from attention_course.source_rules.rules import search
from attention_course.source_rules.units import Cell
from autograder.exercises.ch06_gpu import (
    ACCUMULATED_STEP,
    ATTENTION_MEMORY,
    BLOCKED_ATTENTION,
    CACHED_ATTENTION,
    EXERCISES,
    LIBRARY_ATTENTION,
    MERGE_BLOCK,
    MIXED_LOSS,
    ROOFLINE,
)
from autograder.masters import SOLUTIONS, read_master

SEEDS = range(5)


def tensors(inputs):
    return {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}


def test_blocks_agree_with_pytorch_and_the_limit_forbids_all_pairs():
    for seed in SEEDS:
        for case in BLOCKED_ATTENTION.make_cases(seed):
            given = tensors(case.inputs)
            queries, keys, values = (given[name] for name in ("queries", "keys", "values"))
            q, k = queries.shape[1], keys.shape[1]
            assert q * k > given["allowed"], "a mask of all pairs would pass"
            mask = torch.ones(len(queries), q, k, dtype=torch.bool)
            if given["visible"] is not None:
                mask &= given["visible"][:, None]
            if given["causal"]:
                mask &= torch.ones(q, k, dtype=torch.bool).tril(k - q)
            expected = F.scaled_dot_product_attention(queries, keys, values, mask)
            expected = torch.where(mask.any(-1, keepdim=True), expected, 0.0)
            del given["allowed"]
            found = BLOCKED_ATTENTION.reference(**given)
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def test_blocks_have_a_ragged_end_rows_without_keys_and_hidden_first_blocks():
    for seed in SEEDS:
        cases = [case.inputs for case in BLOCKED_ATTENTION.make_cases(seed)]
        assert {case["keys"].shape[1] % case["block"] == 0 for case in cases} == {True, False}
        assert all(case["keys"].shape[1] > 2 * case["block"] for case in cases)
        hidden = [case for case in cases if case["visible"] is not None]
        assert any(~case["visible"][:, : case["block"]].any() for case in hidden) or all(
            (~case["visible"][:, : case["block"]]).all(axis=1).any() for case in hidden
        )


def test_a_later_block_brings_lower_and_higher_maxima():
    for seed in SEEDS:
        case = MERGE_BLOCK.make_cases(seed)[0].inputs
        risen = case["scores"].max(axis=-1) > case["largest"]
        assert risen.any()


def test_merging_all_blocks_is_a_softmax():
    generator = torch.Generator().manual_seed(0)
    scores = 5 * torch.randn(3, 12, generator=generator).double()
    values = torch.randn(12, 2, generator=generator).double()
    state = torch.full((3,), -torch.inf).double(), torch.zeros(3).double(), torch.zeros(3, 2)
    for part, some in zip(scores.split(5, -1), values.split(5), strict=True):
        state = MERGE_BLOCK.reference(part, some, *state)
    torch.testing.assert_close(state[2] / state[1][:, None], scores.softmax(-1) @ values)


def test_attention_with_masks_agrees_with_pytorch():
    for case in LIBRARY_ATTENTION.make_cases(2):
        given = tensors(case.inputs)
        q, k = given["queries"].shape[-2], given["keys"].shape[-2]
        mask = ~given["padding"][:, None, None]
        if given["causal"]:
            mask = mask & torch.ones(q, k, dtype=torch.bool).tril(k - q)
        parts = (given[name] for name in ("queries", "keys", "values"))
        expected = F.scaled_dot_product_attention(*parts, attn_mask=mask)
        found = LIBRARY_ATTENTION.reference(**given)
        torch.testing.assert_close(found, torch.nan_to_num(expected), rtol=1e-9, atol=1e-10)


def test_the_cached_layer_equals_one_causal_pass_and_projects_each_token_once():
    for seed in SEEDS:
        for case in CACHED_ATTENTION.make_cases(seed):
            (outcome,) = CACHED_ATTENTION.expected([case])
            given = tensors(case.inputs)
            length = given["x"].shape[1]
            placed = given["x"] + given["positions"][:length]
            parts = [placed @ given[name] for name in ("w_q", "w_k", "w_v")]
            whole = F.scaled_dot_product_attention(*parts, is_causal=True)
            np.testing.assert_allclose(outcome.outputs["outputs of all calls"], whole, rtol=1e-9)
            counts = outcome.outputs["positions projected to (queries, keys, values) in each call"]
            np.testing.assert_array_equal(counts, [case.inputs["pieces"]] * 3)


def test_the_big_batch_makes_the_same_step():
    for seed in SEEDS:
        for case in ACCUMULATED_STEP.make_cases(seed):
            (outcome,) = ACCUMULATED_STEP.expected([case])
            given = case.inputs
            weight = torch.tensor(given["weights"]["weight"]).requires_grad_()
            bias = torch.tensor(given["weights"]["bias"]).requires_grad_()
            flat = [(x.reshape(-1, x.shape[-1]), t.reshape(-1)) for x, t in given["batches"]]
            x, targets = (torch.tensor(np.concatenate(part)) for part in zip(*flat, strict=True))
            loss = F.cross_entropy(F.linear(x, weight, bias), targets)
            loss.backward()
            np.testing.assert_allclose(outcome.outputs["loss"], loss.item())
            for name, parameter in (("weight", weight), ("bias", bias)):
                moved = parameter.detach() - given["learning_rate"] * parameter.grad
                np.testing.assert_allclose(outcome.outputs[f"{name} afterwards"], moved, rtol=1e-7)
            counts = [(targets >= 0).sum() for _, targets in given["batches"]]
            assert len(set(map(int, counts))) > 1 or len(counts) == 1


def test_logits_are_exact_in_bfloat16_so_that_losses_do_not_depend_on_the_processor():
    for seed in SEEDS:
        for case in MIXED_LOSS.make_cases(seed):
            logits = torch.tensor(case.inputs["x"] @ case.inputs["weight"].T)
            assert torch.equal(logits.bfloat16().double(), logits)
            assert (case.inputs["targets"] >= 0).any()
            if case.group == "large":
                assert logits.abs().max() > 89, "exp must overflow in float32"


def test_bytes_are_those_of_real_tensors_and_of_the_texts_example():
    case = ATTENTION_MEMORY.make_cases(4)[0]
    naive, _ = ATTENTION_MEMORY.reference(**tensors(case.inputs))
    scores = np.zeros((*case.inputs["queries"].shape[:3], case.inputs["keys"].shape[2]), np.float16)
    assert naive == 2 * scores.nbytes
    queries, values = (torch.zeros(1, 1, 10, d, dtype=torch.float16) for d in (2, 3))
    assert ATTENTION_MEMORY.reference(queries, queries, values, 4) == (400, 280)


def test_both_sides_of_the_roof_are_asked_for():
    for case in ROOFLINE.make_cases(1):
        given = case.inputs
        intensity, seconds = ROOFLINE.reference(**given)
        by_memory = intensity < given["peak"] / given["bandwidth"]
        assert by_memory == (case.group == "memory")
        assert seconds > 0


def test_the_notebooks_own_code_may_stand_beside_answers_that_forbid_calls():
    exercises = {exercise.id: exercise for exercise in EXERCISES}
    master = read_master(SOLUTIONS / "06_gpu.py", exercises)
    cells = [
        Cell(f"cell {number}", cell.source)
        for number, cell in enumerate(master.notebook.cells)
        if cell.cell_type == "code"
    ]
    found = search(
        Notebook.read(cells), ("check", "blocked_attention"), BLOCKED_ATTENTION.forbidden
    )
    assert found == []
