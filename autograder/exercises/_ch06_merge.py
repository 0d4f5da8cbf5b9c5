"""Chapter 06: one more block of keys for a softmax that is corrected as it goes."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_mask, draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def merge_block_cases(rng):
    """A first block, later blocks with lower and higher scores, hidden keys, rows without any."""

    def case(group, about, start=False, shift=0.0, hidden=False, unseen=False, lead=True):
        s = draw_sizes(rng, "batch", "q", "b", "d_v", among=(2, 3, 4, 5))
        axes = (s.batch, s.q) if lead else (s.q,)
        scores = 2 * rng.normal(size=(*axes, s.b))
        values = rng.normal(size=(*axes[:-1], s.b, s.d_v))
        largest, total = rng.normal(size=axes), rng.uniform(1.0, 3.0, size=axes)
        output = rng.normal(size=(*axes, s.d_v))
        if start:
            largest, total, output = np.full(axes, -np.inf), np.zeros(axes), np.zeros_like(output)
        if hidden:
            scores = np.where(draw_mask(rng, *scores.shape), scores, -np.inf)
        if unseen:
            scores[..., 0, :] = -np.inf
            largest[..., :2], total[..., :2], output[..., :2, :] = -np.inf, 0.0, 0.0
        inputs = {"scores": scores + shift, "values": values, "largest": largest + shift}
        return Case(group, {**inputs, "total": total, "output": output}, about)

    yield case("values", "a later block, batch of sentences")
    yield case("values", "the first block, no batch axis", start=True, lead=False)
    yield case("hidden", "some keys hidden", hidden=True)
    yield case("hidden", "rows that have seen nothing, before and now", unseen=True)
    yield case("large", "scores near 900", shift=900.0)
    yield case("large", "scores near −900", shift=-900.0)


def merge_block_reference(scores, values, largest, total, output):
    """Everything at once: what came before is one more key, with its own value."""
    log_total = (largest + torch.log(total))[..., None]
    both = torch.cat([scores, log_total], dim=-1)
    new_largest = torch.maximum(scores.amax(dim=-1), largest)
    base = torch.where(new_largest == -torch.inf, 0.0, new_largest)
    powers = torch.exp(both - base[..., None])
    before = output / torch.where(total == 0, 1.0, total)[..., None]
    mixed = powers[..., :-1] @ values + powers[..., -1:] * before
    return new_largest, powers.sum(dim=-1), mixed


def merge_changed(scores, values, largest, total, output, **changes):
    """The merge with single parts exchanged."""
    block_largest = scores.amax(dim=-1)
    highest = changes.get("highest", torch.maximum)(largest, block_largest)
    base = highest.masked_fill(highest == -torch.inf, 0.0)
    old = torch.exp(largest - base)
    powers = torch.exp(scores - changes.get("base", base)[..., None])
    old_total = changes.get("old_total", old)
    old_output = changes.get("old_output", old)[..., None]
    new_total = total * old_total + powers.sum(dim=-1)
    return highest, new_total, output * old_output + powers @ values


def nothing_rescaled(scores, values, largest, total, output):
    """Moves to the new maximum and leaves the running sums on the old one."""
    one = torch.ones_like(total)
    return merge_changed(scores, values, largest, total, output, old_total=one, old_output=one)


def only_the_sum_rescaled(scores, values, largest, total, output):
    """Forgets to rescale the running output."""
    one = torch.ones_like(total)
    return merge_changed(scores, values, largest, total, output, old_output=one)


def only_the_output_rescaled(scores, values, largest, total, output):
    """Forgets to rescale the running sum."""
    one = torch.ones_like(total)
    return merge_changed(scores, values, largest, total, output, old_total=one)


def maximum_of_the_block_only(scores, values, largest, total, output):
    """Takes the block's maximum for the new one."""
    return merge_changed(scores, values, largest, total, output, highest=lambda old, new: new)


def maximum_never_moves(scores, values, largest, total, output):
    """Keeps the first maximum once there is one."""

    def keep(old, new):
        return torch.where(old == -torch.inf, new, old)

    return merge_changed(scores, values, largest, total, output, highest=keep)


def maximum_starts_at_zero(scores, values, largest, total, output):
    """Never lets the maximum fall below 0."""

    def at_least_zero(old, new):
        return torch.maximum(old, new).clamp(min=0.0)

    return merge_changed(scores, values, largest, total, output, highest=at_least_zero)


def block_lowered_by_its_own_maximum(scores, values, largest, total, output):
    """Takes exp of the block with the block's maximum subtracted, not the common one."""
    own = scores.amax(dim=-1)
    own = own.masked_fill(own == -torch.inf, 0.0)
    return merge_changed(scores, values, largest, total, output, base=own)


def rescaled_the_wrong_way(scores, values, largest, total, output):
    """Multiplies by exp(new − old), which is infinite before the first block."""
    highest = torch.maximum(largest, scores.amax(dim=-1))
    up = torch.exp(highest.masked_fill(highest == -torch.inf, 0.0) - largest)
    return merge_changed(scores, values, largest, total, output, old_total=up, old_output=up)


def output_divided_each_time(scores, values, largest, total, output):
    """Divides the running output by the sum in every block."""
    largest, total, output = merge_changed(scores, values, largest, total, output)
    return largest, total, output / torch.where(total == 0, 1.0, total)[..., None]


