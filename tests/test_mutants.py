"""Mutants: each kind of change is made, one at a time, readable, in a stable order."""

import ast
import difflib
import inspect

import pytest

from autograder.audit import mutants
from autograder.audit.mutant_operators import OPERATORS
from autograder.audit.mutants import make_mutants
from autograder.exercises import chapters
from autograder.masters import BEGIN, END

ACCEPTED = [
    pytest.param(inspect.getsource(function), id=f"{exercise.id}-{function.__name__}")
    for exercises in chapters().values()
    for exercise in exercises.values()
    for function in exercise.accepted[:2]
]


def descriptions(body):
    source = "def f(a, b, x, n, mask):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    return [mutant.description for mutant in make_mutants(source)]


CHANGES = [
    ("return a + b", "`a + b` → `a - b`"),
    ("return a / b", "`a / b` → `a * b`"),
    ("return a // b", "`a // b` → `a * b`"),
    ("return a % b", "`a % b` → `a // b`"),
    ("return a ** b", "`a ** b` → `a * b`"),
    ("return a & b", "`a & b` → `a | b`"),
    ("return a and b", "`a and b` → `a or b`"),
    ("return a < b", "`a < b` → `a <= b`"),
    ("return a < b", "`a < b` → `a >= b`"),
    ("return a < b", "`a < b` → `a < b - 1`"),
    ("return a <= b", "`a <= b` → `a <= b + 1`"),
    ("return a > b", "`a > b` → `a > b + 1`"),
    ("return a == b", "`a == b` → `a != b`"),
    ("if a is None:\n    return b", "`a is None` → `a is not None`"),
    ("if a:\n    return b", "`a` → `not a`"),
    ("if not a:\n    return b", "`not a` → `a`"),
    ("return [i for i in x if mask]", "`mask` → `not mask`"),
    ("return ~mask", "`return ~mask` → `return mask`"),
    ("return -a", "`return -a` → `return a`"),
    ("return x[3]", "`x[3]` → `x[4]`"),
    ("return x[3]", "`x[3]` → `x[2]`"),
    ("return x.sum(axis=-1)", "`x.sum(axis=-1)` → `x.sum(axis=-2)`"),
    ("return x.sum(axis=-1)", "`x.sum(axis=-1)` → `x.sum(axis=1)`"),
    ("return x.sum(axis=0)", "`x.sum(axis=0)` → `x.sum(axis=1)`"),
    ("return a + 0.5", "`a + 0.5` → `a + 1.0`"),
    ("return a + 0.0", "`a + 0.0` → `a + 1.0`"),
    ("return x.max(keepdims=True)", "`x.max(keepdims=True)` → `x.max(keepdims=False)`"),
    ("return f(a, b)", "`f(a, b)` → `f(b, a)`"),
    ("return a @ b", "`a @ b` → `b @ a`"),
    ("return a - b", "`a - b` → `b - a`"),
    ("return np.where(mask, a, b)", "`np.where(mask, a, b)` → `np.where(mask, b, a)`"),
    ("return x[:, None]", "`x[:, None]` → `x[None, :]`"),
    ("return a, b", "`return (a, b)` → `return (b, a)`"),
    ("a, b = x.shape\nreturn a", "`a, b = x.shape` → `b, a = x.shape`"),
    ("return a / n", "`a / n` → `a`"),
    ("return x.T @ a", "`x.T` → `x`"),
    ("return x.transpose(0, 2, 1)", "`x.transpose(0, 2, 1)` → `x`"),
    ("return np.swapaxes(x, -1, -2)", "`np.swapaxes(x, -1, -2)` → `x`"),
    ("return a / np.sqrt(n)", "`np.sqrt(n)` → `n`"),
    ("x = x.copy()\nreturn x", "`x.copy()` → `x`"),
    ("return x.max()", "`x.max()` → `x.min()`"),
    ("return max(a, b)", "`max(a, b)` → `min(a, b)`"),
    ("return np.sum(x)", "`np.sum(x)` → `np.mean(x)`"),
    ("return x[:n]", "`x[:n]` → `x[1:n]`"),
    ("return x[:n]", "`x[:n]` → `x[:n + 1]`"),
    ("return x[n:]", "`x[n:]` → `x[n - 1:]`"),
    ("return x[n:]", "`x[n:]` → `x[n:-1]`"),
    (
        'return np.einsum("qd,kd->qk", a, b)',
        "`np.einsum('qd,kd->qk', a, b)` → `np.einsum('qd,kd->kq', a, b)`",
    ),
    ("y = a\nz = y + b\nreturn z", "`return z` → `return y`"),
    ("x = x - a\nreturn x", "drop `x = x - a`"),
    ("x[0] = a\nreturn x", "drop `x[0] = a`"),
    ("x += a\nreturn x", "drop `x += a`"),
    ("n -= 1\nreturn n", "drop `n -= 1`"),
    ("x.append(a)\nreturn x", "drop `x.append(a)`"),
    ("if n:\n    raise ValueError('n')\nreturn a", "drop `raise ValueError('n')`"),
]


