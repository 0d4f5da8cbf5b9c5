"""What chapter 08's exercises promise: agreement with libraries, round trips, causality."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from autograder.audit.answers import read_answer
from autograder.exercises import _ch08_gpt as gpt
from autograder.exercises import _ch08_top_k as top_k
from autograder.exercises._ch08_bpe import BPE_TRAIN, expansions
from autograder.exercises._ch08_buckets import RELATIVE_BUCKET, relative_bucket_reference
from autograder.exercises._ch08_decode import bpe_decode_reference
from autograder.exercises._ch08_encode import bpe_encode_reference
from autograder.exercises._ch08_generate import window_model
from autograder.exercises._ch08_masks import sequence_mask_reference
from autograder.exercises._ch08_t5 import SPAN_CORRUPTION
from autograder.exercises._ch08_top_p import TOP_P_FILTER
from autograder.exercises._ch08_windows import SPLIT_WINDOWS
from autograder.exercises.ch08_language_models import EXERCISES

SEEDS = range(10)
CHAPTER = "08_language_models"
ANY_TEXT = [
    *("", "a", "aaaa", "naïve café", "日本語 🦉🦉", "\0\n\t"),
    *("\U0010ffff", "e\u0301é", "👩\u200d👩\u200d👧"),
]
TRAINED_ON = ["the theme then, the theme then", "ñandú 🦉 ñandú 🦉日本日本"]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_misconceptions_are_caught_and_named_on_the_public_cases(exercise):
    cases = exercise.make_cases(0)
    mistakes = exercise.known_mistakes(cases)
    for mistake in mistakes:
        verdict = exercise.judge(list(mistake.outcomes), cases, mistakes)
        assert verdict.points < exercise.points, mistake.name
        assert verdict.misconception == mistake.name, (verdict.misconception, mistake.name)


@pytest.mark.parametrize("text", ANY_TEXT)
@pytest.mark.parametrize(
    "training", ["the theme then, the theme then", "ñandú 🦉 ñandú 🦉日本日本"]
)
def test_any_text_survives_encoding_and_decoding(text, training):
    merges = BPE_TRAIN.reference(training, 12)
    tokens = bpe_encode_reference(text, merges)
    assert bpe_decode_reference(tokens, merges) == text
    assert b"".join(expansions(merges)[token] for token in tokens) == text.encode()


def test_training_shortens_the_text_as_much_as_it_counted():
    text = "the cat sat on the mat, the rat sat on the cat"
    before = bpe_encode_reference(text, [])
    pair = BPE_TRAIN.reference(text, 1)[0]
    after = bpe_encode_reference(text, [pair])
    assert len(before) - len(after) == Counter(itertools.pairwise(before))[pair]


def test_buckets_agree_with_the_published_code():
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    published = t5.T5Attention._relative_position_bucket
    for seed in SEEDS:
        for case in RELATIVE_BUCKET.make_cases(seed):
            given = {**case.inputs, "distance": torch.from_numpy(case.inputs["distance"])}
            expected = published(
                given["distance"], given["bidirectional"], given["buckets"], given["longest"]
            )
            assert torch.equal(relative_bucket_reference(**given), expected)


def test_spans_can_be_put_back():
    for seed in SEEDS:
        for case in SPAN_CORRUPTION.make_cases(seed):
            tokens, first = case.inputs["tokens"], case.inputs["first_sentinel"]
            inputs, targets = SPAN_CORRUPTION.reference(**case.inputs)
            sentinels = [first - i for i in range(len(case.inputs["starts"]) + 1)]
            assert targets[-1] == sentinels[-1]
            ends = [targets.index(sentinel) for sentinel in sentinels]
            holes = {
                s: targets[a + 1 : b] for s, a, b in zip(sentinels, ends, ends[1:], strict=False)
            }
            restored = [part for token in inputs for part in holes.get(token, [token])]
            assert restored == tokens


def test_no_token_is_in_both_parts_and_every_validation_target_occurs_once():
    for seed in SEEDS:
        for case in SPLIT_WINDOWS.make_cases(seed)[:4]:
            length, cut = case.inputs["length"], case.inputs["cut"]
            training, validation = (t.tolist() for t in SPLIT_WINDOWS.reference(**case.inputs))
            assert max(training) + length < cut == min(validation)
            targets = [start + i for start in validation for i in range(1, length + 1)]
            assert targets == list(range(cut + 1, cut + 1 + len(targets)))
            assert case.inputs["count"] - length <= targets[-1] + 1 <= case.inputs["count"]


def test_the_nucleus_is_the_smallest_that_reaches_p():
    for seed in SEEDS:
        for case in TOP_P_FILTER.make_cases(seed):
            p = case.inputs["p"]
            if not 0 < p < 1:
                continue
            logits = torch.from_numpy(case.inputs["logits"])
            kept = TOP_P_FILTER.reference(logits, p).isfinite()
            probabilities = logits.softmax(dim=-1)
            mass = (probabilities * kept).sum(dim=-1)
            least = probabilities.masked_fill(~kept, 2).amin(dim=-1)
            assert (mass >= p).all() and (mass - least < p).all()


def test_exactly_k_are_kept():
    logits = torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0, 3.0]])
    for k in range(1, 8):
        kept = top_k.top_k_filter_reference(logits, k).isfinite()
        assert (kept.sum(dim=-1) == min(k, 5)).all()


def test_later_tokens_do_not_matter_to_a_gpt():
    build = {"vocabulary": 9, "context": 6, "d_model": 6, "heads": 2, "layers": 2}
    model = read_answer(CHAPTER, "gpt").candidate()(**build).double()
    weights = gpt.draw_weights(np.random.default_rng(1), build)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6]])
    changed = tokens.clone()
    changed[0, 3:] = torch.tensor([8, 0, 7])
    first, second = model(tokens)[0], model(changed)[0]
    torch.testing.assert_close(first[:3], second[:3], rtol=0, atol=1e-12)
    assert (first[3:] - second[3:]).abs().max() > 1e-3


def test_masks_agree_with_pytorchs_own_causal_attention():
    q, k, v = torch.randn(3, 2, 6, 4, generator=torch.Generator().manual_seed(0)).double()
    lengths = torch.tensor([6, 6])
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    for kind, prefix in (("causal", None), ("prefix", torch.tensor([1, 1]))):
        mask = sequence_mask_reference(kind, lengths, 6, 6, prefix)
        torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, mask), expected)


def test_the_notebooks_model_is_the_one_that_the_answers_use():
    theirs = read_answer(CHAPTER, "generate").before["window_model"]
    table = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(2))
    for tokens in ([1], [4, 0], [2, 2, 3]):
        given = torch.tensor(tokens)
        torch.testing.assert_close(theirs(table, given), window_model(table, given))
    for tokens in ([], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="reads 1 to 3 tokens"):
            theirs(table, torch.tensor(tokens, dtype=torch.long))
