"""Contracts on dimensions, checked against the arguments of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tile_core.errors import ContractViolation, Note
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Extent, Var

_NUMBER = "pass a number that keeps it, or weaken the contract"


def require_kept(
    kernel: str, var: Var, value: int, origin: str | None = None, *, is_scalar: bool = False
) -> None:
    """Raise if `value` is none that the contract of `var` admits.

    Parameters
    ----------
    kernel
        Its name.
    origin
        What gave the value, such as ``A.shape[0]``.
    is_scalar
        Whether the call passes the value itself.

    Raises
    ------
    ContractViolation
    """
    wrong = None if var.contract is None else var.contract.broken_by(value)
    if var.contract is None or wrong is None:
        return
    notes = () if origin is None else (Note(f"{var.name} is {value} because of {origin}"),)
    raise ContractViolation(
        f"{kernel}: {var.name} is {value}, which is {wrong}; its contract is "
        f"{var.contract.told(var.name)}",
        span=var.span,
        notes=notes,
        hint=_NUMBER if is_scalar else _way_out(var, value),
    )


def check_contracts(kernel: str, values: Mapping[Var, Any], params: Iterable[Buffer | Var]) -> None:
    """Raise if a symbol or a scalar has a value that its contract excludes.

    Parameters
    ----------
    params
        Those that the call passes: among them is the one that gave a symbol its value.

    Raises
    ------
    ContractViolation
    """
    for var, value in values.items():
        if var.contract is not None:
            origin = origin_of(var, params)
            require_kept(kernel, var, value, origin, is_scalar=origin is None)


def origin_of(var: Var, params: Iterable[Buffer | Var]) -> str | None:
    """Return which part of which argument gives `var` its value, as messages spell it."""
    tensors = [p for p in params if isinstance(p, Buffer)]
    places = (
        (f"{p.name}.{axes}[{k}]", extent)
        for axes in ("shape", "strides")
        for p in tensors
        for k, extent in enumerate(_sizes(p, axes))
    )
    exact, within = None, None
    for place, extent in places:
        if extent is var:
            exact = exact or place
        elif within is None and _mentions(extent, var):
            within = place
    return exact or within


def _sizes(param: Buffer, axes: str) -> tuple[Extent, ...]:
    return param.shape if axes == "shape" else (param.strides or ())


def _mentions(extent: Extent, var: Var) -> bool:
    from tile_core.ir.free_variables import free_variables

    return not isinstance(extent, int) and any(v is var for v in free_variables(extent))


def _way_out(var: Var, value: int) -> str:
    contract = var.contract
    assert contract is not None, "only what promises can break a promise"
    padded = -(-value // contract.multiple_of) * contract.multiple_of
    if padded != value and contract.broken_by(padded) is None:
        return f"pad the dimension to {padded}, or weaken the contract"
    return "pass an argument of such a size, or weaken the contract"
