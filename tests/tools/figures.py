"""What is watched about the code: ``python -m tools.figures`` prints one row for each figure."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tools.import_graph import ROOT, ImportGraph, modules_of_packages
from tools.operator_files import TOUCHED
from tools.vendor_words import lines_with_vendors

ENGINES: Mapping[str, tuple[str, ...]] = {
    "range": ("tile_core.arith.interval_analysis",),
    "affine": ("tile_core.arith.affine",),
    "expression": ("tile_core.ir.expr",),
    "argument": ("tile_launch.arguments",),
}  # fmt: skip
"""Modules that answer the same question in their own way. One that is gone counts no more; a new
one is added by whoever writes it."""

DRIVERS = (
    "tile_core.driver", "tile_core.compilation.phases", "tile_core.compilation.planning",
    "tile_core.compilation.estimating", "tile_core.simt.pipeline", "tile_core.simt.lower",
    "tile_core.plugins.gpu_compiler", "tile_core.plugins.gpu_launch", "tile_cpu.pipeline",
    "tile_cpu.lowering.lower", "tile_cpu.backend_compiler",
    "tile_api.compiling", "tile_api.compile_keys", "tile_api.lowering",
    "tile_api.parallel_compiling", "tile_api.build_or_load", "tile_api.cached_builds",
    "tile_api.compile_request",
)  # fmt: skip
"""Modules that only call others, in order."""

MOST_IMPORTS = 10
"""Modules of the project that each of them may import, at most."""

TRAVERSALS = ("walk", "walk_once", "rewrite", "substitute")
"""Functions of `tile_core.ir.node` that go through all of what they are given."""

QUESTIONS = ("nodes_of", "contains")
"""Functions of `tile_core.ir.node` that go through what is in no index yet."""


@dataclass(frozen=True)
class Row:
    """A figure."""

    name: str
    value: str
    aim: str  # what it should be at most, or at least, as text


def lines_of_packages() -> Row:
    """Count the lines of Python in the packages."""
    paths = modules_of_packages().values()
    total = sum(len(path.read_text().splitlines()) for path in paths)
    return Row("Python lines in packages", str(total), "<= 118000")


def engines() -> Row:
    """Count the modules that answer the same question."""
    known = modules_of_packages()
    counts = [str(sum(name in known for name in names)) for names in ENGINES.values()]
    return Row(" / ".join(ENGINES) + " engines", " / ".join(counts), "1 / 1 / 1 / 1")


def fan_out(graph: ImportGraph) -> Row:
    """Find the driver that imports most modules of the project."""
    edges = graph.edges()
    count, name = max((len(edges[name]), name) for name in DRIVERS)
    return Row("modules that a driver imports, most", f"{count} ({name})", f"<= {MOST_IMPORTS}")


def vendor_files() -> Row:
    """Count the files of tile_core that speak of one vendor's instructions and need not."""
    return Row("files of tile_core with vendor words", str(len(lines_with_vendors())), "0")


def circles(graph: ImportGraph) -> Row:
    """Count the groups of modules that import each other."""
    counts = (len(graph.circles(types=types)) for types in (False, True))
    return Row("import circles: run-time; all", "; ".join(map(str, counts)), "0; closed unions")


def files_for_an_operator() -> Row:
    """Count the files that the page on new operators touches where it is executed."""
    return Row("files that a new operator touches", str(len(TOUCHED)), "<= 4")


def session_times() -> list[Row]:
    """Return how long sessions took here last; they write it down themselves."""
    times = _told("times.json")
    return [
        Row(f"nox -s {name}, s", str(times.get(name, "not run")), f"<= {aim}")
        for name, aim in (("tests", 720), ("smoke", 120))
    ]


def mutants() -> Row:
    """Return the score of the mutants made last."""
    told = _told("mutants.json")
    value = f"{told['killed']} of {told['mutants']}" if told else "not run"
    return Row("mutants killed", value, ">= 95 %")


def _told(name: str) -> dict[str, Any]:
    path = ROOT / ".nox" / name
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


# What lowering does ------------------------------------------------------------------------------


