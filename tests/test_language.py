"""What chapter 08's experiments train: the decoder, the three ways, the corruptions."""

import random

import pytest
import torch
from scripts import load_script

from attention_course.data import language_records
from attention_course.language import characters, repair, three_ways
from attention_course.language.llama import Llama, Shape
from attention_course.language.training import fit, rate_factor

pytestmark = pytest.mark.usefixtures("one_torch_thread")
SHAPE = Shape(vocabulary=11, width=12, layers=2, heads=3, key_heads=1, hidden=20)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn_decoder(shape=SHAPE):
    model = Llama(shape, generator()).double()
    with torch.no_grad():
        for parameter in model.parameters():  # gains too
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator(1)).double())
    return model


def test_the_decoder_agrees_with_the_librarys():
    llama = pytest.importorskip("transformers.models.llama")
    model = drawn_decoder()
    config = llama.LlamaConfig(
        vocab_size=11,
        hidden_size=12,
        intermediate_size=20,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=1,
        rms_norm_eps=SHAPE.epsilon,
        tie_word_embeddings=True,
    )
    theirs = llama.LlamaForCausalLM(config).double().eval()
    inside = {name: "mlp" for name in ("gate_proj", "up_proj", "down_proj")}
    inside |= {name: "self_attn" for name in ("q_proj", "k_proj", "v_proj", "o_proj")}
    renamed = {}
    for name, weight in model.state_dict().items():
        *front, part, kind = name.split(".")
        middle = [inside[part]] if part in inside else []
        renamed[".".join(["model", *front, *middle, part, kind])] = weight
    renamed["lm_head.weight"] = renamed["model.embed_tokens.weight"]
    theirs.load_state_dict(renamed)
    tokens = torch.randint(11, (2, 7), generator=generator(2))
    with torch.no_grad():
        torch.testing.assert_close(model(tokens), theirs(tokens).logits, rtol=1e-5, atol=1e-5)


def test_only_a_mask_lets_the_decoder_see_the_future():
    model = drawn_decoder()
    tokens = torch.randint(11, (1, 6), generator=generator(3))
    changed = tokens.clone()
    changed[0, 3:] = (tokens[0, 3:] + 1) % 11
    causal = (model(tokens) - model(changed)).abs().amax(dim=-1)[0]
    assert (causal[:3] < 1e-12).all() and (causal[3:] > 1e-6).all()
    everything = torch.ones(6, 6, dtype=torch.bool)
    assert (
        (model(tokens, everything) - model(changed, everything)).abs().amax(dim=-1) > 1e-6
    ).all()


@pytest.mark.parametrize("sizes", [(10, 3, 3), (12, 3, 2), (9, 3, 3)])
def test_sizes_that_do_not_divide_are_refused(sizes):
    width, heads, key_heads = sizes
    with pytest.raises(ValueError, match="Choose other sizes"):
        Shape(11, width, 1, heads, key_heads, 8)


def test_the_rate_rises_and_falls():
    factors = [rate_factor(step, 200) for step in range(200)]
    assert factors[0] < factors[40] < 1 and max(factors) <= 1
    assert factors[60] > factors[120] > factors[-1] > 0


def test_the_three_ways_have_equally_many_weights_and_learn():
    counts = [
        sum(p.numel() for p in three_ways.build(way, generator()).parameters())
        for way in three_ways.WAYS
    ]
    assert max(counts) < 1.01 * min(counts)
    with pytest.raises(ValueError, match="way must be one of"):
        three_ways.build("both", generator())
    for way in three_ways.WAYS:
        shares = three_ways.train_way(way, seed=0, steps=4, every=2, batch=4)
        assert len(shares) == 2 and all(0 <= share <= 1 for share in shares)


def test_the_task_is_what_it_says():
    inputs, outputs = three_ways.draw_task(generator(4), 60)
    for row, answer in zip(inputs.tolist(), outputs.tolist(), strict=True):
        letters, kind = row[:-1], row[-1] - three_ways.FIRST_INSTRUCTION
        assert answer == [letters, letters[::-1], sorted(letters)][kind]


