"""The ladder of translators: equal sizes, a whole record, and a script that makes its rows."""

from attention_course.data.fragment import translation_splits
from attention_course.translation import Vocabulary
from attention_course.translation.ladder import COLUMNS, GROUPS, RIVALS, climb, read_runs


def test_the_record_is_whole_and_the_rivals_are_of_one_size():
    runs = read_runs()
    seeds = {run["seed"] for run in runs}
    assert len(seeds) >= 5
    assert {(run["model"], run["seed"]) for run in runs} == {(m, s) for m in RIVALS for s in seeds}
    assert len(runs) == len(RIVALS) * len(seeds)
    sizes = [run["parameters"] for run in runs]
    assert max(sizes) < 1.1 * min(sizes)
    for run in runs:
        shares = [run[group] for group in GROUPS]
        assert all(0 <= share <= 1 for share in shares)
        assert min(shares) <= run["all"] <= max(shares)


def test_a_rival_gives_every_column_and_the_same_numbers_for_the_same_seed():
    pairs = translation_splits(seed=7, train=120, test=40)
    french = Vocabulary(pair.source for pair in pairs["train"])
    english = Vocabulary(pair.target for pair in pairs["train"])
    name = "looking back"
    first, again, other = (climb(name, pairs, french, english, seed) for seed in (3, 3, 4))
    assert {"model", "seed", "seconds", *first} == set(COLUMNS)
    assert first == again and first["last_loss"] != other["last_loss"]
