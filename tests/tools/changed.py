"""Which test files a change can break: ``python -m tools.changed [BASE]`` prints them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.import_graph import ROOT, ImportGraph, modules_of_packages, modules_of_tests

ALL = "tests"
EVERYTHING = {"tests/conftest.py", "tests/support/followed.py"}
"""Files of which all tests depend."""

SPOKEN_OF = {
    "tile_cuda": re.compile(r"cuda|sm_\d|nvrtc|hopper", re.IGNORECASE),
    "tile_hip": re.compile(r"\bhip|gfx|amd", re.IGNORECASE),
    "tile_sim": re.compile(r"@sim|@isa|emulat|tile_sim", re.IGNORECASE),
    "tile_cpu": re.compile(r"cpu|tile_api|llvm", re.IGNORECASE),
}
"""Backends are found at run time, where targets name them: no import says who uses them. A text
that speaks of one may use it; who compiles without a target uses the CPU."""

EVERY_BACKEND = re.compile(r"\.backends\(\)|all_cases\(")
"""Who goes through what is installed uses all of them."""

READ_BY = {
    "examples": re.compile(r"example"),
    "benchmarks": re.compile(r"benchmark"),
    "docs": re.compile(r"\bdocs\b"),
}
"""Folders that tests read as files, and how they name them."""


def changed_files(base: str, root: Path = ROOT) -> list[str]:
    """Return what differs from `base`: committed since they parted, or not committed at all."""

    def told(*arguments: str) -> list[str]:
        command = ("git", "-C", str(root), *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    (parting,) = told("merge-base", base, "HEAD")
    untracked = told("ls-files", "--others", "--exclude-standard")
    return sorted({*told("diff", "--name-only", parting), *untracked})


def files_that_can_break(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the test files that changes of the files `changed` can break.

    ``["tests"]``, which is all of them, for a change of what every test depends on.
    """
    sources, checks = modules_of_packages(root), modules_of_tests(root)
    graph = ImportGraph(sources | checks)
    names = {path.relative_to(root).as_posix(): name for name, path in graph.files.items()}
    touched: set[str] = set()
    spoken: list[re.Pattern[str]] = []
    for file in changed:
        top, _, rest = file.partition("/")
        if file in EVERYTHING or (top == "packages" and rest.endswith(".toml")):
            return [ALL]
        if file in names:
            touched.add(names[file])
        elif top == "packages":
            package = rest.split("/")[0].replace("-", "_")
            touched |= {name for name in sources if name.split(".")[0] == package}
        elif top in READ_BY:
            spoken.append(READ_BY[top])
        elif top == "tests":
            folder = file.rpartition("/")[0].split("/expected")[0]  # what lies beside tests
            touched |= {name for path, name in names.items() if path.startswith(f"{folder}/")}
        elif not file.endswith(".md"):
            return [ALL]
    broken = set(graph.dependents(touched))
    for package, pattern in SPOKEN_OF.items():
        if any(name.split(".")[0] == package for name in broken):
            spoken += [pattern, EVERY_BACKEND]
    return sorted(_chosen(graph, checks, broken, spoken, root))


def _chosen(
    graph: ImportGraph,
    checks: dict[str, Path],
    broken: set[str],
    spoken: list[re.Pattern[str]],
    root: Path,
) -> list[str]:
    """Return the test files that import what is `broken`, or speak of what changed."""
    speaks = {n for n, p in checks.items() if any(s.search(p.read_text()) for s in spoken)}
    reached = broken | set(graph.dependents(speaks))
    folders = {name.rpartition(".")[0] for name in reached if name.endswith("conftest")}
    return [
        path.relative_to(root).as_posix()
        for name, path in checks.items()
        if path.name.startswith("test_")
        and (name in reached or any(f and name.startswith(f"{f}.") for f in folders))
    ]


if __name__ == "__main__":
    print(*files_that_can_break(changed_files(*(sys.argv[1:] or ["main"]))), sep="\n")
