"""Students' own code, one folder each, for a comparison with JPlag or Dolos.

What the course gave is taken out: stub, signature and docstring are the same in every answer and
would make all of them look alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbgrader.coursedir import CourseDirectory

from autograder.masters import grade_id

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


def safe_name(student: str) -> str:
    """Return a folder's name for a student id: itself where any system takes it, else a likeness.

    A likeness ends with a hash of the id, so that no two students share one.
    """
    if SAFE_NAME.fullmatch(student) and not student.endswith("."):
        return student
    likeness = re.sub(r"[^A-Za-z0-9]+", "-", student).strip("-")[:40]
    return f"{likeness or 'student'}-{hashlib.sha256(student.encode()).hexdigest()[:8]}"


def without_template(answer: str, template: str) -> str:
    """Drop the lines of an answer that stand in the released cell, whatever their indentation."""
    given = {line.strip() for line in template.splitlines()}
    lines = [line for line in answer.splitlines() if line.strip() and line.strip() not in given]
    return "\n".join(lines) + "\n" if lines else ""


def export_answers(
    course: CourseDirectory, assignment: str, students: Iterable[str], folder: Path
) -> dict[str, str]:
    """Write FOLDER/STUDENT/EXERCISE.py; return the folder's name of each student with answers."""
    release = Path(course.format_path(course.release_directory, ".", assignment))
    templates = {
        path.name: {
            grade_id(cell): cell.source
            for cell in nbformat.read(path, 4).cells
            if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
        }
        for path in sorted(release.glob("*.ipynb"))
    }
    names = {}
    for student in students:
        graded = Path(course.format_path(course.autograded_directory, student, assignment))
        for notebook, cells in templates.items():
            path = graded / notebook
            for cell in nbformat.read(path, 4).cells if path.is_file() else []:
                template = cells.get(grade_id(cell))
                own = without_template(cell.source, template) if template is not None else ""
                if own:
                    names[student] = safe_name(student)
                    target = folder / names[student] / f"{grade_id(cell)}.py"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(own, encoding="utf-8", errors="replace")
    return names
