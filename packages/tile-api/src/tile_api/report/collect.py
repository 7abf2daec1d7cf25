"""Gather what a report tells: lower the kernel again, and look at what each pass leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tile_api.report.drawings import drawn
from tile_api.report.durations import durations_of
from tile_api.report.model import Count, Fact, Report
from tile_api.report.needs import needs_of
from tile_api.report.places import Places
from tile_api.report.programs import steps_of
from tile_api.report.texts import texts_of
from tile_api.report.timeline.model import Timeline
from tile_api.report.timeline.play import timeline_of
from tile_core import driver
from tile_core.crash import guarded
from tile_core.driver import BuildOptions, Lowered
from tile_core.errors import TileError
from tile_core.ir.buffer import Buffer
from tile_core.ir.printer import kernel_lines
from tile_core.ir.stmt import Kernel
from tile_core.passes.layout_report import LayoutReport
from tile_core.plugins.host import PluginHost
from tile_core.recording import recorded, timed
from tile_core.simt.program import DeviceProgram


@dataclass(frozen=True, slots=True)
class Wish:
    """A kernel to report on, and for which machine.

    Parameters
    ----------
    target
        In any spelling.
    """

    kernel: Kernel
    target: object
    options: BuildOptions
    host: PluginHost


def collect(wish: Wish, counts_of: Any = None) -> Report:
    """Return everything that is known of a kernel.

    It is lowered and compiled anew, so that every pass can be looked at. What needs a compiler
    or a machine that is not here is left out, and the report says why.

    Parameters
    ----------
    counts_of
        Called with `Places` for what accesses cost; None where nobody asked.

    Raises
    ------
    TileError
        If the kernel cannot be lowered.
    """
    missing: dict[str, str] = {}
    with recorded(keeps_programs=True) as recording:
        lowered = driver.lower(wish.kernel, wish.target, wish.host, wish.options)
        artifact = _compiled(lowered, missing)
    places = Places(wish.kernel.span)
    layouts = _layouts(lowered, missing)
    found = getattr(lowered.module, "layouts", None) if layouts is not None else None
    steps = steps_of(wish.kernel, recording.snapshots, found, places)
    texts = texts_of(lowered, _assembly(artifact, lowered, missing), places)
    needs = needs_of(lowered.module, _resources(artifact, lowered, missing))
    counts: tuple[Count, ...] | None = None
    if counts_of is not None:
        counts = counts_of(places)
    module = lowered.module
    warp = module.machine.warp_size if isinstance(module, DeviceProgram) else 1
    pictures = None if layouts is None else drawn(layouts, places, warp)
    pipeline = _pipeline(module, warp, places, missing)
    return Report(
        wish.kernel.name,
        str(lowered.target),
        _facts(wish.kernel, lowered),
        places.sources(),  # after everything that refers to lines
        steps,
        texts,
        pictures,
        pipeline,
        needs,
        counts,
        durations_of(recording.events),
        missing,
    )


def _compiled(lowered: Lowered, missing: dict[str, str]) -> Any:
    try:
        with guarded(lowered.kernel, lowered.target, "compile"), timed("compile", "phase"):
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


def _layouts(lowered: Lowered, missing: dict[str, str]) -> LayoutReport | None:
    try:
        return lowered.layouts()
    except TileError as error:
        missing["layouts"] = error.message
        return None


def _pipeline(module: Any, warp: int, places: Places, missing: dict[str, str]) -> Timeline | None:
    if not isinstance(module, DeviceProgram):
        missing["pipeline"] = (
            "blocks of this target are single threads, and nothing runs beside them"
        )
        return None
    found = timeline_of(module.kernel, warp, places)
    if found is None:
        missing["pipeline"] = "no copy of this kernel runs beside its threads round after round"
    return found


def _facts(kernel: Kernel, lowered: Lowered) -> tuple[Fact, ...]:
    head = kernel_lines(kernel)[0][0]
    params = ", ".join(p.name for p in kernel.params)
    tensors = sum(isinstance(p, Buffer) for p in kernel.params)
    configs = ", ".join(f"{key} = {value!r}" for key, value in lowered.options.pass_configs)
    return (
        Fact("Target", str(lowered.target)),
        Fact("Parameters", params, f"{tensors} tensors"),
        Fact("Signature", head.removesuffix(":")),
        Fact("Pass configurations", configs or "none"),
        Fact("Compiler flags", " ".join(lowered.options.compile_flags) or "none"),
    )
