"""Tensors that exist once on each rank of a group, as users see them."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import current, here
from tile_api.frontend.dtypes import dtype as language_dtype
from tile_api.frontend.types import TensorSpec
from tile_api.frontend.values import as_value, assignment, load
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError, SignatureError, Span
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.expr import BinaryOp, Expr, Extent, Load, Var
from tile_core.ir.names import Names
from tile_core.ir.node import nodes_of
from tile_core.ir.print_expr import print_expr
from tile_core.ir.ranks import FLAG_STRIDE, OWN_RANK, RANK, RANK_COUNT, RANKS
from tile_core.ir.stmt import Check, CheckKind, Kernel, Seq, Store, flattened
from tile_core.records import dataclass, replace
from tile_launch.contract import Contract

LINE = 64
"""Bytes of which the distance from one copy to the next is a multiple."""


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricSpec(TensorSpec):
    """The declaration of a tensor that exists on every rank, or of flags."""

    def buffer(self, name: str, span: Span | None) -> Buffer:
        """Return the buffer of all copies: the first dimension counts ranks."""
        lines = Contract(multiple_of=LINE * 8 // max(self.dtype.bits, 1))
        distance = Var(f"{name}_stride", dtype_of("int64"), lines, span=span)
        step: Extent = FLAG_STRIDE if self.scope is Scope.SIGNALS else 1
        strides: list[Extent] = []
        for extent in reversed(self.shape):
            strides.append(step)
            step = extent * step
        return Buffer(
            name,
            (RANK_COUNT, *self.shape),
            self.dtype,
            self.scope,
            (distance, *reversed(strides)),
            span=span,
        )


class SymmetricValue:
    """The copy that one rank has of a tensor: ``A`` is the own one, ``A.at(p)`` that of rank p.

    Its elements and regions are those of the tensor of all copies, at that rank.
    """

    __slots__ = ("_own", "buffer", "rank")

    def __init__(self, buffer: Buffer, rank: Expr) -> None:
        self.buffer, self.rank = buffer, rank
        strides = None if buffer.strides is None else buffer.strides[1:]
        self._own = replace(buffer, shape=buffer.shape[1:], strides=strides)

    @property
    def name(self) -> str:
        """The name it was declared under."""
        return self.buffer.name

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents in elements, of the copy of one rank."""
        return self._own.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions, without the ranks."""
        return self._own.rank

    @property
    def dtype(self) -> DType:
        """Element type."""
        return language_dtype(self.buffer.dtype)

    @property
    def strides(self) -> tuple[Extent, ...]:
        """Distances in elements."""
        return self._own.strides or ()

    def scope(self) -> str:
        """Return the memory scope under its name in tile IR."""
        return self.buffer.scope.value

    def at(self, rank: Any) -> SymmetricValue:
        """Return the copy of another rank of the group.

        Raises
        ------
        FrontendTypeError
            If `rank` is no integer.
        """
        value = as_value(rank)
        if not value.dtype.is_int:
            raise FrontendTypeError(
                f"a rank is an integer, got a {value.dtype} value",
                span=here(),
                hint="ranks count from 0: (T.rank() + 1) % T.ranks() is the next one",
            )
        return SymmetricValue(self.buffer, build_expr.cast(value, "int32"))

    def __tile_region__(self) -> Region:
        starts: tuple[Extent, ...] = (self.rank, *(0 for _ in self.shape))
        return Region(self.buffer, starts, (1, *self.shape), span=here())

    def __getitem__(self, index: Any) -> Load | Region:
        made = load(self._own, index, here())
        if isinstance(made, Load):
            return Load(self.buffer, (self.rank, *made.indices), span=made.span)
        starts, extents = (self.rank, *made.starts), (1, *made.extents)
        return Region(self.buffer, starts, extents, made.is_element, span=made.span)

    def __setitem__(self, index: Any, value: Any) -> None:
        made = assignment(self._own, index, value)
        current().emit(Store(self.buffer, (self.rank, *made.indices), made.value))

    def __repr__(self) -> str:
        shape = ", ".join(str(e) if isinstance(e, int) else "?" for e in self.shape)
        return f"<symmetric tensor {self.name}: {self.buffer.dtype}[{shape}]>"


def with_rank_parameters(kernel: Kernel) -> Kernel:
    """Return `kernel` with the rank and the number of ranks as its last parameters, if it asks.

    Raises
    ------
    SignatureError
        If parameters of the user have these names.
    """
    used = {OWN_RANK, RANK_COUNT}.intersection(nodes_of(kernel.body, Var))
    is_symmetric = any(
        isinstance(p, Buffer) and p.shape[:1] and p.shape[0] is RANK_COUNT for p in kernel.params
    )
    is_misled = [p.name for p in kernel.params[-2:]] == [RANK, RANKS]
    if not (used or is_symmetric or is_misled):
        return kernel
    taken = next((p for p in kernel.params if p.name in (RANK, RANKS)), None)
    if taken is not None:
        raise SignatureError(
            f"the parameter {taken.name!r} has the name of what kernels across ranks are given",
            span=taken.span or kernel.span,
            hint=f"rename it, or say T.{taken.name}() for the one of the group",
        )
    from tile_core.passes.verify_ranks import verify_ranks  # few kernels need it

    inside = build_expr.binary(BinaryOp.LT, OWN_RANK, RANK_COUNT)
    natural = build_expr.binary(BinaryOp.LE, build_expr.const(0), OWN_RANK)
    checks = [
        Check(cond, print_expr(cond, Names()), CheckKind.ASSUME, span=kernel.span)
        for cond in (natural, inside)
    ]
    params = (*kernel.params, OWN_RANK, RANK_COUNT)
    made = replace(kernel, params=params, body=Seq((*checks, *flattened(kernel.body))))
    verify_ranks(made)
    return made
