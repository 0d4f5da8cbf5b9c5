"""What chapter 10's exercises promise: hidden places, gradients, agreement with other code."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attention_course.drivers.tensors import as_tensors
from autograder.audit.answers import read_answer
from autograder.exercises._ch09_parts import draw_weights
from autograder.exercises._ch10_layers import _hidden
from autograder.exercises.ch10_task_heads import (
    ANSWER_TARGETS,
    ANSWER_TEXT,
    BEST_SPAN,
    EARLY_STOP,
    ENTITY_F1,
    EXACT_MATCH_AND_F1,
    LEARNING_RATES,
    PIECE_LABELS,
    SENTENCE_VECTORS,
    SPAN_LOSS,
    TAG_LOSS,
    TOKEN_GRADIENTS,
)


def given(exercise, seed=5):
    """Inputs of each case as tensors, and what the reference gives."""
    cases = exercise.make_cases(seed)
    for case, outcome in zip(cases, exercise.expected(cases), strict=True):
        yield as_tensors(dict(case.inputs)), outcome.outputs


def test_padding_does_not_change_a_sentences_vectors():
    for inputs, _ in given(SENTENCE_VECTORS):
        hidden, mask = inputs["hidden"], inputs["mask"]
        other = torch.where(mask[..., None], hidden, 1e4)
        for a, b in zip(
            SENTENCE_VECTORS.reference(hidden, mask),
            SENTENCE_VECTORS.reference(other, mask),
            strict=True,
        ):
            torch.testing.assert_close(a, b)


def test_every_token_learns_from_the_first_ones_loss_and_padding_does_not():
    for inputs, outputs in given(TOKEN_GRADIENTS):
        mask = inputs["mask"].numpy()
        assert (outputs["result"][mask] > 1e-6).all() and (outputs["result"][~mask] == 0).all()
        x = inputs["embeddings"].clone().requires_grad_()
        logits = _hidden(x, inputs["mask"], inputs["weights"])[:, 0] @ inputs["weights"]["head"]
        F.cross_entropy(logits, inputs["labels"]).backward()
        np.testing.assert_allclose(outputs["result"], x.grad.norm(dim=-1), rtol=1e-8)


def test_losses_are_blind_to_what_may_not_count():
    for inputs, outputs in given(SPAN_LOSS):
        gradient = outputs["gradient of start_logits"]
        assert (gradient[~inputs["allowed"].numpy()] == 0).all() and np.abs(gradient).max() > 0
    for inputs, outputs in given(TAG_LOSS):
        unlabelled = inputs["labels"].numpy() == -100
        assert (outputs["gradient of logits"][unlabelled] == 0).all() and unlabelled.any()


def test_targets_hold_the_answer_and_no_less():
    inside = 0
    for inputs, outputs in given(ANSWER_TARGETS):
        first, last = int(outputs["first"]), int(outputs["last"])
        offsets, context = inputs["offsets"].numpy(), inputs["context"].numpy()
        if first:
            inside += 1
            assert context[first : last + 1].all()
            assert offsets[first, 0] <= inputs["start"] < offsets[first, 1]
            assert offsets[last, 0] < inputs["end"] <= offsets[last, 1]
    assert inside == 6


def test_answers_cut_out_are_pieces_of_the_passage():
    for inputs, outputs in given(ANSWER_TEXT):
        text = "".join(map(chr, outputs["text"]))
        assert text in inputs["text"] and text == text.strip()
        assert bool(text) == bool(inputs["first"])


def test_spans_are_valid_and_thresholds_matter():
    none = 0
    for inputs, outputs in given(BEST_SPAN):
        first, last = int(outputs["first"]), int(outputs["last"])
        none += first == 0
        if first:
            assert first <= last < first + inputs["longest"]
            assert inputs["allowed"][first] and inputs["allowed"][last]
    assert none >= 3


def test_f1_is_symmetric_and_right_answers_score_one():
    for inputs, _ in given(EXACT_MATCH_AND_F1):
        guess, truths = inputs["guess"], inputs["truths"]
        assert EXACT_MATCH_AND_F1.reference(truths[0], truths) == (1.0, 1.0)
        there = EXACT_MATCH_AND_F1.reference(guess, truths[:1])
        assert there == EXACT_MATCH_AND_F1.reference(truths[0], [guess])


def test_each_word_with_a_piece_has_one_label():
    for inputs, outputs in given(PIECE_LABELS):
        for words, labels in zip(inputs["words"], outputs["result"], strict=True):
            assert (labels >= 0).sum() == len({word for word in words.tolist() if word >= 0})


def test_entities_are_read_strictly():
    stray = ENTITY_F1.reference([["I-NP", "I-NP", "O"]], [["B-NP", "I-NP", "O"]])
    assert stray == (0.0, 0.0, 0.0), "a lenient reading would call this right"
    changed = ENTITY_F1.reference([["B-NP", "I-VP", "I-NP"]], [["B-NP", "O", "O"]])
    assert changed == (1.0, 1.0, 1.0)


def test_rates_rise_with_height():
    for inputs, outputs in given(LEARNING_RATES):
        rates = dict(zip(inputs["names"], outputs["result"].tolist(), strict=True))
        assert rates["classifier.bias"] == inputs["rate"] == max(rates.values())
        assert rates["embeddings.LayerNorm.bias"] == min(rates.values())


def test_what_comes_after_the_stop_is_not_seen():
    for inputs, outputs in given(EARLY_STOP):
        stop = int(outputs["stop"])
        cut = {**inputs, "scores": [*inputs["scores"][: stop + 1], 9.0, 9.0]}
        if stop < len(inputs["scores"]) - 1:
            assert EARLY_STOP.reference(**cut) == (int(outputs["best"]), stop)
        assert int(outputs["best"]) <= stop


@pytest.mark.parametrize(
    ("guess", "truth", "counts"),
    [
        ("I-A I-A O", "B-A I-A O", (0, 1, 0)),
        ("B-A I-B I-A", "B-A O O", (1, 1, 1)),
        ("B-A B-A I-A I-B", "B-A I-A I-A O", (2, 1, 0)),
        ("O I-B B-B I-B", "O B-B B-B I-B", (1, 2, 1)),
        ("B-A I-A I-A I-A", "B-A I-A B-A I-A", (1, 2, 0)),
        ("B-B I-A B-A O I-A", "B-B O B-A O O", (2, 2, 2)),
    ],
)
def test_entities_are_those_of_seqeval(guess, truth, counts):
    """Guessed, true and right entities as seqeval 1.2.2 counts them (`scheme.Entities`, IOB2)."""
    guessed, true, right = counts
    expected = (right / guessed if guessed else 0, right / true, 2 * right / (guessed + true))
    assert ENTITY_F1.reference([guess.split()], [truth.split()]) == pytest.approx(expected)


def answer(exercise):
    """The notebook's own answer to an exercise."""
    return read_answer("10_task_heads", exercise).candidate()


