"""``tile doctor``: what is installed, and which targets compile and run here."""

from __future__ import annotations

import argparse
import platform
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tile_core.errors import TileError
from tile_core.target import Target, parse_target_spec

TARGETS = (
    "cpu", "interpret",
    "cuda", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_80@sim", "cuda:sm_90a@sim",
    "hip", "hip:gfx90a", "hip:gfx942", "hip:gfx942@sim", "hip:gfx942@isa",
)  # fmt: skip
"""What is tried unless the user names targets."""

PACKAGES = (
    "tile-api", "tile-core", "tile-cpu", "tile-cuda", "tile-hip", "tile-sim", "tile-runtime",
    "apache-tvm", "numpy", "torch", "pluggy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a small kernel for one target.

    Parameters
    ----------
    target
        As it was asked for.
    compiles, runs
        How it went, in a few words; it went well if they begin with ``yes``.
    error
        What stood in the way.
    """

    target: str
    compiles: str
    runs: str
    error: Exception | None = None


def add_parser(subparsers: Any) -> None:
    """Add the verb and what can be asked of it."""
    parser = subparsers.add_parser(
        "doctor",
        help="tell what is installed, and which targets compile and run here",
        description="Compile a small kernel for each target and run it where that is possible.",
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="instead of a choice of all")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 1 if targets were named and one of them does not compile or run."""
    sys.stdout.write(f"python {platform.python_version()}, {platform.system()} on ")
    sys.stdout.write(f"{platform.machine()}\n")
    sys.stdout.writelines(f"{name:<14}{_installed(name)}\n" for name in PACKAGES)
    sys.stdout.write("\ntarget             compiles       runs\n")
    findings = []
    for target in args.targets or TARGETS:
        found = examined(target)
        findings.append(found)
        sys.stdout.write(f"{found.target:<19}{found.compiles:<15}{found.runs}\n")
        sys.stdout.flush()
    sys.stdout.writelines(_told(findings))
    failed = any(found.error is not None for found in findings)
    return 1 if args.targets and failed else 0


def examined(target: str) -> Finding:
    """Return what becomes of a small kernel for `target`, compiled anew."""
    from tile_api.cli.probe import add_one
    from tile_api.compiling import default_host
    from tile_api.kernel import CompiledKernel
    from tile_core.driver import build

    try:
        exact = default_host().resolve(parse_target_spec(target))[1]
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = CompiledKernel(build(add_one.kernel, exact, default_host()))
        took = time.perf_counter() - start
    except TileError as error:
        return Finding(target, "no", "no", error)
    compiles = f"yes, {took:.2f} s"
    try:
        return Finding(target, compiles, _result(kernel, exact))
    except TileError as error:
        return Finding(target, compiles, "no", error)


def _result(kernel: Any, target: Target) -> str:
    """Run the kernel on whatever holds tensors for its target, and say how it went."""
    import numpy as np

    from tile_api.cli.probe import COUNT
    from tile_api.integrations.torch_gpus import gpu_arrays

    numbers = np.arange(COUNT, dtype=np.float32)
    if target.executor or target.kind not in ("cuda", "hip"):
        got = np.zeros_like(numbers)
        kernel(numbers, got)
    else:
        on_gpu = gpu_arrays()
        if on_gpu is None:
            return "no GPU that torch sees"
        there = on_gpu(np.zeros_like(numbers))
        kernel(on_gpu(numbers), there)
        got = there.cpu().numpy()
    return "yes" if np.array_equal(got, numbers + 1) else "yes, with a wrong result"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


def _told(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield what is in the way of which targets, and the way out: each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for found in findings:
        if isinstance(found.error, TileError):
            reason = (found.error.message, found.error.hint or "")
            reasons.setdefault(reason, []).append(found.target)
    for (message, hint), targets in reasons.items():
        yield f"\n{', '.join(targets)}: {message}\n"
        if hint:
            yield f"  {hint}\n"
