"""What a mutant changes: one function for each kind of change, and tables of pairs.

An operator is a function from a place in the syntax tree to the nodes that could stand there
instead. Adding one means writing such a function and listing it in `OPERATORS`, or adding a pair
to one of the tables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SWAPPED = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
# `a < b` becomes `a < b - 1`: the off-by-one to the side that `<=` does not reach.
OFF_BY_ONE = {ast.Lt: ast.Sub, ast.LtE: ast.Add, ast.Gt: ast.Add, ast.GtE: ast.Sub}
NOT_COMMUTATIVE = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult)
LEFT_ALONE = (ast.Add, ast.Sub, ast.Mult, ast.Div)  # the right operand is dropped
SYMMETRIC = {"maximum", "minimum", "max", "min", "logaddexp", "add", "multiply", "swapaxes"}
_BOTH_WAYS = (
    *(("max", "min"), ("amax", "amin"), ("argmax", "argmin"), ("maximum", "minimum")),
    *(("sum", "mean"), ("any", "all"), ("tril", "triu")),
    *(("zeros", "ones"), ("zeros_like", "ones_like")),
)
RENAMED = {a: b for pair in _BOTH_WAYS for a, b in (pair, pair[::-1])}
BUILTINS = {"max", "min", "any", "all"}  # those of them that are names without a module, too
DROPPED_CALLS = {
    *("transpose", "swapaxes", "moveaxis", "permute", "squeeze"),
    *("sqrt", "abs", "copy", "clone", "detach"),
}
DROPPED_ATTRIBUTES = {"T", "mT"}
MODULES = {"np", "numpy", "torch", "math", "F"}
DROPPED_STATEMENTS = (ast.Raise, ast.AugAssign, ast.Expr, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Place:
    """Where a node hangs in the tree; `above` is the place of its parent."""

    parent: ast.AST
    field: str
    index: int | None
    above: Place | None

    @property
    def node(self) -> Any:
        """The node that hangs here now."""
        value = getattr(self.parent, self.field)
        return value if self.index is None else value[self.index]

    def put(self, node: ast.AST) -> None:
        """Hang another node here."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node

    @property
    def line(self) -> int:
        """Line of the node, or of the nearest one above that has a line."""
        return getattr(self.node, "lineno", 0) or (self.above.line if self.above else 0)

    @property
    def function(self) -> ast.FunctionDef | None:
        """The innermost function around the node."""
        if isinstance(self.parent, ast.FunctionDef) or not self.above:
            return self.parent if isinstance(self.parent, ast.FunctionDef) else None
        return self.above.function


def _with(node: ast.AST, **changes: Any) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **changes})


def number_of(node: ast.AST) -> int | float | None:
    """Return the number that a node spells, its minus sign included, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = number_of(node.operand)
        return None if number is None else -number
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) in (int, float) else None


def _spelled(number: int | float) -> ast.expr:
    plain = ast.Constant(abs(number))
    return ast.UnaryOp(ast.USub(), plain) if number < 0 else plain


def _plus(node: ast.expr, step: int) -> ast.expr:
    number = number_of(node)
    if number is not None:
        return _spelled(number + step)
    return ast.BinOp(node, ast.Add() if step > 0 else ast.Sub(), ast.Constant(abs(step)))


def _called(node: ast.AST) -> str:
    """Return the last part of the name that a call calls, or ""."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def _exchanged(items: list, first: int) -> list:
    return [*items[:first], items[first + 1], items[first], *items[first + 2 :]]


def _assigned(function: ast.AST, line: int) -> list[str]:
    """List the local names that statements above `line` bind, in order, without parameters."""
    found: dict[str, None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.For) and node.lineno < line:
            for target in getattr(node, "targets", None) or [node.target]:
                names = (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
                found.update(dict.fromkeys(names))
    return sorted(found)


def swapped_operator(place: Place) -> Iterator[ast.AST]:
    """`a + b` → `a - b`, `a < b` → `a <= b`, `a and b` → `a or b`."""
    for other in SWAPPED.get(type(place.node), ()):
        yield other()


def off_by_one(place: Place) -> Iterator[ast.AST]:
    """`a < b` → `a < b - 1`, `a <= b` → `a <= b + 1`."""
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OFF_BY_ONE:
        (right,) = node.comparators
        if number_of(right) is None:
            operator = OFF_BY_ONE[type(node.ops[0])]()
            yield _with(node, comparators=[ast.BinOp(right, operator, ast.Constant(1))])


def negated_test(place: Place) -> Iterator[ast.AST]:
    """`if a` → `if not a`; comparisons are left to `swapped_operator`."""
    node = place.node
    if place.field in ("test", "ifs") and not isinstance(node, ast.Compare | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), node)


def dropped_sign(place: Place) -> Iterator[ast.AST]:
    """`-a` → `a`, `not a` → `a`, `~a` → `a`."""
    if isinstance(place.node, ast.UnaryOp):
        yield place.node.operand


def changed_number(place: Place) -> Iterator[ast.AST]:
    """`1` → `2` and `0`, `-1` → `0` and `-2`, `0.5` → `1.0`, `0.0` → `1.0`."""
    number = number_of(place.node)
    if isinstance(number, float):
        yield _spelled(2 * number if number else 1.0)
    elif number is not None:
        yield from (_spelled(number + 1), _spelled(number - 1))


