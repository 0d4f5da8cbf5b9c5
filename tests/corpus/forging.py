"""Pieces of hostile code that several attacks share; they run inside a submission's kernel."""

from __future__ import annotations

import itertools

# Values that a forger can know: zeros, or the expected ones of the public cases.
FORGE = """
import json, os, time
import numpy as np
from IPython import get_ipython
from IPython.display import display
from attention_course import checking, codec, checks_file, running
TYPE = checking.OUTCOMES_TYPE
NAMES = list(codec.loads(open("checks.json").read()))
def task(name):
    return codec.loads(open("hidden_cases.json").read())[name]
def public(name):
    return checks_file.load_exercise(name)
def outcomes(name, array=None):
    count = len(task(name)["cases"])
    known = [outcome.to_plain() for outcome in public(name).expected]
    zero = {**known[0], "outputs": {"result": np.zeros(3)}, "kinds": {"result": "array"}}
    return (known if array is None else [{**zero, "outputs": {"result": array}}] * count)[:count]
def document(name, array=None):
    return codec.dumps({"exercise": name, "outcomes": outcomes(name, array)})
def show(text, **more):
    display({TYPE: text, "text/plain": "100"}, raw=True, **more)
"""

EXERCISES = ("as_column", "outer_difference", "normalise_rows", "broadcast_shape")


def everywhere(first: str, *bodies: str) -> dict[str, str]:
    """Answer the exercises with functions of these bodies, in turn; `first` runs before them."""
    answers = {}
    for name, body in zip(EXERCISES, itertools.cycle(bodies), strict=False):
        inside = "\n".join(f"    {line}" for line in body.splitlines())
        answers[name] = f"def {name}(*args, **kwargs):\n{inside}"
    answers["as_column"] = f"{first}\n{answers['as_column']}"
    return answers
