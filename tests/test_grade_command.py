"""`autograder grade`: the marks of `nbgrader autograde`, whoever runs the jobs, whatever dies."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from distributed import LocalCluster
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.utils import parse_utc

from autograder import cli
from autograder.classrun import command, course, job, local, merging, pool
from autograder.classrun.course import Course
from autograder.classrun.record import Record
from autograder.grading.hidden import course_secret
from autograder.grading.status import Status
from autograder.masters import ROOT, grade_id

CHAPTER = "01_shapes"
CONFIG = '''"""A course made by a test."""

import os

c = get_config()
load_subconfig("nbgrader_config.py", path={path!r})
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
c.LateSubmissionPlugin.penalty_method = "zero"
c.AssignLatePenalties.plugin_class = "nbgrader.plugins.LateSubmissionPlugin"
'''
KEPT_EXERCISES = 3
WRONG = "\n    return None\n"
CRASH = "\n    import os\n    os._exit(1)\n"
ADA, ZOE, DASH, EQUALS, DIGITS = "ada", "Zoë d'Été (2)@x", "-dash", "=1+[2]", "0042"


def small_source():
    """The chapter's first exercises and a written answer, so that a run is short."""
    path = ROOT / "solutions" / CHAPTER / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    checks = [grade_id(c) for c in notebook.cells if grade_id(c).startswith("check-")]
    names = [check.removeprefix("check-") for check in checks[:KEPT_EXERCISES]]
    kept = {*names, *checks[:KEPT_EXERCISES]}
    imports = next(c for c in notebook.cells if c.cell_type == "code")
    notebook.cells = [imports, *(c for c in notebook.cells if grade_id(c) in kept)]
    flags = {"grade": True, "solution": True, "locked": False, "task": False, "schema_version": 3}
    written = {"grade_id": "why", "points": 2, "cell_type": "markdown", **flags}
    notebook.cells.append(new_markdown_cell("Because.", metadata={"nbgrader": written}))
    return notebook, names


def answer(notebook, name, body):
    """Replace the body of an answer."""
    cell = next(c for c in notebook.cells if grade_id(c) == name)
    cell.source = cell.source.partition(":\n")[0] + ":" + body


def hand_in(root, student, text, name=f"{CHAPTER}.ipynb"):
    folder = root / "submitted" / student / CHAPTER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def exercises():
    return small_source()[1]


