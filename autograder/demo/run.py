"""`autograder demo`: an instructor's whole round on a bundled class, with plain nbgrader commands.

Release, submissions, autograde, feedback, export; then every mark is compared with the mark that
the description of the submission is worth, and every difference is said in words.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.demo.building import DescriptionError, read_chapter
from autograder.demo.class_list import CHAPTER, CLASS
from autograder.demo.report import Row, conclude, read_row
from autograder.exercises import chapters
from autograder.kernels.sandbox import UNSANDBOXED_VARIABLE, SandboxUnavailable, use_sandbox
from autograder.masters import ROOT

CONFIG = '''"""Made by `autograder demo`: the course's own settings, applied to this folder."""

import os

c = get_config()
load_subconfig("nbgrader_config.py", path={path!r})
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
'''
SOURCE = ROOT / "solutions" / CHAPTER
MADE = ("solutions", "course", "submitted", "autograded", "feedback")


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


def sandbox_problem() -> str:
    """Say why the class cannot be graded in a sandbox, or "" if it can."""
    try:
        if use_sandbox():
            return ""
    except SandboxUnavailable as error:
        return str(error)
    return f"The class contains attacks, which {UNSANDBOXED_VARIABLE}=1 would let loose: unset it."


def main(folder: Path) -> int:
    """Run the demo in `folder`; return 0 only if every mark is the expected one."""
    reason = sandbox_problem()
    if reason:
        print(f"No demo. {reason}", file=sys.stderr)
        return 1
    course = Course(folder.resolve())
    try:
        rows, problems = run_course(course, SOURCE)
    except (DescriptionError, OSError) as error:
        print(f"No demo: {error}", file=sys.stderr)
        return 1
    course.say("done")
    status = conclude(rows, problems)
    print(f"What nbgrader said: {course.log}")
    return status
