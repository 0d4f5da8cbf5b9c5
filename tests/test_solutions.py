"""Every chapter from top to bottom as its author solved it."""

import pytest
from notebook_runs import errors_and_warnings, run_chapter

from autograder.exercises import chapters

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("chapter", sorted(chapters()))
def test_solutions_run_without_a_word(chapter, tmp_path):
    notebook = run_chapter("solutions", chapter, tmp_path)
    assert errors_and_warnings(notebook) == []
