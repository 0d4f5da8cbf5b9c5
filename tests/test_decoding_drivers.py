"""The drivers of searches and cached steps: what they hand over, count and refuse."""

import numpy as np
import pytest
import torch

from attention_course.drivers import DRIVERS, run_all
from attention_course.drivers.decoding import PROJECTIONS, TableModel
from attention_course.outcomes import Terms

RNG = np.random.default_rng(0)
TABLES = {
    "sources": RNG.normal(size=(4, 5)),
    "follow": RNG.normal(size=(5, 5)),
    "places": RNG.normal(size=(6, 5)),
}
SEARCH = Terms(outputs=("tokens", "encoder calls", "decoder calls"))


def table_model():
    return TableModel(**{name: torch.from_numpy(table) for name, table in TABLES.items()})


def test_the_model_is_causal_and_reads_place_word_and_source():
    model = table_model()
    memory = model.encode(torch.tensor([[1, 2], [3, 0]]))
    words = torch.tensor([[0, 1, 4], [2, 2, 2]])
    logits = model.decode(words, memory)
    torch.testing.assert_close(model.decode(words[:, :2], memory), logits[:, :2])
    expected = TABLES["follow"][4] + TABLES["places"][2] + TABLES["sources"][[1, 2]].sum(axis=0)
    np.testing.assert_allclose(logits[0, 2], expected)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda m: m.encode(torch.tensor([1, 2])), "source must have axes"),
        (lambda m: m.decode(torch.tensor([1]), m.encode(torch.tensor([[1]]))), "target must have"),
        (
            lambda m: m.decode(torch.ones(3, 1).long(), m.encode(torch.ones(2, 2).long())),
            "a row for each of the 3 targets, or one for all",
        ),
        (
            lambda m: m.decode(torch.ones(1, 7).long(), m.encode(torch.ones(1, 2).long())),
            "at most 6 fit",
        ),
    ],
)
def test_misuse_of_the_model_is_explained(use, words):
    with pytest.raises(ValueError, match=words):
        use(table_model())


@pytest.mark.parametrize(("counted", "calls"), [(True, (2, 3)), (False, (0, 0))])
def test_calls_are_counted_if_the_case_says_so(counted, calls):
    def candidate(model, source):
        for _ in range(2):
            memory = model.encode(source)
        for _ in range(3):
            logits = model.decode(source, memory)
        return logits.argmax(-1)

    inputs = {"model": TABLES, "source": np.array([[1, 2]]), "counted": counted}
    outcome = run_all("search", candidate, [inputs], SEARCH)[0]
    assert outcome.status == "returned", outcome
    found = outcome.outputs["encoder calls"], outcome.outputs["decoder calls"]
    assert found == calls


def test_an_example_holds_a_model():
    prepared = DRIVERS["search"].prepare({"model": TABLES, "source": np.array([[1]]), "counted": 1})
    assert isinstance(prepared["model"], TableModel) and set(prepared) == {"model", "source"}


STEP = {
    "weights": {name: RNG.normal(size=(3, 3)) for name in PROJECTIONS},
    "x": RNG.normal(size=(2, 4, 3)),
    "memory": RNG.normal(size=(2, 5, 3)),
    "memory_mask": np.ones((2, 5), dtype=bool),
}
CACHED = Terms(outputs=("output", "projected"))


def test_the_cache_lives_as_long_as_the_sentence_and_projections_count():
    def candidate(x, memory, memory_mask, cache, layer):
        cache["steps"] = cache.get("steps", 0) + 1
        layer.cross_values(memory)
        return layer.self_queries(x) * cache["steps"]

    first, second = run_all("cached_decoder", candidate, [STEP, STEP], CACHED)
    assert first.status == "returned", first
    expected = STEP["x"] @ STEP["weights"]["self_queries"] * np.arange(1, 5)[:, None]
    np.testing.assert_allclose(first.outputs["output"], expected)
    np.testing.assert_array_equal(first.outputs["output"], second.outputs["output"])
    counts = dict(zip(PROJECTIONS, first.outputs["projected"].T.tolist(), strict=True))
    assert counts["self_queries"] == [1] * 4 and counts["cross_values"] == [5] * 4
    assert counts["self_keys"] == [0] * 4


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda x: x[:, 0], "its output has the shape (2, 3); (2, 1, 3)"),
        (lambda x: None, "NoneType"),
    ],
)
def test_an_unusable_step_is_described(result, words):
    outcome = run_all(
        "cached_decoder", lambda x, memory, memory_mask, cache, layer: result(x), [STEP], CACHED
    )[0]
    assert outcome.status == "unusable" and words in outcome.message
