"""The process that runs cases: it may hang or die, and another one goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from hardware.cases import Case, Pack, parse_case
from hardware.comparing import Difference, difference
from hardware.executors import Executor, NotHere, open_executor
from hardware.memory import StrayWrite


def serve(orders: Connection, executor: str, folder: str) -> None:
    """Run what is ordered until nobody orders any more.

    Sends a record that describes the executor, then one for each order: a line of the index, and
    how often to launch. A record with ``is_usable`` False is the last one.
    """
    try:
        runs = open_executor(executor)
        orders.send({"about": runs.describe()})
    except Exception as error:
        orders.send({"broken": told(error)})
        return
    pack = Pack(Path(folder))
    while True:
        try:
            line, repeats = orders.recv()
        except EOFError:
            return
        record = run_case(runs, pack, parse_case(line), repeats)
        orders.send(record)
        if not record["is_usable"]:
            return


def run_case(runs: Executor, pack: Pack, case: Case, repeats: int) -> dict[str, Any]:
    """Return what became of a case: its status, and what there is to say."""
    start = time.perf_counter()
    record: dict[str, Any] = {
        "status": "passed" if runs.computes else "accepted",
        "is_usable": True,
    }
    stage = "refused"
    try:
        differences = _prepared(runs, pack, case)
        stage = "fault"
        wrong = []
        for repeat in range(repeats):
            wrong += [(repeat, each) for each in differences(repeat)[:1]]
        if wrong:
            repeat, first = wrong[0]
            record |= {"status": "wrong", "message": str(first), "first": first.told()}
            record |= {"wrong_launches": len(wrong), "first_wrong_launch": repeat}
    except NotHere as error:
        record |= {"status": "skipped", "message": str(error)}
    except StrayWrite as error:
        record |= {"status": "stray", "message": str(error)}
    except Exception as error:
        record |= {"status": stage, "message": told(error), "is_usable": runs.is_usable()}
    return record | {"seconds": round(time.perf_counter() - start, 4), "launches": repeats}


def _prepared(runs: Executor, pack: Pack, case: Case) -> Callable[[int], list[Difference]]:
    """Return what launches a case and says where tensors are not what they should be."""
    if case.problem:
        return runs.prepare_problem(pack, case)
    arrays = pack.arrays(case)
    launch = runs.prepare(pack, case, arrays)

    def differences(number: int) -> list[Difference]:
        found = launch(number)
        return _differences(case, arrays, found) if runs.computes else []

    return differences


def _differences(
    case: Case, arrays: dict[str, np.ndarray], found: list[np.ndarray | None]
) -> list[Difference]:
    """Return where tensors are not what they should be; inputs must be as they were."""
    wrong = []
    for argument, got in zip(case.arguments, found, strict=True):
        if got is not None:
            expected = arrays[argument.after or argument.data]
            wrong.append(difference(argument, expected, got))
    return [each for each in wrong if each is not None]


def told(error: Exception) -> str:
    """Return an error in one line."""
    return f"{type(error).__name__}: {error}".split("\n")[0][:500]
