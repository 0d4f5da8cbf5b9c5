"""Build everything that is generated: masters → `solutions/NN_x/` → `course/NN_x/`.

The release is made by nbgrader's own `generate_assignment`, in a scratch folder, and swapped in
only when it has succeeded: nbgrader deletes the old release first and would leave none.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from attention_course import codec
from attention_course.checks_file import FILE_NAME
from autograder import course_map, ledger, notation
from autograder.exercises import of_chapter
from autograder.masters import ROOT, MasterError, master_names, read_master

STUB = {"python": "# YOUR CODE HERE\nraise NotImplementedError"}
WRITTEN_STUB = "YOUR ANSWER HERE"


def put_tools_on_path() -> None:
    """Let nbgrader find `alembic`, which it calls by name, when the venv is not activated."""
    folder = str(Path(sys.executable).parent)
    if folder not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", "")


def checks_text(chapter: str) -> str:
    """Return the text of a chapter's public checks file."""
    plain = {name: item.public_plain() for name, item in of_chapter(chapter).items()}
    return codec.dumps(plain, codec.SIGNIFICANT_DIGITS) + "\n"


def write_source(chapter: str, folder: Path, solutions: Path) -> None:
    """Write nbgrader's source folder of a chapter. Raises MasterError if the master is broken."""
    exercises = of_chapter(chapter)
    master = read_master(solutions / f"{chapter}.py", exercises)
    folder.mkdir(parents=True)
    nbformat.write(master.notebook, folder / f"{chapter}.ipynb")
    if exercises:
        (folder / FILE_NAME).write_text(checks_text(chapter), encoding="utf-8")


def release_config(root: Path) -> Config:
    """Return nbgrader's configuration for building releases below `root`."""
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "course"
    config.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}"
    config.ClearSolutions.code_stub = STUB
    config.ClearSolutions.text_stub = WRITTEN_STUB
    config.LockCells.lock_readonly_cells = False  # students may play with any cell
    config.Application.log_level = "ERROR"
    return config


def build_into(scratch: Path, names: list[str], solutions: Path) -> None:
    """Build `solutions/NAME/` and `course/NAME/` of each chapter below `scratch`.

    Raises MasterError, also when nbgrader itself refuses a notebook.
    """
    for name in names:
        write_source(name, scratch / "solutions" / name, solutions)
    put_tools_on_path()
    api = NbGraderAPI(config=release_config(scratch))
    for name in names:
        result = api.generate_assignment(name, force=False, create=True)
        if not result["success"]:
            raise MasterError(f"{name}.py:1: nbgrader refused the chapter:\n{result['log']}")


def write_pages(folder: Path, solutions: Path) -> None:
    """Write the course's map, its ledger of claims and its symbols. Raises MasterError."""
    masters = sorted(solutions.glob("[0-9][0-9]_*.py"))
    (folder / course_map.FILE_NAME).write_text(course_map.map_text(masters), encoding="utf-8")
    records = ledger.read(solutions / ledger.RECORDS.name)
    (folder / ledger.FILE_NAME).write_text(ledger.claims_text(records), encoding="utf-8")
    (folder / notation.FILE_NAME).write_text(notation.symbols_text(masters), encoding="utf-8")


def _swap_in(new: Path, old: Path) -> None:
    """Put the folder `new` in the place of `old`, with no moment at which both are missing."""
    aside = old.with_name(f".{old.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists():
        old.rename(aside)
    shutil.copytree(new, old)
    shutil.rmtree(aside, ignore_errors=True)


def build(root: Path = ROOT, names: list[str] | None = None) -> list[str]:
    """Rebuild the chapters in place and return their names; on MasterError nothing changes."""
    names = master_names() if names is None else names
    with tempfile.TemporaryDirectory(prefix="course-build-") as scratch:
        build_into(Path(scratch), names, root / "solutions")
        for name in names:
            for kind in ("solutions", "course"):
                (root / kind).mkdir(exist_ok=True)
                _swap_in(Path(scratch) / kind / name, root / kind / name)
        write_pages(root / "course", root / "solutions")
    return names


def main() -> int:
    """Build all chapters; print what was built, or file:line of what is broken."""
    try:
        names = build()
    except MasterError as error:
        print(f"Not built. {error}", file=sys.stderr)
        return 1
    print("Built " + ", ".join(names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
