"""A device program as one C++ translation unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from tile_core.arith.bounds import MOST_INT32, Bounds, bind_indices
from tile_core.codegen.expressions import ExpressionPrinter
from tile_core.codegen.names import CppNames, symbol
from tile_core.codegen.source import Lines, PrintedSource
from tile_core.codegen.statements import StatementPrinter
from tile_core.codegen.types import cpp_type
from tile_core.errors import Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effect import Effect
from tile_core.ir.expr import AddressOf, Call, Expr, StringConst, Var
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import Kernel, Launch, Store
from tile_core.records import dataclass
from tile_core.simt.program import DeviceFunction, DeviceProgram, TensorMap


def print_program(program: DeviceProgram) -> PrintedSource:
    """Return `program` as C++ that toolchains of all GPUs and the emulator compile alike.

    The user's own C texts come first, then each launch as one function. Every line knows the
    place in the user's program it comes from; C texts are files named ``<source 1>``, ….
    """
    lines = Lines()
    lines.add('#include "tile.h"')
    for number, text in enumerate(dict.fromkeys(program.kernel.sources), start=1):
        _add_source(lines, number, text)
    naturals = tuple(_extents(program.kernel))
    symbols = function_symbols(program)
    for function, name in zip(program.functions, symbols, strict=True):
        lines.add("")
        lines.add(f"// {name} for {program.machine.name}")
        print_function(function, name, naturals, lines, program.machine.device_names)
    return PrintedSource("\n".join(lines.texts) + "\n", dict(lines.spans), symbols)


def function_symbols(program: DeviceProgram) -> tuple[str, ...]:
    """Return what each function of `program` is called in its text, in order."""
    taken: set[str] = set()
    return tuple(symbol(f.name, taken) for f in program.functions)


def _add_source(lines: Lines, number: int, text: str) -> None:
    lines.add("")
    for count, line in enumerate(text.strip("\n").split("\n"), start=1):
        lines.add(line, Span(f"<source {number}>", count, 0, len(line)))


def _extents(kernel: Kernel) -> Iterator[Var]:
    """Yield the symbols in shapes of tensors: they are never negative."""
    for param in kernel.params:
        if isinstance(param, Buffer):
            for extent in param.shape:
                if isinstance(extent, Expr):
                    yield from nodes_of(extent, Var)


WIDTH = 100
"""Signatures longer than this are broken; statements keep to one line, which has a place."""


def print_function(
    function: DeviceFunction,
    symbol: str,
    naturals: Iterable[Var],
    lines: Lines,
    device_names: Mapping[str, str],
) -> None:
    """Append the definition of `function`, under the name `symbol`.

    `naturals` are scalars that are never negative: extents of tensors.
    """
    used = usage_of(function.launch.body)
    names = CppNames(frozenset((symbol, *used.externs)))
    bounds = Bounds()
    for var in naturals:
        bounds.bind(var, 0, MOST_INT32)
    given = (p for p in function.params if isinstance(p, Var) and p not in bounds.ranges)
    bounds.given.update(given)
    bind_indices(function.launch, bounds)
    words = nodes_of(function.launch.body, StringConst)
    changes = any(word.value.startswith("system_") for word in words)
    constant = frozenset(
        b
        for b in used.buffers
        if b.scope is Scope.GLOBAL and b.storage not in used.written and not changes
    )
    params = list(_parameters(function, names, constant, "live_gptr" if changes else "gptr"))
    for line in _head(f"{_qualifiers(function)} void {symbol}(", params):
        lines.add(line, function.launch.span)
    printer = StatementPrinter(
        ExpressionPrinter(names, bounds, device_names), lines, _views(used), constant=constant
    )
    _declare_indices(printer, function.launch, used)
    for param in function.params:
        if isinstance(param, Buffer):
            printer.views_of(param)
    _declare_shared(printer, function, used)
    printer.statement(function.launch.body)
    lines.add("}")
    lines.add(f"TILE_EXPORT({symbol})")


def _head(start: str, params: list[str]) -> list[str]:
    """Return the lines of a signature."""
    whole = f"{start}{', '.join(params)}) {{"
    if len(whole) <= WIDTH:
        return [whole]
    lines = [start]
    for param in params:
        joined = f"{lines[-1]} {param},"
        if lines[-1] == start or len(joined) + 1 > WIDTH:
            lines.append(f"    {param},")
        else:
            lines[-1] = joined
    return [*lines[:-1], f"{lines[-1][:-1]}) {{"]


def _qualifiers(function: DeviceFunction) -> str:
    """Return what is said of the launch in front of a kernel."""
    kernel, cluster = (
        f"TILE_KERNEL({function.threads}, {function.resident})",
        function.launch.cluster,
    )
    if not cluster:
        return kernel
    extents = (*cluster, 1, 1)[:3]
    return f"{kernel} TILE_CLUSTER({', '.join(map(str, extents))})"


def _parameters(
    function: DeviceFunction, names: CppNames, constant: frozenset[Buffer], pointer: str
) -> Iterator[str]:
    for param, argument in zip(function.params, function.arguments, strict=True):
        kind, name = cpp_type(param.dtype), names.of(param)
        if isinstance(argument, TensorMap):
            yield f"TILE_TENSOR_MAP({name})"
        elif isinstance(param, Var):
            yield f"{kind} {name}"
        else:
            yield f"tile::{pointer}<{'const ' if param in constant else ''}{kind}> {name}"


def _views(used: Usage) -> dict[Buffer, list[Buffer]]:
    """Return the views of each buffer."""
    found: dict[Buffer, list[Buffer]] = {}
    for buffer in used.buffers:
        if isinstance(buffer.origin, Buffer):
            found.setdefault(buffer.origin, []).append(buffer)
    return found


def _declare_indices(printer: StatementPrinter, launch: Launch, used: Usage) -> None:
    names = printer.expressions.names
    for variables, builtin in ((launch.block_vars, "blockIdx"), (launch.thread_vars, "threadIdx")):
        for var, axis in zip(variables, "xyz", strict=False):
            if var in used.variables:
                kind = cpp_type(var.dtype)
                printer.plain(f"const {kind} {names.of(var)} = {builtin}.{axis};")


def _declare_shared(printer: StatementPrinter, function: DeviceFunction, used: Usage) -> None:
    for buffer, offset in function.shared.items():
        if buffer in used.buffers and not isinstance(buffer.origin, Buffer):
            kind, name = cpp_type(buffer.dtype), printer.expressions.names.of(buffer)
            (count,) = buffer.static_shape or (0,)
            printer.plain(f"tile::sptr<{kind}> {name} = tile::smem<{kind}>({offset}, {count});")
            printer.views_of(buffer)


@dataclass(slots=True)
class Usage:
    """Buffers, variables and functions of one body.

    `buffers` are in the order of appearance, each behind what it is a view of; `written` are
    storages that may be changed, `externs` the user's own C functions that are called.
    """

    buffers: dict[Buffer, None] = field(default_factory=dict)
    written: set[Buffer] = field(default_factory=set)
    variables: set[Var] = field(default_factory=set)
    externs: set[str] = field(default_factory=set)

    def add_buffer(self, buffer: Buffer) -> None:
        """Take in a buffer after what it is a view of."""
        if buffer not in self.buffers:
            if isinstance(buffer.origin, Buffer):
                self.add_buffer(buffer.origin)
            self.buffers[buffer] = None


def usage_of(root: Node) -> Usage:
    """Return what `root` mentions."""
    found = Usage(variables=set(nodes_of(root, Var)))
    for buffer in nodes_of(root, Buffer):
        found.add_buffer(buffer)
    found.written |= {n.buffer.storage for n in nodes_of(root, Store)}
    found.written |= {n.buffer.storage for n in nodes_of(root, AddressOf) if "w" in n.access}
    for call in nodes_of(root, Call):
        _add_call(found, call)
    return found


def _add_call(found: Usage, call: Call) -> None:
    prefix, _, name = call.function.rpartition(":")
    if prefix == "extern":
        found.externs.add(name)
    row = INTRINSICS.get(call.function)
    if row is not None and row.effect & Effect.ATOMIC:
        found.written |= {a.buffer.storage for a in call.args if isinstance(a, AddressOf)}
