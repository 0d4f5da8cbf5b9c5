"""Answers that get their result from what the exercise forbids, each hidden in another way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Code:
    """The student's cells of a notebook, and files beside it. `named` must be in the message."""

    name: str
    exercise: str
    cells: tuple[str, ...]
    named: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def shape(name: str, before: str, result: str = "f(first, second)", named="", files=None) -> Code:
    """Describe an answer to broadcast_shape."""
    answer = f"def broadcast_shape(first, second):\n    return {result}"
    return Code(name, "broadcast_shape", (*before.split("\n---\n"), answer), named, files or {})


def soft(name: str, before: str, result: str = "f(scores, axis)", named="", files=None) -> Code:
    """Describe an answer to softmax; NumPy itself is allowed there."""
    answer = f"def softmax(scores, axis):\n    return {result}"
    return Code(name, "softmax", (*before.split("\n---\n"), answer), named, files or {})


def back(name: str, body: str, before: str = "pass", named="", files=None) -> Code:
    """Describe an answer to attention_backward, which must do without torch."""
    lines = body.replace("\n", "\n    ")
    answer = f"def attention_backward(queries, keys, values, mask, output_gradient):\n    {lines}"
    return Code(name, "attention_backward", (*before.split("\n---\n"), answer), named, files or {})


BORROWED = "import scipy.special as s\n"
CHARS = "''.join(map(chr, [115, 111, 102, 116, 109, 97, 120]))"
QUEUE = """
import queue, threading
asked, answered = queue.Queue(), queue.Queue()
def work():
    while True: answered.put(torch.softmax(*asked.get()))
threading.Thread(target=work, daemon=True).start()
"""

