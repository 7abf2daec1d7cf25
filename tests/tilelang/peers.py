"""Runs a folder of TileLang programs through the alias: passed, left out by name, failed.

    python tests/tilelang/peers.py FOLDER --target cpu --jobs 1 --timeout 120 --log peers.jsonl

Some programs import `einops`, which the development setup does not bring: install it first.

Files whose names begin with ``test_`` are run by pytest with our plugin, all others as programs
are. Each has a process of its own, with limits on time and memory: one that dies or hangs ends
nothing else. Results are added to the log, a line of JSON each, as soon as they are known, and a
file whose results are in the log is not run again. What is left out, and why, stands beside this
file in ``peers_left_out.txt``. Ends with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from threading import Lock

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from support.peers import left_out  # noqa: E402
from support.peers.running import Conditions, Outcome  # noqa: E402

LIST = Path(__file__).parent / "peers_left_out.txt"
WRONG = ("failed", "timeout", "died")


def read_log(path: Path | None) -> dict[tuple[str, str], Outcome]:
    """Return the last outcome of each test in a log."""
    found: dict[tuple[str, str], Outcome] = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            outcome = Outcome(**json.loads(line))
            found[outcome.file, outcome.test] = outcome
    return found


def report(outcomes: Sequence[Outcome]) -> str:
    """Return a table of what is left out and what failed, and how many of each there are."""
    told = [one for one in outcomes if one.outcome != "done"]
    lines = []
    for kind in ("left out", *WRONG):
        for one in sorted(told, key=lambda one: (one.file, one.test)):
            if one.outcome == kind:
                name = f"{one.file}::{one.test}" if one.test else one.file
                lines.append(f"{kind}: {name}: {one.reason.splitlines()[0] if one.reason else ''}")
    counts = Counter(one.outcome for one in told)
    return "\n".join([*lines, ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; return 1 if anything failed."""
    args = _arguments(arguments)
    folder = args.folder.resolve()
    rows = [] if args.all else left_out.read(args.left_out)
    conditions = Conditions(folder, args.target, args.timeout, args.memory)
    found = read_log(args.log)
    finished = {file for (file, test) in found if not test}
    again = {o.file for o in found.values() if args.again and o.outcome in WRONG}
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))
    wanted = [f for f in files if fnmatch(f, args.only) and (f in again or f not in finished)]
    lock = Lock()

    def run(file: str) -> None:
        stale = [key for key in found if key[0] == file]
        for key in stale:
            del found[key]
        for outcome in conditions.run(file, left_out.reasons(rows, args.target, file)):
            with lock:
                found[outcome.file, outcome.test] = outcome
                if outcome.outcome != "done":
                    print(f"{outcome.outcome}: {file} {outcome.test}", file=sys.stderr, flush=True)
                if args.log is not None:
                    with args.log.open("a", encoding="utf-8") as log:
                        log.write(json.dumps(asdict(outcome)) + "\n")

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(run, wanted))
    print(report([one for one in found.values() if fnmatch(one.file, args.only)]))
    return int(any(one.outcome in WRONG for one in found.values()))


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with the programs, in any depth")
    parser.add_argument("--target", default="cpu", help="where kernels run (cpu)")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (1)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each (120)")
    parser.add_argument("--memory", type=int, default=12, help="GiB for each (12)")
    parser.add_argument("--log", type=Path, help="file of results; goes on where it ends")
    parser.add_argument("--again", action="store_true", help="run what failed in the log again")
    parser.add_argument("--only", default="*", help="names of files, with wildcards")
    parser.add_argument("--left-out", type=Path, default=LIST, help="list of what is not run")
    parser.add_argument("--all", action="store_true", help="run what is left out, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
