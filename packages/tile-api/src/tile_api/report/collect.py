"""Gather what a report tells: lower the kernel again, and look at what each pass leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tile_api.report.assembly import lines_of_assembly
from tile_api.report.counting import costs_of, counter_for, counts_of
from tile_api.report.drawings import drawn
from tile_api.report.kernel_facts import facts_of_kernel
from tile_api.report.model import (
    Count,
    Fact,
    KernelReport,
    Layouts,
    Line,
    Origin,
    PassStep,
    Text,
    Timeline,
)
from tile_api.report.programs import lines_of, steps_of
from tile_api.report.resource_needs import needs_of
from tile_api.report.source_lines import SourceLines
from tile_api.report.timeline.simulation import timeline_of
from tile_api.tracing import timings_of
from tile_core import driver
from tile_core.codegen import print_program
from tile_core.compilation.options import BuildOptions
from tile_core.compilation.results import Lowered
from tile_core.crash import guarded
from tile_core.errors import TileError
from tile_core.ir.stmt import Kernel
from tile_core.pass_manager.instrumentation import Recording, recorded, timed
from tile_core.plugins.host import PluginHost
from tile_core.remarks import collected_remarks
from tile_core.simt.program import DeviceProgram


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A kernel to report on, and for which machine.

    Parameters
    ----------
    target
        In any spelling.
    counters
        Whether to run the kernel in the emulator and tell what the accesses of each line cost.
    sizes
        Values of symbolic dimensions and scalar parameters for that, by name.
    origin
        All kernels of the function of arrays that this one was made of, if it was.
    """

    kernel: Kernel
    target: object
    options: BuildOptions
    host: PluginHost
    counters: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    origin: tuple[Origin, ...] = ()


def collect(request: ReportRequest) -> KernelReport:
    """Return everything that is known of a kernel.

    It is lowered and compiled anew, so that every pass can be looked at. What needs a compiler
    or a machine that is not here is left out, and the report says why.
    """
    missing: dict[str, str] = {}
    with recorded(keeps_programs=True) as recording, collected_remarks() as remarks:
        lowered = driver.lower(request.kernel, request.target, request.host, request.options)
        artifact = _compiled(lowered, missing)
    places = SourceLines(request.kernel.span)
    report = KernelReport(
        request.kernel.name,
        str(lowered.target),
        _facts(request.kernel, lowered, artifact),
        (),
        *_looks(lowered, recording, places, missing),
        tuple((said, places.at(said.span)) for said in remarks),
        _pipeline(lowered.module, places, missing),
        needs_of(lowered.module, _resources(artifact, lowered, missing)),
        _counts(request, lowered, places, missing),
        texts_of(lowered, _assembly(artifact, lowered, missing), places),
        timings_of(recording.events),
        missing,
        request.origin,
    )
    return replace(report, sources=places.sources())  # all that refers to lines has done so


def _looks(
    lowered: Lowered, recording: Recording, places: SourceLines, missing: dict[str, str]
) -> tuple[tuple[PassStep, ...], Layouts | None]:
    """Return the program after each pass, and the layouts, drawn."""
    found = getattr(lowered.module, "layouts", None)
    try:
        report = lowered.layouts()
    except TileError as error:
        missing["layouts"] = error.message
        found = report = None
    steps = steps_of(lowered.kernel, recording.snapshots, found, places)
    return steps, None if report is None else drawn(report, places, _warp(lowered.module))


def _warp(module: Any) -> int:
    return module.machine.warp_size if isinstance(module, DeviceProgram) else 1


def _counts(
    request: ReportRequest, lowered: Lowered, places: SourceLines, missing: dict[str, str]
) -> tuple[Count, ...] | None:
    if not request.counters:
        told = "nobody asked for them; say counters=True, or --counters"
        is_counted = counter_for(lowered.target, request.host) is not None
        missing["counters"] = told if is_counted else "no emulator runs kernels for this target"
        return None
    costs = costs_of(request.kernel, lowered.target, request.options, request.host, request.sizes)
    return counts_of(costs, places)


def _compiled(lowered: Lowered, missing: dict[str, str]) -> Any:
    try:
        flags = lowered.options.compile_flags
        with guarded(lowered.kernel, lowered.target, "compile", flags), timed("compile", "phase"):
            return lowered.backend.compile(lowered.module, lowered.target, lowered.options)
    except TileError as error:
        missing["asm"] = missing["resources"] = str(error).partition("\n")[0]
        return None


def _assembly(artifact: Any, lowered: Lowered, missing: dict[str, str]) -> str:
    show = getattr(artifact, "asm", None)
    if show is None:
        missing.setdefault("asm", f"kernels for {lowered.target} have no assembly to show")
        return ""
    return str(show())


def _resources(artifact: Any, lowered: Lowered, missing: dict[str, str]) -> dict[str, Any]:
    if not hasattr(type(artifact), "resources"):
        told = f"no compiler tells what kernels for {lowered.target} need of the machine"
        missing.setdefault("resources", told)
        return {}
    found: Mapping[str, Any] = artifact.resources
    return dict(found)


def _pipeline(module: Any, places: SourceLines, missing: dict[str, str]) -> Timeline | None:
    if not isinstance(module, DeviceProgram):
        missing["pipeline"] = (
            "blocks of this target are single threads, and nothing is asynchronous"
        )
        return None
    found = timeline_of(module.kernel, _warp(module), places)
    if found is None:
        missing["pipeline"] = "no copy of this kernel is asynchronous in a loop"
    return found


def _facts(kernel: Kernel, lowered: Lowered, artifact: Any) -> tuple[Fact, ...]:
    facts = [*facts_of_kernel(kernel, str(lowered.target))]
    compiler = getattr(getattr(artifact, "compiled", None), "compiler", "")
    if compiler:
        facts.append(Fact("Compiler", compiler))
    for key, value in lowered.options.pass_configs:
        facts.append(Fact("Pass configuration", f"{key} = {value!r}"))
    if lowered.options.compile_flags:
        facts.append(Fact("Compiler flags", " ".join(lowered.options.compile_flags)))
    return tuple(facts)


MOST_LINES = 4000
"""Texts of more lines are cut."""


_LOWERED = ("lowered", "Thread-level code", "What one thread does, before it is printed.")
_SOURCE = ("source", "Source", "What the machine's compiler reads.")
_ASSEMBLY = ("asm", "Assembly", "What the compiler made of it.")


def texts_of(lowered: Lowered, assembly: str, places: SourceLines) -> tuple[Text, ...]:
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


def _cut(stage: tuple[str, str, str], lines: Sequence[Line]) -> Text:
    return Text(*stage, tuple(lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES))
