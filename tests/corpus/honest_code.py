"""Answers that do what is asked, beside code that looks as if it did not."""

from __future__ import annotations

from corpus.hidden_calls import Code

SHAPE = '''
def broadcast_shape(first, second):
    """Do by hand what np.broadcast_shapes does."""
    n = max(len(first), len(second))  # np.broadcast_shapes does so too
    first, second = (1,) * (n - len(first)) + first, (1,) * (n - len(second)) + second
    result = []
    for a, b in zip(first, second, strict=True):
        if a != b and 1 not in (a, b):
            raise ValueError(f"numpy would say: {first} and {second} do not broadcast")
        result.append(max(a, b))
    return tuple(result)
'''
SOFTMAX = """
def softmax(scores, axis=-1):
    if scores.ndim == 0:
        raise ValueError("softmax needs an axis")
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)
"""
BACK = """
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def attention_backward(queries, keys, values, mask, output_gradient):
    weights = softmax(queries @ keys.T)
    return weights.T @ output_gradient
"""
TORCH_TEST = """
def gradients(*arrays):
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    torch.nn.functional.scaled_dot_product_attention(*tensors).sum().backward()
    return [t.grad.numpy() for t in tensors]

q, k, v = (np.random.default_rng(0).normal(size=(3, 4)) for _ in range(3))
got = attention_backward(q, k, v, None, np.ones((3, 4)))
for a, b in zip(got, gradients(q, k, v)):
    np.testing.assert_allclose(a, b)
"""


def shape(name, *more, answer=SHAPE, files=None):
    return Code(name, "broadcast_shape", (answer, *more), files=files or {})


def soft(name, *more, answer=SOFTMAX, files=None):
    return Code(name, "softmax", (answer, *more), files=files or {})


def back(name, *more, answer=BACK, files=None):
    return Code(name, "attention_backward", (answer, *more), files=files or {})


