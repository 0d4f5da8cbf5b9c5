"""`autograder demo`: an instructor's whole round on a bundled class, with plain nbgrader commands.

Release, submissions, autograde, feedback, export; then every mark is compared with the mark that
the description of the submission is worth, and every difference is said in words.
"""

from __future__ import annotations

import csv
import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry

from autograder.demo_building import DescriptionError, Submission, read_chapter
from autograder.demo_class import CHAPTER, CLASS
from autograder.exercises import chapters
from autograder.grading import METADATA_KEY
from autograder.masters import CHECK_PREFIX, ROOT
from autograder.sandbox import UNSANDBOXED_VARIABLE, why_no_sandbox

CONFIG = '''"""Made by `autograder demo`: the course's own settings, applied to this folder."""

import os

c = get_config()
load_subconfig("nbgrader_config.py", path={path!r})
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
'''
MADE = ("solutions", "course", "submitted", "autograded", "feedback")
PANEL = re.compile(r'<div role="status".*?</div>', re.DOTALL)
WORDS_SHOWN = 14


@dataclass(frozen=True)
class Row:
    """One submission as the table shows it. `got` is None if it was not graded."""

    submission: Submission
    expected: dict[str, float]
    got: dict[str, float | None] | None
    ungraded: float = 0.0  # points that wait for grading by hand
    exported: float | None = None
    said: str = ""
    page: Path | None = None


