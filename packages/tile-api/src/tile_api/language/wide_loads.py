"""Vector loads and stores of a fixed width, by one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_value
from tile_api.language.conversions import bits_as
from tile_api.language.operands import element, emit, here
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import DtypeMismatch, FrontendValueError, ScopeMismatch
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Broadcast, Expr, Load, Ramp
from tile_core.ir.stmt import If, Seq, Store

__all__ = [
    "__ldg", "ldg32", "ldg64", "ldg128", "ldg256", "lds32", "lds64", "lds128", "stg32", "stg64",
    "stg128", "stg256", "sts32", "sts64", "sts128",
]  # fmt: skip


_SPACES = {"g": (Scope.GLOBAL, "global"), "s": (Scope.SHARED, "shared")}


def _words(bits: int) -> DType:
    """Return uint32, or a vector of as many as `bits` needs."""
    return dtype_of("uint32").with_lanes(bits // 32)


def _place(name: str, space: str, bits: int, x: Any) -> tuple[Buffer, tuple[Expr, ...], int]:
    """Return buffer, indices and number of elements of an access of `bits` bits."""
    buffer, indices = element(x, f"the address of T.{name}")
    scope, word = _SPACES[space]
    if buffer.scope is not scope:
        raise ScopeMismatch(
            f"T.{name} accesses {word} memory, but {buffer.name!r} is in {buffer.scope.value} "
            "memory",
            hint="use the function for that memory, or T.copy, which takes any",
        )
    width = buffer.dtype.bits * buffer.dtype.lanes
    if bits % width or not indices:
        raise FrontendValueError(
            f"T.{name} moves {bits} bits, which is no whole number of {buffer.dtype} elements",
            hint="choose a function whose width is a multiple of the element's",
        )
    lanes = bits // width
    if lanes > 1:
        last = indices[-1]
        indices = (*indices[:-1], Ramp(last, build_expr.const(1, last.dtype), lanes))
    return buffer, indices, lanes


def _loader(space: str, bits: int) -> Callable[..., Expr]:
    name = f"ld{space}{bits}"

    def load(src: Any, pred: Any = None) -> Expr:
        buffer, indices, _ = _place(name, space, bits, src)
        words = _words(bits)
        raw: Expr = Load(buffer, indices, span=here())
        value = bits_as(raw, words)
        if pred is None:
            return value
        zero: Expr = build_expr.const(0, words.scalar)
        if words.lanes > 1:
            zero = Broadcast(zero, words.lanes)
        return build_expr.select(as_value(pred), value, zero)

    load.__name__ = load.__qualname__ = name
    load.__doc__ = (
        f"Return {bits} bits of {_SPACES[space][1]} memory from an element on, as "
        f"{_words(bits)};\n\n    zero where `pred` is given and does not hold.\n    "
    )
    return load


def _storer(space: str, bits: int) -> Callable[..., None]:
    name = f"st{space}{bits}"

    def store(dst: Any, value: Any, pred: Any = None) -> None:
        buffer, indices, lanes = _place(name, space, bits, dst)
        target = buffer.dtype.with_lanes(lanes) if lanes > 1 else buffer.dtype
        expr = as_value(value, _words(bits))
        have = expr.dtype.bits * expr.dtype.lanes
        if have != bits:
            raise DtypeMismatch(
                f"T.{name} stores {bits} bits, got {have} of {expr.dtype}",
                hint=f"pass the result of a load of {bits} bits, or pack a vector",
            )
        raw = bits_as(expr, target)
        store_it = Store(buffer, indices, raw, span=current().span)
        if pred is None:
            emit(store_it)
        else:
            emit(If(build_expr.truth(as_value(pred)), Seq((store_it,), span=here())))

    store.__name__ = store.__qualname__ = name
    store.__doc__ = (
        f"Write {bits} bits, given as {_words(bits)} or any vector as wide, to "
        f"{_SPACES[space][1]}\n    memory from an element on; only where `pred` holds, if given.\n"
        "    "
    )
    return store


ldg32, ldg64, ldg128, ldg256 = (_loader("g", bits) for bits in (32, 64, 128, 256))
lds32, lds64, lds128 = (_loader("s", bits) for bits in (32, 64, 128))
stg32, stg64, stg128, stg256 = (_storer("g", bits) for bits in (32, 64, 128, 256))
sts32, sts64, sts128 = (_storer("s", bits) for bits in (32, 64, 128))


def ldg(x: Any) -> Expr:
    """Return the element ``A[i]`` of a tensor that no thread changes meanwhile."""
    buffer, indices = element(x, "the operand of T.__ldg")
    return Load(buffer, indices, span=here())


__ldg = ldg
