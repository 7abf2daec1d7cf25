"""Kernels as shared libraries that need neither TVM nor Python: for bundles."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tile_core.errors import ToolchainError
from tile_core.ir.buffer import Buffer
from tile_core.ir.host_data import HostNames, conditions_of, host_parameters, host_symbols
from tile_core.ir.names import Names
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import Kernel
from tile_core.toolchains.subprocesses import run_program
from tile_cpu.backend_compiler import CpuArtifact
from tile_cpu.cpu_machine import CpuMachine, Isa
from tile_cpu.csource import DIALECT, find_compiler, text_of
from tile_cpu.lowering.kernel import Lowered
from tile_cpu.lowering.types import value_type
from tile_cpu.machine import names_of_linux
from tile_cpu.x86_machines import generic_level
from tile_launch.manifest import (
    Address,
    Argument,
    Launch,
    MachineRequirements,
    Manifest,
    Status,
    Value,
)
from tile_launch.manifest_json import to_json

ENTRY = "tile_main"
_GLIBC = "2.28"
"""Of foreign machines: as old as that of the wheels that run there."""
_SUPPORT = Path(__file__).parent / "runtime" / "support.c"
_SHOWN = "{ global: tile_main; tile_threads; tile_most_threads; tile_reason; local: *; };\n"
_KINDS = {
    "float32": "f", "float64": "d", "bool": "B", "handle": "p",
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "q",
}  # fmt: skip


def export(
    artifact: CpuArtifact, kernel: Kernel, provenance: Mapping[str, str]
) -> tuple[dict[str, Any], bytes]:
    """Return what a host must know to run a kernel, and its shared library.

    `kernel` is as people call it, with its outputs and the conditions on its arguments;
    `provenance` tells where the code comes from.

    Raises
    ------
    ToolchainError
        If there is no C compiler to link with, or it refuses.
    """
    lowered, machine, names = artifact.lowered, artifact.lowered.machine, HostNames()
    arguments = _arguments(lowered, names)
    entry = Launch(
        name=kernel.name, symbol=ENTRY, grid=(1, 1, 1), block=(1, 1, 1), arguments=arguments
    )
    manifest = Manifest(
        kernel=kernel.name,
        machine=MachineRequirements(
            family="cpu", name=machine.name, features=tuple(names_of_linux(machine.features))
        ),
        parameters=host_parameters(lowered.kernel.params, names, signature=kernel),
        symbols=host_symbols(lowered.kernel, names),
        steps=(entry,),
        outputs=tuple(kernel.outputs),
        conditions=tuple(condition for condition, _ in conditions_of(kernel, names)),
        failures=tuple(c.message or print_expr(c.cond, Names()) for c in lowered.checks),
        prints=lowered.prints,
        provenance=dict(provenance),
    )
    # A letter for the type in C of each argument, as the entry reads it.
    kinds = "".join(_KINDS[a.dtype] if isinstance(a, Value) else "p" for a in arguments)
    return to_json(manifest), _library(artifact, kinds)


def _arguments(lowered: Lowered, names: HostNames) -> tuple[Argument, ...]:
    """Return the arguments of the compiled function: parameters, symbols, the status."""
    found: list[Argument] = [
        Address(tensor=names.of(param))
        if isinstance(param, Buffer)
        else Value(variable=names.of(param), dtype=value_type(param.dtype))
        for param in (*lowered.kernel.params, *lowered.symbols)
    ]
    return (*found, *([Status()] if lowered.checks else ()))


def _library(artifact: CpuArtifact, kinds: str) -> bytes:
    """Link the kernel, what it asks of its surroundings, and the C functions it brought."""
    machine = artifact.lowered.machine
    compiler = _compiler(machine)
    with tempfile.TemporaryDirectory() as folder:
        code, shown, target = (Path(folder, n) for n in ("kernel.o", "shown", "kernel.so"))
        artifact.module.library.write_to_file(str(code), "o")
        shown.write_text(_SHOWN)
        Path(folder, "support.o").write_bytes(_support(tuple(compiler), kinds))
        objects = [str(code), f"{folder}/support.o"]
        if artifact.lowered.kernel.sources:
            source = Path(folder, "extern.c")
            lowered = artifact.lowered
            source.write_text(text_of(lowered.kernel.sources, lowered.extern_names))
            flags = (*DIALECT, *_processor_flags(machine))
            _run([*compiler, "-c", "-O3", "-fPIC", *flags, "-o", f"{folder}/extern.o", str(source)])
            objects.append(f"{folder}/extern.o")
        link = (f"-Wl,--version-script={shown}", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-s")
        _run([*compiler, "-shared", *link, "-o", str(target), *objects, "-lm", "-lpthread"])
        return target.read_bytes()


@lru_cache(maxsize=64)
def _support(compiler: tuple[str, ...], kinds: str) -> bytes:
    """Return the object code of what kernels with such arguments ask of their surroundings."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "support.o")
        flags = ("-c", "-O2", "-fPIC", "-fvisibility=hidden")
        arguments = (f"-DENTRY_COUNT={len(kinds)}", f'-DENTRY_KINDS="{kinds}"')
        _run([*compiler, *flags, *arguments, "-o", str(made), str(_SUPPORT)])
        return made.read_bytes()


def _processor_flags(machine: CpuMachine) -> list[str]:
    """Return what tells a C compiler what to use; C compilers know few names of machines."""
    if machine.isa is Isa.X86_64:
        return [f"-march={generic_level(machine.features, 'x86-64')}"]
    named = {"lse": "lse", "fullfp16": "fp16", "dotprod": "dotprod", "i8mm": "i8mm", "bf16": "bf16"}
    extensions = [c for llvm, c in named.items() if machine.has(llvm)]
    return ["+".join(["-march=armv8-a", *extensions])]


def _compiler(machine: CpuMachine) -> list[str]:
    """Return the command of a C compiler: the system's, else the one of the package ziglang.

    The latter alone compiles for processors of another kind.

    Raises
    ------
    ToolchainError
        If there is neither, or `machine` runs another operating system.
    """
    if machine.system:
        raise ToolchainError(
            f"code for {machine.name!r} is linked on its own system, {machine.system}",
            hint="save the kernel there; its assembly can be read here",
        )
    if machine.triple:
        return _cross_compiler(machine)
    try:
        return [find_compiler()]
    except ToolchainError as missing:
        if importlib.util.find_spec("ziglang") is not None:
            return [sys.executable, "-m", "ziglang", "cc"]
        raise ToolchainError(
            "code for a processor is linked by a C compiler, and there is none",
            hint="install gcc or clang, point CC at one, or pip install ziglang",
        ) from missing


def _cross_compiler(machine: CpuMachine) -> list[str]:
    if importlib.util.find_spec("ziglang") is None:
        raise ToolchainError(
            f"code for {machine.isa.value} is linked here by the package ziglang, which is missing",
            hint="pip install ziglang, or save the kernel on a machine of that kind",
        )
    architecture = machine.triple.partition("-")[0]
    return [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu.{_GLIBC}"]


def _run(command: Sequence[str]) -> None:
    done = run_program(command)
    if done.returncode:
        name = "zig" if "ziglang" in command else Path(command[0]).name
        raise ToolchainError(
            f"{name} could not make a shared library of the kernel:\n" + done.stderr.rstrip(),
            hint="install gcc or clang, or point CC at one that links for this machine",
        )
