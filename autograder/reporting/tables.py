"""CSV files: one with everything, and those that Canvas and Moodle import.

A spreadsheet runs a cell that begins with `=` as a formula. Such text gets an apostrophe put in
front, as spreadsheets themselves do it, and so does text that begins with an apostrophe: taking
one leading apostrophe off (`restore`) gives every text back as it was.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder.reporting.marks import Student, Table

ACTIVE = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20'")
LATE_PENALTY = "(late penalty)"
COLUMNS = [
    "student",
    "exercise",
    "points",
    "max",
    "submission",
    "verdict",
    "misconception",
    "message",
    "seconds",
]


def neutralise(value: Any) -> Any:
    """Make a text harmless for spreadsheets; numbers and empty cells stay."""
    if not isinstance(value, str):
        return value
    return f"'{value}" if value.lstrip(" \u00a0\ufeff").startswith(ACTIVE) else value


def restore(text: str) -> str:
    """Take back what `neutralise` did to a text."""
    return text.removeprefix("'")


def number(value: float | None) -> float | str:
    """Return a number to write, without needless digits; None becomes an empty cell."""
    if value is None:
        return ""
    value = round(value, 4)
    return int(value) if value == int(value) else value


def write_csv(path: Path, rows: Iterable[Iterable[Any]], for_excel: bool = False) -> None:
    """Write neutralised rows; Excel takes a file for UTF-8 only with a byte order mark."""
    encoding = "utf-8-sig" if for_excel else "utf-8"
    with path.open("w", encoding=encoding, errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([neutralise(cell) for cell in row] for row in rows)


def _marks_rows(table: Table) -> Iterable[list[Any]]:
    yield COLUMNS
    for student in table.students:
        status = str(student.status).removesuffix(".")
        if not student.marks:
            for exercise, out_of in table.exercises.items():
                yield [student.id, exercise, "", number(out_of), status, "", "", "", ""]
        for mark in student.marks:
            yield [
                student.id,
                mark.exercise,
                number(mark.points),
                number(mark.out_of),
                status,
                mark.verdict or ("needs a mark" if mark.points is None else ""),
                mark.misconception,
                mark.message,
                number(mark.seconds),
            ]
        if student.penalty:
            yield [student.id, LATE_PENALTY, number(-student.penalty), 0, status, "", "", "", ""]


def _name(student: Student) -> str:
    return ", ".join(part for part in (student.last_name, student.first_name) if part) or student.id


def _total(student: Student, partial: bool) -> float | str:
    if partial and student.marks and student.status.word != "could not run":
        return number(student.earned)
    return number(student.total)


def export_tables(
    table: Table, folder: Path, column: str = "", partial: bool = False
) -> list[Student]:
    """Write marks.csv, canvas.csv and moodle.csv; return the students without a mark.

    Those are left out of Canvas's and Moodle's files: an empty cell there would delete a mark that
    somebody has entered, and a 0 would be a mark that nobody gave. With `partial`, answers that
    still wait for a mark count 0.
    """
    column = column or table.assignment
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "marks.csv", _marks_rows(table), for_excel=True)
    totals = {student.id: _total(student, partial) for student in table.students}
    marked = [student for student in table.students if totals[student.id] != ""]
    canvas = [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", column],
        ["Points Possible", "", "", "", "", number(table.out_of)],
    ]
    moodle = [["Username", "ID number", "Email address", "Last name", "First name", column]]
    for student in marked:
        mark = totals[student.id]
        canvas.append([_name(student), student.lms_user_id, student.id, student.id, "", mark])
        names = [student.last_name, student.first_name]
        moodle.append([student.id, student.lms_user_id, student.email, *names, mark])
    write_csv(folder / "canvas.csv", canvas)
    write_csv(folder / "moodle.csv", moodle)
    return [student for student in table.students if totals[student.id] == ""]


def changed_ids(table: Table) -> list[str]:
    """List the ids that an LMS will not recognise, as they had to be neutralised."""
    return [student.id for student in table.students if neutralise(student.id) != student.id]
