"""Programs of threads written by hand: what lowering hands to the printer."""

from __future__ import annotations

from tile_core.arith.bounds import Bounds
from tile_core.codegen import PrintedSource, print_program
from tile_core.codegen.expressions import ExpressionPrinter
from tile_core.codegen.names import CppNames
from tile_core.dtypes import dtype_of
from tile_core.errors import Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, Expr, Extent, Load, Var
from tile_core.ir.stmt import Evaluate, For, Kernel, Launch, LoopKind, Seq, Stmt, Store
from tile_core.machine import SimtMachine
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_cuda.machine import DEVICE_NAMES

MACHINE = SimtMachine(
    name="sm_80",
    family="cuda",
    shared_bytes=166912,
    features=frozenset({"async_copy"}),
    device_names=DEVICE_NAMES,
)
TID, BX = Var("tid", dtype_of("int32")), Var("bx", dtype_of("int32"))


def scalar(name: str, dtype: str = "int32") -> Var:
    return Var(name, dtype_of(dtype))


def flat(name: str, count: int, dtype: str, scope: Scope = Scope.GLOBAL, **more) -> Buffer:
    return Buffer(name, (count,), dtype_of(dtype), scope, **more)


def registers(name: str, count: int, dtype: str = "float32") -> Buffer:
    return flat(name, count, dtype, Scope.LOCAL)


def variable(name: str, dtype: str = "int32") -> Buffer:
    return flat(name, 1, dtype, Scope.VAR)


def shared(name: str, count: int, dtype: str) -> Buffer:
    return flat(name, count, dtype, Scope.SHARED)


def load(buffer: Buffer, index: Extent = 0) -> Load:
    return Load(buffer, (as_expr(index),))


def store(buffer: Buffer, index: Extent, value, **more) -> Store:
    return Store(buffer, (as_expr(index),), as_expr(value, buffer.dtype), **more)


def at(buffer: Buffer, index: Extent = 0, access: str = "r") -> AddressOf:
    return AddressOf(buffer, (as_expr(index),), access)


def do(name: str, *args, line: int | None = None) -> Evaluate:
    return Evaluate(device(name, *args), span=None if line is None else place(line))


def loop(var: Var, stop: Extent, *body: Stmt, kind: LoopKind = LoopKind.SERIAL, **more) -> For:
    return For(var, as_expr(0), as_expr(stop), as_expr(1), Seq(body), kind, **more)


def place(line: int) -> Span:
    return Span("/home/user/kernel.py", line, 4, 9)


def function(
    params, *body: Stmt, name: str = "kernel", threads=(128, 1, 1), grid: tuple[Extent, ...] = (4,),
    tiles: dict[Buffer, int] | None = None, span: Span | None = None,
) -> DeviceFunction:  # fmt: skip
    block = (BX, scalar("by"), scalar("bz"))[: len(grid)]
    indices = (TID, scalar("ty"), scalar("tz"))
    launch = Launch(
        block, tuple(map(as_expr, grid)), indices, threads, Seq(tuple(body)), span=span
    )  # fmt: skip
    return DeviceFunction(name, tuple(params), tuple(params), launch, tiles or {}, 0)


def program(*functions: DeviceFunction, params=(), sources: tuple[str, ...] = ()) -> DeviceProgram:
    body = Seq(tuple(f.launch for f in functions))
    kernel = Kernel(functions[0].name, tuple(params), body, sources=sources)
    return DeviceProgram(kernel, MACHINE, functions, None)


def printed(*body: Stmt, params=(), **more) -> str:
    """The statements of a function that has `body`, as C++."""
    source: PrintedSource = print_program(program(function(params, *body, **more)))
    lines = source.text.split("\n")
    head = next(k for k, line in enumerate(lines) if line.startswith("TILE_KERNEL"))
    start = next(k for k in range(head, len(lines)) if lines[k].endswith(") {"))
    end = lines.index("}", start)
    return "\n".join(line.removeprefix("  ") for line in lines[start + 1 : end])


def cpp(expr: Expr, ranges: dict[Var, tuple[int, int]] | None = None) -> str:
    """One expression as C++."""
    bounds = Bounds()
    for var, (low, high) in (ranges or {}).items():
        bounds.bind(var, low, high)
    return ExpressionPrinter(CppNames(), bounds, DEVICE_NAMES).text(expr)