def lowering() -> list[Row]:
    """Lower a GEMM and attention for sm_90a; time it, count calls and walks over whole bodies."""
    from support.hopper_examples import CASES
    from tile_core.codegen import print_program
    from tile_core.driver import lower
    from tile_core.plugins.host import installed_plugins

    host = installed_plugins()
    kernels = {n: CASES[n].kernel() for n in ("gemm", "attention", "attention_causal")}

    def run(name: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print_program(lower(kernels[name], "cuda:sm_90a", host).module)

    def best(name: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            run(name)
            times.append(time.perf_counter() - start)
        return min(times)

    milliseconds = " / ".join(f"{1000 * best(name):.0f}" for name in kernels)
    walks = whole_walks(lambda: run("gemm"), of=kernels["gemm"].body)
    calls = python_calls(lambda: run("gemm"))
    return [
        Row("whole-body walks; calls in lowering a GEMM", f"{walks}; {calls}", "<= 40; 120000"),
        Row("lowering GEMM / attention / causal, ms", milliseconds, "<= 40 / 140 / 150"),
    ]


def python_calls(run: Callable[[], None]) -> int:
    """Count the calls of functions of our packages, with each step of their generators."""
    ours = str(ROOT / "packages")
    count = 0

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(ours)

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def whole_walks(run: Callable[[], None], of: Any) -> int:
    """Count the traversals of as many nodes as the body `of` a kernel has before lowering."""
    from tile_core.ir.node import walk

    with _traversed() as counts:
        run()
    least = sum(1 for _ in walk(of))
    return sum(count >= least for count in counts)


@contextmanager
def _traversed() -> Iterator[list[int]]:
    """Collect how many nodes each traversal is of that others than `tile_core.ir.node` ask for.

    Who asks for nodes of some classes goes through those that are looked at one by one: those that
    are sorted into an index for the first time, and those found. All others go through a tree.
    """
    from tile_core.ir import class_index, node

    counts: list[int] = []
    seen = 0
    originals = {name: getattr(node, name) for name in (*TRAVERSALS, *QUESTIONS)}
    replaced: list[tuple[Any, str, Any]] = []

    def replace(owner: Any, name: str, made: Any) -> None:
        replaced.append((owner, name, vars(owner)[name]))
        setattr(owner, name, made)

    def size(root: Any) -> int:
        return sum(1 for _ in originals["walk"](root))

    def asked(name: str) -> Callable[..., Any]:
        def function(root: Any, *others: Any, **options: Any) -> Any:
            nonlocal seen
            seen = 0
            found = originals[name](root, *others, **options)
            is_whole = name in TRAVERSALS or getattr(root, "_index", None) is None
            counts.append(size(root) if is_whole else seen)
            return found

        return function

    def counted(owner: Any, name: str, nodes: Callable[..., int]) -> None:
        function = getattr(owner, name)

        def watched(*arguments: Any) -> Any:
            nonlocal seen
            found = function(*arguments)
            seen += nodes(found, *arguments)
            return found

        replace(owner, name, watched)

    for name, original in originals.items():
        made = asked(name)
        for module in [*sys.modules.values()]:
            is_ours = (getattr(module, "__name__", "") or "").startswith("tile_")
            if is_ours and module is not node and vars(module).get(name) is original:
                replace(module, name, made)
    counted(class_index, "_sorted", lambda _, nodes: len(nodes))
    counted(class_index, "_filtered", lambda _, nodes, kinds: len(nodes))
    try:
        yield counts
    finally:
        for owner, name, function in reversed(replaced):
            setattr(owner, name, function)


def figures() -> list[Row]:
    """Return every figure."""
    graph = ImportGraph(modules_of_packages())
    return [
        lines_of_packages(), *lowering(), fan_out(graph), engines(), vendor_files(),
        circles(graph), files_for_an_operator(), *session_times(), mutants(),
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    rows = figures()
    width = max(len(row.name) for row in rows)
    middle = max(len(row.value) for row in rows)
    for row in rows:
        print(f"{row.name:<{width}}  {row.value:<{middle}}  {row.aim}")


if __name__ == "__main__":
    main()
