"""Copy submissions into a clean folder before nbgrader reads them. Originals are never touched.

Real folders hold renamed or damaged notebooks, dates that are none, links, huge files. Whatever is
in there, the clean copy of a submission holds each notebook of the assignment exactly once, valid
and without outputs, and plain small files; what was done is written into the notebook's metadata.
A notebook that cannot be read is replaced by an empty one with the reason, and is marked by hand.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from dateutil.parser import ParserError, parse
from nbformat.notebooknode import NotebookNode

from autograder.grading.verdicts import METADATA_KEY
from autograder.masters import KERNELSPEC

LARGEST_NOTEBOOK = 60 * 2**20  # bytes
LARGEST_FILE = 20 * 2**20  # bytes of any other file; larger ones stay behind
# Formgrader serves what lies beside a notebook from the instructor's own Jupyter: no scripts then.
WEB_PAGES = {
    ".html", ".htm", ".xhtml", ".shtml", ".mht", ".mhtml",
    ".svg", ".xml", ".xsl", ".js", ".mjs", ".pdf",
}  # fmt: skip
LARGEST_PICTURE = 2 * 2**20  # characters of a picture pasted into a text cell
FILE_NAMES = {".ipynb", ".json", ".txt"}  # a folder so called would stand in a file's way
DEEPEST = 10  # folders below a submission's folder
TIMESTAMP = "timestamp.txt"
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)


class Unreadable(Exception):
    """A notebook cannot be read; the message says why, for a student."""


@dataclass
class Notes:
    """What was noticed about one submitted notebook."""

    repairs: list[str] = field(default_factory=list)
    could_not_run: str = ""

    def plain(self) -> dict[str, Any]:
        """Give the notes as they are kept in the notebook's metadata."""
        return {
            "repairs": [clean_text(note) for note in self.repairs],
            "could_not_run": clean_text(self.could_not_run),
        }


def _decode(raw: bytes, notes: Notes) -> str:
    for encoding, said in (
        ("utf-8", ""),
        ("utf-8-sig", "The file began with a byte order mark."),
        ("utf-16", "The file was written as UTF-16."),
        ("latin-1", "The file was not written as UTF-8; accents may be wrong."),
    ):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "utf-8" and text.startswith("\ufeff"):
            continue
        if encoding == "utf-16" and not raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            continue
        if said:
            notes.repairs.append(said)
        return text
    raise Unreadable("its bytes are no text")


def clean_text(text: str) -> str:
    """Replace what cannot be written as UTF-8: lone surrogates, from JSON or from file names."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _grade_id(cell: dict[str, Any]) -> dict[str, Any]:
    """Keep the one part of a cell's metadata that is looked at: which cell it says it is."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return {"nbgrader": {"grade_id": clean_text(name)}} if isinstance(name, str) else {}


def _pictures(cell: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Keep pictures that were pasted into a text cell, up to a size."""
    attachments = cell.get("attachments")
    kept = {}
    for name, versions in attachments.items() if isinstance(attachments, dict) else ():
        for kind in ("image/png", "image/jpeg"):
            data = versions.get(kind) if isinstance(versions, dict) else None
            if isinstance(data, str) and data.isascii() and len(data) <= LARGEST_PICTURE:
                kept[clean_text(str(name))] = {kind: data}
    return kept


def _plain_cell(cell: Any) -> dict[str, Any] | None:
    """Keep what grading needs of a cell; None for what is no cell at all."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    kept = {
        "cell_type": cell["cell_type"],
        "source": clean_text(source) if isinstance(source, str) else "",
        "metadata": _grade_id(cell),
    }
    if cell["cell_type"] == "markdown" and (pictures := _pictures(cell)):
        kept["attachments"] = pictures
    name = cell.get("id")
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        kept["id"] = name
    return kept


def _cells(document: dict[str, Any]) -> list[Any]:
    """Find the cells, also in the worksheets of version 3."""
    if isinstance(document.get("cells"), list):
        return document["cells"]
    sheets = document.get("worksheets")
    if isinstance(sheets, list):
        groups = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        return [cell for group in groups if isinstance(group, list) for cell in group]
    raise Unreadable("it is JSON, but no notebook")


def read_notebook(path: Path, notes: Notes) -> NotebookNode:
    """Read any notebook that can be understood, as valid version 4.5 without outputs.

    Raises Unreadable with the reason otherwise.
    """
    if path.stat().st_size > LARGEST_NOTEBOOK:
        raise Unreadable(f"it is larger than {LARGEST_NOTEBOOK // 2**20} MB")
    text = _decode(path.read_bytes(), notes)
    if not text.strip():
        raise Unreadable("the file is empty")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _CONFLICT.search(text):
            raise Unreadable("it holds unresolved git conflict markers (<<<<<<<)") from None
        raise Unreadable(f"the file is cut off or damaged ({str(error)[:80]})") from None
    if not isinstance(document, dict):
        raise Unreadable("it is JSON, but no notebook")
    version = (document.get("nbformat"), document.get("nbformat_minor"))
    if version != (4, 5):
        notes.repairs.append(f"The notebook's format {version[0]}.{version[1]} was read as 4.5.")
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNELSPEC})
    names: set[str] = set()
    for cell in filter(None, map(_plain_cell, _cells(document))):
        make = getattr(nbformat.v4, f"new_{cell.pop('cell_type')}_cell")
        if cell.get("id") in names:
            del cell["id"]
        made = make(**cell)
        names.add(made.id)
        notebook.cells.append(made)
    return notebook


