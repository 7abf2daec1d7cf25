"""Expressions as text of the developer's tier."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tile_api.arrays.equations.evaluate import constant_of, is_power_of_two
from tile_api.arrays.equations.expressions import (
    BITS,
    INDEX,
    INFIX,
    Expr,
    const,
    make,
    multiply,
    negate,
    rebuild,
    walk,
)
from tile_api.arrays.equations.index_bounds import range_of
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.planning.storage import tile_dtype
from tile_api.arrays.printing.common_subexpressions import common_subexpressions
from tile_api.arrays.reductions.algebra import terms, total
from tile_api.arrays.reductions.state import COUNT
from tile_core.dtypes import DType

Tile = tuple[str, tuple[str, ...]]
"""The name of a buffer, and the variables of its dimensions."""

_SUM, _PRODUCT, _ATOM = 1, 2, 3
"""How strongly operators bind."""
_COMPARED = ("le", "lt", "eq", "ne")
_CALLS = {"maximum": "max", "minimum": "min", "absolute": "abs", "rint": "nearbyint", "and": "And",
          "or": "Or", "not": "Not"}  # fmt: skip
_OVERFLOWING = frozenset({"add", "multiply", "shl", "bitnot", "absolute", "pow", "floordiv"})
_OF_OPERANDS = frozenset({*BITS, "where", "maximum", "minimum", "mod"})
"""What gives as many bits as its operands have."""
_DIVIDING = frozenset({"multiply", "reciprocal"})
LOG2E = 1.4426950408889634


def nan_propagated(kind: str, dtype: DType) -> str:
    """Return the argument with which an extremum of floats is NaN if an element is."""
    return ", nan_propagate=True" if kind in ("max", "min") and dtype.is_float else ""


class ExpressionText:
    """Prints expressions of one kernel.

    Parameters
    ----------
    dtypes
        Of the tensors, by name.
    tiles
        What has been computed already: it is read instead.
    """

    def __init__(self, plan: Plan, dtypes: Mapping[str, DType], tiles: dict[Expr, Tile]) -> None:
        self.plan = plan
        self.dtypes = dtypes
        self.tiles = tiles
        self.narrow: set[str] = set()
        """The tiles of floats that are computed in wider ones: operands of products."""
        self._names: dict[Expr, str] = {}
        self._reductions: dict[Expr, Expr] = {s.mine: s.node for s in plan.states}

    def __call__(self, x: Expr, level: int = 0, *, is_exact: bool = True) -> str:
        """Return `x` as text, in parentheses if it binds less than `level`.

        Short integers are computed as longer ones, and wrap around where this is to be exact.
        """
        if x in self.tiles:
            name, dims = self.tiles[x]
            text = f"{name}[{self.loops(dims)}]"
            return f'T.cast({text}, "{x.dtype}")' if name in self.narrow else text
        if x in self._names:
            return self._names[x]
        if x is COUNT:
            start = self._start(self.plan.stream or "")
            return f"({start} - {self.plan.before} * BN)" if self.plan.parts else f"({start})"
        text, binds = self._text(x)
        if is_exact and x.op in _OVERFLOWING and x.dtype.is_int and x.dtype.bits < 32:
            return f'T.cast({text}, "{x.dtype}")'
        return f"({text})" if binds < level else text

    def in_parts(
        self, x: Expr, fresh: Callable[[str], str], level: int = 0, *, is_exact: bool = True
    ) -> tuple[list[str], str]:
        """Return statements that name parts of `x`, and `x` as text in terms of them."""
        lines: list[str] = []
        for part in common_subexpressions(x, self.tiles):
            text = self(part)
            self._names[part] = fresh("part")
            lines.append(f"{self._names[part]} = {text}")
        text = self(x, level, is_exact=is_exact)
        self._names.clear()
        return lines, text

    def loops(self, dims: tuple[str, ...]) -> str:
        """Return the indices of an element of a tile."""
        return ", ".join(self.plan.axes[v].loop for v in dims) or "0"

    def _start(self, variable: str) -> str:
        return self.plan.axes[variable].start

    def at(self, variable: str) -> str:
        """Return the index along a variable, within the whole."""
        axis = self.plan.axes[variable]
        if not axis.loop:
            return axis.start
        return axis.loop if axis.start == "0" else f"{axis.start} + {axis.loop}"

    def _text(self, x: Expr) -> tuple[str, int]:
        if x.op != "widened" and (x.dtype.is_int or x.op in _DIVIDING):
            value = constant_of(x)  # Python would wrap nothing, and not divide by 0
            if value is not None and (x.dtype.is_int or not math.isfinite(value)):
                return self._constant(const(value, x.dtype))
        x = self._wide(x)
        match x.op:
            case "const":
                return self._constant(x)
            case "index":
                text = self.at(x.value[0])
                return text, _SUM if "+" in text else _ATOM
            case "load":
                return self._load(x)
            case "add":
                return self._sum(*x.args)
            case "multiply":
                return self._product(*x.args)
            case "reciprocal":
                return self._reciprocal(x.args[0])
            case "exp":
                return self._exponential(x.args[0])
            case "floordiv" | "mod":
                sign = "//" if x.op == "floordiv" else "%"
                return f"{self(x.args[0], _ATOM)} {sign} {self(x.args[1], _ATOM)}", _PRODUCT
            case "where":
                return f"T.if_then_else({', '.join(map(self, x.args))})", _ATOM
            case "widened":
                return f'T.cast({self(x.args[0])}, "{x.dtype}")', _ATOM
            case "spread":
                return self(x.args[0], _ATOM), _ATOM
            case "cast":
                if x.args[0].dtype.is_bool:
                    return f"T.if_then_else({self(x.args[0])}, {self.number(1, x.dtype)}, "\
                           f"{self.number(0, x.dtype)})", _ATOM  # fmt: skip
                if x.dtype.is_bool:
                    return f"{self(x.args[0], _SUM)} != 0", 0
                return f'T.cast({self(x.args[0])}, "{x.dtype}")', _ATOM
            case "round":
                return f'T.cast(T.cast({self(x.args[0])}, "{x.value}"), "{x.dtype}")', _ATOM
            case "bits":
                return f'T.reinterpret({self(x.args[0])}, "{x.dtype}")', _ATOM
            case op if op in _COMPARED:
                return f"{self(x.args[0], _SUM)} {INFIX[op]} {self(x.args[1], _SUM)}", 0
            case op if op in BITS:
                return f"{self(x.args[0], _ATOM)} {BITS[op]} {self(x.args[1], _ATOM)}", 0
            case "bitnot":
                return f"~{self(x.args[0], _ATOM)}", _ATOM
            case "maximum" | "minimum" if x.dtype.is_float:
                operands = ", ".join(map(self, x.args))
                return f"T.{_CALLS[x.op]}({operands}, nan_propagate=True)", _ATOM
        return f"T.{_CALLS.get(x.op, x.op)}({', '.join(map(self, x.args))})", _ATOM

    def _wide(self, x: Expr) -> Expr:
        """Return arithmetic that 32 bits may not hold, of positions that they do, widened."""
        if x.dtype != INDEX or not self._is_widened(x):
            return x
        args = [
            make("widened", arg, dtype=INDEX) if self._is_narrow(arg) else arg for arg in x.args
        ]
        return make(x.op, *args, value=x.value, dtype=x.dtype)

    def _is_widened(self, x: Expr) -> bool:
        if x.op == "shr":  # what fits 32 bits cannot be shifted by as many
            counts = range_of(x.args[1])
            return counts is None or counts[1] > 31
        return x.op in _OVERFLOWING and self._needs_64_bits(x)

    def _is_narrow(self, x: Expr) -> bool:
        """Tell whether the text of a position has 32 bits: what is made of such, unless widened."""
        todo, seen = [x], {x}
        while todo:  # shared operands are met once
            at = todo.pop()
            if at in self.tiles or at.op not in _OF_OPERANDS or self._is_widened(at):
                is_wide = at.dtype != INDEX or at.op in ("const", "load")
                is_truth = at.op == "cast" and at.args[0].dtype.is_bool
                if not is_truth and (is_wide or at.op == "cast" or self._needs_64_bits(at)):
                    return False
                continue
            args = at.args[at.op == "where" :]
            new = [arg for arg in args if arg.op != "const" and arg not in seen]
            seen.update(new)
            todo += new
        return True

    def _needs_64_bits(self, x: Expr) -> bool:
        return tile_dtype(rebuild(x, self._reductions)) == INDEX

    def _constant(self, x: Expr) -> tuple[str, int]:
        text = self.number(x.value, x.dtype)
        return text, _SUM if text.startswith("-") else _ATOM

    def number(self, value: float | int | bool, dtype: DType) -> str:
        """Return a constant as text."""
        if isinstance(value, float) and math.isinf(value):
            return f'{"-" if value < 0 else ""}T.infinity("{dtype}")'
        if isinstance(value, float) and math.isnan(value):
            return f'(T.infinity("{dtype}") - T.infinity("{dtype}"))'
        if dtype == "float64":
            return f"T.float64({value!r})"
        return repr(float(value)) if dtype.is_float else repr(value)

    def _load(self, x: Expr) -> tuple[str, int]:
        text = f"{x.value}[{', '.join(map(self, x.args)) or '0'}]"
        stored = self.dtypes[x.value]
        return (f'T.cast({text}, "{x.dtype}")' if stored != x.dtype else text), _ATOM

    def _part(self, x: Expr, level: int) -> str:
        """Return a part of a sum or of a product: it wraps around with the whole."""
        return self(x, level, is_exact=False)

    def _sum(self, x: Expr, y: Expr) -> tuple[str, int]:
        """Print a sum; floats are added in the order in which they are in the equations."""
        if self._is_negative(x):
            x, y = y, x
        if self._is_negative(y):
            return f"{self._part(x, _SUM)} - {self._part(negate(y), _PRODUCT)}", _SUM
        if x.op == "const":
            x, y = y, x
        level = _PRODUCT if x.dtype.is_float else _SUM
        return f"{self._part(x, _SUM)} + {self._part(y, level)}", _SUM

    def _is_negative(self, x: Expr) -> bool:
        """Tell whether to subtract what is no element of a tile."""
        if x.op == "const":
            return bool(x.value < 0)
        is_multiple = x.op == "multiply" and x not in self.tiles
        return is_multiple and x.args[0].op == "const" and bool(x.args[0].value < 0)

    def _product(self, x: Expr, y: Expr) -> tuple[str, int]:
        if x.op == "const" and x.value == -1:
            return f"-{self._part(y, _ATOM)}", _PRODUCT
        if y.op != "reciprocal":
            x, y = (y, x) if x.op == "reciprocal" else (x, y)
        if y.op == "reciprocal" and y not in self.tiles:
            return f"{self._part(x, _PRODUCT)} / {self(y.args[0], _ATOM)}", _PRODUCT
        return f"{self._part(x, _PRODUCT)} * {self._part(y, _ATOM)}", _PRODUCT

    def _reciprocal(self, x: Expr) -> tuple[str, int]:
        if x.op == "sqrt" and x not in self.tiles and not is_strict():
            return f"T.rsqrt({self(x.args[0])})", _ATOM
        return f"{self.number(1, x.dtype)} / {self(x, _ATOM)}", _PRODUCT

    def _exponential(self, x: Expr) -> tuple[str, int]:
        """Print ``exp`` as ``exp2``; a factor goes inside only where it cannot overflow.

        It is one rounding more, which differences to a row's largest element do not feel.
        """
        if x not in self.tiles and is_power_of_two(x):
            return f"T.exp2({self(x.args[1])})", _ATOM
        is_difference = {"state", "add"} <= {n.op for n in walk(x)}
        if x.dtype != "float32" or x in self.tiles or is_strict() or not is_difference:
            return f"T.exp({self(x)})", _ATOM
        scale = const(LOG2E, x.dtype)
        powers = [multiply(scale, term) for term in terms(x)]
        if not self._has_tiles(x) and all(_is_small_multiple(p) for p in powers):
            return f"T.exp2({self(total(powers, const(0, x.dtype)))})", _ATOM
        return f"T.exp2({self(x, _ATOM)} * {LOG2E})", _ATOM

    def _has_tiles(self, x: Expr) -> bool:
        """Tell whether sums or multiples among the terms of a sum are elements of tiles."""
        if x.op not in ("add", "multiply"):
            return False
        return x in self.tiles or (x.op == "add" and any(map(self._has_tiles, x.args)))


def _is_small_multiple(x: Expr) -> bool:
    return x.op == "multiply" and x.args[0].op == "const" and abs(x.args[0].value) <= 1
