"""``nox -s fuzz``: random programs on all targets, until the time is over."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fuzz.exclusions import known
from fuzz.farm import Asked, outcomes
from fuzz.generate import generate
from fuzz.kinds import ARRAYS, TILES, Kind, of_torch
from fuzz.meaning import Invalid
from fuzz.mutants import Fate, score, table
from fuzz.run import CPUS, Finding, can_run, warm
from support.emulated_features import prepare_machines

WITHOUT_MACHINE = ("equations", "gradients", "compiled")
"""Targets for which nothing is built beforehand."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s fuzz --", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the programs; a fresh one by default")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--count", type=int, help="how many programs; no limit by default")
    parser.add_argument("--seconds", type=float, help="when to stop; after 60 s by default")
    parser.add_argument("--targets", help="all, cpus, or targets with commas between them")
    parser.add_argument("--each", type=int, help="run a program on so many of the targets, drawn")
    parser.add_argument("--resume", type=Path, metavar="LOG", help="go on where a log ends")
    parser.add_argument("--log", type=Path, help="write a line of JSON for each program")
    parser.add_argument("--arrays", action="store_true", help="functions of whole arrays")
    parser.add_argument("--torch", action="store_true", help="functions of torch, with gradients")
    parser.add_argument("--mutants", type=int, help="break so many lines of each GPU program")
    parser.add_argument("--workers", type=int, default=1, help="processes that run programs")
    parser.add_argument("--no-shrink", action="store_true", help="show failures as they are")
    return parser.parse_args()


def chosen(names: str | None, kind: Kind) -> tuple[str, ...]:
    groups = {None: kind.targets, "all": kind.targets, "cpus": CPUS}
    if names in groups:
        return tuple(target for target in groups[names] if can_run(target))
    return tuple(str(names).split(","))


def main() -> int:
    prepare_machines()
    options = arguments()
    kind = of_torch() if options.torch else ARRAYS if options.arrays else TILES
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    first, targets = options.first, chosen(options.targets, kind)
    if options.resume and options.resume.exists():
        lines = [json.loads(line) for line in options.resume.read_text().splitlines()]
        seed, first = lines[-1]["seed"], lines[-1]["program"] + 1
        targets = chosen(options.targets, kind) if options.targets else tuple(lines[-1]["targets"])
    log = options.log or options.resume
    limit = options.seconds or (float("inf") if options.count else 60.0)
    print(f"fuzz: seed {seed}, from program {first}, on {', '.join(targets)}", flush=True)
    ones = [one.partition("/")[0] for target in targets for one in target.split("|")]
    warm([one for one in dict.fromkeys(ones) if one not in WITHOUT_MACHINE])
    if options.mutants:
        on = tuple(t for t in targets if t.endswith("@sim"))
        return break_programs(options, seed, first, on, time.monotonic() + limit)
    return loop(kind, options, seed, first, targets, log, time.monotonic() + limit)


def loop(
    kind: Kind,
    options: argparse.Namespace,
    seed: int,
    first: int,
    targets: tuple[str, ...],
    log: Path | None,
    end: float,
) -> int:
    kinds: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    symptoms: dict[tuple[str, str, str], int] = {}
    number, asked = first, Asked(kind.option, seed, targets, options.each)
    for number, outcome in outcomes(asked, first, options.count, end, options.workers):
        if isinstance(outcome, str):
            kinds["without meaning"] += 1
            record(log, seed, number, targets, invalid=outcome)
            continue
        kinds["programs"] += 1
        seconds.update(outcome.seconds)
        runs.update(outcome.seconds.keys())
        record(log, seed, number, targets, findings=[vars(f) for f in outcome.findings],
               seconds=outcome.seconds)  # fmt: skip
        for finding in outcome.findings:
            if known(finding.detail):
                kinds["known"] += 1
                continue
            kinds[f"{finding.target} {finding.kind}"] += 1
            key = (finding.target, finding.kind, finding.what)
            symptoms[key] = symptoms.get(key, 0) + 1
            if symptoms[key] == 1:
                program = kind.generate(seed, number)
                show(kind, seed, number, program, finding, shrinks=not options.no_shrink)
    print(f"fuzz: seed {seed}, programs {first}…{number}: {dict(kinds)}")
    for target, spent in seconds.items():
        print(f"  {target:20} {runs[target]:5} programs, {spent / runs[target]:.2f} s each")
    for (target, kind, what), times in sorted(symptoms.items(), key=lambda item: -item[1]):
        print(f"  {times:4} {target}: {kind}: {what}")
    return 1 if symptoms else 0


def break_programs(
    options: argparse.Namespace, seed: int, first: int, targets: tuple[str, ...], end: float
) -> int:
    """Score the checks of the emulator: break printed kernels, and see who notices."""
    fates: list[tuple[str, Fate]] = []
    number = first
    while time.monotonic() < end and (not options.count or number < first + options.count):
        program, rng = generate(seed, number), random.Random(f"{seed}:{number}:mutants")
        for target in targets:
            try:
                found = score(program, target, rng, options.mutants)
            except Invalid:
                continue
            fates += [(target, fate) for fate in found]
            for fate in found:
                shown = {k: v for k, v in vars(fate.mutant).items() if k != "text"}
                record(options.log, seed, number, [target], fate=fate.what, said=fate.said, **shown)
                if fate.what in ("missed", "without line", "crash"):
                    m = fate.mutant
                    print(f"{fate.what}: seed {seed}, program {number}, {target}, line {m.line}")
                    print(f"  {m.before}\n  -> {m.after}\n  {fate.said}", flush=True)
        number += 1
    print(table(fates))
    return any(fate.what in ("missed", "without line", "crash") for _, fate in fates)


def record(log: Path | None, seed: int, number: int, targets: Any, **what: Any) -> None:
    if log:
        with log.open("a") as file:
            line = {"seed": seed, "program": number, "targets": list(targets), **what}
            file.write(json.dumps(line) + "\n")


def show(
    kind: Kind, seed: int, number: int, program: Any, finding: Finding, *, shrinks: bool
) -> None:
    """Print a program that fails, as small as it gets."""
    again = f"{kind.option}--seed {seed} --first {number} --count 1 --targets {finding.target}"
    print(f"\n=== {finding.target}: {finding.kind}: {finding.what}\n    nox -s fuzz -- {again}")
    if shrinks:
        program, finding = kind.shrink(program, finding)
    print(finding.detail)
    print(kind.reproduction(program, finding.target), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TILE_SIM_TIME_LIMIT", "60")
    # What is kept on disk would have to be linked: nothing is compiled twice here.
    os.environ.setdefault("TILE_DISABLE_CACHE", "1")
    sys.exit(main())
