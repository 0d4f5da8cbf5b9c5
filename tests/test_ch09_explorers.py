"""The explorers of chapter 09 without a browser: arguments, and agreement with the exercises."""

import pytest

from attention_course.explorers import blank_filler, wordpiece_steps
from autograder.exercises._ch09_wordpiece import WORDPIECE

WORDS = ["unplayable", "playing", "qqq", "a", "", "Ab", "transformers", "zzz", "bookish"]
ENTRY = {"words": [["a", 0.5]], "weights": [0.5, 0.5]}
PAIR = {"0": {"0": ENTRY}, "1": {"1": ENTRY}, "0,1": {"0": ENTRY, "1": ENTRY}}


@pytest.mark.parametrize("word", WORDS)
def test_pieces_agree_with_the_exercise(word):
    shown = wordpiece_steps(word)
    names = ["[UNK]", *shown.pieces]
    vocabulary = {piece: number for number, piece in enumerate(names)}
    expected = WORDPIECE.reference(word, vocabulary, 100) if word else []
    assert shown.result() == [names[number] for number in expected]


def test_steps_are_told_in_words():
    shown = wordpiece_steps("unable", ["un", "##able"], step=5)
    assert shown.tries()[:2] == [("unable", False), ("unabl", False)]
    assert "5 of 6 tries" in shown.text() and "un ##able" in shown.text()
    assert "un: yes" in shown.text()


def test_the_recorded_run_knows_grammar():
    shown = blank_filler()
    assert len(shown.answers) == 8 + 28
    for blanks in shown.answers.values():
        for entry in blanks.values():
            assert len(entry["weights"]) == len(shown.tokens)
            assert sum(entry["weights"]) == pytest.approx(1, abs=0.06)
    assert "____" in shown.text()


def test_special_tokens_need_no_answers():
    shown = blank_filler(["[CLS]", "b"], {"1": PAIR["1"]}, blanks=(1,))
    assert "[CLS] ____" in shown.text()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: wordpiece_steps(3), TypeError, "must be a string"),
        (lambda: wordpiece_steps("a" * 21), ValueError, "at most 20"),
        (lambda: wordpiece_steps("two words"), ValueError, "one word"),
        (lambda: wordpiece_steps("a", "abc"), TypeError, "list of strings"),
        (lambda: wordpiece_steps("a", []), ValueError, "1 to 400"),
        (lambda: wordpiece_steps("a", step=-1), ValueError, "step must be"),
        (lambda: blank_filler(["a", "b"], PAIR, blanks=(2,)), ValueError, "from 0 to 1"),
        (lambda: blank_filler(["a", "b"], PAIR, blanks=()), ValueError, "one or two"),
        (lambda: blank_filler(["a", "b"], PAIR, blanks=(0, 0)), ValueError, "one or two"),
        (lambda: blank_filler(["a", "[SEP]"], PAIR, blanks=(1,)), ValueError, "never blanked"),
        (
            lambda: blank_filler(["a", "b"], {"0": PAIR["0"]}, blanks=(0,)),
            ValueError,
            "must hold the blanks",
        ),
        (lambda: blank_filler(["a"] * 3, {**PAIR, "2": {"2": ENTRY}}), ValueError, "3 weights"),
        (lambda: blank_filler("ab", PAIR), TypeError, "list of strings"),
        (lambda: blank_filler(["a"], {}), ValueError, "2 to 14"),
    ],
)
def test_wrong_arguments_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()
