"""Scalar expressions over index variables: what a captured array's element is.

An array is its element at given indices. Views, broadcasts and transposes are arithmetic of
indices and leave no trace; a reduction binds an index variable. Expressions are interned: equal
ones are one object, so that equality is identity and a common subexpression is met once.

Floating point of up to 32 bits is computed in float32, whatever arrays are stored in: a load
widens, a store rounds, and `cast` to a narrower type rounds where the user says so.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tile_api.arrays.equations.memoization import memoized
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.equations.sizes import Size, at_most, is_multiple, whole
from tile_core.dtypes import DType, dtype_of

INDEX = dtype_of("int64")
"""What indices are computed in: NumPy's type of `arange`."""
BOOL = dtype_of("bool")
_COMPARED = {"lt": operator.lt, "le": operator.le, "eq": operator.eq, "ne": operator.ne}
COMPARISONS = frozenset(_COMPARED)
LOGICAL = frozenset({"and", "or", "not"})


class Expr:
    """An interned expression.

    Attributes
    ----------
    op
        ``const``, ``index``, ``load``, ``reduce``, ``scan``, ``carry``, ``state``, or an operator
        on elements.
    args
        Operands; of a load, its indices.
    value
        A constant's value; an index variable's `(name, extent)`; the array of a load; of a
        reduction `(kind, variable, extent)`; of a recurrence see `tile_api.arrays.capturing.scan`.
    dtype
        What it is computed in.
    free
        Names of the index variables that it depends on.
    serial
        The order in which they were first met: sums and products are printed in it.
    """

    __slots__ = ("__weakref__", "args", "dtype", "free", "op", "serial", "value")
    op: str
    args: tuple[Expr, ...]
    value: Any
    dtype: DType
    free: frozenset[str]
    serial: int

    def __repr__(self) -> str:
        """Return it as a formula."""
        return formula(self)

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return self.op == "const"


Indices = tuple[Expr, ...]
"""At which an element of an array stands: one for each dimension."""

_POOL: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()
_COUNT = 0
_FIRST = 0
"""The serial of the first expression that was met since `begin`."""


def make(op: str, *args: Expr, value: Any = None, dtype: DType | None = None) -> Expr:
    """Return the expression, which exists once; `dtype` is that of the operands if not given."""
    global _COUNT
    if dtype is None:
        dtype = BOOL if op in COMPARISONS or op in LOGICAL else args[-1].dtype
    if op in COMPARISONS and args[0].op == args[1].op == "const":
        return const(_COMPARED[op](args[0].value, args[1].value), "bool")
    key = (op, args, _key_of(value), dtype)
    known = _POOL.get(key)
    if known is not None:
        if known.serial < _FIRST:
            known.serial, _COUNT = _COUNT, _COUNT + 1
        return known
    made = Expr()
    made.op, made.args, made.value, made.dtype = op, args, value, dtype
    made.serial, _COUNT = _COUNT, _COUNT + 1
    free: frozenset[str] = frozenset().union(*(arg.free for arg in args))
    if op == "index":
        free = frozenset({value[0]})
    elif op == "reduce":
        free -= {value[1]}
    elif op == "state":
        free = frozenset(value[1])
    elif op == "carry":
        free |= {value[0]}
    elif op == "scan":
        free = value.free(args)
    made.free = free
    _POOL[key] = made
    return made


def begin(*roots: Expr) -> None:
    """Meet expressions anew, those of `roots` first.

    What is derived of them has one order of sums and products, so one text and one compile key,
    whatever the process made of equal expressions before.
    """
    global _COUNT, _FIRST
    _FIRST = _COUNT
    for x in walk(*roots):
        x.serial, _COUNT = _COUNT, _COUNT + 1


def _key_of(value: Any) -> Any:
    """Tell 0.0 from -0.0 and 1 from True; a NaN equals itself, a symbol those that are like it."""
    if isinstance(value, Size):
        return value.key
    if type(value) is tuple and value and isinstance(value[-1], Size):
        return (value[:-1], value[-1].key)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return (type(value), value)


def const(value: bool | int | float, dtype: str = "int64") -> Expr:
    """Return a number; integers wrap around, as those of arrays do."""
    kind = dtype_of(dtype)
    if isinstance(value, Size) and kind.is_float:
        return cast(const(value), kind)
    plain: bool | int | float = value if isinstance(value, Size) else float(value)
    if kind.is_bool:
        plain = bool(value)
    elif kind.is_int and not isinstance(value, Size):
        span = 1 << kind.bits
        low = 0 if kind.startswith("uint") else -(span >> 1)
        plain = (int(value) - low) % span + low
    return make("const", value=plain, dtype=kind)


