"""Run all passes over one group of rows before the next group: data stays in the cache."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel, Seq, Stmt
from tile_core.records import dataclass
from tile_core.target import Target
from tile_cpu.passes.buffer_uses import KernelUses, rewrite_sequences
from tile_cpu.passes.row_dependence import is_row_by_row
from tile_cpu.passes.row_fusion import drop_dead_stores, join_passes, read_sources_in_place
from tile_cpu.passes.row_loops import row_loop
from tile_cpu.passes.row_passes import RowPass, as_one_row, row_pass


def fuse_rows(kernel: Kernel, target: Target) -> Kernel:
    """Return `kernel` with neighbouring passes over the rows of tiles run row by row.

    Before   copy X[m, 0] -> x;  reduce max x -> t;
             parallel i, j in (64, 256): x[i, j] = exp(x[i, j] - t[i]);  reduce sum x -> s
    After    for g in range(8):
                 total = -inf;  parallel i, j in (8, 256): total[i] max= X[m + g*8 + i, j];
                 t[g*8 + i] = total[i];  …
                 parallel i, j in (8, 256): x[i, j] = exp(X[m + g*8 + i, j] - t[g*8 + i]);
                     total[i] += x[i, j]
                 s[g*8 + i] = total[i]

    Rows of global tensors are read where they are, sums are taken as elements are made, and
    tiles that hold nothing between groups shrink to one group or vanish. Conservative: a
    statement that is not element-wise, or that touches another row's elements, ends a
    sequence of passes; so does any statement between them. Returns the same object when
    nothing fits.
    """
    return rewrite_sequences(kernel, _fuse_in_sequence)


@dataclass(slots=True)
class _Run:
    """Statements next to each other that are passes over the same rows."""

    row: Var
    rows: int
    statements: list[Stmt]
    passes: list[RowPass]


def _fuse_in_sequence(seq: Seq, facts: KernelUses) -> Seq:
    body: list[Stmt] = []
    run: _Run | None = None
    changed = False

    def close() -> None:
        nonlocal run, changed
        if run is None:
            return
        fused = _fused(run, facts)
        changed = changed or fused is not None
        body.extend(run.statements if fused is None else fused)
        run = None

    for stmt in seq.body:
        longer = None if run is None else _extended(run, stmt)
        if longer is None:
            close()
            row = Var("i", dtype_of("int32"))
            longer = _extended(_Run(row, 0, [], []), stmt)
        if longer is None:
            body.append(stmt)
        run = longer
    close()
    return Seq(tuple(body), span=seq.span) if changed else seq


def _extended(run: _Run, stmt: Stmt) -> _Run | None:
    """Return `run` with one more statement, None if it does not fit."""
    found = row_pass(stmt, run.row)
    if found is None:
        return None
    before: list[RowPass] | None = run.passes
    after: list[RowPass] | None = [found[1]]
    rows = found[0]
    if run.rows not in (0, rows):
        if run.rows == 1:
            rows, after = 1, as_one_row([found[1]], rows, run.row)
        elif rows == 1:
            before = as_one_row(run.passes, run.rows, run.row)
        else:
            return None
    if before is None or after is None or not is_row_by_row([*before, *after], run.row, rows):
        return None
    return _Run(run.row, rows, [*run.statements, stmt], [*before, *after])


def _fused(run: _Run, facts: KernelUses) -> list[Stmt] | None:
    """Return the statements of a run as one loop over groups of rows, if that gains anything."""
    if not _is_worthwhile(run.passes):
        return None
    private = _private_buffers(run, facts)
    passes = read_sources_in_place(run.passes, run.row, facts)
    passes, _ = drop_dead_stores(passes, run.row, private)
    passes = join_passes(passes, run.row)
    passes, dead = drop_dead_stores(passes, run.row, private)
    return row_loop(passes, run.row, run.rows, dead)


def _private_buffers(run: _Run, facts: KernelUses) -> set[Buffer]:
    """Return the buffers that nothing outside the run touches."""
    nodes = {node for stmt in run.statements for node in walk(stmt)}
    touched = {storage for one in run.passes for storage in (*one.read(), *one.written())}
    return {b for b in touched if not b.scope.is_global and facts.is_private(b, nodes)}


def _is_worthwhile(passes: Sequence[RowPass]) -> bool:
    """Whether two passes over elements share a tile."""
    wide = [one for one in passes if one.column is not None]
    seen: set[Buffer] = set()
    for one in wide:
        tiles = {b for b in one.read() | one.written() if not b.scope.is_global}
        if seen & tiles:
            return True
        seen |= tiles
    return False
