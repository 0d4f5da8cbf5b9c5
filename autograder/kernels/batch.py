"""All cells of a notebook in one go: the quick way, for notebooks in which nothing goes wrong.

`batch_kernel.py` runs the cells inside the sandbox and writes down what happens, a line for each
message. Whatever is unusual (a crash, a cell that takes long, too much output, lines that make no
sense) ends it: then the notebook is run anew in a kernel proper, cell by cell.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.kernels.locked_kernel import BATCH_CELLS, BATCH_SOCKET
from autograder.kernels.warm import Connection, Shared, WarmProcessError, make_folder, remove

START_SECONDS = 60
END_SECONDS = 5
LONGEST_LINE = 40 * 2**20  # bytes
MOST_BYTES = 200 * 2**20  # of all lines


class BatchFailed(Exception):
    """The cells did not run as they should; the message says why."""


def run_cells(
    submission: Path, cells: list[tuple[int, str]], cell_seconds: float, deadline: float
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run (index, source) pairs with a submission's files; yield each cell's messages as they come.

    The last message of a cell is its reply, of type "reply". Raises BatchFailed.
    """
    try:
        connection = Shared.get()
        name, folder = make_folder(connection, submission)
    except WarmProcessError as error:
        raise BatchFailed(str(error)) from error
    try:
        (folder / "run" / BATCH_CELLS).write_text(json.dumps(cells), encoding="utf-8")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "run" / BATCH_SOCKET))
            listener.listen(1)
            connection.start(name)
            with _accept(listener, connection, name) as peer:
                yield from _messages(peer, len(cells), cell_seconds, deadline)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, WarmProcessError) as error:
        raise BatchFailed(f"{type(error).__name__}: {error}") from error
    finally:
        connection.kill(name)
        connection.wait(name, END_SECONDS)
        remove(folder)


def _accept(listener: socket.socket, connection: Connection, name: str) -> socket.socket:
    listener.settimeout(0.5)
    for _ in range(2 * START_SECONDS):
        with contextlib.suppress(TimeoutError):
            return listener.accept()[0]
        if connection.status(name) is not None:
            break
    raise BatchFailed("the kernel did not start")


def _lines(peer: socket.socket, ends: list[float]) -> Iterator[bytes]:
    """Yield lines until the time in `ends`, which the reader moves on."""
    unread, total = [], 0
    while True:
        peer.settimeout(max(ends[0] - time.monotonic(), 0.001))
        received = peer.recv(2**18)
        total += len(received)
        if not received or total > MOST_BYTES:
            raise BatchFailed("the kernel died" if not received else "too much output")
        first, *others = received.split(b"\n")
        unread.append(first)
        for other in others:
            yield b"".join(unread)
            unread = [other]
        if sum(map(len, unread)) > LONGEST_LINE:
            raise BatchFailed("too long a message")


def _messages(
    peer: socket.socket, count: int, cell_seconds: float, deadline: float
) -> Iterator[tuple[int, dict[str, Any]]]:
    index, replies = -1, 0
    ends = [min(time.monotonic() + cell_seconds, deadline)]
    for text in _lines(peer, ends):
        line = json.loads(text)
        kind, content = str(line["msg_type"]), line["content"]
        if kind == "cell":
            index = int(content["index"])
            ends[0] = min(time.monotonic() + cell_seconds, deadline)
        elif kind == "done":
            if replies != count:
                raise BatchFailed("cells are missing")
            return
        else:
            replies += kind == "reply"
            header = {"msg_type": kind, "date": datetime.fromisoformat(line["date"])}
            yield (
                index,
                {
                    "msg_type": kind,
                    "header": header,
                    "parent_header": {},
                    "content": content,
                },
            )
        if time.monotonic() > ends[0]:
            raise BatchFailed("a cell takes long")