def index(name: str, extent: int) -> Expr:
    """Return an index variable, from 0 up to `extent`."""
    return make("index", value=(name, extent), dtype=INDEX)


def load(array: str, indices: Iterable[Expr], dtype: DType) -> Expr:
    """Return an element of an array, widened to what it is computed in."""
    return make("load", *indices, value=array, dtype=computed_in(dtype))


def computed_in(dtype: DType) -> DType:
    """Return the type in which elements of `dtype` are computed."""
    return dtype_of("float32") if dtype.is_float and dtype.bits < 32 else dtype


def cast(x: Expr, dtype: DType) -> Expr:
    """Return `x` in another type; to a float of fewer than 32 bits: rounded, then widened."""
    is_number = x.op == "const" and not isinstance(x.value, Size)
    if dtype.is_float and dtype.bits < 32:
        if is_number:
            return const(_rounded(x.value, dtype), "float32")
        return make("round", cast(x, dtype_of("float32")), value=str(dtype))
    if dtype == x.dtype:
        return x
    if is_number and (dtype.is_float or dtype.is_bool or math.isfinite(x.value)):
        widens = x.dtype.is_float and dtype.bits > x.dtype.bits
        return const(_rounded(x.value, x.dtype) if widens else x.value, dtype)
    return make("cast", x, dtype=dtype)


def _rounded(value: float, dtype: DType) -> float:
    """Return the element of `dtype` that a number becomes."""
    kind = dtype.numpy().type
    with np.errstate(all="ignore"):
        return float(kind(value))


def add(x: Expr, y: Expr) -> Expr:
    """Return the sum; constants are folded, and stand first."""
    if x.op == y.op == "const":
        return const(x.value + y.value, x.dtype)
    if y.op == "const":
        x, y = y, x
    if x.op == "const":
        if _key_of(x.value) in ((int, 0), (0.0, -1.0)):  # 0, -0.0; 0.0 is added: -0.0 is none
            return y
        if y.op == "add" and y.args[0].op == "const" and not x.dtype.is_float:
            return add(const(x.value + y.args[0].value, x.dtype), y.args[1])
    for one, other in ((x, y), (y, x)):
        if other.op == "mod" and one is multiply(other.args[1], floordiv(*other.args)):
            return other.args[0]
        if x.dtype.is_int and other.op in ("index", "multiply"):
            parts, opposite = _terms(one), negate(other)
            if opposite in parts:
                parts.remove(opposite)
                return _sum(parts, x.dtype)
    return make("add", x, y)


def floordiv(x: Expr, y: Expr) -> Expr:
    """Return ``x // y`` of integers, folded where it can."""
    return integer_part("floordiv", x, y)


def multiply(x: Expr, y: Expr) -> Expr:
    """Return the product; constants are folded, and stand first."""
    if x.op == y.op == "const":
        return const(x.value * y.value, x.dtype)
    if y.op == "const":
        x, y = y, x
    if x.op == "const":
        if isinstance(x.value, Size):
            return make("multiply", x, y)
        if x.value == 1:
            return y
        if x.value == 0 and not x.dtype.is_float:  # zero times infinity is none
            return x
        if y.op == "multiply" and y.args[0].op == "const":
            factor = x.value * y.args[0].value
            # one factor, unless it is no float32, or they are to be rounded one by one
            if not x.dtype.is_float or (not is_strict() and 1e-30 < abs(factor) < 1e30):
                return multiply(const(factor, x.dtype), y.args[1])
    return make("multiply", x, y)


def negate(x: Expr) -> Expr:
    """Return the product with -1."""
    return multiply(const(-1, x.dtype), x)


def subtract(x: Expr, y: Expr) -> Expr:
    """Return the sum of `x` and the negative of `y`."""
    return add(x, negate(y))


def reciprocal(x: Expr) -> Expr:
    """Return 1/x; the reciprocal of a reciprocal is `x`."""
    if x.op == "const" and (not x.value or math.frexp(x.value)[0] in (0.5, -0.5)):
        return const(1 / x.value if x.value else math.copysign(math.inf, x.value), x.dtype)
    return x.args[0] if x.op == "reciprocal" else make("reciprocal", x)


