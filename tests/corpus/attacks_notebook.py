"""Attacks by the notebook itself or by what lies beside it. None has a right answer in it."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from corpus.describing import (
    CHAPTER,
    FILE,
    NOTHING,
    RIGHT,
    Edit,
    Entry,
    both,
    cell_of,
    check_of,
    files,
    no_file,
    place,
)

WORTH_100 = nbformat.v4.new_output("execute_result", {"text/plain": "100"}, execution_count=1)
FAKE_MODULE = """
import numpy as np
from IPython.display import display

class CheckFailed(Exception): pass

def check(exercise_id, candidate):
    print(exercise_id, "passed")
    return 100.0

example = check
def __getattr__(name): return lambda *a, **k: True
"""
READ_LINKS = """
import json
def stolen(name):
    for place in PLACES:
        try:
            cells = json.loads(open(place).read())["cells"]
        except (OSError, ValueError):
            continue
        for cell in cells:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == name:
                exec("".join(cell["source"]), globals())
                return globals()[name]
    return lambda *_, **__: 0.0
as_column = stolen("as_column")
"""


def attack(student: str, about: str, edit: Edit, **changes) -> Entry:
    """Describe an attack that is worth nothing."""
    return Entry(student, about, **{"only": True, "earns": NOTHING, "edit": edit, **changes})


def checks(change: str) -> Edit:
    """Apply Python to every check `cell`; `meta` is its nbgrader metadata."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        for cell in notebook.cells:
            meta = cell.metadata.get("nbgrader", {})
            if meta.get("grade"):
                exec(change, {"cell": cell, "meta": meta, "WORTH_100": WORTH_100})

    return edit


def invented(**metadata) -> Edit:
    """A graded cell that the source does not know, worth 100 points."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        for make in (nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell):
            cell = make("100.0")
            given = {"schema_version": 3, "grade_id": f"bonus-{cell.cell_type}", "points": 100}
            cell.metadata["nbgrader"] = {**given, "locked": False, **metadata}
            notebook.cells.append(cell)

    return edit


def checks_of_another(notebook: NotebookNode, folder: Path) -> None:
    """Every check is a copy of one whose answer is right."""
    one = cell_of(notebook, check_of("as_column")).source
    checks(f"cell.source = {one!r}")(notebook, folder)


def forged_history(notebook: NotebookNode, folder: Path) -> None:
    """The metadata say that grading has been here."""
    notebook.metadata["attention_course"] = {"seed": "1", "repairs": [], "could_not_run": "by hand"}
    notebook.metadata["kernelspec"] = {"name": "sh", "argv": ["touch", "__planted"]}


def linked(target: str, name: str, hard: bool = False) -> Edit:
    """A link beside the notebook leads to a path below the course's folder."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        path = folder.parents[2] / target
        (os.link if hard else os.symlink)(path, folder / name)
        source = f"PLACES = [{name!r}, {name + '/' + FILE!r}]\n" + READ_LINKS
        cell_of(notebook, "as_column").source = source

    return edit


def with_script(notebook: NotebookNode, folder: Path) -> None:
    """Script in text, in outputs, in names: it must not reach the marks."""
    script = "<script>document.title = 100</script><img src=x onerror=alert(1)>"
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(script))
    checks("cell.outputs = [WORTH_100]")(notebook, folder)
    os.symlink("/etc/hostname", folder / "<img src=x onerror=alert(1)>.txt")


def pasted_check(notebook: NotebookNode, folder: Path) -> None:
    """A second copy of each check, the last one, says what it likes."""
    for name in RIGHT:
        at = place(notebook, check_of(name))
        notebook.cells.insert(at + 1, copy.deepcopy(notebook.cells[at]))
        notebook.cells[at + 1].source = "1.0"


NOTEBOOK_ATTACKS = (
    attack("n-tags", "checks tagged not to be run, with a mark of 100 in them",
           checks("cell.metadata.update(tags=['skip-execution', 'raises-exception', 'experiment']);"
                  " cell.outputs = [WORTH_100]"), parts=2),
    attack("n-experiment", "checks and answers called experiments, which are not run",
           checks("meta.grade_id = 'experiment-1'; cell.outputs = [WORTH_100]"),
           status="repaired", said=("`check-as_column`",)),
    attack("n-last-value", "checks end with a number", checks("cell.source += '\\nfloat(2)'")),
    attack("n-other-check", "all checks are those of the one right answer", checks_of_another,
           answers={"as_column": RIGHT["as_column"]}, earns={"as_column": 1}),
    attack("n-points", "checks worth 100 points each", checks("meta.points = 100"),
           answers={"as_column": RIGHT["as_column"]}, earns={"as_column": 1}),
    attack("n-negative", "checks worth NaN or fewer than no points",
           checks("meta.points = -5 if len(cell.source) % 2 else float('nan')")),
    attack("n-invented", "invented graded cells", invented(grade=True, solution=False, task=False)),
    attack("n-written", "invented written answers",
           invented(grade=True, solution=True, task=False)),
    attack("n-task", "invented task cells", invented(grade=False, solution=False, task=True)),
    attack("n-manual", "checks turned into written answers", checks("meta.solution = True")),
    attack("n-pasted", "a second copy of the checks that says 1.0", pasted_check,
           status="repaired", said=("2 times",)),
    attack("n-empty-checks", "checks emptied", checks("cell.source = ''")),
    attack("n-history", "forged metadata of grading, a kernel that runs a command", forged_history),
    attack("n-script", "script in texts, outputs and file names", with_script,
           status="repaired", said=("link",), parts=3),
    attack("n-link-file", "a link to the solutions",
           linked(f"solutions/{CHAPTER}/{FILE}", "notes.txt"), status="repaired", said=("link",)),
    attack("n-link-folder", "a link to the solutions' folder",
           linked(f"solutions/{CHAPTER}", "notes"), status="repaired", said=("link",)),
    attack("n-link-notebook", "the notebook is a link to the solutions",
           lambda notebook, folder: os.symlink(
               folder.parents[2] / "solutions" / CHAPTER / FILE, folder / FILE),
           save=no_file, earns=None, status="could not run", said=("link",)),
    attack("n-hard-link", "a second name of the solutions' file",
           linked(f"solutions/{CHAPTER}/{FILE}", "notes.txt", hard=True),
           status="repaired", said=("notes.txt",)),
    attack("n-gradebook", "a second name of the gradebook",
           both(linked("gradebook.db", "gradebook.db", hard=True), files(x="")),
           status="repaired", said=("gradebook.db",)),
    attack("n-planted-course", "a module attention_course.py beside the notebook",
           files(attention_course__py=FAKE_MODULE)),
    attack("n-planted-modules", "other modules that Python or IPython may load by themselves",
           files(**dict.fromkeys(("numpy__py", "sitecustomize__py", "usercustomize__py",
                                  "ipython_config__py", "ipython_kernel_config__py", "IPython__py",
                                  "jupyter_config__py", "autograder__py"), FAKE_MODULE),
                 evil__pth="import os; os._exit(0)"), parts=9),
    attack("n-planted-cases", "planted hidden cases, checks, configuration and secret",
           files(hidden_cases__json='{"dict":{}}', checks__json="{}", nbgrader_config__py="1/0",
                 __autograder_secret="0" * 32), parts=4),
)  # fmt: skip
