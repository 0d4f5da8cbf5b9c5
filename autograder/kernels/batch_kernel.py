"""Runs inside the sandbox: all cells of a notebook in one go, without a conversation for each.

A kernel proper has five sockets and as many threads, and takes 6 ms for each cell that does
nothing. This one is IPython's own kernel object with another session: what a kernel would send is
written to one socket, a JSON line for each message. Nothing is ever asked of it: it gets the cells
at the start. Whatever does not go well is left to a kernel proper (see `batch.py`).
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import socket
import sys
import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.jsonutil import json_clean
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.profiledir import ProfileDir
from jupyter_client.jsonutil import json_default
from jupyter_client.session import Session
from traitlets.config import Config

LONGEST_PRINT = 2**15  # characters that are held back until the next flush
# The grader keeps less than this, of whoever keeps to it or not: what is beyond need not travel.
MOST_PRINTED = 2**18  # characters of one cell
LONGEST_LINE = 2**25  # bytes of one message
CAPTURED_AT_ONCE = 2**20  # bytes


class LineSession(Session):
    """A session whose messages go to one socket, whatever socket they were meant for."""

    _socket: socket.socket | None = None  # until then they go nowhere

    def connect(self, address: str) -> None:
        """Connect to the grader."""
        self._lock = threading.RLock()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)

    def send(
        self, stream: Any, msg_or_type: Any, content: Any = None, *_: Any, **__: Any
    ) -> dict[str, Any]:
        """Write a message as one line."""
        message = msg_or_type if isinstance(msg_or_type, dict) else {"msg_type": msg_or_type}
        if content is not None:
            message["content"] = content
        line = {
            "msg_type": message["msg_type"],
            "content": message["content"],
            "date": datetime.now(UTC).isoformat(),
        }
        text = json.dumps(line, default=json_default).encode()
        if self._socket is not None and len(text) <= LONGEST_LINE:
            with self._lock:
                self._socket.sendall(text + b"\n")
        return message


class Printed(io.TextIOBase):
    """`sys.stdout` or `sys.stderr`: what is printed becomes messages."""

    encoding, errors = "UTF-8", "replace"

    def __init__(self, name: str, descriptor: int, session: LineSession):
        self.name, self._descriptor, self._session = name, descriptor, session
        self._lock = threading.RLock()
        self._held: list[str] = []
        self._size = self._seen = self._sent = 0

    def writable(self) -> bool:
        """Tell that one can write."""
        return True

    def fileno(self) -> int:
        """Return the descriptor that programs started from a cell write to."""
        return self._descriptor

    def write(self, text: str) -> int:
        """Hold a text until the next flush."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text)}")
        with self._lock:
            self._held.append(text[:MOST_PRINTED])
            self._size += len(text)
            if self._size > LONGEST_PRINT:
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is held, and what came through the descriptor."""
        with self._lock:
            text = "".join(self._held) + self._from_descriptor()
            self._held, self._size = [], 0
            text = text[: MOST_PRINTED - self._sent]
            self._sent += len(text)
        if text:
            self._session.send(None, "stream", {"name": self.name, "text": text})

    def next_cell(self) -> None:
        """Send what is left of a cell; the next one may print as much again."""
        self.flush()
        self._sent = 0

    def _from_descriptor(self) -> str:
        try:
            size = os.fstat(self._descriptor).st_size
            if size <= self._seen:
                return ""
            raw = os.pread(self._descriptor, CAPTURED_AT_ONCE, self._seen)
        except OSError:  # the student's code has closed it
            return ""
        self._seen = size
        return raw.decode("utf-8", "replace")


def capture_descriptors() -> None:
    """Let what programs print go into files of this kernel's own, bounded /tmp."""
    for descriptor in (1, 2):
        file = os.open("/tmp", os.O_TMPFILE | os.O_RDWR | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)


def make_kernel(session: LineSession) -> IPythonKernel:
    """Make IPython's kernel without sockets."""
    config = Config()
    config.HistoryManager.enabled = False  # no file; `In` and `Out` work all the same
    kernel = IPythonKernel.instance(
        config=config,
        session=session,
        log=logging.getLogger("batch_kernel"),
        profile_dir=ProfileDir.create_profile_dir(os.environ["IPYTHONDIR"]),
        shell_channel_thread=SimpleNamespace(parent_thread=None),
    )
    kernel.shell.displayhook.get_execution_count = lambda: kernel.execution_count
    return kernel


async def run_cells(kernel: IPythonKernel, session: LineSession, cells: list) -> None:
    """Run (index, source) pairs one after the other, saying where each begins and how it ended."""
    printed = [Printed("stdout", 1, session), Printed("stderr", 2, session)]
    sys.stdout, sys.stderr = printed
    for index, source in cells:
        session.send(None, "cell", {"index": index})
        count = {"code": source, "execution_count": kernel.execution_count}
        session.send(None, "execute_input", count)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        reply = await kernel.do_execute(source, False, store_history=True, allow_stdin=False)
        for stream in printed:
            stream.next_cell()
        session.send(None, "reply", json_clean(reply))
    session.send(None, "done", {})


def rehearse() -> None:
    """Make a kernel and run something, in vain: what that loads and caches, every kernel inherits.

    All that a kernel could notice of it is put back.
    """
    streams, main = (sys.stdout, sys.stderr), sys.modules["__main__"]
    session = LineSession()
    kernel = make_kernel(session)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(run_cells(kernel, session, [(0, "x = 1"), (1, "x / 0")]))
    loop.close()
    sys.stdout, sys.stderr = streams
    sys.modules["__main__"] = main
    for name in ("last_type", "last_value", "last_traceback"):
        vars(sys).pop(name, None)
    IPythonKernel.clear_instance()
    ZMQInteractiveShell.clear_instance()


def run(cells_file: str, address: str) -> None:
    """Run the cells of a file and tell the grader through the socket at an address."""
    with open(cells_file, encoding="utf-8") as file:
        cells = json.load(file)
    session = LineSession()
    session.connect(address)
    capture_descriptors()
    kernel = make_kernel(session)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(run_cells(kernel, session, cells))
