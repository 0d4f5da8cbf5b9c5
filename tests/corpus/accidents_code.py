"""Accidents in the code of a submission: crashes, hangs, floods, leftovers."""

from __future__ import annotations

from corpus.describing import FULL, RIGHT, Entry, code_before

WITHOUT_COLUMN = {name: points for name, points in FULL.items() if name != "as_column"}
LOST = {"earns": WITHOUT_COLUMN}  # what is odd is in as_column, and costs it
TIMED_OUT = {"status": "timed out"}


def answer(*lines: str) -> dict[str, str]:
    """Return as_column with these lines as its body."""
    return {"as_column": "\n".join(["def as_column(vector):", *(f"    {x}" for x in lines)])}


def right_after(*lines: str) -> dict[str, str]:
    """Return as_column that does these lines first and is right then."""
    return answer(*lines, "return vector[:, None]")


def cells(*sources: str) -> dict:
    """Have ordinary cells before the first answer."""
    return {"edit": code_before("as_column", *sources)}


def later(*sources: str) -> dict:
    """Have ordinary cells after the first check."""
    return {"edit": code_before("outer_difference", *sources)}


SWALLOW = (
    "while True:",
    "    try:",
    "        while True: pass",
    "    except BaseException: pass",
)
OVERFLOW = (
    "import sys",
    "sys.setrecursionlimit(10**9)",
    "x = []",
    "for _ in range(10**5): x = [x]",
    "return repr(x)",
)
GROW = "import numpy as np\nkept = []\nwhile True: kept.append(np.zeros(2**27))"
FIGURES = (
    "import matplotlib.pyplot as plt\n"
    "for _ in range(100):\n    plt.figure(figsize=(1, 1))\n    plt.plot([1, 2])\nplt.show()"
)
THREADS = """import threading, time
def report():
    while True:
        print("still here"); time.sleep(0.05)
for _ in range(3):
    threading.Thread(target=report).start()"""
TASKS = """import asyncio
async def report():
    while True:
        print("still here"); await asyncio.sleep(0.05)
task = asyncio.ensure_future(report())
await asyncio.sleep(0.1)"""
LEFT_OPEN = """import multiprocessing, subprocess
pool = multiprocessing.get_context("fork").Pool(2)
left = subprocess.Popen(["sleep", "600"])"""
WIDGETS = """import ipywidgets
from IPython.display import display
slider = ipywidgets.IntSlider()
out = ipywidgets.Output()
with out: print("inside")
display(slider, out)
ipywidgets.interact(lambda x: x, x=3)"""
HIDDEN_NAMES = """sum = list = print = max = 0
type = float = "mine"
len = None"""

