"""Put a student's own answers from all chapters together in one file, to be imported.

Nothing of a notebook is run: answers are read as text, taken apart with `ast`, and written down
again with a comment that says where each is from. What is not answered, or is no Python, is named,
and PyTorch's own stands in its place.
"""

from __future__ import annotations

import ast
import builtins
import json
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIBRARY = "my_transformer.py"
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
# Of the course itself nothing is taken over: checks and explorers belong to notebooks.
_LEFT_OUT = ("attention_course", "IPython", "matplotlib")


@dataclass(frozen=True)
class Part:
    """A part of the library: the name that an exercise of a chapter defines."""

    chapter: str
    exercise: str
    name: str
    has_stand_in: bool = True


PARTS = (
    Part("02_attention", "softmax", "softmax"),
    Part("02_attention", "scaled_dot_product_attention", "scaled_dot_product_attention"),
    Part("03_positions", "learned_positions", "learned_positions"),
    Part("04_multi_head", "MultiHeadAttention", "MultiHeadAttention"),
    Part("05_transformer_block", "layer_norm", "layer_norm"),
    Part("05_transformer_block", "mlp", "mlp"),
    Part("05_transformer_block", "encoder_block", "EncoderBlock"),
    Part("05_transformer_block", "padded_encoder", "PaddedEncoder"),
)


class NotTaken(Exception):
    """An answer cannot be part of the library. The message says why."""


@dataclass
class Library:
    """What has been taken so far: imports by the name they give, definitions by name, in order."""

    imports: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, origin: str, imports: dict[str, str], definitions: dict[str, str]) -> None:
        """Take over an answer with all that it needs. Raises NotTaken for two of the same name."""
        for mine, new in ((self.imports, imports), (self.definitions, definitions)):
            for name in new:
                if mine.get(name, new[name]) != new[name]:
                    there = self.origins[name]
                    raise NotTaken(f"it needs a `{name}` other than that of {there}")
        for name in (*imports, *definitions):
            self.origins.setdefault(name, origin)
        self.imports.update(imports)
        self.definitions.update(definitions)


def _grade_id(cell: dict[str, Any]) -> str:
    metadata = cell.get("metadata", {}).get("nbgrader", {})
    return str(metadata.get("grade_id", "")) if metadata.get("solution") else ""


def _read_cells(path: Path) -> list[tuple[str, str]]:
    """Read (grade_id, source) of the code cells of a notebook. Raises NotTaken."""
    if not path.is_file():
        raise NotTaken(f"there is no {path.name}")
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        return [(_grade_id(cell), "".join(cell["source"])) for cell in code]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotTaken(f"{path.name} cannot be read: {error}") from None


