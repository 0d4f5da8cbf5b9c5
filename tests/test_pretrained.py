"""Files of pre-trained models: the right ones are read, others are refused with what to do."""

import re
from dataclasses import replace

import pytest
import torch

from attention_course import pretrained
from attention_course.pretrained import MINILM, ModelMissing
from autograder.masters import ROOT

ABSENT = replace(MINILM, package="no_such_package_anywhere")


def test_a_missing_package_says_what_to_install():
    assert not pretrained.is_installed(ABSENT)
    with pytest.raises(ModelMissing, match=re.escape(MINILM.requirement)):
        pretrained.find_file(ABSENT, "model/vocab.txt")


def test_what_is_asked_for_is_what_is_pinned():
    assert MINILM.requirement in (ROOT / "requirements-models.txt").read_text()


def test_another_file_is_refused(tmp_path, monkeypatch):
    package = tmp_path / "other_model"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model" / "vocab.txt").write_text("[PAD]\n")
    monkeypatch.syspath_prepend(tmp_path)
    other = replace(MINILM, package="other_model")
    with pytest.raises(ModelMissing, match=r"vocab\.txt is not the file"):
        pretrained.find_file(other, "model/vocab.txt")
    with pytest.raises(ModelMissing, match="not installed"):
        pretrained.find_file(other, "model/config.json")


@pytest.mark.skipif(not pretrained.is_installed(MINILM), reason="MiniLM's package is not installed")
def test_minilm_is_the_bert_that_it_says():
    weights, config = pretrained.minilm_weights(), pretrained.minilm_config()
    vocabulary = pretrained.minilm_vocabulary()
    assert len(vocabulary) == config["vocab_size"] == 30_522
    assert vocabulary[0] == "[PAD]" and vocabulary[101:104] == ["[CLS]", "[SEP]", "[MASK]"]
    assert weights["embeddings.word_embeddings.weight"].shape == (30_522, 384)
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32, torch.int64}
