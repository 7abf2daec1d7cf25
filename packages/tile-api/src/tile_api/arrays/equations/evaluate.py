"""What equations mean: an interpreter with NumPy, slow and exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.equations import Equations, Output
from tile_api.arrays.equations.expressions import Expr, const, make, walk
from tile_api.arrays.equations.recurrence import Steps, Variables, steps_of
from tile_api.arrays.equations.sizes import Size
from tile_core.dtypes import dtype_of
from tile_core.errors import OutOfBounds

UNARY: dict[str, Any] = {
    "reciprocal": lambda x: 1 / x, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rint": np.rint, "absolute": np.absolute, "not": np.logical_not, "bitnot": np.invert,
    "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2, "log10": np.log10, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": lambda x: np.vectorize(math.erf, otypes=["float64"])(x).astype(x.dtype),
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and,
    "or": np.logical_or, "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
    "shl": np.left_shift, "shr": np.right_shift, "fmod": np.fmod, "hypot": np.hypot,
    "atan2": np.arctan2, "copysign": np.copysign,
}  # fmt: skip
FOLDS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min,
                          "mean": np.mean}  # fmt: skip


def evaluated(
    equations: Equations, arguments: Mapping[str, np.ndarray[Any, Any]], *, precise: bool = False
) -> list[np.ndarray[Any, Any]]:
    """Return the outputs for arguments.

    Parameters
    ----------
    arguments
        Those that the function is called with, by name; constants may have other elements.
    precise
        Compute floats in float64, rounding only where the user does: the reference for errors.
    """
    held = {t.parameter.name: t.values for t in equations.constants} | {**arguments}
    tensors = {p.tensor: held[p.name] for p in equations.parameters}
    with np.errstate(all="ignore"):
        for x in equations.materialised:
            tensors[x.name] = _output(tensors, precise, x)
        return [_output(tensors, precise, x) for x in equations.outputs]


def is_power_of_two(x: Expr) -> bool:
    """Tell whether the exponential of `x` is one of base 2."""
    return x.op == "multiply" and x.args[0].op == "const" and bool(x.args[0].value == math.log(2))


def _output(arguments: Mapping[str, Any], precise: bool, output: Output) -> np.ndarray[Any, Any]:
    if 0 in output.shape:
        return np.empty(output.shape, output.dtype.numpy())
    rank = len(output.indices)
    axes = {i.value[0]: rank - 1 - k for k, i in enumerate(output.indices) if i.op == "index"}
    found = np.asarray(_Evaluation(arguments, precise, axes, rank).of(output.element))
    found = np.broadcast_to(_to_rank(found, rank), output.shape)
    keep = precise and output.dtype.is_float
    return np.array(found, None if keep else output.dtype.numpy(), order="C")


def bits_as(values: Any, x: Expr) -> Any:
    """Return the bits of what `x` reads, as elements of its type."""
    return np.asarray(values).astype(x.args[0].dtype.numpy()).view(x.dtype.numpy())


_READING = frozenset({"load", "index", "state", "spread", "scan", "carry", "reduce"})


def constant_of(x: Expr) -> Any:
    """Return the number that an expression is; None if it reads anything."""
    if x.free or any(n.op in _READING or isinstance(n.value, Size) for n in walk(x)):
        return None
    with np.errstate(all="ignore"):
        return _output({}, False, Output("", (), x.dtype, (), x)).item()


def once_begun(scale: Expr, starts: Mapping[Expr, Expr]) -> Expr:
    """Return the factor of an accumulator, which is 1 where it has met nothing yet.

    Only where the factor would be no number then, such as with the logarithm of a sum that
    is still 0; the accumulator is 0 there.

    Parameters
    ----------
    starts
        The states that it is computed from, with what they are before they met anything.
    """
    if is_finite(scale, {old: float(start.value) for old, start in starts.items()}):
        return scale
    same = [make("eq", old, start) for old, start in starts.items()]
    return eq.where(reduce(partial(make, "and"), same), const(1, scale.dtype), scale)


def is_finite(x: Expr, values: Mapping[Expr, float]) -> bool:
    """Tell whether an expression is a finite number for values of some of its operands.

    What else it reads, elements and states, is 1.
    """
    return bool(np.isfinite(number_of(x, values)))


def number_of(x: Expr, values: Mapping[Expr, float], side: int | None = None) -> float:
    """Return what an expression is for values of some of its operands.

    What else it reads, elements and states, is 1; symbols have their usual values.

    Parameters
    ----------
    side
        What is chosen where a condition reads something else: 1 as if it held, 2 as if it did not.
    """
    known: dict[Expr, Any] = {state: np.float64(value) for state, value in values.items()}
    told = {*known}
    with np.errstate(all="ignore"):
        for n in walk(x):
            args = [known[arg] for arg in n.args]
            if n in known:
                continue
            if n.op in ("load", "spread", "state", "index", "reduce"):
                known[n] = np.float64(1)
                continue
            if told.issuperset(n.args):
                told.add(n)
            if n.op == "const":
                known[n] = np.float64(n.value.usual if isinstance(n.value, Size) else n.value)
            elif n.op == "where":
                is_chosen = side is not None and n.args[0] not in told
                known[n] = args[side or 0] if is_chosen else np.where(*args)
            elif n.op in ("cast", "round"):
                known[n] = args[0]
            elif n.op == "bits":
                known[n] = bits_as(args[0], n)
            else:
                known[n] = (UNARY.get(n.op) or BINARY[n.op])(*args)
    return float(known[x])


class _Evaluation:
    """Elements of expressions as arrays, an axis for each index variable.

    Axes are counted from the end: a reduction adds one in front, which moves none of the others.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        precise: bool,
        axes: Mapping[str, int],
        rank: int,
        is_chosen_from: bool = False,
        bound: Mapping[str, Any] | None = None,
    ) -> None:
        self.arguments = arguments
        self.precise = precise
        self.axes = axes
        self.rank = rank
        self.is_chosen_from = is_chosen_from
        self.bound = bound or {}
        self.outer: _Evaluation | None = None
        self.inner: _Evaluation | None = None
        self.over = ""
        self.known: dict[Expr, Any] = {}
        self.sequences: dict[tuple[Steps, bool], _Sequence] = {}
        self.closed: dict[tuple[Steps, bool], _Sequence] = {}
        """Those of recurrences that depend on nothing around them: of all evaluations."""

    def within(
        self, axes: Mapping[str, int], more: int = 0, bound: Mapping[str, Any] | None = None
    ) -> _Evaluation:
        """Return an evaluation with further axes, or with values of what a recurrence binds.

        An axis is another variable than one of its name that is bound around.
        """
        around = {name: value for name, value in self.bound.items() if name not in axes}
        made = _Evaluation(
            self.arguments, self.precise, {**self.axes, **axes}, self.rank + more,
            self.is_chosen_from, {**around, **(bound or {})},
        )  # fmt: skip
        made.closed = self.closed
        return made

    def chosen_from(self) -> _Evaluation:
        """Return the same evaluation, in which elements that do not exist are something."""
        if self.is_chosen_from:
            return self
        if self.inner is None:
            self.inner = self.within({})
            self.inner.is_chosen_from = True
            self.inner.over = self.over
            self.inner.outer = None if self.outer is None else self.outer.chosen_from()
        return self.inner

    def outside(self) -> _Evaluation:
        """Return an evaluation of what depends on no variable."""
        made = _Evaluation(self.arguments, self.precise, {}, 0, self.is_chosen_from)
        made.closed = self.closed
        return made

    def of(self, x: Expr) -> Any:
        if self.outer is not None and self.over not in x.free:
            return self.outer.of(x)  # the same for each element that is folded
        if x not in self.known:
            self.known[x] = self._of(x)
        return self.known[x]

    def _float(self, x: Expr) -> Any:
        return np.dtype("float64") if self.precise and x.dtype.is_float else x.dtype.numpy()

    def _of(self, x: Expr) -> Any:
        if x.op == "const":
            return self._float(x).type(x.value)
        if x.op == "index" and x.value[0] in self.bound:
            return self.bound[x.value[0]]
        if x.op == "index":
            return np.arange(x.value[1]).reshape(-1, *[1] * self.axes[x.value[0]])
        if x.op == "reduce":
            return self._reduced(x)
        if x.op == "where":
            return self._chosen(*x.args)
        if x.op == "scan":
            return self._scanned(x)
        if x.op == "exp" and is_power_of_two(x.args[0]):  # as it is printed
            return np.exp2(self.of(x.args[0].args[1]))
        args = [self.of(arg) for arg in x.args]
        if x.op == "carry":
            token, carry = x.value
            return self._element(self.bound[token][carry], args)
        if x.op == "load":
            return self._loaded(x.value, args).astype(self._float(x))
        if x.op == "cast":
            return np.asarray(args[0]).astype(self._float(x))
        if x.op == "round":
            return np.asarray(args[0]).astype(dtype_of(x.value).numpy()).astype(self._float(x))
        if x.op == "bits":
            return bits_as(args[0], x).astype(self._float(x))
        for k in (1, 0) if x.op == "multiply" else ():  # as it is printed
            if x.args[k].op == "reciprocal":
                return args[1 - k] / self.of(x.args[k].args[0])
        return (UNARY.get(x.op) or BINARY[x.op])(*args)

    def _chosen(self, condition: Expr, x: Expr, y: Expr) -> Any:
        """Choose between elements, of which only those that are chosen need to exist."""
        inner = self.chosen_from()
        return np.where(self.of(condition), inner.of(x), inner.of(y))

    def _loaded(self, name: str, indices: list[Any]) -> Any:
        array = np.asarray(self.arguments[name])
        shape = np.broadcast_shapes(*map(np.shape, indices))
        if 0 in shape or not array.size:
            return np.zeros(shape, array.dtype)
        for axis, (where, size) in enumerate(zip(indices, array.shape, strict=True)):
            if self.is_chosen_from:
                indices[axis] = np.clip(where, 0, size - 1)
            elif np.any((where < 0) | (where >= size)):
                raise OutOfBounds(
                    f"an index of dimension {axis} of {name!r} is outside of its {size} elements"
                )
        return array[tuple(indices)]

    def _reduced(self, x: Expr) -> Any:
        kind, name, extent = x.value
        inner = self.within({name: self.rank}, 1)
        inner.outer, inner.over = self, name
        body = _to_rank(np.asarray(inner.of(x.args[0])), self.rank + 1)
        body = np.broadcast_to(body, (extent, *body.shape[1:]))
        if extent == 0 and kind in ("max", "min"):
            return self._float(x).type(-math.inf if kind == "max" else math.inf)
        rows = np.ascontiguousarray(np.moveaxis(body, 0, -1))  # NumPy adds those up in pairs
        return FOLDS[kind](rows, axis=-1).astype(self._float(x))

    def _scanned(self, x: Expr) -> Any:
        """Return carried values, of which a recurrence is gone through once."""
        steps = steps_of(x)
        free = frozenset[str]().union(*(n.free for n in (*steps.starts, *steps.steps)))
        is_open = bool(free - steps.of.bound)
        sequences = self.sequences if is_open else self.closed
        key = steps, self.is_chosen_from
        if key not in sequences:
            whole = self if is_open else self.outside()
            sequences[key] = whole._sequence(steps)
        first = int(x.value.is_before == steps.of.is_backward)
        stacked = sequences[key].stacked(x.value.carry, first)
        if stacked is None:
            return self._float(x).type(0)
        return self._element(stacked, [self.of(arg) for arg in x.args[: x.value.rank]])

    def _sequence(self, steps: Steps) -> _Sequence:
        """Return all carried values, as steps are counted."""
        of = steps.of
        names = [*dict.fromkeys(name for v in of.carried for name, _ in v if name)]
        axes = {name: self.rank + k for k, name in enumerate(names)}

        def all_of(at: _Evaluation, elements: Sequence[Expr]) -> list[Any]:
            return [
                _carried(np.asarray(at.of(x)), at.rank, axes, variables, self.rank)
                for x, variables in zip(elements, of.carried, strict=True)
            ]

        found = [all_of(self.within(axes, len(names)), steps.starts)]
        order = range(of.extent)
        for t in reversed(order) if of.is_backward else order:
            bound = {of.variable: np.int64(t), of.token: found[-1]}
            found.append(all_of(self.within(axes, len(names), bound), steps.steps))
        return _Sequence(found[::-1] if of.is_backward else found)

    def _element(self, values: Any, indices: Sequence[Any]) -> Any:
        """Return elements of an array whose last dimensions are axes."""
        if not values.size:
            return np.zeros(np.broadcast_shapes(*map(np.shape, indices)), values.dtype)
        at = list(indices)
        for axis, size in enumerate(values.shape[: len(at)]):
            if self.is_chosen_from:
                at[axis] = np.clip(at[axis], 0, size - 1)
            elif np.any((at[axis] < 0) | (at[axis] >= size)):
                raise OutOfBounds(f"an index is outside of the {size} elements that are carried")
        rest = values.shape[len(at) :]
        for k, size in enumerate(rest):
            at.append(np.arange(size).reshape(-1, *[1] * (len(rest) - 1 - k)))
        return values[tuple(at)]


