"""Attacks on "write it yourself": the library's function is called behind the exercise's back."""

from __future__ import annotations

from corpus.describing import NOTHING, Entry

IMPORTS = "import numpy as np, contextlib, functools, subprocess, sys, threading, types\n"


def library(student: str, about: str, before: str, result: str, **changes) -> Entry:
    """Describe an answer to broadcast_shape that gets `result` from a library."""
    source = f"{IMPORTS}{before}\ndef broadcast_shape(first, second):\n    return {result}"
    return Entry(student, about, {"broadcast_shape": source}, earns=NOTHING, only=True, **changes)


WORKER = """
import queue
asked, answered = queue.Queue(), queue.Queue()
def work():
    while True:
        try:
            answered.put(np.broadcast_shapes(*asked.get()))
        except ValueError as error:
            answered.put(error)
threading.Thread(target=work, daemon=True).start()
def ask(*shapes):
    asked.put(shapes)
    got = answered.get()
    if isinstance(got, Exception): raise got
    return got
"""
CHILD = """
def ask(*shapes):
    code = f"import numpy; print(numpy.broadcast_shapes(*{shapes!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode: raise ValueError(done.stderr)
    return eval(done.stdout)
"""
COPIED = """
original = np.broadcast_shapes
code = getattr(original, "_implementation", original).__code__
ask = types.FunctionType(code.replace(co_name="mine"), original.__globals__)
"""
SWAPPED = "ask = np.broadcast_shapes\nnp.broadcast_shapes = lambda *shapes: ()"
NO_RECORDER = """
from attention_course import recording, running
running.record_calls = recording.record_calls = lambda names: contextlib.nullcontext([])
"""
QUIET = """
from attention_course import running
honest = running.Outcome.to_plain
running.Outcome.to_plain = lambda self: {**honest(self), "forbidden_calls": []}
"""

LIBRARY_ATTACKS = (
    library("l-plain", "called by its name", "", "np.broadcast_shapes(first, second)"),
    library("l-alias", "another name, got in pieces",
            "ask = functools.partial(getattr(np, 'broad' + 'cast_shapes'))", "ask(first, second)"),
    library("l-thread", "in a thread",
            "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor()",
            "pool.submit(np.broadcast_shapes, first, second).result()"),
    library("l-no-profile", "with the recorder turned off", "def ask(*shapes):\n    "
            "sys.setprofile(None); return np.broadcast_shapes(*shapes)", "ask(first, second)"),
    library("l-worker", "in a thread from before", WORKER, "ask(first, second)"),
    library("l-child", "in another process", CHILD, "ask(first, second)"),
    library("l-copied", "as a copy of the library's code", COPIED, "ask(first, second)"),
    library("l-swapped", "with another function in its place", SWAPPED, "ask(first, second)"),
    library("l-no-recorder", "with the recorder replaced", NO_RECORDER,
            "np.broadcast_shapes(first, second)"),
    library("l-quiet", "with the report of it suppressed", QUIET,
            "np.broadcast_shapes(first, second)"),
    library("l-class", "by np.broadcast, a class", "",
            "np.broadcast(np.empty(first), np.empty(second)).shape"),
    library("l-ufunc", "by adding two arrays", "", "(np.empty(first) + np.empty(second)).shape"),
)  # fmt: skip
