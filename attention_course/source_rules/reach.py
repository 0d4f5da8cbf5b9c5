"""Find what an answer can reach: the statements that matter for what its function does.

Name by name: what binds it, what assigns into it, and, if it stands for a thing that can be changed
(a list, a queue, an object), whatever else mentions it. A function only matters to those who call
it, unless somebody reaches into it or hands it functions: a scratch cell that compares an answer
with a library's is not part of the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from attention_course.source_rules import words
from attention_course.source_rules.notebook import MOST_STEPS, Notebook, imported, is_module
from attention_course.source_rules.syntax import root_of
from attention_course.source_rules.units import Unit

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_HOLDERS = (ast.List, ast.Dict, ast.Set, ast.Call, ast.ListComp, ast.DictComp, ast.SetComp)


class _Search:
    """One search from the names in `roots`."""

    def __init__(self, notebook: Notebook, roots: Sequence[str]):
        self.notebook, self.roots = notebook, set(roots)
        self.found: dict[int, Unit] = {}
        self.names: set[str] = set()
        self.waiting: list[str] = list(roots)
        self.stateful: dict[str, bool] = {}
        self.shared_modules = {
            dotted.split(".")[0]
            for unit in notebook.units
            for name in unit.patches
            for dotted in notebook.meanings(name)
            if unit.cell.own
        }

    def run(self) -> list[Unit]:
        while self.waiting:
            name = self.waiting.pop()
            if name not in self.names:
                self.names.add(name)
                for unit in self._about(name):
                    if unit.cell.own or name in unit.binds:
                        self._add(unit)
        return [unit for unit in self.notebook.units if id(unit) in self.found]

    def _about(self, name: str) -> Iterator[Unit]:
        """Give the statements that matter because `name` does."""
        book = self.notebook
        yield from book.binders.get(name, ())
        roots = {dotted.split(".")[0] for dotted in book.meanings(name)}
        for root in roots:
            yield from book.modules.get(root, ())
        if roots & self.shared_modules:  # `math.box = []`: a module serves as a place to share
            yield from (u for u in book.units if roots & {d.split(".")[0] for d in _all(book, u)})
        kinds = book.kinds(name)
        for unit in book.readers.get(name, ()):
            shared = name in unit.changes or ("value" in kinds and name not in self.roots)
            called = kinds & {"definition", "value"}
            if shared or (called and self._reaches_into(unit, name)):
                yield unit

    def _add(self, unit: Unit) -> None:
        if id(unit) in self.found:
            return
        self.found[id(unit)] = unit
        self.waiting += unit.reads
        self.waiting += [name for name, kind in unit.binds.items() if kind != "import"]

    def _reaches_into(self, unit: Unit, name: str) -> bool:
        """Tell whether a statement does more with a function than call it with data."""
        if name not in self.stateful:
            self.stateful[name] = self._keeps_state(name)
        stateful = self.stateful[name]
        for node in ast.walk(unit.node):
            if isinstance(node, ast.Attribute) and _is(node.value, name):
                if node.attr not in words.HARMLESS_ATTRIBUTES:
                    return True
            elif isinstance(node, ast.Call) and _is(root_of(node.func), name):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                if stateful or any(self._is_function(unit, value) for value in given):
                    return True
            elif isinstance(node, ast.ClassDef):
                parts = (*node.bases, *(k.value for k in node.keywords), *node.decorator_list)
                if any(_is(root_of(part), name) for part in parts):
                    return True
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                _is(root_of(part), name) for part in node.decorator_list
            ):
                return True
        return False

    def _keeps_state(self, name: str) -> bool:
        """Tell whether calls of a function or class may leave something behind for later calls."""
        binders = self.notebook.binders.get(name, ())
        if any(_has_own_state(part) for unit in binders for part in ast.walk(unit.node)):
            return True
        if name in self.roots:  # an answer that remembers results may still be compared
            return any(u.binds[name] == "value" and name not in u.reads for u in binders)
        seen, waiting = {name}, [name]
        while waiting:
            for unit in self.notebook.binders.get(waiting.pop(), ()):
                for read in unit.reads - seen:
                    if "value" in self.notebook.kinds(read):
                        return True
                    seen.add(read)
                    waiting.append(read)
        return False

    def _is_function(self, unit: Unit, value: ast.AST, steps: int = MOST_STEPS) -> bool:
        """Tell whether an expression may be a function, or hold one: not a plain result."""
        if isinstance(value, ast.Name) and steps:
            return self._name_is_function(unit, value, steps - 1)
        if isinstance(value, ast.Attribute):
            root = root_of(value)
            return isinstance(root, ast.Name) and bool(self.notebook.meanings_of(unit, root))
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name) and self._gives_function(value.func.id, steps):
                return True
            called = value.func.id if isinstance(value.func, ast.Name) else ""
            called = value.func.attr if isinstance(value.func, ast.Attribute) else called
            given = [*value.args, *(keyword.value for keyword in value.keywords)]
            return called not in words.CONSUMERS and any(
                self._is_function(unit, part, steps - 1) for part in given if steps
            )
        parts = {
            ast.Lambda: lambda: [],
            ast.Tuple: lambda: value.elts,
            ast.List: lambda: value.elts,
            ast.Set: lambda: value.elts,
            ast.Dict: lambda: value.values,
            ast.Starred: lambda: [value.value],
            ast.NamedExpr: lambda: [value.value],
            ast.IfExp: lambda: [value.body, value.orelse],
            ast.BoolOp: lambda: value.values,
        }.get(type(value))
        if parts is None or not steps:
            return False
        return isinstance(value, ast.Lambda) or any(
            self._is_function(unit, part, steps - 1) for part in parts()
        )

    def _name_is_function(self, unit: Unit, node: ast.Name, steps: int) -> bool:
        in_notebook = unit.meanings.get(id(node), frozenset()) is None
        if in_notebook and "definition" in self.notebook.kinds(node.id):
            return True
        if any(not is_module(dotted) for dotted in self.notebook.meanings_of(unit, node)):
            return True
        places = self.notebook.binders.get(node.id, ()) if in_notebook else [unit]
        return any(
            self._is_function(place, part.value, steps)
            if isinstance(part, ast.Assign | ast.NamedExpr)
            else isinstance(part, _DEFINITIONS)
            for place in places
            for part in ast.walk(place.node)
            if node.id in _bound_by(part)
        )

    def _gives_function(self, name: str, steps: int) -> bool:
        """Tell whether calling a function of the notebook gives a function or an object."""
        return bool(steps) and any(
            isinstance(unit.node, ast.ClassDef)
            or (isinstance(part, ast.Return) and self._is_function(unit, part.value, steps - 1))
            for unit in self.notebook.binders.get(name, ())
            if unit.binds[name] == "definition"
            for part in ast.walk(unit.node)
        )


def _bound_by(node: ast.AST) -> set[str]:
    """Give the names that one assignment or definition binds."""
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _has_own_state(node: ast.AST) -> bool:
    """Tell whether a class has a list or the like of its own, or a function such a default."""
    if isinstance(node, ast.ClassDef):
        values = [part.value for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        values = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    else:
        return False
    return any(isinstance(value, _HOLDERS) for value in values)


def _is(node: object, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _all(book: Notebook, unit: Unit) -> set[str]:
    found = set(imported(unit))
    for name in unit.reads:
        found |= book.meanings(name)
    return found


def relevant(notebook: Notebook, roots: Sequence[str]) -> list[Unit]:
    """List the statements that an answer can reach, in the notebook's order.

    `roots` are the names that its check reads: `check` and the answer's own.
    """
    return _Search(notebook, roots).run()


def around(notebook: Notebook, units: Iterable[Unit]) -> list[Unit]:
    """List statements with what they use and what uses them, from name to name."""
    found: dict[int, Unit] = {}
    waiting = [(unit, True) for unit in units]
    while waiting:
        unit, onwards = waiting.pop()
        if id(unit) in found or not unit.cell.own:
            continue
        found[id(unit)] = unit
        for name in unit.reads:
            waiting += [(binder, False) for binder in notebook.binders.get(name, ())]
        for name, kind in unit.binds.items() if onwards else ():
            if kind != "import":
                waiting += [(reader, True) for reader in notebook.readers.get(name, ())]
    return list(found.values())
