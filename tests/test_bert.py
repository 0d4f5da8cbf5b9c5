"""Chapter 09's tiny BERT, its sentences, its records, and MiniLM where it is installed."""

import pytest
import torch

from attention_course.bert import agreement, minilm, sizes, tiny
from attention_course.data.pretraining_records import pretraining_records
from attention_course.pretrained import MINILM, ModelMissing, is_installed
from autograder.exercises._ch09_count import BASE, LARGE, TABLES, bert_parts_reference
from autograder.exercises._ch09_count import MINILM as MINILM_SHAPE

pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def corpus():
    """A small corpus."""
    return tiny.Corpus(seed=1, train=300, test=60)


def test_no_sentence_is_in_training_and_test(corpus):
    assert len(set(corpus.sentences)) == 300
    assert not set(corpus.sentences) & set(corpus.new)
    with pytest.raises(ValueError, match="does not know zebra"):
        corpus.ids(["the", "zebra"])


def test_each_test_sentence_has_one_blank_and_never_the_full_stop(corpus):
    for tokens, places, words in corpus.blanks:
        assert ((tokens == tiny.BLANK).sum(1) == 1).all()
        assert (places < tokens.shape[1] - 1).all()
        assert not torch.isin(words, torch.tensor([tiny.BLANK])).any()


def test_same_seed_same_model_and_training_helps(corpus):
    losses = []
    for _ in range(2):
        model = tiny.TinyBert(len(corpus.words), seed=3)
        before = tiny.blank_loss(model, corpus)
        for _ in tiny.train(model, corpus, 0, 12):
            pass
        losses.append(tiny.blank_loss(model, corpus))
    assert losses[0] == losses[1] < before - 0.1


def test_attention_weights_are_those_of_the_model(corpus):
    model = tiny.TinyBert(len(corpus.words), seed=3)
    tokens = next(iter(corpus.groups.values()))[:2]
    weights = tiny.attention(model, tokens)
    assert weights.shape == (2, 2, 4, tokens.shape[1], tokens.shape[1])
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_agreement_is_near_chance_without_training(corpus):
    model = tiny.TinyBert(len(corpus.words), seed=3)
    for share in agreement.shares(model, corpus, seed=0):
        assert 0.3 < share < 0.7


def test_published_sizes_add_up():
    for name, shape in (("BERT base", BASE), ("BERT large", LARGE), ("MiniLM", MINILM_SHAPE)):
        embeddings, layers, pooler, *_ = bert_parts_reference(**TABLES, **shape)
        shown = sizes.SHARES[name]
        assert (shown[0] + shown[1], shown[2], shown[3]) == (embeddings, layers, pooler)


def test_every_comparison_was_recorded_with_five_seeds():
    for compared, conditions in (("share", 5), ("masking", 3), ("pairs", 2)):
        runs = pretraining_records(compared)
        assert len(runs) == conditions
        assert all(len(seeds) == 5 for seeds in runs.values())
    with pytest.raises(ValueError, match="no runs were recorded"):
        pretraining_records("nothing")


def test_minilm_says_what_to_install_when_it_is_missing():
    if is_installed(MINILM):
        batch = minilm.read(["A cat.", ("Two", "sentences!")])
        assert batch.pieces[1] == ["[CLS]", "two", "[SEP]", "sentences", "!", "[SEP]"]
        assert batch.segments[1].tolist() == [0, 0, 0, 1, 1, 1]
        assert batch.mask.sum(1).tolist() == [5, 6]
    else:
        with pytest.raises(ModelMissing, match="pip install"):
            minilm.read(["A cat."])