@pytest.fixture(scope="module")
def library():
    """`transformers`, a small BERT's sizes, and a batch of two sentences, one of them padded."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=13,
        hidden_size=12,
        num_hidden_layers=2,
        intermediate_size=7,
        num_attention_heads=3,
        max_position_embeddings=9,
        num_labels=5,
        attn_implementation="eager",
    )
    batch = {
        "input_ids": torch.tensor([[1, 5, 12, 2, 7], [3, 3, 8, 0, 0]]),
        "token_type_ids": torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]]),
        "attention_mask": torch.tensor([[1] * 5, [1] * 3 + [0] * 2]),
    }
    return transformers, config, batch


def with_weights(model, seed=4):
    """The library's model in double precision, every parameter drawn anew."""
    model = model.double().eval()
    shapes = {name: tuple(value.shape) for name, value in model.named_parameters()}
    drawn = draw_weights(np.random.default_rng(seed), shapes)
    model.load_state_dict({name: torch.from_numpy(v) for name, v in drawn.items()}, strict=False)
    return model


def test_the_head_for_sentences_is_that_of_transformers(library):
    transformers, config, batch = library
    model = with_weights(transformers.BertForSequenceClassification(config))
    hidden = model.bert(**batch).last_hidden_state
    head = answer("sentence_classifier")(12, 5, "first").double()
    head.dense.load_state_dict(model.bert.pooler.dense.state_dict())
    head.out.load_state_dict(model.classifier.state_dict())
    own = head(hidden, batch["attention_mask"].bool())
    torch.testing.assert_close(own, model(**batch).logits, rtol=0, atol=1e-12)


def test_the_loss_and_the_span_are_those_of_transformers(library):
    transformers, config, batch = library
    config = transformers.BertConfig(**{**config.to_dict(), "num_labels": 2})
    model = with_weights(transformers.BertForQuestionAnswering(config))
    starts, ends = torch.tensor([2, 0]), torch.tensor([4, 0])
    found = model(**batch, start_positions=starts, end_positions=ends)
    hidden = model.bert(**batch).last_hidden_state
    logits = F.linear(hidden, model.qa_outputs.weight, model.qa_outputs.bias).unbind(-1)
    own = answer("span_loss")(*logits, starts, ends, torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(own, found.loss, rtol=0, atol=1e-12)
    # Without a limit, a threshold or a padded place, the span is the best of all pairs.
    allowed = torch.tensor([False, True, True, True, True])
    scores = (found.start_logits[0], found.end_logits[0])
    first, last = answer("best_span")(*scores, allowed, 5, -torch.inf)
    pairs = {(i, j): scores[0][i] + scores[1][j] for i in range(1, 5) for j in range(i, 5)}
    assert (first, last) == max(pairs, key=pairs.get)


def test_the_loss_of_tags_is_that_of_transformers(library):
    transformers, config, batch = library
    model = with_weights(transformers.BertForTokenClassification(config))
    words = torch.tensor([[-1, 0, 0, 1, -1], [-1, 0, -1, -1, -1]])
    labels = answer("piece_labels")(torch.tensor([[3, 1], [4, 0]]), words)
    found = model(**batch, labels=labels)
    hidden = model.bert(**batch).last_hidden_state
    logits = F.linear(hidden, model.classifier.weight, model.classifier.bias)
    own = answer("tag_loss")(logits, labels)
    torch.testing.assert_close(own, found.loss, rtol=0, atol=1e-12)


def test_layers_are_those_of_transformers(library):
    transformers, config, batch = library
    config = transformers.BertConfig(**{**config.to_dict(), "num_hidden_layers": 6})
    model = with_weights(transformers.BertModel(config))
    found = model(**batch, output_hidden_states=True)
    states = torch.stack(found.hidden_states)
    features = answer("layer_features")
    assert torch.equal(features(states, "last"), found.last_hidden_state)
    sum_of_outputs = sum(found.hidden_states[1:])
    torch.testing.assert_close(features(states, "sum"), sum_of_outputs, rtol=0, atol=1e-12)