def _likeness(path: Path, source: NotebookNode) -> int:
    """Count how many of the source's graded ids a notebook file speaks of."""
    try:
        text = path.read_text(encoding="utf-8", errors="ignore")
    except OSError:
        return 0
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in source.cells]
    return sum(name in text for name in names if name)


def _choose(folder: Path, name: str, source: NotebookNode, notes: Notes) -> Path | None:
    """Find the file that is to be graded as `name`.ipynb."""
    found = sorted(
        path
        for path in folder.glob("*.ipynb")
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".")
    )
    wanted = folder / f"{name}.ipynb"
    if wanted in found:
        return wanted
    if wanted.is_symlink():
        notes.repairs.append(f"`{wanted.name}` is a link, which is not followed.")
    found = [path for path in found if _likeness(path, source)]
    if not found:
        return None
    best = max(found, key=lambda path: _likeness(path, source))
    notes.repairs.append(f"`{best.name}` was recognised as `{wanted.name}`.")
    return best


def _why_left_out(path: Path) -> str:
    """Say why a file or folder beside a notebook does not come along, or "" if it does."""
    if path.is_symlink():
        return "is a link"
    if path.is_dir():
        return "is a folder with the name of a file" if path.suffix in FILE_NAMES else ""
    if not path.is_file():
        return "is not a plain file"
    if path.stat().st_nlink > 1:
        return "is a second name of another file"
    if path.suffix.lower() in WEB_PAGES:
        return "is a web page"
    if path.stat().st_size > LARGEST_FILE:
        return f"is larger than {LARGEST_FILE // 2**20} MB"
    return ""


def _copy_plain_files(folder: Path, target: Path, notes: Notes, depth: int = 0) -> None:
    """Copy what lies beside the notebooks: plain small files, hidden ones excepted."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or (depth == 0 and path.name == TIMESTAMP):
            continue
        if path.suffix == ".ipynb" and path.is_file():
            continue
        try:
            reason = _why_left_out(path)
            if not reason and path.is_dir():
                if depth < DEEPEST:
                    _copy_plain_files(path, target / path.name, notes, depth + 1)
                    continue
                reason = f"is nested more than {DEEPEST} folders deep"
            if not reason:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target / path.name)
        except OSError as error:
            reason = f"cannot be read ({error.strerror})"
        if reason:
            notes.repairs.append(f"`{path.name}` {reason} and was left out.")


def _copy_timestamp(folder: Path, target: Path, notes: Notes) -> None:
    path = folder / TIMESTAMP
    if path.is_symlink() or not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(1000).strip()
    try:
        parse(text)
    except (ParserError, OverflowError, ValueError):
        notes.repairs.append(f"`{TIMESTAMP}` holds no date ({text[:30]!r}) and was left out.")
        return
    shutil.copyfile(path, target / TIMESTAMP)


def stage(folder: Path, target: Path, sources: dict[str, NotebookNode]) -> dict[str, Notes]:
    """Make the clean copy of one submission; return the notes on each of its notebooks."""
    target.mkdir(parents=True)
    common = Notes()
    _copy_plain_files(folder, target, common)
    _copy_timestamp(folder, target, common)
    all_notes = {}
    for name, source in sources.items():
        notes = Notes(list(common.repairs))
        path = _choose(folder, name, source, notes)
        try:
            if path is None:
                raise Unreadable(f"there is no `{name}.ipynb` in the submission")
            notebook = read_notebook(path, notes)
        except Unreadable as error:
            notes.could_not_run = f"The notebook could not be read: {error}."
            notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNELSPEC})
        except Exception as error:  # whatever else a file can hold costs its owner only
            notes.could_not_run = f"The notebook could not be read ({type(error).__name__})."
            notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNELSPEC})
        notebook.metadata[METADATA_KEY] = notes.plain()
        nbformat.write(notebook, target / f"{name}.ipynb")
        all_notes[name] = notes
    return all_notes


def submission_folders(submitted: Path, assignment: str, students: str) -> dict[str, Path]:
    """Map student ids (that match the pattern `students`) to their submission folders."""
    if not submitted.is_dir():
        return {}
    return {
        path.name: path / assignment
        for path in sorted(submitted.iterdir())
        if (path.name == students or fnmatch.fnmatchcase(path.name, students))
        and not path.is_symlink()
        and (path / assignment).is_dir()
        and not (path / assignment).is_symlink()
    }
