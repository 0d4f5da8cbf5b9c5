import shutil
from datetime import datetime, timedelta

import pytest
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties
from traitlets.config import Config

from autograder.build import put_tools_on_path
from autograder.late_policy import (
    Change,
    Extension,
    LatePolicy,
    LatePolicyError,
    LatePolicyPlugin,
    apply_policy,
    parse_policy,
    read_policy,
    unknown_names,
)

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")  # nbgrader's own
NAME = "02_attention"
HOUR, DAY = 3600, 86_400
TEN = LatePolicy(10, grace_hours=2, cap_percent=50)
TEXT = """
percent_per_day = 10
grace_hours = 2
cap_percent = 50

[[extension]]
student = "ada"
assignment = "02_attention"
hours = 48

[[extension]]
student = "Zoë d'Été (2)"
hours = 24
"""


def penalty(late, policy=TEN, student="ben", earned=20):
    return policy.penalty(student, "02_attention", earned, late)


@pytest.mark.parametrize(
    ("late", "points"),
    [
        (0, 0),
        (2 * HOUR, 0),  # within the grace
        (2 * HOUR + 1, 2),  # beyond it the first day counts in full
        (DAY, 2),
        (DAY + 1, 4),
        (5 * DAY, 10),
        (90 * DAY, 10),  # the cap
    ],
)
def test_each_day_begun_costs_its_share(late, points):
    assert penalty(late) == points


def test_nobody_loses_more_than_earned():
    assert penalty(90 * DAY, LatePolicy(100)) == 20
    assert penalty(90 * DAY, LatePolicy(100), earned=0) == 0


def test_extensions_move_the_due_date_of_their_student_only():
    policy = parse_policy(TEXT)
    assert penalty(2 * DAY + HOUR, policy, "ada") == 0
    assert penalty(2 * DAY + 3 * HOUR, policy, "ada") == 2
    assert penalty(2 * DAY + 3 * HOUR, policy, "ben") == 6
    assert penalty(DAY + HOUR, policy, "Zoë d'Été (2)") == 0
    assert policy.penalty("ada", "01_shapes", 20, DAY) == 2


def test_a_policy_is_read_as_written():
    assert parse_policy(TEXT) == LatePolicy(
        10, 2, 50, (Extension("ada", 48, "02_attention"), Extension("Zoë d'Été (2)", 24))
    )
    assert parse_policy("percent_per_day = 5") == LatePolicy(5, 0, 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "percent_per_day must be a number from 0 to 100; there is nothing"),
        ("percent_per_day = '10'", "percent_per_day must be a number"),
        ("percent_per_day = true", "percent_per_day must be a number"),
        ("percent_per_day = -1", "there is -1"),
        ("percent_per_day = nan", "there is nan"),
        ("percent_per_day = 101", "from 0 to 100"),
        ("percent_per_day = 1\ngrace = 2", "no setting 'grace'; there are: cap_percent,"),
        ("percent_per_day = 1\n[extension]\nhours = 1", "double brackets"),
        ("percent_per_day = 1\n[[extension]]\nhours = 1", "extension 1: student must be text"),
        ("percent_per_day = 1\n[[extension]]\nstudent = 'a'", "extension 1: hours must be"),
        (
            "percent_per_day = 1\n[[extension]]\nstudent = 'a'\ndays = 1",
            "extension 1 has no setting 'days'",
        ),
        ("percent_per_day = ", "it is no TOML"),
        ("percent_per_day = 1\nextension = [3]", "extension 1 is no table"),
    ],
)
def test_a_broken_policy_is_refused_by_name(text, message, tmp_path):
    (tmp_path / "late_policy.toml").write_text(text)
    with pytest.raises(LatePolicyError) as error:
        read_policy(tmp_path)
    assert message in str(error.value)
    assert "late_policy.toml" in str(error.value)


def test_no_file_is_no_policy(tmp_path):
    assert read_policy(tmp_path) is None


def plugin(root):
    """The plugin as nbgrader's preprocessor makes it."""
    config = Config()
    config.CourseDirectory.root = str(root)
    preprocessor = AssignLatePenalties(config=config)
    preprocessor.plugin_class = LatePolicyPlugin
    preprocessor.assignment_id = NAME
    preprocessor.init_plugin()
    return preprocessor.plugin_inst


def test_nbgraders_plugin_applies_the_policy(tmp_path):
    assert plugin(tmp_path).late_submission_penalty("ben", 20, DAY) is None
    (tmp_path / "late_policy.toml").write_text(TEXT)
    assert plugin(tmp_path).late_submission_penalty("ben", 20, DAY) == 2
    assert plugin(tmp_path).late_submission_penalty("ada", 20, DAY) == 0
    (tmp_path / "late_policy.toml").write_text("percent")
    assert plugin(tmp_path).late_submission_penalty("ben", 20, DAY) is None


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    put_tools_on_path()
    path = tmp_path_factory.mktemp("course") / "gradebook.db"
    due = datetime(2030, 1, 10)
    with Gradebook(f"sqlite:///{path}") as book:
        book.add_assignment(NAME, duedate=due)
        book.add_notebook(NAME, NAME)
        book.add_grade_cell("check-softmax", NAME, NAME, max_score=20, cell_type="code")
        for student, days in (("ada", 3), ("ben", 1), ("cem", -1)):
            book.add_student(student)
            book.add_submission(NAME, student, timestamp=due + timedelta(days=days))
            book.find_grade("check-softmax", NAME, NAME, student).auto_score = 10
        book.db.commit()
    return path


@pytest.fixture
def gradebook(graded, tmp_path):
    path = shutil.copyfile(graded, tmp_path / "gradebook.db")
    with Gradebook(f"sqlite:///{path}") as book:
        yield book


def test_penalties_are_worked_out_again_without_running_anything(gradebook):
    policy = parse_policy(TEXT)
    changes = apply_policy(gradebook, "02_attention", policy)
    assert changes == [Change("ada", 0, 1), Change("ben", 0, 1)]
    assert apply_policy(gradebook, "02_attention", policy) == []
    # A mark given by hand changes what is lost.
    gradebook.find_grade("check-softmax", NAME, NAME, "ben").manual_score = 20
    gradebook.db.commit()
    assert apply_policy(gradebook, "02_attention", policy) == [Change("ben", 1, 2)]
    # So does another policy; with no penalty left nothing stays behind.
    assert len(apply_policy(gradebook, "02_attention", LatePolicy(0))) == 2
    submission = gradebook.find_submission_notebook(NAME, NAME, "ben")
    assert submission.late_submission_penalty is None


def test_nbgraders_own_extensions_count_too(gradebook):
    gradebook.grant_extension("02_attention", "ben", days=1)
    apply_policy(gradebook, "02_attention", LatePolicy(10))
    assert gradebook.find_submission("02_attention", "ben").late_submission_penalty == 0


def test_without_a_due_date_nothing_is_late(gradebook):
    gradebook.find_assignment("02_attention").duedate = None
    gradebook.grant_extension("02_attention", "ben", days=1)
    gradebook.db.commit()
    assert apply_policy(gradebook, "02_attention", TEN) == []


def test_extensions_for_nobody_are_named(gradebook):
    policy = LatePolicy(1, extensions=(Extension("ada", 1, "03"), Extension("adda", 1)))
    assert unknown_names(gradebook, policy) == ["assignment '03'", "student 'adda'"]
