"""A notebook's statements and the files that it imports, with who binds which name."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attention_course.source_rules import words
from attention_course.source_rules.syntax import alias_of, constant_text, root_of
from attention_course.source_rules.units import Cell, TooLarge, Unit, read_cell

MOST_CHARACTERS = 2_000_000  # of all cells and files together; far more than anybody writes
MOST_STEPS = 20  # from name to name, as in `a = b`


@functools.cache
def _folder_of(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def is_module(dotted: str) -> bool:
    """Tell whether a dotted name is a module's, without importing anything."""
    root, *parts = dotted.split(".")
    if dotted in sys.modules or (not parts and root in sys.stdlib_module_names):
        return True
    folder = _folder_of(root) if root in words.READABLE else None
    if folder is None or not all(part.isidentifier() for part in parts):
        return not parts
    path = folder.joinpath(*parts)
    return path.is_dir() or path.with_suffix(".py").is_file()


@functools.cache
def _public_names(module: str) -> frozenset[str]:
    """List what `from module import *` binds, for a library that may be imported here."""
    if module.split(".")[0] not in words.READABLE:
        return frozenset()
    try:
        found = importlib.import_module(module)
    except ImportError:
        return frozenset()
    every = getattr(found, "__all__", None) or [n for n in vars(found) if not n.startswith("_")]
    return frozenset(every)


@dataclass
class Notebook:
    """The statements of a notebook and of the files that it imports, with who binds which name.

    `files` maps paths of Python files beside the notebook to their text.
    """

    units: list[Unit] = field(default_factory=list)
    files: Mapping[str, str] = field(default_factory=dict)
    too_large: list[Cell] = field(default_factory=list)
    binders: dict[str, list[Unit]] = field(default_factory=lambda: defaultdict(list))
    readers: dict[str, list[Unit]] = field(default_factory=lambda: defaultdict(list))
    stars: set[str] = field(default_factory=set)
    modules: dict[str, list[Unit]] = field(default_factory=dict)
    _read: int = 0  # characters so far
    _meanings: dict[str, frozenset[str]] = field(default_factory=dict)
    _kinds: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, cells: Iterable[Cell], files: Mapping[str, str] | None = None) -> Notebook:
        """Read cells in order, and the files that the student's code imports."""
        notebook = cls(files=files or {})
        for cell in cells:
            notebook._add(cell)
        return notebook

    def _add(self, cell: Cell) -> None:
        try:
            if self._read + len(cell.source) > MOST_CHARACTERS:
                raise TooLarge(f"more than {MOST_CHARACTERS} characters")
            units = read_cell(cell)
        except TooLarge:
            self.too_large.append(cell)
            return
        self._read += len(cell.source)
        for unit in units:
            self.units.append(unit)
            for name in unit.binds:
                self.binders[name].append(unit)
            for name in unit.reads:
                self.readers[name].append(unit)
            if not cell.module:
                self.stars |= {name.removesuffix(".*") for name in unit.imports.get("*", ())}
            if cell.module:
                self.modules[cell.module].append(unit)
            if cell.own:
                for text in _texts_run(unit):
                    self._add(Cell(f"a text in {cell.label}", text, typed=False))
                for root in {dotted.split(".")[0] for dotted in imported(unit)}:
                    self._add_files(root)

    def _add_files(self, module: str) -> None:
        if module in self.modules:
            return
        found = [p for p in self.files if module in (Path(p).stem, *Path(p).parent.parts)]
        if found:
            self.modules[module] = []
        for path in found:
            self._add(Cell(f"file `{path}`", self.files[path], module=module))

    def meanings(self, name: str) -> frozenset[str]:
        """Give the dotted names that a name of the notebook may stand for by imports."""
        if name not in self._meanings:
            self._meanings[name] = frozenset(self._find_meanings(name))
        return self._meanings[name]

    def _find_meanings(self, name: str) -> set[str]:
        found, seen, waiting = set(), set(), [name]
        while waiting:
            alias = waiting.pop()
            if alias in seen:
                continue
            seen.add(alias)
            for unit in self.binders.get(alias, ()):
                found |= unit.imports.get(alias, set())
                waiting += filter(None, [alias_of(unit.node)])
            bound = alias in self.binders
            for module in self.stars:
                if (module in self.modules and not bound) or alias in _public_names(module):
                    found.add(f"{module}.{alias}")
        return found

    def meanings_of(self, unit: Unit, node: ast.AST) -> frozenset[str]:
        """Give the dotted names that a Name node may stand for by imports."""
        meaning = unit.meanings.get(id(node), frozenset())
        return self.meanings(node.id) if meaning is None else meaning

    def through_files(self, dotted: str) -> set[str]:
        """Follow a dotted name through the imports of the student's own files."""
        found, waiting = set(), [dotted]
        while waiting:
            name = waiting.pop()
            if name in found or name.count(".") > MOST_STEPS:
                continue
            found.add(name)
            root, *parts = name.split(".")
            for unit in self.modules.get(root, ()):
                for place, part in enumerate(parts):
                    rest = parts[place + 1 :]
                    stars = {star.removesuffix("*") + part for star in unit.imports.get("*", ())}
                    known = unit.imports.get(part, set()) | stars
                    waiting += [".".join([start, *rest]) for start in known]
        return found

    def kinds(self, name: str) -> set[str]:
        """Say in which ways a name is bound."""
        if name not in self._kinds:
            self._kinds[name] = {unit.binds[name] for unit in self.binders.get(name, ())}
        return self._kinds[name]


def _texts_run(unit: Unit) -> Iterator[str]:
    """Give the texts that `timeit.timeit("…")` and the like run."""
    for node in ast.walk(unit.node):
        if isinstance(node, ast.Call):
            root = root_of(node.func)
            names = {getattr(root, "id", ""), getattr(node.func, "attr", "")}
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if names & (words.RUN_TEXT | {"Timer", "repeat", "runctx"}):
                yield from (text for text in map(constant_text, given) if text)


def imported(unit: Unit) -> Iterator[str]:
    """Give the dotted names of all imports in a statement, those inside functions too."""
    for node in ast.walk(unit.node):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = node.module or ""
            yield from (f"{prefix}.{alias.name}".lstrip(".") for alias in node.names)