def unseen_row_is_nan(scores, values, largest, total, output):
    """−inf minus −inf is NaN."""
    highest = torch.maximum(largest, scores.amax(dim=-1))
    old, powers = torch.exp(largest - highest), torch.exp(scores - highest[..., None])
    mixed = output * old[..., None] + powers @ values
    return highest, total * old + powers.sum(dim=-1), mixed


def no_maximum_at_all(scores, values, largest, total, output):
    """Takes exp of the scores as they are."""
    highest = torch.maximum(largest, scores.amax(dim=-1))
    old = torch.exp(largest)
    powers = torch.exp(scores)
    mixed = output * old[..., None] + powers @ values
    return highest, total * old + powers.sum(dim=-1), mixed


def merged_in_place(scores, values, largest, total, output):
    """Writes into the running output and sum that the caller holds."""
    highest, new_total, mixed = merge_changed(scores, values, largest, total, output)
    return highest, total.copy_(new_total), output.copy_(mixed)


def merged_by_two_factors(scores, values, largest, total, output):
    """Right: a factor for what was there, and one for the block."""
    block = scores.amax(-1)
    block_base = torch.nan_to_num(block, neginf=0.0)
    powers = torch.exp(scores - block_base[..., None])
    highest = torch.maximum(largest, block)
    base = torch.nan_to_num(highest, neginf=0.0)
    old, new = torch.exp(largest - base), torch.exp(block - base)
    mixed = old[..., None] * output + new[..., None] * torch.einsum(
        "...qb,...bv->...qv", powers, values
    )
    return highest, old * total + new * powers.sum(-1), mixed


def merged_by_where(scores, values, largest, total, output):
    """Right: exp first, and zeros put where nothing has been seen."""
    highest = torch.max(torch.cat([scores, largest.unsqueeze(-1)], -1), -1).values
    seen = highest > -torch.inf
    old = torch.where(seen, torch.exp(largest - highest), 0.0)
    powers = torch.where(seen[..., None], torch.exp(scores - highest[..., None]), 0.0)
    mixed = torch.matmul(powers, values) + old[..., None] * output
    return highest, powers.sum(-1) + old * total, mixed


def merged_with_a_floor(scores, values, largest, total, output):
    """Right: the number that is subtracted is never below the smallest of its type."""
    highest = torch.maximum(largest, scores.max(dim=-1).values)
    floor = highest.clamp(min=torch.finfo(scores.dtype).min)
    old = torch.exp(largest - floor)
    powers = torch.exp(scores - floor.unsqueeze(-1))
    return highest, old * total + powers.sum(-1), old.unsqueeze(-1) * output + powers @ values


MERGE_BLOCK = Exercise(
    id="merge_block",
    title="One block more",
    asks="Take one block of scores and values into a running maximum, sum and output.",
    parameters=("scores", "values", "largest", "total", "output"),
    groups={
        "values": Group(2, "first and later blocks"),
        "hidden": Group(1, "hidden keys, rows that have seen nothing"),
        "large": Group(1, "large and very negative scores"),
    },
    cases=merge_block_cases,
    reference=merge_block_reference,
    outputs=("new largest", "new total", "new output"),
    driver="tensor_function",
    misconceptions=(
        Misconception(
            nothing_rescaled,
            "What came before still counts from the old maximum.",
            "The maximum has risen: by which factor are the old powers too large now?",
        ),
        Misconception(
            only_the_sum_rescaled,
            "The running sum is rescaled and the running output is not.",
            "Both are sums of the same powers: what happens to one happens to the other.",
        ),
        Misconception(
            only_the_output_rescaled,
            "The running output is rescaled and the running sum is not.",
            "Both are sums of the same powers: what happens to one happens to the other.",
        ),
        Misconception(
            maximum_of_the_block_only,
            "The new maximum is that of this block alone; an earlier one may be larger.",
            "Which of the two maxima must everything be lowered by?",
        ),
        Misconception(
            maximum_never_moves,
            "The maximum stays at what it was, so a block with higher scores may overflow.",
            "Which of the two maxima must everything be lowered by?",
        ),
        Misconception(
            maximum_starts_at_zero,
            "The maximum never falls below 0: very negative scores all vanish.",
            "What is the maximum of nothing?",
        ),
        Misconception(
            block_lowered_by_its_own_maximum,
            "The block is lowered by its own maximum, and not by the common one.",
            "Two sums can be added only if the same number was subtracted in both.",
        ),
        Misconception(
            rescaled_the_wrong_way,
            "The factor is upside down: what came before should shrink when the maximum rises.",
            "Is exp(old − new) above or below 1? Which one do you need?",
        ),
        Misconception(
            output_divided_each_time,
            "The running output is divided by the sum already; later blocks are then added to it.",
            "What does the contract say about when to divide?",
        ),
        Misconception(
            unseen_row_is_nan,
            "−∞ minus −∞ is NaN: a row that has seen nothing needs another number to subtract.",
            "What may be subtracted from −∞ so that exp gives 0?",
        ),
        Misconception(
            no_maximum_at_all,
            "exp is taken of scores from which nothing was subtracted.",
            "Which number makes the largest power equal to 1?",
        ),
        Misconception(
            merged_in_place,
            "The caller's running sum and output were overwritten.",
            "Methods that end in an underscore, and `+=`, write into their tensor.",
        ),
    ),
    accepted=(merged_by_two_factors, merged_by_where, merged_with_a_floor),
    equivalent_mutants={
        "`new_largest.masked_fill(new_largest == -torch.inf, 0.0)` → "
        "`new_largest.masked_fill(new_largest == -torch.inf, 1.0)`": "exp(−∞ − 1) is 0 as well",
    },
)
