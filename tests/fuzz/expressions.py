"""Random expressions over what a place in a program may read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from fuzz.elements import ELEMENTS
from fuzz.operations import COMPARISONS, LAZY, OPERATIONS, apply, cast, clamp, const
from fuzz.program import Expr

COMPUTED = ("int32", "int32", "float32", "float32", "float16", "bfloat16", "int64", "int8", "int16")
"""In which types expressions are computed; types of 8 bits and fewer floats are cast first."""

_CHOICES = ("if_then_else", "ternary", "select")


@dataclass
class Source:
    """Makes expressions from what `leaves` return, each of them any type it likes.

    Parameters
    ----------
    plain
        Whether vectors of threads need every element alike: no operations that a place forbids.
    """

    rng: Random
    leaves: Sequence[Callable[[], Expr]]
    most: int = 3
    """How deep expressions are, where nothing else is said."""

    def leaf(self, dtype: str) -> Expr:
        if not self.leaves or self.rng.random() < 0.12:
            return self.number(dtype)
        found = self.rng.choice(self.leaves)()
        if found.dtype == "bool" and dtype != "bool":
            return apply("if_then_else", found, self.number(dtype), self.number(dtype))
        return cast(found, dtype, self.rng.choice(("cast", "astype", "cast")))

    def number(self, dtype: str) -> Expr:
        element = ELEMENTS[dtype]
        values = [0, 1, 2, 3, -1, -2, 5, 7]
        if element.wraps and self.rng.random() < 0.1:
            values = [(1 << 31) - 1, -(1 << 31), 65536]
        allowed = [v for v in values if element.low <= v <= element.high]
        return const(self.rng.choice(allowed), dtype)

    def value(self, dtype: str, depth: int | None = None) -> Expr:
        """Return an expression of type `dtype`; it fits in the type."""
        depth = self.most if depth is None else depth
        if dtype == "bool":
            return self.condition(depth - 1)
        if dtype not in COMPUTED and depth > 0:
            return cast(self.value(self.rng.choice(("int32", "float32")), depth), dtype)
        if depth <= 0 or self.rng.random() < 0.15:
            return self.leaf(dtype)
        kind = self.kind(dtype)
        made = self.operation(kind, dtype, depth - 1)
        if all(a.kind == "const" for a in made.args):
            return self.leaf(dtype)
        element = ELEMENTS[dtype]
        return made if made.fits else clamp(self.leaf(dtype), element.low, element.high)

    def kind(self, dtype: str) -> str:
        element = ELEMENTS[dtype]
        kinds = ["add", "sub", "add", "sub", "mul", "min", "max", "neg", "abs"]
        kinds += [*_CHOICES, "if_then_else"]
        kinds += ["half"] if element.is_float else ["div", "mod", "and", "or", "xor", "shl", "shr"]
        if self.rng.random() < 0.2:
            return "cast"
        return self.rng.choice(kinds)

    def operation(self, kind: str, dtype: str, depth: int) -> Expr:
        rng = self.rng
        if kind == "cast":
            through = rng.choice([n for n in ELEMENTS if n not in (dtype, "bool")])
            return cast(cast(self.value(dtype, depth), through), dtype)
        if kind in _CHOICES:
            return apply(
                kind, self.condition(depth), self.value(dtype, depth), self.value(dtype, depth)
            )
        first = self.value(dtype, depth)
        if kind in ("neg", "abs", "half"):
            return apply(kind, first)
        if kind in ("div", "mod"):
            if rng.random() < 0.15:
                return self.guarded(kind, first, self.leaf(dtype))
            return apply(kind, first, self.divisor(dtype, depth))
        if kind in ("shl", "shr"):
            return apply(kind, first, const(rng.randrange(1, 5), dtype))
        if kind == "mul":
            return apply(kind, first, const(rng.choice((-3, -1, 2, 3, 5)), dtype))
        return apply(kind, first, self.value(dtype, depth))

    def guarded(self, kind: str, first: Expr, second: Expr) -> Expr:
        """Divide where the divisor is not zero."""
        if second.kind == "const" or first.kind == "const" or second.low == second.high:
            return first
        safe = apply("ne", second, const(0, second.dtype))
        choice = self.rng.choice(LAZY)
        return apply(choice, safe, apply(kind, first, second), self.number(first.dtype))

    def divisor(self, dtype: str, depth: int) -> Expr:
        if self.rng.random() < 0.7:
            return const(self.rng.choice((2, 3, 4, 5, 8, 7, -3, -2, -1)), dtype)
        some = apply("and", self.value(dtype, depth), const(7, dtype))
        return apply("add", some, const(1, dtype))

    def condition(self, depth: int) -> Expr:
        rng = self.rng
        if depth > 0 and rng.random() < 0.25:
            kind = rng.choice(("both", "any", "not"))
            parts = [self.condition(depth - 1) for _ in range(1 if kind == "not" else 2)]
            return apply(kind, *parts)
        dtype = rng.choice(("int32", "int32", "float32", "float16"))
        first = self.value(dtype, min(depth, 1))
        if first.kind == "const":
            first = self.leaf(dtype)
        second = self.number(dtype) if rng.random() < 0.6 else self.leaf(dtype)
        return apply(rng.choice(list(COMPARISONS)), first, second)


assert set(_CHOICES) <= set(OPERATIONS)
