import json
import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.intake.staging import LARGEST_FILE, stage, submission_folders


def tracked(source, **metadata):
    return new_code_cell(source, metadata={"nbgrader": metadata})


SOURCE = new_notebook(
    cells=[
        tracked("def f(x): pass", grade_id="f", solution=True, grade=False),
        tracked('check("f", f)', grade_id="check-f", solution=False, grade=True),
    ]
)
GOOD = nbformat.writes(SOURCE)
OLD_CELL = {"cell_type": "code", "input": ["def f(x):\n", "    return x"], "outputs": []}
V3 = json.dumps(
    {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [{"cells": [OLD_CELL]}],
    }
)


@pytest.fixture
def submission(tmp_path):
    folder = tmp_path / "submitted" / "ada" / "01"
    folder.mkdir(parents=True)
    return folder


def run(submission):
    target = submission.parents[2] / "clean"
    notes = stage(submission, target, {"01": SOURCE})["01"]
    notebook = nbformat.read(target / "01.ipynb", as_version=4)
    nbformat.validate(notebook)
    return notes, notebook, target


def test_a_good_notebook_goes_through_without_a_note(submission):
    (submission / "01.ipynb").write_text(GOOD)
    notes, notebook, _ = run(submission)
    assert (notes.repairs, notes.could_not_run) == ([], "")
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in SOURCE.cells]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is empty"),
        (b"   \n", "is empty"),
        (GOOD[: len(GOOD) // 2].encode(), "cut off or damaged"),
        (b"<<<<<<< HEAD\n" + GOOD.encode(), "conflict markers"),
        (b"[]", "no notebook"),
        (b'"text"', "no notebook"),
        (b'{"nbformat": 4}', "no notebook"),
        (b"[" * 100_000, "cut off or damaged"),
        (bytes(range(256)), "cut off or damaged"),
    ],
)
def test_what_cannot_be_read_is_reported_with_the_reason(submission, raw, words):
    (submission / "01.ipynb").write_bytes(raw)
    notes, notebook, _ = run(submission)
    assert words in notes.could_not_run
    assert notebook.cells == []


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\xef\xbb\xbf" + GOOD.encode(), "byte order mark"),
        (GOOD.encode("utf-16"), "UTF-16"),
        (GOOD.replace("pass", "'\u00e9'").replace("\\u00e9", "\u00e9").encode("latin-1"), "UTF-8"),
        (V3.encode(), "format 3.0"),
        (GOOD.replace('"nbformat_minor": 5', '"nbformat_minor": 9').encode(), "format 4.9"),
        (GOOD.replace('"nbformat_minor": 5', '"nbformat_minor": 2').encode(), "format 4.2"),
    ],
)
def test_what_can_be_read_is_read(submission, raw, words):
    (submission / "01.ipynb").write_bytes(raw)
    notes, notebook, _ = run(submission)
    assert notes.could_not_run == ""
    assert words in " ".join(notes.repairs)
    assert "def f(x)" in notebook.cells[0].source


BROKEN_CELLS = [
    None,
    7,
    {},
    {"cell_type": "heading", "source": "old"},
    {"cell_type": "code"},
    {"cell_type": "code", "source": 5, "metadata": []},
    {"cell_type": "code", "source": ["a", 1], "id": "same"},
    {"cell_type": "markdown", "source": "b", "id": "same", "attachments": {"x": 1}},
    {"cell_type": "code", "source": "c", "id": "not valid!", "outputs": "none"},
]


def test_broken_cells_do_no_harm(submission):
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": [], "cells": BROKEN_CELLS}
    (submission / "01.ipynb").write_text(json.dumps(document))
    notes, notebook, _ = run(submission)
    assert notes.could_not_run == ""
    assert [cell.source for cell in notebook.cells] == ["", "", "a", "b", "c"]


