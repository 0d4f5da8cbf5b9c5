import filecmp
import subprocess
import sys

import nbformat
import pytest

from autograder.build import build, build_into
from autograder.exercises import chapters
from autograder.masters import ROOT, SOLUTIONS, MasterError, master_names


def test_every_chapter_of_exercises_has_a_master_and_the_other_way_round():
    assert master_names() == sorted(chapters())


@pytest.mark.slow
def test_what_is_committed_is_what_the_masters_build(tmp_path):
    build_into(tmp_path, master_names(), SOLUTIONS)
    for name in master_names():
        for kind in ("solutions", "course"):
            built, committed = tmp_path / kind / name, ROOT / kind / name
            files = sorted(path.name for path in built.iterdir())
            assert files == sorted(path.name for path in committed.iterdir() if path.is_file()), (
                f"{committed}: run make notebooks"
            )
            _, different, trouble = filecmp.cmpfiles(built, committed, files, shallow=False)
            assert (different, trouble) == ([], []), f"{committed}: run make notebooks"


@pytest.mark.parametrize("name", master_names())
def test_the_release_shows_no_solution_and_no_output(name):
    release = nbformat.read(ROOT / "course" / name / f"{name}.ipynb", as_version=4)
    source = nbformat.read(ROOT / "solutions" / name / f"{name}.ipynb", as_version=4)
    for cell, original in zip(release.cells, source.cells, strict=True):
        assert "SOLUTION" not in cell.source
        if cell.cell_type == "code":
            assert not cell.outputs
            assert not original.outputs
        if cell.metadata.get("nbgrader", {}).get("solution"):
            assert cell.source != original.source


def test_a_broken_master_leaves_the_old_build_alone(tmp_path):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "course" / "02_attention").mkdir(parents=True)
    old = tmp_path / "course" / "02_attention" / "old.txt"
    old.write_text("still here")
    (tmp_path / "solutions" / "02_attention.py").write_text("# %%\n1\n")
    with pytest.raises(MasterError, match="without a check cell"):
        build(tmp_path, ["02_attention"])
    assert old.read_text() == "still here"


@pytest.mark.parametrize("name", master_names())
def test_what_grading_runs_needs_no_experiment(name):
    """Grading leaves experiments out: no other cell may use a name that only they define."""
    notebook = nbformat.read(SOLUTIONS / name / f"{name}.ipynb", as_version=4)
    kept = [
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "code" and "experiment" not in cell.metadata.get("tags", [])
    ]
    command = ["ruff", "check", "--isolated", "--select=F821", "--output-format=concise", "-"]
    done = subprocess.run(
        [sys.executable, "-m", *command], input="\n".join(kept), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
