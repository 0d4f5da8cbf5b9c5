"""Record whether a candidate called what an exercise asks to do without.

The recorder is Python's own profiler hook, which sees the function object that runs, so an alias,
`getattr` or a `partial` makes no difference. It sees Python functions and built-in functions and
methods; it does not see classes (`np.broadcast`) and ufuncs.
"""

from __future__ import annotations

import contextlib
import fnmatch
import inspect
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

_COURSE = os.path.join(os.path.dirname(__file__), "")
_LIBRARY = re.compile(r"[/\\](site|dist)-packages[/\\]")
# Whoever takes the recorder away has something to hide.
ALWAYS_FORBIDDEN = ("sys.setprofile", "sys.settrace", "threading.setprofile", "threading.settrace")


def _find(name: str) -> Any:
    """Find the object of a dotted name among the modules that are loaded, or None."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found = sys.modules.get(".".join(parts[:cut]))
        if found is not None:
            for part in parts[cut:]:
                found = getattr(found, part, None)
            return found
    return None


def _code_of(function: Any) -> CodeType | None:
    """Return the code that runs when a Python function, decorated or not, is called."""
    function = getattr(function, "_implementation", function)  # NumPy's dispatcher
    return getattr(inspect.unwrap(function), "__code__", None)


class Recorder:
    """Collects what was called while it was on."""

    def __init__(self) -> None:
        self._on = True
        self._codes: set[CodeType] = set()
        self._builtins: dict[int, Any] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Be the profiler hook."""
        if not self._on or frame.f_code.co_filename.startswith(_COURSE):
            return  # threads of the candidate may live on; the course itself may use a library
        if event == "call":
            self._codes.add(frame.f_code)
        elif event == "c_call":
            self._builtins[id(argument)] = argument

    def stop(self) -> None:
        """Record no more, in whatever thread."""
        self._on = False

    def called(self, function: Any) -> bool:
        """Tell whether `function` has run."""
        code = _code_of(function)
        if code is not None:
            return code in self._codes
        return any(
            builtin is function
            or getattr(type(builtin.__self__), builtin.__name__, None) is function
            for builtin in self._builtins.values()
        )

    def called_like(self, pattern: str) -> list[str]:
        """List the library functions that have run and whose own name fits `pattern`.

        A candidate's own functions may have any name.
        """
        python = {code.co_name for code in self._codes if _LIBRARY.search(code.co_filename)}
        names = python | {builtin.__name__ for builtin in self._builtins.values()}
        return sorted(name for name in names if fnmatch.fnmatchcase(name, pattern))

    def called_from(self, package: str) -> list[str]:
        """Give the package's name if any function of it has run."""
        folder = re.compile(rf"{_LIBRARY.pattern}{re.escape(package)}[/\\\\]")
        python = any(folder.search(code.co_filename) for code in self._codes)
        builtin = any(
            str(getattr(owner, "__module__", "")).split(".")[0] == package
            for function in self._builtins.values()
            for owner in (function, type(function.__self__))
        )
        return [package] if python or builtin else []


@contextlib.contextmanager
def record_calls(forbidden: Sequence[str]) -> Iterator[list[str]]:
    """Within the block, record calls; the list that is given holds the forbidden ones afterwards.

    `forbidden` holds dotted names (`numpy.broadcast_shapes`: this very function), patterns
    (`*softmax*`: any library's function of such a name) and packages (`torch.*`: all of it). With
    nothing forbidden nothing is recorded, and code runs at full speed.
    """
    found: list[str] = []
    if not forbidden:
        yield found
        return
    recorder, before = Recorder(), sys.getprofile()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        yield found
    finally:
        sys.setprofile(before if callable(before) else None)
        threading.setprofile(None)
        recorder.stop()
        for name in (*forbidden, *ALWAYS_FORBIDDEN):
            if name.endswith(".*"):
                found += recorder.called_from(name.removesuffix(".*"))
                continue
            if "*" in name:
                found += recorder.called_like(name)
                continue
            function = _find(name)
            if function is not None and recorder.called(function):
                found.append(name)