def test_outputs_and_metadata_of_the_submission_stay_behind(submission):
    notebook = nbformat.reads(GOOD, as_version=4)
    notebook.metadata["attention_course"] = {"could_not_run": "forged", "seed": "1"}
    notebook.cells[1].outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="x" * 1_000_000)
    ]
    (submission / "01.ipynb").write_text(nbformat.writes(notebook))
    notes, clean, target = run(submission)
    assert notes.could_not_run == ""
    assert clean.cells[1].outputs == []
    assert set(clean.metadata.attention_course) == {"repairs", "could_not_run"}
    assert (target / "01.ipynb").stat().st_size < 5_000


@pytest.mark.parametrize("name", ["01 (1).ipynb", "copy-of-01.ipynb", "Notebook.ipynb"])
def test_a_renamed_notebook_is_recognised(submission, name):
    (submission / name).write_text(GOOD)
    notes, notebook, _ = run(submission)
    assert notes.repairs == [f"`{name}` was recognised as `01.ipynb`."]
    assert notebook.cells


def test_the_right_name_wins_and_strangers_are_ignored(submission):
    (submission / "01.ipynb").write_text(GOOD)
    (submission / "other.ipynb").write_text(GOOD.replace("pass", "return 1"))
    (submission / ".ipynb_checkpoints").mkdir()
    (submission / ".ipynb_checkpoints" / "01-checkpoint.ipynb").write_text("{")
    notes, notebook, target = run(submission)
    assert notes.repairs == []
    assert "pass" in notebook.cells[0].source
    assert [path.name for path in target.iterdir()] == ["01.ipynb"]


def test_no_notebook_at_all(submission):
    (submission / "answer.txt").write_text("here")
    notes, _, _ = run(submission)
    assert "there is no `01.ipynb`" in notes.could_not_run


def test_links_devices_and_huge_files_stay_behind(submission, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "gradebook.db").write_text("precious")
    (submission / "01.ipynb").write_text(GOOD)
    (submission / "notes.txt").symlink_to(secret / "gradebook.db")
    (submission / "folder").symlink_to(secret)
    os.mkfifo(submission / "pipe")
    with open(submission / "film.mp4", "wb") as file:
        file.truncate(LARGEST_FILE + 1)
    (submission / "data").mkdir()
    (submission / "data" / "x.csv").write_text("1")
    notes, _, target = run(submission)
    files = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert files == ["01.ipynb", "data/x.csv"]
    assert len(notes.repairs) == 4


def test_a_notebook_that_is_a_link_is_not_followed(submission, tmp_path):
    (tmp_path / "solution.ipynb").write_text(GOOD)
    (submission / "01.ipynb").symlink_to(tmp_path / "solution.ipynb")
    notes, notebook, _ = run(submission)
    assert "link" in notes.repairs[0]
    assert notes.could_not_run
    assert notebook.cells == []


@pytest.mark.parametrize("text", ["yesterday evening", "", "2026-99-99", "\0", "9" * 400])
def test_a_timestamp_that_is_no_date_is_left_out(submission, text):
    (submission / "01.ipynb").write_text(GOOD)
    (submission / "timestamp.txt").write_text(text)
    notes, _, target = run(submission)
    assert not (target / "timestamp.txt").exists()
    assert "no date" in notes.repairs[0]


def test_a_good_timestamp_comes_along(submission):
    (submission / "01.ipynb").write_text(GOOD)
    (submission / "timestamp.txt").write_text("2026-11-29 18:00:00 UTC")
    notes, _, target = run(submission)
    assert notes.repairs == []
    assert (target / "timestamp.txt").exists()


def test_student_ids_of_every_shape_are_found(tmp_path):
    names = ["ada", "Zoë d'Été", "[x]", "-dash", "007", "a@b.c", "*", "=1+1"]
    for name in names:
        (tmp_path / name / "01").mkdir(parents=True)
    (tmp_path / "lazy").mkdir()
    assert set(submission_folders(tmp_path, "01", "*")) == set(names)
    for name in names[:-2]:
        assert set(submission_folders(tmp_path, "01", name)) == {name}


