"""The folder or archive that goes with a report: the reduced kernel, and everything around it."""

from __future__ import annotations

import json
import pickle
import platform
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tile_api.reducing.failure import RunOutcome
from tile_api.reducing.program import program_of, reads_back
from tile_api.reducing.trial import Plan
from tile_core.environment import environment
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel

_PACKAGES = (
    "tile-api", "tile-core", "tile-cpu", "tile-cuda", "tile-hip", "tile-sim", "tile-launch",
    "tile-nn", "apache-tvm", "numpy", "torch", "ml-dtypes",
)  # fmt: skip
_VARIABLES = ("TILE_", "TILELANG_", "TL_", "CUDA_", "HIP_", "ROCM_", "OMP_")
_SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD")


@dataclass(frozen=True, slots=True)
class ReductionReport:
    """What is told about a failing kernel: before and after, and what becomes of the latter.

    `command` is what the user typed; `tried` kernels were tried on the way; `language` is the
    reduced one as a program in the language, if it has that form.
    """

    original: Kernel
    reduced: Kernel
    outcome: RunOutcome
    plan: Plan
    command: Sequence[str]
    source: Path | None = None
    tried: int = 0
    language: str | None = None


def write_report(report: ReductionReport, place: Path) -> list[str]:
    """Write a folder, or an archive if `place` ends in ``.zip``; return the names of its files.

    ``README.md``, ``kernel.tile`` and ``original.tile`` (tile IR as text; ``kernel.pickle`` too
    where text does not hold all, as with layouts), ``reproduce.py``, ``failure.txt``,
    ``environment.json``, ``doctor.txt`` and the user's file.
    """
    files = _files(report)
    if place.suffix == ".zip":
        place.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(f"{place.stem}/{name}", content)
        return [*files]
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (place / name).write_bytes(content)
    return [*files]


def _files(report: ReductionReport) -> dict[str, bytes]:
    kernel = report.reduced, report.plan, report.outcome
    texts = {
        "README.md": _readme(report),
        "kernel.tile": print_kernel(report.reduced),
        "original.tile": print_kernel(report.original),
        "reproduce.py": program_of(*kernel, report.language),
        "failure.txt": f"{report.outcome.told()}\n\n{report.outcome.text}\n",
        "environment.json": json.dumps(surroundings(report.plan), indent=1) + "\n",
        "doctor.txt": doctor(report.plan.target),
    }
    files = {name: text.encode() for name, text in texts.items()}
    if not reads_back(report.reduced):
        files["kernel.pickle"] = pickle.dumps(report.reduced)
    if report.source is not None:
        files[f"original-{report.source.name}"] = report.source.read_bytes()
    return files


_README = """\
# {name} for {target}

{told}

Reduced from {before} statements to {after}, trying {tried} kernels. Reproduce it with

    python reproduce.py

It was found with

    {command}

- `kernel.tile`: the reduced kernel, in tile IR; `original.tile`: the whole one
- `reproduce.py`: a program that tries the reduced kernel, and ends with 1 as long as it fails
- `failure.txt`: what the compiler, or the kernel, said
- `environment.json`: versions, target, options, variables; `doctor.txt`: what `tile doctor` says
"""


def _readme(report: ReductionReport) -> str:
    from tile_api.reducing.kernel_edits import statements

    return _README.format(
        name=report.reduced.name,
        target=report.plan.target,
        told=report.outcome.told(),
        before=len(statements(report.original)),
        after=len(statements(report.reduced)),
        tried=report.tried,
        command=shlex.join(report.command),
    )


def surroundings(plan: Plan) -> Mapping[str, Any]:
    """Return versions, the machine, how kernels were tried, and variables that may matter.

    Variables whose names speak of secrets are left out.
    """
    variables = {
        name: value
        for name, value in sorted(environment().items())
        if name.startswith(_VARIABLES) and not any(word in name for word in _SECRET)
    }
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "target": plan.target,
        "pass_configs": dict(plan.pass_configs),
        "compile_flags": list(plan.compile_flags),
        "values": dict(plan.values),
        "seed": plan.seed,
        "variables": variables,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def doctor(target: str, timeout: float = 120.0) -> str:
    """Return what ``tile doctor`` says of a target; in a process of its own, as it may crash."""
    command = [sys.executable, "-m", "tile_api.cli", "doctor", target]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=environment()
        )
    except subprocess.TimeoutExpired:
        return f"tile doctor {target} did not end within {timeout:g} s\n"
    return f"{done.stdout}{done.stderr}"
