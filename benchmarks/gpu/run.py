"""Check and measure what `build.py` has compiled, beside the peers that are installed.

    python benchmarks/gpu/run.py OUT --out results.json --budget 480

Needs NumPy, torch and tile-launch; neither TVM nor a compiler. Work is done by another process,
which is ended when it hangs, and replaced when it breaks; the problem goes on without the culprit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from problems import all_problems, tiny_problems
from supervision import Supervisor
from table import lines, summary, table


def main(words: list[str] | None = None) -> None:
    """Run all problems that there is time for; write results as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what build.py has filled")
    parser.add_argument("--out", type=Path, default=Path("results.json"))
    parser.add_argument("--budget", type=float, default=480, help="seconds for everything")
    parser.add_argument("--race", type=float, default=1.5, help="seconds of timing per problem")
    parser.add_argument("--only", nargs="*", help="beginnings of names of problems")
    parser.add_argument("--seed", type=int, default=None, help="of inputs; by default the time")
    parser.add_argument("--rehearse", action="store_true", help="tiny problems, no GPU")
    given = parser.parse_args(words)
    started = time.time()
    known = tiny_problems() if given.rehearse else all_problems()
    only = tuple(given.only or ())
    chosen = [p for p in known if not only or p.name.startswith(only)]
    plan = json.loads((given.folder / "plan.json").read_text())
    results: dict[str, Any] = {"machine": {}, "problems": {}, "skipped": {}}
    helper = _warming(given.rehearse)

    def keep(found: dict[str, Any], fresh: str) -> None:
        given.out.write_text(json.dumps({**found, "plan": plan}, indent=1))
        for line in lines(found, plan, fresh):
            print(line, flush=True)

    job = {
        "folder": str(given.folder),
        "problems": [p.name for p in chosen],
        "rehearse": given.rehearse,
        "deadline": started + given.budget - 15,
        "race_s": given.race,
        "seed": int(started) if given.seed is None else given.seed,
    }
    with tempfile.TemporaryDirectory() as place:
        Supervisor(job, Path(place), results, keep, started + given.budget).finish()
    if helper is not None:
        helper.kill()
    given.out.write_text(json.dumps({**results, "plan": plan}, indent=1))
    print("\n".join(["", *table(results, plan), "", *summary(results, plan)]))
    print(f"{time.time() - started:.0f} s; {given.out}")


def _warming(is_rehearsal: bool) -> subprocess.Popen[bytes] | None:
    """Start compiling the peers' kernels, which takes minutes, beside the first measurements."""
    if is_rehearsal:
        return None
    script = Path(__file__).with_name("warm.py")
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
