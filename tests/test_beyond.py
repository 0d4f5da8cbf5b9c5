"""What chapter 13's experiments train."""

import pytest
import torch

from attention_course.beyond import KINDS, train_moved, train_pairs
from attention_course.beyond.pairs import BY_ITSELF, IN_ORDER, LENGTH, WORDS, OrderedReader
from attention_course.beyond.recall import DISTANCE, SEGMENT, Reader, _segments


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
    model = OrderedReader(kind, torch.Generator().manual_seed(0)).eval()
    tokens, ranks = torch.tensor([[16, 0, 8, 17]]), torch.tensor([[-1, 0, 1, -1]])

    def changes(place):
        other = tokens.clone()
        other[0, place] = (other[0, place] + 1) % WORDS
        with torch.no_grad():
            moved = (model(other, ranks) - model(tokens, ranks)).abs().amax(dim=-1)[0]
        return [p for p in range(LENGTH) if moved[p] > 1e-6]

    assert {1, 2} <= set(changes(0)) and {1, 2} <= set(changes(3))  # open words help both
    assert 1 not in changes(1) and 2 not in changes(2)  # nobody sees its own word
    assert 1 not in changes(2)
    assert (2 in changes(1)) == (kind == IN_ORDER)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="kind must be one of"):
        train_moved("places", 0, [0], steps=1)
    with pytest.raises(ValueError, match="starts must lie from 0 to 48"):
        train_moved(KINDS[0], 0, [49], steps=1)
    with pytest.raises(ValueError, match="kind must be 'by itself' or 'in order'"):
        train_pairs("together", 0, steps=1)


def test_distances_do_not_hear_where_a_text_starts():
    at = train_moved("distances", 0, [0, 7, 48], steps=2)
    assert len(set(at)) == 1
