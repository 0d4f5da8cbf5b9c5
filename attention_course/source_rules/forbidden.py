"""The names that an exercise forbids, and where code names them: by imports, attributes, texts."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from attention_course.source_rules import words


@dataclass(frozen=True)
class Forbidden:
    """The forbidden names of an exercise, as `recording.record_calls` takes them."""

    names: Sequence[str]

    def matches(self, dotted: str) -> bool:
        """Tell whether the dotted name of a library's thing is forbidden."""
        root, *parts = dotted.split(".")
        if root == words.COURSE:
            return False
        return any(
            root == name.removesuffix(".*")
            if name.endswith(".*")
            else any(self._fits(part, name) for part in parts)
            if "*" in name
            else root == name.split(".")[0] and name.split(".")[-1] in parts
            for name in self.names
        )

    def matches_attribute(self, attribute: str) -> bool:
        """Tell whether an attribute of an unknown object is named like something forbidden."""
        return any(
            self._fits(attribute, name) if "*" in name else attribute == name.split(".")[-1]
            for name in self.names
            if not name.endswith(".*")
        )

    def matches_text(self, text: str) -> bool:
        """Tell whether a text is the name of a forbidden function, such as "numpy.einsum"."""
        return any(text.split(".")[-1] == n.split(".")[-1] for n in self.names if "*" not in n)

    @staticmethod
    def _fits(name: str, pattern: str) -> bool:
        return fnmatch.fnmatchcase(name.lower(), pattern.lower())


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
