"""Products whose groups along K have scales, on machines whose instructions have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.build_expr import cast
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Alloc, Kernel, Seq, Stmt
from tile_core.ops.gemm import Gemm
from tile_core.ops.loop_builders import load, matrix_axes, nest, store
from tile_core.ops.parallel_form import parallel_nest
from tile_core.records import replace


def lower_scaled_gemms(kernel: Kernel) -> Kernel:
    """Return `kernel` with products of scaled elements in place of those with scales.

    Before   gemm A: float8[128, 64], B, C, scale_a=SFA, group_a=32, …
    After    A_scaled: bfloat16[128, 64]
             parallel i, k:  A_scaled[i, k] = A[i, k] * SFA[i, k // 32]
             B_scaled: …;  gemm A_scaled, B_scaled, C, transpose_b=True

    Scaled elements are exact in bfloat16, as long as they are in its range. Products that ask for
    an instruction stay: passes of their backend chose it.
    """
    return with_scaled_tiles(kernel, lambda op: op.instruction is None)


def with_scaled_tiles(kernel: Kernel, chosen: Callable[[Gemm], bool]) -> Kernel:
    """Return `kernel` with chosen ones of the products with scales as `lower_scaled_gemms` says."""
    made: dict[Node, tuple[Stmt, ...]] = {}
    names = dict.fromkeys((b.name for b in nodes_of(kernel, Buffer)), 1)
    for op in nodes_of(kernel, Gemm):
        if op.scales and chosen(op):
            made[op] = _expanded(op, names)
    if not made:
        return kernel

    def spliced(node: Node) -> Node:
        if isinstance(node, Gemm) and node in made:
            return Seq(made[node], span=node.span)
        return node

    def opened(node: Node) -> Node:
        if not isinstance(node, Seq) or not any(part in made for part in node.body):
            return node
        body = (s for part in node.body for s in made.get(part, (part,)))
        return replace(node, body=tuple(body))

    return rewrite(rewrite(kernel, opened, (Seq,)), spliced, (Gemm,))


def _expanded(op: Gemm, names: dict[str, int]) -> tuple[Stmt, ...]:
    if op.nibbles or op.scale_a is None or op.scale_b is None:
        raise InternalError("only elements of their own are written out scaled", span=op.span)
    a, b = (
        _scaled(op, region, scales, turned, group, scope, names)
        for region, scales, turned, group, scope in (
            (op.a, op.scale_a, op.transpose_a, op.group_a, Scope.FRAGMENT),
            (op.b, op.scale_b, not op.transpose_b, op.group_b, Scope.SHARED),
        )
    )
    plain = Gemm(
        whole(a[0].buffer), whole(b[0].buffer), op.c, False, True, clear=op.clear,
        policy=op.policy, k_pack=op.k_pack, wg_wait=op.wg_wait, span=op.span,
    )  # fmt: skip
    return *a, *b, plain


def _scaled(
    op: Gemm,
    narrow: Region,
    scales: Region,
    turned: bool,
    group: int,
    scope: Scope,
    names: dict[str, int],
) -> tuple[Alloc, Stmt]:
    """Return a tile of bfloat16, with K along its rows, and what fills it with scaled elements."""
    first, second = (narrow.static_extents or ())[-2:]
    extents = (second, first) if turned else (first, second)
    name = _fresh(f"{narrow.buffer.name}_scaled", names)
    wide = Buffer(name, extents, dtype_of("bfloat16"), scope, span=op.span)

    def element(at: tuple[Any, ...]) -> Stmt:
        i, k = at
        value = load(narrow, matrix_axes(narrow), (k, i) if turned else (i, k))
        scale = op.scale_of(scales, group, i, k)
        product = cast(value, dtype_of("float32")) * cast(scale, dtype_of("float32"))
        return store(whole(wide), (0, 1), at, product)

    loop = parallel_nest(nest(extents, element))
    return Alloc(wide, span=op.span), replace(loop, span=op.span)


def _fresh(name: str, names: dict[str, int]) -> str:
    """Return `name`, with a number behind it if there is such a buffer."""
    count = names.get(name, 0)
    names[name] = count + 1
    return f"{name}_{count}" if count else name
