"""Invariants of tile IR: what every pass may rely on and must keep."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from tile_core.errors import (
    ControlFlowError,
    FrontendTypeError,
    FrontendValueError,
    IndexMismatch,
    Note,
    ParallelBodyError,
    TileError,
    VerifyError,
)
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.build_expr import integer_bounds
from tile_core.ir.expr import AddressOf, Binary, Call, Const, Expr, Load, Select, Var
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.node import Node
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ir.visitor import expressions_in, statements_in, variables_of

_ELEMENTWISE = frozenset({"reducer_update", "breakpoint"})
"""Mnemonics of operators that may stand in a data-parallel loop."""


def verify(kernel: Kernel) -> None:
    """Raise a `TileError` if `kernel` is ill-formed.

    * a statement occurs once; a variable is bound once and used where it is visible;
    * a buffer is allocated once (or is a parameter, or a view of such) before it is used;
    * ranks of accesses agree with their buffers, and element types with each other;
    * `break` and `continue` stand in a sequential loop; launches do not nest;
    * a `Parallel` holds element-wise statements only;
    * contracts stand on symbols and parameters, and some number fulfils each;
    * every operator is well-formed by its own rules.
    """
    _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.visible: set[Node] = set(kernel.params) | set(symbols_of(kernel))
        self.bound: set[Node] = set(self.visible)
        self.trail: list[Node] = []  # what became visible, in order, to undo at a scope's end
        self.seen: set[Node] = set()
        self.loops = 0
        self.parallel: Parallel | None = None
        self.launch: Launch | None = None

    def run(self) -> None:
        for position in self.kernel.outputs:
            if not 0 <= position < len(self.kernel.params):
                raise VerifyError(f"output {position} is not a parameter of {self.kernel.name!r}")
        for thing in self.visible:
            if isinstance(thing, Var):
                self.contract(thing)
        with self.scope():
            self.stmt(self.kernel.body)

    @contextmanager
    def scope(self) -> Iterator[None]:
        mark = len(self.trail)
        yield
        self.visible.difference_update(self.trail[mark:])
        del self.trail[mark:]

    def bind(self, thing: Var | Buffer) -> None:
        if thing in self.bound:
            raise VerifyError(f"{thing.name!r} is bound twice")
        if isinstance(thing, Var) and thing.contract is not None:
            raise VerifyError(f"{thing.name!r} has a contract, and is no symbol or parameter")
        self.bound.add(thing)
        self.visible.add(thing)
        self.trail.append(thing)

    def contract(self, var: Var) -> None:
        contract = var.contract
        if contract is None:
            return
        low, high = integer_bounds(var.dtype) if var.dtype.is_int else (0, -1)
        smallest, largest = contract.smallest, contract.largest
        fits = low <= smallest <= high and (largest is None or largest <= high)
        if not (contract.is_satisfiable and fits):
            told = contract.told(var.name)
            raise VerifyError(f"no {var.dtype} has {told}", span=var.span)

    def stmt(self, stmt: Stmt) -> None:
        try:
            self.verify(stmt)
        except TileError as error:
            error.at(stmt.span)
            raise

    def verify(self, stmt: Stmt) -> None:
        if stmt in self.seen:
            raise VerifyError("one statement object occurs twice in a kernel")
        self.seen.add(stmt)
        self.check_parallel(stmt)
        match stmt:
            case Seq(body=body):
                with self.scope():
                    for item in body:
                        self.stmt(item)
            case Let(var=var, value=value):
                self.expr(value)
                if value.dtype != var.dtype:
                    raise VerifyError(f"{var.name!r} is {var.dtype}, not {value.dtype}")
                self.bind(var)
            case Alloc(buffer=buffer):
                self.extents(buffer)
                self.bind(buffer)
            case Break() | Continue():
                self.check_leaves_loop(stmt)
            case Launch():
                self.launch_stmt(stmt)
            case OnThreads():
                self.on_threads(stmt)
            case For() | Pipelined() | While() | Parallel() | If():
                self.control(stmt)
            case _:
                self.simple(stmt)

    def simple(self, stmt: Node) -> None:
        for child in stmt.children():
            match child:
                case Expr():
                    self.expr(child)
                case Buffer():
                    self.buffer(child)
                case Region():
                    self.region(child)
        if isinstance(stmt, Store):
            self.access(stmt.buffer, stmt.indices)
            lanes = stmt.indices[-1].dtype.lanes if stmt.indices else 1
            if stmt.value.dtype != stmt.buffer.dtype.with_lanes(lanes):
                raise VerifyError(
                    f"store of {stmt.value.dtype} into {stmt.buffer.name!r} of "
                    f"{stmt.buffer.dtype.with_lanes(lanes)}",
                )
        if isinstance(stmt, Leaf):
            stmt.verify()

    def control(self, stmt: For | Pipelined | While | Parallel | If) -> None:
        for expr in expressions_in(stmt):
            self.expr(expr)
        if isinstance(stmt, If):
            for branch in statements_in(stmt):
                with self.scope():
                    self.stmt(branch)
            return
        if isinstance(stmt, For) and static_value(stmt.step) == 0:
            raise FrontendValueError(
                "a loop's step must not be zero",
                hint="use a positive or negative step",
            )
        is_parallel, outer = isinstance(stmt, Parallel), self.parallel
        loops = self.loops
        self.loops = 0 if is_parallel else loops + 1
        self.parallel = stmt if isinstance(stmt, Parallel) else outer
        with self.scope():
            for var in variables_of(stmt):
                self.bind(var)
            self.stmt(stmt.body)
        self.parallel, self.loops = outer, loops

    def launch_stmt(self, launch: Launch) -> None:
        if self.launch is not None:
            raise ControlFlowError(
                "a kernel launch cannot stand inside another",
                notes=(Note("the outer launch is here", self.launch.span),),
                hint="put the two `with T.Kernel` blocks one after the other",
            )
        if len(launch.block_vars) != len(launch.grid):
            raise VerifyError("a launch has as many block indices as grid extents")
        for extent in launch.grid:
            self.expr(extent)
        self.launch = launch
        with self.scope():
            for var in (*launch.block_vars, *launch.thread_vars):
                self.bind(var)
            self.stmt(launch.body)
        self.launch = None

    def on_threads(self, stmt: OnThreads) -> None:
        threads = math.prod(self.launch.threads) if self.launch is not None else 0
        if stmt.first < 0 or stmt.count < 1 or stmt.first + stmt.count > threads:
            raise VerifyError(
                f"threads {stmt.first} to {stmt.first + stmt.count - 1} of {threads}",
            )
        with self.scope():
            self.stmt(stmt.body)

    def check_leaves_loop(self, stmt: Break | Continue) -> None:
        if self.loops == 0:
            word = "break" if isinstance(stmt, Break) else "continue"
            where = "a data-parallel loop" if self.parallel is not None else "no loop"
            raise ControlFlowError(
                f"`{word}` stands in {where}",
                hint="use it inside T.serial, range or while",
            )

    def check_parallel(self, stmt: Stmt) -> None:
        if self.parallel is None:
            return
        what = {
            Parallel: "another data-parallel loop",
            Pipelined: "a pipelined loop",
            Launch: "a kernel launch",
        }.get(type(stmt))
        if what is None and isinstance(stmt, Leaf) and stmt.mnemonic not in _ELEMENTWISE:
            what = f"the tile operator {stmt.mnemonic!r}"
        if what is not None:
            raise ParallelBodyError(
                f"[Tilelang Semantic Check] a data-parallel loop contains {what}",
                notes=(Note("the loop starts here", self.parallel.span),),
                hint="its body must be element-wise: loads, stores, scalar arithmetic",
            )

    def region(self, region: Region) -> None:
        self.buffer(region.buffer)
        for extent in (*region.starts, *region.extents):
            if isinstance(extent, Expr):
                self.expr(extent)
        if len(region.starts) != region.buffer.rank or len(region.extents) != region.buffer.rank:
            raise IndexMismatch(
                f"a region of {region.buffer.name!r} needs {region.buffer.rank} dimensions, "
                f"got {len(region.starts)}",
                hint="give one index or slice per dimension",
            )
        self.check_static_box(region)

    def check_static_box(self, region: Region) -> None:
        if region.buffer.scope.is_global or region.is_element:
            return
        bounds = zip(region.starts, region.extents, region.buffer.shape, strict=True)
        for axis, (start, extent, size) in enumerate(bounds):
            a, n, s = static_value(start), static_value(extent), static_value(size)
            if a is not None and n is not None and s is not None and not 0 <= a <= a + n <= s:
                raise IndexMismatch(
                    f"[{a}:{a + n}] leaves dimension {axis} of {region.buffer.name!r}, "
                    f"which has {s} elements",
                    notes=(Note("declared here", region.buffer.span),),
                    hint="only global tensors may be sliced beyond their bounds",
                )

    def buffer(self, buffer: Buffer) -> None:
        root = buffer.storage
        if isinstance(root.origin, Expr):
            self.expr(root.origin)
        elif root not in self.visible:
            raise VerifyError(f"buffer {root.name!r} is used before it is allocated")
        if buffer is not root and root.strides is not None:
            raise VerifyError(f"{buffer.name!r} is a view of gaps in {root.name!r}")
        self.extents(buffer)

    def extents(self, buffer: Buffer) -> None:
        for extent in (*buffer.shape, *(buffer.strides or ())):
            if isinstance(extent, Expr):
                self.expr(extent)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        if len(indices) != buffer.rank:
            raise IndexMismatch(
                f"{buffer.name!r} has {buffer.rank} dimensions, indexed with {len(indices)}",
                notes=(Note("declared here", buffer.span),),
                hint="give one index per dimension",
            )
        for axis, (index, size) in enumerate(zip(indices, buffer.shape, strict=True)):
            if not (index.dtype.is_int or index.dtype.is_bool):
                raise IndexMismatch(
                    f"an index must be an integer, got {index.dtype}",
                    hint="convert it with T.cast(x, 'int32')",
                )
            i, s = static_value(index), static_value(size)
            constant = isinstance(index, Const) and not buffer.scope.is_global
            if constant and i is not None and s is not None and not 0 <= i < s:
                raise IndexMismatch(
                    f"index {i} leaves dimension {axis} of {buffer.name!r}, which has {s} elements",
                    notes=(Note("declared here", buffer.span),),
                    hint="stay inside the buffer: only global tensors are guarded",
                )

    def expr(self, expr: Expr) -> None:
        for node in verify_expr(expr):
            if isinstance(node, Var) and node not in self.visible:
                raise VerifyError(f"variable {node.name!r} is used where it is not bound")
            if isinstance(node, (Load, AddressOf)):
                try:
                    self.buffer(node.buffer)
                    self.access(node.buffer, node.indices)
                except TileError as error:
                    error.at(node.span)
                    raise


def verify_expr(root: Expr) -> Iterator[Expr]:
    """Yield every expression under `root` after checking its types.

    Buffers are not entered: whoever consumes the loads checks them. An expression shared
    within `root` is checked once.
    """
    stack, seen = [root], set[Expr]()
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        try:
            _check(expr)
        except TileError as error:
            error.at(expr.span)
            raise
        yield expr
        if isinstance(expr, (Load, AddressOf)):
            stack.extend(expr.indices)
        else:
            stack.extend(child for child in expr.children() if isinstance(child, Expr))


def _check(expr: Expr) -> None:
    match expr:
        case Binary(op=op, a=a, b=b, dtype=dtype):
            if a.dtype != b.dtype:
                raise VerifyError(f"{op.value!r} of {a.dtype} and {b.dtype}")
            is_truth = op.is_comparison or op.is_logical
            if dtype.is_bool is not (is_truth or a.dtype.is_bool):
                raise VerifyError(f"{op.value!r} of {a.dtype} gives {dtype}")
        case Select(cond=cond, then=then, otherwise=otherwise):
            if not cond.dtype.is_bool or then.dtype != otherwise.dtype:
                raise VerifyError(
                    f"select on {cond.dtype} between {then.dtype} and {otherwise.dtype}"
                )
        case Call(function=function) if not function.startswith("extern:"):
            if function not in INTRINSICS:
                raise FrontendTypeError(
                    f"there is no intrinsic {function!r}",
                    hint="call a C function with T.call_extern, or use a function of T",
                )
