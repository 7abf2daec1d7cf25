"""Programs run by other processes, which know them by their numbers."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

from fuzz.kinds import ARRAYS, TILES, Kind, of_torch
from fuzz.meaning import Invalid
from fuzz.run import Outcome
from fuzz.workers import Worker
from support.emulated_features import prepare_machines
from tile_core.tasks import completed, in_order


@dataclass(frozen=True)
class Asked:
    """Which programs are run, and on what."""

    option: str  # of the kind
    seed: int
    targets: tuple[str, ...]
    each: int | None  # on so many of them


def kind_of(option: str) -> Kind:
    """Return a kind by its option."""
    return {"": TILES, "--arrays ": ARRAYS}.get(option) or of_torch()


def drawn(asked: Asked, number: int) -> tuple[str, ...]:
    """Return the targets of a program, all of them or some; of ``a|b`` one."""
    rng = random.Random(f"{asked.seed}:{number}:targets")
    every = asked.each is None or asked.each >= len(asked.targets)
    some = asked.targets if every else rng.sample(asked.targets, asked.each)
    return tuple(rng.choice(target.split("|")) for target in some)


def outcome(asked: Asked, number: int) -> Outcome | str:
    """Run a program; return what became of it, or why it means nothing."""
    program = kind_of(asked.option).generate(asked.seed, number)
    try:
        return runner(asked.option, os.getpid()).run(f"{number}", program, drawn(asked, number))
    except Invalid as why:
        return str(why)


@cache
def runner(option: str, process: int) -> Worker:
    """Return what runs programs for a process."""
    prepare_machines()
    return kind_of(option).worker()


def outcomes(
    asked: Asked, first: int, count: int | None, end: float, workers: int
) -> Iterator[tuple[int, Outcome | str]]:
    """Yield what becomes of programs, in the order of their numbers, until the time is over."""

    def numbers() -> Iterator[int]:
        number = first
        while time.monotonic() < end and (not count or number < first + count):
            yield number
            number += 1

    pool = partial(ProcessPoolExecutor, workers, mp_context=get_context("spawn"))
    answers = completed(
        pool if workers > 1 else Here(), partial(outcome, asked), numbers(),
        ahead=2 * workers if workers > 1 else 1,
    )  # fmt: skip
    try:
        for answer in in_order(answers):
            yield first + answer.number, answer.result()
    finally:
        if workers == 1:
            runner(asked.option, os.getpid()).close()


class Here(Executor):
    """Runs each task when it is given out, in this process."""

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*args, **kwargs))
        return done