@pytest.mark.parametrize(("body", "description"), CHANGES)
def test_the_change_is_made(body, description):
    assert description in descriptions(body)


LEFT_ALONE = [
    ("y = a\nreturn y", "drop"),  # nothing would be left to return
    ("return zip(a, b, strict=True)", "strict=False"),
    ("raise ValueError('one' if 1 else 'two')", "not 1"),
    ("raise ValueError(f'{n + 1}')", "n + 2"),
    ("return np.maximum(a, b)", "maximum(b, a)"),
    ("return np.swapaxes(x, -1, -2)", "(x, -2, -1)"),
    ("return x[..., :, None]", "[:, ..., None]"),
    ("'''Doc + string 1.'''\nreturn a", "Doc"),
    ("y: 'a + 1' = a\nreturn y", "a + 2"),
]


@pytest.mark.parametrize(("body", "fragment"), LEFT_ALONE)
def test_what_cannot_be_wrong_is_left_alone(body, fragment):
    assert not [text for text in descriptions(body) if fragment in text]


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_every_operator_has_a_change_of_its_own(operator, monkeypatch):
    others = tuple(other for other in OPERATORS if other is not operator)
    monkeypatch.setattr(mutants, "OPERATORS", others)
    assert [text for body, text in CHANGES if text not in descriptions(body)]


def test_a_repeated_change_is_numbered():
    found = descriptions("a = n + 1\nb = n + 1\nreturn a * b")
    assert "`n + 1` → `n + 2`" in found
    assert "`n + 1` → `n + 2` (occurrence 2)" in found


def test_a_new_line_above_does_not_rename_mutants():
    short, long = "return a + b", "\n\nn = 5\nreturn a + b"
    assert set(descriptions(short)) - {"`return a + b` → `return n`"} <= set(descriptions(long))


def test_only_the_solution_region_is_changed():
    source = f"def f(a, axis=-1):\n    b = 1\n    {BEGIN}\n    c = 2\n    {END}\n    return b + c\n"
    assert descriptions_of(source) == ["`c = 2` → `c = 3`", "`c = 2` → `c = 1`"]


def descriptions_of(source):
    return [mutant.description for mutant in make_mutants(source)]


@pytest.mark.parametrize("source", ACCEPTED)
def test_mutants_of_real_answers_are_sound(source):
    made = make_mutants(source)
    assert made == make_mutants(source)
    original = ast.unparse(ast.parse(source))
    assert len({mutant.description for mutant in made}) == len(made)
    assert len({mutant.source for mutant in made} | {original}) == len(made) + 1
    for mutant in made:
        compile(mutant.source, "<mutant>", "exec")
        assert "\n" not in mutant.description
        changed = [
            line
            for line in difflib.ndiff(original.splitlines(), mutant.source.splitlines())
            if line[0] == "-"
        ]
        assert len(changed) == 1, mutant.description
