"""Every chapter from top to bottom as its author solved it."""

import pytest
from notebook_runs import errors_and_warnings, kernel_without_network, run_chapter

from attention_course.pretrained import MINILM
from autograder import ledger
from autograder.exercises import chapters

pytestmark = pytest.mark.slow


def verdicts(records):
    """What was said of which claim; what hangs on measured times may differ from run to run."""
    return [(r["claim"], "timed" if r["timed"] else r["supported"]) for r in records]


@pytest.mark.parametrize("chapter", sorted(chapters()))
def test_solutions_run_without_a_word_and_without_a_network(chapter, tmp_path):
    notebook = run_chapter("solutions", chapter, tmp_path, kernel=kernel_without_network(tmp_path))
    assert errors_and_warnings(notebook) == []
    kept = [record for record in ledger.read() if record["chapter"] == chapter]
    assert verdicts(ledger.records_in(notebook)) == verdicts(kept), f"autograder ledger {chapter}"


@pytest.mark.parametrize("chapter", ["09_bert", "10_task_heads"])
def test_without_the_models_package_cells_say_what_to_install(chapter, tmp_path):
    hidden = f"import sys; sys.modules[{MINILM.package!r}] = None"
    notebook = run_chapter("solutions", chapter, tmp_path, first=hidden)
    assert errors_and_warnings(notebook) == []
    assert MINILM.requirement in str(notebook.cells)
