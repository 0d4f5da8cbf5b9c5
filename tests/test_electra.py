"""The miniature of ELECTRA: its corpus, its objectives, and what can be read of the records."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from attention_course.data.electra_records import (
    read_detections,
    read_longer,
    read_masks,
    read_runs,
    read_ways,
)
from attention_course.electra import (
    OBJECTIVES,
    Pretraining,
    corrupted,
    detection,
    load_pair,
    make_corpus,
    mlm_suspicion,
    pretrain,
    replaced_suspicion,
)
from attention_course.electra.corpus import FIRST_WORD, MASK, PADDING, START, padded, tags
from attention_course.electra.objectives import VARIANTS, second_stage
from attention_course.electra.training import pretrain_in_stages

pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(train=200, labelled=20, test=60)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("les petits chats noirs voient la souris .", [2, 2, 2, 2, 0, 7, 7, 0]),
        ("il ne la cherche pas dans le jardin vide .", [0, 0, 0, 0, 0, 0, 9, 9, 9, 0]),
        ("la fille heureuse et fatiguée a vu des œufs .", [3, 3, 3, 3, 3, 0, 0, 6, 6, 0]),
        ("les souris dorment .", [4, 4, 0, 0]),
    ],
)
def test_tags(sentence, expected):
    assert tags(sentence.split()) == expected


def test_a_corpus_repeats_nothing_and_has_a_tag_for_each_id(corpus):
    everything = [*corpus.train, *(ids for ids, _ in corpus.labelled + corpus.test)]
    assert len({tuple(ids) for ids in everything}) == 280
    for ids, found in corpus.labelled + corpus.test:
        assert len(ids) == len(found) and ids[0] == START
    with pytest.raises(ValueError, match="at least one sentence"):
        make_corpus(train=0)


def test_a_spoiled_sentence_differs_in_one_form(corpus):
    rng, spoiled_some = np.random.default_rng(0), 0
    for ids, _ in corpus.test:
        found = corpus.spoiled(ids, rng)
        if found:
            spoiled, place = found
            assert [a != b for a, b in zip(ids, spoiled, strict=True)].index(True) == place
            assert spoiled[place] in corpus.others[ids[place]]
            spoiled_some += 1
    assert spoiled_some > 30


def test_objectives_learn_from_padded_batches_as_from_single_sentences(corpus):
    """Padding changes neither what is chosen nor what a place is worth."""
    tokens = padded(corpus.train[:6])
    further = torch.nn.functional.pad(tokens, (0, 3), value=PADDING)
    for objective in OBJECTIVES | VARIANTS:
        model = Pretraining(objective, len(corpus.words)).eval()
        assert torch.allclose(
            model.encoder(tokens), model.encoder(further)[:, : tokens.shape[1]], atol=1e-5
        )
        real = tokens >= FIRST_WORD
        chosen = model.choose(real)
        assert not (chosen & ~real).any() and chosen.any()
        loss, parts, flops = model(tokens)
        assert loss.isfinite() and flops > 0 and set(parts) <= {"generator", "own"}


def test_the_generator_shares_the_embeddings_and_hears_nothing_of_the_discriminator(corpus):
    tokens = padded(corpus.train[:8])
    gradients = []
    for weight in (1.0, 50.0):
        torch.manual_seed(0)
        model = Pretraining("ELECTRA", len(corpus.words), weight=weight, seed=0).eval()
        model(tokens)[0].backward()
        assert model.generator.embeddings is model.encoder.embeddings
        gradients.append(model.generator.blocks[0].wide.weight.grad)
    assert torch.equal(*gradients) and gradients[0].abs().sum() > 0
    with pytest.raises(ValueError, match="objective must be"):
        Pretraining("GAN", 10)


def test_a_run_stops_at_its_budget_and_can_be_repeated(corpus):
    def last_losses():
        *_, last = pretrain("ELECTRA", corpus, [1e9, 2e9], seed=3)
        assert 2e9 <= last.flops < 2.4e9
        return last.losses

    assert last_losses() == last_losses()


def test_a_run_may_count_steps_instead(corpus):
    assert [run.step for run in pretrain("BERT", corpus, [1, 3], seed=0, by="step")] == [1, 3]


def test_the_second_stage_starts_from_the_first_one_and_leaves_it_alone(corpus):
    tokens = padded(corpus.train[:8])
    first = Pretraining("MLM, only [MASK]", len(corpus.words))
    model = second_stage(first, seed=0)
    before = {name: w.clone() for name, w in first.state_dict().items()}
    for name, copied in model.encoder.state_dict().items():
        assert torch.equal(copied, first.encoder.state_dict()[name])
    loss, _, cost = model(tokens)
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert all(torch.equal(before[name], w) for name, w in first.state_dict().items())
    changed = [
        not torch.equal(w, before[f"encoder.{n}"]) for n, w in model.encoder.named_parameters()
    ]
    assert sum(changed) > len(changed) / 2
    joint = Pretraining("ELECTRA", len(corpus.words), generator_share=1.0)(tokens)[2]
    assert 0.6 * joint < cost < 0.7 * joint, "the frozen generator has no backward pass"


def test_two_stages_cost_what_one_does(corpus):
    (run,) = pretrain_in_stages(corpus, 2e9, seed=0)
    assert 2e9 <= run.flops < 2.4e9 and not run.model.generator_learns


def test_the_adversarial_generator_is_paid_for_mistakes(corpus):
    """Same samples: the discriminator learns as in ELECTRA, the generator something else."""
    tokens, learned = padded(corpus.train[:8]), {}
    for objective in ("ELECTRA", "adversarial"):
        torch.manual_seed(0)
        model = Pretraining(objective, len(corpus.words), seed=0)
        model(tokens)[0].backward()
        learned[objective] = [
            network.blocks[0].wide.weight.grad for network in (model.encoder, model.generator)
        ]
    assert torch.equal(learned["ELECTRA"][0], learned["adversarial"][0])
    assert not torch.allclose(learned["ELECTRA"][1], learned["adversarial"][1])
    assert 0 < model.baseline < 0.02, "one step of the running mean of losses around 0.7"


def test_the_shipped_pair_finds_wrong_words_and_made_the_game():
    pair, corpus = load_pair(), make_corpus(train=8_000, labelled=2_000, test=300)
    assert pair.words == corpus.words
    found = detection(replaced_suspicion, pair.model, corpus)
    assert found["points"] > 3 * found["chance"]
    heads = {name.split(".")[0] for name in pair.weights}
    assert heads == {"generator", "discriminator"}
    index = {word: i for i, word in enumerate(pair.words)}
    for sentence in read_detections():
        ids = torch.tensor([[START, *(index[word] for word in sentence["corrupted"])]])
        scores = replaced_suspicion(pair.model, ids).sigmoid()[0, 1:]
        assert np.allclose(scores, sentence["scores"], atol=0.01)
    made = corrupted(pair, corpus.test[0][0], seed=0)
    changed = [a != b for a, b in zip(made["original"], made["corrupted"], strict=True)]
    assert set(np.flatnonzero(changed)) <= set(made["chosen"])


def test_pointing_is_chance_before_training(corpus):
    for objective, suspicion in (("BERT", mlm_suspicion), ("ELECTRA", replaced_suspicion)):
        torch.manual_seed(0)
        found = detection(suspicion, Pretraining(objective, len(corpus.words)), corpus)
        assert 0.05 < found["chance"] < 0.2 and found["points"] < 0.4


def test_masking_in_turn_asks_about_the_hidden_word(corpus):
    torch.manual_seed(0)
    model = Pretraining("BERT", len(corpus.words)).eval()
    ids = padded([corpus.test[0][0]])
    scores = mlm_suspicion(model, ids)
    hidden = ids.clone()
    hidden[0, 2] = MASK
    with torch.no_grad():
        log_p = model.head(model.encoder(hidden))[0, 2].log_softmax(-1)
    assert scores[0, 2].item() == pytest.approx(-log_p[ids[0, 2]].item(), abs=1e-5)
    assert scores[0, 0] == -torch.inf, "the start token is no word"


def test_the_records_are_whole():
    runs = read_runs()
    main = [run for run in runs if run["generator_share"] in (None, 0.5)]
    wanted = {(objective, seed) for objective in OBJECTIVES for seed in (0, 1, 2)}
    for stop in {run["stop"] for run in runs}:
        assert {(r["objective"], r["seed"]) for r in main if r["stop"] == stop} == wanted
    ways, longer = read_ways(), read_longer()
    for some in (runs, ways, longer):
        cells = [(r["objective"], r["generator_share"], r["seed"], r["stop"]) for r in some]
        assert len(set(cells)) == len(cells)
        for run in some:
            assert run["stop"] <= run["tflop"] < 1.01 * run["stop"]
            assert 0.3 < run["tagging"] < 1 and 0.3 < run["acceptability"] <= 1
    assert {r["objective"] for r in ways} == {"ELECTRA", "two stages", "adversarial"}
    assert {r["objective"] for r in longer} == {"ELECTRA", "BERT"}
    for some in (ways, longer):
        assert min(Counter(r["objective"] for r in some).values()) >= 3
    assert min(r["stop"] for r in longer) > max(r["stop"] for r in runs)


def test_the_same_run_in_two_records_has_the_same_numbers():
    """Its seed makes a run: ELECTRA stands in both, recorded hours apart."""
    first = {r["seed"]: r for r in read_runs() if r["stop"] == 0.3 and is_plain(r)}
    again = {r["seed"]: r for r in read_ways() if is_plain(r)}
    for seed, run in again.items():
        assert run["step"] == first[seed]["step"]
        assert run["tagging"] == pytest.approx(first[seed]["tagging"], abs=0.01)


def is_plain(run):
    return run["objective"] == "ELECTRA" and run["generator_share"] == 0.5


def test_masks_are_compared_after_equal_steps():
    runs = read_masks()
    assert len({run["step"] for run in runs}) == 1
    seeds = {run["seed"] for run in runs}
    names = {run["objective"] for run in runs}
    assert names == {"MLM, only [MASK]", "BERT", "Replace MLM"} and len(seeds) >= 3
    assert len(runs) == len(names) * len(seeds)


def test_sentences_of_the_game_differ_in_chosen_places_only():
    for sentence in read_detections():
        length = len(sentence["original"])
        assert len(sentence["corrupted"]) == len(sentence["scores"]) == length
        assert sentence["original"] != sentence["corrupted"]
        for place, pair in enumerate(zip(sentence["original"], sentence["corrupted"], strict=True)):
            assert pair[0] == pair[1] or place in sentence["chosen"]
