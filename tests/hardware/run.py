"""Run packed cases on this machine's GPU and say what does not work.

    python tests/hardware/run.py FOLDER [--results FILE] [--only PATTERN] [--budget SECONDS]

Needs NumPy, torch with a GPU, and tile-launch, which is found in this checkout if it is not
installed. Without a GPU, ``--on emulator`` and ``--on driver`` rehearse.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
if find_spec("tile_launch") is None:
    sys.path.insert(0, str(TESTS.parent / "packages" / "tile-launch" / "src"))

from hardware.cases import Case, Pack  # noqa: E402
from hardware.executors import EXECUTORS  # noqa: E402
from hardware.runner import CannotStart, Limits, run_cases  # noqa: E402
from hardware.table import GOOD, line_of, summary  # noqa: E402


def parser_of_arguments() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    limits = Limits()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what tests/hardware/pack.py wrote")
    parser.add_argument("--results", type=Path, help="a file of JSON lines to add to")
    parser.add_argument("--on", default="gpu", help=f"one of {', '.join(EXECUTORS)}")
    parser.add_argument("--only", default="*", help="names of cases, or features, with * and ?")
    parser.add_argument("--skip", type=Path, help="results of an earlier run: what is new is run")
    parser.add_argument("--repeats", type=int, default=limits.repeats, help="launches of a case")
    parser.add_argument("--limit", type=float, default=limits.case, help="seconds for a case")
    parser.add_argument("--budget", type=float, default=limits.all, help="seconds for all")
    parser.add_argument("--verbose", action="store_true", help="print what passes, too")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if all is right, 1 if not, 2 if nothing could be tried."""
    told = parser_of_arguments().parse_args(arguments)
    cases = chosen(Pack(told.folder).cases(), told.only, seen_in(told.skip))
    limits = Limits(case=told.limit, all=told.budget, repeats=told.repeats)
    print(f"{len(cases)} cases, each {limits.repeats} times", flush=True)
    records: list[dict[str, Any]] = []
    try:
        for record in run_cases(cases, told.on, told.folder, limits):
            records.append(record)
            if told.results is not None:
                with told.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
            if len(records) % 100 == 0:
                wrong = sum(record["status"] not in GOOD for record in records)
                print(f"{len(records)} of {len(cases)}, {wrong} of them not right", flush=True)
            if told.verbose or record["status"] not in (*GOOD, "skipped"):
                print(line_of(record), flush=True)
    except CannotStart as error:
        print(f"nothing runs cases any more: {error}")
        if not records:
            return 2
    print()
    print(summary(records), flush=True)
    return int(any(record["status"] not in GOOD for record in records))


def seen_in(results: Path | None) -> set[str]:
    """Return the names of cases that an earlier run has tried."""
    if results is None:
        return set()
    records = [json.loads(line) for line in results.read_text().splitlines()]
    return {record["case"] for record in records if record["status"] != "skipped"}


def chosen(cases: Sequence[Case], pattern: str, seen: set[str]) -> list[Case]:
    """Return the cases that a pattern names, by a part of their name or by a feature."""
    return [
        case
        for case in cases
        if case.name not in seen
        and any(fnmatch.fnmatchcase(text, f"*{pattern}*") for text in (case.name, *case.features))
    ]


if __name__ == "__main__":
    sys.exit(main())
