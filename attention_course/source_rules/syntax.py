"""Small questions about pieces of Python's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def dotted_imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Give (name bound, dotted name it stands for); `*` keeps its star."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            prefix = "." * node.level + (node.module or "")
            yield alias.asname or alias.name, f"{prefix}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            yield alias.name.split(".")[0], alias.name.split(".")[0]


def root_of(node: ast.AST) -> ast.AST:
    """Walk from `a.b[c](d).e` down to the node of `a`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def constant_text(node: ast.AST) -> str | None:
    """Give the text of a constant or of a sum of constants, else None."""
    parts, stack = [], [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            parts.append(part.value)
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
            stack += [part.right, part.left]
        elif isinstance(part, ast.JoinedStr):
            stack += reversed(part.values)
        else:
            return None
    return "".join(parts)


def is_constant(node: ast.AST | None) -> bool:
    """Tell whether an expression is a number, a text, or a tuple or sum of such."""
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Tuple | ast.UnaryOp | ast.BinOp)
        and all(
            isinstance(part, ast.Constant | ast.Tuple | ast.UnaryOp | ast.BinOp)
            or not isinstance(part, ast.expr)
            for part in ast.walk(node)
        )
    )


def alias_of(node: ast.AST) -> str:
    """Return "b" for the statement `a = b`, else ""."""
    plain = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
    return node.value.id if plain and all(isinstance(t, ast.Name) for t in node.targets) else ""
