"""Vector values in tile IR as scalars, one per lane."""

from __future__ import annotations

from tile_core.dtypes import DType, dtype_of
from tile_core.errors import InternalError, Span, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, cast, const
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Expr,
    Load,
    Ramp,
    Select,
    Shuffle,
    Unary,
    Var,
)
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Alloc, Kernel, Let, Seq, Stmt, Store
from tile_core.records import replace


def split_vectors(kernel: Kernel) -> Kernel:
    """Return `kernel` without vector values.

    Before   B[ramp(0, 1, 4)] = A[ramp(8, 1, 4)] * 2
    After    alloc t[4];  t[0] = A[8] * 2; …; t[3] = A[11] * 2
             B[0] = t[0]; …; B[3] = t[3]

    All lanes are read before any is stored. ``dp4a`` of addresses becomes four products.
    Returns the same object when there are no vectors.

    Raises
    ------
    UnsupportedOnTarget
        If a vector stands where there is no lane to speak of, as in a condition or an argument,
        or its bits are read as lanes that do not divide them.
    """
    if not any(map(_is_vector, nodes_of(kernel.body, Expr))):
        return kernel
    split = _Splitter().run(kernel)
    _refuse_whole(split.body, None)
    return split


def _refuse_whole(node: Node, span: Span | None) -> None:
    """Raise if a vector is left in `node`, a part of the statement at `span`."""
    span = node.span or span
    if isinstance(node, Expr) and _is_vector(node):
        raise UnsupportedOnTarget(
            f"a vector of {node.dtype.lanes} elements stands where one element is meant",
            span=span,
            hint="write a loop over the elements, or take one: T.extract_lane(vector, 0)",
        )
    for child in node.children():
        if not isinstance(child, Buffer):
            _refuse_whole(child, span)


def _is_vector(node: Expr) -> bool:
    if isinstance(node, Call) and node.function == "dp4a":
        return True
    return isinstance(node, (Ramp, Broadcast, Shuffle)) or node.dtype.lanes > 1


