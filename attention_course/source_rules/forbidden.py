"""The names that an exercise forbids, and where code names them: by imports, attributes, texts."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from attention_course.source_rules import words


@dataclass(frozen=True)
class Finding:
    """Something that must not be there: a sentence about `what`, and the place."""

    how: str
    what: str
    cell: str
    line: int

    @property
    def sentence(self) -> str:
        """Say it to the student."""
        return f"Your code {self.how.format(f'`{self.what}`')} ({self.cell}, line {self.line})."


@dataclass(frozen=True)
class Forbidden:
    """The forbidden names of an exercise, as `recording.record_calls` takes them."""

    names: Sequence[str]

    def matches(self, dotted: str) -> bool:
        """Tell whether the dotted name of a library's thing is forbidden."""
        root, *parts = dotted.split(".")
        packages = {name.removesuffix(".*") for name in self.names if name.endswith(".*")}
        if packages & {root, *parts}:
            return True
        return root != words.COURSE and any(
            any(self._fits(part, name) for part in parts)
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
