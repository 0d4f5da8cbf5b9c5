"""Runs inside the sandbox: import once, then fork one locked-up kernel after another.

`warm.py` starts it inside bubblewrap as a plain file: the `autograder` package is not visible
there. It holds nothing secret. Graders connect to the socket that it inherits; requests come as
JSON lines, one answer line each:

    {"start": NAME, "argv": […]}   fork a kernel in the private folder NAME
    {"start": NAME}                fork one that runs all cells in one go (`batch_kernel.py`)
    {"kill": NAME}                 end it and everything that it started
    → {"ready": true}, {"started": NAME}, {"ended": NAME, "status": N}

`locked_kernel.py` makes the kernels. When a grader goes away its kernels end, and with standard
input this process does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time

import batch_kernel
import locked_kernel
import memory_watch

# What a kernel would otherwise import while it starts, after the packages of the course.
WARM_MODULES = (
    "numpy",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "attention_course.checking",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.debugger",
    "IPython.extensions.storemagic",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "sqlite3",
    "tornado.platform.asyncio",
)

LOOK_SECONDS = 0.5  # between two looks at how much memory kernels use


class Kernel:
    """A kernel that runs: who asked for it, and the process that watches over it."""

    def __init__(self, name: str, grader: Grader, slot: int, watcher: int):
        self.name, self.grader, self.slot, self.watcher = name, grader, slot, watcher

    def kill(self) -> None:
        """End it and everything that it started."""
        os.kill(self.watcher, signal.SIGTERM)


class Grader:
    """One connection over which requests come."""

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self._unread = b""

    def say(self, **message: object) -> None:
        """Answer; a grader that is gone needs no answer."""
        with contextlib.suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")

    def requests(self) -> list[dict] | None:
        """Read the requests that have arrived, or None when there will be no more."""
        try:
            received = self.connection.recv(65536)
        except OSError:
            received = b""
        if not received:
            return None
        *lines, self._unread = (self._unread + received).split(b"\n")
        return [json.loads(line) for line in lines]


class Server:
    """Forks kernels for all graders that connect."""

    def __init__(self, listener: socket.socket, settings: dict):
        self._listener, self._settings = listener, settings
        self._graders: dict[int, Grader] = {}  # by descriptor
        self._kernels: dict[int, Kernel] = {}  # by a descriptor that tells their end
        self._look_next = 0.0

    def serve(self) -> None:
        """Serve until standard input is closed."""
        while True:
            known = [0, self._listener.fileno(), *self._graders, *self._kernels]
            ready, _, _ = select.select(known, [], [], LOOK_SECONDS if self._kernels else None)
            self._look_at_memory()
            if 0 in ready and not os.read(0, 1):
                return
            for descriptor in ready:
                if descriptor in self._kernels:
                    self._ended(descriptor)
                elif descriptor in self._graders:
                    self._asked(descriptor)
                elif descriptor == self._listener.fileno():
                    connection, _ = self._listener.accept()
                    self._graders[connection.fileno()] = grader = Grader(connection)
                    grader.say(ready=True)

    def _look_at_memory(self) -> None:
        """End kernels that use too much memory together with all that they started."""
        if not self._kernels or time.monotonic() < self._look_next:
            return
        self._look_next = time.monotonic() + LOOK_SECONDS
        used = memory_watch.used(kernel.watcher for kernel in self._kernels.values())
        for kernel in self._kernels.values():
            if used[kernel.watcher] > self._settings["memory"]:
                kernel.kill()

    def _ended(self, descriptor: int) -> None:
        kernel = self._kernels.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(kernel.watcher, 0)
        kernel.grader.say(ended=kernel.name, status=os.waitstatus_to_exitcode(status))

    def _asked(self, descriptor: int) -> None:
        grader = self._graders[descriptor]
        requests = grader.requests()
        if requests is None:
            del self._graders[descriptor]
            grader.connection.close()
            for kernel in self._kernels.values():
                if kernel.grader is grader:
                    kernel.kill()
            return
        for request in requests:
            if "start" in request:
                self._start(grader, request["start"], request.get("argv"))
            for kernel in self._kernels.values():
                if kernel.grader is grader and kernel.name == request.get("kill"):
                    kernel.kill()

    def _start(self, grader: Grader, name: str, argv: list[str] | None) -> None:
        taken = {kernel.slot for kernel in self._kernels.values()}
        slot = next(n for n in range(len(taken) + 1) if n not in taken)
        first = self._settings["uid"]
        uid = None if first is None else first + slot
        watcher = locked_kernel.start(name, uid, argv, self._settings)
        self._kernels[os.pidfd_open(watcher)] = Kernel(name, grader, slot, watcher)
        grader.say(started=name)


def import_what_notebooks_need(modules: list[str]) -> None:
    """Import the slow packages once; every kernel inherits them.

    What cannot be imported in here is left to the notebooks' own attempts.
    """
    for name in WARM_MODULES:
        importlib.import_module(name)
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    batch_kernel.rehearse()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.collect()
    gc.freeze()  # kernels need not look through, and so copy, what they inherit


def main() -> None:
    """Import, then serve."""
    settings = json.loads(sys.argv[1])
    locked_kernel.hide_memory()
    listener = socket.socket(fileno=settings["listener"])
    import_what_notebooks_need(settings["modules"])
    Server(listener, settings).serve()


if __name__ == "__main__":
    main()
