"""Read a notebook's code statement by statement: which names each one reads, binds and changes.

Nothing is run. Cells are read one by one, so one that does not parse (and that the kernel refuses
as well) leaves the others readable. A statement that is hidden in a magic such as `%time` is read
like any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from attention_course.source_rules import words
from attention_course.source_rules.syntax import dotted_imports, is_constant, root_of

MOST_WORK = 1_000_000  # characters × magics: IPython reads a cell again for each magic in it
_OPTIONS = r"[ \t]*(?:-\w+[ \t]*\d*[ \t]+)*"
_DROPPED_LINE = re.compile(r"\A\s*%%(?:time|capture)\b[^\n]*")
_CELL_MAGIC = re.compile(rf"\A\s*%%(?:timeit|prun)\b{_OPTIONS}")
_LINE_MAGIC = re.compile(
    rf"^([ \t]*(?:[\w.]+[ \t]*=[ \t]*)?)%(?:time|timeit|prun)\b{_OPTIONS}", re.MULTILINE
)
# What IPython takes out or acts on: magics, prompts, indentation of a whole cell.
_FOR_IPYTHON = re.compile(
    r"(?:^|=)[ \t]*[%!,;/?]|\?[ \t]*$|^[ \t]*(?:>>>|In \[)|\A\s*^[ \t]", re.MULTILINE
)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Cell:
    """A piece of source. `own`: the student wrote it, and not the course.

    `module` is its name if it is a file that other code imports. `typed`: it was run as a cell,
    where IPython takes a line such as `run file.py` for a magic.
    """

    label: str
    source: str
    own: bool = True
    module: str = ""
    typed: bool = True


@dataclass
class Unit:
    """One top-level statement (of an imported file: all of it).

    `binds` maps names of the notebook to how they are bound: "import", "definition" (functions,
    classes), "constant" or "value". `imports` maps names to the dotted names they stand for.
    `changes` holds names whose attributes or items are assigned, `patches` those of them whose own
    attributes are (`math.f = …`). `meanings` maps the id of each Name node that is read to the
    dotted names it may stand for by an import inside a function or file, or to None if the
    notebook's names decide; local variables are not in it.
    """

    cell: Cell
    node: ast.AST
    reads: set[str] = field(default_factory=set)
    binds: dict[str, str] = field(default_factory=dict)
    imports: dict[str, set[str]] = field(default_factory=dict)
    changes: set[str] = field(default_factory=set)
    patches: set[str] = field(default_factory=set)
    meanings: dict[int, frozenset[str] | None] = field(default_factory=dict)


class _Scope:
    """The names that a function, class or comprehension binds."""

    def __init__(self, kind: str, parent: _Scope | None):
        self.kind, self.parent = kind, parent
        self.stores: set[str] = set()
        self.imports: dict[str, set[str]] = {}
        self.outer: set[str] = set()  # declared global

    def holder(self) -> _Scope:
        """Where `:=` binds: not in a comprehension."""
        scope = self
        while scope.kind == "comprehension":
            scope = scope.parent
        return scope


class TooLarge(ValueError):
    """A cell with magics is too large to be read."""


def _parsed(source: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse(source: str) -> list[ast.stmt]:
    """Parse one cell as IPython does. Code that no kernel can run either gives an empty list.

    Raises TooLarge for a cell with magics that is too long to be read.
    """
    body = _parsed(source)
    if body is not None:
        return body
    for_ipython = len(_FOR_IPYTHON.findall(source))
    if len(source) * max(for_ipython, 1) > MOST_WORK:
        if for_ipython:
            raise TooLarge(f"a cell of {len(source)} characters with {for_ipython} magics")
        return []
    from IPython.core.inputtransformer2 import TransformerManager

    if source.split(maxsplit=1)[:1] and source.split()[0] in words.AUTOMAGICS:
        source = f"%{source.strip()}"  # a single line may leave its % out
    inside = _CELL_MAGIC.sub("", _DROPPED_LINE.sub("", source))
    for text in (_LINE_MAGIC.sub(r"\1", inside), source):
        try:
            body = _parsed(TransformerManager().transform_cell(text))
        except (SyntaxError, ValueError, RecursionError):
            body = None
        if body is not None:
            return body
    return []


def _kind(node: ast.AST, name: str) -> str:
    """Say how a statement binds a name."""
    value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if getattr(node, "name", "") == name or isinstance(value, ast.Lambda):
        return "definition"
    return "constant" if is_constant(value) else "value"


class _Reader:
    """Fills one unit. No recursion: a student's code may be nested deeper than Python's limit."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.module = _Scope("module", None)
        self.loads: list[tuple[ast.Name, _Scope]] = []

    def read(self, statements: Sequence[ast.stmt]) -> None:
        stack: list[tuple[ast.AST, _Scope]] = [(node, self.module) for node in statements]
        while stack:
            node, scope = stack.pop()
            stack.extend(self._visit(node, scope))
        self._resolve()
        self.unit.imports = self.module.imports
        if self.unit.cell.module:
            return  # a file's names are not the notebook's
        for name in self.module.stores:
            is_import = name in self.module.imports
            self.unit.binds[name] = "import" if is_import else _kind(self.unit.node, name)

    def _visit(self, node: ast.AST, scope: _Scope) -> Iterator[tuple[ast.AST, _Scope]]:
        if isinstance(node, ast.Name):
            self._name(node, scope)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield from self._definition(node, scope)
            return
        elif isinstance(node, _COMPREHENSIONS):
            yield from self._comprehension(node, scope)
            return
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name, dotted in dotted_imports(node):
                target = self.module if name in scope.outer else scope
                target.stores.add(name)
                target.imports.setdefault(name, set()).add(dotted)
        elif isinstance(node, ast.NamedExpr):
            scope.holder().stores.add(node.target.id)
            yield node.value, scope
            return
        elif isinstance(node, ast.Global):
            scope.outer.update(node.names)
            self.module.stores.update(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            scope.stores.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            scope.stores.add(node.rest)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            root = root_of(node)
            if isinstance(root, ast.Name):
                self.unit.changes.add(root.id)
                if isinstance(node, ast.Attribute) and node.value is root:
                    self.unit.patches.add(root.id)
        yield from ((child, scope) for child in ast.iter_child_nodes(node))

    def _name(self, node: ast.Name, scope: _Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loads.append((node, scope))
        else:
            scope.stores.add(node.id)

    def _definition(self, node: ast.AST, scope: _Scope) -> Iterator[tuple[ast.AST, _Scope]]:
        is_class = isinstance(node, ast.ClassDef)
        inner = _Scope("class" if is_class else "function", scope)
        if not isinstance(node, ast.Lambda):
            scope.stores.add(node.name)
            yield from ((part, scope) for part in node.decorator_list)
        if is_class:
            yield from ((part, scope) for part in (*node.bases, *node.keywords))
        else:
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [part for part in (arguments.vararg, arguments.kwarg) if part]
            inner.stores.update(argument.arg for argument in every)
            defaults = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            notes = [argument.annotation for argument in every if argument.annotation]
            notes += [node.returns] if getattr(node, "returns", None) else []
            yield from ((part, scope) for part in (*defaults, *notes))
        body = node.body if isinstance(node.body, list) else [node.body]
        yield from ((part, inner) for part in body)

    def _comprehension(self, node: ast.AST, scope: _Scope) -> Iterator[tuple[ast.AST, _Scope]]:
        inner = _Scope("comprehension", scope)
        yield node.generators[0].iter, scope
        for number, generator in enumerate(node.generators):
            parts = (generator.target, *generator.ifs, *([generator.iter] if number else []))
            yield from ((part, inner) for part in parts)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        yield from ((part, inner) for part in parts)

    def _resolve(self) -> None:
        for node, scope in self.loads:
            meaning = self._meaning(node.id, scope)
            if meaning != "local":
                self.unit.meanings[id(node)] = meaning
                self.unit.reads.add(node.id)
        self.unit.changes &= self.unit.reads | self.module.stores
        self.unit.patches &= self.unit.changes

    def _meaning(self, name: str, scope: _Scope) -> frozenset[str] | str | None:
        here = scope
        while scope.parent is not None and name not in scope.outer:
            seen = scope is here or scope.kind != "class"
            if seen and name in scope.imports:
                return frozenset(scope.imports[name])
            if seen and name in scope.stores and scope.kind != "class":
                return "local"
            scope = scope.parent
        if self.unit.cell.module and name in self.module.stores:
            return frozenset(self.module.imports.get(name, ())) or "local"
        return None


def read_cell(cell: Cell) -> list[Unit]:
    """Read a cell into its statements; a file becomes one unit, since importing it runs it all.

    Raises TooLarge.
    """
    statements = parse(cell.source)
    if cell.module:
        return [_read_unit(Unit(cell, ast.Module(statements, type_ignores=[])), statements)]
    return [_read_unit(Unit(cell, node), [node]) for node in statements]


def _read_unit(unit: Unit, statements: Sequence[ast.stmt]) -> Unit:
    _Reader(unit).read(statements)
    return unit