HIDDEN = (
    soft("plain", BORROWED, "s.softmax(scores, axis)", "scipy.special.softmax"),
    soft("alias", "from scipy.special import softmax as f", named="scipy.special.softmax"),
    soft("alias inside", "pass", "(__import__('scipy.special').special.softmax)(scores, axis)"),
    soft("star", "from torch import *\nf = log_softmax", named="log_softmax"),
    soft("the import of a module renamed", "import scipy as xp\nyp = xp\nf = yp.special.softmax"),
    soft("method of a tensor", "pass", "torch.tensor(scores).softmax(axis).numpy()", "softmax"),
    soft("a class of PyTorch", "f = torch.nn.Softmax", "f(axis)(torch.tensor(scores))", "Softmax"),
    soft("class attribute", "class A:\n    f = torch.softmax", "A.f(scores, axis)"),
    soft("class attribute from afar", "class A: pass\n---\nA.f = torch.softmax",
         "A.f(scores, axis)"),
    soft("function attribute", "def g(): pass\n---\ng.f = torch.softmax", "g.f(scores, axis)"),
    Code("attribute of the answer", "softmax",
         ("def softmax(scores, axis):\n    return softmax.f(scores, axis)",
          "softmax.f = torch.softmax")),
    Code("setattr on the answer", "softmax",
         ("def softmax(scores, axis):\n    return softmax.f(scores, axis)",
          "setattr(softmax, 'f', torch.softmax)")),
    Code("default argument", "softmax",
         ("def softmax(scores, axis, f=torch.softmax):\n    return f(scores, axis)",)),
    Code("default argument put in later", "softmax",
         ("def softmax(scores, axis, f=None):\n    return f(scores, axis)",
          "softmax.__defaults__ = (torch.softmax,)")),
    Code("decorator", "softmax",
         ("def instead(f):\n    def g(scores, axis): return torch.softmax(scores, axis)\n"
          "    return g", "@instead\ndef softmax(scores, axis):\n    return 0")),
    Code("rebound at the end", "softmax",
         ("def softmax(scores, axis):\n    return np.exp(scores)",
          "ours = softmax\nsoftmax = torch.softmax")),
    Code("del and rebinding", "softmax",
         ("def softmax(scores, axis):\n    return np.exp(scores)",
          "del softmax\nfrom torch import softmax")),
    Code("another check", "softmax",
         ("def softmax(scores, axis):\n    return np.exp(scores)",
          "real = check\ndef check(name, f): real(name, torch.softmax)")),
    soft("closure", "def make(g):\n    return lambda scores, axis: g(scores, axis)\n"
         "f = make(torch.softmax)"),
    soft("walrus", "print(f := torch.softmax)"),
    soft("walrus in a comprehension", "[f := torch.softmax for _ in range(1)]"),
    soft("for", "for f in [torch.softmax]: pass"),
    soft("with", "import contextlib\nwith contextlib.nullcontext(torch.softmax) as f: pass"),
    soft("try", "try:\n    import nothing\nexcept ImportError:\n    f = torch.softmax"),
    soft("match", "match [torch.softmax]:\n    case [f]: pass"),
    soft("match on an attribute", "match torch:\n    case object(softmax=f): pass"),
    soft("global in a function", "def start():\n    global f\n    f = torch.softmax\nstart()"),
    soft("dict", "d = {}\n---\nd['f'] = torch.softmax", "d['f'](scores, axis)"),
    soft("list", "d = []\n---\nd.append(torch.softmax)", "d[0](scores, axis)"),
    soft("list, by another name", "d = []\n---\ne = d\n---\ne += [torch.softmax]",
         "d[0](scores, axis)"),
    soft("list, through its method", "d = []\nput = d.append\n---\nput(torch.softmax)",
         "d[0](scores, axis)"),
    soft("list, through functions", "d = []\ndef put(x): d.append(x)\ndef put2(x): put(x)\n---\n"
         "put2(*[torch.softmax])", "d[0](scores, axis)"),
    soft("handed to a method", "class A:\n    kept = []\n    def put(self, x): A.kept.append(x)\n"
         "---\nA().put(torch.softmax)", "A.kept[0](scores, axis)"),
    soft("an instance as the go-between",
         "class A:\n    kept = []\n    def put(self, x): A.kept.append(x)\n---\na = A()\n---\n"
         "a.put(torch.softmax)", "A.kept[0](scores, axis)"),
    soft("a subclass that registers", "class A:\n    def __init_subclass__(cls): A.last = cls\n"
         "---\nclass B(A):\n    f = torch.softmax", "A.last.f(scores, axis)"),
    soft("registered by a decorator", "kept = []\ndef keep(f):\n    kept.append(f)\n---\n@keep\n"
         "def g(scores, axis): return torch.softmax(scores, axis)", "kept[0](scores, axis)"),
    soft("single dispatch", "import functools\n@functools.singledispatch\ndef f(x, axis): pass\n"
         "---\n@f.register\ndef _(x: np.ndarray, axis): return torch.softmax(x, axis)"),
    Code("taught by a call", "softmax",
         ("def softmax(scores, axis=None, kept=[]):\n    if axis is None: kept.append(scores)\n"
          "    else: return kept[0](scores, axis)", "softmax(torch.softmax)")),
    Code("taught by a call, through a name", "softmax",
         ("def softmax(scores, axis=None):\n    if axis is None: softmax.f = scores\n"
          "    else: return softmax.f(scores, axis)", "g = torch.softmax\nh = g",
          "softmax(h)")),
    Code("taught by a call, through a function", "softmax",
         ("def softmax(scores, axis=None):\n    global kept\n    if axis is None: kept = scores\n"
          "    else: return kept(scores, axis)",
          "def make():\n    def g(*a): return torch.softmax(*a)\n    return g",
          "softmax(make())")),
    soft("getattr in pieces", "f = getattr(torch, 'soft' + 'max')", named="softmax"),
    soft("getattr with chr", f"f = getattr(torch, {CHARS})", named="put together"),
    soft("getattr of a result", "pass", f"getattr(torch.tensor(scores), {CHARS})(axis)"),
    soft("getattr through reduce", "import functools\n"
         f"f = functools.reduce(getattr, [torch, {CHARS}])"),
    soft("attrgetter", f"import operator\nf = operator.attrgetter({CHARS})(torch)"),
    soft("attrgetter as a value", "from operator import attrgetter as g\nh = g\n"
         f"f = h({CHARS})(torch)"),
    soft("methodcaller", f"import operator\nm = operator.methodcaller({CHARS}, 1)",
         "m(torch.tensor(scores))"),
    soft("dict of the module", f"f = torch.__dict__[{CHARS}]", named="__dict__"),
    soft("vars of the module", f"f = vars(torch)[{CHARS}]", named="vars"),
    soft("a module in a list", f"m = [torch]\nf = m[0].__getattribute__({CHARS})"),
    soft("a module as a default", f"def f(s, a, m=torch): return getattr(m, {CHARS})(s, a)"),
    soft("a submodule as a value", f"m = torch.special\nf = vars(m)[{CHARS}]"),
    soft("__getattr__", f"class A:\n    def __getattr__(self, n): return getattr(torch, {CHARS})",
         "A().anything(scores, axis)"),
    soft("eval", "import base64\nf = eval(base64.b64decode(b'dG9yY2guc29mdG1heA=='))",
         named="eval"),
    soft("exec elsewhere", "exec(bytes([102, 61, 49]))", named="exec"),
    soft("globals elsewhere", "globals()['f'] = torch.softmax"),
    Code("globals from another answer", "softmax",
         ("def put(n, x): globals()[n] = x", "def causal(n):\n    put('f', torch.softmax)",
          "def softmax(scores, axis):\n    return f(scores, axis)")),
    Code("taught a thread", "softmax",
         ("def softmax(scores, axis=None):\n    global f\n    if axis is None: f = scores\n"
          "    else: return f(scores, axis)", QUEUE, "def ask(*a):\n    asked.put(a)\n"
          "    return answered.get()", "def give(): return ask", "softmax(give())")),
    soft("the main module", "import __main__\n__main__.f = torch.softmax"),
    soft("builtins", "import builtins\nbuiltins.max = torch.softmax", "max(scores, axis)"),
    soft("another module as the place", "import math\nmath.f = torch.softmax\n---\nimport math",
         "math.f(scores, axis)", "math.f"),
    soft("NumPy as the place", "np.box = []\n---\nnp.box.append(torch.softmax)",
         "np.box[0](scores, axis)"),
    soft("pickle", "import pickle\nf = pickle.loads(b'ctorch\\nsoftmax\\n.')", named="pickle"),
    soft("importlib", f"import importlib\nf = vars(importlib.import_module('torch'))[{CHARS}]",
         named="importlib"),
    soft("modules of sys", "import sys\nm = sys.modules['torch']\nf = m.softmax"),
    soft("modules through a module", "import dataclasses",
         "dataclasses.sys.modules['torch'].softmax(scores, axis)"),
    soft("frames", "import sys\nsys._getframe().f_globals['f'] = torch.softmax"),
    soft("subclasses", "f = [c for c in object.__subclasses__() if 'Soft' in c.__name__][0]"),
    soft("code of a function", "import types\nf = types.FunctionType(torch.softmax.__code__, {})"),
    soft("thread", QUEUE, "(asked.put((scores, axis)), answered.get())[1]"),
    soft("process", "import subprocess",
         "np.array(subprocess.check_output(['python', '-c', '...']))", "subprocess"),
    soft("a file read", "pass", "np.array(open('answers').read())", "open"),
    soft("run_cell", "get_ipython().run_cell('f = torch.softmax')", named="get_ipython"),
    soft("names of the shell", "get_ipython().user_ns['f'] = torch.softmax"),
    soft("a shell command", "f = lambda *a: get_ipython().getoutput('python -c ...')"),
    soft("an earlier result", "torch.softmax", "_5(scores, axis)", "_5"),
    soft("earlier results", "torch.softmax", "Out[5](scores, axis)", "Out"),
    soft("python in a cell", "%%python\nimport torch", "np.load('x.npy')"),
    soft("a magic that assigns", "%time f = torch.softmax", named="softmax"),
    soft("a cell magic that assigns", "%%capture\nf = torch.softmax", named="softmax"),
    soft("an indented cell", "    f = torch.softmax", named="softmax"),
    soft("a cell with prompts", ">>> f = torch.softmax", named="softmax"),
    soft("a magic without its sign", "time f = torch.softmax", named="softmax"),
    soft("another magic without its sign", "run mine.py", named="get_ipython"),
    soft("the setup of a magic", "d = []\n---\n%%timeit -n1 -r1 d.append(torch.softmax)\n1",
         "d[0](scores, axis)", "softmax"),
    soft("an expression in a shell command", "def f(): 0\n---\n!echo {globals().update(f=1)}"),
    soft("a text for timeit", "import timeit\ntimeit.timeit('global f; f = torch.softmax')"),
    soft("a name that nobody binds", "pass", named="no cell defines"),
    soft("a file of numbers", "pass", "np.fromfile('x')", "fromfile"),
    soft("a field of a text", "import string\nf = string.Formatter().get_field"),
    soft("an annotation evaluated", "import typing\nclass A: f: 'torch.softmax'\n"
         "f = typing.get_type_hints(A)['f']"),
    soft("another file run", "%run mine.py"),
    soft("python in a line", "x = !python mine.py\nf = lambda *a: np.array(x)"),
    soft("a file beside the notebook", "from mine import f",
         files={"mine.py": "from torch import softmax as f"}, named="torch.softmax"),
    soft("a file that a file imports", "import mine", "mine.f(scores, axis)",
         files={"mine.py": "from yours import *", "yours.py": "from torch import softmax as f"}),
    soft("a folder beside the notebook", "from mine.deep import f",
         files={"mine/__init__.py": "", "mine/deep.py": "from torch import softmax as f"}),
    soft("__getattr__ of a file", "from mine import f", files={"mine.py":
         f"import torch\ndef __getattr__(name): return getattr(torch, {CHARS})"}),
    soft("a file that changes others", "import mine\n---\nimport math", "math.f(scores, axis)",
         files={"mine.py": "import math, torch\nmath.f = torch.softmax"}),
    soft("a file that shadows a module", "from statistics import f",
         files={"statistics.py": "from torch import softmax as f"}),
    soft("no Python file", "from mine import f", files={}, named="mine.f"),
    soft("the recorder replaced", "from attention_course import recording\n"
         "recording.record_calls = None", "np.exp(scores)", "recording"),
    soft("the recorder reached by sys", "import sys\n"
         "sys.modules['attention_course.recording'].x = 1", "np.exp(scores)", "recording"),
    soft("the profiler turned off", "import sys\nsys.setprofile = print", "np.exp(scores)", "sys"),
    soft("the course changed", "import attention_course\nattention_course.check = print",
         "np.exp(scores)", "attention_course"),
    soft("too large to be read", "%cd x\n" * 2_000, "np.exp(scores)", "too large"),
    shape("an array", "f = lambda a, b: (np.empty(a) + np.empty(b)).shape", named="numpy"),
    Code("an import inside", "broadcast_shape",
         ("def broadcast_shape(first, second):\n    import numpy as n\n"
          "    return n.broadcast(n.empty(first), n.empty(second)).shape",), "numpy"),
    shape("a ufunc of SciPy", "from scipy.special import xlogy as g",
          "g([0], [0]).shape", "scipy"),
    Code("NumPy of Matplotlib", "broadcast_shape",
         ("def broadcast_shape(first, second):\n    return plt.np.empty(first)",), "np"),
    shape("PyTorch", "pass", "torch.broadcast_shapes(first, second)", "torch"),
    shape("every name of NumPy", "from numpy import *", "max(first, second)", "numpy.max"),
    Code("a class handed over", "broadcast_shape",
         ("def broadcast_shape(first, second=None):\n    global f\n    if second is None:\n"
          "        f = first\n    else: return f(first, second)",
          "broadcast_shape(lambda a, b: (np.ndarray(a) + np.ndarray(b)).shape)"), "numpy"),
    back("torch inside", "import torch as t\nreturn t.tensor(queries)", named="torch"),
    back("a helper with torch", "return f(queries)", "def f(x): return torch.tensor(x)"),
    back("an object of torch", "return one.new(queries)", "one = torch.ones(3)", named="torch"),
    back("torch of the course", "return plots.torch.ones(3)",
         "from attention_course import plots"),
    back("a class of torch", "return F.apply(queries)", "class F(torch.autograd.Function): pass"),
    Code("a dotted name", "einsum", ("def einsum(a):\n    return np.einsum('ij->i', a)",),
         "numpy.einsum"),
    Code("a dotted name as a text", "einsum",
         ("def einsum(a):\n    name = 'ein' + 'sum'\n    return a",), "einsum"),
    Code("a method by its dotted name", "einsum",
         ("def einsum(a):\n    return torch.tensor(a).norm()",), "norm"),
)  # fmt: skip
