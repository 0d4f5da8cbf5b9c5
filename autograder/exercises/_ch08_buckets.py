"""Chapter 08: T5's buckets for relative positions."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def clear_distances(buckets: int, longest: int, reach: int) -> list[int]:
    """Distances from 0 to `reach` whose bucket does not hang on a last bit of the logarithm."""
    exact, clear = buckets // 2, []
    for n in range(reach):
        step = math.log(max(n, 1) / exact) / math.log(longest / exact) * (buckets - exact)
        if n <= exact or n >= longest or abs(step - round(step)) > 1e-6:
            clear.append(n)
    return clear


def relative_bucket_cases(rng):
    """Both directions; all distances up to beyond the longest; matrices of distances."""

    def case(group, bidirectional, buckets, longest, shape, about):
        clear = clear_distances(buckets // 2 if bidirectional else buckets, longest, 2 * longest)
        signed = np.array([-n for n in clear] + clear)
        distance = rng.permutation(signed)[: int(np.prod(shape))]
        distance[:2] = rng.permutation([-1, 1])  # the nearest ones are always there
        distance = distance.reshape(shape)
        inputs = {
            "distance": distance.astype(np.int64),
            "bidirectional": bidirectional,
            "buckets": buckets,
            "longest": longest,
        }
        return Case(group, inputs, about)

    longest = int(rng.integers(20, 31))
    yield case("both", True, 16, longest, (5, 9), "an encoder: both directions")
    yield case("both", True, 12, 2 * longest, (7, 6), "an encoder, fewer buckets")
    yield case("causal", False, 8, longest, (3, 11), "a decoder: the past only")
    yield case("causal", False, 16, 3 * longest, (60,), "a decoder, a row of distances")
    yield case("published", True, 32, 128, (4, 30), "T5's own sizes")


def relative_bucket_reference(distance, bidirectional, buckets, longest):
    """One distance at a time, with Python's own numbers."""

    def bucket(d: int) -> int:
        if bidirectional:
            shift, n, room = (buckets // 2 if d > 0 else 0), abs(d), buckets // 2
        else:
            shift, n, room = 0, max(-d, 0), buckets
        exact = room // 2
        if n < exact:
            return shift + n
        share = math.log(n / exact) / math.log(longest / exact)
        return shift + min(exact + math.floor(share * (room - exact)), room - 1)

    flat = [bucket(int(d)) for d in distance.flatten()]
    return torch.tensor(flat).reshape(distance.shape)


def _bucket(
    distance,
    bidirectional,
    buckets,
    longest,
    sign=1,
    shifted=True,
    past=lambda d: (-d).clamp(min=0),
    exact_share=2,
    whole=torch.floor,
    capped=True,
    growth=torch.log,
):
    distance = sign * distance
    shift = torch.zeros_like(distance)
    if bidirectional:
        buckets = buckets // 2
        shift = (distance > 0).long() * (buckets if shifted else 0)
        n = distance.abs()
    else:
        n = past(distance)
    exact = buckets // exact_share
    far = n.clamp(min=exact).double()
    scaled = (growth(far / exact) / growth(torch.tensor(longest / exact)).double()) * (
        buckets - exact
    )
    large = exact + whole(scaled).long()
    large = large.clamp(max=buckets - 1) if capped else large
    return shift + torch.where(n < exact, n, large)


def sign_turned_round(distance, bidirectional, buckets, longest):
    """Takes query − key for key − query."""
    return _bucket(distance, bidirectional, buckets, longest, sign=-1)


def same_buckets_for_both_sides(distance, bidirectional, buckets, longest):
    """Before and behind share buckets."""
    return _bucket(distance, bidirectional, buckets, longest, shifted=False)


def future_counts_in_a_decoder(distance, bidirectional, buckets, longest):
    """Takes the absolute distance in a decoder."""
    return _bucket(distance, bidirectional, buckets, longest, past=torch.abs)


def always_both_sides(distance, bidirectional, buckets, longest):
    """Ignores `bidirectional`."""
    return _bucket(distance, True, buckets, longest)


def a_quarter_exact(distance, bidirectional, buckets, longest):
    """Only a quarter of the buckets is exact."""
    return _bucket(distance, bidirectional, buckets, longest, exact_share=4)


def rounded_to_nearest(distance, bidirectional, buckets, longest):
    """Rounds instead of cutting off."""
    return _bucket(distance, bidirectional, buckets, longest, whole=torch.round)


def no_last_bucket(distance, bidirectional, buckets, longest):
    """Numbers of buckets grow beyond the last one."""
    return _bucket(distance, bidirectional, buckets, longest, capped=False)


def equal_steps(distance, bidirectional, buckets, longest):
    """Far distances share out the buckets evenly, with no logarithm."""
    return _bucket(distance, bidirectional, buckets, longest, growth=lambda x: x - 1)


def exact_distances_only(distance, bidirectional, buckets, longest):
    """One bucket for each distance, clipped: no coarse part."""
    if bidirectional:
        buckets = buckets // 2
        return (distance > 0).long() * buckets + distance.abs().clamp(max=buckets - 1)
    return (-distance).clamp(min=0, max=buckets - 1)


def bucket_in_floats(distance, bidirectional, buckets, longest):
    """Right: NumPy, with a number that compares as a border for each bucket."""
    d = distance.numpy()
    room = buckets // 2 if bidirectional else buckets
    n = np.abs(d) if bidirectional else np.maximum(-d, 0)
    exact = room // 2
    steps = np.arange(1, room - exact) / (room - exact)
    borders = exact * np.exp(steps * np.log(longest / exact))
    result = np.where(n < exact, n, exact + np.searchsorted(borders, n, side="right"))
    return torch.from_numpy(result + room * ((d > 0) & bidirectional))


def bucket_by_branches(distance, bidirectional, buckets, longest):
    """Right: writes into the result place by place of a condition."""
    result = torch.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        result[distance > 0] += buckets
        distance = distance.abs()
    else:
        distance = torch.relu(-distance)
    half = buckets // 2
    near = distance < half
    result[near] += distance[near]
    ratio = (distance[~near] / half).double().log2() / math.log2(longest / half)
    result[~near] += (half + (ratio * (buckets - half)).long()).clamp(max=buckets - 1)
    return result


def bucket_one_by_one(distance, bidirectional, buckets, longest):
    """Right: a function for one distance, and int() to cut off."""

    def one(d):
        if not bidirectional:
            return past(max(0, -d), buckets)
        return past(abs(d), buckets // 2) + (buckets // 2 if d > 0 else 0)

    def past(n, room):
        half = room // 2
        if n < half:
            return n
        step = math.log(n / half) / math.log(longest / half) * (room - half)
        return min(room - 1, half + int(step))

    return distance.clone().apply_(one)


RELATIVE_BUCKET = Exercise(
    id="relative_bucket",
    title="T5's buckets for relative positions",
    asks="Sort distances into buckets: near ones exactly, far ones ever more coarsely.",
    parameters=("distance", "bidirectional", "buckets", "longest"),
    outputs=("bucket",),
    driver="tensor_function",
    groups={
        "both": Group(1, "both directions, as in the encoder"),
        "causal": Group(1, "the past only, as in the decoder"),
        "published": Group(1, "32 buckets up to 128, as published"),
    },
    cases=relative_bucket_cases,
    reference=relative_bucket_reference,
    misconceptions=(
        Misconception(
            sign_turned_round,
            "The sign is turned round: `distance` is key minus query.",
            "Is a key that stands behind the query at a positive or a negative distance?",
        ),
        Misconception(
            same_buckets_for_both_sides,
            "Keys before and behind the query share their buckets.",
            "In which half of the buckets are positive distances?",
        ),
        Misconception(
            future_counts_in_a_decoder,
            "In a decoder, keys behind the query get buckets of their own distance.",
            "What does the contract say about positive distances with `bidirectional=False`?",
        ),
        Misconception(
            always_both_sides,
            "`bidirectional` has no effect.",
            "How many buckets may the past use in a decoder?",
        ),
        Misconception(
            a_quarter_exact,
            "Too few buckets are exact.",
            "Which share of the buckets *of one direction* holds one distance each?",
        ),
        Misconception(
            rounded_to_nearest,
            "The logarithm is rounded; the contract cuts off.",
            "Which whole number does a bucket's number become, the nearest or the one below?",
        ),
        Misconception(
            no_last_bucket,
            "Distances beyond `longest` get numbers that no bucket has.",
            "What is the largest number of a bucket in one direction?",
        ),
        Misconception(
            equal_steps,
            "The far buckets are all equally wide.",
            "By which function of the distance do they get wider?",
        ),
        Misconception(
            exact_distances_only,
            "Every distance has a bucket of its own until they run out.",
            "Which part of the buckets is shared by several distances?",
        ),
    ),
    accepted=(bucket_in_floats, bucket_by_branches, bucket_one_by_one),
    equivalent_mutants={"`n < exact` → `n <= exact`": "log 1 is 0: both formulas agree at E"},
)
