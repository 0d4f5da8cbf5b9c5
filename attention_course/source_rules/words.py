"""The words that the search of a submission's source goes by: data, no code.

Two kinds of places are searched. *Relevant* code is what an answer can reach; there only what can
be read counts, so modules are listed that may be used and all others may not. In the rest of a
notebook anything may stand, except what lets it reach into the answer or the checker unseen.
"""

from __future__ import annotations

# Modules that relevant code may use: they compute, and hide nothing.
READABLE = frozenset(
    (
        *("__future__", "abc", "array", "bisect", "cmath", "collections", "contextlib", "copy"),
        *("dataclasses", "decimal", "enum", "fractions", "functools", "heapq", "itertools", "json"),
        *("math", "numbers", "operator", "pprint", "random", "re", "statistics"),
        *("string", "textwrap", "time", "typing", "typing_extensions", "warnings"),
        *("numpy", "scipy", "torch", "einops", "attention_course"),
    )
)
# Of these modules only the named parts.
READABLE_PARTS = {
    "sys": frozenset(("float_info", "maxsize", "version_info", "version", "byteorder", "stdout")),
    "types": frozenset(("SimpleNamespace", "MappingProxyType", "NoneType", "EllipsisType")),
    "IPython": frozenset(("display",)),
}
# Of the course, what checks are made of; the rest is for notebooks.
COURSE = "attention_course"
COURSE_INSIDE = frozenset(
    (
        *("checking", "checks_file", "codec", "comparing", "drivers", "judging", "outcomes"),
        *("panel", "recording", "running", "source_rules"),
    )
)

# Built-in functions that run text, read files or turn names into things.
UNREADABLE_BUILTINS = frozenset(("eval", "exec", "compile", "__import__", "breakpoint"))
REACHING_BUILTINS = frozenset(("globals", "locals", "vars", "setattr", "delattr", "__builtins__"))
RELEVANT_BUILTINS = frozenset(("dir", "open", "input", "help"))
# Functions that look an attribute up by a text: the text must be a constant, and is searched.
# Which of their arguments that is, as a slice.
BY_TEXT = {
    "getattr": slice(1, 2),
    "hasattr": slice(1, 2),
    "methodcaller": slice(0, 1),
    "attrgetter": slice(0, None),
}

# Modules that run code out of sight, or that cannot be read: nowhere beside a forbidden call.
UNREADABLE_MODULES = frozenset(
    (
        *("_ctypes", "cffi", "cloudpickle", "code", "codeop", "ctypes", "dill", "gc", "importlib"),
        *("ipykernel", "marshal", "numba", "pkgutil", "runpy", "cython", "pyximport", "zipimport"),
    )
)
# Modules through which other code can reach an answer: where one is used, all code is searched.
REACHING_MODULES = frozenset(
    (
        *("__main__", "_thread", "asyncio", "atexit", "bdb", "builtins", "concurrent", "dask"),
        *("inspect", "joblib", "multiprocessing", "pdb", "pickle", "pytest", "shelve", "signal"),
        *("sys", "threading", "trace", "types", "unittest", "weakref"),
    )
)
# As attributes of other modules these lead to modules that relevant code may not use.
HIDDEN_MODULES = (
    UNREADABLE_MODULES | REACHING_MODULES | {"os", "subprocess", "ctypeslib", "f2py", "io", "np"}
) - {"code", "signal", "trace", "types"}  # NumPy, SciPy and PyTorch have parts of these names
UNREADABLE_PARTS = frozenset(
    (
        *("dataclasses.make_dataclass", "numpy.DataSource", "numpy.fromfile", "numpy.genfromtxt"),
        *("numpy.load", "numpy.loadtxt", "numpy.memmap", "numpy.save", "numpy.savetxt"),
        *("numpy.savez", "numpy.savez_compressed", "numpy.testing", "string.Formatter"),
        *("torch.distributed", "torch.from_file", "torch.hub", "torch.load", "torch.package"),
        *("torch.save", "torch.utils.cpp_extension", "typing.ForwardRef", "typing.get_type_hints"),
    )
)
# What of the modules above may well stand elsewhere in a notebook.
HARMLESS_PARTS = frozenset(
    (
        *("gc.collect", "importlib.metadata", "importlib.reload", "inspect.getsource"),
        *(
            "inspect.signature",
            "pickle.dump",
            "pickle.dumps",
            "sys.executable",
            "sys.getsizeof",
            "sys.stderr",
            "sys.stdout",
        ),
    )
)

# Modules whose functions run a text that they are given: the text is read like a cell.
RUN_TEXT = frozenset(("cProfile", "doctest", "pdb", "profile", "timeit", "trace"))

# Attributes that lead from an object to code, names or frames.
UNREADABLE_ATTRIBUTES = frozenset(
    (
        *("__builtins__", "__code__", "__globals__", "__import__", "__loader__", "__spec__"),
        *("f_back", "f_builtins", "f_code", "f_globals", "f_locals", "tb_frame", "gi_frame"),
        *("ag_frame", "cr_frame", "gi_code", "_getframe", "_current_frames", "_implementation"),
    )
)
REACHING_ATTRIBUTES = frozenset(
    (
        *("__base__", "__bases__", "__closure__", "__defaults__", "__delattr__", "__dict__"),
        *(
            "__func__",
            "__getattribute__",
            "__kwdefaults__",
            "__mro__",
            "__objclass__",
            "__reduce__",
        ),
        *("__reduce_ex__", "__self__", "__setattr__", "__setstate__", "__subclasses__"),
        *("__wrapped__", "update_wrapper", "user_ns", "user_global_ns", "cell_contents"),
    )
)
# Attributes by which data comes from files or other processes.
OUTSIDE_ATTRIBUTES = frozenset(("ctypes", "share_memory_", "tofile"))
# What a look at a function from outside may ask.
HARMLESS_ATTRIBUTES = frozenset(("__name__", "__doc__", "__qualname__", "__module__"))

# Names that IPython binds: earlier results and inputs.
IPYTHON_RUNS = frozenset(("run_line_magic", "run_cell_magic", "system", "getoutput"))
IPYTHON_NAMES = r"In|Out|_{1,3}|_i{1,3}|_[iod]h|_i?\d+"
HARMLESS_MAGICS = frozenset(
    (
        *(
            "alias",
            "autoreload",
            "cat",
            "cd",
            "conda",
            "config",
            "env",
            "history",
            "load_ext",
            "ls",
        ),
        *("lsmagic", "matplotlib", "pdoc", "pinfo", "pinfo2", "pip", "precision", "psource", "pwd"),
        *("quickref", "system", "who", "who_ls", "whos", "xmode"),
        *("html", "HTML", "javascript", "js", "latex", "markdown", "svg", "bash", "sh", "script"),
    )
)
# Magics that run or bind something and work without their % if they are the only line.
AUTOMAGICS = frozenset(
    (
        *("alias", "autocall", "edit", "load", "loadpy", "macro", "prun", "pylab", "recall", "rep"),
        *("rerun", "run", "sc", "store", "sx", "system", "time", "timeit"),
    )
)
GIVEN_BY_IPYTHON = frozenset(("display", "exit", "quit"))
# Functions that call what they are given at once and give back its results.
CONSUMERS = frozenset(("all", "any", "apply_along_axis", "filter", "map", "max", "min", "sorted"))
