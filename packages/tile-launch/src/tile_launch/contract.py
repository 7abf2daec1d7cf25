"""What is promised of a symbolic dimension: a range, and a number that divides it."""

from __future__ import annotations

from dataclasses import dataclass

from tile_launch.errors import ContractViolation, Note, Span


@dataclass(frozen=True, slots=True)
class Contract:
    """Every value ``x`` has ``low <= x <= high`` and ``x % multiple_of == 0``.

    The compiler relies on it; hosts check it before anything runs, so it is never silently false.
    It belongs to the variable (`tile_core.ir.expr.Var`), which takes it along wherever it goes: no
    pass has to carry facts. Both bounds are included, and 0 is a multiple of every number.
    """

    low: int = 0
    high: int | None = None
    multiple_of: int = 1

    @property
    def smallest(self) -> int:
        """The smallest value that the contract allows, leaving `high` aside."""
        return -(-self.low // self.multiple_of) * self.multiple_of

    @property
    def largest(self) -> int | None:
        """The largest value that the contract allows, leaving `low` aside."""
        return None if self.high is None else self.high // self.multiple_of * self.multiple_of

    @property
    def is_satisfiable(self) -> bool:
        """Whether any value fulfils it."""
        return self.multiple_of > 0 and (self.largest is None or self.smallest <= self.largest)

    def broken_by(self, value: int) -> str | None:
        """Return what is wrong with `value`, as the rest of a sentence, or None.

        Examples
        --------
        >>> Contract(low=1, multiple_of=16).broken_by(40)
        'not a multiple of 16'
        >>> Contract(high=64).broken_by(64) is None
        True
        """
        if value < self.low:
            return f"less than {self.low}"
        if self.high is not None and value > self.high:
            return f"more than {self.high}"
        return f"not a multiple of {self.multiple_of}" if value % self.multiple_of else None

    def told(self, name: str) -> str:
        """Return it as conditions on `name`.

        Examples
        --------
        >>> Contract(1, 4096, 128).told("m")
        '1 <= m <= 4096, m % 128 == 0'
        >>> Contract(multiple_of=8).told("n")
        'n % 8 == 0'
        """
        parts = []
        if self.high is not None:
            low = f"{self.low} <= " if self.low > 0 else ""
            parts.append(f"{low}{name} <= {self.high}")
        elif self.low > 0:
            parts.append(f"{name} >= {self.low}")
        if self.multiple_of > 1:
            parts.append(f"{name} % {self.multiple_of} == 0")
        return ", ".join(parts)


ANY_EXTENT = Contract()
"""What holds of every dimension: it is not negative."""


def require_kept(
    kernel: str,
    name: str,
    contract: Contract,
    value: int,
    origin: str | None = None,
    *,
    is_scalar: bool = False,
    span: Span | None = None,
) -> None:
    """Raise `ContractViolation` if `value`, out of `origin`, is none that a contract admits.

    The span is where the contract was written; a scalar is passed by the call itself.
    """
    wrong = contract.broken_by(value)
    if wrong is None:
        return
    raise ContractViolation(
        f"{kernel}: {name} is {value}, which is {wrong}; its contract is {contract.told(name)}",
        span=span,
        notes=() if origin is None else (Note(f"{name} is {value} because of {origin}"),),
        hint="pass a number that keeps it, or weaken the contract"
        if is_scalar
        else _way_out(contract, value),
    )


def _way_out(contract: Contract, value: int) -> str:
    padded = -(-value // contract.multiple_of) * contract.multiple_of
    if padded != value and contract.broken_by(padded) is None:
        return f"pad the dimension to {padded}, or weaken the contract"
    return "pass an argument of such a size, or weaken the contract"
