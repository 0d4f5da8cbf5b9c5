"""`autograder export`, `report` and `late`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from autograder.course import CourseError, read_course
from autograder.late_policy import (
    FILE_NAME,
    LatePolicyError,
    apply_policy,
    read_policy,
    unknown_names,
)
from autograder.reporting.answers import export_answers
from autograder.reporting.course import open_gradebook
from autograder.reporting.marks import Table, read_table
from autograder.reporting.page import render
from autograder.reporting.tables import changed_ids, export_tables

LONGEST_LIST = 20


def _say_list(what: str, names: list[str]) -> None:
    if names:
        more = len(names) - LONGEST_LIST
        tail = f" and {more} more" if more > 0 else ""
        print(f"{what}: {', '.join(names[:LONGEST_LIST])}{tail}")


def _penalties(course: CourseDirectory, gradebook: Gradebook, assignment: str) -> bool:
    """Apply the late policy, if there is one; say what changed. Return whether there is one."""
    policy = read_policy(Path(course.root))
    if policy is None:
        return False
    for change in apply_policy(gradebook, assignment, policy):
        print(f"late penalty of {change.student}: {change.before:g} -> {change.after:g}")
    _say_list(
        f"{FILE_NAME} names what the gradebook does not know", unknown_names(gradebook, policy)
    )
    return True


def _table(arguments: argparse.Namespace) -> tuple[CourseDirectory, Table]:
    _, course = read_course(Path(arguments.course_dir).resolve())
    with open_gradebook(course, arguments.assignment) as gradebook:
        _penalties(course, gradebook, arguments.assignment)
        return course, read_table(course, gradebook, arguments.assignment)


def _late(arguments: argparse.Namespace) -> int:
    _, course = read_course(Path(arguments.course_dir).resolve())
    with open_gradebook(course, arguments.assignment) as gradebook:
        if gradebook.find_assignment(arguments.assignment).duedate is None:
            print(
                f"{arguments.assignment} has no due date, so nothing is late. Set one: nbgrader "
                f'db assignment add {arguments.assignment} --duedate "2030-01-31 23:59 UTC"'
            )
        if not _penalties(course, gradebook, arguments.assignment):
            raise CourseError(
                f"There is no {FILE_NAME} in {course.root}. INSTRUCTORS.md shows one."
            )
    print("The late penalties in the gradebook are up to date.")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    course, table = _table(arguments)
    folder = Path(arguments.to)
    unmarked = export_tables(table, folder, arguments.column, arguments.partial)
    print(f"Wrote marks.csv, canvas.csv and moodle.csv of {len(table.students)} students: {folder}")
    by_status: dict[str, list[str]] = {}
    for student in unmarked:
        waiting = student.marks and student.status.word != "could not run"
        word = "answers wait for a mark" if waiting else student.status.word
        by_status.setdefault(word, []).append(student.id)
    for word, names in sorted(by_status.items()):
        _say_list(f"Not in canvas.csv and moodle.csv ({len(names)}, {word})", names)
    _say_list(
        "Enter by hand, the ids begin with a character that spreadsheets act on", changed_ids(table)
    )
    if arguments.answers:
        names = [student.id for student in table.students]
        folders = export_answers(course, arguments.assignment, names, Path(arguments.answers))
        print(f"Wrote the answers of {len(folders)} students: {arguments.answers}")
        renamed = [f"{folders[name]} is {name}" for name in folders if folders[name] != name]
        _say_list("Folders with other names", renamed)
    return 0


def _report(arguments: argparse.Namespace) -> int:
    _, table = _table(arguments)
    path = Path(arguments.to or f"{arguments.assignment}-report.html")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(table), encoding="utf-8", errors="replace")
    print(f"Wrote {path}")
    return 0


COMMANDS = {"export": _export, "report": _report, "late": _late}


def run(arguments: argparse.Namespace) -> int:
    """Run one of the commands; return 2 with a message if there is nothing to work on."""
    try:
        return COMMANDS[arguments.command](arguments)
    except (CourseError, LatePolicyError) as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    return 2
