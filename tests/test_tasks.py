"""Chapter 10's data and small models: what they are made from, and that shortcuts fail on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scripts import load_script
from tokenizers import Tokenizer, models, pre_tokenizers

from attention_course.data.glosses import CLASSES, load_glosses
from attention_course.pretrained import MINILM, is_installed
from attention_course.tasks import capitals, readers, tuning
from attention_course.tasks.features import accuracy, fit_linear, scores_of, tf_idf, vocabulary_of
from attention_course.tasks.ladder import RUNGS, numbered
from attention_course.tasks.records import read_curve, read_scores, read_seconds
from attention_course.tasks.stories import LONGEST, as_arrays, draw_stories
from autograder.exercises.ch10_task_heads import BEST_SPAN, PIECE_LABELS, SPAN_LOSS
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
    assert all(seconds > 0 for seconds in read_seconds("ladder").values())
    with pytest.raises(ValueError, match=r"task_heads_other\.csv"):
        read_scores("other")


def test_the_recorded_curve_begins_with_few_labels_and_has_three_seeds_everywhere():
    curve = read_curve()
    assert set(curve) == {"bag of words", "MiniLM, frozen", "pre-trained"}
    assert list(curve["bag of words"]) == list(curve["MiniLM, frozen"]) == [50, 200, 1_000, 2_000]
    assert list(curve["pre-trained"]) == [50, 200, 1_000]
    assert {len(runs) for scores in curve.values() for runs in scores.values()} == {3}


def test_capitals_become_tags_and_words_that_always_have_one_get_none():
    line = capitals.tagged("Good Horatio, I'll go: O, to Old Rome. Then the king's men")
    assert " ".join(line.words) == "good horatio , i'll go : o , to old rome . then the king's men"
    tags = {word: tag for word, tag in zip(line.words, line.tags, strict=True) if tag >= 0}
    capital = {word for word, tag in tags.items() if tag}
    assert capital == {"horatio", "old", "rome"}
    assert set(tags) - capital == {"go", "to", "the", "king's", "men"}


def test_parts_of_the_plays_have_names_of_their_own():
    parts = capitals.read_parts()
    words = [{word for line in part for word in line.words} for part in parts]
    assert len(parts) == 7
    assert "horatio" in words[0] and not any("horatio" in others for others in words[1:])
    assert min(len(line.words) for part in parts for line in part) >= capitals.FEWEST
    drawn = capitals.draw_lines(np.random.default_rng(0), parts[0], 40)
    assert sum(1 in line.tags for line in drawn) == 20


def test_a_tag_stands_at_the_first_piece_of_its_word():
    pieces = ["[PAD]", "a", "##b", "c", "##d", "##e", ".", "[UNK]"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    lines = [capitals.tagged(text) for text in ("a Cde a. ab", "Abb cd c, Ab cde")]
    found = capitals.as_pieces(tokenizer, lines)
    encodings = tokenizer.encode_batch([list(line.words) for line in lines], is_pretokenized=True)
    length = found.ids.shape[1]
    rows = [[-1 if word is None else word for word in e.word_ids] for e in encodings]
    words = torch.tensor([[-1, *row, *[-1] * (length - len(row))] for row in rows])
    count = max(len(line.tags) for line in lines)
    given = torch.tensor([[*line.tags, *[0] * (count - len(line.tags))] for line in lines])
    assert torch.equal(found.labels, PIECE_LABELS.reference(given, words)[:, 1:])
    tags = [list(line.tags) for line in lines]
    rows = zip(found.labels, found.firsts, strict=True)
    assert [row[first].tolist() for row, first in rows] == tags


def test_names_are_counted_whole():
    lines = [capitals.tagged("so Old Rome and Paris fell"), capitals.tagged("To Rome and back")]
    right = [[tag == 1 for tag in line.tags] for line in lines]
    assert capitals.names(right) == {(0, 1, 2), (0, 4, 4), (1, 1, 1)}
    assert capitals.name_f1(lines, right) == 1.0
    half = [[False, False, True, False, True, False], [True, True, False, False]]
    assert capitals.name_f1(lines, half) == pytest.approx(2 / 3), "half of Old Rome is no name"
    assert capitals.name_f1(lines, [[False] * 6, [False] * 4]) == 0.0
    seen = [capitals.tagged("in Rome and Rome and paris")]
    assert capitals.word_by_word(seen, lines) == [
        [False, False, True, False, False, False],
        [False, True, False, False],
    ]


def test_rates_shrink_from_the_head_down():
    head, *layers = (torch.nn.Linear(2, 2) for _ in range(4))
    groups = tuning.rate_groups(head, layers, rate=1.0, decay=0.5)
    assert [group["lr"] for group in groups] == [1.0, 0.5, 0.25, 0.125]
    assert groups[1]["params"][0] is layers[-1].weight


def test_batches_hold_every_row_once_and_little_padding():
    lengths = np.random.default_rng(0).integers(4, 24, 100).tolist()
    batches = tuning.like_lengths(lengths, torch.Generator().manual_seed(0))
    assert sorted(torch.cat(batches).tolist()) == list(range(100))
    assert max(map(len, batches)) == tuning.BATCH
    sizes = torch.tensor(lengths)
    padded = sum(len(rows) * int(sizes[rows].max()) for rows in batches)
    assert padded < 1.4 * sum(lengths), "rows of any length together would need 1.7 times as much"


def test_whoever_looks_after_each_pass_may_stop():
    weight = torch.nn.Parameter(torch.tensor(4.0))
    asked = []

    def loss(rows):
        asked.append(len(rows))
        return weight.square()

    groups = [{"params": [weight], "lr": 0.5}]
    for number in tuning.passes(groups, loss, [3] * 40, most=9, seed=0):
        if number == 3:
            break
    assert sorted(asked) == [8] * 4 + [32] * 4
    assert abs(weight.item()) < 3.5


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
