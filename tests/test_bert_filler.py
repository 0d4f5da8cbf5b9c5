"""The blank filler that comes with the course: it is what it says, and knows more than counts."""

import pytest
import torch
from scripts import load_script

from attention_course.bert.filler import load_filler
from autograder.exercises._ch09_states import bert_states_reference

pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def filler():
    return load_filler()


def test_the_exercise_and_the_library_compute_the_same_with_its_weights(filler):
    tokens = filler.tokens("the old king does not [MASK] apples .")
    segments, mask = torch.zeros_like(tokens), torch.ones_like(tokens, dtype=torch.bool)
    states = bert_states_reference(filler.weights, filler.heads, tokens, segments, mask)
    with torch.no_grad():
        expected = filler.library_model.bert(input_ids=tokens)[0]
    torch.testing.assert_close(states, expected, rtol=0, atol=2e-5)
    table = filler.library_model.get_output_embeddings().weight
    assert torch.equal(table, filler.weights["embeddings.word_embeddings.weight"])


def test_it_beats_counts_of_words_and_of_neighbours_on_new_sentences(filler):
    script = load_script("experiments/bert_filler.py")
    learned, new = script.texts()
    assert not set(learned) & set(new)
    blanks = list(script.one_blank_each(script.by_length(filler.pieces, new[:400])))
    found = script.baselines(script.by_length(filler.pieces, learned), blanks)
    own = script.score(lambda t, p: script.model_logs(filler.library_model, t, p), blanks)
    assert all(own["nats"] < other["nats"] - 0.1 for other in found.values())
    assert all(own["found"] > other["found"] for other in found.values())
    recorded = filler.about["new_text"]
    assert recorded.keys() == {*found, "this BERT"}
    for name, measured in {**found, "this BERT": own}.items():
        assert measured["nats"] == pytest.approx(recorded[name]["nats"], abs=0.3)


def test_it_says_what_it_cannot_read(filler):
    with pytest.raises(ValueError, match="cannot spell 'zebra'"):
        filler.tokens("the zebra sleeps .")
    with pytest.raises(ValueError, match="0 pieces; the filler reads 1 to 30"):
        filler.tokens(" ")
    with pytest.raises(ValueError, match="40 pieces"):
        filler.tokens("the " * 40)


def test_every_blank_is_what_the_explorer_wants(filler):
    words, answers = filler.every_blank("the king sleeps")
    assert words == ["[CLS]", "the", "king", "sleeps", "[SEP]"]
    assert set(answers) == {"1", "2", "3", "1,2", "1,3", "2,3"}
    assert set(answers["1,3"]) == {"1", "3"} and len(answers["1"]["1"]["weights"]) == 5
    (guesses,) = filler.fill("the [MASK] sleeps", most=4)
    assert [word for word, _ in guesses] == [word for word, _ in answers["2"]["2"]["words"]]
