"""Every chapter from top to bottom as it is handed out."""

from __future__ import annotations

import ast
import re

import pytest
from notebook_runs import errors_and_warnings, run_chapter

from autograder.exercises import chapters
from autograder.masters import CHECK_PREFIX, grade_id

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("chapter", sorted(chapters()))
def test_in_a_release_only_checks_fail_and_say_so_in_one_line(chapter, tmp_path):
    """Experiments have run among the solutions; those that use no answer are left out here."""
    answers = set()

    def left_out(cell):
        names = {node.id for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name)}
        if grade_id(cell).startswith(CHECK_PREFIX):
            answers.update(names)
        return "experiment" in cell.metadata.get("tags", []) and not names & answers

    notebook = run_chapter("course", chapter, tmp_path, left_out)
    checks = [i for i, cell in enumerate(notebook.cells) if cell.source.startswith("check(")]
    told = errors_and_warnings(notebook)
    assert [index for index, _ in told] == checks, told
    for _, text in told:
        assert re.fullmatch(r"CheckFailed: \w+: not attempted, 0 of \d+ cases passed", text)
