"""Recorded launches as files: machine code, arguments, and what comes out."""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hardware.cases import Argument, Case, dense_strides
from hardware.features import features_of
from hardware.recorded import Launched, Tolerance, tolerance_of
from tile_core.codegen import function_symbols, print_program
from tile_core.compilation.results import Lowered
from tile_core.ir.buffer import Buffer
from tile_core.simt.manifest import manifest_of
from tile_cuda.machine_code import compile_source
from tile_launch.bundle import Variant, write_bundle
from tile_launch.manifest import Manifest
from tile_launch.manifest_json import text_of_manifest

MACHINE = "sm_90a"
"""What all code is translated for unless told, whichever architecture it was written for."""

PARTS = "cases.*.part"
"""What is known so far, a file for each process."""


class Packer:
    """Writes cases to a folder; several processes may write to one."""

    def __init__(self, folder: Path, machine: str = MACHINE) -> None:
        self.folder, self.machine = folder, machine
        self.part = folder / PARTS.replace("*", str(os.getpid()))
        for name in ("kernels", "data", "programs"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def add(self, name: str, launched: Launched, noted: list[Tolerance]) -> None:
        """Write a case, unless the folder has one that does the same.

        Tensors of addresses are of this process, and mean nothing elsewhere.
        """
        if any(str(p.dtype) == "handle" for p in launched.lowered.kernel.params):
            return
        arguments, arrays = _arguments(launched, noted)
        kernel, features = self._kernel(launched.lowered)
        data = _digest(kernel, *(arrays[key].tobytes() for key in sorted(arrays)))
        archive = self.folder / "data" / f"{data}.npz"
        if archive.exists():
            return
        aside = archive.with_suffix(f".{os.getpid()}.npz")
        np.savez_compressed(aside, **arrays)
        aside.replace(archive)  # another process may be writing the same
        lowered_for = launched.lowered.target.arch
        case = Case(name, kernel, data, lowered_for, arguments, features)
        with self.part.open("a") as lines:
            lines.write(case.line() + "\n")

    def add_problem(self, name: str, problem: str, lowered: Lowered) -> None:
        """Write a case whose arguments are made where it runs."""
        kernel, features = self._kernel(lowered)
        arguments = tuple(
            Argument(p.name, str(p.dtype), shape=tuple(map(int, map(str, p.shape))))
            for p in lowered.kernel.params
        )
        data = _digest(name, kernel)
        arch = lowered.target.arch
        case = Case(name, kernel, data, arch, arguments, (*features, "all of the GPU"), problem)
        with self.part.open("a") as lines:
            lines.write(case.line() + "\n")

    def _kernel(self, lowered: Lowered) -> tuple[str, tuple[str, ...]]:
        """Write the bundle of a kernel; return its name, and what the kernel uses."""
        source = print_program(lowered.module)
        manifest = manifest_for(lowered, self.machine)
        named = replace(manifest, provenance={})  # of lines alone: where a test stands may change
        digest = _digest(source.text, text_of_manifest(named))
        path = self.folder / "kernels" / f"{digest}.tile"
        if not path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tests of speed look at what the compiler says
                flags = lowered.module.compile_flags
                compiled = compile_source(source, self.machine, flags, warn=False)
            write_bundle(path, [Variant(manifest, compiled.code)])
            program = (lowered.kernel, lowered.options.pass_configs, lowered.options.compile_flags)
            (self.folder / "programs" / digest).write_bytes(pickle.dumps(program))
        swizzles = [m.swizzle for launch in manifest.launches for m in launch.maps]
        arch = lowered.target.arch
        return digest, features_of(source.text, swizzles, "" if arch == self.machine else arch)


def manifest_for(lowered: Lowered, machine: str) -> Manifest:
    """Return what a host must know to run a lowered kernel on a GPU called `machine`."""
    program = lowered.module
    manifest = manifest_of(program, function_symbols(program), lowered.kernel, {})
    return replace(manifest, machine=replace(manifest.machine, name=machine))


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode() if isinstance(part, str) else part)
    return found.hexdigest()[:16]


def _arguments(
    launched: Launched, noted: list[Tolerance]
) -> tuple[tuple[Argument, ...], dict[str, np.ndarray]]:
    """Return what is passed, and its bytes by name."""
    found, arrays = [], {}
    for position, param in enumerate(launched.lowered.kernel.params):
        before, after = launched.before[position], launched.after[position]
        if not isinstance(param, Buffer):
            found.append(Argument(param.name, str(param.dtype), value=_plain(before)))
            continue
        told = Argument(param.name, str(param.dtype))
        if before is not None:
            strides = tuple(step // before.itemsize for step in launched.strides[position] or ())
            shape, is_dense = before.shape, strides == dense_strides(before.shape)
            told = replace(told, shape=shape, strides=None if is_dense else strides)
            told = replace(told, data=f"before{position}")
            arrays[told.data] = _bytes(before)
            if _bytes(after).tobytes() != arrays[told.data].tobytes():
                limits = tolerance_of(noted, launched, position)
                told = replace(told, after=f"after{position}")
                told = replace(told, relative=limits.relative, absolute=limits.absolute)
                arrays[told.after] = _bytes(after)
        found.append(told)
    return tuple(found), arrays


def _bytes(array: np.ndarray) -> np.ndarray:
    """Return the bytes of the elements, in the order of their indices."""
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
