import nbformat
import pytest
from nbclient import NotebookClient

from attention_course import claims, explorers
from autograder import course_map, ledger
from autograder.build import write_pages
from autograder.exercises import chapters
from autograder.masters import ROOT, SOLUTIONS, grade_id, master_names, read_master

CHAPTERS = {name: course_map.read_chapter(SOLUTIONS / f"{name}.py") for name in master_names()}


def test_the_committed_pages_are_what_is_built(tmp_path):
    write_pages(tmp_path, SOLUTIONS)
    for page in tmp_path.iterdir():
        committed = ROOT / "course" / page.name
        assert page.read_text("utf-8") == committed.read_text("utf-8"), "run make notebooks"


def test_every_exercise_explorer_and_experiment_can_be_reached():
    drawn = (ROOT / "course" / course_map.FILE_NAME).read_text("utf-8")
    for members in chapters().values():
        for name in members:
            assert f"[`{name}` (" in drawn
    for name in explorers.__all__:
        assert f"[{name.replace('_', ' ')}]" in drawn
    for name, chapter in CHAPTERS.items():
        assert chapter.experiments, f"{name} has no experiment"


@pytest.mark.parametrize("name", master_names())
def test_the_points_that_a_chapter_promises_are_those_of_its_cells(name):
    cells = read_master(SOLUTIONS / f"{name}.py", chapters()[name]).notebook.cells
    given = [cell.metadata.nbgrader.get("points", 0) for cell in cells if grade_id(cell)]
    assert CHAPTERS[name].points + CHAPTERS[name].extra_points == sum(given)


@pytest.mark.parametrize("name", master_names())
def test_the_places_on_the_map_hold_all_points_of_a_chapter(name):
    chapter = CHAPTERS[name]
    places = [place.name for place in chapter.exercises + chapter.written]
    points = [float(place.rpartition("(")[2].removesuffix(")")) for place in places]
    assert sum(points) == chapter.points + chapter.extra_points


@pytest.mark.parametrize("name", master_names())
def test_the_first_page_states_the_minutes_of_a_chapter(name):
    rows = (ROOT / "README.md").read_text("utf-8").splitlines()
    (row,) = (row for row in rows if f"(course/{name}/{name}.ipynb)" in row)
    assert row.endswith(f"| {CHAPTERS[name].minutes} min |")


@pytest.mark.parametrize("name", master_names())
def test_every_chapter_but_the_first_says_what_it_needs(name):
    assert (name in course_map.NEEDS) == (name != "01_shapes")
    numbers = {other[:2] for other in master_names()}
    assert set(course_map.NEEDS.get(name, ())) <= numbers


@pytest.mark.slow
def test_what_an_experiment_reports_reaches_the_ledger():
    said = "from attention_course.claims import report\nreport('C1', 3 > 2, 'slope 0 ± 1 | a bar')"
    cells = [nbformat.v4.new_markdown_cell("## Why?"), nbformat.v4.new_code_cell(said)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook).execute()
    (record,) = ledger.records_in(notebook)
    assert record["supported"] is True
    page = ledger.claims_text([{"chapter": "02_attention", **record}])
    assert (
        "[02: Why?](02_attention/02_attention.ipynb#Why?) | yes | slope 0 ± 1 \\| a bar |" in page
    )
    assert page.count("No experiment of this course shows it.") == len(claims.CLAIMS) - 1


def test_an_unknown_claim_is_refused():
    with pytest.raises(ValueError, match="no claim 'C99'; known are C1"):
        claims.report("C99", True, "")
