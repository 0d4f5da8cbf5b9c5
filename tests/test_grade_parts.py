"""The small parts of `autograder grade`: its record, its progress, its table, its Ctrl+C."""

import signal

import pytest

from autograder.classrun import command
from autograder.classrun.job import Result
from autograder.classrun.progress import Progress, Row, duration, table
from autograder.classrun.record import Record, submission_key
from autograder.grading.status import Status

CHAPTER = "01_shapes"

# --- the record ----------------------------------------------------------------------------------


def test_a_key_follows_the_files_and_nothing_else(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "sub").mkdir(parents=True)
        (folder / "a.ipynb").write_text("{}")
        (folder / "sub" / "link").symlink_to("/nowhere")
    assert submission_key(one, "x") == submission_key(two, "x")
    keys = {submission_key(one, "x"), submission_key(one, "y")}
    (one / "a.ipynb").write_text("{} ")
    keys.add(submission_key(one, "x"))
    (one / "a.ipynb").rename(one / "b.ipynb")
    keys.add(submission_key(one, "x"))
    assert len(keys) == 4


@pytest.mark.parametrize("text", [None, "", "[]", '{"ada": 3}', "{"])
def test_a_damaged_record_is_an_empty_one(tmp_path, text):
    record = Record.open(tmp_path, CHAPTER)
    record.keep("ada", "key", Status("repaired", ("a note",)))
    assert Record.open(tmp_path, CHAPTER).status("ada", "key") == Status("repaired", ("a note",))
    assert Record.open(tmp_path, CHAPTER).status("ada", "another") is None
    record.path.unlink() if text is None else record.path.write_text(text)
    assert Record.open(tmp_path, CHAPTER).status("ada", "key") is None


# --- words ---------------------------------------------------------------------------------------


def test_progress_and_table_are_plain_text(capsys):
    result = Result("ada", {}, {}, {}, Status("graded"), {"check-x": 2.5})
    progress = Progress(2)
    progress.advance("ada", "graded", result)
    progress.advance("\x1b[2Jbo\n\udc80", "could not run", None)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("1 of 2  ada: graded; about ")
    assert first.endswith("slowest cell check-x of ada (2.5 s)")
    assert second.startswith("2 of 2  ?[2Jbo??: could not run; slowest")
    rows = [Row("ada", 3, 4, "graded"), Row("bo", None, None, "could not run", "why " * 40)]
    lines = table(rows).splitlines()
    assert lines[1] == f"ada      {'3 of 4':>11}  graded"
    assert lines[2].startswith(f"bo       {'-':>11}  could not run: why why")
    assert lines[2].endswith("why  …") and len(lines[2]) < 120
    assert [duration(s) for s in (4, 89, 120, 9000)] == ["4 s", "89 s", "2 min", "2.5 h"]


def test_ctrl_c_waits_until_a_result_is_written():
    written = []
    with pytest.raises(KeyboardInterrupt), command.uninterrupted():
        signal.raise_signal(signal.SIGINT)
        written.append("all")
    assert written == ["all"]
