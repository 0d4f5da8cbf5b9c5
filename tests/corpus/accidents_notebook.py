"""Accidents that happen to the cells of a notebook."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from corpus.describing import (
    FULL,
    RIGHT,
    Edit,
    Entry,
    cell_of,
    check_of,
    place,
    plain_save,
)

WITHOUT_COLUMN = {name: points for name, points in FULL.items() if name != "as_column"}
UNREADABLE = {"earns": None, "status": "could not run"}
REPAIRED = {"status": "repaired"}


# --- cells ---------------------------------------------------------------------------------------


def paste_again(name: str, first_copy: str | None = None) -> Edit:
    """A cell stands there twice; `first_copy` is what the first one says."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        at = place(notebook, name)
        notebook.cells.insert(at, copy.deepcopy(notebook.cells[at]))
        notebook.cells[at].source = first_copy or notebook.cells[at].source

    return edit


def split_answer(notebook: NotebookNode, folder: Path) -> None:
    paste_again("as_column", "def turned(vector):\n    return vector[:, None]")(notebook, folder)
    second = notebook.cells[place(notebook, "as_column") + 1]
    second.source = "def as_column(vector):\n    return turned(vector)"


def merge_answer_and_check(notebook: NotebookNode, folder: Path) -> None:
    answer, check = (cell_of(notebook, name) for name in ("as_column", check_of("as_column")))
    answer.source += "\n\n" + check.source
    notebook.cells.remove(check)


def delete(*names: str) -> Edit:
    def edit(notebook: NotebookNode, folder: Path) -> None:
        for name in names:
            del notebook.cells[place(notebook, name)]

    return edit


def every_cell(change: str) -> Edit:
    """Apply one line of Python to each `cell`; `meta` is its nbgrader metadata, maybe {}."""
    code = compile(change, "<change>", "exec")

    def edit(notebook: NotebookNode, folder: Path) -> None:
        for cell in notebook.cells:
            exec(code, {"cell": cell, "meta": cell.metadata.get("nbgrader", {})})

    return edit


