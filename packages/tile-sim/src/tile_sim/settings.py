"""Settings of the emulator: what is checked, and in which order threads run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from tile_core.environment import environment as current_environment
from tile_core.environment import processors
from tile_core.errors import FrontendValueError
from tile_core.records import dataclass

CORRECTNESS = ("bounds", "uninit", "race", "wait", "barrier")
"""Checks that find mistakes; all of them are on unless a setting says otherwise."""

COUNTERS = "counters"
"""Counts of memory requests, bank transactions and sectors by source line; off by default."""

CHECKS = (*CORRECTNESS, COUNTERS)
OUT_OF_BOUNDS = "oob"
"""What else ``bounds`` may be called."""

SCHEDULES = ("forward", "reverse", "random")
MAX_SECONDS = 1e6
ASYNC_MODES = ("late", "early", "random")


@dataclass(frozen=True, slots=True)
class SimSettings:
    """How launches are emulated.

    Parameters
    ----------
    checks
        Names out of `CHECKS`: ``bounds`` (accesses outside of a buffer, and vectors at
        addresses that are no multiple of their size), ``uninit`` (reads of what nothing
        wrote), ``race`` (accesses without an order between them), ``wait`` (reads of data
        whose asynchronous copy was not waited for), ``barrier`` (barriers at which threads
        meet that came by different ways), ``counters``. Deadlocks are found without a check.
    schedule
        Which thread runs next where several can: ``forward``, ``reverse``, or ``random``.
    seed
        Of the random choices.
    async_mode
        When the data of asynchronous copies arrives: as ``late`` as is legal, ``early``, or
        at ``random``.
    threads
        Threads of the host over which blocks are spread; 0 means one per CPU of the process.
    time_limit
        Seconds after which a launch is given up; 0 means never. A loop is given up where it
        reads memory or waits.
    """

    checks: frozenset[str] = frozenset(CORRECTNESS)
    schedule: str = "forward"
    seed: int = 0
    async_mode: str = "late"
    threads: int = 0
    time_limit: float = 0.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> SimSettings:
        """Read ``TILE_CHECK`` and ``TILE_SIM_SCHEDULE``, ``_ASYNC``, ``_THREADS``, ``_TIME_LIMIT``.

        Raises
        ------
        FrontendValueError
            If a variable has a value that means nothing.
        """
        env = current_environment() if environment is None else environment
        settings = cls()
        if text := env.get("TILE_CHECK"):
            settings = replace(settings, checks=parse_checks(text, "TILE_CHECK"))
        if text := env.get("TILE_SIM_SCHEDULE"):
            schedule, seed = parse_schedule(text, "TILE_SIM_SCHEDULE")
            settings = replace(settings, schedule=schedule, seed=seed)
        if text := env.get("TILE_SIM_ASYNC"):
            settings = replace(settings, async_mode=_mode(text, "TILE_SIM_ASYNC"))
        if text := env.get("TILE_SIM_THREADS"):
            settings = replace(settings, threads=_threads(text, "TILE_SIM_THREADS"))
        if text := env.get("TILE_SIM_TIME_LIMIT"):
            settings = replace(settings, time_limit=_seconds(text, "TILE_SIM_TIME_LIMIT"))
        return settings

    @property
    def host_threads(self) -> int:
        """How many threads of the host run blocks."""
        return self.threads or processors()


_OVERRIDE: ContextVar[SimSettings | None] = ContextVar("tile_sim_settings", default=None)


def current_settings() -> SimSettings:
    """Return the settings of the innermost `checking`, else those of the environment."""
    return _OVERRIDE.get() or SimSettings.from_environment()


@contextmanager
def checking(
    checks: str | Iterable[str] | None = None,
    *,
    schedule: str | None = None,
    async_mode: str | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
) -> Iterator[SimSettings]:
    """Launch with other settings inside of a ``with`` block; what is not given stays.

    Parameters
    ----------
    checks
        ``"all"`` (all that find mistakes), ``"none"``, or names out of `CHECKS`, as a text with
        commas or as a list; ``"all,counters"`` is everything.
    schedule
        ``"forward"``, ``"reverse"`` or ``"random:SEED"``.
    async_mode
        ``"late"``, ``"early"`` or ``"random"``.
    threads
        Threads of the host; 0 means one per CPU.
    time_limit
        Seconds after which a launch is given up; 0 means never.

    Raises
    ------
    FrontendValueError
        If an argument has a value that means nothing.

    Examples
    --------
    >>> with checking("bounds,counters", schedule="random:7") as settings:
    ...     print(sorted(settings.checks), settings.schedule, settings.seed)
    ['bounds', 'counters'] random 7
    """
    settings = current_settings()
    if checks is not None:
        settings = replace(settings, checks=parse_checks(checks, "checks"))
    if schedule is not None:
        order, seed = parse_schedule(schedule, "schedule")
        settings = replace(settings, schedule=order, seed=seed)
    if async_mode is not None:
        settings = replace(settings, async_mode=_mode(async_mode, "async_mode"))
    if threads is not None:
        settings = replace(settings, threads=_threads(str(threads), "threads"))
    if time_limit is not None:
        settings = replace(settings, time_limit=_seconds(str(time_limit), "time_limit"))
    token = _OVERRIDE.set(settings)
    try:
        yield settings
    finally:
        _OVERRIDE.reset(token)


def parse_checks(value: str | Iterable[str], where: str) -> frozenset[str]:
    """Return the names of checks that `value` asks for; `where` is named if it is wrong."""
    names = value.replace(" ", ",").split(",") if isinstance(value, str) else [*value]
    found: set[str] = set()
    for name in filter(None, names):
        if name == "all":
            found.update(CORRECTNESS)
        elif name in CHECKS or name == OUT_OF_BOUNDS:
            found.add("bounds" if name == OUT_OF_BOUNDS else name)
        elif name != "none":
            raise FrontendValueError(
                f"{where} names {name!r}, which is no check",
                hint=f"use all, none, or some of {', '.join(CHECKS)}",
            )
    return frozenset(found)


def parse_schedule(text: str, where: str) -> tuple[str, int]:
    """Return the order of threads and the seed that ``order[:seed]`` asks for."""
    order, _, seed = text.partition(":")
    if order not in SCHEDULES or (seed and (order != "random" or not seed.isdecimal())):
        raise FrontendValueError(
            f"{where} is {text!r}, which is no schedule",
            hint="use forward, reverse, or random:SEED with a number",
        )
    return order, int(seed or 0)


def _mode(text: str, where: str) -> str:
    if text not in ASYNC_MODES:
        raise FrontendValueError(
            f"{where} is {text!r}", hint=f"use one of {', '.join(ASYNC_MODES)}"
        )
    return text


def _threads(text: str, where: str) -> int:
    if not text.isdecimal():
        raise FrontendValueError(
            f"{where} is {text!r}", hint="set it to a number of threads; 0 means one per CPU"
        )
    return int(text)


def _seconds(text: str, where: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_SECONDS:
        raise FrontendValueError(
            f"{where} is {text!r}", hint="set it to a number of seconds; 0 means no limit"
        )
    return seconds
