import pytest

from autograder.exercises import chapters
from autograder.masters import MasterError, read_master

ANSWER = """# %% nbgrader={"grade_id": "softmax", "solution": true}
def softmax(scores, axis):
    ### BEGIN SOLUTION
    return scores
    ### END SOLUTION
"""
CHECK = """# %% nbgrader={"grade_id": "check-softmax", "grade": true, "points": 3}
check("softmax", softmax)
"""
SOFTMAX = {"softmax": chapters()["02_attention"]["softmax"]}


def read(tmp_path, text, exercises=SOFTMAX):
    path = tmp_path / "02_attention.py"
    path.write_text(text)
    return read_master(path, exercises)


def test_a_good_master_gets_full_metadata(tmp_path):
    text = f'# %% [markdown]\n# # Title\n\n{ANSWER}\n{CHECK}\n# %% tags=["experiment"]\n1 + 1\n'
    master = read(tmp_path, text)
    assert [cell.id for cell in master.notebook.cells] == [f"cell-{i:03d}" for i in range(4)]
    answer, check, experiment = (cell.metadata.nbgrader for cell in master.notebook.cells[1:])
    assert (answer.solution, answer.locked, answer.grade) == (True, False, False)
    assert (check.locked, check.grade, check.points) == (True, True, 3)
    assert (experiment.grade_id, experiment.locked) == ("experiment-1", True)
    assert "return scores" in master.solution_source("softmax")


WRITTEN = '# %% [markdown] nbgrader={"grade_id": "why", "grade": true, "solution": true}\n# Text\n'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (ANSWER.replace("    ### END SOLUTION\n", "") + CHECK, 1, "never closed"),
        (ANSWER.replace("    ### BEGIN SOLUTION\n", "") + CHECK, 1, "without"),
        (ANSWER.replace("    return", "    ### BEGIN SOLUTION\n    return") + CHECK, 1, "inside"),
        (ANSWER.replace("### END", "# END") + CHECK, 1, "alone on its line"),
        (ANSWER.replace("return scores", "return scores)") + CHECK, 1, "does not parse"),
        (ANSWER + ANSWER + CHECK, 6, "is used before, at 02_attention.py:1"),
        (ANSWER, 1, "without a check cell: softmax"),
        (CHECK + ANSWER, 1, "must come before its check"),
        (ANSWER + CHECK.replace("softmax", "sofmax"), 6, "a check without exercise: 'sofmax'"),
        (ANSWER.replace("softmax", "sofmax") + CHECK, 1, "there is no exercise 'sofmax'"),
        (
            ANSWER + CHECK.replace("3", "4"),
            6,
            "gives 4 points, the groups of 'softmax' add up to 3",
        ),
        (ANSWER + CHECK.replace(', "points": 3', ""), 6, "gives None points"),
        (ANSWER + CHECK + "print(1)\n", 6, "exactly one line"),
        (ANSWER + CHECK.replace(", softmax)", ", softmax(1))"), 6, "exactly one line"),
        (ANSWER + CHECK.replace("check-softmax", "test"), 6, "must be 'check-softmax'"),
        (ANSWER.replace('"softmax"', '"soft max"') + CHECK, 1, "letters, digits"),
        (ANSWER + CHECK + '# %% tags=["experimnt"]\n1\n', 8, "unknown tags"),
        (ANSWER + CHECK + "# %%\n### BEGIN SOLUTION\n1\n### END SOLUTION\n", 8, "without nbgrader"),
        (ANSWER + CHECK + WRITTEN, 8, "needs points"),
        ("import numpy\n" + ANSWER + CHECK, 1, "must begin with a cell header"),
    ],
)
def test_a_broken_master_is_refused_with_file_and_line(tmp_path, text, line, words):
    with pytest.raises(MasterError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"02_attention.py:{line}:")
    assert words in str(caught.value)
