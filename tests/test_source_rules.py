"""The search of a submission's source: evasions are found, honest answers are left alone."""

import re
import time
from pathlib import Path

import pytest
from corpus.hidden_calls import HIDDEN
from corpus.honest_code import HONEST

import attention_course
from attention_course.source_rules import words
from attention_course.source_rules.notebook import Notebook, imported
from attention_course.source_rules.rules import search
from attention_course.source_rules.units import Cell, read_cell

COURSE = Path(attention_course.__file__).parent
SOLUTIONS = COURSE.parent / "solutions"
FORBIDDEN = {
    "broadcast_shape": ("numpy.*", "scipy.*", "torch.*", "numpy.broadcast_shapes"),
    "softmax": ("*softmax*",),
    "attention_backward": ("torch.*",),
    "einsum": ("numpy.einsum", "torch.Tensor.norm"),
}
GIVEN = (
    "import numpy as np\nfrom attention_course import check, example",
    "import matplotlib.pyplot as plt",
    "import torch",
    "def reference_of_the_course(scores):\n    return torch.softmax(scores, -1)",
)


def findings(exercise, cells, files=None):
    sources = [Cell(f"cell {n}", text, own=False) for n, text in enumerate(GIVEN, 1)]
    for number, text in enumerate(cells, len(GIVEN) + 1):
        sources.append(Cell(f"cell {number}", text))
    notebook = Notebook.read(sources, files)
    return search(notebook, ("check", exercise), FORBIDDEN[exercise])


@pytest.mark.parametrize("entry", HIDDEN, ids=lambda entry: entry.name)
def test_a_hidden_call_is_found(entry):
    found = findings(entry.exercise, entry.cells, entry.files)
    assert found, "nothing is found"
    assert entry.named in " ".join(finding.sentence for finding in found)


@pytest.mark.parametrize("entry", HONEST, ids=lambda entry: entry.name)
def test_an_honest_answer_is_left_alone(entry):
    assert [f.sentence for f in findings(entry.exercise, entry.cells, entry.files)] == []


def test_a_finding_says_what_and_where():
    answer = "def softmax(s):\n    y = s\n    return torch.softmax(y)"
    (finding,) = findings("softmax", ["x = 1", answer])
    assert finding.sentence == (
        "Your code uses `torch.softmax`, which this exercise asks you to do without "
        "(cell 6, line 3)."
    )


def test_where_nothing_is_forbidden_nothing_is_searched():
    notebook = Notebook.read([Cell("cell 1", "exec('x')")])
    assert search(notebook, ("check", "softmax"), ()) == []


LARGE = {  # texts of about 100 kB, where growth is what matters
    "statements": "x = 1\n" * 16_000,
    "one name": "x.append(x)\n" * 8_000,
    "one line": "x = [" + "1, " * 33_000 + "]",
    "a sum": "x = " + "1 + " * 5_000 + "1",
    "nested": "x = " + "(" * 150 + ")" * 150,
    "calls": "x = f" + "()" * 900,
    "attributes": "x = a" + ".b" * 3_000,
    "no Python": "a b c\n" * 30_000,
    "open brackets": "(" * 200_000,
    "functions": "def f(): return f()\n" * 5_000,
    "magics": "%cd x\n" * 300,
}
ANSWER = "def softmax(s):\n    return torch.softmax(s) + x"


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_a_large_source_hides_nothing(text):
    assert any(f.what == "torch.softmax" for f in findings("softmax", [text, ANSWER]))


@pytest.mark.slow
def test_a_source_of_a_megabyte_does_not_hang_the_search():
    text = LARGE["functions"] * 10
    before = time.process_time()
    assert any(f.what == "torch.softmax" for f in findings("softmax", [text, ANSWER]))
    assert time.process_time() - before < 300  # seconds instead of hours


def test_more_than_a_student_writes_is_not_read():
    found = findings("softmax", ["y = '" + "x" * 3_000_000 + "'", "def softmax(s):\n    return s"])
    assert [f.what for f in found] == ["a cell too large to be read"]


def imported_by(module, seen):
    """Collect the parts of the course that a part of it imports, and so on."""
    path = COURSE / f"{module}.py"
    for source in [path] if path.is_file() else (COURSE / module).glob("*.py"):
        (unit,) = read_cell(Cell("", source.read_text("utf-8"), module=module))
        names = {n.split(".")[1] for n in imported(unit) if n.startswith("attention_course.")}
        for part in names - seen:
            seen.add(part)
            imported_by(part, seen)
    return seen


def test_what_checks_are_made_of_is_inside_and_what_notebooks_import_is_not():
    assert imported_by("checking", {"checking"}) == words.COURSE_INSIDE
    masters = "".join(path.read_text("utf-8") for path in SOLUTIONS.glob("*.py"))
    assert not set(re.findall(r"from attention_course\.(\w+)", masters)) & words.COURSE_INSIDE
