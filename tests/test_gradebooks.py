"""nbgrader's preprocessors with one look into the gradebook; what the warm process imports."""

import copy
import json
import os

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.nbgraderformat import ValidationError

from autograder.build import put_tools_on_path
from autograder.grading.gradebooks import CheckCellMetadata, KnownCells, Rows, opened_rows
from autograder.kernels import warm
from autograder.kernels.warm import imported_modules, warm_up

CHECK = {"grade_id": "check-a", "grade": True, "solution": False, "locked": True, "points": 2}
ANSWER = {"grade_id": "a", "grade": False, "solution": True, "locked": False}
COMMON = {"schema_version": 3, "task": False, "cell_type": "code"}


class Exporter:
    """Stands for the exporter of one run."""


def notebook(*metas):
    cells = [new_code_cell("1", metadata={"nbgrader": {**COMMON, **meta}}) for meta in metas]
    return new_notebook(cells=cells)


def test_metadata_that_was_right_once_does_not_vouch_for_others():
    check, right = CheckCellMetadata(), notebook(ANSWER, CHECK)
    for _ in range(2):
        check.preprocess(copy.deepcopy(right), {})
    twice = notebook(ANSWER, CHECK, CHECK)
    worthless = notebook(ANSWER, {k: v for k, v in CHECK.items() if k != "points"})
    for wrong in (twice, worthless, twice):
        with pytest.raises(ValidationError):
            check.preprocess(wrong, {})


@pytest.fixture
def info(tmp_path):
    """A gradebook with one assignment and one student's submission."""
    put_tools_on_path()
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    with Gradebook(url) as gradebook:
        gradebook.add_assignment("one")
        gradebook.add_notebook("n", "one")
        gradebook.add_grade_cell("check-a", "n", "one", max_score=2, cell_type="code")
        gradebook.add_solution_cell("a", "n", "one")
        gradebook.add_student("ada")
        gradebook.add_submission("one", "ada")
    return {"db_url": url, "notebook": "n", "assignment": "one", "student": "ada"}


def score(info):
    with Gradebook(info["db_url"]) as gradebook:
        return gradebook.find_grade("check-a", "n", "one", "ada").auto_score


def test_rows_are_kept_when_the_block_ends_well_and_only_then(info):
    exporter = Exporter()
    with opened_rows(exporter, info) as rows:
        rows.find_grade("check-a").auto_score = 1.5
        assert set(rows.comments) == {"a"}
    assert score(info) == 1.5
    with pytest.raises(ZeroDivisionError), opened_rows(exporter, info) as rows:
        rows.find_grade("check-a").auto_score = 0
        raise ZeroDivisionError
    assert score(info) == 1.5
    with opened_rows(exporter, {**info, "student": "nobody"}) as rows:
        assert (rows.grades, rows.comments) == ({}, {})


def test_blank_rows_have_what_a_gradebook_would_have(info):
    with Gradebook(info["db_url"]) as gradebook:
        known = KnownCells.of(gradebook.find_notebook("n", "one"))
    rows = Rows.blank(known)
    assert (set(rows.grades), set(rows.comments)) == ({"check-a"}, {"a"})
    assert known.find_graded_cell("check-a").max_score == 2
    for look in (known.find_source_cell, known.find_graded_cell, rows.find_grade):
        with pytest.raises(MissingEntry, match="no_such_cell"):
            look("no_such_cell")


def test_the_warm_process_imports_what_notebooks_import():
    sources = [
        "import numpy as np, os.path\nfrom attention_course import check",
        "def f():\n    from torch.nn import functional\n    return functional",
        "%matplotlib inline\nimport left_out",
        "from . import here",
        "# import commented",
    ]
    assert imported_modules(sources) == ("attention_course", "numpy", "os.path", "torch.nn")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("plain.ipynb", "import numpy", ("numpy",)),
        ("asks.ipynb", "x = 1\\nfrom torch import nn", ("numpy", "torch")),
        ("words.ipynb", "torch is imported later", ("numpy",)),
    ],
)
def test_a_submission_alone_can_ask_for_what_takes_long(
    tmp_path, monkeypatch, name, text, expected
):
    started = []
    monkeypatch.setattr(warm, "use_sandbox", lambda: True)
    monkeypatch.setattr(warm.Shared, "start", started.append)
    source, folder = tmp_path / "source", tmp_path / "ada"
    source.mkdir()
    folder.mkdir()
    cells = [{"cell_type": "code", "source": ["import numpy"]}, {"cell_type": "raw", "source": ""}]
    (source / "one.ipynb").write_text(json.dumps({"cells": cells}))
    (folder / name).write_text(text)
    os.mkfifo(folder / "pipe.ipynb")  # would hang whoever opens it
    (folder / "broken.ipynb").symlink_to("/nowhere")
    warm_up(source, [folder])
    assert started == [expected]
