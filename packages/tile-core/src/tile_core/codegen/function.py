"""One device function: signature, names of indices and tiles, body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tile_core.arith.bounds import MOST_INT32, Bounds, bind_indices
from tile_core.codegen.expressions import ExpressionPrinter
from tile_core.codegen.names import CppNames
from tile_core.codegen.source import Lines
from tile_core.codegen.statements import StatementPrinter
from tile_core.codegen.types import cpp_type
from tile_core.codegen.usage import Usage, usage_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Launch
from tile_core.simt.program import DeviceFunction, TensorMap

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

    Parameters
    ----------
    naturals
        Scalars that are never negative: extents of tensors.
    device_names
        What the machine's header calls functions that have another name there.
    """
    used = usage_of(function.launch.body)
    names = CppNames(frozenset((symbol, *used.externs)))
    bounds = Bounds()
    for var in naturals:
        bounds.bind(var, 0, MOST_INT32)
    given = (p for p in function.params if isinstance(p, Var) and p not in bounds.ranges)
    bounds.given.update(given)
    bind_indices(function.launch, bounds)
    constant = frozenset(
        b for b in used.buffers if b.scope is Scope.GLOBAL and b.storage not in used.written
    )
    params = list(_parameters(function, names, constant))
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
    function: DeviceFunction, names: CppNames, constant: frozenset[Buffer]
) -> Iterator[str]:
    for param, argument in zip(function.params, function.arguments, strict=True):
        kind, name = cpp_type(param.dtype), names.of(param)
        if isinstance(argument, TensorMap):
            yield f"TILE_TENSOR_MAP({name})"
        elif isinstance(param, Var):
            yield f"{kind} {name}"
        else:
            yield f"tile::gptr<{'const ' if param in constant else ''}{kind}> {name}"


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
