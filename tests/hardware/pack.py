"""Compile cases for hardware and pack them, on a machine that need not have a GPU.

python tests/hardware/pack.py FOLDER [--machine sm_120a] [--arch sm_80] [--only PATTERN]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from hardware.cases import Case, Pack, parse_case  # noqa: E402
from hardware.features import complexity  # noqa: E402
from hardware.large import lowered_kernels  # noqa: E402
from hardware.packing import MACHINE, PARTS, Packer  # noqa: E402

RECORDED = (
    "conformance/test_conformance.py",
    "examples/test_examples_on_gpus.py",
    "examples/test_examples_on_hopper.py",
    "kernels",
    "tilelang/test_programs.py",
    "unit/tile_api/arrays",
    "unit/tile_core/test_lower_bulk_loads.py",
    "unit/tile_core/test_lower_bulk_reductions.py",
    "unit/tile_core/test_lower_bulk_stores.py",
    "unit/tile_cuda",
)
"""Tests that run kernels on emulated NVIDIA GPUs and compare what comes out."""


def main(arguments: list[str] | None = None) -> int:
    """Run the tests with the recorder, then put what it wrote in order."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--arch",
        action="append",
        help="code written for it is packed; by default sm_80 and --machine",
    )
    parser.add_argument("--machine", default=MACHINE, help="what all code is translated for")
    parser.add_argument("--only", help="an expression that names tests, as pytest's -k takes it")
    parser.add_argument("--tests", nargs="+", help="files of tests; by default all that fit")
    parser.add_argument("-n", "--processes", default="2")
    told = parser.parse_args(arguments)
    folder = told.folder.resolve()
    archs = told.arch or ["sm_80", told.machine]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=line",
        "-p",
        "hardware.recorder",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--pack", str(folder), "--pack-machine", told.machine]
    command += [*(f"--pack-arch={arch}" for arch in archs)]
    command += ["-n", told.processes] if told.processes != "0" else []
    command += ["-k", told.only] if told.only else []
    command += told.tests or [str(TESTS / name) for name in RECORDED]
    ended = subprocess.run(command, cwd=TESTS.parent, check=False)
    if not told.only and not told.tests and told.machine in archs:
        pack_problems(folder, told.machine)
    cases = gathered(folder)
    tell(cases, folder)
    return 0 if cases and ended.returncode in (0, 1) else 2


def pack_problems(folder: Path, machine: str) -> None:
    """Add the kernels that fill a GPU."""
    packer = Packer(folder, machine)
    for name, problem, lowered in lowered_kernels(machine):
        print(f"compiling {name}", flush=True)
        packer.add_problem(name, problem, lowered)


def gathered(folder: Path) -> list[Case]:
    """Write the index, from simple to complex, of all that the processes wrote."""
    pack = Pack(folder)
    known = {}
    for part in sorted(folder.glob(PARTS)):
        for line in part.read_text().splitlines():
            case = parse_case(line)
            known[case.data] = case
    if known:
        size = {case.kernel: pack.bundle(case).stat().st_size for case in known.values()}
        ordered = sorted(
            known.values(), key=lambda c: (*complexity(c.features, size[c.kernel]), c.name)
        )
        pack.write_index(ordered)
        return ordered
    return []


def tell(cases: list[Case], folder: Path) -> None:
    """Print what is in the pack."""
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    kernels = len({case.kernel for case in cases})
    print(f"{len(cases)} cases of {kernels} kernels, {total / 2**20:.1f} MiB in {folder}")
    counts = Counter(feature for case in cases for feature in case.features)
    for feature, count in sorted(counts.items()):
        print(f"  {count:5}  {feature}")


if __name__ == "__main__":
    sys.exit(main())
