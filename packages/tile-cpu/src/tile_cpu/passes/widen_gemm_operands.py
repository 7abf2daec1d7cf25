"""Give products operands in the types that the machine multiplies, converted once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.build_expr import cast
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Alloc, Kernel, Seq, Stmt, Store
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.gemm import Gemm
from tile_core.ops.parallel_form import parallel_nest
from tile_core.ops.serial_forms import expand
from tile_core.target import Target
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.machine import machine
from tile_cpu.ops import StreamedGemm
from tile_cpu.passes.buffer_uses import KernelUses

_BYTES = {"int4": "int8", "uint4": "uint8", "bool": "uint8"}
_EIGHT_DIGITS = frozenset({"int4", "uint4", "int8", "uint8"})


def widen_gemm_operands(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with operands of products that the machine multiplies as they are.

    Before   copy S -> P: bfloat16;  gemm P, B: int4, C
    After    parallel i, j: P[i, j] = float32(bfloat16(S[i, j])): float32;
             copy B -> Bw: float32;  gemm P, Bw, C

    Every value of a narrow type is one of the wide type, so results do not change. A tile that only
    products read is kept in the wide type: it is converted when it is written. What else is too
    narrow is copied before the product; only elements of 16 bits, and integers of 8, are left to
    the product, which converts them as it packs. Returns the same object when there is nothing to
    widen.
    """
    cpu = machine(target.arch)
    products = nodes_of(kernel.body, Gemm, StreamedGemm)
    if not any(True for op in products for _ in _narrow_operands(op, cpu)):
        return kernel
    kept = _kept_wide(KernelUses(kernel), products, cpu)
    held = {wide: tile for tile, wide in kept.items()}

    def rule(node: Node) -> Node:
        match node:
            case Buffer() if node in kept:
                return kept[node]
            case Store(buffer=buffer) if buffer in held:
                return replace(node, value=cast(node.value, buffer.dtype))
            case Fill(dst=dst) if dst.buffer in held:
                return replace(node, value=cast(node.value, dst.buffer.dtype))
            case Copy(dst=dst) if dst.buffer in held:
                return _rounding(node, held[dst.buffer])
            case Gemm() | StreamedGemm():
                return _with_copies(node, cpu)
        return node

    return rewrite(kernel, rule)


def _wide_type(dtype: DType, other: DType, cpu: CpuMachine) -> DType:
    """Return the type in which a factor of type `dtype` is multiplied with one of type `other`."""
    if dtype.bits > 16:
        return dtype
    if all(x.base == "bfloat16" or x.is_narrow_float for x in (dtype, other)):
        return dtype_of("bfloat16" if cpu.multiplies_bf16 else "float32")
    if dtype.is_float or other.is_float:
        return dtype_of("float32")
    return dtype_of(_BYTES.get(str(dtype.base), dtype))


def _narrow_operands(
    op: Gemm | StreamedGemm, cpu: CpuMachine
) -> Iterator[tuple[str, Region, DType]]:
    """Yield the tiles among the factors that are multiplied in another type: name, tile, type."""
    for name, region, other in (("a", op.a, op.b), ("b", op.b, op.a)):
        dtype = region.buffer.dtype
        wide = _wide_type(dtype, other.buffer.dtype, cpu)
        if wide != dtype and not (name == "b" and isinstance(op, StreamedGemm)):
            yield name, region, wide


def _kept_wide(
    facts: KernelUses, products: tuple[Gemm | StreamedGemm, ...], cpu: CpuMachine
) -> dict[Buffer, Buffer]:
    """Return the tiles that products read and nobody else, each with one of the wide type."""
    wanted: dict[Buffer, set[DType]] = {}
    readers: dict[Buffer, set[Node]] = {}
    for op in products:
        for _, region, wide in _narrow_operands(op, cpu):
            wanted.setdefault(region.buffer, set()).add(wide)
            readers.setdefault(region.buffer, set()).add(op)
    return {
        tile: replace(tile, dtype=wide)
        for tile, (wide, *others) in wanted.items()
        if not others and _is_only_multiplied(tile, facts, readers[tile])
    }


def _is_only_multiplied(tile: Buffer, facts: KernelUses, readers: set[Node]) -> bool:
    is_tile = tile.scope in (Scope.SHARED, Scope.FRAGMENT) and tile.origin is None
    if not is_tile or tile in facts.viewed:
        return False

    def is_known(node: Node) -> bool:
        match node:
            case Gemm(c=c) | StreamedGemm(c=c):
                return node in readers and c.buffer is not tile
            case Copy(src=src):
                return src.buffer is not tile
        return isinstance(node, (Store, Fill))

    return all(map(is_known, facts.touching[tile]))


def _rounding(copy: Copy, tile: Buffer) -> Node:
    """Return `copy`, whose destination stands for the narrower `tile`, with its rounding."""
    source, dtype, wide = copy.src.buffer.dtype, tile.dtype, copy.dst.buffer
    is_short = source.base in _EIGHT_DIGITS or source.is_narrow_float
    if source == dtype or (is_short and dtype.base in ("float16", "bfloat16")):
        return copy
    loops = parallel_nest(expand(replace(copy, dst=replace(copy.dst, buffer=tile))))

    def widened(node: Node) -> Node:
        if not isinstance(node, Store):
            return node
        return replace(node, buffer=wide, value=cast(node.value, wide.dtype))

    return rewrite(loops, widened)


def _with_copies(op: Gemm | StreamedGemm, cpu: CpuMachine) -> Node:
    """Return a product and, before it, the copies of what it cannot read as it is."""
    before: list[Stmt] = []
    regions: dict[str, Region] = {}
    for name, region, wide in _narrow_operands(op, cpu):
        dtype, extents = region.buffer.dtype, region.static_extents
        is_converted = not (dtype.is_narrow_float or dtype.bits == 4 or dtype.is_bool)
        if is_converted or extents is None:
            continue
        span = region.buffer.span
        tile = Buffer(f"{region.buffer.name}_wide", extents[-2:], wide, Scope.FRAGMENT, span=span)
        regions[name] = matrix = whole(tile)
        before += [Alloc(tile, span=op.span), Copy(region, matrix, span=op.span)]
    if not before:
        return op
    product = replace(op, a=regions.get("a", op.a), b=regions.get("b", op.b))
    return Seq((*before, product), span=op.span)