class _Sequence:
    """Carried values of a recurrence, before the first step and after each."""

    def __init__(self, values: Sequence[Sequence[Any]]) -> None:
        self._values = values
        self._stacked: dict[tuple[int, int], Any] = {}

    def stacked(self, carry: int, first: int) -> Any:
        """Return one value from step `first` on, of as many as there are steps; None if of none.

        Another recurrence asks for it in each of its steps.
        """
        if (carry, first) not in self._stacked:
            values = [carried[carry] for carried in self._values]
            values = values[first : len(values) - 1 + first]
            stacked = np.stack(np.broadcast_arrays(*values)) if values else None
            self._stacked[carry, first] = stacked
        return self._stacked[carry, first]


def _carried(
    x: np.ndarray[Any, Any], rank: int, axes: Mapping[str, int], variables: Variables, outer: int
) -> np.ndarray[Any, Any]:
    """Return a carried value with its own dimensions first, then those of `outer` axes."""
    x = _to_rank(x, rank)
    own = [rank - 1 - axes[name] for name, _ in variables if name]
    others = [k for k in range(rank - outer) if k not in own]
    x = x.transpose(*others, *own, *range(rank - outer, rank))[(0,) * len(others)]
    shape = [n for name, n in variables if name]
    x = np.broadcast_to(x, (*shape, *x.shape[len(own) :]))
    return x.reshape([*(n for _, n in variables), *x.shape[len(own) :]])


def _to_rank(x: np.ndarray[Any, Any], rank: int) -> np.ndarray[Any, Any]:
    return x.reshape([1] * (rank - x.ndim) + list(x.shape))
