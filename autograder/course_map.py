"""Draw the map of the course, `course/README.md`, from the masters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat.notebooknode import NotebookNode

from autograder.exercises import of_chapter
from autograder.masters import CHECK_PREFIX, MasterError, grade_id, read_master

FILE_NAME = "README.md"
_TITLE = re.compile(r"# (\d\d .+)")
_HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_SUM = re.compile(r"\| \*\*in all\*\* \| \*\*(\d+)\*\* \| \*\*(\d+)\*\* \|")
_EXTRA = re.compile(r"^\|.*\| (\d+) more \| (\d+) more \|", re.MULTILINE)
# What a reader should have done before a chapter, beside Python and NumPy.
NEEDS = {
    "02_attention": ("01",),
    "03_positions": ("02",),
    "04_multi_head": ("02",),
    "05_transformer_block": ("04",),
    "06_gpu": ("04",),
    "07_encoder_decoder": ("05",),
    "08_language_models": ("03", "07"),
    "09_bert": ("05",),
    "10_task_heads": ("09",),
    "11_electra": ("09",),
    "12_distillation": ("09",),
    "13_beyond": ("03", "05", "09"),
    "14_capstone": ("05",),
}
INTRODUCTION = """\
# The map of the course

What is where: for each chapter what it takes, and every exercise, question to answer in words,
experiment and explorer in it, with a link to its place. Points in brackets. What the experiments
showed is in [CLAIMS.md](CLAIMS.md), what the arguments are called in [SYMBOLS.md](SYMBOLS.md).
"""


@dataclass(frozen=True)
class Place:
    """Something in a notebook, and the heading that it stands under."""

    name: str
    heading: str


@dataclass(frozen=True)
class Chapter:
    """What the map says of a chapter; minutes and points as its first cell states them."""

    name: str
    title: str
    minutes: int
    points: int
    extra_minutes: int
    extra_points: int
    exercises: tuple[Place, ...]
    written: tuple[Place, ...]
    experiments: tuple[Place, ...]
    explorers: tuple[Place, ...]
    claims: tuple[str, ...]


def link(text: str, chapter: str, heading: str) -> str:
    """Link to a heading of a chapter, as JupyterLab names headings."""
    anchor = heading.replace("`", "").replace("*", "").replace(" ", "-")
    return f"[{text}]({chapter}/{chapter}.ipynb#{anchor})"


def headed(cells: list[NotebookNode]) -> Iterator[tuple[NotebookNode, str]]:
    """Go through the code cells, each with the last heading above it."""
    heading = ""
    for cell in cells:
        if cell.cell_type == "markdown":
            heading = (_HEADING.findall(cell.source) or [heading])[-1]
        else:
            yield cell, heading


def written_answers(cells: list[NotebookNode]) -> Iterator[Place]:
    """Go through the questions that are answered in words, each with its points."""
    heading = ""
    for cell in cells:
        if cell.cell_type != "markdown":
            continue
        if not grade_id(cell):
            heading = (_HEADING.findall(cell.source) or [heading])[-1]
            continue
        question = heading.removeprefix("In words: ")
        yield Place(f"{question} ({cell.metadata.nbgrader.points:g})", heading)


def _imported(cells: list[NotebookNode], *modules: str) -> set[str]:
    """List the names that a notebook imports from some modules."""
    return {
        alias.asname or alias.name
        for cell in cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for alias in node.names
    }


def _calls(cell: NotebookNode, names: set[str]) -> list[ast.Call]:
    """List a cell's calls of the functions with these names."""
    calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


def read_chapter(path: Path) -> Chapter:
    """Read what the map says of a chapter from its master. Raises MasterError."""
    exercises = of_chapter(path.stem)
    cells = read_master(path, exercises).notebook.cells
    opening = cells[0].source
    title, total = _TITLE.match(opening), _SUM.search(opening)
    if title is None or total is None:
        raise MasterError(
            f"{path.name}:1: the first cell must begin with '# NN Title' and hold a table with "
            "a row '| **in all** | **minutes** | **points** |'"
        )
    extra = _EXTRA.findall(opening)
    shows = _imported(cells, "attention_course.explorers", "attention_course.bertviz_views")
    reports = _imported(cells, "attention_course.claims")
    checks, experiments, explorers, claims = [], {}, [], []
    for cell, heading in headed(cells):
        name = grade_id(cell)
        if name.startswith(CHECK_PREFIX):
            exercise = name.removeprefix(CHECK_PREFIX)
            checks.append(Place(f"`{exercise}` ({exercises[exercise].points:g})", heading))
        elif "experiment" in cell.metadata.get("tags", []):
            experiments[heading] = Place(heading, heading)
            claims += [call.args[0].value for call in _calls(cell, reports)]
        for call in _calls(cell, shows):
            explorers.append(Place(call.func.id.replace("_", " "), heading))
    return Chapter(
        path.stem,
        title[1],
        *map(int, total.groups()),
        sum(int(minutes) for minutes, _ in extra),
        sum(int(points) for _, points in extra),
        tuple(checks),
        tuple(written_answers(cells)),
        tuple(experiments.values()),
        tuple(dict.fromkeys(explorers)),
        tuple(dict.fromkeys(claims)),
    )


def _row(chapter: Chapter) -> str:
    def with_extra(number: int, extra: int) -> str:
        return f"{number} + {extra}" if extra else str(number)

    return (
        f"| [{chapter.title}]({chapter.name}/{chapter.name}.ipynb) "
        f"| {with_extra(chapter.minutes, chapter.extra_minutes)} "
        f"| {with_extra(chapter.points, chapter.extra_points)} "
        f"| {', '.join(NEEDS.get(chapter.name, ())) or '—'} "
        f"| {', '.join(chapter.claims) or '—'} |"
    )


def _section(chapter: Chapter) -> str:
    lists = {
        "Exercises": chapter.exercises,
        "In words": chapter.written,
        "Experiments": chapter.experiments,
        "Explorers": chapter.explorers,
    }
    lines = []
    for name, places in lists.items():
        if not places:
            continue
        links = [link(place.name, chapter.name, place.heading) for place in places]
        lines.append(f"- {name}: {', '.join(links)}")
    return "\n".join([f"## {chapter.title}", "", *lines])


def map_text(masters: list[Path]) -> str:
    """Return the text of the map."""
    chapters = [read_chapter(path) for path in masters]
    table = [
        "| chapter | minutes (+ challenge) | points (+ challenge) | needs | claims shown |",
        "|---|---|---|---|---|",
        *map(_row, chapters),
    ]
    parts = [INTRODUCTION, "\n".join(table) + "\n", *(_section(c) + "\n" for c in chapters)]
    return "\n".join(parts)