def flipped_boolean(place: Place) -> Iterator[ast.AST]:
    """`keepdims=True` → `keepdims=False`."""
    if isinstance(place.node, ast.Constant) and isinstance(place.node.value, bool):
        yield ast.Constant(not place.node.value)


def exchanged_arguments(place: Place) -> Iterator[ast.AST]:
    """`f(a, b)` → `f(b, a)`, `where(m, a, b)` → `where(m, b, a)`, `a @ b` → `b @ a`."""
    node = place.node
    if isinstance(node, ast.Call) and _called(node) not in SYMMETRIC:
        for first in range(len(node.args) - 1):
            yield _with(node, args=_exchanged(node.args, first))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, NOT_COMMUTATIVE):
        yield _with(node, left=node.right, right=node.left)


def exchanged_entries(place: Place) -> Iterator[ast.AST]:
    """`(a, b)` → `(b, a)`, also in `x[:, None]` and in what is returned or assigned."""
    if isinstance(place.node, ast.Tuple):
        entries = place.node.elts
        for first in range(len(entries) - 1):
            if not {ast.unparse(entries[first]), ast.unparse(entries[first + 1])} <= {"...", ":"}:
                yield _with(place.node, elts=_exchanged(entries, first))


def dropped_operand(place: Place) -> Iterator[ast.AST]:
    """`a / b` → `a`."""
    if isinstance(place.node, ast.BinOp) and isinstance(place.node.op, LEFT_ALONE):
        yield place.node.left


def dropped_call(place: Place) -> Iterator[ast.AST]:
    """`x.T` → `x`, `np.swapaxes(x, 1, 2)` → `x`, `x.transpose(0, 2, 1)` → `x`, `sqrt(x)` → `x`."""
    node = place.node
    if isinstance(node, ast.Attribute) and node.attr in DROPPED_ATTRIBUTES:
        yield node.value
    elif isinstance(node, ast.Call) and _called(node) in DROPPED_CALLS:
        owner = getattr(node.func, "value", None)
        is_method = owner is not None and getattr(owner, "id", "") not in MODULES
        yield from [owner] if is_method else node.args[:1]


def renamed_call(place: Place) -> Iterator[ast.AST]:
    """`x.max()` → `x.min()`, `np.sum(x)` → `np.mean(x)`."""
    node = place.node
    if place.field != "func":
        return
    if isinstance(node, ast.Attribute) and node.attr in RENAMED:
        yield _with(node, attr=RENAMED[node.attr])
    elif isinstance(node, ast.Name) and node.id in BUILTINS:
        yield _with(node, id=RENAMED[node.id])


def shifted_slice(place: Place) -> Iterator[ast.AST]:
    """`x[:n]` → `x[1:n]`, `x[:n + 1]` and `x[:n - 1]`."""
    node = place.node
    if not isinstance(node, ast.Slice) or (node.lower is None and node.upper is None):
        return
    for bound, start in (("lower", 1), ("upper", -1)):
        old = getattr(node, bound)
        if old is None:
            yield _with(node, **{bound: _spelled(start)})
        elif number_of(old) is None:  # `changed_number` takes the others
            yield from (_with(node, **{bound: _plus(old, step)}) for step in (1, -1))


def exchanged_letters(place: Place) -> Iterator[ast.AST]:
    """`einsum("ij,jk->ik", …)` → `einsum("ji,jk->ik", …)`, for each of its terms."""
    node = place.node
    if place.field != "args" or _called(place.parent) != "einsum" or place.index != 0:
        return
    text = node.value if isinstance(node, ast.Constant) else ""
    for start in range(len(text) - 1):
        after = text[start + 2 : start + 3]
        if text[start : start + 2].isalpha() and not after.isalpha():
            yield ast.Constant(text[:start] + text[start + 1] + text[start] + text[start + 2 :])


def other_return(place: Place) -> Iterator[ast.AST]:
    """`return a` → `return b`, for every other local name."""
    if isinstance(place.node, ast.Return) and place.function:
        for name in _assigned(place.function, place.line):
            yield ast.Return(ast.Name(name, ast.Load()))


def dropped_statement(place: Place) -> Iterator[ast.AST]:
    """Drop calls, `raise`, `+=`, `break`, and assignments to what has had a value before."""
    node = place.node
    if isinstance(node, DROPPED_STATEMENTS):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        yield from [] if is_docstring else [ast.Pass()]
    elif isinstance(node, ast.Assign) and place.function:
        bound = {part.arg for part in ast.walk(place.function.args) if isinstance(part, ast.arg)}
        bound.update(_assigned(place.function, place.line))
        parts = [part for target in node.targets for part in ast.walk(target)]
        names = [
            part.id
            for part in parts
            if isinstance(getattr(part, "ctx", None), ast.Store) and isinstance(part, ast.Name)
        ]
        if bound.issuperset(names):
            yield ast.Pass()


OPERATORS: tuple[Callable[[Place], Iterator[ast.AST]], ...] = (
    swapped_operator,
    off_by_one,
    negated_test,
    dropped_sign,
    changed_number,
    flipped_boolean,
    exchanged_arguments,
    exchanged_entries,
    dropped_operand,
    dropped_call,
    renamed_call,
    shifted_slice,
    exchanged_letters,
    other_return,
    dropped_statement,
)