def one_cell(name: str, change: str) -> Edit:
    """Apply one line of Python to `cell`."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        cell = cell_of(notebook, name)
        exec(change, {"cell": cell, "meta": cell.metadata["nbgrader"], "notebook": notebook})

    return edit


def reverse_exercises(notebook: NotebookNode, folder: Path) -> None:
    """The exercises stand in reverse order, each check still after its answer."""
    graded = [i for i, cell in enumerate(notebook.cells) if "nbgrader" in cell.metadata]
    pairs = [(i, i + 1) for i in graded if cell_of_check_follows(notebook, i)]
    cells = [copy.deepcopy((notebook.cells[a], notebook.cells[b])) for a, b in pairs]
    for (a, b), (answer, check) in zip(pairs, reversed(cells), strict=True):
        notebook.cells[a], notebook.cells[b] = answer, check


def cell_of_check_follows(notebook: NotebookNode, at: int) -> bool:
    names = [c.metadata.get("nbgrader", {}).get("grade_id") for c in notebook.cells[at : at + 2]]
    return names[1:] == [check_of(str(names[0]))]


def check_first(notebook: NotebookNode, folder: Path) -> None:
    at = place(notebook, "as_column")
    notebook.cells[at], notebook.cells[at + 1] = notebook.cells[at + 1], notebook.cells[at]


def last_years(notebook: NotebookNode, folder: Path) -> None:
    """Another release: other names everywhere."""
    for number, cell in enumerate(notebook.cells):
        cell.source = f"# last year's cell {number}"
        if "nbgrader" in cell.metadata:
            cell.metadata["nbgrader"]["grade_id"] = f"task-{number}"


def two_thousand_cells(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells += [nbformat.v4.new_markdown_cell(f"Note {i}.") for i in range(1_800)]
    notebook.cells += [nbformat.v4.new_code_cell(f"note = {i}") for i in range(200)]


def nested_metadata(notebook: NotebookNode) -> bytes:
    notebook.cells[0].metadata = {"deep": "NESTED"}
    return plain_save(notebook).replace(b'"NESTED"', b'{"a":' * 600 + b"1" + b"}" * 600)


SURROGATE = 'note = "half an emoji: \ud83d"\n'
ACCIDENTS = (
    Entry("answer-twice", "an answer pasted twice, the first copy wrong",
          edit=paste_again("as_column", "as_column = None"), said=("2 times",), **REPAIRED),
    Entry("check-twice", "a check pasted twice", edit=paste_again(check_of("as_column")),
          said=("`check-as_column` was there 2 times",), **REPAIRED),
    Entry("split", "an answer split into two cells", edit=split_answer,
          said=("2 times",), **REPAIRED),
    Entry("merged", "answer and check merged into one cell", edit=merge_answer_and_check,
          said=("put back",), **REPAIRED),
    Entry("no-schema", "metadata without schema_version",
          edit=every_cell("meta.pop('schema_version', None)")),
    Entry("no-check", "a check deleted", edit=delete(check_of("as_column")),
          said=("`check-as_column`", "put back"), **REPAIRED),
    Entry("no-answer", "an answer deleted", edit=delete("as_column"), earns=WITHOUT_COLUMN,
          said=("`as_column` is missing",), **REPAIRED),
    Entry("neither", "answer and check deleted", edit=delete("as_column", check_of("as_column")),
          earns=WITHOUT_COLUMN, said=("`as_column` is missing", "put back"), **REPAIRED),
    Entry("no-metadata", "all metadata and cell ids lost",
          edit=every_cell("cell.metadata = {}; cell.pop('id', None)"),
          said=("`as_column` had lost", "`check-as_column` had lost"), **REPAIRED),
    Entry("null-metadata", "metadata is null", edit=every_cell("cell.metadata = None"),
          said=("`as_column` had lost",), **REPAIRED),
    Entry("flags", "grade, solution and locked flags flipped",
          edit=every_cell("meta.update({k: not meta[k] for k in ('grade', 'solution', 'locked')"
                          " if k in meta})")),
    Entry("renamed-id", "a grade_id renamed", edit=one_cell("as_column", "meta.grade_id = 'mine'"),
          said=("`as_column` had lost",), **REPAIRED),
    Entry("odd-tags", "tags and other metadata of the wrong types",
          edit=every_cell("cell.metadata.update(tags='todo', collapsed='yes', name='',"
                          " jupyter=1)")),
    Entry("deep", "metadata nested 600 deep", save=nested_metadata),
    Entry("same-ids", "all cells have the same id", edit=every_cell("cell.id = 'cell'")),
    Entry("raw", "an answer turned into a raw cell",
          edit=one_cell("as_column", "cell.cell_type = 'raw'; del cell['outputs']"),
          said=("had become a raw cell",), **REPAIRED),
    Entry("text", "a check turned into text",
          edit=one_cell(check_of("as_column"), "cell.cell_type = 'markdown'"),
          said=("had become a markdown cell",), **REPAIRED),
    Entry("reversed", "exercises in reverse order", edit=reverse_exercises),
    Entry("check-first", "a check moved before its answer", edit=check_first, earns=WITHOUT_COLUMN),
    Entry("last-year", "last year's release", edit=last_years, said=("Nothing of this assignment",),
          **UNREADABLE),
    Entry("no-cells", "a notebook without cells", edit=one_cell("as_column", "notebook.cells = []"),
          said=("Nothing of this assignment",), **UNREADABLE),
    Entry("many-cells", "2,000 more cells", edit=two_thousand_cells),
    Entry("surrogate", "half an emoji in a source", {"as_column": SURROGATE + RIGHT["as_column"]}),
    Entry("r-kernel", "an unknown kernelspec, language R",
          edit=one_cell("as_column", "notebook.metadata = {'kernelspec': {'name': 'ir', "
                        "'language': 'R', 'display_name': 'R'}, 'language_info': {'name': 'R'}}")),
    Entry("no-kernel", "no metadata of the notebook at all",
          edit=one_cell("as_column", "notebook.metadata = None")),
)  # fmt: skip
