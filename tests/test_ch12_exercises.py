"""What chapter 12 promises: its exercises' properties, its task, and its recorded runs."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
from scripts import load_script

from attention_course.data import distillation_records
from attention_course.data.fragment import Pair
from attention_course.distillation import (
    WordModel,
    attention_of,
    bytes_on_disk,
    fit,
    from_labels,
    from_logits,
    hard_labels,
    in_8_bits,
    in_plain_layers,
    logits_of,
    make_word_task,
    words_for,
)
from attention_course.drivers.distilling import PlayedMachine, in_one_row, make_model, swapped
from attention_course.drivers.tensors import as_tensors
from attention_course.pretrained import MINILM, is_installed
from autograder.exercises import of_chapter
from autograder.exercises._ch12_attention import ATTENTION_LOSS
from autograder.exercises._ch12_parts import NO_LABEL, draw_model, draw_real
from autograder.exercises._ch12_soft import SOFT_LOSS
from autograder.exercises._ch12_swaps import with_hooks

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def soft(student, teacher, temperature):
    real = torch.ones(student.shape[:-1], dtype=torch.bool)
    return SOFT_LOSS.reference(student, teacher, real, temperature)


def test_the_factor_keeps_gradients_alike_when_the_temperature_grows():
    rng = np.random.default_rng(0)
    student, teacher = (torch.from_numpy(rng.normal(size=(2, 3, 5))) for _ in range(2))
    student.requires_grad_()
    sizes = []
    for temperature in (20.0, 200.0):
        (gradient,) = torch.autograd.grad(soft(student, teacher, temperature), student)
        sizes.append(float(gradient.norm()))
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_equal_models_have_no_loss_and_padding_does_not_matter():
    for case in SOFT_LOSS.make_cases(4):
        given = as_tensors(dict(case.inputs))
        same = {**given, "student_logits": given["teacher_logits"]}
        assert float(SOFT_LOSS.reference(**same)) == pytest.approx(0, abs=1e-12)
        other = {**given, "teacher_logits": given["teacher_logits"].clone()}
        other["teacher_logits"][~given["real"]] = -7.0
        assert float(SOFT_LOSS.reference(**other)) == float(SOFT_LOSS.reference(**given))


def test_cases_have_rows_with_unequal_numbers_of_tokens():
    for seed in range(20):
        real = draw_real(np.random.default_rng(seed), 3, 4)
        counts = real.sum(axis=1)
        assert counts.min() > 0 and len(set(counts.tolist())) == 3 and counts.max() == 4


def test_attention_holds_exact_zeros_where_the_student_does_and_does_not():
    for seed in range(5):
        case = ATTENTION_LOSS.make_cases(seed)[1]
        ours, theirs = case.inputs["student_weights"][0], case.inputs["teacher_weights"][2]
        real = case.inputs["real"]
        queries = np.broadcast_to(real[:, None, :, None], ours.shape)
        assert ((theirs == 0) & (ours > 0) & queries).any()
        assert ((theirs == 0) & (ours == 0) & queries).any()
        np.testing.assert_allclose(theirs.sum(-1), 1, atol=1e-5)


def test_the_given_swap_agrees_with_hooks():
    rng = np.random.default_rng(2)
    model = make_model(draw_model(rng, 2, 3, 3, 4))
    base, source = (torch.from_numpy(rng.normal(size=(2, 5, 2))) for _ in range(2))
    for layer in range(3):
        ours = swapped(model, layer, base, source, torch.tensor([4, 1]))
        torch.testing.assert_close(ours, with_hooks(model, layer, base, source, [4, 1]))
        everything = swapped(model, layer, base, source, torch.arange(5))
        torch.testing.assert_close(everything, model(source))
    assert in_one_row(model).shape == (2 * 3 + 3 * (9 + 3) + 3 * 4,)


def test_the_played_machine_grows_slower():
    machine = PlayedMachine([[1.0], [2.0, 4.0]], 2.0)
    readings = [machine.clock()]
    for model in (0, 1, 1, 0):
        machine.run(model)
        readings.append(machine.clock())
    assert np.diff(readings).tolist() == [1.0, 4.0, 16.0, 8.0] and machine.runs == [2, 2]


def test_points_of_the_chapter():
    exercises = of_chapter("12_distillation")
    assert len(exercises) == 18
    assert sum(exercise.points for exercise in exercises.values()) == 51


# --- the task ------------------------------------------------------------------------------------


def test_the_word_of_a_word():
    pair = Pair(
        ("elle", "n'", "aime", "pas", "le", "chat"),
        ("she", "does", "not", "like", "the", "cat"),
        tuple(map(frozenset, ({0}, {1, 2}, {1, 3}, {2}, {4}, {5}))),
    )
    assert words_for(pair) == ["she", "not", "like", "not", "the", "cat"]


TASK = make_word_task(5, {"train": 300, "test": 100})


def test_words_alone_do_not_decide():
    """The most frequent English word of each French word: a shortcut that must not suffice."""
    counts = defaultdict(Counter)
    train, test = TASK.sets["train"], TASK.sets["test"]
    for word, label in zip(
        train.words[train.words > 0], train.labels[train.words > 0], strict=True
    ):
        counts[int(word)][int(label)] += 1
    tokens = test.words > 0
    guesses = [
        counts[int(w)].most_common(1)[0][0] if int(w) in counts else -1 for w in test.words[tokens]
    ]
    right = (torch.tensor(guesses) == test.labels[tokens]).double().mean()
    assert 0.5 < right < 0.93


def test_sets_share_no_sentence_and_numbers_stand_for_words():
    rows = {name: {tuple(row.tolist()) for row in some.words} for name, some in TASK.sets.items()}
    shortest = min(some.words.shape[1] for some in TASK.sets.values())
    assert shortest <= 12
    texts = {
        name: {tuple(TASK.reading(row)) for row in some.words} for name, some in TASK.sets.items()
    }
    assert not texts["train"] & texts["test"] and len(texts["train"]) == len(rows["train"]) == 300
    train = TASK.sets["train"]
    assert ((train.words == 0) == (train.labels == NO_LABEL)).all()
    few = train[:3]
    assert len(few) == 3 and (few.words[:, -1] > 0).any()
    with pytest.raises(ValueError, match="at least one sentence"):
        make_word_task(0, {"train": 0})


def small_model():
    torch.manual_seed(0)
    return WordModel(len(TASK.french), len(TASK.english), 16, 2, 2)


def test_padding_does_not_change_a_models_answers():
    model, words = small_model().eval(), TASK.sets["test"][:4].words
    longer = torch.nn.functional.pad(words, (0, 3))
    with torch.no_grad():
        torch.testing.assert_close(logits_of(model, longer)[:, : words.shape[1]], model(words))
    one = words[0][words[0] > 0]
    weights = attention_of(model, one)
    assert weights.shape == (2, 2, len(one), len(one))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, len(one)))


def test_plain_layers_compute_what_pytorchs_do_and_8_bits_come_close():
    words = TASK.sets["test"][:8].words
    real = words > 0
    for norm_first in (True, False):
        model = small_model()
        for layer in model.layers:
            layer.norm_first = norm_first
        with torch.no_grad():
            whole = logits_of(model, words)[real]
            plain = in_plain_layers(model)(words)[real]
            rounded = in_8_bits(model)(words)[real]
        torch.testing.assert_close(plain, whole)
        error = (rounded - whole).norm() / whole.norm()
        assert 0 < error < 0.1


def test_8_bits_leave_the_model_alone_and_make_its_file_smaller():
    model = WordModel(50, 20, 64, 4, 2).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    rounded = in_8_bits(model)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    integers = [t for t in rounded.state_dict().values() if t.dtype == torch.int8]
    assert len(integers) == 2 * 6 + 1 and all(t.abs().amax(1).eq(127).all() for t in integers)
    assert bytes_on_disk(rounded) < 0.5 * bytes_on_disk(model)


def test_every_signal_moves_a_student_towards_its_aim():
    train = TASK.sets["train"]
    opinions = torch.nn.functional.one_hot(train.labels.clamp(min=0), len(TASK.english)) * 9.0
    torch.testing.assert_close(hard_labels(opinions, train.words), train.labels)
    for signal in (from_labels(train.labels), from_logits(opinions, 1.0)):
        model = small_model()
        first = float(
            signal(model, train.words[:32], torch.arange(32), train.words.shape[1]).detach()
        )
        assert fit(model, train.words, signal, steps=25, seed=0, rate=1e-2) < 0.7 * first


# --- the recorded runs ---------------------------------------------------------------------------


def test_the_record_is_what_the_script_would_make(tmp_path):
    """Same columns and same grid of runs, from a tiny run of the script."""
    ladder = load_script("experiments/distillation_ladder.py")
    sizes = {"labelled": 4, "teacher's": 8, "transfer": 8, "test": 4}
    ladder.record(tmp_path, (0,), sizes, 1)
    recorded = distillation_records.RUNS.read_text(encoding="utf-8").splitlines()
    made = (tmp_path / distillation_records.RUNS.name).read_text(encoding="utf-8").splitlines()
    assert made[0] == recorded[0]
    kinds = [line.split(",")[1:6] for line in made[1:]]
    assert len(recorded) == 1 + len(kinds) * len(ladder.SEEDS)

    def grid(run):
        return run["inputs"], run["signal"], run["layers"], run["temperature"], run["steps"]

    runs = distillation_records.read_runs()
    for seed in ladder.SEEDS:
        of_seed = [run for run in runs if run["seed"] == seed]
        assert len({grid(run) for run in of_seed}) == len(of_seed) == len(kinds)
        assert all(0 < run["accuracy"] <= 1 and run["parameters"] > 0 for run in of_seed)


def test_the_record_of_glosses_holds_every_plan_once():
    script = load_script("experiments/gloss_distillation.py")
    sizes = script.Sizes()
    planned = [
        ("small", inputs, signal, layers, temperature or None)
        for inputs, signal, layers, temperature in script.plans(sizes.labelled, sizes.transfer)
    ]
    best = sizes.transfer[-1], "soft", len(script.CUT), script.TEMPERATURE
    planned += [("cut out", *best), ("cut out, 8 bits", *best)]
    planned += [("cut out", sizes.labelled, "gold", len(script.CUT), None)]
    planned += [(name, None, "", 6, None) for name in ("teacher", "teacher, 8 bits")]
    runs = distillation_records.read_gloss_runs()
    for seed in script.SEEDS:
        of_seed = [run for run in runs if run["seed"] == seed]
        made = [
            tuple(run[name] for name in ("model", "inputs", "signal", "layers", "temperature"))
            for run in of_seed
        ]
        assert Counter(made) == Counter(planned)
        timed = [run for run in of_seed if run["milliseconds"]]
        assert len(timed) == 7 and all(run["bytes"] > 0 for run in timed)


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(MINILM), reason="the package with MiniLM is not installed")
def test_the_script_of_glosses_runs(tmp_path):
    script = load_script("experiments/gloss_distillation.py")
    script.record(tmp_path, (0,), script.Sizes(10, 10, (12, 14), 1, 1, 1))
    made, recorded = (
        path.read_text(encoding="utf-8").splitlines()
        for path in (
            tmp_path / distillation_records.GLOSS_RUNS.name,
            distillation_records.GLOSS_RUNS,
        )
    )
    assert made[0] == recorded[0]
    assert len(recorded) == 1 + (len(made) - 1) * len(script.SEEDS)
