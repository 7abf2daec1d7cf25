"""``tile doctor``: what is installed, and which targets compile, run, and are emulated."""

from __future__ import annotations

import argparse
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from tile_api import __version__
from tile_api.cli.examining import Finding, examined
from tile_core import verify_companion
from tile_core.companions import PACKAGES as COMPANIONS
from tile_core.environment import environment, processors
from tile_core.errors import CompanionError, TileError
from tile_core.installed import distribution

TARGETS = (
    "cpu", "interpret", "cuda", "cuda:sm_80", "cuda:sm_90a", "hip", "hip:gfx90a", "hip:gfx942",
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


def add_parser(subparsers: Any) -> None:
    """Add the verb and what can be asked of it."""
    parser = subparsers.add_parser(
        "doctor",
        help="tell what is installed, and which targets compile and run here",
        description="Compile a small kernel for each target, run it where that is possible, and "
        "emulate it where it is not; tell what to install for the rest. Ends with 1 if targets "
        "are named and one of them does not compile or run, and if one of the packages is "
        "somebody else's or of another version.",
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="instead of a choice of all")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 1 if a named target does not work or a package is not one of ours."""
    sys.stdout.write(f"python {platform.python_version()}, {platform.system()} on ")
    sys.stdout.write(f"{platform.machine()}, {processors()} processors\n")
    strangers = [error for name in PACKAGES if (error := _stranger(name))]
    sys.stdout.writelines(_package(name, use) for name, use in PACKAGES.items())
    sys.stdout.writelines(f"\n{error}\n\n" for error in strangers)
    sys.stdout.writelines(_settings())
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
