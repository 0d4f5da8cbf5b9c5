"""The explorers of chapter 11 without a browser."""

from __future__ import annotations

import pytest

from attention_course.explorers.ablation_switchboard import OBJECTIVES, ablation_switchboard
from attention_course.explorers.generator_sizes import MEASURES, generator_sizes
from attention_course.explorers.replaced_game import replaced_game

SENTENCE = {"original": ["a", "b"], "corrupted": ["a", "c"], "scores": [0.1, 0.8]}


def test_game_in_words():
    game = replaced_game([SENTENCE])
    assert "a c" in game.text() and "0.80" not in game.text()
    game.shown = True
    assert "c: 0.80, was b" in game.text() and game.replaced() == [1]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_switchboard_names_each_objective(objective):
    board = ablation_switchboard(objective)
    assert board.name() == objective
    asked = [say for _, _, say in board.table() if say]
    assert len(asked) == (8 if OBJECTIVES[objective][2] else 2)


def test_switchboard_in_words():
    text = ablation_switchboard("ELECTRA").text()
    assert "chats: reads chiens, should say replaced" in text
    assert "dorment: reads dorment, should say original" in text
    board = ablation_switchboard("BERT")
    board.says_words = False
    assert board.name() is None and "No objective" in board.text()


def run(share, seed, value):
    return {"share": share, "seed": seed, **dict.fromkeys(MEASURES, value)}


def test_sizes_in_words():
    sizes = generator_sizes([run(0.5, 0, 1.0), run(0.5, 1, 2.0), run(1.0, 0, 4.0)])
    assert sizes.means() == {0.5: 1.5, 1.0: 4.0}
    assert "0.5 of the width: 1.50" in sizes.text()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: replaced_game([]), ValueError, "sentences is empty"),
        (lambda: replaced_game(["a"]), TypeError, "must be a dict"),
        (lambda: replaced_game([{**SENTENCE, "scores": [0.1]}]), ValueError, "2 probabilities"),
        (lambda: replaced_game([{**SENTENCE, "scores": [2, 0]}]), ValueError, "sigmoid"),
        (lambda: replaced_game([{**SENTENCE, "original": ["a"]}]), ValueError, "original"),
        (lambda: replaced_game([SENTENCE], sentence=1), ValueError, "sentence must be"),
        (lambda: ablation_switchboard("GAN"), ValueError, "objective must be"),
        (lambda: generator_sizes([]), ValueError, "runs is empty"),
        (lambda: generator_sizes([{"share": 1.0}]), TypeError, r"runs\[0\] must have"),
        (lambda: generator_sizes([run(0.5, 0, 1.0)], measure="x"), ValueError, "measure must be"),
    ],
)
def test_errors_help(make, error, message):
    with pytest.raises(error, match=message):
        make()
