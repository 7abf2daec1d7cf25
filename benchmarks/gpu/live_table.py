"""Tables of what is compiled where it runs: a line for each case, as it comes, within a budget."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from timing import Device, Gpu, Processor

Case = tuple[str, Callable[[Device, float], dict[str, Any]]]
"""A name, and what measures on a device for so many seconds."""

WIDTH = 32


def line_of(name: str, told: dict[str, Any]) -> str:
    """Return a line: our median, those of peers, the ratio to the best of these, and the rest."""
    if told["status"] != "right":
        return f"{name:<{WIDTH}} {told['status']} {told.get('error', '')} {told.get('why', '')}"
    us = {who: sample["median"] for who, sample in told["us"].items()}
    best = min(median for who, median in us.items() if who != "ours")
    times = " ".join(f"{median:9.1f}" for median in us.values())
    rate = f"{told['work'] / us['ours'] * 1e6:8.2f}" if "work" in told else f"{'-':>8}"
    return (
        f"{name:<{WIDTH}} {times} {best / us['ours']:6.2f} {rate} {told['error']:9.1e} "
        f"{told['first_s']:7.2f}"
    )


def print_table(
    description: str, contenders: Iterable[str], cases: Callable[[bool], Iterable[Case]]
) -> None:
    """Go through cases until time is up; a case that raises is a line, too.

    Parameters
    ----------
    contenders
        Who takes part, ours first.
    cases
        Gives the cases, or tiny ones for a rehearsal.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, help="a file for all figures")
    parser.add_argument("--budget", type=float, default=240, help="seconds for everything")
    parser.add_argument("--race", type=float, default=0.5, help="seconds of timing per case")
    parser.add_argument("--rehearse", action="store_true", help="tiny, on this processor")
    given = parser.parse_args()
    started = time.monotonic()
    if given.rehearse:
        os.environ["TILE_TARGET"] = "cpu"
    device: Device = Processor() if given.rehearse else Gpu()
    times = " ".join(f"{who:>9}" for who in contenders)
    print(f"{'us':<{WIDTH}} {times} {'ratio':>6} {'T../s':>8} {'error':>9} {'first s':>7}")
    results: dict[str, Any] = {}
    for name, measure in cases(given.rehearse):
        if time.monotonic() - started > given.budget:
            break
        try:
            results[name] = measure(device, given.race)
        except Exception as error:
            why = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
            results[name] = {"status": "error", "why": why}
        print(line_of(name, results[name]), flush=True)
        if given.out is not None:
            given.out.write_text(json.dumps(results, indent=1))
