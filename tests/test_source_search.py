"""The search of a submission's source, from notebook to verdict."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from attention_course.source_rules.live import cells_behind, search_live
from attention_course.source_rules.rules import search
from autograder.exercises import chapters, find
from autograder.grading.source_search import SourceSearch, cells_to_read, names_in
from autograder.masters import CHECK_PREFIX, SOLUTIONS, grade_id, master_names

_, SHAPE = find("broadcast_shape")
CASES = SHAPE.make_cases(3)
RIGHT = SHAPE.judge(SHAPE.run(SHAPE.accepted[0], CASES), CASES)


def cell(text, name="", **flags):
    metadata = {"nbgrader": {"grade_id": name, **flags}} if name else {}
    return new_code_cell(text, metadata=metadata)


CHECK = cell('check("broadcast_shape", broadcast_shape)', "check-broadcast_shape", grade=True)
SOURCE = new_notebook(
    cells=[
        cell("import numpy as np\nfrom attention_course import check"),
        cell(
            "def broadcast_shape(first, second):\n    return ...", "broadcast_shape", solution=True
        ),
        CHECK,
        cell("np.broadcast_shapes((1,), (2,))", "experiment-1"),
    ]
)


def verdict(answer, *more, files=None):
    notebook = nbformat.from_dict({**SOURCE, "cells": [*SOURCE.cells]})
    notebook.cells[1] = cell(answer, "broadcast_shape", solution=True)
    notebook.cells += [cell(text) if isinstance(text, str) else text for text in more]
    search = SourceSearch(notebook, SOURCE, files or {})
    return search.judged(RIGHT, SHAPE, CHECK)


def test_the_right_verdict_is_right():
    assert RIGHT.points == SHAPE.points


def test_a_plain_answer_keeps_its_verdict():
    assert verdict("def broadcast_shape(first, second):\n    return first") == RIGHT


def test_a_call_takes_the_points_and_is_named_with_its_place():
    seen = verdict("def broadcast_shape(first, second):\n    return np.broadcast(first)")
    assert (seen.points, seen.status) == (0, "not yet right")
    assert all(group.points == 0 for group in seen.groups)
    assert seen.difference.kind == "forbidden call"
    assert "`numpy.broadcast`" in seen.difference.sentence
    assert "(cell `broadcast_shape`, line 2)" in seen.difference.sentence


def test_many_findings_are_not_all_told():
    lines = "\n".join(f"    np.f{number}()" for number in range(6))
    seen = verdict(f"def broadcast_shape(first, second):\n{lines}")
    assert "There are 3 more" in seen.difference.sentence


def test_an_answer_without_points_keeps_its_own_message():
    wrong = SHAPE.judge(SHAPE.run(lambda first, second: (), CASES), CASES)
    search = SourceSearch(new_notebook(cells=[cell("broadcast_shape = np.add")]), SOURCE, {})
    assert search.judged(wrong, SHAPE, CHECK) is wrong


def test_only_python_files_that_are_imported_are_read():
    files = {"mine.py": b"import numpy as np\ndef f(*x): return np.add(*x)", "b.bin": b"\xff"}
    answer = "def broadcast_shape(first, second):\n    return f(first, second)"
    assert verdict("def f(*x): return x\n" + answer, files=files) == RIGHT
    seen = verdict("from mine import f\n" + answer, files=files)
    assert "(file `mine.py`, line 2)" in seen.difference.sentence


def test_cells_that_are_not_run_or_not_the_students_are_not_theirs():
    notebook = nbformat.from_dict({**SOURCE, "cells": [*SOURCE.cells, new_markdown_cell("np")]})
    notebook.cells.append(cell("mine = 1"))
    cells = cells_to_read(notebook, SOURCE)
    assert [(c.label, c.own) for c in cells] == [
        ("cell 1", False),
        ("cell `broadcast_shape`", True),
        ("cell 6", True),
    ]


@pytest.mark.parametrize("chapter", master_names())
def test_the_courses_own_solutions_are_left_alone(chapter):
    path = SOLUTIONS / chapter / f"{chapter}.ipynb"
    if not path.is_file():
        pytest.skip("not built yet")
    source = nbformat.read(path, 4)
    checks = {grade_id(c).removeprefix(CHECK_PREFIX): c for c in source.cells}
    notebook = SourceSearch(source, source, {})._notebook
    for exercise in chapters()[chapter].values():
        found = search(notebook, names_in(checks[exercise.id]), exercise.forbidden)
        assert [finding.sentence for finding in found] == []


# --- in a running notebook -----------------------------------------------------------------------


@pytest.fixture
def run_cells():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()

    def run(*sources):
        for source in sources:
            shell.run_cell(source, store_history=True).raise_error()
        return shell.user_ns

    return run


ANSWER = "def answer(a):\n    return f(a)"


@pytest.mark.parametrize(
    ("before", "named"),
    [
        ("f = lambda a: np.empty(a)", "numpy.empty"),
        ("from numpy import empty as f", "numpy.empty"),
        ("def g(a): return np.add(a, a)\ndef f(a): return g(a)", "numpy.add"),
        ("class f:\n    def __init__(self, a): np.empty(a)", "numpy.empty"),
    ],
)
def test_a_check_in_the_notebook_says_the_same(run_cells, before, named):
    names = run_cells("import numpy as np", before, ANSWER)
    assert named in [finding.what for finding in search_live(names["answer"], ("numpy.*",))]


def test_a_check_in_the_notebook_leaves_honest_answers_alone(run_cells):
    names = run_cells(
        "import numpy as np\nSCALE = 2",
        "def f(a): return SCALE * a",
        ANSWER + "\nassert answer(3) == np.add(3, 3)",
        "def compare(): return np.allclose(answer(1), np.add(1, 1))",
        "def predict(text): return eval(text)  # a puzzle of the course's own",
        "%timeit -n1 -r1 np.add(1, 1)",
    )
    assert search_live(names["answer"], ("numpy.*",)) == []


@pytest.mark.parametrize("candidate", [None, 3, print, search, CHECK, type("A", (), {})])
def test_what_no_cell_defines_is_not_searched(candidate):
    assert cells_behind(candidate) == []
    assert search_live(candidate, ("numpy.*",)) == []