def _parsed(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return []  # a cell with a magic, or not finished


def _imported(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Give (name, import statement) for each name that a statement imports."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.name.split(".")[0] not in _LEFT_OUT:
                module, _, last = alias.name.rpartition(".")
                if alias.asname and module:  # the same text as where it is imported "from"
                    yield alias.asname, f"from {module} import {last} as {alias.asname}"
                else:
                    yield alias.asname or alias.name.split(".")[0], f"import {ast.unparse(alias)}"
    elif isinstance(statement, ast.ImportFrom) and not statement.level:
        for alias in statement.names:
            if str(statement.module).split(".")[0] not in _LEFT_OUT:
                text = f"from {statement.module} import {ast.unparse(alias)}"
                yield alias.asname or alias.name, text


def _is_constant(statement: ast.stmt) -> bool:
    try:
        return isinstance(statement, ast.Assign) and bool([ast.literal_eval(statement.value)])
    except (ValueError, TypeError, SyntaxError):
        return False


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, _DEFINITIONS):
        return [statement.name]
    if _is_constant(statement):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


def _text(statement: ast.stmt, source: str) -> str:
    """Give a statement as it was written, its decorators too."""
    first = min([statement, *getattr(statement, "decorator_list", [])], key=lambda n: n.lineno)
    lines = source.splitlines()[first.lineno - 1 : statement.end_lineno]
    return "\n".join(lines)


def _global_names(source: str) -> set[str]:
    """Give the names that a source takes from outside; the source is compiled and not run."""

    def inside(table: symtable.SymbolTable) -> Iterator[str]:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from inside(child)

    return set(inside(symtable.symtable(source, "<answer>", "exec")))


def _is_stub(source: str) -> bool:
    return any(
        isinstance(node, ast.Raise) and node.exc and "NotImplementedError" in ast.unparse(node.exc)
        for node in ast.walk(ast.parse(source))
    )


def _take(cells: list[tuple[str, str]], part: Part) -> tuple[dict[str, str], dict[str, str]]:
    """Find the answer to an exercise and all that it needs: imports, definitions. Raises NotTaken.

    A name means what was defined last up to the answer's cell, or else first after it.
    """
    place = next((i for i, (name, _) in enumerate(cells) if name == part.exercise), None)
    if place is None:
        raise NotTaken("its cell is not in the notebook")
    try:
        ast.parse(cells[place][1])
    except SyntaxError as error:
        raise NotTaken(f"it is no Python: {error.msg}, line {error.lineno} of its cell") from None
    except ValueError as error:
        raise NotTaken(f"it is no Python: {error}") from None
    imports: dict[str, str] = {}
    known: dict[str, str] = {}
    for _, source in (*reversed(cells[place + 1 :]), *cells[: place + 1]):
        for statement in _parsed(source):
            imports.update(_imported(statement))
            known.update(dict.fromkeys(_defined(statement), _text(statement, source)))
    if part.name not in {n for s in _parsed(cells[place][1]) for n in _defined(s)}:
        raise NotTaken(f"its cell does not define `{part.name}`")
    return _with_needs(part.name, imports, known)


def _with_needs(
    wanted: str, imports: dict[str, str], known: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Give the imports and definitions that one needs, those that others need first."""
    used: dict[str, str] = {}
    ordered: dict[str, str] = {}
    open_names: set[str] = set()

    def visit(name: str) -> None:
        if name in ordered or name in open_names:
            return
        open_names.add(name)
        source = known[name]
        if _is_stub(source):
            what = "it is not answered yet" if name == wanted else f"it needs `{name}`, a stub"
            raise NotTaken(what)
        for other in sorted(_global_names(source) - {name}):
            if other in known:
                visit(other)
            elif other in imports:
                used[other] = imports[other]
            elif not hasattr(builtins, other) and not other.startswith("__"):
                raise NotTaken(f"it uses `{other}`, which is no function, class or constant there")
        ordered[name] = source

    visit(wanted)
    return used, ordered


def _library_text(library: Library, stand_ins: list[Part]) -> str:
    """Write the library down as Python."""
    lines = [
        '"""Your own parts, collected from your notebooks; PyTorch\'s where one is missing.',
        "",
        "Made by `attention_course.export.collect`: change the notebooks, then collect again.",
        '"""',
        "",
        *sorted(set(library.imports.values())),
    ]
    for part in stand_ins:
        text = f"from attention_course.stand_ins import {part.name}"
        lines += ["", f"# not yours yet: exercise {part.exercise} of {part.chapter}", text]
    for name, source in library.definitions.items():
        lines += ["", "", f"# yours: `{name}`, from {library.origins[name]}", source]
    return "\n".join(lines) + "\n"


def _write(target: Path, text: str) -> str:
    """Write a file; one that is there already and differs is kept under another name."""
    if not target.exists():
        target.write_text(text, encoding="utf-8")
        return f"{target.name} written"
    if target.read_bytes() == text.encode("utf-8"):
        return f"{target.name} is as it was"
    numbers = (f"{target.stem}_old{number}{target.suffix}" for number in range(1, 10_000))
    kept = next(name for name in numbers if not target.with_name(name).exists())
    target.rename(target.with_name(kept))
    target.write_text(text, encoding="utf-8")
    return f"{target.name} written; what was there before is {kept} now"


def collect(
    course: str | Path = "..",
    target: str | Path = LIBRARY,
    also: Sequence[tuple[str, str, str]] = (),
) -> list[str]:
    """Collect answers from the notebooks of a course and write them to a file.

    Args:
        course: the folder that holds the chapters' folders.
        target: the file that is written. One that is there and differs gets another name first.
        also: more parts as (chapter, exercise, name it defines); they have no stand-in.

    Returns:
        A line for each part, saying whose it is and why, and one for the file.
    """
    library, stand_ins, lines = Library(), [], []
    wanted = (*PARTS, *(Part(*some, has_stand_in=False) for some in also))
    for part in wanted:
        notebook = Path(course) / part.chapter / f"{part.chapter}.ipynb"
        try:
            imports, definitions = _take(_read_cells(notebook), part)
            library.add(notebook.name, imports, definitions)
            lines.append(f"{part.name}: yours, from {notebook.name}")
        except NotTaken as reason:
            instead = "PyTorch's stands in" if part.has_stand_in else "left out"
            lines.append(f"{part.name}: {instead}; exercise {part.exercise}: {reason}")
            if part.has_stand_in and part.name not in library.definitions:
                stand_ins.append(part)
    text = _library_text(library, stand_ins)
    return [*lines, _write(Path(target), text)]
