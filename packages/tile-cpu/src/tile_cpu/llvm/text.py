"""From the names a kernel calls to the LLVM text that defines them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tile_core.errors import InternalError
from tile_cpu.llvm import atomics, memory
from tile_cpu.llvm.builder import Function
from tile_cpu.machine import Machine
from tile_cpu.math import convert, reduce, table

_DEFINERS: tuple[Callable[[str, Machine], Function | None], ...] = (
    table.define,
    convert.define,
    reduce.define,
    memory.define,
    atomics.define,
)
# Lanes are looped over where a function is called for each; unrolling would repeat the call.
_LOOP_METADATA = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}\n'


def function_text(names: Iterable[str], machine: Machine) -> str:
    """Return definitions of `names`, which refer to the attribute group ``#0``.

    Raises
    ------
    InternalError
        If a name means nothing.
    """
    functions = [_define(name, machine) for name in sorted(set(names))]
    if not functions:
        return ""
    declared = sorted({line for function in functions for line in function.declared})
    text = "\n".join([*declared, *(function.definition() for function in functions)])
    return text + (_LOOP_METADATA if "!llvm.loop" in text else "")


def _define(name: str, machine: Machine) -> Function:
    for definer in _DEFINERS:
        function = definer(name, machine)
        if function is not None:
            return function
    raise InternalError(f"no LLVM text defines {name!r}")