def divide(x: Expr, y: Expr) -> Expr:
    """Return the product with a reciprocal, which is printed as a division."""
    if x.op == y.op == "const" and y.value:
        return const(x.value / y.value, x.dtype)
    return multiply(x, reciprocal(y))


def where(condition: Expr, x: Expr, y: Expr) -> Expr:
    """Return `x` where the condition holds, else `y`.

    A positive factor of what a mask of negative infinity leaves is one of the whole.
    """
    if condition.op == "const":
        return x if condition.value else y
    if x is y:
        return x
    if is_positive_multiple(x) and y.op == "const" and y.value == -math.inf:
        return multiply(x.args[0], make("where", condition, x.args[1], y))
    return make("where", condition, x, y)


def is_positive_multiple(x: Expr) -> bool:
    """Tell whether `x` has a positive factor that keeps orders: none wraps, or makes NaN of 0."""
    is_scaled = x.dtype.is_float and x.op == "multiply" and x.args[0].op == "const"
    return is_scaled and 0 < x.args[0].value < math.inf


def integer_part(op: str, x: Expr, y: Expr) -> Expr:
    """Return ``x // y`` or ``x % y`` of integers (`op`: "floordiv", "mod"), folded where it can."""
    if x.op == y.op == "const" and y.value != 0:
        return const(x.value // y.value if op == "floordiv" else x.value % y.value, x.dtype)
    if y.op == "const" and y.value == 1:
        return x if op == "floordiv" else const(0, x.dtype)
    bound = bound_of(x)
    if y.op != "const" or y.value < 1 or bound is None:  # else nothing in x overflows
        return make(op, x, y)
    n = whole(y.value)
    parts = _terms(x)
    rest = [part for part in parts if not is_multiple(_factor(part), n)]
    if len(rest) < len(parts):  # (n * a + b) // n
        left = _sum(rest, x.dtype)
        if (most := bound_of(left)) is not None and at_most(most, n):
            if op == "mod":
                return left
            return _sum([_divided(part, n) for part in parts if part not in rest], x.dtype)
    if at_most(bound, n):
        return const(0, x.dtype) if op == "floordiv" else x
    if x.op == "floordiv" and op == "floordiv" and x.args[1].op == "const":
        return integer_part(op, x.args[0], const(x.args[1].value * n, x.dtype))
    if x.op == "mod" and x.args[1].op == "const" and is_multiple(x.args[1].value, n):
        if op == "mod":
            return integer_part(op, x.args[0], y)
        inner = integer_part("floordiv", x.args[0], y)
        return integer_part("mod", inner, const(x.args[1].value // n, x.dtype))
    return make(op, x, y)


@memoized
def bound_of(x: Expr) -> int | None:
    """Return a number that an index is below, if it is known to be 0 or more."""
    if not x.dtype.is_int:
        return None
    if x.op == "const":
        return whole(x.value) + 1 if at_most(0, x.value) else None
    if x.op == "index":
        return whole(x.value[1])
    if x.op not in ("add", "multiply", "floordiv", "mod", "where"):
        return None
    one, other = map(bound_of, x.args[-2:])
    if x.op == "mod" and x.args[1].op == "const" and x.args[1].value > 0:
        most = whole(x.args[1].value)
        return one if one is not None and at_most(one, most) else most
    if one is None or other is None:
        return None
    match x.op:
        case "where":
            return other if at_most(one, other) else one if at_most(other, one) else None
        case "add":
            return one + other - 1
        case "multiply":
            return (one - 1) * (other - 1) + 1
        case "floordiv" if x.args[1].op == "const" and x.args[1].value > 0:
            return (one - 1) // whole(x.args[1].value) + 1
    return None


def _terms(x: Expr) -> list[Expr]:
    """Return what a sum of indices adds up; a sum of very many is taken as one."""
    found, todo = list[Expr](), [x]
    while todo:
        part = todo.pop()
        if part.op == "add":
            todo += reversed(part.args)
        else:
            found.append(part)
        if len(found) + len(todo) > MOST_TERMS:
            return [x]
    return found


MOST_TERMS = 512


def _factor(x: Expr) -> int:
    """Return the number that a term is a multiple of."""
    if x.op == "const":
        return whole(x.value)
    is_scaled = x.op == "multiply" and x.args[0].op == "const"
    return whole(x.args[0].value) if is_scaled else 1


def _divided(x: Expr, n: int) -> Expr:
    if x.op == "const":
        return const(x.value // n, x.dtype)
    return multiply(const(x.args[0].value // n, x.dtype), x.args[1])


def _sum(parts: Iterable[Expr], dtype: DType) -> Expr:
    made = const(0, dtype)
    for part in parts:
        made = add(made, part)
    return made


def compared(op: str, x: Expr, y: Expr) -> Expr:
    """Return ``x < y`` or ``x <= y`` (`op`: "lt", "le"), which bounds of an index may decide."""
    bound = bound_of(x) if y.op == "const" else None
    if bound is not None:
        end = y.value + (op == "le")
        if at_most(bound, end):
            return const(True, "bool")
        if x.op == "const" or (
            x.op == "add" and x.args[0].op == "const" and at_most(end, x.args[0].value)
        ):
            return const(False, "bool")
    return make(op, x, y)


def reduce(kind: str, variable: str, extent: int, body: Expr, dtype: DType | None = None) -> Expr:
    """Return a reduction over an index variable.

    Parameters
    ----------
    kind
        "sum", "prod", "mean", "max", "min".
    dtype
        What it is accumulated in; default: as the body is computed.
    """
    body = cast(body, dtype) if dtype is not None else body
    return make("reduce", body, value=(kind, variable, extent))


_MAKERS: Mapping[str, Callable[..., Expr]] = {
    "add": add,
    "multiply": multiply,
    "reciprocal": reciprocal,
    "where": where,
    "lt": lambda x, y: compared("lt", x, y),
    "le": lambda x, y: compared("le", x, y),
}


def rebuild(x: Expr, known: dict[Expr, Expr]) -> Expr:
    """Return `x` with replacements, which are not looked into; `known` remembers the rest."""
    if x in known:
        return known[x]
    known[x] = made = remade(x, tuple(rebuild(arg, known) for arg in x.args))
    return made


def remade(x: Expr, args: tuple[Expr, ...]) -> Expr:
    """Return `x` with other operands, folded where it can."""
    if args == x.args:
        return x
    if x.op in _MAKERS and x.value is None:
        return _MAKERS[x.op](*args)
    if x.op in ("floordiv", "mod"):
        return integer_part(x.op, *args)
    return make(x.op, *args, value=x.value, dtype=x.dtype)


def walk(*roots: Expr) -> Iterator[Expr]:
    """Yield each expression once, operands first."""
    seen: set[Expr] = set()
    todo: list[Any] = [*reversed(roots)]
    while todo:
        at = todo.pop()
        if at is None:  # the operands of what comes next are done
            yield todo.pop()
        elif at not in seen:
            seen.add(at)
            if not at.args:
                yield at
                continue
            todo += (at, None)
            todo += [arg for arg in reversed(at.args) if arg not in seen]


def extents_of(roots: Iterable[Expr]) -> dict[str, int]:
    """Return the extents of the index variables in expressions."""
    found = {}
    for x in walk(*roots):
        if x.op == "index":
            found[x.value[0]] = x.value[1]
        elif x.op == "reduce":
            found[x.value[1]] = x.value[2]
    return found


INFIX = {"add": "+", "multiply": "*", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
         "and": "&", "or": "|", "floordiv": "//", "mod": "%"}  # fmt: skip
BITS = {"bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>"}
"""How operations are written between their operands."""
_SIGNS: Mapping[str, str] = {"sum": "Σ", "prod": "Π"}


def formula(x: Expr) -> str:
    """Return an expression as it is written in mathematics.

    Examples
    --------
    >>> row = load("x", (index("n", 4), index("m", 8)), dtype_of("float32"))
    >>> reduce("sum", "m", 8, multiply(row, row))
    Σ_m (x[n, m] * x[n, m])
    """
    inner = [formula(arg) for arg in x.args]
    match x.op:
        case "const":
            return str(x.value)
        case "index" | "state":
            return str(x.value[0])
        case "load":
            return f"{x.value}[{', '.join(inner)}]"
        case "carry":
            return f"h{x.value[1]}[{', '.join(inner)}]"
        case "scan":
            return str(x.value.formula(inner))
        case "reduce":
            kind, variable, _ = x.value
            return f"{_SIGNS.get(kind, kind)}_{variable} {inner[0]}"
        case "cast":
            return f"{x.dtype}({inner[0]})"
        case "round":
            return f"{x.value}({inner[0]})"
        case op if op in INFIX:
            return f"({inner[0]} {INFIX[op]} {inner[1]})"
    return f"{x.op}({', '.join(inner)})"
