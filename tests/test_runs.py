"""Recorded runs: what is written is read again, and a log says where it came from."""

import pytest

from attention_course.data.runs import read_runs, record_runs, recording_options


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "new" / "runs.csv"
    rows = [
        {"name": "first, with a comma", "seed": 0, "score": 0.25},
        {"name": "second", "seed": 1},
    ]
    record_runs(path, ("name", "seed", "score"), rows, about="two runs")
    assert read_runs(path, texts=("name",), whole=("seed",)) == [
        rows[0],
        {"name": "second", "seed": 1, "score": None},
    ]
    log = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    assert "torch" in log[0] and log[1] == "two runs"
    assert log[2] == "name first, with a comma, seed 0, score 0.25"
    assert log[-1].startswith("done after")


def test_rows_are_on_the_disk_while_the_next_one_is_made(tmp_path):
    path = tmp_path / "runs.csv"

    def rows():
        yield {"seed": 0}
        assert read_runs(path, texts=()) == [{"seed": 0.0}]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_runs(path, ("seed",), rows())
    assert read_runs(path, texts=()) == [{"seed": 0.0}]


def test_a_value_without_a_column_and_a_missing_record_are_named(tmp_path):
    with pytest.raises(ValueError, match="score"):
        record_runs(tmp_path / "runs.csv", ("seed",), [{"seed": 0, "score": 1.0}])
    with pytest.raises(ValueError, match=r"absent\.csv"):
        read_runs(tmp_path / "absent.csv", texts=())


def test_a_script_records_what_is_asked_for_and_all_of_it_if_nothing_is(monkeypatch, capsys):
    def names(*arguments):
        monkeypatch.setattr("sys.argv", ["script.py", *arguments])
        return recording_options("records", ("short", "long")).names

    assert names() == names("--try") == ["short", "long"]
    assert names("long") == ["long"]
    with pytest.raises(SystemExit):
        names("longer")
    assert "there is no longer; there are short, long" in capsys.readouterr().err