class _Splitter:
    def __init__(self) -> None:
        self.arrays: dict[Var, Buffer] = {}

    def run(self, kernel: Kernel) -> Kernel:
        return rewrite(kernel, self.rule)

    def rule(self, node: Node) -> Node:
        match node:
            case Seq(body=body):
                flat = tuple(s for item in body for s in self.statements(item))
                same = len(flat) == len(body) and all(
                    a is b for a, b in zip(flat, body, strict=True)
                )
                return node if same else replace(node, body=flat)
            case Store(indices=indices) if indices and indices[-1].dtype.lanes > 1:
                return Seq(tuple(self.store(node)))
            case Call(function="dp4a"):
                return self.dot(node)
            case Shuffle(picks=(_,)):
                return self.lane(node, 0)
            case Bitcast(dtype=dtype, value=value) if dtype.lanes == 1 and value.dtype.lanes > 1:
                lanes = [self.lane(value, k) for k in range(value.dtype.lanes)]
                return self.joined(dtype, lanes)
        return node

    def statements(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return what stands for one item of a sequence; names reach to the sequence's end."""
        if not (isinstance(stmt, Let) and stmt.var.dtype.lanes > 1):
            return (stmt,)
        array = self.array(stmt.var)
        lanes = range(stmt.var.dtype.lanes)
        stores = (Store(array, (const(k),), self.lane(stmt.value, k)) for k in lanes)
        return (Alloc(array), *stores)

    def array(self, var: Var) -> Buffer:
        """Return the array that holds the lanes of a named vector."""
        if var not in self.arrays:
            dtype = var.dtype
            self.arrays[var] = Buffer(var.name, (dtype.lanes,), dtype.scalar, Scope.LOCAL)
        return self.arrays[var]

    def store(self, stmt: Store) -> list[Stmt]:
        """Return the store of a vector as stores of its lanes."""
        lanes = stmt.indices[-1].dtype.lanes
        staged = Buffer("lanes", (lanes,), stmt.buffer.dtype, Scope.LOCAL)
        values = [self.lane(stmt.value, k) for k in range(lanes)]
        reads = [Store(staged, (const(k),), v, span=stmt.span) for k, v in enumerate(values)]
        writes = [
            Store(stmt.buffer, (*stmt.indices[:-1], self.lane(stmt.indices[-1], k)),
                  Load(staged, (const(k),)), span=stmt.span)
            for k in range(lanes)
        ]  # fmt: skip
        return [Alloc(staged), *reads, *writes]

    def lane(self, expr: Expr, k: int) -> Expr:
        """Return lane `k` of a vector; scalars are the same in all lanes."""
        if isinstance(expr, Shuffle):
            position = expr.picks[k]
            for vector in expr.vectors:
                if position < vector.dtype.lanes:
                    return self.lane(vector, position)
                position -= vector.dtype.lanes
        if expr.dtype.lanes == 1:
            return expr
        match expr:
            case Ramp(base=base, stride=stride):
                return base + stride * k
            case Broadcast(value=value):
                return value
            case Var():
                return Load(self.array(expr), (const(k),))
            case Load(indices=indices):
                return replace(expr, indices=(*indices[:-1], self.lane(indices[-1], k)))
            case Bitcast(dtype=dtype, value=value) if value.dtype.lanes != dtype.lanes:
                return self.cut(dtype.bits, value, k, expr)
            case Binary() | Unary() | Select() | Cast() | Bitcast() | Call():
                scalar = expr.map_children(lambda c: self.lane(c, k) if isinstance(c, Expr) else c)
                if isinstance(scalar, Select):
                    return scalar
                return replace(scalar, dtype=expr.dtype.scalar)
        raise InternalError(f"{type(expr).__name__} has no lanes", span=expr.span)

    def cut(self, bits: int, value: Expr, k: int, expr: Bitcast) -> Expr:
        """Return lane `k`, of `bits` bits, of a value whose lanes have another width."""
        have = value.dtype.bits
        if max(bits, have) > 64 or max(bits, have) % min(bits, have):
            raise UnsupportedOnTarget(
                f"lanes of {have} bits cannot be read as lanes of {bits}",
                span=expr.span,
                hint="write a loop over the elements",
            )
        target = expr.dtype.scalar
        if bits >= have:
            each = bits // have
            return self.joined(target, [self.lane(value, k * each + j) for j in range(each)])
        each = have // bits
        lane = Bitcast(dtype_of(f"uint{have}"), self.lane(value, k // each))
        shifted = binary(BinaryOp.SHR, lane, const(k % each * bits, lane.dtype))
        return Bitcast(target, cast(shifted, f"uint{bits}"))

    def joined(self, target: DType, lanes: list[Expr]) -> Expr:
        """Return narrow values side by side in one wide scalar, the first in the lowest bits."""
        wide = dtype_of(f"uint{target.bits}")
        bits = lanes[0].dtype.bits
        total: Expr = const(0, wide)
        for k, value in enumerate(lanes):
            lane = cast(Bitcast(dtype_of(f"uint{bits}"), value), wide)
            total = total | binary(BinaryOp.SHL, lane, const(k * bits, wide))
        return Bitcast(target, total)

    def dot(self, call: Call) -> Expr:
        """Return ``c`` plus the products of four neighbours each."""
        a, b, total = call.args
        for k in range(4):
            total = total + self.fourth(a, k) * self.fourth(b, k)
        return total

    def fourth(self, operand: Expr, k: int) -> Expr:
        if isinstance(operand, AddressOf):
            at = (*operand.indices[:-1], operand.indices[-1] + k)
            return cast(Load(operand.buffer, at), "int32")
        if operand.dtype.lanes == 4:
            return cast(self.lane(operand, k), "int32")
        byte = dtype_of("int8x4")
        return cast(self.lane(Bitcast(byte, operand), k), "int32")
