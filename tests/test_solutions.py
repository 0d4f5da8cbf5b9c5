"""Every chapter from top to bottom as its author solved it."""

import pytest
from notebook_runs import errors_and_warnings, run_chapter

from autograder import ledger
from autograder.exercises import chapters

pytestmark = pytest.mark.slow


def verdicts(records):
    """What was said of which claim; what hangs on measured times may differ from run to run."""
    return [(r["claim"], "timed" if r["timed"] else r["supported"]) for r in records]


@pytest.mark.parametrize("chapter", sorted(chapters()))
def test_solutions_run_without_a_word(chapter, tmp_path):
    notebook = run_chapter("solutions", chapter, tmp_path)
    assert errors_and_warnings(notebook) == []
    kept = [record for record in ledger.read() if record["chapter"] == chapter]
    assert verdicts(ledger.records_in(notebook)) == verdicts(kept), f"autograder ledger {chapter}"
