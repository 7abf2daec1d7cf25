"""Compilations that are watched: ``TILE_LOGS`` tells of them, ``TILE_KEEP`` keeps their texts."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tile_api.disk_cache.entry_codec import Build, CachedBuild
from tile_api.settings import Settings
from tile_core.compilation.options import BuildOptions
from tile_core.compilation.results import Built, Lowered
from tile_core.errors import ToolchainError, UnsupportedOnTarget
from tile_core.ir.printer import print_kernel, print_stmt
from tile_core.ir.stmt import Kernel
from tile_core.logs import log, wants
from tile_core.pass_manager.instrumentation import Recording, Snapshot, recorded
from tile_core.plugins.host import PluginHost
from tile_core.target import Target

FOLDER = "tile-kept"
"""Where texts are kept unless ``TILE_KEEP_DIR`` says otherwise: in the current folder."""

_SOURCES = {"cpu": "ll", "cuda": "cu", "hip": "hip"}
_ASSEMBLIES = {"cuda": "ptx"}
_STAGES = ("tile", "planned", "pipelined", "lowered")


def build(
    kernel: Kernel, target: Target, host: PluginHost, options: BuildOptions, settings: Settings
) -> Built:
    """Compile a kernel like `tile_core.driver.build`, telling and keeping what is asked for.

    What was done before something fails is told and kept, too.
    """
    from tile_core import driver  # which a kernel from the cache does not need

    if not settings.keep and not any(map(wants, ("passes", "phases", "layout", "codegen"))):
        return driver.build(kernel, target, host, options)
    with _recorded(kernel, target, settings):
        lowered = driver.lower(kernel, target, host, options)
        _tell(lowered)
        _keep_texts(lowered, settings)
        built = driver.complete(lowered)
        times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in built.phases_ms.items())
        log("phases", lambda: f"{kernel.name} for {target}: {times}")
        _keep_assembly(built, settings)
    return built


def watch(built: CachedBuild, settings: Settings) -> None:
    """Tell of a kernel that was found on disk, and keep its texts, made again where need be."""
    _tell(built)
    _keep_texts(built, settings)
    _keep_assembly(built, settings)


def tell_times(built: Build) -> None:
    """Write to stderr how long each phase of a kernel took."""
    times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in built.phases_ms.items())
    how = "compiled" if isinstance(built, Built) else "loaded"
    os.write(2, f"{how} {built.kernel.name} for {built.target}: {times}\n".encode())


def folder_of(kernel: Kernel, target: Target, settings: Settings) -> Path:
    """Return where the texts of a kernel are: one folder for each program and target."""
    digest = hashlib.sha256(f"{target}\n{print_kernel(kernel)}".encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "-", f"{kernel.name}.{target}")
    return (settings.keep_dir or Path(FOLDER)) / f"{name}.{digest}"


@contextmanager
def _recorded(kernel: Kernel, target: Target, settings: Settings) -> Iterator[None]:
    """Tell the passes of a block, and keep a trace of it, even if it fails."""
    with recorded(keeps_programs=wants("passes")) as recording:
        try:
            yield
        finally:
            _tell_passes(kernel, recording)
            if "trace" in settings.keep:
                from tile_api.tracing import text_of_trace

                path = folder_of(kernel, target, settings) / "trace.json"
                _write(path, lambda: text_of_trace(recording.events))


def _text(snapshot: Snapshot) -> str:
    program = snapshot.program
    return print_kernel(program) if isinstance(program, Kernel) else print_stmt(program)


def _tell_passes(kernel: Kernel, recording: Recording) -> None:
    phases = {event.name: event.milliseconds for event in recording.events}
    programs = {0: print_kernel(kernel)} if recording.snapshots else {}
    for snapshot in recording.snapshots:
        text, name = _text(snapshot), snapshot.name
        changed = text != programs.get(snapshot.launch)
        programs[snapshot.launch] = text
        where = f" of launch {snapshot.launch}" if snapshot.launch else ""
        took = snapshot.milliseconds or phases.get(name, 0.0)
        how = "changed the program" if changed else "left the program as it was"
        line = f"{kernel.name}: {name}{where}: {took:.2f} ms, {how}"
        log("passes", partial(str, line), partial(str, f"{line}\n{text}") if changed else None)


def _tell(lowered: Lowered | CachedBuild) -> None:
    name = f"{lowered.kernel.name} for {lowered.target}"
    if wants("layout"):
        try:
            report = lowered.layouts()
        except UnsupportedOnTarget as error:
            because = error.message
            log("layout", lambda: f"{name}: {because}")
        else:
            log(
                "layout",
                lambda: f"{name}:\n{report}" if len(report) else f"{name}: no tile is stored",
                lambda: f"{name}:\n{report.draw()}",
            )
    if wants("codegen"):
        source = lowered.text("source")
        count = len(source.splitlines())
        log("codegen", lambda: f"{name}: {count} lines of source", lambda: f"{name}:\n{source}")


def _keep_texts(lowered: Lowered | CachedBuild, settings: Settings) -> None:
    folder = folder_of(lowered.kernel, lowered.target, settings)
    if "ir" in settings.keep:
        for stage in _STAGES:
            _write(folder / f"{stage}.txt", partial(lowered.text, stage))
    if "src" in settings.keep:
        suffix = _SOURCES.get(lowered.target.kind, "txt")
        _write(folder / f"source.{suffix}", partial(lowered.text, "source"))


def _keep_assembly(built: Build, settings: Settings) -> None:
    if "asm" in settings.keep:
        folder = folder_of(built.kernel, built.target, settings)
        suffix = _ASSEMBLIES.get(built.target.kind, "s")
        with suppress(UnsupportedOnTarget):  # the interpreter has none
            _write(folder / f"asm.{suffix}", built.asm)


def _write(path: Path, text: Callable[[], str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")
    except OSError as error:
        raise ToolchainError(
            f"texts of kernels cannot be kept in {path.parent}: {error.strerror or error}",
            hint="point TILE_KEEP_DIR at a folder that you may write",
        ) from None
