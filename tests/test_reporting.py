import csv
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from autograder.build import put_tools_on_path
from autograder.cli import main
from autograder.course import read_course
from autograder.demo.run import CONFIG
from autograder.exercises import find
from autograder.grading.status import Status
from autograder.grading.verdicts import METADATA_KEY, hide, verdict_output
from autograder.masters import ROOT
from autograder.reporting.answers import safe_name, without_template
from autograder.reporting.course import open_gradebook
from autograder.reporting.marks import Mark, Student, Table, cell_seconds, read_table
from autograder.reporting.page import render
from autograder.reporting.summary import exercise_rows, misconceptions, need_a_look, unrecognised
from autograder.reporting.tables import neutralise, restore, write_csv

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")  # nbgrader's own
NAME = "02_attention"
_, SOFTMAX = find("softmax")
CASES = SOFTMAX.make_cases(3)
TIMES = {
    "iopub.execute_input": "2030-01-01T00:00:00.000000Z",
    "shell.execute_reply": "2030-01-01T00:00:01.500000Z",
}
STUB = '''def softmax(scores, axis):
    """Weights along an axis."""
    # YOUR CODE HERE
    raise NotImplementedError'''
HOSTILE = '=HYPERLINK("http://a.b")<script>alert(1)</script>'


def verdict(function):
    return hide(SOFTMAX.judge(SOFTMAX.run(function, CASES), CASES))


def zeros(scores, axis):
    return np.zeros_like(scores)


RIGHT, WRONG = verdict(SOFTMAX.reference), verdict(zeros)
MISTAKE = verdict(SOFTMAX.misconceptions[0].function)


def cell(kind, text, name, **flags):
    made = kind(text)
    made.metadata["nbgrader"] = {"grade_id": name, "grade": False, "solution": False, **flags}
    return made


def notebook(answer=STUB, why="YOUR ANSWER HERE", judged=None, **kept):
    check = cell(new_code_cell, 'check("softmax", softmax)', "check-softmax", grade=True)
    if judged is not None:
        check.outputs = [verdict_output(judged, None)]
        check.metadata["execution"] = TIMES
    cells = [
        cell(new_code_cell, answer, "softmax", solution=True),
        check,
        cell(new_markdown_cell, why, "why", grade=True, solution=True),
    ]
    return new_notebook(cells=cells, metadata={METADATA_KEY: kept} if kept else {})


def save(made, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)


