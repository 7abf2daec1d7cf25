"""Sizes that are symbols: one kernel serves all values of them.

A size that is a symbol is a large number as well, larger than what any rule or block is for and a
multiple of nothing: whatever asks it a question of optimisation is told what holds of no size in
particular. What changes the meaning of a function, a comparison while it is captured, becomes a
condition on the values that its kernels are for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast
from zlib import crc32

Terms = Mapping[tuple[str, ...], int]
"""A polynomial: what each product of symbols is multiplied by; quotients count as symbols."""

LEAST = 2
"""The smallest value of a symbol: a dimension of one element is broadcast, one of none has none."""


_FIRST, _COUNT = 1_000_003, 997
_FEW = 1000
"""What is less is no number for something large."""


class ValueNeeded(Exception):
    """Kernels cannot be one for all values of some symbols.

    Parameters
    ----------
    names
        The symbols.
    why
        The reason, as `explain` tells it.
    """

    def __init__(self, names: frozenset[str], why: str) -> None:
        super().__init__(names, why)
        self.names = names
        self.why = why


CONDITIONS: ContextVar[dict[str, None] | None] = ContextVar("tile_conditions", default=None)
"""What a function that is being captured took for true of its symbols, as texts of Python."""


def number_of(size: int) -> int:
    """Return the number of a size, by which sizes are told apart: it is none of a symbol's."""
    return int.__index__(size)


