"""Chapter 10's data and small models: what they are made from, and that shortcuts fail on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scripts import load_script

from attention_course.data.glosses import CLASSES, load_glosses
from attention_course.pretrained import MINILM, is_installed
from attention_course.tasks import readers
from attention_course.tasks.features import accuracy, fit_linear, scores_of, tf_idf, vocabulary_of
from attention_course.tasks.ladder import RUNGS, numbered
from attention_course.tasks.records import read_scores
from attention_course.tasks.stories import LONGEST, as_arrays, draw_stories
from autograder.exercises.ch10_task_heads import BEST_SPAN, SPAN_LOSS
from autograder.masters import ROOT

STORIES = draw_stories(np.random.default_rng(3), 60)
TENSORS = {name: torch.from_numpy(values) for name, values in as_arrays(STORIES).items()}


def test_glosses_are_balanced_and_none_comes_twice():
    glosses = load_glosses()
    kinds = [kind for _, kind in glosses]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == dict.fromkeys(CLASSES, 600)
    assert len({gloss for gloss, _ in glosses}) == 6_000
    assert all(4 <= len(gloss.split()) <= 20 and ";" not in gloss for gloss, _ in glosses)


def test_the_script_reads_glosses_of_the_ten_classes_only(tmp_path):
    module = load_script("data/extract_glosses.py")
    sources = (ROOT / "attention_course/data/DATA.md").read_text(encoding="utf-8")
    assert module.PACKAGE_SHA256 in sources and "wordnet-licence.md" in sources
    lines = [
        '00000001 05 n 01 cat 0 000 | feline mammal with soft fur; "cats purr"  ',
        "00000002 03 n 01 thing 0 000 | a thing of no class here  ",
        "00000003 13 n 01 stew 0 000 | too short  ",
        "  1 a line of the licence at the top of the file",
    ]
    assert list(module.glosses(lines)) == [("animal", "feline mammal with soft fur")]
    archive = b"!<arch>\n" + b"data.tar.xz/".ljust(48) + b"3".ljust(10) + b"`\nabc\n"
    assert module.member(archive, "data.tar") == b"abc"
    other = tmp_path / "other.deb"
    other.write_bytes(archive)
    with pytest.raises(ValueError, match="is expected"):
        module.lines_of(other, module.NOUNS)


def test_a_bag_of_words_cannot_tell_a_story_from_its_mirror():
    answered = 0
    for story, mirror in zip(STORIES[::2], STORIES[1::2], strict=True):
        assert sorted(story.tokens) == sorted(mirror.tokens)
        assert bool(story.first) == bool(mirror.first)
        if story.first:
            assert story.answer != mirror.answer
            answered += 1
        else:
            assert story.tokens[2] not in story.tokens[5:], "the asked one must not be told of"
    assert 0.6 < answered / 60 < 0.95
    assert max(len(story.tokens) for story in STORIES) <= LONGEST


def test_answers_come_right_after_the_asked_name():
    for story in STORIES:
        if story.first:
            sentence = " ".join(story.tokens[story.begin :]).split(" . ")
            (told,) = (part for part in sentence if part.startswith(story.tokens[2]))
            assert told == f"{story.tokens[2]} in {story.answer}"


def test_the_readers_loss_and_answers_are_those_of_the_exercises():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, len(STORIES), LONGEST, generator=generator, dtype=torch.float64)
    allowed = TENSORS["context"].clone()
    allowed[:, 0] = True
    expected = SPAN_LOSS.reference(*scores, TENSORS["firsts"], TENSORS["lasts"], allowed)
    found = readers.loss_of("start and end", scores, TENSORS)
    torch.testing.assert_close(found, expected)
    spans = readers.answers("start and end", scores, TENSORS["context"])
    for row, span in enumerate(spans):
        context = TENSORS["context"][row]
        assert span == BEST_SPAN.reference(*scores[:, row], context, 4, 0.0)


def test_ones_are_read_as_the_run_around_the_best_token():
    scores = torch.tensor([[9.0, -1, 2, 1, -1, 1, 3, 4, 9], [9.0, -1, -2, -1, -1, -1, -3, -1, 9]])
    context = (torch.arange(9) > 0) & (torch.arange(9) < 8)
    spans = readers.answers("ones", torch.stack([scores, scores]), context.expand(2, -1))
    assert spans[1] == (0, 0)
    assert spans[0][0] == 5


def test_a_linear_classifier_learns_what_is_linear():
    train = ["red wine", "green tea", "red rose wine", "green mint tea"] * 3
    labels = torch.tensor([0, 1] * 6)
    vocabulary = vocabulary_of(train)
    features = tf_idf(train, vocabulary, train)
    assert torch.allclose(features.norm(dim=1), torch.ones(12))
    weights = fit_linear(features, labels, 2)
    new = tf_idf(["some wine", "strange tea"], vocabulary, train)
    assert accuracy(scores_of(new, weights), torch.tensor([0, 1])) == 1.0


@pytest.mark.parametrize("rung", [name for name in RUNGS if name != "pre-trained"])
def test_padding_does_not_matter_to_a_rung(rung):
    torch.manual_seed(0)
    model = RUNGS[rung][0](20, 3).eval()
    vocabulary = {"a": 2, "b": 3, "c": 4}
    alone = model(*numbered(["a b"], vocabulary))
    padded = model(*numbered(["a b", "a b c a b c"], vocabulary))[:1]
    torch.testing.assert_close(alone, padded, rtol=1e-4, atol=1e-5)


def test_what_was_recorded_is_whole():
    spans, ladder = read_scores("spans"), read_scores("ladder")
    assert list(spans) == list(readers.HEADS)
    assert list(ladder) == ["bag of words", *RUNGS]
    for scores in (*spans.values(), *ladder.values()):
        assert len(scores) >= 3 and all(0 <= score <= 1 for score in scores)
    with pytest.raises(ValueError, match=r"task_heads_other\.csv"):
        read_scores("other")


@pytest.mark.skipif(not is_installed(MINILM), reason="needs MiniLM's package")
def test_minilm_gives_the_published_vector():
    from attention_course.tasks.minilm import MiniLM, mean_vectors, minilm_tokenizer

    model, tokenizer = MiniLM().eval(), minilm_tokenizer()
    texts = ["This is an example sentence", "One more, somewhat longer than the others: no more."]
    vectors = torch.nn.functional.normalize(mean_vectors(model, tokenizer, texts)[-1], dim=-1)
    known = torch.tensor([0.06766, 0.06350, 0.04871, 0.07930, 0.03745])
    torch.testing.assert_close(vectors[0, :5], known, rtol=0, atol=1e-4)
    alone = torch.nn.functional.normalize(mean_vectors(model, tokenizer, texts[1:])[-1], dim=-1)
    torch.testing.assert_close(vectors[1:], alone, rtol=1e-4, atol=1e-5)
