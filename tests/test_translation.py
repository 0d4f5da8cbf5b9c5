"""The small translators: batches, masks, reading of attention, and training."""

import pytest
import torch

from attention_course.data.fragment import translation_splits
from attention_course.translation import (
    RecurrentTranslator,
    TransformerTranslator,
    Vocabulary,
    all_attention,
    cross_attention,
    make_batch,
    record_greedy,
    share_right,
    train,
    translate,
)
from attention_course.translation.text import END, PADDING, START, UNKNOWN

PAIRS = translation_splits(0, 200, 20)
FRENCH = Vocabulary(pair.source for pair in PAIRS["train"])
ENGLISH = Vocabulary(pair.target for pair in PAIRS["train"])
SIZES = (len(FRENCH), len(ENGLISH))
MAKE = {
    "transformer": lambda: TransformerTranslator(*SIZES, 16, heads=2, layers=2, hidden=32),
    "one vector": lambda: RecurrentTranslator(*SIZES, 16, attention=False),
    "looking back": lambda: RecurrentTranslator(*SIZES, 16, attention=True),
}


@pytest.fixture(autouse=True)
def seeded_on_one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def test_words_and_ids():
    assert FRENCH.ids(["le", "dragon"])[1] == UNKNOWN
    sentence = list(PAIRS["train"][0].target)
    assert ENGLISH.sentence([*ENGLISH.ids(sentence), END, 7, 8]) == sentence
    batch = make_batch(PAIRS["train"][:5], FRENCH, ENGLISH)
    assert (batch.target_input[:, 0] == START).all()
    assert torch.equal(batch.target_input[:, 1:], batch.target[:, :-1])
    assert ((batch.target == END).sum(dim=1) == 1).all() and (batch.source == PADDING).any()


@pytest.mark.parametrize("name", MAKE)
def test_padding_and_future_do_not_matter(name):
    model = MAKE[name]()
    batch = make_batch(PAIRS["train"][:4], FRENCH, ENGLISH)
    logits = model.decode(batch.target_input, model.encode(batch.source))
    assert logits.shape == (*batch.target.shape, len(ENGLISH))
    wider = torch.nn.functional.pad(batch.source, (0, 3), value=PADDING)
    torch.testing.assert_close(model.decode(batch.target_input, model.encode(wider)), logits)
    start = model.decode(batch.target_input[:, :2], model.encode(batch.source))
    torch.testing.assert_close(start, logits[:, :2])


@pytest.mark.parametrize("name", MAKE)
def test_training_lowers_the_loss(name):
    options = {"epochs": 6, "seed": 0, "rate": 1e-2, "warm_up": 2, "size": 10}
    pairs = PAIRS["train"][:60]
    losses = [p.loss for p in train(MAKE[name](), pairs, FRENCH, ENGLISH, **options)]
    assert len(losses) == 6 and losses[-1] < 0.9 * losses[0]


def test_a_model_that_knows_two_sentences_by_heart_is_right_on_them():
    model, two = MAKE["transformer"](), PAIRS["train"][:2]
    for _ in train(model, two, FRENCH, ENGLISH, epochs=90, seed=0, rate=1e-2, warm_up=5):
        pass
    assert share_right(model, two, FRENCH, ENGLISH) == 1.0
    assert share_right(model, PAIRS["test"][:5], FRENCH, ENGLISH) < 0.5
    run = record_greedy(model, two[0].source, FRENCH, ENGLISH)
    assert [step["word"] for step in run["greedy"]] == [*two[0].target, "[end]"]
    assert all(len(step["weights"]) == len(two[0].source) for step in run["greedy"])


def test_attention_is_read_as_it_is_used():
    model = MAKE["transformer"]()
    batch = make_batch(PAIRS["train"][:3], FRENCH, ENGLISH)
    memory = model.encode(batch.source)
    before = model.decode(batch.target_input, memory)
    weights = cross_attention(model, batch.target_input, memory)
    assert weights.shape == (2, 3, 2, batch.target.shape[1], batch.source.shape[1])
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    hidden = ~memory.mask[None, :, None, None].expand(weights.shape)
    assert (weights[hidden] == 0).all()
    torch.testing.assert_close(model.decode(batch.target_input, memory), before)
    assert not model.stacks.decoder.layers[0].multihead_attn._forward_hooks


def test_all_three_attentions_of_one_sentence():
    model = MAKE["transformer"]().eval()
    batch = make_batch(PAIRS["train"][:1], FRENCH, ENGLISH)
    maps = all_attention(model, batch.source, batch.target_input)
    target, source = batch.target.shape[1], batch.source.shape[1]
    shapes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    for name, shape in shapes.items():
        assert [tuple(layer.shape) for layer in maps[name]] == [(1, 2, *shape)] * 2
    assert (maps["decoder"][0].triu(1) == 0).all()


def test_translation_goes_on_until_all_have_ended():
    model = MAKE["transformer"]()
    words = translate(model, make_batch(PAIRS["train"][:3], FRENCH, ENGLISH).source, longest=5)
    assert words.shape[0] == 3 and 1 <= words.shape[1] <= 5
