"""Find the source of an answer in a running notebook, as far as Python still knows it.

A check cannot see the notebook's cells, only what they left behind: functions whose cells Python
keeps for tracebacks, modules, and things taken from libraries. Nor can it tell which of them are
the course's own, so it only looks at what the answer reaches; grading looks at the rest too.
"""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from attention_course.source_rules.notebook import Notebook
from attention_course.source_rules.rules import Finding, search
from attention_course.source_rules.units import Cell


def _namespace(candidate: Any) -> Mapping[str, Any]:
    """Return the names of the notebook that a function or class was made in."""
    functions = (
        [candidate, *vars(candidate).values()] if inspect.isclass(candidate) else [candidate]
    )
    known = (getattr(inspect.unwrap(f), "__globals__", None) for f in functions if callable(f))
    return next((names for names in known if names), {})


def _cell_files(value: Any) -> Iterator[str]:
    """Give the names under which Python keeps the cells that a function or class is from."""
    for part in (value, *vars(value).values()) if inspect.isclass(value) else (value,):
        code = getattr(inspect.unwrap(part) if callable(part) else part, "__code__", None)
        name = getattr(code, "co_filename", "")
        if name in linecache.cache and not os.path.exists(name):
            yield name


def _binding_of(name: str, value: Any) -> str:
    """Write a line that binds a name as the notebook has: to a library's thing, or to something."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    module, own = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if isinstance(module, str) and isinstance(own, str) and module != "__main__":
        return f"from {module} import {own} as {name}"
    return f"{name} = None"


def cells_behind(candidate: Any) -> list[Cell]:
    """List the cells that the functions of a candidate's notebook are from, and its imports."""
    names = {k: v for k, v in _namespace(candidate).items() if k.isidentifier() and k[0] != "_"}
    files = list(dict.fromkeys(file for value in names.values() for file in _cell_files(value)))
    if not files:
        return []
    lines = (_binding_of(name, value) for name, value in names.items())
    sources = ["".join(linecache.getlines(file)) for file in files]
    return [
        Cell("the notebook", "\n".join(line for line in lines if "<" not in line), own=False),
        *(Cell("your cell", source) for source in sources),
    ]


def search_live(candidate: Any, forbidden: Sequence[str]) -> list[Finding]:
    """Search the source of a candidate that is a function or class; see `rules.search`."""
    name = getattr(candidate, "__name__", "")
    if not forbidden or not isinstance(name, str):
        return []
    return search(Notebook.read(cells_behind(candidate)), (name,), forbidden, only_relevant=True)
