"""Attacks, graded as one class: none earns more than it is worth, none harms anyone."""

import re
import socket
import subprocess
import threading

import nbformat
import pytest
from corpus.attacks_forging import FORGING_ATTACKS
from corpus.attacks_library import HONEST_ANSWERS, LIBRARY_ATTACKS
from corpus.attacks_messages import MESSAGE_ATTACKS
from corpus.attacks_notebook import NOTEBOOK_ATTACKS
from corpus.attacks_system import (
    MARKER,
    SPY_SEES_NOTHING,
    SYSTEM_ATTACKS,
    port_of,
)
from corpus.class_run import ClassRun, processes_with
from corpus.describing import FULL, POINTS, RIGHT, Entry
from nbgrader.api import Gradebook

pytestmark = pytest.mark.slow

ENTRIES = (*NOTEBOOK_ATTACKS, *FORGING_ATTACKS, *MESSAGE_ATTACKS, *LIBRARY_ATTACKS, *SYSTEM_ATTACKS)


class Targets:
    """Servers outside the sandbox that nobody inside may reach."""

    def __init__(self, root):
        self.reached = []
        port = port_of(str(root))
        tcp = socket.create_server(("127.0.0.1", port))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", port))
        abstract, local = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        abstract.bind(f"\0{root}")
        local.bind(str(root / "target-socket"))
        for kind, server in {"tcp": tcp, "abstract": abstract, "local": local}.items():
            server.listen()
            threading.Thread(target=self.accept, args=(kind, server), daemon=True).start()
        threading.Thread(target=self.receive, args=(udp,), daemon=True).start()
        self.port = port

    def accept(self, kind, server):
        while True:
            server.accept()
            self.reached.append(kind)

    def receive(self, server):
        server.recvfrom(100)
        self.reached.append("udp")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("attacks")
    run = ClassRun(root, (*ENTRIES, *HONEST_ANSWERS))
    run.prepare()
    run.targets = Targets(root)
    run.before = run.course.fingerprint()
    run.names_before = {path.name for path in root.iterdir()}
    run.grade()
    run.after = run.course.fingerprint()
    run.names_after = {path.name for path in root.iterdir()}
    yield run
    subprocess.run(["rm", "-rf", root])


def test_the_class_run_goes_through(run):
    failed = re.findall(r"error processing assignment '.*?' for student '(.*)'", run.log())
    assert (failed, run.exit_status) == ([], 0)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.student)
def test_each_attack_earns_only_what_is_right(run, entry):
    result = run.result(entry.student)
    assert result.status is not None, "not graded"
    assert result.earned == entry.earns
    assert entry.status in (result.status.word, None)
    note = " ".join(result.status.notes)
    assert all(words in note for words in entry.said), note


@pytest.mark.parametrize("entry", HONEST_ANSWERS, ids=lambda entry: entry.student)
def test_what_only_looks_like_a_forbidden_call_keeps_its_marks(run, entry):
    assert run.result(entry.student).earned == entry.earns


def test_neighbours_keep_full_marks(run):
    assert len(run.neighbours) >= 6
    for name in run.neighbours:
        result = run.result(name)
        assert (result.earned, str(result.status)) == ({**FULL}, "graded."), name


def test_nobody_got_marks_by_hand_or_for_cells_that_are_not_ours(run):
    with Gradebook(f"sqlite:///{run.root / 'gradebook.db'}", "attention") as gradebook:
        for submission in gradebook.assignment_submissions("01_shapes"):
            assert submission.max_score == POINTS
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    assert grade.manual_score is None
                    assert grade.extra_credit is None
                    assert grade.name.startswith("check-")


def test_no_file_is_changed_or_planted(run):
    changed = {name for name in run.before if run.before[name] != run.after.get(name)}
    assert changed == {"submitted/n-gradebook/01_shapes/gradebook.db"}  # grading writes into it
    assert set(run.after) == set(run.before)
    new = run.names_after - run.names_before
    assert new <= {"autograded", "feedback", ".autograder-secret"}


def test_nothing_is_reached_and_nothing_is_left_running(run):
    assert run.targets.reached == []
    socket.create_connection(("127.0.0.1", run.targets.port)).close()
    for _ in range(50):
        if "tcp" in run.targets.reached:
            break
        threading.Event().wait(0.1)
    assert run.targets.reached == ["tcp"]  # the targets do notice
    assert processes_with(MARKER) == []


def test_nothing_is_left_for_the_next_student(run):
    notebook = nbformat.read(run.notebook("s-traces-spied"), 4)
    text = "".join(o.get("text", "") for c in notebook.cells for o in c.get("outputs", []))
    assert SPY_SEES_NOTHING in text


def test_graded_notebooks_stay_small(run):
    for path in (run.root / "autograded").rglob("*.ipynb"):
        assert path.stat().st_size < 40 * 2**20, path


# --- handed in again -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """One student hands in a right notebook, and later others; the marks of each time."""
    run = ClassRun(tmp_path_factory.mktemp("again"), [Entry("eve", "right")])
    run.prepare()
    run.grade()
    run.seeds, run.results = [], []

    def remember():
        run.results.append(run.result("eve").earned)
        metadata = nbformat.read(run.notebook("eve"), 4).metadata["attention_course"]
        run.seeds.append(metadata["seed"])

    def drop_checks(notebook, folder):
        notebook.cells = [c for c in notebook.cells if not c.source.startswith("check(")]

    def add_data(notebook, folder):
        (folder / "answers.json").write_text("{}")

    remember()
    for entry in (
        Entry("eve", "nothing right, checks deleted", edit=drop_checks, only=True),
        Entry("eve", "right again", answers=RIGHT),
        Entry("eve", "the same notebook with another file beside it", edit=add_data),
    ):
        run.hand_in(entry)
        run.grade("--student", "eve", "--force")
        remember()
    return run


def test_points_of_an_earlier_time_are_not_kept(again):
    assert again.results == [{**FULL}, {}, {**FULL}, {**FULL}]


def test_other_code_or_other_files_get_other_cases(again):
    assert again.seeds[0] == again.seeds[2]  # a regrade is judged on the same cases
    assert len(set(again.seeds)) == 3


def test_the_corpus_is_as_large_as_it_should_be():
    assert sum(entry.parts for entry in ENTRIES) >= 40
