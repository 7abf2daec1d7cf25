"""Compile every problem in all its configurations; no GPU is needed.

    python benchmarks/gpu/build.py OUT                 everything
    python benchmarks/gpu/build.py OUT --only M0 FA    problems whose names begin so

Each kernel becomes a bundle in OUT, and `plan.json` tells what was compiled, what the cost model
expects of it, and what its machine code looks like. What went wrong is said and left out.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candidates
import ours
from problem import Problem
from problems import all_problems, tiny_problems
from static import complaints, facts_of

import tile_api as tile
from tile_core.errors import TileError

HEAD = (
    f"{'problem':<18} {'model':>9} {'regs':>4} {'spill':>5} {'shared':>6} {'blocks':>6} "
    f"{'loop':>5} {'products':>11}  configuration"
)


def build(problem: Problem, number: int, config: dict[str, Any], given: Any) -> dict[str, Any]:
    """Compile one configuration; return its entry in the plan."""
    functions = ours.MAKERS[problem.family](problem.sizes, config)
    target = "cpu" if given.rehearse else given.target
    entry: dict[str, Any] = {"config": candidates.label(config), "bundles": {}, "facts": {}}
    model = tile.estimate if not given.rehearse else None
    entry["model_us"] = model and 1e3 * sum(
        model(f, target, machine=given.machine).milliseconds for f in functions.values()
    )
    for name, function in functions.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # spills are in the facts
            kernel = tile.compile(function, target=target)
        path = given.out / f"{problem.name}-{number}-{name}.tile"
        kernel.save(path)
        entry["bundles"][name] = path.name
        if name == "main" and not given.rehearse:
            entry["facts"] = facts_of(kernel, path)
            entry["complaints"] = complaints(entry["facts"], problem.family)
    return entry


def entries(problem: Problem, given: Any) -> Iterator[dict[str, Any]]:
    """Yield what was compiled of a problem, and say so."""
    for number, config in enumerate(candidates.candidates(problem, given.rehearse)):
        try:
            entry = build(problem, number, config, given)
        except TileError as error:
            words = str(error).partition("\n")[0]
            print(f"{problem.name:<18} NOT COMPILED: {candidates.label(config)}: {words}")
            continue
        yield entry
        print(line(problem, entry), flush=True)


def line(problem: Problem, entry: dict[str, Any]) -> str:
    """Return an entry as a line of the table."""
    facts = entry["facts"]
    if not facts:
        return f"{problem.name:<18} {entry['config']}"
    products = " ".join(f"{count} {name}" for name, count in facts["products"].items())
    words = "; ".join(entry["complaints"])
    return (
        f"{problem.name:<18} {entry['model_us']:>6.0f} us {facts['registers']:>4} "
        f"{facts['spilled_bytes']:>5} {facts['shared_bytes'] / 1024:>5.0f}K "
        f"{facts['blocks'] or '?':>6} {facts['loop']:>5} {products:>11}  {entry['config']}"
        + (f"  !! {words}" if words else "")
    )


def ranked(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries with the cost model's rank, 1 for what it likes best."""
    order = sorted(found, key=lambda entry: entry["model_us"] or 0.0)
    return [{**entry, "model_rank": order.index(entry) + 1} for entry in found]


def chosen(given: Any) -> list[Problem]:
    """Return the problems that were asked for."""
    known = tiny_problems() if given.rehearse else all_problems()
    only = tuple(given.only or ())
    return [p for p in known if not only or p.name.startswith(only)]


def main(words: list[str] | None = None) -> None:
    """Compile, and write the plan after each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", help="beginnings of names of problems")
    parser.add_argument(
        "--target", default="cuda:sm_90a", help="such as cuda:sm_100a, cuda:sm_120a"
    )
    parser.add_argument("--machine", default="h100", help="whose speeds the cost model takes")
    parser.add_argument("--rehearse", action="store_true", help="tiny problems, for this processor")
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    plan = given.out / "plan.json"
    known = json.loads(plan.read_text()) if plan.exists() else {}
    start = time.perf_counter()
    print(HEAD)
    for problem in chosen(given):
        known[problem.name] = ranked(list(entries(problem, given)))
        plan.write_text(json.dumps(known, indent=1))
    size = sum(path.stat().st_size for path in given.out.glob("*.tile"))
    count = sum(map(len, known.values()))
    seconds = time.perf_counter() - start
    print(
        f"{count} configurations of {len(known)} problems, {size / 2**20:.1f} MiB, {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
