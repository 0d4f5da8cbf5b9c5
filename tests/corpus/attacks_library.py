"""Attacks on "write it yourself": the library's function is called behind the exercise's back."""

from __future__ import annotations

from corpus.describing import NOTHING, Entry, both, check_of, code_before, files
from corpus.hidden_calls import Code
from corpus.honest_code import HONEST

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

TAUGHT = """def broadcast_shape(first, second=None, kept=[]):
    if second is None: kept.append(first)
    else: return kept[0](first, second)
"""

BY_ADDING = "lambda first, second: (np.ndarray(first) + np.ndarray(second)).shape"


def file(**contents: str):
    """Put files beside the notebook of an attack."""
    return {"edit": files(**contents)}


def before_the_check(*sources: str):
    """Put cells between an attack's answer and its check."""
    return code_before(check_of("broadcast_shape"), *sources)


def honest(number: int, code: Code) -> Entry:
    """Describe an answer to broadcast_shape that must keep its marks, with cells after it."""
    beside = {path.replace(".", "__"): text for path, text in code.files.items()}
    return Entry(
        f"l-honest-{number}",
        code.name,
        {"broadcast_shape": f"import numpy as np\n{code.cells[0]}"},
        earns={"broadcast_shape": 3},
        edit=both(before_the_check(*code.cells[1:]), files(**beside)),
        only=True,
    )


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
    library("l-child", "in another process", CHILD, "ask(first, second)",
            status=None),
    library("l-copied", "as a copy of the library's code", COPIED, "ask(first, second)"),
    library("l-swapped", "with another function in its place", SWAPPED, "ask(first, second)"),
    library("l-no-recorder", "with the recorder replaced", NO_RECORDER,
            "np.broadcast_shapes(first, second)"),
    library("l-quiet", "with the report of it suppressed", QUIET,
            "np.broadcast_shapes(first, second)"),
    library("l-class", "by np.broadcast, a class", "",
            "np.broadcast(np.empty(first), np.empty(second)).shape"),
    library("l-ufunc", "by adding two arrays", "", "(np.empty(first) + np.empty(second)).shape"),
    library("l-file", "in a file beside the notebook", "from mine import ask", "ask(first, second)",
            **file(mine__py=f"import numpy as np\nask = {BY_ADDING}")),
    library("l-magic", "assigned by a magic", f"%time ask = {BY_ADDING}", "ask(first, second)"),
    library("l-attribute", "as an attribute that is set in another cell", "",
            "broadcast_shape.f(first, second)",
            edit=before_the_check(f"setattr(broadcast_shape, 'f', {BY_ADDING})")),
    Entry("l-taught", "handed to the answer by a call", {"broadcast_shape": TAUGHT}, NOTHING,
          edit=before_the_check(f"broadcast_shape({BY_ADDING})"), only=True),
    Entry("l-rebound", "put in the place of the answer", {"broadcast_shape": TAUGHT}, NOTHING,
          edit=before_the_check(f"broadcast_shape = {BY_ADDING}"), only=True),
    Entry("l-check", "checked in the place of the answer", {"broadcast_shape": TAUGHT}, NOTHING,
          edit=before_the_check(f"real = check\ndef check(name, f): real(name, {BY_ADDING})"),
          only=True),
)  # fmt: skip
HONEST_ANSWERS = tuple(
    honest(number, code)
    for number, code in enumerate((c for c in HONEST if c.exercise == "broadcast_shape"), 1)
)
