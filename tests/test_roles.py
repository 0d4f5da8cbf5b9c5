"""Pairs of sentences that a bag of words cannot tell apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_course.tasks.roles import LONGEST, VOCABULARY, as_ids, bags, split_pairs


@pytest.fixture(scope="module")
def parts():
    return split_pairs(np.random.default_rng(0), held_out=40)


def test_every_pair_has_a_twin_with_the_same_bags_and_the_other_label(parts):
    for pairs in parts:
        for one, twin in zip(pairs[::2], pairs[1::2], strict=True):
            assert sorted(one.first) == sorted(twin.first)
            assert sorted(one.second) == sorted(twin.second)
            assert one.follows and not twin.follows


def test_whatever_a_function_of_bags_says_half_of_it_is_wrong(parts):
    features, labels = bags(parts[1]), as_ids(parts[1])[1]
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        first, second = (
            torch.randn(size, generator=generator, dtype=torch.float64)
            for size in ((features.shape[1], 50), (50,))
        )
        answers = (features.double() @ first).tanh() @ second > 0
        assert (answers == labels.bool()).double().mean() == 0.5


def test_the_label_is_whether_both_sentences_tell_the_same(parts):
    def told(sentence):
        if "by" not in sentence:
            return sentence
        whom, was, verb, by, who = sentence
        assert (was, by) == ("was", "by")
        return who, verb, whom

    for pair in (*parts[0], *parts[1]):
        assert (told(pair.first) == told(pair.second)) == pair.follows


def test_facts_of_the_test_are_not_trained_on_in_either_direction(parts):
    train, test = ({frozenset(pair.first) for pair in part} for part in parts)
    assert not train & test and len(test) == 40


def test_ids_spell_the_pair(parts):
    ids, _ = as_ids(parts[0])
    assert ids.shape == (len(parts[0]), LONGEST)
    for row, pair in zip(ids, parts[0], strict=True):
        words = [VOCABULARY[number] for number in row.tolist() if number]
        assert words == ["[CLS]", *pair.first, "[SEP]", *pair.second, "[SEP]"]


@pytest.mark.parametrize("held_out", [0, 168])
def test_both_parts_have_facts(held_out):
    with pytest.raises(ValueError, match="held_out must be from 1 to 167"):
        split_pairs(np.random.default_rng(0), held_out)
