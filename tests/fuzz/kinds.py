"""Kinds of programs: what writes them, runs them, makes them smaller and prints them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fuzz import generate, run, shrink, source, workers
from fuzz.arrays import generate as arrays_generate
from fuzz.arrays import run as arrays_run
from fuzz.arrays import shrink as arrays_shrink
from fuzz.arrays import source as arrays_source


@dataclass(frozen=True)
class Kind:
    """A kind of programs.

    Parameters
    ----------
    targets
        What they run on if nothing else is asked for.
    worker
        Makes a process that runs them.
    """

    option: str
    targets: tuple[str, ...]
    generate: Callable[[int, int], Any]
    worker: Callable[[], workers.Worker]
    shrink: Callable[[Any, run.Finding], tuple[Any, run.Finding]]
    reproduction: Callable[[Any, str], str]


TILES = Kind("", run.TARGETS, generate.generate, workers.Worker, shrink.shrink, source.reproduction)
ARRAYS = Kind(
    "--arrays ",
    arrays_run.TARGETS,
    arrays_generate.generate,
    lambda: workers.Worker(arrays_run.serve, arrays_run.run),
    arrays_shrink.shrink,
    arrays_source.reproduction,
)


def of_torch() -> Kind:
    """Return that of functions of torch, which is imported for it alone."""
    from fuzz.torch import program, run

    return Kind(
        "--torch ",
        run.TARGETS,
        program.generate,
        lambda: workers.Worker(run.serve, run.run),
        lambda program, finding: (program, finding),  # of few lines
        run.reproduction,
    )