class Size(int):
    """A size in terms of symbols, see `symbols_of`; as a number it is larger than any.

    Attributes
    ----------
    terms
        What it is.
    usual
        The value for which sizes of blocks are chosen.
    """

    terms: Terms
    usual: int

    def __new__(cls, number: int, terms: Terms, usual: int) -> Size:
        """Return a size."""
        made = super().__new__(cls, number)
        made.terms, made.usual = terms, usual
        return made

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other sizes."""
        return Size, str(self), number_of(self), self.usual

    def __str__(self) -> str:
        """Return it as an expression of Python, in parentheses unless it is one symbol."""
        is_atom = len(self.terms) == 1 and all(
            factor == 1 and len(atoms) == 1 for atoms, factor in self.terms.items()
        )
        return self._text() if is_atom else f"({self._text()})"

    __repr__ = __str__

    def _text(self) -> str:
        made = ""
        for atoms, factor in sorted(self.terms.items(), key=lambda t: (-len(t[0]), t[0])):
            words = [str(abs(factor))] if abs(factor) != 1 or not atoms else []
            sign = ("-" if factor < 0 else "") if not made else " - " if factor < 0 else " + "
            made += sign + " * ".join((*words, *atoms))
        return made

    def __hash__(self) -> int:
        """Return that of the number."""
        return int.__hash__(self)

    def __add__(self, other: Any) -> Any:
        """Return the sum."""
        if not isinstance(other, int):
            return _refused(self, other)
        terms = dict(self.terms)
        for atoms, factor in _terms(other).items():
            terms[atoms] = terms.get(atoms, 0) + factor
        return _made(number_of(self) + number_of(other), terms, self.usual + usual(other))

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        """Return the product."""
        if not isinstance(other, int):
            return _refused(self, other)
        terms: dict[tuple[str, ...], int] = {}
        for mine, one in self.terms.items():
            for others, two in _terms(other).items():
                atoms = tuple(sorted((*mine, *others)))
                terms[atoms] = terms.get(atoms, 0) + one * two
        return _made(number_of(self) * number_of(other), terms, self.usual * usual(other))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        """Return the product with -1."""
        return self * -1

    def __sub__(self, other: Any) -> Any:
        """Return the difference."""
        return self + other * -1 if isinstance(other, int) else _refused(self, other)

    def __rsub__(self, other: Any) -> Any:
        """Return the difference."""
        return self * -1 + other

    def __floordiv__(self, other: Any) -> Any:
        """Return the quotient: exact where that is known, else the text of a division."""
        if not isinstance(other, int):
            return _refused(self, other)
        exact = _exact(self, other)
        if exact is not None:
            return exact
        is_negative = all(factor < 0 for factor in self.terms.values())
        if is_negative and not isinstance(other, Size) and other > 0:  # -(-n // 8) rounds up
            return -((-self + (other - 1)) // other)
        return _quotient(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        """Return how often it fits into a number: it is more than that, or a condition."""
        if isinstance(other, int) and -self <= other < self:
            return 0 if other >= 0 else -1
        return _quotient(other, self)

    def __mod__(self, other: Any) -> Any:
        """Return what is left: 0 where that is known, else what counts as true."""
        if not isinstance(other, int):
            return _refused(self, other)
        return self - other * (self // other)

    def __rmod__(self, other: Any) -> Any:
        """Return what is left."""
        return other - self * (other // self)

    def __divmod__(self, other: Any) -> Any:
        """Return the quotient and what is left."""
        return self // other, self % other

    def __truediv__(self, other: Any) -> Any:
        """Refuse to become a number."""
        return _refused(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        """Refuse to become a number."""
        return _refused(self, other)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        """Return a product of a few, or refuse to become a number."""
        if modulus is None and type(other) is int and 0 < other <= 4:
            return self * self ** (other - 1) if other > 1 else self
        return _refused(self, other)

    def __int__(self) -> int:
        """Return the number; refuse to while a function is captured that is for all of them."""
        if CONDITIONS.get() is not None:
            raise ValueNeeded(names_in(self), f"int() is asked of {self}")
        return number_of(self)

    def __float__(self) -> float:
        """Refuse to become a number."""
        return cast(float, _refused(self, 0.0))

    def __bool__(self) -> bool:
        """Tell whether it is not 0, as if it were not."""
        return self != 0

    def __eq__(self, other: object) -> bool:
        """Tell whether it is `other` for all values; else it is assumed not to be."""
        if not isinstance(other, int):
            return False
        apart = self - other
        if not isinstance(apart, Size):
            return bool(apart == 0)
        is_known = _least(apart) > 0 or _least(-apart) > 0
        return False if is_known else _assumed(False, self, "==", other)

    def __ne__(self, other: object) -> bool:
        """Tell whether it is another one."""
        return not self == other

    def __lt__(self, other: float) -> bool:
        """Tell whether it is less for all values; else the numbers tell, on a condition."""
        if not isinstance(other, int):
            return _assumed(number_of(self) < other, self, "<", other)
        if _least(self - other) >= 0:
            return False
        return _least(other - self) > 0 or _assumed(
            number_of(self) < number_of(other), self, "<", other
        )

    def __gt__(self, other: float) -> bool:
        """Tell whether it is more."""
        if not isinstance(other, int):
            return _assumed(number_of(self) > other, self, ">", other)
        if _least(other - self) >= 0:
            return False
        return _least(self - other) > 0 or _assumed(
            number_of(self) > number_of(other), self, ">", other
        )

    def __le__(self, other: float) -> bool:
        """Tell whether it is not more."""
        return not self > other

    def __ge__(self, other: float) -> bool:
        """Tell whether it is not less."""
        return not self < other


def symbols_of(values: Mapping[str, int]) -> dict[str, Size]:
    """Return symbols by their names, with their usual values."""
    made: dict[str, Size] = {}
    for name, value in values.items():
        at = crc32(name.encode()) % _COUNT
        while any(number_of(other) == _FIRST + 2 * at for other in made.values()):
            at = (at + 1) % _COUNT
        made[name] = Size(_FIRST + 2 * at, {(name,): 1}, value)
    return made


def is_symbol(size: int) -> bool:
    """Tell whether a size is nothing but a symbol."""
    return isinstance(size, Size) and str(size).isidentifier()


def renumbered(size: int, only: str = "") -> int:
    """Return the same size with other numbers for symbols, or for one, in another order."""
    if not isinstance(size, Size) or only not in ("", str(size)):
        return size
    return Size(4 * _FIRST - number_of(size), size.terms, size.usual)


def whole(size: Any) -> int:
    """Return a size as a plain number, or as what it is in terms of symbols."""
    return Size(number_of(size), size.terms, size.usual) if isinstance(size, Size) else int(size)


def at_most(x: int, y: int) -> bool:
    """Tell whether `x` is known to be no more than `y`, whatever the symbols are."""
    return _least(y - x) >= 0


def is_multiple(x: int, y: int) -> bool:
    """Tell whether `x` is known to be a multiple of `y`."""
    return _exact(x, y) is not None if isinstance(x, Size) else x % y == 0


def counted(size: int) -> int:
    """Return a size of which Python is to count through the values.

    Raises
    ------
    ValueNeeded
        If it depends on symbols.
    """
    if isinstance(size, Size):
        raise ValueNeeded(names_in(size), f"a loop of Python goes through {size}")
    return int(size)


def usual(size: int) -> int:
    """Return the value of a size for which blocks are chosen."""
    return size.usual if isinstance(size, Size) else int(size)


def valued(size: int, values: Mapping[str, int]) -> int:
    """Return a size for values of symbols."""
    if not isinstance(size, Size):
        return int(size)
    return int(eval(str(size), {"__builtins__": {}}, dict(values)))


def names_in(size: int) -> frozenset[str]:
    """Return the symbols that a size depends on."""
    if not isinstance(size, Size):
        return frozenset()
    words = "".join(c if c.isalnum() or c == "_" else " " for c in str(size)).split()
    return frozenset(word for word in words if word.isidentifier())


def _terms(x: int) -> Terms:
    return x.terms if isinstance(x, Size) else {(): number_of(x)}


def _made(number: int, terms: Mapping[tuple[str, ...], int], value: int) -> int:
    kept = {atoms: factor for atoms, factor in terms.items() if factor}
    if not any(kept):
        return kept.get((), 0)
    return Size(number, kept, value)


def _exact(x: Size, y: int) -> int | None:
    """Return a quotient without a rest, if there is none for all values."""
    by = _terms(y)
    if len(by) != 1:
        return 1 if x.terms == by else None
    ((less, divisor),) = by.items()
    terms: dict[tuple[str, ...], int] = {}
    for atoms, factor in x.terms.items():
        left = [*atoms]
        for name in less:
            if name not in left:
                return None
            left.remove(name)
        if divisor == 0 or factor % divisor:
            return None
        terms[tuple(left)] = factor // divisor
    return _made(number_of(x) // number_of(y), terms, x.usual // usual(y))


def _quotient(x: int, y: int) -> int:
    if isinstance(y, Size) and CONDITIONS.get() is None:  # asked for no meaning
        return number_of(x) // number_of(y)
    if isinstance(y, Size) or y < 1 or number_of(x) // y < _FEW:
        names = names_in(x) | names_in(y)
        raise ValueNeeded(names, f"it is not known how often {y} fits into {x}")
    atom = f"({x} // {y})"
    return Size(number_of(x) // number_of(y), {(atom,): 1}, usual(x) // y)


def _least(x: int) -> float:
    """Return what a size is not below, whatever its symbols are."""
    if not isinstance(x, Size):
        return x
    if any(factor < 0 for atoms, factor in x.terms.items() if atoms):
        return -math.inf
    return sum(
        factor * math.prod(0 if "/" in name else LEAST for name in atoms)
        for atoms, factor in x.terms.items()
    )


def _assumed(told: bool, x: int, sign: str, y: float) -> bool:
    conditions = CONDITIONS.get()
    if conditions is not None and (isinstance(y, int) or math.isfinite(y)):
        text = f"{x} {sign} {y}"
        conditions[text if told else f"not {text}"] = None
    return told


def _refused(x: int, other: object) -> Any:
    if not isinstance(other, (int, float)):
        return NotImplemented
    told = x if isinstance(x, Size) else other
    raise ValueNeeded(names_in(cast(int, told)), f"a number is computed of {told}")
