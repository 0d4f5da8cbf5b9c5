"""What is looked for in a statement: functions `(look, node)` by the kind of node, in tables.

Each gives pairs (how, what): what is wrong, as a sentence with a gap, and the code in the gap.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from attention_course.source_rules import words
from attention_course.source_rules.forbidden import Finding, Forbidden
from attention_course.source_rules.notebook import Notebook, is_module
from attention_course.source_rules.syntax import alias_of, constant_text, root_of
from attention_course.source_rules.units import Unit

CALLED = "uses {}, which this exercise asks you to do without"
HIDES = "uses {}, behind which a forbidden call can hide"
INSIDE = "reaches into the checker with {}"
REACHES = "can reach other code with {}"  # no fault by itself


Found = Iterator[tuple[str, str]]
Looks = Mapping[type, list[Callable[["Look", ast.AST], Found]]]


@dataclass
class Look:
    """A look at one statement of a notebook; `own_attributes`: those that the student defines."""

    notebook: Notebook
    unit: Unit
    forbidden: Forbidden
    own_attributes: frozenset[str]
    parents: dict[int, ast.AST] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.unit.node):
            for child in ast.iter_child_nodes(node):
                self.parents[id(child)] = node

    def found(self, looks: Looks) -> Iterator[Finding]:
        """Give what some looks find: functions `(look, node)` by the kind of node."""
        for node in ast.walk(self.unit.node):
            for look in looks.get(type(node), ()):
                for how, what in look(self, node):
                    yield Finding(how, what, self.unit.cell.label, getattr(node, "lineno", 1))

    def meanings(self, node: ast.AST) -> frozenset[str]:
        """Give the dotted names that a node, if it is a Name, stands for by imports."""
        return (
            self.notebook.meanings_of(self.unit, node)
            if isinstance(node, ast.Name)
            else frozenset()
        )

    def is_outer(self, node: ast.Name) -> bool:
        """Tell whether a Name is read and no local variable."""
        return id(node) in self.unit.meanings

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Give the node that holds another one."""
        return self.parents.get(id(node))

    def chain(self, node: ast.Name) -> tuple[set[str], ast.AST]:
        """Follow a Name outwards through its attributes: (dotted names it gives, last node)."""
        dotted, last = self.meanings(node), node
        while isinstance(self.parent(last), ast.Attribute):
            last = self.parent(last)
            dotted = {f"{name}.{last.attr}" for name in dotted}
        found = {name for start in dotted for name in self.notebook.through_files(start)}
        return found, last

    def is_called(self, node: ast.AST) -> bool:
        """Tell whether a node is what a call calls."""
        call = self.parent(node)
        return isinstance(call, ast.Call) and call.func is node


# --- names of what is forbidden ------------------------------------------------------------------


def _forbidden_import(look: Look, node: ast.Name) -> Found:
    for dotted in look.chain(node)[0]:
        if look.forbidden.matches(dotted):
            yield CALLED, dotted


def _forbidden_attribute(look: Look, node: ast.Attribute) -> Found:
    below = node.value
    while isinstance(below, ast.Attribute):
        below = below.value
    if look.meanings(below) or not look.forbidden.matches_attribute(node.attr):
        return  # of an import, the whole dotted name is looked at
    if look.meanings(root_of(node)) or node.attr not in look.own_attributes:
        yield CALLED, node.attr


def _texts_of(look: Look, node: ast.Call) -> list[str | None]:
    """Give the texts by which a call looks attributes up; None for one that is made up."""
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    names = {name} | {dotted.split(".")[-1] for dotted in look.meanings(node.func)}
    for known, place in words.BY_TEXT.items():
        if known in names:
            given = node.args[place]
            return [constant_text(part) for part in given] or [None]
    return []


def _forbidden_lookup(look: Look, node: ast.Call) -> Found:
    for text in _texts_of(look, node):
        for name in (text or "").split("."):
            if look.forbidden.matches_attribute(name):
                yield CALLED, name


def _forbidden_text(look: Look, node: ast.AST) -> Found:
    whole = not isinstance(look.parent(node), ast.Expr | ast.BinOp)  # and no docstring
    text = constant_text(node) if whole else None
    if text and look.forbidden.matches_text(text):
        yield CALLED, text


def _forbidden_pattern(look: Look, node: ast.MatchClass) -> Found:
    for name in node.kwd_attrs:
        if look.forbidden.matches_attribute(name):
            yield CALLED, name


NAMES = {
    ast.Name: [_forbidden_import],
    ast.Attribute: [_forbidden_attribute],
    ast.Call: [_forbidden_lookup],
    ast.Constant: [_forbidden_text],
    ast.BinOp: [_forbidden_text],
    ast.JoinedStr: [_forbidden_text],
    ast.MatchClass: [_forbidden_pattern],
}

# --- what cannot be read in relevant code --------------------------------------------------------


def _hiding_import(look: Look, node: ast.Name) -> Found:
    dotted, last = look.chain(node)
    for name in dotted:
        if name.split(".")[0] in look.notebook.modules or look.forbidden.matches(name):
            continue
        alias = alias_of(look.unit.node) and look.parent(last) is look.unit.node
        by_text = name.split(".")[-1] in words.BY_TEXT and not look.is_called(last)
        if not _is_readable(name):
            yield HIDES, name
        elif by_text or (is_module(name) and not alias):
            yield HIDES, f"{name} as a value"


def _is_readable(dotted: str) -> bool:
    root, *parts = dotted.split(".")
    if root not in words.READABLE:
        return bool(parts) and parts[0] in words.READABLE_PARTS.get(root, ())
    private = any(p.startswith("_") and p not in words.HARMLESS_ATTRIBUTES for p in parts)
    unreadable = any(f"{dotted}.".startswith(f"{part}.") for part in words.UNREADABLE_PARTS)
    return not (private or unreadable or (set(parts) & words.HIDDEN_MODULES))