@pytest.fixture(scope="module")
def ungraded(tmp_path_factory):
    """A course with a release and five submissions; nothing is graded."""
    root = tmp_path_factory.mktemp("class") / "course"
    notebook, names = small_source()
    (root / "solutions" / CHAPTER).mkdir(parents=True)
    nbformat.write(notebook, root / "solutions" / CHAPTER / f"{CHAPTER}.ipynb")
    (root / "nbgrader_config.py").write_text(CONFIG.format(path=str(ROOT / "autograder")))
    nbgrader(root, "generate_assignment", CHAPTER)
    course_secret(root)
    right = nbformat.writes(notebook)
    wrong, crash = (nbformat.reads(right, as_version=4) for _ in range(2))
    answer(wrong, names[1], WRONG)
    answer(crash, names[2], CRASH)
    hand_in(root, ADA, right)
    hand_in(root, ZOE, nbformat.writes(wrong))
    hand_in(root, DASH, right, "a copy (1).ipynb")
    hand_in(root, EQUALS, nbformat.writes(crash))
    hand_in(root, DIGITS, right[: len(right) // 2])
    return root


def nbgrader(root, *arguments):
    program = Path(sys.executable).with_name("nbgrader")
    subprocess.run([program, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def class_of_five(ungraded, tmp_path):
    return shutil.copytree(ungraded, tmp_path / "course")


@pytest.fixture(scope="module")
def plain(ungraded, tmp_path_factory):
    """The same course, graded by `nbgrader autograde`."""
    root = shutil.copytree(ungraded, tmp_path_factory.mktemp("plain") / "course")
    nbgrader(root, "autograde", CHAPTER)
    return root


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster on this machine, as an instructor may have one running."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=None
    ) as running:
        yield running.scheduler_address


@pytest.fixture(scope="module")
def graded(ungraded, cluster, tmp_path_factory):
    """The same course, graded by the cluster, the last student first."""
    root = shutil.copytree(ungraded, tmp_path_factory.mktemp("graded") / "course")
    in_order = course.Course.submissions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            course.Course,
            "submissions",
            lambda self, pattern: dict(reversed(in_order(self, pattern).items())),
        )
        assert grade(root, "--scheduler", cluster) == 1, "one notebook cannot be read"
    return root


@pytest.fixture
def graded_class(graded, tmp_path):
    return shutil.copytree(graded, tmp_path / "course")


def grade(root, *arguments):
    return cli.main(["grade", CHAPTER, "--course-dir", str(root), *arguments])


def open_gradebook(root):
    return Gradebook(f"sqlite:///{root / 'gradebook.db'}", "attention")


def marks(root):
    """Everything that grading leaves behind about marks."""
    found = {}
    with open_gradebook(root) as gradebook:
        for submission in gradebook.assignment_submissions(CHAPTER):
            for notebook in submission.notebooks:
                for g in notebook.grades:
                    key = submission.student_id, g.name
                    found[key] = g.auto_score, g.manual_score, g.needs_manual_grade
                for c in notebook.comments:
                    found[submission.student_id, c.name, "comment"] = c.auto_comment
    return found


def outputs(root):
    """Seed, notes and check panels of every graded notebook, and what lies beside them."""
    found = {}
    for path in sorted((root / "autograded").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix == ".ipynb":
            notebook = nbformat.read(path, as_version=4)
            panels = [c.outputs for c in notebook.cells if grade_id(c).startswith("check-")]
            found[name] = notebook.metadata, panels
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def tree(root):
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


# --- the same marks ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cluster_gives_the_marks_of_nbgrader(plain, graded):
    assert len({student for student, *_ in marks(plain)}) == 5
    assert marks(graded) == marks(plain)
    assert outputs(graded) == outputs(plain)


@pytest.mark.slow
def test_two_local_workers_do_too_when_one_is_killed_in_the_middle_of_a_job(
    class_of_five, plain, tmp_path, monkeypatch, capsys
):
    marker, really_grade = tmp_path / "killed", job.grade_submission

    def grade_and_be_killed_once(submission):
        if submission.student == ADA and not marker.exists():
            folder = Path(tempfile.gettempdir())

            def kill():
                while not list(folder.glob("place-*/submitted/*")):
                    time.sleep(0.01)
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)

            threading.Thread(target=kill, daemon=True).start()
        return really_grade(submission)

    monkeypatch.setattr(local, "grade_submission", grade_and_be_killed_once)
    assert grade(class_of_five, "--workers", "2") == 1
    assert marker.exists()
    assert marks(class_of_five) == marks(plain)
    assert outputs(class_of_five) == outputs(plain)
    said = capsys.readouterr().out
    for student in (ADA, ZOE, DASH, EQUALS, DIGITS):
        assert f"\n{student} " in said
    assert "5 of 5" in said and "slowest cell" in said
    assert f"1 could not be graded: {DIGITS}." in said


@pytest.mark.slow
def test_four_local_workers_give_the_same_marks_as_one(class_of_five, plain):
    assert grade(class_of_five, "--workers", "4") == 1
    assert marks(class_of_five) == marks(plain)
    assert outputs(class_of_five) == outputs(plain)


# --- again ---------------------------------------------------------------------------------------


@pytest.fixture
def no_workers(monkeypatch):
    def refuse(*_):
        raise AssertionError("a worker was asked for")

    monkeypatch.setattr(command, "run_jobs", refuse)


@pytest.mark.slow
def test_nothing_unchanged_is_graded_again(graded_class, no_workers, capsys):
    before = tree(graded_class)
    assert grade(graded_class) == 1, "the notebook that cannot be read still cannot"
    assert "5 of 5 submissions are unchanged" in capsys.readouterr().out
    assert tree(graded_class) == before
    with pytest.raises(AssertionError, match="a worker"):
        grade(graded_class, "--force")
    shutil.rmtree(graded_class / "autograded" / ADA)
    with pytest.raises(AssertionError, match="a worker"):
        grade(graded_class)


@pytest.mark.slow
def test_a_changed_submission_first_dry_then_in_earnest(graded_class, cluster, exercises, capsys):
    right, other = (f"check-{name}" for name in exercises[:2])
    with open_gradebook(graded_class) as gradebook:
        gradebook.find_grade(other, CHAPTER, CHAPTER, ADA).manual_score = 0.5
        gradebook.db.commit()
    path = graded_class / "submitted" / ADA / CHAPTER / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    answer(notebook, exercises[0], WRONG)
    answer(notebook, exercises[1], WRONG)
    nbformat.write(notebook, path)
    was, before = marks(graded_class), tree(graded_class)

    assert grade(graded_class, "--dry-run", "--students", "a*", "--scheduler", cluster) == 0
    assert tree(graded_class) == before
    lost = was[ADA, right][0]
    said = capsys.readouterr().out
    assert f"    {right}: {lost:g} -> 0; was passed, is " in said
    assert f"    {other}:" not in said, "a mark given by hand would not change"
    assert f"{ADA}: " in said and ZOE not in said

    assert grade(graded_class, "--scheduler", cluster) == 1
    said = capsys.readouterr().out
    assert "4 of 5 submissions are unchanged" in said and "1 of 1  ada" in said
    now = marks(graded_class)
    assert {key for key in now if now[key] != was[key]} <= {(ADA, right), (ADA, other)}
    assert now[ADA, right] == (0, None, False)
    assert now[ADA, other] == (0, 0.5, True)


# --- what dies -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_job_that_kills_every_worker_is_given_up_and_the_others_are_not(tmp_path):
    def work(name):
        with (tmp_path / name).open("a") as file:
            file.write("x")
        if name == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "wrong":
            raise ValueError("no such thing")
        return name

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "grade_submission", work)
        todo = deque(lambda name=name: name for name in ("deadly", "wrong", "good"))
        outcomes = dict(local.run_jobs(todo, 1, tmp_path))
    assert outcomes["good"] == "good"
    assert "ended from outside or crashed" in outcomes["deadly"]
    assert "ValueError: no such thing" in outcomes["wrong"]
    assert (tmp_path / "deadly").read_text() == "x" * (1 + local.RETRIES)
    assert (tmp_path / "good").read_text() == "x"


@pytest.mark.slow
def test_what_cannot_be_graded_is_reported_and_waits_for_a_grader(
    graded_class, cluster, monkeypatch, capsys
):
    really_grade = job.grade_submission

    def grade_blanks_only(submission):
        (notebook,) = job.read_notebooks(submission.files).values()
        if not notebook.metadata["attention_course"]["could_not_run"]:
            raise MemoryError("too much")
        return really_grade(submission)

    monkeypatch.setattr(pool, "grade_submission", grade_blanks_only)
    assert grade(graded_class, "--force", "--students", ADA, "--scheduler", cluster) == 1
    assert "MemoryError: too much" in capsys.readouterr().out
    now = {key: value for key, value in marks(graded_class).items() if key[0] == ADA}
    assert all(value == (None, None, True) for key, value in now.items() if len(key) == 2)
    assert any("MemoryError" in (text or "") for key, text in now.items() if len(key) == 3)
    assert (graded_class / "autograded" / ADA / CHAPTER / f"{CHAPTER}.ipynb").is_file()
    assert ADA not in Record.open(graded_class, CHAPTER).entries, "the next run tries again"


# --- one writer ----------------------------------------------------------------------------------


@pytest.fixture
def late_result(class_of_five, exercises):
    """The result of a submission that came a day late, before anything is in the gradebook."""
    with open_gradebook(class_of_five) as gradebook:
        assignment = gradebook.find_assignment(CHAPTER)
        assignment.duedate = parse_utc("2026-01-01 12:00:00 UTC")
        gradebook.db.commit()
    scores = {(CHAPTER, f"check-{name}"): 1.0 for name in exercises} | {(CHAPTER, "why"): None}
    comments = {(CHAPTER, exercises[0]): "repaired"}
    files = {"timestamp.txt": b"2026-01-02 12:00:00 UTC\n"}
    return job.Result(ADA, files, scores, comments, Status("graded"), {})


def test_merging_does_what_autograde_does(class_of_five, exercises, late_result):
    opened = course.Course(class_of_five, CHAPTER)
    first = f"check-{exercises[0]}"
    with opened.open_gradebook() as gradebook:
        merging.merge(gradebook, opened, late_result)
        submission = gradebook.find_submission(CHAPTER, ADA)
        assert submission.score == 3 and submission.total_seconds_late == 86_400
        assert submission.late_submission_penalty == 3, "the course's late policy was asked"
        found = marks(class_of_five)
        assert found[ADA, first] == (1.0, None, False)
        assert found[ADA, "why"] == (None, None, True)
        assert found[ADA, exercises[0], "comment"] == "repaired"

        gradebook.find_grade(first, CHAPTER, CHAPTER, ADA).manual_score = 2
        gradebook.db.commit()
        fewer = dict(list(late_result.scores.items())[:1])
        in_time = {"timestamp.txt": b"2025-12-31 12:00:00 UTC"}
        again = replace(late_result, scores=fewer, comments={}, files=in_time)
        merging.merge(gradebook, opened, again)
        found = marks(class_of_five)
        assert found[ADA, first] == (1.0, 2.0, True)
        assert found[ADA, f"check-{exercises[1]}"] == (None, None, True), "no old score survives"
        assert found[ADA, exercises[0], "comment"] is None
        submission = gradebook.find_submission(CHAPTER, ADA)
        assert not submission.late_submission_penalty


def test_graded_files_are_replaced_as_a_whole(class_of_five, tmp_path):
    opened = course.Course(class_of_five, CHAPTER)
    for content in (b"first", b"second"):
        scratch = tmp_path / content.decode()
        scratch.mkdir()
        opened.replace_autograded(ADA, {content.decode(): content, "a/b": b""}, scratch)
        folder = opened.autograded(ADA)
        assert job.read_files(folder) == {content.decode(): content, "a/b": b""}
        assert folder.joinpath("a", "b").stat().st_mode & 0o777 == 0o444


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["03_none"], ["no assignment '03_none'", CHAPTER]),
        (["../solutions"], ["no assignment"]),
        ([CHAPTER, "--students", "nobody*"], ["no submission to grade", "'nobody*'"]),
        ([CHAPTER, "--course-dir", "/nowhere"], ["/nowhere is no course folder", "--course-dir"]),
        ([CHAPTER, "--scheduler", "tcp://127.0.0.1:9"], ["No Dask scheduler", "127.0.0.1:9"]),
    ],
)
def test_what_is_wrong_is_said(class_of_five, monkeypatch, capsys, arguments, words):
    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1)
    monkeypatch.chdir(class_of_five)
    assert cli.main(["grade", *arguments]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("Nothing was graded. ")
    assert all(word in said.err for word in words)
    assert not (class_of_five / "autograded").exists()


def test_an_assignment_that_is_not_in_the_gradebook_is_entered(class_of_five):
    (class_of_five / "gradebook.db").unlink()
    course = Course(class_of_five, CHAPTER)
    with course.open_gradebook() as gradebook:
        (notebook,) = gradebook.find_assignment(CHAPTER).notebooks
        assert {cell.name for cell in notebook.grade_cells} > {"check-as_column"}
