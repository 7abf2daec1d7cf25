"""Let one block of a launch that only multiplies do the work of several neighbours."""

from __future__ import annotations

from dataclasses import replace

from tile_core.arith.affine import linear_in
from tile_core.environment import processors
from tile_core.ir.buffer import Region, static_value
from tile_core.ir.build_expr import as_expr, binary, const
from tile_core.ir.expr import BinaryOp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Hint, Kernel, Launch, Let, Seq, Stmt
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass
from tile_core.target import Target
from tile_cpu.ops import BlockedGemm

# A block's sums stay in the second-level cache with the steps of A and B next to them.
MAX_SIDE, MAX_SUMS_BYTES = 256, 256 * 1024
# Where k runs down A it is copied, and each of its rows lies in a page of its own. A larger
# block looks for pages, and packs B, less often; beside rows of A in place it would not fit.
MAX_COPIED_SIDE, MAX_COPIED_SUMS_BYTES = 512, 512 * 1024
# Blocks of few rows read B once, best in long rows: widest block, by rows.
MAX_WIDTH = {4: 8192, 16: 512}
# Blocks per core that leave the cores evenly busy: any number from the first on, a multiple
# of the number of cores from the second on.
PLENTY, EVEN = 4, 2


def merge_gemm_blocks(kernel: Kernel, target: Target, cores: int | None = None) -> Kernel:
    """Return `kernel` with larger and fewer blocks where all they do is one blocked product.

    Before   launch bx, by in (32, 32): blocked_gemm A[by * 64:64, 0], B[0, bx * 64:64] -> ...
    After    launch bx, by in (8, 8): blocked_gemm A[by * 256:256, 0], B[0, bx * 256:256] -> ...

    A larger block packs its operands for more products. Blocks are independent and clip
    themselves at the tensors' edges, so results do not change. Only grids and tiles known
    at compile time, and never so far that there is too little for each of `cores` (default:
    those this process may use). Returns the same object when nothing fits.
    """
    available = processors() if cores is None else cores

    def rule(node: Node) -> Node:
        return _merge(node, available) if isinstance(node, Launch) else node

    return rewrite(kernel, rule)


