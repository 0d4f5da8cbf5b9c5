"""Machine-made wrong answers: a solution with one small change each, made with `ast`.

Type hints, messages of exceptions and strings other than einsum's are left alone; so is code
outside the solution region, which students don't write.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.audit.mutant_operators import OPERATORS, Place, number_of
from autograder.masters import BEGIN, END

ONE_ANSWER = {"strict"}  # keywords whose value changes no right answer
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "ctx", "type_params"}
SKIPPED_NODES = (ast.JoinedStr,)
# Too small to be understood alone: a description shows what they are part of.
TINY = (
    *(ast.Constant, ast.UnaryOp, ast.Name, ast.Tuple, ast.Slice, ast.keyword, ast.Starred),
    *(ast.operator, ast.boolop, ast.unaryop, ast.cmpop),
)
SIMPLE_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)


@dataclass(frozen=True)
class Mutant:
    """A changed source. `description` says what was changed, without line numbers."""

    description: str
    source: str


def places_below(parent: ast.AST, above: Place | None = None) -> Iterator[Place]:
    """Yield all places below `parent`, in the order of the source."""
    for field, value in ast.iter_fields(parent):
        if field in SKIPPED_FIELDS:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            is_fixed = isinstance(node, ast.keyword) and node.arg in ONE_ANSWER
            if not isinstance(node, ast.AST) or isinstance(node, SKIPPED_NODES) or is_fixed:
                continue
            place = Place(parent, field, index, above)
            yield place
            is_negative = isinstance(node, ast.UnaryOp) and number_of(node) is not None
            if not isinstance(node, ast.Raise) and not is_negative:
                yield from places_below(node, place)


def _shown(place: Place) -> Place:
    """Climb from a place to the smallest part around it that can be understood alone."""
    while (isinstance(place.node, TINY) or place.field == "func") and place.above:
        if not isinstance(place.parent, (ast.expr, ast.keyword, *TINY, *SIMPLE_STATEMENTS)):
            break
        place = place.above
    return place


def _described(old: str, new: str) -> str:
    return f"drop `{old}`" if new == "pass" else f"`{old}` → `{new}`"


def _solution_lines(source: str) -> set[int]:
    """Number the lines between the markers of solution regions; all lines if there is none."""
    inside, found = False, set()
    for number, line in enumerate(source.splitlines(), 1):
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif inside:
            found.add(number)
    return found or set(range(1, source.count("\n") + 2))


def make_mutants(source: str) -> list[Mutant]:
    """Make all mutants of `source`, one change each, none twice, always in the same order.

    A change whose description occurs again gets "(occurrence 2)" and so on.
    """
    tree = ast.parse(source)
    lines = _solution_lines(source)
    seen, counts, mutants = {ast.unparse(tree)}, Counter(), []
    for place in [place for place in places_below(tree) if place.line in lines]:
        original, shown = place.node, _shown(place)
        old = ast.unparse(shown.node)
        for node in [node for operator in OPERATORS for node in operator(place)]:
            place.put(node)
            new, text = ast.unparse(shown.node), ast.unparse(tree)
            place.put(original)
            if text in seen or not _compiles(text):
                continue
            seen.add(text)
            description = _described(old, new)
            counts[description] += 1
            again = counts[description]
            suffix = f" (occurrence {again})" if again > 1 else ""
            mutants.append(Mutant(description + suffix, text))
    return mutants


def _compiles(source: str) -> bool:
    try:
        compile(source, "<mutant>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True
