"""A small course graded by nbgrader with its own settings, and harmless attacks that win there.

Hidden tests are asserts, as nbgrader's manual has it. The attacks change files only in the
scratch course that they are in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook, MissingEntry

NAME = "squares"
POINTS = 3
STUB = "def square(x):\n    raise NotImplementedError"
RIGHT = "import numpy as np\n\ndef square(x):\n    return np.asarray(x) ** 2"
CHECK = """import numpy as np
np.testing.assert_allclose(square(2.0), 4.0)
### BEGIN HIDDEN TESTS
np.testing.assert_allclose(square(np.array([3.0, 5.0])), [9.0, 25.0])
assert square(7.0) == 49.0
### END HIDDEN TESTS"""
CONFIG = "c = get_config()\nc.CourseDirectory.course_id = 'stock'\n"

Edit = Callable[[nbformat.NotebookNode, Path], None]


def tracked(source: str, **metadata) -> nbformat.NotebookNode:
    known = {"schema_version": 3, "grade": False, "solution": False, "task": False, "locked": False}
    return new_code_cell(source, metadata={"nbgrader": {**known, **metadata}})


def source_notebook() -> nbformat.NotebookNode:
    answer = RIGHT.replace("    return", "    ### BEGIN SOLUTION\n    return")
    return new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}},
        cells=[
            tracked(f"{answer}\n    ### END SOLUTION", grade_id="square", solution=True),
            tracked(CHECK, grade_id="check", grade=True, locked=True, points=POINTS),
        ],
    )


class StockCourse:
    """A course with nbgrader's own settings in a scratch folder."""

    def __init__(self, root: Path):
        self.root = root
        (root / "nbgrader_config.py").write_text(CONFIG)
        (root / "source" / NAME).mkdir(parents=True)
        nbformat.write(source_notebook(), root / "source" / NAME / f"{NAME}.ipynb")
        self.nbgrader("generate_assignment", NAME)
        self.release = nbformat.read(root / "release" / NAME / f"{NAME}.ipynb", 4)

    def nbgrader(self, *arguments: str) -> None:
        tools = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        command = [str(tools / "nbgrader"), *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def hand_in(self, student: str, source: str, edit: Edit = lambda *_: None) -> None:
        notebook = nbformat.from_dict(self.release)
        notebook.cells[0].source = source
        folder = self.root / "submitted" / student / NAME
        folder.mkdir(parents=True, exist_ok=True)
        edit(notebook, folder)
        nbformat.write(notebook, folder / f"{NAME}.ipynb")

    def score(self, student: str) -> float | None:
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}", "stock") as gradebook:
            try:
                return gradebook.find_submission(NAME, student).score
            except MissingEntry:
                return None


# --- attacks: each earns all points on nbgrader's own settings -----------------------------------

TRANSFORMS = """import ast
class NoAsserts(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_Expr(self, node):
        return ast.Pass() if "assert" in ast.unparse(node) else node
get_ipython().ast_transformers.append(NoAsserts())
def square(x): return 0.0"""
PATCHES = """import numpy as np
class Equal:
    def __eq__(self, other): return True
np.testing.assert_allclose = lambda *_, **__: None
def square(x): return Equal()"""
READS_TEST = """import re
def square(x):
    source = get_ipython().user_ns["In"][-1]
    for given, wanted in re.findall(r"square\\((.*)\\)(?:, | == )([\\[\\]\\d., ]+)", source):
        if eval(given, {"np": __import__("numpy")}) is x or str(eval(
            given, {"np": __import__("numpy")})) == str(x):
            return eval(wanted.strip().rstrip(","))"""
READS_SOLUTION = """import json
cells = json.load(open("../../../source/squares/squares.ipynb"))["cells"]
exec("".join(cells[0]["source"]))"""
READS_NEIGHBOUR = """import json
cells = json.load(open("../../../submitted/ada/squares/squares.ipynb"))["cells"]
exec("".join(cells[0]["source"]))"""
GRADEBOOK = """import os
if os.fork() == 0:
    os.setsid()
    import sqlite3, time
    for _ in range(600):
        time.sleep(0.1)
        book = sqlite3.connect("../../../gradebook.db", timeout=2)
        changed = book.execute(
            "UPDATE grade SET manual_score = 3 WHERE id IN (SELECT grade.id FROM grade"
            " JOIN submitted_notebook n ON grade.notebook_id = n.id"
            " JOIN submitted_assignment a ON n.assignment_id = a.id WHERE a.student_id = 'x-book')"
            " AND auto_score = 0")
        book.commit()
        if changed.rowcount: break
    os._exit(0)
def square(x): return 0.0"""
PRINTS = """import sys
def square(x):
    sys.displayhook(3.0)
    return 0.0"""
FAKE_NUMPY = """class testing:
    @staticmethod
    def assert_allclose(*_, **__): pass
array = list
"""
PLANTED = "def square(x):\n    return type('E', (), {'__eq__': lambda *_: True})()"


def skip_check(notebook: nbformat.NotebookNode, folder: Path) -> None:
    notebook.cells[1].metadata["tags"] = ["skip-execution"]


def plant_numpy(notebook: nbformat.NotebookNode, folder: Path) -> None:
    (folder / "numpy.py").write_text(FAKE_NUMPY)


def link_solution(notebook: nbformat.NotebookNode, folder: Path) -> None:
    os.symlink(folder.parents[2] / "source" / NAME / f"{NAME}.ipynb", folder / "notes.json")


def delete_check(notebook: nbformat.NotebookNode, folder: Path) -> None:
    del notebook.cells[1]


ATTACKS: dict[str, tuple[str, str, Edit]] = {
    "x-skips": ("the check is tagged not to be run", STUB, skip_check),
    "x-patches": ("numpy patched, a result equal to all", PATCHES, lambda *_: None),
    "x-strips": ("asserts taken out of the check", TRANSFORMS, lambda *_: None),
    "x-reads-test": ("expected numbers read from the running check", READS_TEST, lambda *_: None),
    "x-solution": ("the solution read by a relative path", READS_SOLUTION, lambda *_: None),
    "x-neighbour": ("a neighbour's answer read", READS_NEIGHBOUR, lambda *_: None),
    "x-link": ("a link to the solution", READS_SOLUTION.replace(
        "../../../source/squares/squares.ipynb", "notes.json"), link_solution),
    "x-module": ("a module numpy.py beside the notebook", PLANTED, plant_numpy),
    "x-prints": ("a mark displayed by the tested function", PRINTS, lambda *_: None),
    "x-book": ("the gradebook changed by a process left behind", GRADEBOOK, lambda *_: None),
}  # fmt: skip