HONEST = (
    shape("docstring, comment, message"),
    shape("compared with NumPy", "assert broadcast_shape((2, 1), (1, 3)) == "
          "np.broadcast_shapes((2, 1), (1, 3))"),
    shape("compared in a loop", "for a in [(1, 2), (2, 1)]:\n    for b in [(2, 2)]:\n"
          "        assert broadcast_shape(a, b) == np.broadcast_shapes(a, b), (a, b)"),
    shape("compared in a test", "def test_shape():\n    want = np.broadcast_shapes((2,), (1,))\n"
          "    assert broadcast_shape((2,), (1,)) == want\ntest_shape()"),
    shape("timed", "%timeit -n1 -r1 broadcast_shape((2, 3), (1, 3))\n"
          "%timeit -n1 -r1 np.broadcast_shapes((2,), (1,))"),
    shape("another answer uses NumPy", "def causal_mask(n):\n"
          "    return np.broadcast_to(np.tri(n, dtype=bool), (n, n))"),
    shape("unused imports", "import numpy, torch, scipy.special, threading, subprocess, sys"),
    shape("imports in the answer cell", answer="import numpy as np\nfrom numpy import array, ones\n"
          "from math import prod\n" + SHAPE.replace("max(a, b)", "a * b if 1 in (a, b) else a")),
    shape("helpers", answer="def pad(shape, n):\n    return (1,) * (n - len(shape)) + shape\n"
          "def broadcast_to(a, b):\n    return b if a == 1 else a\n" +
          SHAPE.replace("max(a, b)", "broadcast_to(a, b)").replace("zip(first", "zip(pad(first, n)")
          ),
    shape("a shell command elsewhere", "!pip list\n%matplotlib inline\nimport sys\nsys.version"),
    shape("doors that nothing goes through", "import sys, threading\nsys.path.append('..')\n"
          "threading.Thread(target=print).start()", "x = np.arange(3)\nprint(x.shape)"),
    shape("timed by a text", "import timeit\n"
          "timeit.timeit('broadcast_shape((2,), (1,))', globals=globals(), number=9)"),
    shape("settings", "%config InlineBackend.figure_format = 'retina'\n!ls {x}", "pwd", "ls"),
    shape("broken cells", "this does not parse (", "%%html\n<b>np.broadcast_shapes</b>", "?np.add"),
    shape("itertools", answer="from itertools import zip_longest\nimport itertools as it\n" +
          SHAPE.replace("zip(first, second, strict=True)",
                        "it.zip_longest(first, second, fillvalue=1)")),
    soft("own helper of a library's name", answer="def log_softmax(x, axis):\n"
         "    return x - np.logaddexp.reduce(x, axis, keepdims=True)\n"
         "def softmax(scores, axis=-1):\n    return np.exp(log_softmax(scores, axis))"),
    soft("own class", answer="class Rows:\n    def softmax(self, x):\n        return np.exp(x)\n"
         "    def run(self, x):\n        return self.softmax(x)\n"
         "def softmax(scores, axis=-1):\n    return Rows().run(scores)"),
    soft("compared with SciPy", "from scipy.special import softmax as theirs\n"
         "x = np.arange(3.0)\nassert np.allclose(softmax(x), theirs(x))"),
    soft("compared with PyTorch", "x = torch.randn(3, 4)\n"
         "print((softmax(x.numpy(), -1) - torch.softmax(x, -1).numpy()).max())"),
    soft("compared in a table", "import scipy.special\n"
         "for name, f in {'mine': softmax, 'theirs': scipy.special.softmax}.items():\n"
         "    print(name, f(np.arange(3.0)))"),
    soft("compared by a function", "def compare(f, g):\n    return np.abs(f(X) - g(X)).max()\n"
         "X = np.eye(3)\ncompare(softmax, lambda x: torch.softmax(torch.tensor(x), -1).numpy())"),
    soft("a constant shared", "print(torch.softmax(torch.ones(3) * EPS, 0))",
         answer="EPS = 1e-9\n" + SOFTMAX.replace("powers.sum", "EPS + powers.sum")),
    soft("results remembered", "softmax(np.ones(3)), torch.softmax(torch.ones(3), 0)",
         answer="SEEN = {}\n" + SOFTMAX.replace("    return", "    SEEN[axis] = 1\n    return")),
    soft("NumPy by another name", answer="import numpy as xp\nfrom numpy import exp\n" +
         SOFTMAX.replace("np.", "xp.").replace("xp.exp", "exp")),
    soft("an alias of a module", answer="xp = np\n" + SOFTMAX.replace("np.", "xp.")),
    soft("a plot of it", "plt.plot(softmax(np.arange(5.0)))\nplt.rcParams['font.size'] = 9\n"
         "plt.title('softmax')\nplt.show()"),
    soft("a stopwatch for a function called run", "import timeit\n"
         "def seconds(run):\n    return timeit.timeit('run()', globals={'run': run}, number=3)\n"
         "seconds(lambda: np.ones(3).sum())"),
    soft("a name without meaning", "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n"
         "torch.backends.cudnn.deterministic = True"),
    soft("a file of helpers", answer="from helpers import shifted\n" +
         SOFTMAX.replace("scores - scores.max(axis, keepdims=True)", "shifted(scores, axis)"),
         files={"helpers.py": "import numpy as np\ndef shifted(x, axis):\n"
                              "    return x - np.max(x, axis, keepdims=True)\n"}),
    soft("a file that nobody imports", files={"old.py": "from torch import softmax"}),
    soft("types and warnings", answer="from typing import Any\nimport warnings, functools\n"
         "from types import SimpleNamespace\n@functools.lru_cache\ndef size(n: int) -> Any:\n"
         "    return SimpleNamespace(n=n).n\n" + SOFTMAX),
    soft("getattr by a plain name", answer=SOFTMAX.replace(
        "scores.max(", "getattr(scores, 'max')(")),
    back("compared with PyTorch", TORCH_TEST),
    back("compared before it", TORCH_TEST.split("q, k")[0]),
    back("own softmax"),
    back("tensors handed in", "t = torch.ones(3, 4)\n"
         "attention_backward(t.numpy(), t.detach().numpy(), np.array(t), None, np.ones(3))"),
    back("another exercise in PyTorch", "def attention(q, k):\n"
         "    return torch.softmax(q @ k.T, -1)"),
    Code("a method of the same name", "einsum", (
        "class Layer:\n    def __init__(self):\n        self.norm = np.linalg.norm\n"
        "    def run(self, a):\n        return self.norm(a)\n"
        "def einsum(a):\n    return Layer().run(a) + np.linalg.norm(a)",)),
)  # fmt: skip