_GIVEN = words.GIVEN_BY_IPYTHON | words.HARMLESS_ATTRIBUTES | {"__class__", "__file__"}
_BUILTINS = words.UNREADABLE_BUILTINS | words.REACHING_BUILTINS | {"get_ipython"}


def _hiding_builtin(look: Look, node: ast.Name) -> Found:
    if not look.is_outer(node) or look.meanings(node):
        return
    special = node.id.startswith("__") and node.id not in words.HARMLESS_ATTRIBUTES
    own = node.id in look.notebook.binders
    if node.id in _BUILTINS or re.fullmatch(words.IPYTHON_NAMES, node.id):
        yield HIDES, node.id  # even if the notebook binds it as well: that may be a pretence
    elif not own and (special or node.id in words.RELEVANT_BUILTINS):
        yield HIDES, node.id
    elif node.id in words.BY_TEXT and not look.is_called(node):
        yield HIDES, f"{node.id} as a value"
    elif not own and not hasattr(builtins, node.id) and node.id not in _GIVEN:
        yield HIDES, f"{node.id} (which no cell defines)"


_LEADING = words.UNREADABLE_ATTRIBUTES | words.REACHING_ATTRIBUTES


def _hiding_attribute(look: Look, node: ast.Attribute) -> Found:
    if node.attr in _LEADING | words.OUTSIDE_ATTRIBUTES:
        yield HIDES, node.attr


def _hiding_lookup(look: Look, node: ast.Call) -> Found:
    for text in _texts_of(look, node):
        if text is None:
            yield HIDES, "a name that is put together while the code runs"
        elif set(text.split(".")) & (_LEADING | words.HIDDEN_MODULES):
            yield HIDES, text


def _hiding_pattern(look: Look, node: ast.MatchClass) -> Found:
    for name in node.kwd_attrs:
        if name in _LEADING | words.HIDDEN_MODULES:
            yield HIDES, name


HIDING = {
    ast.Name: [_hiding_import, _hiding_builtin],
    ast.Attribute: [_hiding_attribute],
    ast.Call: [_hiding_lookup],
    ast.MatchClass: [_hiding_pattern],
}

# --- what the rest of a notebook must not do beside a forbidden call -----------------------------


def _door_import(look: Look, node: ast.Name) -> Found:
    for name in look.chain(node)[0]:
        root, *parts = name.split(".")
        if root == words.COURSE:
            if not parts or parts[0] in words.COURSE_INSIDE:
                yield INSIDE, name
        elif _is_harmless(name):
            continue
        elif root in words.UNREADABLE_MODULES or _runs_magic(look, node, parts[-1:]):
            yield HIDES, name
        elif root in words.REACHING_MODULES:
            yield REACHES, name


def _is_harmless(dotted: str) -> bool:
    root, part, *_ = *dotted.split("."), "", ""
    some = words.READABLE_PARTS.get(root, ())
    return part in some or any(f"{dotted}.".startswith(f"{p}.") for p in words.HARMLESS_PARTS)


def _runs_magic(look: Look, node: ast.Name, names: list[str]) -> bool:
    """Tell whether a Name is that of `get_ipython`, used for more than a harmless magic."""
    if names != ["get_ipython"]:
        return False
    method = look.parent(look.parent(node))
    call = look.parent(method) if isinstance(method, ast.Attribute) else None
    if not isinstance(call, ast.Call) or method.attr not in words.IPYTHON_RUNS:
        return True
    texts = [constant_text(part) or "" for part in call.args[:2]] or [""]
    if method.attr.startswith("run_") and texts[0] not in words.HARMLESS_MAGICS:
        return True
    # IPython runs what stands in braces, and `%config` what it is given.
    return "(" in texts[-1] and ("{" in texts[-1] or texts[0] == "config")


def _door_builtin(look: Look, node: ast.Name) -> Found:
    if not look.is_outer(node) or look.meanings(node):
        return
    if node.id in words.UNREADABLE_BUILTINS or _runs_magic(look, node, [node.id]):
        yield HIDES, node.id
    elif node.id in words.REACHING_BUILTINS:
        yield REACHES, node.id
    elif _is_automagic(look, node.id):
        yield HIDES, f"%{node.id}"


def _is_automagic(look: Look, name: str) -> bool:
    harmful = name in words.AUTOMAGICS - {"time", "timeit"}
    return harmful and look.unit.cell.typed and name not in look.notebook.binders


def _door_attribute(look: Look, node: ast.Attribute) -> Found:
    if node.attr in words.UNREADABLE_ATTRIBUTES:
        yield HIDES, node.attr
    elif node.attr in words.REACHING_ATTRIBUTES:
        yield REACHES, node.attr
    if not isinstance(node.ctx, ast.Load):
        for name in look.meanings(node.value):
            if name.split(".")[0] in sys.stdlib_module_names:
                yield HIDES, f"{name}.{node.attr} = …"
        for name in look.meanings(root_of(node)):
            if name.split(".")[0] == words.COURSE:
                yield INSIDE, f"{name}.{node.attr} = …"


def _door_text(look: Look, node: ast.AST) -> Found:
    text = constant_text(node) or ""
    root, _, inside = text.partition(".")
    if root == words.COURSE and inside.split(".")[0] in words.COURSE_INSIDE:
        yield INSIDE, text


DOORS = {
    ast.Name: [_door_import, _door_builtin],
    ast.Attribute: [_door_attribute],
    ast.Constant: [_door_text],
    ast.BinOp: [_door_text],
}
