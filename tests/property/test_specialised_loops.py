"""Blocks whose copies have threads of their own compute what the sequential program means."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.remarked import remarked
from support.strategies import Shown
from tile_core.driver import build
from tile_core.errors import TileWarning
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import walk
from tile_core.ir.stmt import OnThreads, Stmt
from tile_core.passes.specialise_warps import specialise_warps
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir
from tile_cuda.machine import machine
from tile_sim import checking

ROWS, COLUMNS = 8, 8
TILE = (ROWS, COLUMNS)
MOST = 6
"""Rounds of a loop."""

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(eq=False)
class Made:
    """A kernel under construction: each shared tile is filled by one copy, as rings need it."""

    draw: Draw
    inputs: list[Buffer]
    table: Buffer
    out: Buffer
    fragments: list[Buffer]
    shared: list[Buffer] = field(default_factory=list)
    constant: list[Buffer] = field(default_factory=list)

    def tile(self) -> Buffer:
        made = ir.shared(f"s{len(self.shared)}", TILE, "int32")
        self.shared.append(made)
        return made

    def bring(self, index: Any, tile: Buffer) -> Stmt:
        """Copy rows that a round's index, or a table, names; some hang over the edge."""
        source = self.draw(st.sampled_from(self.inputs))
        by_table = self.draw(st.integers(0, 3)) == 0
        first = ir.load(self.table, index) if by_table else index * ROWS
        shift = self.draw(st.sampled_from((0, 0, 0, -3, 2)))
        return ir.copy(ir.region(source, (first + shift, 0), TILE), tile)

    def use(self, index: Any, tile: Buffer) -> Stmt:
        """Read the tile: into a register tile, or on the way to a tensor."""
        target = self.draw(st.sampled_from(self.fragments))
        if self.draw(st.integers(0, 4)) == 0:
            return ir.copy(tile, ir.region(self.out, (index * ROWS, 0), TILE))
        return ir.parallel(
            TILE,
            lambda i, j: ir.store(
                target, (i, j), ir.load(target, i, j) * 2 - ir.load(tile, i, j) + index
            ),
        )

    def between(self) -> Stmt:
        target, other = (self.draw(st.sampled_from(self.fragments)) for _ in range(2))
        return ir.parallel(
            TILE,
            lambda i, j: ir.store(target, (i, j), ir.load(target, i, j) + ir.load(other, i, j)),
        )

    def body(self, index: Any) -> list[Stmt]:
        """Return a round: tiles come, and are used at once or later, perhaps under a guard."""
        parts: list[Any] = []
        later: list[Any] = []
        for _ in range(self.draw(st.integers(1, 3))):
            tile = self.tile()
            brought = [self.bring(index, tile)]
            used = [self.use(index, tile) for _ in range(self.draw(st.integers(1, 2)))]
            if self.draw(st.booleans()):
                brought.append(self.between())
            if self.draw(st.integers(0, 3)) == 0:
                known = ir.load(self.table, index)
                cond = self.draw(st.sampled_from((index % 2 > 0, known > ROWS)))
                parts.append(ir.when(cond, [*brought, *used]))
            elif self.draw(st.booleans()):
                parts += brought
                later += used
            else:
                parts += [*brought, *used]
        parts += later
        if self.constant and self.draw(st.booleans()):
            parts.append(self.use(index, self.constant[0]))
        return parts

    def loop(self, rounds: Any) -> Stmt:
        stop = self.draw(st.integers(0, MOST)) if self.draw(st.booleans()) else rounds
        start = self.draw(st.sampled_from((0, 0, 1)))
        loop = ir.pipelined(stop, self.body, self.draw(st.integers(2, 4)), start)
        return ir.serial(2, lambda s: loop) if self.draw(st.integers(0, 2)) == 0 else loop


@st.composite
def kernels(draw: Draw) -> Shown:
    """Return a kernel of one or two pipelined loops."""
    inputs = [ir.tensor(f"A{k}", (MOST * ROWS, COLUMNS), "int32") for k in range(2)]
    made = Made(
        draw,
        inputs,
        ir.tensor("I", (MOST,), "int32"),
        ir.tensor("B", (MOST * ROWS, COLUMNS), "int32"),
        [ir.fragment(f"f{k}", TILE, "int32") for k in range(2)],
    )
    result = ir.tensor("R", (2, ROWS, COLUMNS), "int32")
    rounds = ir.symbol("n")
    before: list[Stmt] = []
    if draw(st.booleans()):
        made.constant.append(made.tile())
        before.append(ir.copy(ir.region(inputs[0], (0, 0), TILE), made.constant[0]))
        before.append(made.use(0, made.constant[0]))
    loops = [made.loop(rounds) for _ in range(draw(st.integers(1, 2)))]
    body = ir.seq(
        ir.alloc(*made.shared, *made.fragments),
        [ir.fill(t, k + 1) for k, t in enumerate(made.fragments)],
        before,
        loops,
        [
            ir.copy(t, ir.region(result, (k, 0, 0), (1, *TILE)))
            for k, t in enumerate(made.fragments)
        ],
    )
    threads = draw(st.sampled_from((32, 128)))
    params = (*inputs, made.table, made.out, result, rounds)
    return Shown(ir.kernel(params, (1,), lambda bx: body, threads=threads))


def _arguments() -> list[Any]:
    rng = np.random.default_rng(3)
    extent = (MOST * ROWS, COLUMNS)
    args: list[Any] = [rng.integers(-3, 4, extent).astype(np.int32) for _ in range(2)]
    args.append((np.array([3, 0, 5, 1, 1, 2]) * ROWS).astype(np.int32))
    return [*args, np.full(extent, 9, np.int32), np.full((2, ROWS, COLUMNS), -7, np.int32)]


@settings(max_examples=8)
@given(kernels(), st.integers(0, MOST), st.sampled_from(("forward", "random:5")))
def test_the_meaning_stays(shown: Shown, rounds: int, schedule: str) -> None:
    """The emulator checks every access; whatever order its threads run in, results are equal."""
    kernel = shown.kernel
    made = remarked(specialise_warps, kernel, machine("sm_90a"))
    assert any(isinstance(n, OnThreads) for n in walk(made.kernel)), made.notes
    expected = _arguments()
    with np.errstate(over="ignore"):
        options = InterpretOptions(check_races=False)
        interpret(kernel, [*expected, rounds], options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileWarning)
        run = build(kernel, "cuda:sm_90a@sim", installed_plugins()).executable
    found = _arguments()
    with checking("all", schedule=schedule):
        run(*found, rounds)
    for ours, theirs in zip(expected, found, strict=True):
        np.testing.assert_array_equal(theirs, ours)