def test_folders_that_are_links_are_no_submissions(tmp_path):
    (tmp_path / "ada" / "01").mkdir(parents=True)
    (tmp_path / "bob").symlink_to(tmp_path / "ada")
    (tmp_path / "cid").mkdir()
    (tmp_path / "cid" / "01").symlink_to(tmp_path / "ada" / "01")
    assert set(submission_folders(tmp_path, "01", "*")) == {"ada"}


@pytest.mark.parametrize(
    "metadata",
    [
        {"tags": "todo", "collapsed": "yes", "name": "", "jupyter": 1},
        {"nbgrader": {"grade_id": ["f"], "points": {}}},
        {"deep": json.loads('{"a":' * 900 + "1" + "}" * 900)},
        {"nbgrader": {"grade_id": "\ud800"}},
    ],
)
def test_no_metadata_of_a_cell_does_harm(submission, metadata):
    document = json.loads(GOOD)
    document["cells"][0]["metadata"] = metadata
    (submission / "01.ipynb").write_text(json.dumps(document))
    notes, notebook, _ = run(submission)
    assert notes.could_not_run == ""
    assert set(notebook.cells[0].metadata) <= {"nbgrader"}


def test_text_that_is_no_unicode_is_written_all_the_same(submission):
    document = json.loads(GOOD)
    document["cells"][0]["source"] = "x = '\ud800'"
    (submission / "01.ipynb").write_text(json.dumps(document))
    assert run(submission)[1].cells[0].source == "x = '?'"


def test_a_file_name_that_is_no_unicode(submission):
    name = os.fsencode(submission) + b"/caf\xe9.ipynb"
    with open(name, "w") as file:
        file.write(GOOD)
    notes, notebook, _ = run(submission)
    assert "was recognised" in notes.repairs[0]
    assert notebook.cells


def test_folders_in_the_way_and_folders_without_end(submission):
    (submission / "01.ipynb").mkdir()
    (submission / "01.ipynb" / "x.txt").write_text("x")
    deep = submission
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
    notes, _, _ = run(submission)
    assert "folder with the name of a file" in " ".join(notes.repairs)
    assert "nested more than" in " ".join(notes.repairs)
    assert notes.could_not_run


@pytest.mark.parametrize("cells", ["null", "5", '"x"', "{}", "[[]]"])
def test_old_worksheets_with_anything_for_cells(submission, cells):
    text = V3.replace(json.dumps([OLD_CELL]), cells)
    (submission / "01.ipynb").write_text(text)
    assert run(submission)[1].cells == []


def test_web_pages_stay_behind(submission):
    (submission / "01.ipynb").write_text(GOOD)
    for name in ("x.html", "y.SVG", "z.js", "data.csv"):
        (submission / name).write_text("<script>alert(1)</script>")
    notes, _, target = run(submission)
    assert {path.name for path in target.iterdir()} == {"01.ipynb", "data.csv"}
    assert len(notes.repairs) == 3


def test_pasted_pictures_come_along_and_nothing_else(submission):
    document = json.loads(GOOD)
    document["cells"].append(
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": "![x](attachment:a.png)",
            "attachments": {
                "a.png": {"image/png": "aGk="},
                "b.svg": {"image/svg+xml": "<svg onload=alert(1)>"},
                "c.png": {"image/png": "x" * 5_000_000},
                "d.png": ["aGk="],
            },
        }
    )
    (submission / "01.ipynb").write_text(json.dumps(document))
    assert run(submission)[1].cells[-1].attachments == {"a.png": {"image/png": "aGk="}}


def test_a_hard_link_stays_behind(submission, tmp_path):
    (tmp_path / "gradebook.db").write_text("precious")
    (submission / "01.ipynb").write_text(GOOD)
    os.link(tmp_path / "gradebook.db", submission / "notes.txt")
    notes, _, target = run(submission)
    assert not (target / "notes.txt").exists()
    assert "second name" in notes.repairs[0]


def test_a_folder_called_like_the_checks_file_is_not_in_the_way(submission):
    (submission / "01.ipynb").write_text(GOOD)
    (submission / "checks.json").mkdir()
    (submission / "checks.json" / "x").write_text("x")
    _, _, target = run(submission)
    assert not (target / "checks.json").exists()
