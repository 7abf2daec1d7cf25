"""Scales of groups along K in the registers of a warp, as ``mma`` with block scaling wants them.

A word of registers has the scales of four groups that follow each other. Of the four lanes that
share a row of A, or a column of B, an instruction takes them from two, or from one, which it is
told: lanes have words of other tiles beside. PTX ISA, "Block scaling for mma.sync".
"""

from __future__ import annotations

from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import as_expr, const
from tile_core.ir.expr import Expr, Load
from tile_core.ir.stmt import Alloc, Stmt, Store
from tile_core.ops.gemm import Gemm
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq, unrolled
from tile_core.simt.gemm.matrix_unit import Operand, Scales, operands
from tile_core.simt.gemm_warp_partition import WarpTiling
from tile_core.simt.lower_accesses import lower_expr
from tile_cuda.tensor_memory import groups_of_step, step_of

WORD = 4
"""Scales of a word."""


def scale_registers(op: Gemm, tiling: WarpTiling, ctx: SimtContext) -> Scales | None:
    """Return the scales of an MMA in registers: lanes read them once, for all of its k-steps.

    Two tiles of A share a word, if a warp has an even number of them, and four or two of B.
    """
    if op.scale_a is None or op.scale_b is None:
        return None
    a, b = operands(op, tiling)
    first = _Words(op, op.scale_a, op.group_a, a, 2 - a.tiles % 2, ctx)
    shared = next(n for n in (4, 2, 1) if b.tiles % n == 0)
    second = _Words(op, op.scale_b, op.group_b, b, shared, ctx)

    def arguments(i: Expr, j: Expr, kk: Expr) -> tuple[Expr, ...]:
        return (
            *(first.address(i, kk), second.address(j, kk)),
            *(first.byte(kk), i % first.shared, second.byte(kk), j % second.shared),
        )

    return Scales(seq(first.loaded(), second.loaded()), arguments)


class _Words:
    """The words of one operand: `shared` tiles have one."""

    def __init__(
        self, op: Gemm, scales: Region, group: int, operand: Operand, shared: int, ctx: SimtContext
    ) -> None:
        self.op, self.scales, self.group, self.ctx = op, scales, group, ctx
        self.operand, self.shared = operand, shared
        self.groups = groups_of_step(op)
        self.steps = WORD // self.groups  # those of a word
        self.words = -(-operand.steps // self.steps)
        count = operand.tiles // shared * self.words * WORD
        name = f"{operand.letter}_scales"
        self.registers = ctx.registers(name, count, str(scales.buffer.dtype))

    def address(self, tile: Expr, kk: Expr) -> Expr:
        """Return where the word of a tile and a k-step is."""
        word = tile // self.shared * self.words + kk // self.steps
        return at(self.registers, word * WORD, "r")

    def byte(self, kk: Expr) -> Expr:
        """Return the first of its bytes that count."""
        return kk % self.steps * self.groups

    def row(self, number: Expr) -> Expr:
        """Return whose scales a lane has in its `number`th words."""
        lane = self.ctx.thread % self.operand.lanes
        of_four, extent = lane % 4, self.operand.atom.shape[0]
        inside, tile = lane // 4, of_four % self.shared
        if self.operand.letter == "a":
            inside, tile = inside + of_four % 2 * 8, of_four // 2 % self.shared
        first = as_expr(self.operand.first_x(self.ctx.thread))
        return first + (number * self.shared + tile) * extent + inside

    def loaded(self) -> Stmt:
        """Return the loads of all words."""
        whole, rest = divmod(self.operand.steps * self.groups, WORD)

        def of_row(number: Expr) -> Stmt:
            first = number * (self.words * WORD)
            return seq(
                unrolled(self.ctx, "w", whole, lambda w: self._word(number, w, WORD, first)),
                self._word(number, as_expr(whole), rest, first) if rest else None,
            )

        count = self.operand.tiles // self.shared
        return seq(Alloc(self.registers), unrolled(self.ctx, "x", count, of_row))

    def _word(self, number: Expr, word: Expr, count: int, first: Expr) -> Stmt:
        """Return the loads of `count` scales of a word, together where they are neighbours."""
        width = self._width(count)

        def some(part: Expr) -> Stmt:
            place = word * WORD + part * width
            target = first + place
            where = self._indices(number, place)
            if width > 1:
                source = self.ctx.address(self.scales.buffer, *where, access="r")
                return do("load", width, at(self.registers, target, "w"), source)
            value = lower_expr(Load(self.scales.buffer, where), self.ctx)
            return Store(self.registers, (target,), value)

        return unrolled(self.ctx, "s", count // width, some)

    def _indices(self, number: Expr, place: Expr) -> tuple[Expr, ...]:
        """Return where the scale of the group at `place` of the words of a row is."""
        each = step_of(self.op) // self.groups
        begin = const(0) if self.op.first_k is None else self.op.first_k
        *lead, row, column = map(as_expr, self.scales.starts)
        if self.group == each:
            group = begin // each + place
        else:
            group = (begin + place * each) // self.group
        return (*lead, row + self.row(number), column + group)

    def _width(self, count: int) -> int:
        """Return how many scales one access brings."""
        each = step_of(self.op) // self.groups
        if self.group != each:
            return 1
        env, layout = self.ctx.env, self.ctx.layout_of(self.scales.buffer)
        begin = 0 if self.op.first_k is None else env.multiple_of(self.op.first_k)
        aligned = (begin // each, env.multiple_of(self.scales.starts[-1]))
        limit = layout.vector_width(-1, WORD)
        return next(
            n
            for n in (4, 2, 1)
            if n <= limit and count % n == 0 and all(start % n == 0 for start in aligned)
        )
