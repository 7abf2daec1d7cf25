"""How many blocks of each launch of a program run at once."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.codegen.program import function_symbols
from tile_core.records import replace
from tile_core.simt.program import DeviceProgram
from tile_core.simt.resources import Resources


def resources_of_launches(
    program: DeviceProgram, needs: Mapping[str, Resources]
) -> Mapping[str, Resources]:
    """Return what each launch of a program needs, by its symbol, and how many blocks fit.

    Parameters
    ----------
    needs
        What the compiler told of each function, by its symbol.
    """
    found: dict[str, Resources] = {}
    names = function_symbols(program)
    for function, name in zip(program.functions, names, strict=True):
        resident = needs[name].occupancy(program.machine, function.threads, function.shared_bytes)
        found[name] = replace(needs[name], resident=resident)
    return found
