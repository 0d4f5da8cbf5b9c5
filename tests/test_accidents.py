"""Real submissions' accidents, graded as one class: each is graded or reported by name."""

import re
import subprocess

import pytest
from corpus.accidents_code import CODE_ACCIDENTS
from corpus.accidents_files import FILE_ACCIDENTS, STUDENTS
from corpus.accidents_notebook import ACCIDENTS
from corpus.class_run import graded_class
from corpus.describing import FULL

pytestmark = pytest.mark.slow

ENTRIES = (*ACCIDENTS, *FILE_ACCIDENTS, *CODE_ACCIDENTS, *STUDENTS)
OPEN: dict[str, str] = {}  # student → why it is not as it should be yet


def parameter(entry):
    reason = OPEN.get(entry.student)
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(entry, id=entry.student, marks=marks)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accidents")
    yield graded_class(folder, ENTRIES)
    subprocess.run(["rm", "-rf", folder])  # too deep for pytest's own cleaning


def test_the_class_run_goes_through(run):
    failed = re.findall(r"error processing assignment '.*?' for student '(.*)'", run.log())
    assert (failed, run.exit_status) == ([], 0)


def test_neighbours_keep_full_marks(run):
    assert len(run.neighbours) >= 10
    for name in run.neighbours:
        result = run.result(name)
        assert (result.earned, str(result.status)) == ({**FULL}, "graded."), name


@pytest.mark.parametrize("entry", [parameter(entry) for entry in ENTRIES])
def test_each_gets_the_right_marks_and_status(run, entry):
    result = run.result(entry.student)
    assert result.status is not None, "not graded"
    assert result.earned == entry.earns
    assert entry.status in (result.status.word, None)
    note = " ".join(result.status.notes)
    assert all(words in note for words in entry.said), note
    if result.status.word != "graded":  # the instructor sees the words too
        assert f"Submission {result.status.word}." in result.comment
    if entry.earns is None:
        assert result.needs_grader
