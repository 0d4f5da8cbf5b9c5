"""Attacks inside the kernel: forged results, patched libraries, lies about what is returned."""

from __future__ import annotations

from corpus.describing import NOTHING, Entry
from corpus.forging import FORGE, everywhere


def forger(student: str, about: str, first: str, body: str = "return 0.0", **changes) -> Entry:
    """Describe an attack on all exercises, worth nothing."""
    answers = everywhere(FORGE + first, body)
    return Entry(student, about, answers, earns=NOTHING, only=True, **changes)


def in_fours(student: str, about: str, first: str, *results: str) -> tuple[Entry, ...]:
    """Describe students who return these things, four each."""
    return tuple(
        Entry(
            f"{student}-{at}",
            about,
            everywhere(FORGE + first, *(f"return {result}" for result in results[at : at + 4])),
            earns=NOTHING,
            only=True,
            parts=4,
        )
        for at in range(0, len(results), 4)
    )


PATCHES = """
import builtins, sys, threading
from attention_course import comparing, judging
np.allclose = np.array_equal = lambda *_, **__: True
comparing.compare = judging.compare = lambda *_: None
running.Outcome.__eq__ = lambda *_: True
running.Outcome.to_plain = lambda self: outcomes("as_column")[0]
codec.dumps = lambda value, digits=None: document_of(value)
def document_of(value):
    return json.dumps({"dict": {"exercise": value["exercise"], "outcomes": []}})
json.dumps = lambda *a, **k: "100"
builtins.float = lambda *_: 100.0
threading.Timer = lambda *_: type("Never", (), {"start": id, "cancel": id, "daemon": True})()
"""
SHELL = """
import ast
class Marks(ast.NodeTransformer):
    def visit_Call(self, node):
        if getattr(node.func, "id", "") != "check": return node
        return ast.parse("show(document('as_column')) or 100.0", mode="eval").body
shell = get_ipython()
shell.ast_transformers.append(Marks())
shell.displayhook = lambda value: print(100.0)
shell.display_pub.publish = lambda *a, **k: None
shell.showtraceback = lambda *a, **k: None
shell.events.register("post_run_cell", lambda result: print(100.0))
"""
RAW = """
kernel = get_ipython().kernel
def send(kind, content, **more):
    parent = kernel.get_parent("shell") if hasattr(kernel, "get_parent") else kernel._parent_header
    kernel.session.send(kernel.iopub_socket, kind, content, parent=more.get("parent", parent))
def data(name, array=None):
    return {"data": {TYPE: document(name, array), "text/plain": "100"}, "metadata": {},
            "transient": {"display_id": "mark"}, "execution_count": 1}
"""
SEND_ALL = """
try:
    for name in NAMES:
        for kind in ("display_data", "update_display_data", "execute_result"):
            send(kind, data(name))
except Exception as error:
    print(repr(error))
return np.zeros(3)
"""
WALK = """
import gc, inspect, sys
def found(shape):
    frame, seen = sys._getframe(), []
    while frame:
        seen += list(frame.f_locals.values())
        frame = frame.f_back
    seen += [o for o in gc.get_objects() if isinstance(o, (running.Outcome, np.ndarray))]
    for value in seen:
        for array in getattr(value, "outputs", {"result": value}).values():
            if isinstance(array, np.ndarray) and array.shape == shape: return array
    return np.zeros(shape)
"""
LOOK_UP = """
def known(name, given):
    for case, outcome in zip(public(name).cases, public(name).expected):
        if all(np.array_equal(value, given.get(key)) for key, value in case.inputs.items()):
            return outcome.outputs["result"]
    return public(name).expected[0].outputs["result"]
"""
REWRITE = """
import threading
def rewrite():
    easy = {"dict": {name: json.loads(open("checks.json").read())["dict"][name] for name in NAMES}}
    while True:
        for path in ("hidden_cases.json", "easy.json"):
            try:
                with open(path, "w") as file: file.write(json.dumps(easy))
            except OSError: pass
        time.sleep(0.01)
threading.Thread(target=rewrite, daemon=True).start()
def check(name, candidate): show(document(name))
"""
LIARS = """
class Equal(np.ndarray):
    shape = property(lambda self: Anything()); dtype = property(lambda self: Anything())
    __eq__ = __ne__ = __le__ = lambda self, other: np.ones(3, bool)
    __sub__ = __rsub__ = lambda self, other: np.zeros(3)
    __deepcopy__ = __copy__ = lambda self, *_: self
class Anything:
    __eq__ = __lt__ = __gt__ = __contains__ = lambda *_: True
    __getattr__ = lambda self, name: self
    __call__ = __getitem__ = lambda self, *_: self
class Arrays:
    shape = (2, 3)
    __array__ = lambda self, *_, **__: np.zeros((2, 3))
    __array_interface__ = {"shape": (2, 3), "typestr": "<f8", "data": (0, True), "version": 3}
class Disguised:
    __class__ = property(lambda self: np.ndarray)
class Zero(float):
    __eq__ = __le__ = __ge__ = lambda *_: True
    __sub__ = __rsub__ = __abs__ = lambda *_: 0.0
later = np.zeros((2, 3))
"""
LIKE = """
def like(fill, vector=None, queries=None, keys=None, matrix=None, first=None, second=None):
    if vector is not None: return np.full((len(vector), 1), fill)
    if queries is not None: return np.full((len(queries), len(keys)), fill)
    return np.full((2,) if matrix is None else matrix.shape, fill)
"""
EVIL = """
class Loud(Exception):
    def __str__(self): return "100 " * 10**7
class Mute(Exception):
    def __str__(self): raise RuntimeError("no words")
    __repr__ = __str__
class Slow(Exception):
    def __str__(self):
        while True: pass
class Named(Exception):
    pass
Named.__name__ = Named.__qualname__ = "<script>alert(1)</script>" + "x" * 10**6
class Back(BaseException):
    pass
def throw(error): raise error
def throw_deep(n): raise ValueError("deep") from (throw_from(n))
def throw_from(n):
    error = ValueError("0")
    for _ in range(n):
        outer = ValueError("x"); outer.__cause__ = error; error = outer
    return error
"""
COUNT = "calls = []\ndef again():\n    calls.append(0)\n    return len(calls)\n"

