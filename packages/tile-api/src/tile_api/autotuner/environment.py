"""What the environment says of tuning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tile_api.autotuner.budget import HINT, Budget, parse_budget
from tile_api.disk_cache.location import CacheSettings
from tile_core.errors import TuningError

_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """Where results are kept, and how much work tuning may be.

    Parameters
    ----------
    folder
        ``TILE_TUNE_DIR``, else ``tune`` in the cache's folder: tables and logs.
    tables
        ``TILE_TUNE_TABLES``: further tables to look into, separated as in ``PATH``.
    budget
        ``TILE_TUNE_BUDGET``, or None: what holds where a kernel says nothing.
    again
        ``TILE_TUNE_AGAIN=1``: tune although there is a result.
    keeps
        False with ``TILELANG_AUTO_TUNING_DISABLE_CACHE=1``: results are neither read nor kept.
    workers
        Processes that compile: ``TILELANG_AUTO_TUNING_CPU_COUNTS``, else a share
        ``TILELANG_AUTO_TUNING_CPU_UTILITIES`` of the processors (all of them if it is not set),
        at most ``TILELANG_AUTO_TUNING_MAX_CPU_COUNT``.
    """

    folder: Path
    tables: tuple[Path, ...] = ()
    budget: Budget | None = None
    again: bool = False
    keeps: bool = True
    workers: int = 1

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> TuneSettings:
        """Read the settings as they are now.

        Raises
        ------
        TuningError
            If a variable holds what it cannot mean.
        """
        env = os.environ if environment is None else environment
        chosen = env.get("TILE_TUNE_DIR", "")
        tables = [p for p in env.get("TILE_TUNE_TABLES", "").split(os.pathsep) if p]
        return cls(
            folder=Path(chosen).expanduser() if chosen else _in_cache(env),
            tables=tuple(Path(p).expanduser() for p in tables),
            budget=_budget(env.get("TILE_TUNE_BUDGET", "")),
            again=env.get("TILE_TUNE_AGAIN", "").lower() in _TRUE,
            keeps=env.get("TILELANG_AUTO_TUNING_DISABLE_CACHE", "").lower() not in _TRUE,
            workers=_workers(env),
        )


def _in_cache(env: Mapping[str, str]) -> Path:
    return CacheSettings.from_environment(env).folder / "tune"


def _budget(text: str) -> Budget | None:
    if not text:
        return None
    try:
        return parse_budget(text)
    except TuningError:
        raise TuningError(
            f"the environment variable TILE_TUNE_BUDGET is {text!r}", hint=HINT
        ) from None


def _workers(env: Mapping[str, str]) -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    count = int(_number(env, "TILELANG_AUTO_TUNING_CPU_COUNTS", -1))
    if count <= 0:
        count = int(processors * _number(env, "TILELANG_AUTO_TUNING_CPU_UTILITIES", 1.0))
    most = int(_number(env, "TILELANG_AUTO_TUNING_MAX_CPU_COUNT", -1))
    return max(1, min(count, most) if most > 0 else count)


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "")
    try:
        return float(text) if text else default
    except ValueError:
        raise TuningError(
            f"the environment variable {name} is {text!r}", hint="set it to a number"
        ) from None