def for_one_thread(launch: Launch) -> tuple[Launch, dict[TileOperator, TileOperator]]:
    """Return `launch` with blocks as wide as one thread alone likes them.

    Only blocks of so few rows that they wait for B, which comes fastest in long rows: such a
    launch is worth compiling twice. Also returns which operator each new one replaces; the
    launch is the same object where nothing grows.
    """
    product = only_product(launch)
    if product is None or product.mn[0] > min(MAX_WIDTH):
        return launch, {}
    wider = _merge(launch, 1)
    grown = only_product(wider)
    return wider, {} if grown is None or grown is product else {grown: product}


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of the product's block: its length and the grid dimension that moves it."""

    axis: int | None  # position in the grid, or None if no dimension moves this side alone
    length: int  # elements of one block
    count: int  # blocks
    covers: bool  # the blocks reach the end of the tensor: further ones write nothing

    def times(self, factor: int) -> _Side | None:
        """Return the side with blocks `factor` times as long, or None if that is illegal."""
        if self.axis is None or self.count < 2 or (self.count % factor and not self.covers):
            return None
        return replace(self, length=self.length * factor, count=-(-self.count // factor))


@dataclass(frozen=True, slots=True)
class _Limits:
    """The longest side of a block and the most sums in one."""

    side: int
    sums: int

    @classmethod
    def of(cls, op: BlockedGemm) -> _Limits:
        side, room = MAX_SIDE, MAX_SUMS_BYTES
        if op.transpose_a:
            side, room = MAX_COPIED_SIDE, MAX_COPIED_SUMS_BYTES
        return cls(side, room // (op.accumulator.bits // 8))


def _merge(launch: Launch, cores: int) -> Launch:
    grid = [static_value(extent) for extent in launch.grid]
    product = only_product(launch)
    if product is None or not product.dst.buffer.scope.is_global or product.start is not None:
        return launch
    if any(extent is None for extent in grid):
        return launch
    counts = [extent or 0 for extent in grid]
    rows, columns = _sides(launch, product, counts)
    others = 1
    for axis, count in enumerate(counts):
        others *= 1 if axis in (rows.axis, columns.axis) else count
    bigger = _grow(rows, columns, others, _Limits.of(product), cores)
    if bigger == (rows, columns):
        return launch
    for before, after in zip((rows, columns), bigger, strict=True):
        if before.axis is not None:
            counts[before.axis] = after.count
            var = launch.block_vars[before.axis]
            product = _stretched(product, var, after.length)
    extents = tuple(const(count, old.dtype) for count, old in zip(counts, launch.grid, strict=True))
    body = rewrite(launch.body, lambda node: product if isinstance(node, BlockedGemm) else node)
    return replace(launch, grid=extents, body=body)


def only_product(launch: Launch) -> BlockedGemm | None:
    """Return the blocked product that is all the body does, hints and names of numbers aside."""
    work = [stmt for stmt in _statements(launch) if not isinstance(stmt, (Hint, Let))]
    return work[0] if len(work) == 1 and isinstance(work[0], BlockedGemm) else None


def named_in(launch: Launch) -> dict[Var, frozenset[Var]]:
    """Return the names that the body gives to numbers, with the variables that these depend on."""
    lets = [stmt for stmt in _statements(launch) if isinstance(stmt, Let)]
    return {stmt.var: frozenset(free_variables(stmt.value)) for stmt in lets}


def _statements(launch: Launch) -> tuple[Stmt, ...]:
    return launch.body.body if isinstance(launch.body, Seq) else (launch.body,)


def column_axis(launch: Launch, op: BlockedGemm) -> int | None:
    """Return the dimension of the grid that moves the columns of `op`, None if there is none."""
    counts = [static_value(extent) or 0 for extent in launch.grid]
    return _sides(launch, op, counts)[1].axis


def _sides(launch: Launch, op: BlockedGemm, counts: list[int]) -> tuple[_Side, _Side]:
    """Return the rows and the columns of the blocks of `op`."""
    m, n = op.mn
    a_at = op.a.buffer.rank - 1 if op.transpose_a else op.a_rows
    b_at = op.b_rows if op.transpose_b else op.b.buffer.rank - 1
    d_columns = op.dst.buffer.rank - 1
    rows = _side(launch, op, counts, m, {op.a: a_at, op.dst: op.dst_rows})
    columns = _side(launch, op, counts, n, {op.b: b_at, op.dst: d_columns})
    return rows, columns


def _side(
    launch: Launch, op: BlockedGemm, counts: list[int], length: int, moved: dict[Region, int]
) -> _Side:
    """Return the side of `length` that lies along dimension ``moved[region]`` of each region."""
    hidden = frozenset().union(*named_in(launch).values())
    for axis, var in enumerate(launch.block_vars):
        if var in hidden or not _moves_only(op, var, length, moved):
            continue
        at = moved[op.dst]
        rest = linear_in(op.dst.starts[at], var)
        size = static_value(op.dst.buffer.shape[at])
        first = static_value(rest[1]) if rest is not None else None
        is_known = size is not None and first is not None
        covers = is_known and (first or 0) + counts[axis] * length >= (size or 0)
        return _Side(axis, length, counts[axis], covers)
    return _Side(None, length, 1, False)


def _moves_only(op: BlockedGemm, var: Var, length: int, moved: dict[Region, int]) -> bool:
    """Whether `var` moves just the given dimensions, by one block's length each."""
    if var in free_variables(op.k):
        return False
    for region in (op.a, op.b, op.dst):
        for dimension, start in enumerate(region.starts):
            found = linear_in(start, var)
            expected = length if moved.get(region) == dimension else 0
            if found is None or found[0] != expected:
                return False
        if any(var in free_variables(x) for x in region.extents):
            return False
    return True


def _grow(
    rows: _Side, columns: _Side, others: int, limits: _Limits, cores: int
) -> tuple[_Side, _Side]:
    """Return both sides, doubled as often as that helps: the shorter one first."""
    while True:
        wider, taller = columns.times(2), rows.times(2)
        options = [(rows, wider), (taller, columns)]
        if rows.length <= columns.length and rows.count > 1:
            options.reverse()
        for m, n in options:
            if m is None or n is None or m.length * n.length > limits.sums:
                continue
            few = min((r for r in MAX_WIDTH if m.length <= r), default=0)
            limit = MAX_WIDTH.get(few, limits.side) if m.count == 1 else limits.side
            if m.length > limits.side or n.length > limit:
                continue
            blocks = m.count * n.count * others
            enough = 1 if few == min(MAX_WIDTH) else EVEN
            if blocks >= PLENTY * cores or (blocks >= enough * cores and blocks % cores == 0):
                rows, columns = m, n
                break
        else:
            return rows, columns


def _stretched(op: BlockedGemm, var: Var, length: int) -> BlockedGemm:
    """Return `op` with the side that `var` moves made `length` long."""

    def stretch(region: Region) -> Region:
        starts, extents = list(region.starts), list(region.extents)
        for dimension, start in enumerate(starts):
            found = linear_in(start, var)
            if found is not None and found[0]:
                moved = binary(BinaryOp.MUL, var, length)
                starts[dimension] = binary(BinaryOp.ADD, moved, as_expr(found[1]))
                extents[dimension] = 1 if region.is_element else length
        return replace(region, starts=tuple(starts), extents=tuple(extents))

    return replace(op, a=stretch(op.a), b=stretch(op.b), dst=stretch(op.dst))
