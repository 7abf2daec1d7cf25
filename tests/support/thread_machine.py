"""Runs programs of single threads without a device: device calls become tile IR, interpreted.

The interpreter executes all threads of a block, with its checks for races and for reads of
what nobody wrote. On top of those memory accessed outside of its box, which the interpreter
would forgive, and a vector that is not aligned to its size are errors here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tile_core.analysis.uniformity import is_thread_program
from tile_core.arith.constraints import ConstraintSet
from tile_core.dtypes import dtype_of
from tile_core.interp.launch import interpret
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import all_of, as_expr, binary, cast, const, select
from tile_core.ir.device_calls import COUNTED_LOAD, PREFIX, UNIFORM
from tile_core.ir.expr import (
    AddressOf,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    StringConst,
    Var,
)
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import (
    Alloc,
    Check,
    CheckKind,
    Evaluate,
    Kernel,
    Launch,
    Parallel,
    Seq,
    Stmt,
    Store,
)
from tile_core.layout import Fragment, Layout, row_major
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.machine import SimtMachine
from tile_core.ops.control import Barrier
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import as_parallel
from tile_core.ops.rule import select as select_rule
from tile_core.passes.inference.layout_queries import Algebra
from tile_core.passes.inference.loop_layouts import loop_of_region
from tile_core.simt.buffer_addresses import BufferAddresses
from tile_core.simt.context import Names, SimtContext
from tile_core.simt.lower_statements import lower_stmt
from tile_core.simt.rules.rule_table import SHARED_RULES, with_default
from tile_core.target import parse_target_spec

MACHINE = SimtMachine(
    name="test", family="test", shared_bytes=1 << 16,
    features=frozenset({"async_copy", "atomic_f16x2", "atomic_f32x2", "atomic_f32x4"}),
)  # fmt: skip

WAVES = SimtMachine(
    name="waves", family="test", shared_bytes=1 << 16, warp_size=64,
    features=frozenset({"counted_load"}),
)  # fmt: skip
"""A machine whose waves copy into shared memory, and count their copies."""

WAVE = WAVES.warp_size
ON_CHIP = (Scope.SHARED, Scope.LOCAL)

RULES = with_default(SHARED_RULES)


@dataclass(slots=True)
class GivenLayouts:
    """Layouts as a test states them: of fragments, shared tiles and loops.

    Lowering adds to `known` the tiles that it makes itself.
    """

    threads: int
    tiles: Mapping[Buffer, Layout | Fragment]
    vector: int = 4
    loops: dict[Node, LoopLayout] = field(default_factory=dict)
    known: dict[Buffer, Layout | Fragment] = field(default_factory=dict)
    machine: SimtMachine | None = None
    algebra: Algebra = field(default_factory=Algebra)

    def layout_of(self, buffer: Buffer) -> Layout | Fragment | None:
        found = self.tiles.get(buffer) or self.known.get(buffer)
        if found is None and buffer.scope is Scope.SHARED and buffer.static_shape is not None:
            return row_major(buffer.static_shape)
        return found

    def loop_of(self, node: Node) -> LoopLayout | None:
        if node in self.loops:
            return self.loops[node]
        loop = node if isinstance(node, Parallel) else as_parallel(node)  # type: ignore[arg-type]
        extents = tuple(e.value for e in loop.extents if isinstance(e, Const))
        if len(extents) < len(loop.extents):
            return None
        for found in walk(loop.body):
            if isinstance(found, (Load, Store)) and found.buffer in self.tiles:
                tile = self.tiles[found.buffer]
                plain = len(found.indices) == len(loop.vars) and all(
                    a is b for a, b in zip(found.indices, loop.vars, strict=True)
                )
                if isinstance(tile, Fragment) and plain:
                    return loop_over(tile, self.vector)
        return planned(tuple(map(int, extents)), self.threads, self.vector)

    def loop_of_region(
        self, region: Region, extents: tuple[int, ...], threads: int, vector: int = 1
    ) -> LoopLayout:
        stated: Any = self  # which has all of inference's layouts that is asked for
        return loop_of_region(stated, region, extents, threads, vector)

    def is_exchanged(self, op: TileOperator) -> bool:
        return False

    def rule_of(self, op: TileOperator) -> Any:
        return select_rule(op, parse_target_spec("cuda:sm_80"), RULES)


def thread_program(
    launch: Launch,
    layouts: GivenLayouts,
    *,
    guarded: bool = True,
    machine: SimtMachine = MACHINE,
    env: ConstraintSet | None = None,
) -> tuple[Launch, SimtContext]:
    """Return `launch` with the program of one thread as its body, and the context it had."""
    known = env or ConstraintSet()
    thread = launch.thread_vars[0]
    known = known.with_loop(thread, 0, launch.threads[0])
    for var, extent in zip(launch.block_vars, launch.grid, strict=True):
        known = known.with_loop(var, 0, extent)
    names = Names({n.name for n in walk(launch) if isinstance(n, (Var, Buffer))})
    ctx = SimtContext(
        parse_target_spec("cuda:sm_80"), machine, launch, thread, launch.threads[0], known,
        BufferAddresses(layouts), names, lower_stmt, guarded, is_thread_program(launch),
    )  # fmt: skip
    return replace(launch, body=lower_stmt(launch.body, ctx)), ctx


def run_threads(
    kernel: Kernel, layouts: GivenLayouts, args: Sequence[Any], **options: Any
) -> Launch:
    """Lower the one launch of `kernel`, run it on `args` (NumPy) and return the lowered launch."""
    (launch,) = (n for n in walk(kernel.body) if isinstance(n, Launch))
    lowered, ctx = thread_program(launch, layouts, **options)
    run_lowered(lowered, ctx, kernel, args)
    return lowered


def run_lowered(lowered: Launch, ctx: SimtContext, kernel: Kernel, args: Sequence[Any]) -> None:
    """Run the program of one thread on arrays; they are changed in place."""
    params: list[Buffer | Var] = []
    flats: list[Any] = []
    sizes: dict[Buffer, Buffer] = {}
    for param, arg in zip(kernel.params, args, strict=True):
        if isinstance(param, Var):
            params.append(param)
            flats.append(arg)
            continue
        flat = ctx.places.flat(param)
        array = arg.reshape(-1)
        assert array.base is not None or array is arg
        whole = replace(flat, shape=(array.size,))
        sizes[flat] = whole
        params.append(whole)
        flats.append(array)
    body = rewrite(lowered.body, lambda n: _plain(n, ctx.thread))
    shared = {n for n in walk(body) if isinstance(n, Buffer) and n.scope is Scope.SHARED}
    roots = dict.fromkeys(b.storage for b in sorted(shared, key=lambda b: b.name))
    sizes |= {n: n for n in walk(body) if isinstance(n, Buffer) and n.scope in ON_CHIP}
    body = rewrite(body, lambda n: _strict(n, sizes))
    body = rewrite(body, lambda n: sizes.get(n, n) if isinstance(n, Buffer) else n)
    threads = Evaluate(binary(BinaryOp.ADD, ctx.thread, 0))
    launch = replace(lowered, body=Seq((threads, *(Alloc(b) for b in roots), body)))
    symbols = _symbols(launch, params)
    program = Kernel(kernel.name, (*params, *symbols), launch)
    interpret(program, [*flats, *(_value(s, kernel, args) for s in symbols)])


def _symbols(launch: Launch, params: Sequence[Node]) -> list[Var]:
    bound: set[Node] = {*launch.block_vars, *launch.thread_vars, *params}
    bound |= {n.var for n in walk(launch.body) if hasattr(n, "var")}
    return [*dict.fromkeys(n for n in walk(launch) if isinstance(n, Var) and n not in bound)]


def _value(symbol: Var, kernel: Kernel, args: Sequence[Any]) -> int:
    for param, arg in zip(kernel.params, args, strict=True):
        if isinstance(param, Buffer):
            for extent, size in zip(param.shape, arg.shape, strict=True):
                if extent is symbol:
                    return int(size)
    raise AssertionError(f"nothing says what {symbol.name} is")


def _strict(node: Node, sizes: Mapping[Buffer, Buffer]) -> Node:
    """Make an access outside of a tensor, or of memory on the chip, a division by zero."""
    if isinstance(node, (Load, Store, AddressOf)) and node.buffer in sizes:
        (index,) = node.indices
        (size,) = sizes[node.buffer].shape
        inside = all_of([index >= 0, index < as_expr(size)])
        one = select(inside, 1, 0)
        return replace(node, indices=(index + Cast(index.dtype, as_expr(0) // one),))
    return node


def _plain(node: Node, thread: Var) -> Node:
    if isinstance(node, Evaluate) and isinstance(node.value, Call):
        function = node.value.function
        if function == PREFIX + COUNTED_LOAD:
            return _copied_by_lane(node.value.args, thread)
        if function.startswith(PREFIX):
            return _CALLS[function.removeprefix(PREFIX)](node.value.args)
    if isinstance(node, Call) and node.function == PREFIX + UNIFORM:
        return node.args[0]
    return node


def _count(expr: Expr) -> int:
    assert isinstance(expr, Const)
    return int(expr.value)


def _aligned(address: AddressOf, count: int) -> Stmt:
    rest = binary(BinaryOp.FLOORMOD, address.indices[0], count)
    return Check(rest.__eq__(0), f"{address.buffer.name} is misaligned", CheckKind.ASSERT)


def _moved(args: Sequence[Expr], *, loads: bool) -> Stmt:
    count = _count(args[0])
    to, source = args[1:]
    assert isinstance(to, AddressOf)
    assert isinstance(source, AddressOf)
    memory, registers = (source, to) if loads else (to, source)
    assert memory.buffer.scope in (Scope.GLOBAL, Scope.SHARED)
    assert registers.buffer.scope is Scope.LOCAL
    assert count in (2, 4, 8, 16)
    assert count * memory.buffer.dtype.bits <= 128
    assert memory.buffer.dtype == registers.buffer.dtype
    moves = [
        Store(to.buffer, (to.indices[0] + k,), Load(source.buffer, (source.indices[0] + k,)))
        for k in range(count)
    ]
    return Seq((_aligned(memory, count), _aligned(registers, count), *moves))


def _added(args: Sequence[Expr]) -> Stmt:
    count = _count(args[0])
    to, source = args[1:]
    assert isinstance(to, AddressOf)
    assert isinstance(source, AddressOf)
    sums = [
        Evaluate(
            Call(
                "atomic_add",
                (
                    AddressOf(to.buffer, (to.indices[0] + k,)),
                    Load(source.buffer, (source.indices[0] + k,)),
                    StringConst("relaxed"),
                ),
                to.buffer.dtype,
            )
        )
        for k in range(count)
    ]
    return Seq((_aligned(to, count), *sums))


def _half_stored(args: Sequence[Expr]) -> Stmt:
    """Keep the other half of the byte, which another thread may store."""
    to, shift, bits = args
    order = StringConst("relaxed")
    kept = cast(const(0xF0) >> shift, "uint8")
    halves = {"atomic_and": kept, "atomic_or": cast(cast(bits, "int32") << shift, "uint8")}
    return Seq(
        tuple(
            Evaluate(Call(name, (to, value, order), dtype_of("uint8")))
            for name, value in halves.items()
        )
    )


def _async_copied(args: Sequence[Expr]) -> Stmt:
    size = _count(args[0])
    to, source, condition = args[1:]
    assert isinstance(to, AddressOf)
    assert isinstance(source, AddressOf)
    assert size in (4, 8, 16)
    assert to.buffer.dtype == source.buffer.dtype
    count = size * 8 // to.buffer.dtype.bits
    moves = [
        Store(
            to.buffer,
            (to.indices[0] + k,),
            select(
                condition,
                Load(source.buffer, (source.indices[0] + k,)),
                const(0, to.buffer.dtype),
            ),
        )
        for k in range(count)
    ]
    return Seq((_aligned(to, count), *moves))


def _copied_by_lane(args: Sequence[Expr], thread: Var) -> Stmt:
    size, to, start, index, condition = args
    assert isinstance(to, AddressOf)
    assert isinstance(start, AddressOf)
    count = _count(size) * 8 // to.buffer.dtype.bits
    first = start.indices[0] + index
    lane = binary(BinaryOp.FLOORMOD, thread, WAVE)
    target = AddressOf(to.buffer, (to.indices[0] + lane * count,), "w")
    source = AddressOf(start.buffer, (first,), "r")
    return _async_copied((size, target, source, condition))


_CALLS: dict[str, Callable[[Sequence[Expr]], Stmt]] = {
    "load": lambda args: _moved(args, loads=True),
    "store": lambda args: _moved(args, loads=False),
    "atomic_add": _added,
    "store_nibble": _half_stored,
    "async_copy": _async_copied,
    "async_copy_commit": lambda args: Seq(()),
    "async_copy_wait": lambda args: Seq(()),
    "sync": lambda args: Barrier(),
}


def agree(kernel: Kernel, layouts: GivenLayouts, args: Sequence[Any], **options: Any) -> Launch:
    """Run `kernel` as it stands and as threads; both must leave equal arrays behind."""
    meant = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    done = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    interpret(kernel, meant)
    lowered = run_threads(kernel, layouts, done, **options)
    for param, a, b in zip(kernel.params, meant, done, strict=True):
        if isinstance(a, np.ndarray):
            same = a.view(np.uint8) == b.view(np.uint8)
            assert same.all(), f"{param.name} differs in {np.argwhere(~same)[:4].tolist()}"
    return lowered


def calls(launch: Launch) -> list[tuple[str, int]]:
    """Return name and first template argument of the device calls, in program order."""
    found = []
    for node in walk(launch.body):
        if isinstance(node, Call) and node.function.startswith(PREFIX):
            first = node.args[0] if node.args else None
            size = int(first.value) if isinstance(first, Const) else 0
            found.append((node.function.removeprefix(PREFIX), size))
    return found


def poisoned(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Return an array that no kernel has written."""
    made = np.empty(shape, dtype_of(dtype).numpy())
    made.view(np.uint8).reshape(-1)[...] = 0xA5
    return made


__all__ = [
    "MACHINE", "WAVES", "GivenLayouts", "agree", "calls", "poisoned", "run_lowered", "run_threads",
    "thread_program",
]  # fmt: skip