@dataclass
class Course:
    """The demo's course folder, with a log of all that nbgrader says."""

    root: Path
    started: float = field(default_factory=time.monotonic)

    @property
    def log(self) -> Path:
        """The file that gets the output of every nbgrader command."""
        return self.root / "demo.log"

    def say(self, text: str) -> None:
        """Print a line of progress with the seconds since the start."""
        print(f"{time.monotonic() - self.started:5.0f} s  {text}", flush=True)

    def empty(self) -> None:
        """Remove what an earlier demo made; refuse a folder that holds anything else."""
        config = self.root / "nbgrader_config.py"
        if self.root.exists() and any(self.root.iterdir()):
            if not config.is_file() or "autograder demo" not in config.read_text("utf-8"):
                raise DescriptionError(f"{self.root} is not empty and was not made by the demo")
            for name in MADE:
                shutil.rmtree(self.root / name, ignore_errors=True)
            for path in self.root.iterdir():
                if path.is_file():
                    path.unlink()
        self.root.mkdir(parents=True, exist_ok=True)
        config.write_text(CONFIG.format(path=str(ROOT / "autograder")), encoding="utf-8")

    def nbgrader(self, *arguments: str, seen: Callable[[str], None] = lambda line: None) -> int:
        """Run a plain nbgrader command in the folder; `seen` gets each line of its output."""
        tools = Path(sys.executable).parent
        environment = {k: v for k, v in os.environ.items() if k != UNSANDBOXED_VARIABLE}
        environment["PATH"] = f"{tools}{os.pathsep}{environment.get('PATH', os.defpath)}"
        self.say(f"nbgrader {' '.join(arguments)}")
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"\n$ nbgrader {' '.join(arguments)}\n")
            process = subprocess.Popen(
                [str(tools / "nbgrader"), *arguments],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            for line in process.stdout:
                log.write(line)
                seen(line)
            return process.wait()

    def fingerprint(self) -> dict[str, str]:
        """Hash every file that grading must leave alone."""
        return {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for name in ("solutions", "course", "submitted")
            for path in sorted((self.root / name).rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


def run_course(course: Course, source: Path) -> tuple[list[Row], list[str]]:
    """Go through the whole round; return the table's rows and what went wrong on the way."""
    course.empty()
    shutil.copytree(source, course.root / "solutions" / CHAPTER)
    problems = []

    def step(*arguments: str, seen: Callable[[str], None] = lambda line: None) -> None:
        status = course.nbgrader(*arguments, seen=seen)
        if status:
            problems.append(f"`nbgrader {' '.join(arguments)}` ended with exit status {status}.")

    step("generate_assignment", CHAPTER)
    release = course.root / "course" / CHAPTER / f"{CHAPTER}.ipynb"
    if not release.is_file():
        return [], [*problems, "There is no release to hand out."]
    chapter = read_chapter(source / release.name, release, chapters()[CHAPTER])
    course.say(f"{len(CLASS)} students hand in; expected marks are computed")
    expected = {}
    for submission in CLASS:
        folder = course.root / "submitted" / submission.student / CHAPTER
        chapter.write(submission, folder, course.root)
        shutil.copyfile(release.with_name("checks.json"), folder / "checks.json")
        expected[submission.student] = chapter.expected_marks(submission)

    before = course.fingerprint()
    graded = iter(range(1, len(CLASS) + 1))

    def report(line: str) -> None:
        if "] Autograding " in line:
            student = Path(line.strip()).parent.parent.name
            course.say(f"  {next(graded, '?')} of {len(CLASS)}: {student}")

    step("autograde", CHAPTER, seen=report)
    step("generate_feedback", CHAPTER)
    step("export", "--to", "grades.csv")
    after = course.fingerprint()
    for name in sorted(set(before) | set(after)):
        if before.get(name) != after.get(name):
            problems.append(f"Grading has changed the file {name}.")
    strays = {path.name for path in course.root.iterdir() if "planted" in path.name}
    problems += [f"A submission has written {name} into the course." for name in sorted(strays)]
    return [read_row(course.root, s, expected[s.student]) for s in CLASS], problems


# --- what nbgrader has made of it ----------------------------------------------------------------


def read_row(root: Path, submission: Submission, expected: dict[str, float]) -> Row:
    """Collect the marks, the export's line and the feedback of one submission."""
    student = submission.student
    got: dict[str, float | None] | None = None
    ungraded = 0.0
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "attention") as gradebook:
        try:
            notebook = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student)
        except MissingEntry:
            notebook = None
        for grade in notebook.grades if notebook else ():
            got = got or {}
            if grade.name.startswith(CHECK_PREFIX):
                # A manual score would replace the automatic one; nobody has given any here.
                mark = grade.manual_score if grade.manual_score is not None else grade.auto_score
                got[grade.name.removeprefix(CHECK_PREFIX)] = mark
            elif grade.needs_manual_grade or grade.manual_score is None:
                ungraded += grade.max_score
    page = root / "feedback" / student / CHAPTER / f"{CHAPTER}.html"
    return Row(
        submission,
        expected,
        got,
        ungraded,
        _exported(root / "grades.csv", student),
        _said(root / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb", page),
        page if page.is_file() else None,
    )


def _exported(path: Path, student: str) -> float | None:
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["student_id"] == student and line["assignment"] == CHAPTER:
                return float(line["score"])
    return None


def panels(page: str) -> list[str]:
    """Return the check panels of a feedback page as plain text."""
    texts = [re.sub(r"<[^>]+>", " ", block) for block in PANEL.findall(page)]
    return [" ".join(html.unescape(text).split()) for text in texts]


def _said(notebook: Path, page: Path) -> str:
    """Give the first words of what was repaired, else of the first panel that is not a pass."""
    if not notebook.is_file() or not page.is_file():
        return "not graded"
    repairs = nbformat.read(notebook, 4).metadata.get(METADATA_KEY, {}).get("repairs", [])
    shown = panels(page.read_text(encoding="utf-8"))
    failed = [text for text in shown if not text.startswith("✓")]
    words = " ".join([*repairs, *(failed or shown)][:1]).split()
    return " ".join(words[:WORDS_SHOWN]) + " …" * (len(words) > WORDS_SHOWN)


# --- the table and the verdict -------------------------------------------------------------------


def differences(row: Row) -> list[str]:
    """Say in words where the marks of a submission are not the expected ones."""
    who = row.submission.student
    if row.got is None:
        return [f"{who}: the submission was not graded."]
    found = []
    for name, expected in row.expected.items():
        got = row.got.get(name)
        if got != expected:
            seen = "no mark" if got is None else f"{got:g}"
            found.append(f"{who}: {name} is worth {expected:g}, and grading gave {seen}.")
    total = sum(mark or 0.0 for mark in row.got.values())
    if row.exported != total:
        seen = "nothing" if row.exported is None else f"{row.exported:g}"
        found.append(f"{who}: the marks add up to {total:g}, and the export says {seen}.")
    if row.page is None:
        found.append(f"{who}: there is no feedback page.")
    return found


def table(rows: Sequence[Row]) -> str:
    """Lay out one block for each submission: marks and what it is, what was said, the page."""
    width = max((len(row.submission.student) for row in rows), default=7)
    lines = [f"{'student':<{width}}  expected   got  submission"]
    for row in rows:
        expected = sum(row.expected.values())
        got = "-" if row.got is None else f"{sum(mark or 0 for mark in row.got.values()):g}"
        sign = "  <-- differs" if differences(row) else ""
        student, about = row.submission.student, row.submission.about
        lines.append(f"{student:<{width}}  {expected:>8g}  {got:>4}  {about}{sign}")
        lines.append(f"{'':<{width}}  {row.said}")
        lines.append(f"{'':<{width}}  {row.page or 'no feedback page'}")
    waiting = max((row.ungraded for row in rows), default=0)
    if waiting:
        lines.append(
            f"Written answers ({waiting:g} points) count 0 here: they are graded by hand, in "
            "`nbgrader formgrader`."
        )
    return "\n".join(lines)


def conclude(rows: Sequence[Row], problems: Sequence[str]) -> int:
    """Print the table and all differences; return the exit status."""
    print(f"\n{table(rows)}\n")
    found = [*problems, *(text for row in rows for text in differences(row))]
    for text in found:
        print(f"DIFFERENT: {text}")
    if not rows or found:
        print(f"{len(found)} differences. The marks are not right.")
        return 1
    print(f"All {len(rows)} submissions got the expected marks.")
    return 0


def main(folder: Path, source: Path = ROOT / "solutions" / CHAPTER) -> int:
    """Run the demo in `folder` on the chapter's source folder `source`."""
    reason = why_no_sandbox()
    if reason:
        text = "Its class contains attacks, so it is only graded in a sandbox"
        print(f"No demo. {text}, and {reason}.", file=sys.stderr)
        return 1
    course = Course(folder.resolve())
    try:
        rows, problems = run_course(course, source)
    except (DescriptionError, OSError) as error:
        print(f"No demo: {error}", file=sys.stderr)
        return 1
    course.say("done")
    status = conclude(rows, problems)
    print(f"What nbgrader said: {course.log}")
    return status
