"""A device program as one C++ translation unit."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.codegen.function import print_function
from tile_core.codegen.names import symbol
from tile_core.codegen.source import Lines, PrintedSource
from tile_core.errors import Span
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Kernel
from tile_core.simt.program import DeviceProgram


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
