"""Software pipelines mean what the sequential loops mean, for any number of rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.strategies import Shown
from tile_core.compilation.options import BuildOptions
from tile_core.driver import build
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel, Launch, Let, Pipelined, Stmt
from tile_core.ir.verify import verify
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.passes.insert_barriers import insert_barriers
from tile_core.passes.plan_pipelines import PipelineWarning, plan_pipelines
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir

MACHINE = SimtMachine(
    name="sm_80", family="cuda", shared_bytes=163 << 10, features=frozenset({"async_copy"})
)
PLAIN = SimtMachine(name="sm_75", family="cuda", shared_bytes=64 << 10, features=frozenset())
COUNTING = SimtMachine(
    name="waves", family="hip", shared_bytes=64 << 10, features=frozenset({"counted_load"}),
    warp_size=1,
)  # fmt: skip
APART = BuildOptions(pass_configs=(("tl.disable_pipeline_folding", True),))
MOST = 7
SIZE = 8
TILES = 4
TILE = (SIZE, SIZE)

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(eq=False)
class Made:
    """A kernel under construction: tensors, tiles, and the loop's index."""

    draw: Draw
    inputs: list[Buffer]
    table: Buffer
    out: Buffer
    shared: list[Buffer]
    fragments: list[Buffer]
    fresh: list[Buffer]
    index: Any = None
    names: int = field(default=0)

    def rows(self) -> Any:
        """Return where a round reads: by its index, a name for it, or a table."""
        how = self.draw(st.integers(0, 3))
        if how == 0:
            return self.index * SIZE + self.draw(st.integers(-1, 2))
        return self.index * SIZE if how < 3 else ir.load(self.table, self.index)

    def step(self) -> Stmt:
        """Return a statement of the body."""
        usual = (self.bring_and_use, self.bring_and_use, self.bring_and_use, self.add)
        others = (self.bring, self.half, self.fill, self.scale, self.add, self.multiply)
        others += (self.leave, self.branch, self.reread, self.name)
        kinds = others if self.draw(st.integers(0, 3)) == 0 else usual
        chosen: Callable[[], Stmt] = self.draw(st.sampled_from(kinds))
        return chosen()

    def bring_and_use(self) -> Stmt:
        """Copy into a tile that nothing was copied into yet, if there is one, and use it."""
        tile = self.fresh.pop() if self.fresh else self.draw(st.sampled_from(self.shared))
        source = ir.region(self.draw(st.sampled_from(self.inputs)), (self.rows(), 0), TILE)
        target = self.draw(st.sampled_from(self.fragments))
        before = self.step_between() if self.draw(st.booleans()) else None
        use = ir.parallel(
            TILE,
            lambda i, j: ir.store(target, (i, j), ir.load(target, i, j) * 2 - ir.load(tile, i, j)),
        )
        copied = ir.copy(source, tile)
        if self.draw(st.integers(0, 4)) == 0:
            return ir.when(ir.load(self.table, self.index) > SIZE, [copied, before, use])
        return ir.seq(self.zeroed(tile), copied, before, use)

    def zeroed(self, tile: Buffer) -> Stmt | None:
        return ir.fill(tile, 0) if self.draw(st.integers(0, 4)) == 0 else None

    def step_between(self) -> Stmt:
        kinds = (self.add, self.multiply, self.scale, self.name)
        chosen: Callable[[], Stmt] = self.draw(st.sampled_from(kinds))
        return chosen()

    def bring(self) -> Stmt:
        tile = self.draw(st.sampled_from(self.shared))
        return ir.copy(
            ir.region(self.draw(st.sampled_from(self.inputs)), (self.rows(), 0), TILE), tile
        )

    def half(self) -> Stmt:
        tile, top = self.draw(st.sampled_from(self.shared)), self.draw(st.booleans())
        part, start = (SIZE // 2, SIZE), (0 if top else SIZE // 2, 0)
        source = ir.region(self.draw(st.sampled_from(self.inputs)), (self.rows(), 0), part)
        return ir.copy(source, ir.region(tile, start, part))

    def fill(self) -> Stmt:
        return ir.fill(self.draw(st.sampled_from(self.shared)), self.draw(st.integers(-2, 2)))

    def scale(self) -> Stmt:
        source, target = (self.draw(st.sampled_from(self.shared)) for _ in range(2))
        by = self.draw(st.integers(-1, 2))
        return ir.parallel(
            TILE, lambda i, j: ir.store(target, (i, j), ir.load(source, i, j) * by + self.index)
        )

    def add(self) -> Stmt:
        source = self.draw(st.sampled_from(self.shared))
        target = self.draw(st.sampled_from(self.fragments))
        return ir.parallel(
            TILE,
            lambda i, j: ir.store(
                target, (i, j), ir.load(target, i, j) * 3 + ir.load(source, i, j)
            ),
        )

    def multiply(self) -> Stmt:
        a, b = (self.draw(st.sampled_from(self.shared)) for _ in range(2))
        return ir.gemm(a, b, self.draw(st.sampled_from(self.fragments)))

    def leave(self) -> Stmt:
        source = self.draw(st.sampled_from((*self.shared, *self.fragments)))
        return ir.copy(source, ir.region(self.out, (self.index * SIZE, 0), TILE))

    def reread(self) -> Stmt:
        tile = self.draw(st.sampled_from(self.shared))
        back = self.draw(st.integers(-1, 1))
        return ir.copy(ir.region(self.out, ((self.index + back) * SIZE, 0), TILE), tile)

    def branch(self) -> Stmt:
        cond = self.draw(
            st.sampled_from((self.index % 2 > 0, ir.load(self.table, self.index) > SIZE))
        )
        otherwise = self.step() if self.draw(st.booleans()) else None
        return ir.when(cond, [self.bring(), self.step()], otherwise)

    def name(self) -> Stmt:
        """Name an element of a tile, and use it as a scalar."""
        self.names += 1
        tile, target = (self.draw(st.sampled_from(self.shared)) for _ in range(2))
        source = self.draw(st.sampled_from((tile, self.inputs[0])))
        var = Var(f"x{self.names}", as_expr(0).dtype)
        body = ir.parallel(TILE, lambda i, j: ir.store(target, (i, j), ir.load(target, i, j) + var))
        return ir.seq(Let(var, ir.load(source, 1, 2)), body)


@st.composite
def pipelines(draw: Draw) -> Shown:
    """Return a kernel with a pipelined loop of a random body."""
    inputs = [ir.tensor(f"A{k}", (MOST * SIZE, SIZE), "int32") for k in range(2)]
    made = Made(
        draw,
        inputs,
        ir.tensor("I", (MOST,), "int32"),
        ir.tensor("B", (MOST * SIZE, SIZE), "int32"),
        [ir.shared(f"s{k}", TILE, "int32") for k in range(TILES)],
        [ir.fragment(f"f{k}", TILE, "int32") for k in range(2)],
        [],
    )
    made.fresh = made.shared[1:]
    result = ir.tensor("R", (TILES + 2, SIZE, SIZE), "int32")
    rounds = ir.symbol("n")
    loop = _loop(draw, made, rounds)
    tiles = (*made.shared, *made.fragments)
    kept = [t for t in tiles if t in made.fragments or draw(st.integers(0, 7)) == 0]
    body = ir.seq(
        ir.alloc(*tiles),
        [ir.fill(t, k + 1) for k, t in enumerate(tiles)],
        loop,
        [ir.copy(t, ir.region(result, (tiles.index(t), 0, 0), (1, *TILE))) for t in kept],
    )
    params = (*inputs, made.table, made.out, result, rounds)
    return Shown(ir.kernel(params, (1,), lambda bx: body, threads=64))


def _loop(draw: Draw, made: Made, rounds: Var) -> Stmt:
    count = draw(st.integers(1, 6))
    outer = draw(st.integers(0, 2))

    def body(k: Any) -> list[Stmt]:
        made.index = k
        return [made.step() for _ in range(count)]

    static = draw(st.booleans())
    stop = draw(st.integers(0, MOST)) if static else rounds
    start = draw(st.sampled_from((0, 0, 1)))
    loop = ir.pipelined(stop, body, draw(st.integers(0, 4)), start)
    return loop if outer else ir.serial(2, lambda s: loop)


def _arguments() -> list[Any]:
    rng = np.random.default_rng(3)
    args: list[Any] = [rng.integers(-3, 4, (MOST * SIZE, SIZE)).astype(np.int32) for _ in range(2)]
    args.append((np.array([3, 0, 6, 1, 1, 5, 2]) * SIZE).astype(np.int32))
    args += [
        np.full((MOST * SIZE, SIZE), 9, np.int32),
        np.full((TILES + 2, SIZE, SIZE), -7, np.int32),
    ]
    return args


def _run(kernel: Kernel, rounds: int, *, late: bool) -> list[Any]:
    args = _arguments()
    options = InterpretOptions(late_copies=late, check_races=False)
    with np.errstate(over="ignore"):
        interpret(kernel, [*args, rounds], options=options)
    return args


def planned(kernel: Kernel, machine: SimtMachine, *, folded: bool = True) -> Kernel:
    """Return the kernel with pipelines and barriers, both verified."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PipelineWarning)
        kernel = plan_pipelines(kernel, machine, folded=folded)
    verify(kernel)
    assert isinstance(kernel.body, Launch)
    with_barriers = replace(kernel, body=insert_barriers(kernel.body))
    verify(with_barriers)
    return with_barriers


@settings(max_examples=20)
@given(pipelines(), st.integers(0, MOST))
def test_pipelines_keep_the_meaning(shown: Shown, rounds: int) -> None:
    kernel = shown.kernel
    expected = _run(kernel, rounds, late=False)
    for machine, folded in ((MACHINE, True), (MACHINE, False), (PLAIN, True), (COUNTING, True)):
        made = planned(kernel, machine, folded=folded)
        for ours, theirs in zip(expected, _run(made, rounds, late=True), strict=True):
            np.testing.assert_array_equal(theirs, ours, err_msg=print_kernel(made))


@settings(max_examples=6)
@given(pipelines(), st.integers(0, MOST))
def test_threads_of_pipelines_do_not_race(shown: Shown, rounds: int) -> None:
    """Barriers, waits and the plan of memory together: the emulator checks each access."""
    kernel = shown.kernel
    assume(not any(isinstance(n, Gemm) for n in walk(kernel)))  # tiles of 8 x 8 have no rule
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PipelineWarning)
        emulated = [
            build(kernel, f"{arch}@sim", installed_plugins(), options).executable
            for arch, options in (
                ("cuda:sm_80", None),
                ("cuda:sm_80", APART),
                ("cuda:sm_75", None),
                ("cuda:sm_90a", None),
                ("hip:gfx942", None),
            )
        ]
    expected = _run(kernel, rounds, late=False)
    for run in emulated:
        found = _arguments()
        run(*found, rounds)
        for ours, theirs in zip(expected, found, strict=True):
            np.testing.assert_array_equal(theirs, ours)


def test_most_plain_bodies_are_overlapped() -> None:
    """The property would hold of a pass that does nothing."""
    tile = ir.shared("s", TILE, "int32")
    total = ir.fragment("f", TILE, "int32")
    source = ir.tensor("A", (MOST * SIZE, SIZE), "int32")

    def body(k: Any) -> list[Stmt]:
        return [ir.copy(ir.region(source, (k * SIZE, 0), TILE), tile), ir.gemm(tile, tile, total)]

    rounds = ir.symbol("n")
    loop = ir.pipelined(rounds, body, 3)
    body_of_block = ir.seq(ir.alloc(tile, total), ir.fill(total, 0), loop)
    made = planned(ir.kernel((source, rounds), (1,), lambda bx: body_of_block), MACHINE)
    assert not [n for n in walk(made) if isinstance(n, Pipelined)]
