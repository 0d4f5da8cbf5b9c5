import copy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.intake.cells import put_in_order
from autograder.masters import grade_id


def tracked(cell, **metadata):
    cell.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        **metadata,
    }
    return cell


@pytest.fixture
def source():
    cells = [
        new_markdown_cell("# Title", id="title"),
        tracked(new_code_cell("1", id="exp"), grade_id="experiment-1", locked=True),
        tracked(new_code_cell("def f(x): pass", id="a-f"), grade_id="f", solution=True),
        tracked(
            new_code_cell('check("f", f)', id="c-f"),
            grade_id="check-f",
            grade=True,
            locked=True,
            points=3,
        ),
        tracked(
            new_markdown_cell("Why?", id="why"), grade_id="why", grade=True, solution=True, points=2
        ),
    ]
    return new_notebook(cells=cells)


@pytest.fixture
def submitted(source):
    notebook = copy.deepcopy(source)
    notebook.cells[2].source = "def f(x):\n    return x"
    notebook.cells[4].source = "Because."
    return notebook


def ids(notebook):
    return [grade_id(cell) for cell in notebook.cells]


def test_an_ordinary_submission_is_left_as_it_is(source, submitted):
    before = [cell.source for cell in submitted.cells]
    assert put_in_order(submitted, source) == []
    assert [cell.source for cell in submitted.cells] == before
    assert ids(submitted) == ids(source)


def test_of_two_answers_the_last_counts_and_both_are_kept(source, submitted):
    submitted.cells.insert(3, copy.deepcopy(submitted.cells[2]))
    notes = put_in_order(submitted, source)
    assert notes == ["The cell `f` was there 2 times; the last copy counts."]
    assert ids(submitted) == ["", "experiment-1", "", "f", "check-f", "why"]


def test_a_split_answer_keeps_both_halves(source, submitted):
    half = copy.deepcopy(submitted.cells[2])
    half.source = "# the second half"
    submitted.cells.insert(3, half)
    put_in_order(submitted, source)
    assert [cell.source for cell in submitted.cells[2:4]] == [
        "def f(x):\n    return x",
        "# the second half",
    ]


def test_a_deleted_check_is_put_back_after_its_answer(source, submitted):
    del submitted.cells[3]
    assert put_in_order(submitted, source) == [
        "The check cell `check-f` was missing and was put back."
    ]
    assert ids(submitted) == ["", "experiment-1", "f", "check-f", "why"]
    assert submitted.cells[3].source == 'check("f", f)'


def test_a_deleted_answer_is_reported_and_its_check_stays(source, submitted):
    del submitted.cells[2]
    assert put_in_order(submitted, source) == ["The answer cell `f` is missing."]
    assert ids(submitted) == ["", "experiment-1", "check-f", "why"]


def test_a_deleted_written_answer_gets_a_cell_to_mark(source, submitted):
    del submitted.cells[4]
    assert put_in_order(submitted, source) == ["The written answer `why` is missing."]
    assert submitted.cells[-1].metadata.nbgrader.points == 2


def test_an_empty_notebook_gets_all_that_is_graded(source):
    empty = new_notebook()
    assert len(put_in_order(empty, source)) == 3
    assert ids(empty) == ["check-f", "why"]


def test_cells_without_any_metadata_are_recognised(source, submitted):
    for cell in submitted.cells:
        cell.metadata = nbformat.from_dict({})
    notes = put_in_order(submitted, source)
    assert len(notes) == 3
    assert all("was recognised" in note for note in notes)
    assert ids(submitted) == ["", "", "f", "check-f", "why"]


def test_cells_with_neither_metadata_nor_ids_are_recognised_by_what_they_say(source, submitted):
    for number, cell in enumerate(submitted.cells):
        cell.metadata = nbformat.from_dict({})
        cell.id = f"other-{number}"
    put_in_order(submitted, source)
    assert ids(submitted) == ["", "", "f", "check-f", "", "why"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"grade_id": "f", "grade": True, "points": 100, "solution": False, "locked": True},
        {"grade_id": "f"},
        {"grade_id": "f", "schema_version": 1, "solution": True},
        {"grade_id": "renamed", "solution": True},
        {"grade_id": 7},
        {"grade_id": None},
        {},
        [],
        "text",
        None,
    ],
)
def test_what_a_cell_says_about_itself_is_not_believed(source, submitted, metadata):
    submitted.cells[2].metadata["nbgrader"] = metadata
    put_in_order(submitted, source)
    assert submitted.cells[2].metadata.nbgrader == source.cells[2].metadata.nbgrader


def test_an_invented_graded_cell_becomes_an_ordinary_one(source, submitted):
    invented = tracked(new_code_cell("100"), grade_id="check-g", grade=True, points=100)
    submitted.cells.append(invented)
    put_in_order(submitted, source)
    assert ids(submitted)[-1] == ""


def test_tags_and_other_metadata_are_dropped(source, submitted):
    for cell in submitted.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]
    put_in_order(submitted, source)
    assert not any("tags" in cell.metadata for cell in submitted.cells)


def test_a_check_turned_into_text_is_code_again(source, submitted):
    submitted.cells[3].cell_type = "markdown"
    del submitted.cells[3]["outputs"]
    del submitted.cells[3]["execution_count"]
    notes = put_in_order(submitted, source)
    assert notes == ["The cell `check-f` had become a markdown cell."]
    assert submitted.cells[3].cell_type == "code"
    nbformat.validate(submitted)


def test_a_written_answer_turned_into_code_is_text_again(source, submitted):
    submitted.cells[4].cell_type = "code"
    submitted.cells[4].outputs = []
    submitted.cells[4].execution_count = None
    put_in_order(submitted, source)
    assert submitted.cells[4].cell_type == "markdown"
    nbformat.validate(submitted)


def test_an_experiment_pasted_over_an_answer_does_not_skip_it(source, submitted):
    submitted.cells[2].metadata["nbgrader"]["grade_id"] = "experiment-1"
    put_in_order(submitted, source)
    assert ids(submitted).count("f") == 1


def test_every_cell_that_nbgrader_knows_gets_the_sources_metadata(source, submitted):
    for cell in submitted.cells:
        if grade_id(cell):
            cell.metadata = nbformat.from_dict({"nbgrader": {"grade_id": grade_id(cell)}})
    put_in_order(submitted, source)
    for cell, original in zip(submitted.cells, source.cells, strict=True):
        assert cell.metadata == original.metadata