SUBMISSIONS = {  # id: notebook, mark of the check, mark of the written answer
    "ada": (notebook("def softmax(scores, axis):\n    return mine", judged=RIGHT), 3, 2),
    "ben": (notebook(judged=MISTAKE), MISTAKE.points, 1.5),
    "=cem": (notebook(judged=WRONG), 0, None),
    "dora": (notebook(could_not_run="It is no notebook."), None, None),
    "Zoë d'Été (2)": (notebook(judged=MISTAKE, repairs=["The cell `x` is new."]), 0, 0),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course that has been graded, made without running a kernel."""
    put_tools_on_path()
    folder = tmp_path_factory.mktemp("course")
    config = CONFIG.format(path=str(ROOT / "autograder"))
    (folder / "nbgrader_config.py").write_text(config)
    save(notebook(), folder / "solutions" / NAME / f"{NAME}.ipynb")
    save(notebook(), folder / "course" / NAME / f"{NAME}.ipynb")
    due = datetime(2030, 1, 1)
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "attention") as book:
        book.add_assignment(NAME, duedate=due)
        book.add_notebook(NAME, NAME)
        book.add_grade_cell("why", NAME, NAME, max_score=2, cell_type="markdown")
        book.add_grade_cell("check-softmax", NAME, NAME, max_score=3, cell_type="code")
        book.add_student("eve", first_name="Eve", last_name="Never", email="eve@a.b")
        book.add_student("fay", lms_user_id="77")
        for student, (made, points, written) in SUBMISSIONS.items():
            save(made, folder / "autograded" / student / NAME / f"{NAME}.ipynb")
            (folder / "submitted" / student / NAME).mkdir(parents=True)
            book.add_student(student)
            book.add_submission(NAME, student, timestamp=due + timedelta(hours=30))
            check, why = (
                book.find_grade(name, NAME, NAME, student) for name in ("check-softmax", "why")
            )
            check.auto_score, why.manual_score = points, written
            check.needs_manual_grade = points is None
            why.needs_manual_grade = written is None or student == "ben"  # graded again since
        (folder / "submitted" / "fay" / NAME).mkdir(parents=True)
        book.db.commit()
    return folder


@pytest.fixture
def root(graded, tmp_path):
    """A copy of it for one test."""
    return Path(shutil.copytree(graded, tmp_path / "course"))


def table_of(root):
    _, course = read_course(root)
    with open_gradebook(course, NAME) as gradebook:
        return read_table(course, gradebook, NAME)


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


# --- collecting ---------------------------------------------------------------------------------


def test_marks_verdicts_and_statuses_are_collected(root):
    table = table_of(root)
    assert table.exercises == {"softmax": 3, "why": 2}  # in the notebook's order
    students = {student.id: student for student in table.students}
    assert students["ada"].total == 5
    assert [mark.seconds for mark in students["ada"].marks] == [1.5, None]
    assert students["ben"].marks[0].misconception == SOFTMAX.misconceptions[0].name
    assert students["=cem"].total is None
    assert students["=cem"].earned == 0
    assert students["=cem"].marks[0].message == WRONG.difference.sentence
    assert students["dora"].status == Status("could not run", ("It is no notebook.",))
    assert students["Zoë d'Été (2)"].status.word == "repaired"
    assert students["eve"].status.word == "not submitted"
    assert students["fay"].status.word == "not graded"


def test_a_damaged_graded_notebook_is_said_and_stops_nothing(root):
    (root / "autograded" / "ada" / NAME / f"{NAME}.ipynb").write_text("{")
    (ada,) = (student for student in table_of(root).students if student.id == "ada")
    assert ada.status.word == "not graded"


@pytest.mark.parametrize(
    "times",
    [{}, {"iopub.execute_input": 7, "shell.execute_reply": "x"}, "x", None, []],
)
def test_times_that_a_kernel_made_up_are_no_times(times):
    made = new_code_cell()
    made.metadata["execution"] = times
    assert cell_seconds(made) is None
    made.metadata["execution"] = dict(zip(TIMES, reversed(TIMES.values()), strict=True))
    assert cell_seconds(made) == 0


def test_what_is_not_there_is_said_by_name(root, tmp_path, capsys):
    assert main(["export", "03_x", "--course-dir", str(root)]) == 2
    assert "no assignment '03_x'. It has: 02_attention." in capsys.readouterr().err
    assert main(["report", NAME, "--course-dir", str(root / "solutions")]) == 2
    assert "no course folder" in capsys.readouterr().err
    (root / "gradebook.db").unlink()
    assert main(["report", NAME, "--course-dir", str(root)]) == 2
    assert "grade an assignment first" in capsys.readouterr().err
    assert main(["late", NAME, "--course-dir", str(root)]) == 2


# --- tables -------------------------------------------------------------------------------------


def test_texts_that_spreadsheets_act_on_are_neutralised_and_come_back(tmp_path):
    texts = ["=1", "+1", "-1", "@a", "\t=1", "\r=1", " =1", "'a", "''a", "＝1", "a", "", "1=2"]
    for text in texts:
        assert not neutralise(text).lstrip().startswith(tuple("=+-@＝"))
        assert restore(neutralise(text)) == text
    write_csv(tmp_path / "x.csv", [texts, [-1.5, 0, "\ud800"]])
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.reader(file)
    assert [restore(text) for text in first] == texts
    assert second == ["-1.5", "0", "?"]


def test_export_writes_all_marks(root, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["export", NAME, "--course-dir", str(root), "--to", str(out)]) == 0
    raw = (out / "marks.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    marks = {(restore(row["student"]), row["exercise"]): row for row in rows(out / "marks.csv")}
    assert set(student for student, _ in marks) == {*SUBMISSIONS, "eve", "fay"}
    assert marks["ada", "softmax"]["points"] == "3"
    assert marks["ada", "softmax"]["verdict"] == "passed"
    assert marks["=cem", "why"]["points"] == ""
    assert marks["=cem", "why"]["verdict"] == "needs a mark"
    assert marks["dora", "softmax"]["points"] == ""
    assert marks["dora", "softmax"]["submission"] == "could not run. It is no notebook"
    assert marks["eve", "softmax"]["submission"] == "not submitted"
    assert "'=cem" in raw.decode("utf-8-sig")


def test_lms_files_hold_marks_only_where_there_is_one(root, tmp_path, capsys):
    out = tmp_path / "out"
    main(["export", NAME, "--course-dir", str(root), "--to", str(out), "--column", "Two (12)"])
    said = capsys.readouterr().out
    canvas = (out / "canvas.csv").read_text(encoding="utf-8").splitlines()
    assert canvas[0] == "Student,ID,SIS User ID,SIS Login ID,Section,Two (12)"
    assert canvas[1] == "Points Possible,,,,,5"
    assert "ada,,ada,ada,,5" in canvas
    moodle = {row["Username"]: row for row in rows(out / "moodle.csv")}
    assert set(moodle) == {"ada", "ben", "Zoë d'Été (2)"}
    assert moodle["ben"]["Two (12)"] == f"{MISTAKE.points + 1.5:g}"
    for name, why in (("dora", "could not run"), ("eve", "not submitted"), ("=cem", "wait")):
        assert any(name in line and why in line for line in said.splitlines())
        assert not any(name in line for line in canvas)


def test_partial_marks_are_exported_only_on_request(root, tmp_path):
    out = tmp_path / "out"
    main(["export", NAME, "--course-dir", str(root), "--to", str(out), "--partial"])
    moodle = {restore(row["Username"]): row for row in rows(out / "moodle.csv")}
    assert moodle["=cem"][NAME] == "0"
    assert "dora" not in moodle


def test_export_takes_late_penalties_off(root, tmp_path, capsys):
    (root / "late_policy.toml").write_text("percent_per_day = 10\n")
    out = tmp_path / "out"
    main(["export", NAME, "--course-dir", str(root), "--to", str(out)])
    moodle = {row["Username"]: row for row in rows(out / "moodle.csv")}
    assert moodle["ada"][NAME] == "4"  # two days of 10 percent off 5
    penalties = [row for row in rows(out / "marks.csv") if row["exercise"] == "(late penalty)"]
    assert {row["student"]: row["points"] for row in penalties}["ada"] == "-1"
    capsys.readouterr()
    assert main(["late", NAME, "--course-dir", str(root)]) == 0
    assert "ada" not in capsys.readouterr().out  # nothing changed
    (root / "late_policy.toml").write_text("percent = 10\n")
    assert main(["export", NAME, "--course-dir", str(root), "--to", str(out)]) == 2
    assert "no setting 'percent'" in capsys.readouterr().err


# --- answers ------------------------------------------------------------------------------------


def test_folders_of_answers_have_safe_and_different_names():
    names = ["ada", "a/b", "../x", "a b", "a_b", "-x", ".x", "x.", "é", "è", "", "con:1", "x" * 99]
    made = [safe_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9_-]", name) for name in made)
    assert made[0] == "ada"


def test_what_the_course_gave_is_no_answer():
    assert without_template(STUB, STUB) == ""
    own = 'def softmax(scores, axis):\n    """Weights along an axis."""\n\n    return mine'
    assert without_template(own, STUB) == "    return mine\n"


def test_answers_are_exported_for_each_student(root, tmp_path):
    out = tmp_path / "answers"
    arguments = ["--to", str(tmp_path / "out"), "--answers", str(out)]
    assert main(["export", NAME, "--course-dir", str(root), *arguments]) == 0
    files = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.py")}
    assert files == {"ada/softmax.py": "    return mine\n"}


# --- report -------------------------------------------------------------------------------------


def test_the_report_says_what_to_teach(root, tmp_path):
    path = tmp_path / "r.html"
    assert main(["report", NAME, "--course-dir", str(root), "--to", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    mistake = SOFTMAX.misconceptions[0]
    (group,) = misconceptions(table_of(root))
    assert group.about[0] == "softmax"
    assert group.about[1] == mistake.cause
    assert group.count == 2
    assert "It is no notebook." in page
    assert page.count("data:image/svg+xml;base64,") == 2
    assert all('alt="' in tag and 'alt=""' not in tag for tag in re.findall("<img[^>]*>", page))
    assert not re.search(r"(src|href)=\"(?!data:image/)", page)
    assert "<script" not in page
    looks = {group.about[0]: group.students for group in need_a_look(table_of(root))}
    assert looks["Waits for a mark: why."] == ("=cem",)
    assert looks["Graded again after it was marked by hand: why."] == ("ben",)
    assert looks["The submission: could not run."] == ("dora",)
    assert looks["The submission: not graded."] == ("fay",)


def test_the_same_marks_give_the_same_report(root):
    assert render(table_of(root)) == render(table_of(root))


def class_of(count):
    students = []
    for number in range(count):
        message = f"{HOSTILE} {number // 2}"
        marks = (
            Mark("softmax", 0, 3, verdict="not yet right", message=message, seconds=0.1),
            Mark("mean", number % 4, 3, verdict="partly right", misconception=f"m{number}"),
            Mark("why", None, 2, written=True),
        )
        status = Status("repaired", (f"{HOSTILE} {number}",) * 9)
        students.append(Student(f"{HOSTILE}{number}", status, marks))
    return Table(NAME, {"softmax": 3, "mean": 3, "why": 2}, tuple(students))


def test_the_report_of_a_large_class_is_bounded_and_escaped():
    page = render(class_of(1000))
    assert len(page) < 300_000
    assert "<script" not in page
    assert "more rows are left out" in page
    assert "&lt;script&gt;" in page
    assert "Nobody has full marks in:" in page


def test_exercises_are_summed_up():
    first, second = exercise_rows(class_of(8))
    assert (first.exercise, first.passed, first.attempted, first.students) == ("softmax", 0, 8, 8)
    assert (second.passed, second.rate, second.mean) == (2, 25.0, 1.5)
    assert first.median_seconds == 0.1
    assert second.median_seconds is None
    assert [group.count for group in unrecognised(class_of(4))] == [2, 2]


def test_a_class_without_submissions_has_a_report_too():
    page = render(Table(NAME, {"softmax": 3}, (Student("eve", Status("not submitted")),)))
    assert "No submission has been run yet." in page
    assert render(Table(NAME, {}, ()))