def test_outputs_of_the_encoder_decoder_depend_on_the_past_only():
    model = three_ways.build("encoder-decoder", generator()).double()
    inputs, outputs = three_ways.draw_task(generator(5), 2)
    changed = outputs.clone()
    changed[:, 4:] = three_ways.FIRST_LETTER
    with torch.no_grad():
        moved = (model(inputs, outputs) - model(inputs, changed)).abs().amax(dim=(0, 2))
        other = (model(inputs.flip(1), outputs) - model(inputs, outputs)).abs().amax(dim=(0, 2))
    assert (moved[:4] < 1e-12).all() and moved[5:].max() > 1e-9
    assert (other > 1e-9).all()


def test_corruptions_do_what_their_names_say():
    draw, word = random.Random(1), "fortune"
    seen = {
        name: {corrupt(word, draw) for _ in range(300)}
        for name, corrupt in repair.CORRUPTIONS.items()
    }
    assert all(len(text) == 7 for text in seen["token masking"])
    assert all(repair.MASK not in text and len(text) <= 7 for text in seen["token deletion"])
    assert all(text.count(repair.MASK) == 1 for text in seen["text infilling"])
    assert {len(text) for text in seen["text infilling"]} == {4, 5, 6, 7, 8}
    assert all(text in word + word and len(text) == 7 for text in seen["rotation"])
    typed = {repair.misspelt(word, draw) for _ in range(400)}
    assert {len(text) for text in typed} == {6, 7, 8}


def test_rows_keep_input_and_output_apart():
    row = repair.as_rows(["fortne"], ["fortune"])[0]
    line = "".join(repair.SYMBOLS[number] for number in row)
    assert line == "....fortne>fortune...." and len(line) == repair.ROW


def test_training_and_writing_are_the_same_for_the_same_seed():
    tokens = torch.randint(9, (400,), generator=generator(6))
    written = []
    for _ in range(2):
        model = characters.small_decoder(9, seed=3)
        before = characters.validation_loss(model, tokens)
        characters.train_on_text(model, tokens[:5].repeat(80), 0, 90, lambda step: None)
        after = characters.validation_loss(model, tokens[:5].repeat(80))
        assert after < 0.5 < 2.0 < before, "five tokens in a circle are soon learned"
        written.append(characters.write(model, tokens[:3], 20, seed=1).tolist())
    assert written[0] == written[1] and written[0][:3] == tokens[:3].tolist()
    greedy = characters.write(
        model, tokens[:6], 5, 2, lambda x: x.masked_fill(x < x.max(), -torch.inf)
    )
    assert len(greedy) == 11


def test_fit_calls_back_after_every_step():
    model, steps = torch.nn.Linear(2, 1), []
    fit(model, lambda step: (model(torch.ones(1, 2)) - 3).square().sum(), 5, 0.1, steps.append)
    assert steps == [1, 2, 3, 4, 5]


def test_the_record_holds_what_its_script_makes(tmp_path):
    """Same columns, and all runs of the plan: from the names alone, and from a tiny run."""
    script = load_script("experiments/language_model_ablations.py")
    script.record(tmp_path, (0,), {2: (0,)}, 1, steps=1, tuning=1)
    for recorded in (language_records.REPAIRS, language_records.WAYS):
        made = (tmp_path / recorded.name).read_text(encoding="utf-8").splitlines()
        assert made[0] == recorded.read_text(encoding="utf-8").splitlines()[0]
        assert language_records.seconds_of(recorded) > 0
    repairs = language_records.read_repairs()
    assert list(repairs) == [language_records.NOTHING, *repair.CORRUPTIONS]
    assert {len(scores) for scores in repairs.values()} == {len(script.SEEDS)}
    for steps, seeds in script.STEPS.items():
        curves = language_records.read_ways(steps)
        assert list(curves) == list(three_ways.WAYS)
        for runs in curves.values():
            assert len(runs) == len(seeds)
            assert all(list(run) == list(range(40, steps + 1, 40)) for run in runs)
    with pytest.raises(ValueError, match="no run of 7 steps"):
        language_records.read_ways(7)
