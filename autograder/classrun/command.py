"""`autograder grade`: grade a class as `nbgrader autograde` does, on all cores or on a cluster."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook
from sqlalchemy.exc import SQLAlchemyError

from autograder.classrun.changes import describe, find_change
from autograder.classrun.course import Course
from autograder.classrun.job import Job, Result
from autograder.classrun.local import run_jobs
from autograder.classrun.merging import find_submission, merge
from autograder.classrun.progress import Progress, Row, shown, table
from autograder.classrun.record import FOLDER, Record, assignment_key, submission_key
from autograder.course import CourseError
from autograder.grading.status import Status
from autograder.kernels.sandbox import SandboxUnavailable, use_sandbox

COULD_NOT_RUN = "could not run"


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    assignment: str
    course_dir: Path
    workers: int | None = None  # None: as many as there are cores or threads of the cluster
    scheduler: str | None = None
    students: str = "*"
    dry_run: bool = False
    force: bool = False


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put Ctrl+C off until the block is done, so that nothing is written by half."""
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@dataclass
class Run:
    """One run over a class: what is to be done and what has become of it."""

    course: Course
    gradebook: Gradebook
    record: Record
    keys: dict[str, str]
    statuses: dict[str, Status] = field(default_factory=dict)
    desperate: set[str] = field(default_factory=set)  # students of whom a blank job is made
    changes: list[str] = field(default_factory=list)

    def unchanged(self, student: str) -> Status | None:
        """Return the status of a submission that need not be graded again."""
        status = self.record.status(student, self.keys[student])
        there = self.course.autograded(student).is_dir() and find_submission(
            self.gradebook, self.course, student
        )
        return status if there else None

    def save(self, result: Result) -> None:
        """Write a result into gradebook, autograded folder and record, in this order."""
        student = result.student
        with uninterrupted():
            self.record.forget(student)
            merge(self.gradebook, self.course, result)
            scratch_below = self.course.root / FOLDER
            scratch_below.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="new-", dir=scratch_below) as scratch:
                self.course.replace_autograded(student, result.files, Path(scratch))
            if student not in self.desperate:
                self.record.keep(student, self.keys[student], result.status)

    def compare(self, result: Result) -> None:
        """Note what a result would change."""
        change = find_change(self.gradebook, self.course, result)
        if change:
            self.changes += describe(result.student, change)

    def take(self, job: Job, outcome: Result | str, dry_run: bool) -> Job | None:
        """Work on what came back; return a job to run instead if there is no result."""
        student = job.student
        if isinstance(outcome, str):
            self.statuses[student] = Status(COULD_NOT_RUN, (outcome,))
            if student in self.desperate:
                return None
            self.desperate.add(student)
            return self.course.blank_job(job, outcome)
        self.statuses[student] = outcome.status
        try:
            (self.compare if dry_run else self.save)(outcome)
        except (SQLAlchemyError, OSError) as error:
            self.gradebook.db.rollback()
            self.statuses[student] = Status(COULD_NOT_RUN, (f"Its marks are not saved: {error}",))
        return None


def grade(options: Options) -> int:
    """Grade a class and say how it went; return the exit status. Raises CourseError."""
    course = Course(options.course_dir, options.assignment)
    folders = course.submissions(options.students)
    with course.open_gradebook() as gradebook:
        secret = course.secret(make=not options.dry_run)
        key = assignment_key(course, course.cells(gradebook), secret)
        keys = {student: submission_key(folder, key) for student, folder in folders.items()}
        run = Run(course, gradebook, Record.open(course.root, course.name), keys)
        if not (options.force or options.dry_run):
            known = {student: run.unchanged(student) for student in folders}
            run.statuses = {student: status for student, status in known.items() if status}
        if run.statuses:
            print(f"{len(run.statuses)} of {len(folders)} submissions are unchanged.")
        left = [student for student in folders if student not in run.statuses]
        interrupted = False
        try:
            if left:
                shared = course.shared(gradebook, secret)
                makers = [functools.partial(course.job, s, folders[s], shared) for s in left]
                _run_all(run, deque(makers), options)
        except KeyboardInterrupt:
            interrupted = True
            print("\nInterrupted. What is done is saved; the same command goes on from there.")
        return _conclude(run, folders, options.dry_run, interrupted)


def _run_all(run: Run, todo: deque, options: Options) -> None:
    """Grade what is to be done."""
    progress = Progress(len(todo))
    with contextlib.closing(_outcomes(todo, options)) as outcomes:
        for job, outcome in outcomes:
            instead = run.take(job, outcome, options.dry_run)
            if instead:
                todo.appendleft(lambda job=instead: job)
            else:
                result = outcome if isinstance(outcome, Result) else None
                progress.advance(job.student, run.statuses[job.student].word, result)


def _outcomes(todo: deque, options: Options) -> Iterator[tuple[Job, Result | str]]:
    """Run the jobs where the command line says."""
    if options.scheduler:
        from autograder.classrun import pool  # Dask takes a while to import

        with pool.remote_client(options.scheduler) as client:
            yield from pool.run_jobs(client, todo, options.workers or 1)
        return
    use_sandbox()
    workers = min(options.workers or _cores(), len(todo))
    with tempfile.TemporaryDirectory(prefix="workers-") as scratch:
        yield from run_jobs(todo, workers, Path(scratch))


def _rows(run: Run, students: list[str]) -> list[Row]:
    run.gradebook.db.rollback()
    found = {s.student_id: s for s in run.gradebook.assignment_submissions(run.course.name)}
    rows = []
    for student in students:
        status = run.statuses.get(student, Status("not graded"))
        submission = found.get(student)
        points = (
            submission.score - (submission.late_submission_penalty or 0) if submission else None
        )
        out_of = submission.max_score if submission else None
        rows.append(Row(student, points, out_of, status.word, next(iter(status.notes), "")))
    return rows


def _conclude(run: Run, folders: dict[str, Path], dry_run: bool, interrupted: bool) -> int:
    print(f"\n{table(_rows(run, list(folders)))}\n")
    if dry_run:
        print("Dry run: nothing was written; the points above are the gradebook's.")
        print("\n".join(map(shown, run.changes)) or "No mark would change.")
    failed = [s for s, status in run.statuses.items() if status.word == COULD_NOT_RUN]
    if failed:
        print(f"{len(failed)} could not be graded: {shown(', '.join(failed))}.")
    if interrupted:
        return 130
    return 1 if failed else 0


def main(options: Options) -> int:
    """Run the command; say in one line why nothing could be graded."""
    try:
        return grade(options)
    except (CourseError, SandboxUnavailable) as error:
        print(f"Nothing was graded. {error}", file=sys.stderr)
        return 2


def _cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