CODE_ACCIDENTS = (
    Entry("syntax", "a syntax error", {"as_column": "def as_column(vector:\n    return"}, **LOST),
    Entry("tabs", "tabs and spaces mixed",
          {"as_column": "def as_column(vector):\n    x = 1\n\treturn vector[:, None]"}, **LOST),
    Entry("quote", "an unclosed string", {"as_column": RIGHT["as_column"] + "\nx = 'abc"}, **LOST),
    Entry("nul", "a NUL character in a source", {"as_column": RIGHT["as_column"] + "\0"}, **LOST),
    Entry("loop-cell", "an endless loop in an answer cell",
          {"as_column": "while True: pass\n" + RIGHT["as_column"]},
          said=("`as_column`",), **LOST, **TIMED_OUT),
    Entry("loop", "an endless loop in the tested function", answer("while True: pass"),
          said=("`check-as_column`",), **LOST, **TIMED_OUT),
    Entry("loop-deaf", "an endless loop that ignores interrupts", answer(*SWALLOW),
          said=("`check-as_column`",), **LOST, **TIMED_OUT),
    Entry("long-call", "one long call in C", answer("return sum(range(10**12))"),
          said=("`check-as_column`",), **LOST, **TIMED_OUT),
    Entry("sleep", "a cell that sleeps", said=("cell 7",), **cells("import time\ntime.sleep(999)"),
          **TIMED_OUT),
    Entry("exit", "os._exit in the tested function", answer("import os", "os._exit(0)"), **LOST),
    Entry("segfault", "a segmentation fault",
          answer("import ctypes", "ctypes.string_at(0)"), **LOST),
    Entry("overflow", "a stack overflow", answer(*OVERFLOW), status=None, **LOST),
    Entry("recursion", "recursion without end", answer("return as_column(vector)"), **LOST),
    Entry("memory", "more memory than there is",
          answer("return np.ones((10**6, 10**6))"), **LOST),
    Entry("grow", "a list that grows without end", {"as_column": GROW}, **LOST),
    Entry("quit", "quit() left in a cell", **later("quit()")),
    Entry("exit-late", "a thread that ends Python later",
          **later("import os, threading\nthreading.Timer(0.3, os._exit, [0]).start()")),
    Entry("sys-exit", "sys.exit() left in a cell", **later("import sys\nsys.exit(1)")),
    Entry("lines", "200,000 printed lines", **cells("for i in range(200_000): print(i)")),
    Entry("long-line", "one line of 50 MB", **cells("print('x' * 50_000_000)")),
    Entry("chatty", "the tested function prints 10 MB", right_after("print('x' * 10_000_000)")),
    Entry("drawing", "the tested function displays 1 MB on every call",
          right_after("from IPython.display import HTML, display", "display(HTML('x' * 2**20))")),
    Entry("html", "a huge page displayed",
          **cells("from IPython.display import HTML, display\ndisplay(HTML('<p>' * 10**7))")),
    Entry("figures", "100 figures", **cells(FIGURES)),
    Entry("warnings", "warnings in the tested function",
          right_after("import warnings, sys", "warnings.warn('old')", "np.log(np.zeros(1))",
                      "print('on stderr', file=sys.stderr)")),
    Entry("strict", "warnings and numeric trouble turned into errors",
          **cells("import warnings\nwarnings.simplefilter('error')\nnp.seterr(all='raise')")),
    Entry("input", "a cell that waits for input", **cells("name = input('Your name? ')",
          "import getpass\ngetpass.getpass()", "x = 1\nbreakpoint()\nx = 2")),
    Entry("pdb", "a breakpoint left in an answer", answer("breakpoint()", "return 1"), **LOST),
    Entry("pdb-on", "%pdb on and %debug left in", **cells("%pdb on", "1 / 0", "%debug")),
    Entry("magics", "magics of all kinds",
          **cells("%%bash\nls; exit 3", "!ls /nowhere", "%matplotlib widget", "%nonsense",
                  "%%javascript\nalert(1)", "%load_ext autoreload\n%autoreload 2", "%timeit -n1 1",
                  "%%writefile notes.txt\nx", "%history", "?np.sum", "%cd -q .")),
    Entry("pip", "!pip install left in", **cells("!pip install numpy", "%pip install -q nothing")),
    Entry("moves", "a cell that changes the working folder",
          **cells("import os\nos.makedirs('data', exist_ok=True)\nos.chdir('data')")),
    Entry("deletes", "a cell that deletes the files beside the notebook",
          **cells("import os\nfor name in os.listdir('.'): os.remove(name)")),
    Entry("own-check", "a helper of the student's is called check",
          earns={"as_column": 1}, **later("def check(value):\n    return value is not None")),
    Entry("own-np", "np gets another meaning", earns=FULL, **later("np = 5")),
    Entry("own-names", "built-in functions get another meaning", **cells(HIDDEN_NAMES)),
    Entry("reset", "%reset left in", earns={"as_column": 1}, **later("%reset -f")),
    Entry("threads", "threads left running", **cells(THREADS)),
    Entry("tasks", "asyncio tasks left running", **cells(TASKS)),
    Entry("left-open", "processes left running", **cells(LEFT_OPEN)),
    Entry("no-stdout", "standard output closed or replaced",
          **cells("import sys\nsys.stdout.close()", "sys.stdout = sys.stderr = open('log', 'w')")),
    Entry("async", "an answer that is a coroutine",
          {"as_column": "async def as_column(vector):\n    return vector[:, None]"}, **LOST),
    Entry("names", "names in Arabic and Greek",
          {"as_column": "def as_column(vector):\n    عمود, λ = vector[:, None], '\u202e🙂'\n"
                        "    return عمود"}),
    Entry("bad-words", "an exception whose message is half an emoji",
          answer("raise ValueError('\\ud83d')"), **LOST),
    Entry("bad-print", "half an emoji printed", **cells("print('\\ud83d')")),
    Entry("recursive-list", "an answer that contains itself", answer("x = []", "x.append(x)",
          "return x"), **LOST),
    Entry("in-place", "an answer that changes its input",
          {"normalise_rows": "def normalise_rows(matrix):\n    matrix /= "
                             "matrix.sum(-1, keepdims=True)\n    return matrix"},
          earns={"as_column": 1, "outer_difference": 1}),
    Entry("lambda", "answers in other forms: a lambda, an object",
          {"as_column": "as_column = lambda vector: vector[:, None]",
           "outer_difference": "class Difference:\n    def __call__(self, queries, keys):\n"
                               "        return queries[:, None] - keys\n"
                               "outer_difference = Difference()"}),
    Entry("alarm", "an alarm left running", **later("import signal\nsignal.alarm(1)")),
    Entry("fork", "os.fork() left in a cell", **later("import os\npid = os.fork()\npid")),
    Entry("shutdown", "the kernel told to restart",
          **later("get_ipython().kernel.do_shutdown(True)")),
    Entry("environment", "all environment variables deleted",
          **cells("import os\nos.environ.clear()")),
    Entry("shallow", "the limit of recursion set very low",
          **cells("import sys\nsys.setrecursionlimit(120)")),
    Entry("gpu", "a graphics card asked for", **cells("import torch\ntorch.zeros(1).cuda()")),
    Entry("reload", "the course and NumPy imported anew",
          **cells("import importlib, attention_course, attention_course.running as r\n"
                  "importlib.reload(r)\nimportlib.reload(attention_course)\nimportlib.reload(np)")),
    Entry("widgets", "widgets and progress bars", **cells(WIDGETS)),
    Entry("logging", "everything logged", **cells("import logging\nlogging.basicConfig(level=1)")),
    Entry("long-source", "a source of 2 MB in one line", **cells(f"data = {'1' * 2_000_000!r}")),
)  # fmt: skip
