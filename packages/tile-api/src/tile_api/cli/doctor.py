"""``tile doctor``: what is installed, and which targets compile, run, and are emulated."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from tile_api import __version__
from tile_core import verify_companion
from tile_core.companions import PACKAGES as COMPANIONS
from tile_core.environment import cache_home, environment, processors
from tile_core.errors import CompanionError, TileError
from tile_core.installed import distribution
from tile_core.needed_packages import OLDEST, is_too_old, several
from tile_core.target import GPUS, Target, parse_target_spec

TARGETS = (
    "cpu", "interpret", "cuda", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120a",
    "hip", "hip:gfx90a", "hip:gfx942",
)  # fmt: skip
"""What is tried unless the user names targets."""

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "tile-api": "",
        "tile-core": "",
        "tile-launch": "",
        "tile-cpu": "compiles for this CPU: pip install tile-cpu",
        "tile-cuda": "compiles for NVIDIA GPUs: pip install 'tile-api[cuda]'",
        "tile-hip": "compiles for AMD GPUs: pip install 'tile-api[hip]'",
        "tile-sim": "runs code for GPUs on this CPU: pip install 'tile-api[sim]'",
        "tile-nn": "has kernels that models are made of: pip install tile-nn",
        "apache-tvm": "compiles for this CPU: pip install apache-tvm",
        "numpy": "",
        "torch": "has tensors on GPUs: pip install 'tile-api[torch]'",
        "jax": "calls kernels from JAX: pip install 'tile-api[jax]'",
        "nvidia-cuda-nvrtc": "compiles for NVIDIA GPUs: pip install 'tile-api[cuda]'",
        "ziglang": "has a clang for AMD GPUs, and a C++ compiler: pip install ziglang",
    }
)
"""What may be installed, and what it would be good for."""

_ARCHITECTURE = re.compile(r"(target '\w+):[\w.+-]+")
"""What differs between messages that say the same of several machines of a kind."""

_ROW = "{:<17}{:<13}{:<22}{:<24}{}\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Compile a small kernel for each target, run it where that is possible, and "
        "emulate it where it is not; tell what to install for the rest. Ends with 1 if targets "
        "are named and one of them does not compile or run, and if one of the packages is "
        "somebody else's or of another version."
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="instead of a choice of all")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 1 if a named target does not work or a package is not one of ours."""
    sys.stdout.write(f"python {platform.python_version()}, {platform.system()} on ")
    sys.stdout.write(f"{platform.machine()}, {processors()} processors\n")
    strangers = [error for name in PACKAGES if (error := _stranger(name))]
    sys.stdout.writelines(_package(name, use) for name, use in PACKAGES.items())
    sys.stdout.writelines(f"\n{error}\n\n" for error in strangers)
    sys.stdout.writelines(_others())
    sys.stdout.writelines(_settings())
    sys.stdout.writelines(_folders())
    sys.stdout.write("\n" + _ROW.format("target", "compiles", "with", "runs", "emulated"))
    findings = []
    for target in args.targets or TARGETS:
        found = examined(target, emulate=not args.targets)
        findings.append(found)
        row = _ROW.format(found.target, found.compiles, found.tool, found.runs, found.emulated)
        sys.stdout.write(row)
        sys.stdout.flush()
    sys.stdout.writelines(_told(findings))
    is_well = not args.targets or all(found.is_well for found in findings)
    return 0 if is_well and not strangers else 1


def _package(name: str, use: str) -> str:
    try:
        return f"{name:<19}{version(name)}\n"
    except PackageNotFoundError:
        return f"{name:<19}{'-':<16}{use}".rstrip() + "\n"


def _stranger(name: str) -> CompanionError | None:
    """Return what is wrong with a package of the name of one of ours, if it is installed."""
    package = name.replace("-", "_")
    if package not in COMPANIONS or distribution(name) is None:
        return None
    try:
        verify_companion(package, __version__)
    except CompanionError as error:
        return error
    except Exception:  # it is ours, and broken: the targets that it serves say so
        return None
    return None


def _others() -> Iterator[str]:
    """Yield which packages of others are too old, or installed twice: the first hides the rest."""
    for name in OLDEST:
        found = distribution(name)
        if found is not None and is_too_old(name, found.version):
            oldest, source = OLDEST[name]
            yield f"{name} is older than {oldest}: python -m pip install --upgrade '{source}'\n"
        if told := several(name):
            yield f"{told}: uninstall all but one\n"


def _folders() -> Iterator[str]:
    """Yield that nothing can be kept in the folder of caches, if so."""
    place = folder = cache_home()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not os.access(place, os.W_OK) or not place.is_dir():
        yield f"nothing can be kept in {folder}: TILE_CACHE_DIR names another folder\n"
    elif shutil.disk_usage(place).free < _ROOM:
        yield f"the disk of {folder} is full: TILE_CACHE_DIR names another folder\n"


_ROOM = 32 << 20
"""Bytes that the emulator and some kernels take."""


