"""The control: what earns nothing in this course wins on nbgrader's own settings."""

import pytest
from corpus.stock import ATTACKS, POINTS, RIGHT, STUB, StockCourse, delete_check

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = StockCourse(tmp_path_factory.mktemp("stock"))
    course.hand_in("ada", RIGHT)
    course.hand_in("ben", STUB)
    course.hand_in("x-again", RIGHT)
    for student, (_, source, edit) in ATTACKS.items():
        course.hand_in(student, source, edit)
    course.nbgrader("autograde", "squares")
    course.hand_in("x-again", STUB, delete_check)
    course.nbgrader("autograde", "squares", "--student", "x-again", "--force")
    return course


def test_honest_work_gets_its_marks(course):
    assert (course.score("ada"), course.score("ben")) == (POINTS, 0)


@pytest.mark.parametrize("student", [*ATTACKS, "x-again"])
def test_the_attack_wins_on_nbgraders_own_settings(course, student):
    assert course.score(student) == POINTS


def test_there_are_enough():
    assert len(ATTACKS) >= 8