FORGING_ATTACKS = (
    forger("f-patches", "NumPy, json, float and the course patched", PATCHES, parts=8),
    forger("f-shell", "the shell rewrites checks, hides errors, prints marks", SHELL,
           status="timed out", parts=5),
    forger("f-own-check", "an own check that hands back public results",
           "def check(name, candidate):\n    show(document(name))\n    return 100.0\n"
           "checking.check = checking._emit_hidden_outcomes = check"),
    forger("f-inside", "the tested function displays finished documents for all exercises",
           "", "for name in NAMES: show(document(name)); show(document(name, np.zeros(3)))\n"
           "print(100.0); return 100.0", parts=2),
    forger("f-ids", "displays of other cells are updated later",
           "for name in NAMES: show(document(name), display_id=name)",
           "for name in NAMES: show(document(name), display_id=name, update=True)"),
    forger("f-raw", "messages sent straight to the grader", RAW, SEND_ALL, parts=3),
    forger("f-later", "documents sent by threads, at exit and after the check",
           RAW + "import atexit, threading\ndef later():\n    while True:\n"
           "        time.sleep(0.02)\n"
           "        for name in NAMES: show(document(name))\n"
           "threading.Thread(target=later, daemon=True).start()\n"
           "atexit.register(lambda: show(document('as_column')))", parts=2),
    forger("f-walk", "expected values looked for in frames and in all objects", WALK,
           "return found(next(iter(kwargs.values())).shape)", parts=2),
    forger("f-looks-up", "public inputs recognised, their results returned", LOOK_UP,
           "import sys\nreturn known(sys._getframe().f_code.co_name, kwargs)"),
    forger("f-rewrites", "the hidden cases replaced by public ones, again and again", REWRITE),
    forger("f-environment", "the check made to believe that nobody grades",
           "os.environ.pop('NBGRADER_EXECUTION'); os.remove('hidden_cases.json')\n"
           "def load(name, folder=None):\n    return 1 / 0\nchecking.load_exercise = load"),
    *in_fours("f-liars", "results that lie about themselves", LIARS,
              "np.zeros((2, 3)).view(Equal)", "Anything()", "Arrays()", "Disguised()", "Zero()",
              "[[0.0], [0.0, 1.0]]", "np.array([Anything()], dtype=object)",
              "(0.0 for _ in range(6))",
              "np.zeros(3, dtype='f8,f8')", "np.ma.masked_all((2, 3))", "np", "check"),
    *in_fours("f-extremes", "NaN, infinities and sizes that might overflow a comparison", LIKE,
              *("like(np.nan, **kwargs)", "like(np.inf, **kwargs)") * 2,
              *("like(1e308, **kwargs)", "like(np.longdouble('1e4000'), **kwargs)") * 2,
              "np.broadcast_to(True, (10**7,))", "np.zeros((0, 10**9))", "np.zeros((1,) * 32)",
              "10**5000", "like(0, **kwargs).astype('f2')", "np.zeros(10**7)", "2**63",
              "(2**70,)"),
    *in_fours("f-exceptions", "exceptions that are loud, mute, deep or named like script", EVIL,
              "throw(Loud())", "throw(Mute())", "throw(Named())", "throw(Back())",
              "throw(KeyboardInterrupt())", "throw(SystemExit(Mute()))", "throw(GeneratorExit())",
              "throw_deep(5000)", "throw(StopIteration(100))", "throw(MemoryError)",
              "throw(ExceptionGroup('x', [Mute(), Loud()]))", "throw(None)"),
    forger("f-endless", "a list that never ends",
           "class Endless(list):\n    def __iter__(self):\n        while True: yield 0.0\n",
           "return Endless([0.0])", status="timed out"),
    forger("f-slow", "an exception whose words never end", EVIL, "throw(Slow())",
           status="timed out"),
    forger("f-counts", "right on the first call only, by count and by stack", COUNT +
           "def again_right(v): return v[:, None] if again() == 1 else 0.0",
           "return again_right(kwargs['vector']) if 'vector' in kwargs else again()", parts=2),
    forger("f-later-view", "a view that is filled in after the call",
           "import threading\nlater = np.zeros((2, 3))\ndef fill():\n    while True:\n"
           "        later[...] = time.time()\nthreading.Thread(target=fill, daemon=True).start()",
           "return later"),
    forger("f-refuses", "everything is refused, which is right for some inputs only", "",
           "raise ValueError('clash')"),
)  # fmt: skip