def _settings() -> Iterator[str]:
    """Yield the variables that are set, and what of them means nothing."""
    from tile_api.cli.env import looked_up
    from tile_api.settings.variables import ACCEPTED, variables
    from tile_core.installed import entry_points
    from tile_core.plugins import hookspecs
    from tile_core.plugins.host import DISABLE_VARIABLE, default_host

    env = environment()
    for row in variables():
        found = looked_up(row, env)
        if found.source:
            wrong = "" if found.error is None else f"  means nothing: {found.error.hint}"
            yield f"{found.source}={found.value}{wrong}\n"
    for name in (name for name in ACCEPTED if env.get(name)):
        yield f"{name}={env[name]}  changes nothing: {ACCEPTED[name]}\n"
    installed = {entry.name for entry in entry_points(hookspecs.NAME)}
    for name in sorted(default_host().disabled - installed):
        known = ", ".join(sorted(installed))
        yield f"{DISABLE_VARIABLE} names {name!r}, which is not installed: {known} are\n"


def _told(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield what is in the way of which targets, and the way out: each reason once."""
    reasons: dict[tuple[str, str | None], tuple[TileError, list[str]]] = {}
    for found in findings:
        for error in found.errors:
            reason = _ARCHITECTURE.sub(r"\1", error.message), error.hint
            targets = reasons.setdefault(reason, (error, []))[1]
            if found.target not in targets:
                targets.append(found.target)
    for error, targets in reasons.values():
        yield f"\n{', '.join(targets)}: {error.message}\n"
        if error.hint:
            yield f"  {error.hint}\n"


EMULATOR = "sim"
"""The executor that is missed where there is none."""

NO = "no"
NOT_HERE = "no GPU that torch sees"
WRONG = "yes, with a wrong result"


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a small kernel for one target, in a few words: ``yes...`` if it went well.

    `tool` translated it; `emulated` names the executors, with their ``@``, that ran it in place of
    the machine: ``no`` if none did, ``-`` if there are none for such a machine.
    """

    target: str
    compiles: str
    runs: str = NO
    tool: str = "-"
    emulated: str = "-"
    errors: tuple[TileError, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether the kernel compiles, and runs or is kept from it by nothing but the machine."""
        return self.compiles.startswith("yes") and not self.errors and self.runs != WRONG


def examined(target: str, *, emulate: bool = True) -> Finding:
    """Return what becomes of a small kernel for `target`, compiled anew.

    With `emulate` it is run on every executor there is for such a machine, too.
    """
    from tile_core.plugins.host import default_host

    try:
        exact = default_host().resolve(parse_target_spec(target))[1]
    except TileError as error:
        return Finding(target, NO, errors=(error,))
    emulated, errors = _emulated(exact) if emulate and not exact.executor else ("-", ())
    try:
        start = time.perf_counter()
        kernel = _compiled(exact)
        took = time.perf_counter() - start
    except TileError as error:
        return Finding(target, NO, emulated=emulated, errors=(error, *errors))
    compiles, tool = f"yes, {took:.2f} s", _tool(exact)
    try:
        return Finding(target, compiles, _result(kernel, exact), tool, emulated, errors)
    except TileError as error:
        return Finding(target, compiles, NO, tool, emulated, (error, *errors))


def _emulated(machine: Target) -> tuple[str, tuple[TileError, ...]]:
    """Run the kernel on each executor for `machine`; return those that did, and what went wrong."""
    from tile_core.plugins.host import default_host

    names: list[str] = []
    errors: list[TileError] = []
    known = default_host().executors().items()
    installed = [name for name, executor in known if machine.kind in executor.kinds]
    missing = [EMULATOR] if machine.kind in GPUS else []  # whose error tells how to get it
    for name in installed or missing:
        target = Target(machine.kind, machine.arch, name)
        try:
            exact = default_host().resolve(target)[1]
            result = _result(_compiled(exact), exact)
            names.append(f"@{name}" if result == "yes" else f"@{name} ({WRONG})")
        except TileError as error:
            errors.append(error)
    if not names:
        return (NO if errors else "-"), tuple(errors)
    return f"yes, {' and '.join(names)}", ()


def _compiled(exact: Target) -> Any:
    from tile_api.autotuner.probe import add_one
    from tile_api.kernel import CompiledKernel
    from tile_core.driver import build
    from tile_core.plugins.host import default_host

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CompiledKernel(build(add_one.kernel, exact, default_host()))


def _result(kernel: Any, target: Target) -> str:
    """Run the kernel on whatever holds tensors for its target, and say how it went."""
    import numpy as np

    from tile_api.autotuner.probe import COUNT
    from tile_api.integrations.torch_gpus import gpu_arrays

    numbers = np.arange(COUNT, dtype=np.float32)
    if target.executor or target.kind not in GPUS:
        got = np.zeros_like(numbers)
        kernel(numbers, got)
    else:
        on_gpu = gpu_arrays()
        if on_gpu is None:
            return NOT_HERE
        there = on_gpu(np.zeros_like(numbers))
        kernel(on_gpu(numbers), there)
        got = there.cpu().numpy()
    return "yes" if np.array_equal(got, numbers + 1) else WRONG


def _tool(exact: Target) -> str:
    """Return what translates kernels for a target, as its backend tells it for compile keys."""
    from tile_api.autotuner.probe import add_one
    from tile_api.compile_keys import compile_key

    try:
        tools = dict(compile_key(add_one, target=exact).versions)
    except TileError:  # a setting that means nothing, which is told elsewhere
        return "-"
    for name in ("tool compiler", "tool c++-compiler"):
        if name in tools:
            words = tools[name].split()
            return words[0].rpartition("/")[2] if "/" in words[0] else " ".join(words[:2])
    return f"TVM {tools['tool apache-tvm']}" if "tool apache-tvm" in tools else "-"
