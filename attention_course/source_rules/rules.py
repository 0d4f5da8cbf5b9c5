"""What an answer's source must not hold if its exercise forbids calls, and where it holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attention_course.comparing import Difference
from attention_course.judging import NEXT_STEPS, Verdict
from attention_course.source_rules.forbidden import Finding, Forbidden
from attention_course.source_rules.looks import (
    CALLED,
    DOORS,
    HIDES,
    HIDING,
    NAMES,
    REACHES,
    Look,
    Looks,
)
from attention_course.source_rules.notebook import Notebook
from attention_course.source_rules.reach import around, relevant
from attention_course.source_rules.units import Unit

MOST_SHOWN = 3  # findings that a verdict names


def _attributes_defined(units: Sequence[Unit]) -> frozenset[str]:
    """List the methods and attributes that code defines itself."""
    found = set()
    for unit in units:
        for node in ast.walk(unit.node):
            if isinstance(node, ast.ClassDef):
                found |= {getattr(part, "name", "") for part in node.body}
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                found.add(node.attr)
    return frozenset(found)


def _imported_as(notebook: Notebook, names: Sequence[str], terms: Forbidden) -> Iterator[Finding]:
    """Find imports that put something forbidden in the place of the answer itself."""
    for name in names:
        for unit in notebook.binders.get(name, ()):
            for start in unit.imports.get(name, ()):
                for dotted in filter(terms.matches, notebook.through_files(start)):
                    yield Finding(CALLED, dotted, unit.cell.label, unit.node.lineno)


def _is_definition(unit: Unit) -> bool:
    return "definition" in unit.binds.values()


def search(
    notebook: Notebook, names: Sequence[str], forbidden: Sequence[str], only_relevant: bool = False
) -> list[Finding]:
    """Search a notebook for what one exercise forbids; return what is found.

    `names` are those that the exercise's check reads: `check` and the answer's. What the answer
    can reach is searched for forbidden names and for all that could hide one; the rest of the
    student's code for ways into the answer or the checker, and where there is one, what goes that
    way for forbidden names too. A search that cannot tell the student's cells from the course's
    leaves the rest out: `only_relevant`. If nothing is forbidden, nothing is searched.
    """
    if not forbidden:
        return []
    terms = Forbidden(forbidden)
    own = [unit for unit in notebook.units if unit.cell.own]
    near = relevant(notebook, names)
    attributes = _attributes_defined(near)

    def looked(units: Sequence[Unit], looks: Looks) -> Iterator[Finding]:
        for unit in units:
            yield from Look(notebook, unit, terms, attributes).found(looks)

    found = list(_imported_as(notebook, names, terms))
    found += looked([unit for unit in near if unit.cell.own or _is_definition(unit)], NAMES)
    found += looked([unit for unit in near if unit.cell.own], HIDING)
    searched = [] if only_relevant else own
    doors = [(unit, door) for unit in searched for door in looked([unit], DOORS)]
    found += looked(around(notebook, [u for u, door in doors if door.how == REACHES]), NAMES)
    found += [door for _, door in doors if door.how != REACHES]
    found += [Finding(HIDES, "a cell too large to be read", c.label, 1) for c in notebook.too_large]
    return list(dict.fromkeys(found))


def refuse(verdict: Verdict, findings: Sequence[Finding]) -> Verdict:
    """Take the points of a verdict away if anything was found, and say what and where."""
    if not findings or not verdict.points:
        return verdict
    sentences = [finding.sentence for finding in findings[:MOST_SHOWN]]
    more = len(findings) - len(sentences)
    if more:
        sentences.append(f"There {'is' if more == 1 else 'are'} {more} more of this kind.")
    return replace(
        verdict,
        status="not yet right",
        points=0,
        groups=tuple(replace(group, points=0) for group in verdict.groups),
        difference=Difference("forbidden call", " ".join(sentences)),
        failed_case=None,
        case_about="",
        misconception="",
        cause="",
        next_step=NEXT_STEPS["forbidden call"],
        details={},
    )
