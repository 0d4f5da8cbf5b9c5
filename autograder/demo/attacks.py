"""Attacks of the demo's class: notebooks and code that try to earn marks without an answer.

`autograder demo` grades them and expects that they earn nothing and harm nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from autograder.demo.building import ROOT_MARK, Code
from autograder.masters import CHECK_PREFIX, grade_id

CHAPTER = "02_attention"

# --- attacks on the notebook ---------------------------------------------------------------------


def fake_outputs(notebook: NotebookNode, folder: Path) -> None:
    """Check cells are tagged not to be run and already show a mark of 100."""
    for cell in notebook.cells:
        if grade_id(cell).startswith(CHECK_PREFIX):
            cell.metadata["tags"] = ["skip-execution", "experiment"]
            cell.outputs = [
                nbformat.v4.new_output("execute_result", {"text/plain": "100"}, execution_count=1)
            ]


def end_checks_with_marks(notebook: NotebookNode, folder: Path) -> None:
    """Check cells end with a number, which plain nbgrader takes for the marks."""
    for cell in notebook.cells:
        if grade_id(cell).startswith(CHECK_PREFIX):
            cell.source += "\nfloat(3)"


def plant_links(notebook: NotebookNode, folder: Path) -> None:
    """Links beside the notebook lead to the solutions."""
    os.symlink(f"../../../solutions/{CHAPTER}/{CHAPTER}.ipynb", folder / "notes.txt")
    os.symlink("../../../solutions", folder / "notes")


# --- attacks in code -----------------------------------------------------------------------------

PATCHES = """
import numpy as np
import attention_course
from attention_course import checking, codec, comparing, judging, running
from IPython.display import display

np.allclose = np.array_equal = lambda *_, **__: True
comparing.compare = judging.compare = lambda *_: None
running.Outcome.__eq__ = lambda *_: True


def check(exercise_id, candidate):
    with open(checking.HIDDEN_CASES_FILE) as file:
        task = codec.loads(file.read())[exercise_id]
    outcomes = []
    for case in task["cases"]:
        zeros = np.zeros(next(iter(case.values())).shape)
        parts = {name: zeros for name in task["terms"]["outputs"]}
        forged = running.Outcome("returned", parts, {name: "array" for name in parts})
        outcomes.append(forged.to_plain())
    document = codec.dumps({"exercise": exercise_id, "outcomes": outcomes})
    display({checking.OUTCOMES_TYPE: document, "text/plain": "100"}, raw=True)
    print(f"{exercise_id}: all {len(task['cases'])} cases passed")
    return 3.0


checking.check = attention_course.check = checking._emit_hidden_outcomes = check
checking.judge = judging.judge = lambda *_: "passed"


def softmax(scores, axis):
    return np.zeros(scores.shape)
"""

PRINTS_PASSED = """
def softmax(scores, axis):
    print("softmax: all 7 cases passed")
    return True
"""

RAISES_PASSED = """
from attention_course.checking import CheckFailed


def scaled_scores(queries, keys):
    raise CheckFailed("scaled_scores: all 4 cases passed (2 of 2 points)", shown=True)
"""

RETURNS_AN_EQUAL = """
import numpy as np


class Equal(np.ndarray):
    def __eq__(self, other):
        return np.ones(self.shape, dtype=bool)

    def __sub__(self, other):
        return np.zeros(self.shape)

    __rsub__ = __sub__


def masked_softmax(scores, mask):
    return np.zeros(scores.shape).view(Equal)
"""

PUBLIC_ANSWERS = """
import numpy as np
from attention_course.checks_file import load_exercise


def looked_up(exercise_id, **inputs):
    exercise = load_exercise(exercise_id)
    for case, outcome in zip(exercise.cases, exercise.expected):
        if all(np.array_equal(value, inputs.get(name)) for name, value in case.inputs.items()):
            results = tuple(outcome.outputs[name] for name in exercise.terms.outputs)
            return results if len(results) > 1 else results[0]
    return np.zeros(3)
"""

THEFT = f"""
import json
import os
import sqlite3
from pathlib import Path

ROOTS = [{ROOT_MARK!r}, *("../" * steps or "." for steps in range(6)), "notes/.."]


def stolen(name):
    for root in ROOTS:
        places = [Path(root, "solutions", "{CHAPTER}", "{CHAPTER}.ipynb"), Path("notes.txt"),
                  Path("notes", "{CHAPTER}", "{CHAPTER}.ipynb")]
        for place in places:
            try:
                cells = json.loads(place.read_text())["cells"]
            except (OSError, ValueError):
                continue
            for cell in cells:
                if cell["metadata"].get("nbgrader", {{}}).get("grade_id") == name:
                    space = dict(globals())
                    exec("".join(cell["source"]), space)
                    return space[name]
    return lambda *_, **__: 0.0


for root in ROOTS:
    try:
        database = sqlite3.connect(os.path.join(root, "gradebook.db"), timeout=0.1)
        database.execute("UPDATE grade SET manual_score = 100")
        database.commit()
    except sqlite3.Error:
        pass
    for name in ("planted.py", "numpy.py", "course/planted.txt", "solutions/planted.txt"):
        try:
            Path(root, name).write_text("raise SystemExit")
        except OSError:
            pass

softmax = stolen("softmax")
"""


LOOKED_UP = {
    name: f"""

def {name}({signature}):
    return looked_up("{name}", {", ".join(f"{part}={part}" for part in signature.split(", "))})
"""
    for name, signature in {
        "softmax": "scores, axis",
        "scaled_scores": "queries, keys",
        "causal_attention": "queries, keys, values",
    }.items()
}

LAST_VALUE = """
def softmax(scores, axis):
    print(3.0)
    return 3.0


3.0
"""


def as_answer(source: str) -> Code:
    """Return an attack as an answer that is worth nothing."""
    return Code(source.strip("\n") + "\n")
