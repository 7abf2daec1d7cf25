"""Trace a plain Python function into tile IR, without the rewriting of its syntax."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tile_api.frontend.builder import Builder, tracing
from tile_api.frontend.values import BufferValue
from tile_api.language.launch import Kernel as launch
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Var
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Alloc, Kernel, KernelOptions
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS

_SCOPES = {"shared": Scope.SHARED, "fragment": Scope.FRAGMENT, "local": Scope.LOCAL}


def trace(function: Callable[..., Any], *, threads: Any = 128, **operands: str) -> Kernel:
    """Call `function` inside a launch and return the kernel it makes, verified.

    Parameters
    ----------
    operands
        What each argument is: ``A="float32[8, 8]"`` a tensor, ``A="shared float32[8]"`` a tile,
        ``n="int32"`` a scalar parameter.
    """
    builder = Builder("test")
    params: list[Buffer | Var] = []
    values: dict[str, Any] = {}
    tiles: list[Buffer] = []
    for name, text in operands.items():
        if "[" not in text:
            params.append(Var(name, dtype_of(text)))
            values[name] = params[-1]
            continue
        head, _, extents = text.rstrip("]").partition("[")
        scope, _, dtype = head.rpartition(" ")
        shape = tuple(int(e) for e in extents.split(","))
        buffer = Buffer(name, shape, dtype_of(dtype), _SCOPES.get(scope, Scope.GLOBAL))
        (tiles if scope else params).append(buffer)
        values[name] = BufferValue(buffer)
    with tracing(builder):
        frame = launch(2, threads=threads)
        frame.enter(builder, ("bx",))
        for tile in tiles:
            builder.emit(Alloc(tile))
        function(**values)
        frame.exit(builder)
        body = builder.close()
    options = KernelOptions(tuple(builder.pass_configs.items()), tuple(builder.compile_flags))
    kernel = Kernel("test", tuple(params), body, sources=tuple(builder.sources), options=options)
    verify(kernel)
    return kernel


def emitted(function: Callable[..., Any], *, threads: Any = 128, **operands: str) -> list[str]:
    """Return the printed statements that `function` emits; see `trace`.

    The text must read back as the same kernel.
    """
    kernel = trace(function, threads=threads, **operands)
    text = print_kernel(kernel)
    assert print_kernel(parse_kernel(text, OPERATORS, str)) == text
    lines = itertools.dropwhile(lambda line: not line.startswith("  launch"), text.splitlines())
    return [line[4:] for line in lines][1 + sum("[" in t and " " in t.partition("[")[0]
                                                for t in operands.values()):]  # fmt: skip


def computed(function: Callable[..., Any], dtype: str = "float32", **operands: str) -> str:
    """Return the printed expression that `function` computes, stored to a `dtype` tensor."""

    def store(**values: Any) -> None:
        out = values.pop("out")
        out[0] = function(**values)

    lines = emitted(store, **operands, out=f"{dtype}[4]")
    return lines[-1].removeprefix("out[0] = ")
