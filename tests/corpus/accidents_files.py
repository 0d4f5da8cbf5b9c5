"""Accidents that happen to the file of a notebook, and to the folder that it is handed in with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from corpus.describing import (
    FILE,
    RIGHT,
    Edit,
    Entry,
    Save,
    files,
    no_file,
    plain_save,
)

UNREADABLE = {"earns": None, "status": "could not run"}
REPAIRED = {"status": "repaired"}


def text_save(change: str, encoding: str = "utf-8") -> Save:
    """Save after `change`, an expression in `text`."""
    code = compile(change, "<change>", "eval")
    return lambda notebook: eval(code, {"text": nbformat.writes(notebook)}).encode(
        encoding, "replace"
    )


def version(major: int | None, minor: int | None) -> Edit:
    def edit(notebook: NotebookNode, folder: Path) -> None:
        notebook.update(nbformat=major, nbformat_minor=minor)

    return edit


def version_3(notebook: NotebookNode) -> bytes:
    cells = [
        {**{k: v for k, v in cell.items() if k not in ("source", "id")}, "input": cell.source}
        if cell.cell_type == "code"
        else {k: v for k, v in cell.items() if k != "id"}
        for cell in notebook.cells
    ]
    document = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [{"cells": cells}],
    }
    return json.dumps(document).encode()


def empty_worksheet(notebook: NotebookNode) -> bytes:
    return b'{"nbformat": 3, "worksheets": [{"cells": null}]}'


def renamed(name: str | bytes) -> Edit:
    """Save under another name."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        path = Path(folder, os.fsdecode(name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(plain_save(notebook))

    return edit


def folder_called(*names: str) -> Edit:
    def edit(notebook: NotebookNode, folder: Path) -> None:
        for name in names:
            (folder / name).mkdir()
            (folder / name / "notes.txt").write_text("a folder with the name of a file")

    return edit


def beside(notebook: NotebookNode, folder: Path) -> None:
    """Extra notebooks, checkpoints, the operating systems' own files."""
    for name in ("Untitled.ipynb", "old/01_shapes.ipynb", ".ipynb_checkpoints/01_shapes.ipynb"):
        renamed(name)(nbformat.v4.new_notebook(), folder)
    files(__DS_Store=b"\0\1\2", Thumbs__db=b"\0", desktop__ini="x")(notebook, folder)


def nested_folders(notebook: NotebookNode, folder: Path) -> None:
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(1_500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)


FILE_ACCIDENTS = (
    Entry("format-3", "format 3", save=version_3, said=("format 3.0",), **REPAIRED),
    Entry("format-4-2", "format 4.2", edit=version(4, 2), said=("format 4.2",), **REPAIRED),
    Entry("format-4-9", "format 4.9", edit=version(4, 9), said=("format 4.9",), **REPAIRED),
    Entry("format-none", "no format", edit=version(None, None), said=("format",), **REPAIRED),
    Entry("no-worksheet", "an old notebook whose sheet holds no list", save=empty_worksheet,
          said=("notebook",), **UNREADABLE),
    Entry("truncated", "truncated JSON", save=text_save("text[: len(text) // 2]"),
          said=("cut off or damaged",), **UNREADABLE),
    Entry("empty", "an empty file", save=lambda notebook: b"", said=("is empty",), **UNREADABLE),
    Entry("conflict", "git's conflict markers",
          save=text_save("'<<<<<<< HEAD\\n' + text + '=======\\n' + text + '>>>>>>> mine\\n'"),
          said=("conflict markers",), **UNREADABLE),
    Entry("web-page", "a web page saved as the notebook", save=lambda notebook: b"<!DOCTYPE html>",
          said=("cut off or damaged",), **UNREADABLE),
    Entry("bom", "a byte order mark", save=text_save("text", "utf-8-sig"),
          said=("byte order mark",), **REPAIRED),
    Entry("utf-16", "UTF-16", save=text_save("text", "utf-16"), said=("UTF-16",), **REPAIRED),
    Entry("latin-1", "Latin-1", {"as_column": "# café\n" + RIGHT["as_column"]},
          save=text_save("text", "latin-1"), said=("not written as UTF-8",), **REPAIRED),
    Entry("windows", "Windows line endings",
          save=text_save(r"text.replace('\\n', '\\r\\n').replace('\n', '\r\n')")),
    Entry("copy-1", "renamed by the browser", save=no_file, edit=renamed("01_shapes (1).ipynb"),
          said=("recognised",), **REPAIRED),
    Entry("other-name", "renamed by the student, not in UTF-8", save=no_file,
          edit=renamed(b"devoir termin\xe9.ipynb"), said=("recognised",), **REPAIRED),
    Entry("in-a-folder", "the notebook lies one folder too deep", save=no_file,
          edit=renamed(f"01_shapes/{FILE}"), said=("there is no",), **UNREADABLE),
    Entry("nothing", "only a PDF is handed in", save=no_file, edit=files(answers__pdf=b"%PDF-1.7"),
          said=("there is no",), **UNREADABLE),
    Entry("folder-name", "a folder has the notebook's name", save=no_file,
          edit=folder_called(FILE), said=("01_shapes.ipynb",), **UNREADABLE),
    Entry("folder-names", "folders with the names of files that grading uses",
          edit=folder_called("timestamp.txt", "checks.json", "hidden_cases.json"),
          said=("hidden_cases.json",), **REPAIRED),
    Entry("bad-date", "timestamp.txt holds no date", edit=files(timestamp__txt="next Tuesday?"),
          said=("holds no date",), **REPAIRED),
    Entry("first-day", "timestamp.txt holds a date before all time zones",
          edit=files(timestamp__txt="0001-01-01 00:00:00 +14:00")),
    Entry("beside", "extra notebooks, checkpoints, the system's own files", edit=beside),
    Entry("heavy", "a file of 30 MB", edit=files(data__bin=bytes(30 * 2**20)),
          said=("larger than 20 MB",), **REPAIRED),
    Entry("shadows", "files called like modules, beside the notebook",
          edit=files(random__py="1/0", numpy__py="1/0", code__py="1/0", json__py="1/0")),
    Entry("nested", "1,500 folders in each other", edit=nested_folders,
          said=("folder",), **REPAIRED),
)  # fmt: skip

# Everything right; the id is what is odd.
STUDENTS = tuple(
    Entry(student, "an odd student id")
    for student in (
        "-dash", "0042", "[a-z]*", "o'neil zoë @uni.org", "=1+1", "{0} %s {student_id}",
        "名前 اسم 🙂", "back\\slash", "..dots", "a" * 120,
    )
)  # fmt: skip
