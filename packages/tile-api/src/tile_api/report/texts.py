"""What became of a program in the end: thread-level code, source, assembly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_api.report.assembly import lines_of_assembly
from tile_api.report.model import Line, Text
from tile_api.report.programs import lines_of
from tile_api.report.source_lines import Places
from tile_core.codegen import print_program
from tile_core.driver import Lowered
from tile_core.ir.stmt import Kernel
from tile_core.simt.program import DeviceProgram

MOST_LINES = 4000
"""Texts of more lines are cut."""


@dataclass(frozen=True, slots=True)
class _Stage:
    name: str
    title: str
    explanation: str


_LOWERED = _Stage("lowered", "Thread-level code", "What one thread does, before it is printed.")
_SOURCE = _Stage("source", "Source", "What the machine's compiler reads.")
_ASSEMBLY = _Stage("asm", "Assembly", "What the compiler made of it.")


def texts_of(lowered: Lowered, assembly: str, places: Places) -> tuple[Text, ...]:
    """Return the last stages; an empty `assembly` is left out."""
    module = lowered.module
    if isinstance(module, DeviceProgram):
        functions = [Kernel(f.name, f.params, f.launch) for f in module.functions]
        threads = [line for function in functions for line in lines_of(function, places)]
        printed = print_program(module)
        source = [
            Line(text, places.at(printed.span_at(number)) if text.startswith(" ") else None)
            for number, text in enumerate(printed.text.rstrip("\n").split("\n"), 1)
        ]
    else:
        threads, source = _plain(lowered.text("lowered")), _plain(lowered.text("source"))
    found = [_cut(_LOWERED, threads), _cut(_SOURCE, source)]
    if assembly:
        found.append(_cut(_ASSEMBLY, lines_of_assembly(assembly, places, source)))
    return tuple(found)


def _plain(text: str) -> list[Line]:
    return [Line(line) for line in text.rstrip("\n").split("\n")]


def _cut(stage: _Stage, lines: Sequence[Line]) -> Text:
    shown = tuple(lines[:MOST_LINES])
    left_out = len(lines) - len(shown)
    return Text(stage.name, stage.title, stage.explanation, shown, left_out)
