"""The warm process outside: start it, connect to it, ask it for kernels.

It starts inside bubblewrap, imports what notebooks import and forks a kernel for every submission;
see `warm_kernel.py` for what it does in there. A process that forks workers starts it once, and
every worker connects to it: nothing is imported twice.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attention_course.checking import HIDDEN_CASES_FILE
from autograder.kernels.sandbox import (
    SandboxUnavailable,
    bwrap_command,
    copy_submission_folder,
    use_sandbox,
)

WARM_UP_SECONDS = 120
SOCKET = "warm"
SLOW_MODULE = re.compile(rb"(?:\b|\\n)(?:import|from)\s+torch\b")  # slow to import
LARGEST_LOOKED_AT = 2 * 2**20  # bytes of a submission
USUAL_MODULES = ("torch", "attention_course.plots")  # where it is not known what will be graded


class WarmProcessError(Exception):
    """The warm process did not start or has ended."""


def imported_modules(sources: Iterable[str]) -> tuple[str, ...]:
    """List the modules that code imports; code that is no plain Python counts for nothing."""
    found: set[str] = set()
    for source in sources:
        with contextlib.suppress(SyntaxError, ValueError):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Import):
                    found.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module)
    return tuple(sorted(found))


def _code(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def remove(folder: Path) -> None:
    """Remove a folder that a student's code may have filled, with thousands of nested ones too."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False, capture_output=True)


class WarmProcess:
    """The process inside the sandbox, as the one who started it sees it."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="grade-"))
        self.scratch.chmod(0o711)
        self._starter = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.scratch / SOCKET))
            listener.listen(64)
            self._process = subprocess.Popen(
                bwrap_command(self.scratch, modules, listener.fileno()),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                # bwrap's own environment can be read inside, as that of process 1: it gets none.
                env={"PATH": os.environ.get("PATH", os.defpath)},
                cwd="/",
                pass_fds=[listener.fileno()],
            )

    @property
    def own(self) -> bool:
        """Tell whether this very process, and not one that it was forked from, has started it."""
        return self._starter == os.getpid()

    @property
    def alive(self) -> bool:
        """Tell whether the process can still take requests; only its starter can."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """Return the end of what it said on standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()[-2000:] or "no message"

    def close(self) -> None:
        """End the process, all kernels and the private folders."""
        if self.alive:
            self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._errors.close()
        remove(self.scratch)


class Connection:
    """A conversation with the warm process."""

    def __init__(self, process: WarmProcess) -> None:
        self.process, self.maker = process, os.getpid()
        self._ended: dict[str, int] = {}
        self._changed = threading.Condition()
        self._ready = self._closed = False
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(process.scratch / SOCKET))
        except OSError as error:
            self._socket.close()
            raise WarmProcessError(f"The sandbox has ended: {process.last_words()}") from error
        threading.Thread(target=self._listen, daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._closed, WARM_UP_SECONDS)
        if not self._ready:
            self.close()
            raise WarmProcessError(f"The sandbox did not start: {process.last_words()}")

    @property
    def usable(self) -> bool:
        """Tell whether requests can still be made, by this process."""
        return not self._closed and self.maker == os.getpid()

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                with self._changed:
                    self._ready = True
                    if "ended" in message:
                        self._ended[message["ended"]] = message["status"]
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _send(self, **request: Any) -> None:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise WarmProcessError(f"The sandbox has ended: {self.process.last_words()}") from error

    def start(self, name: str, argv: list[str] | None = None) -> None:
        """Fork a kernel in the folder `scratch/name`; without `argv` one for all cells at once."""
        self._send(start=name, **({} if argv is None else {"argv": argv}))

    def kill(self, name: str) -> None:
        """End a kernel and everything that it started."""
        with contextlib.suppress(WarmProcessError):
            self._send(kill=name)

    def status(self, name: str) -> int | None:
        """Return a kernel's exit status, or None while it runs."""
        if name in self._ended:
            return self._ended[name]
        return -signal.SIGKILL if self._closed else None

    def wait(self, name: str, seconds: float) -> None:
        """Wait until a kernel has ended, but no longer than `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: name in self._ended or self._closed, seconds)

    def close(self) -> None:
        """End the conversation, and with it all kernels that were asked for in it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Shared:
    """The warm process of this grading process and of those that it forks."""

    process: WarmProcess | None = None
    connection: Connection | None = None
    modules: tuple[str, ...] = USUAL_MODULES
    names = itertools.count(1)

    @classmethod
    def start(cls, modules: tuple[str, ...]) -> None:
        """Start the warm process, unless there is one with these modules; don't wait for it."""
        if cls.process is not None and cls.process.own and not set(modules) <= set(cls.modules):
            cls.close()
        if cls.process is None:
            cls.modules = modules
            cls.process = WarmProcess(modules)
            atexit.register(cls.close)

    @classmethod
    def get(cls) -> Connection:
        """Return a connection to a warm process that is ready; start one where there is none."""
        if cls.connection is None or not cls.connection.usable:
            if cls.process is not None and cls.process.own and not cls.process.alive:
                cls.close()
            cls.start(cls.modules)
            try:
                cls.connection = Connection(cls.process)
            except WarmProcessError:
                if cls.process.own:
                    raise
                cls.process = None  # the one that was started before the fork is gone
                cls.start(cls.modules)
                cls.connection = Connection(cls.process)
        return cls.connection

    @classmethod
    def close(cls) -> None:
        """End the warm process, if this process has started it."""
        if cls.connection is not None and cls.connection.maker == os.getpid():
            cls.connection.close()
        if cls.process is not None and cls.process.own:
            cls.process.close()
        cls.process = cls.connection = None


def _asks_for_slow_module(notebook: Path) -> bool:
    """Tell whether a submitted notebook speaks of importing what takes long to import."""
    with contextlib.suppress(OSError):
        if notebook.is_file() and not notebook.is_symlink():
            with notebook.open("rb") as file:
                return bool(SLOW_MODULE.search(file.read(LARGEST_LOOKED_AT)))
    return False


def warm_up(source: Path, submissions: Iterable[Path]) -> None:
    """Start the warm process early for an assignment's source folder, where that is possible.

    It imports while this process does: the first kernel then waits for nothing. PyTorch is imported
    too if a submission alone asks for it, as it would otherwise use up that submission's time.
    """
    code = [text for path in source.glob("*.ipynb") for text in _code(path)]
    with contextlib.suppress(SandboxUnavailable):  # whoever needs it will say so
        if code and use_sandbox():
            files = (file for folder in submissions for file in folder.glob("*.ipynb"))
            slow = ("torch",) if any(map(_asks_for_slow_module, files)) else ()
            Shared.start((*imported_modules(code), *slow))


def make_folder(connection: Connection, submission: Path) -> tuple[str, Path]:
    """Make a kernel's private folder with a copy of a submission's files; return its name too.

    `home` becomes the folder that the student's code works in; `run` is shared with the grader.
    """
    name = f"k{os.getpid()}-{next(Shared.names)}"
    folder = connection.process.scratch / name
    home, run = folder / "home", folder / "run"
    home.mkdir(parents=True)
    run.mkdir()
    copy_submission_folder(submission, home)
    if (submission / HIDDEN_CASES_FILE).is_file():
        shutil.copyfile(submission / HIDDEN_CASES_FILE, run / HIDDEN_CASES_FILE)
    return name, folder
