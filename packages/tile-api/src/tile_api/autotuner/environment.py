"""What the environment says of tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tile_api.disk_cache.location import CacheSettings
from tile_api.settings import Settings
from tile_api.settings.budget import Budget, parse_budget
from tile_core.environment import environment, processors


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
        ``TILELANG_AUTO_TUNING_CPU_UTILITIES`` of the processors (all of them if it is not set);
        at most ``TILELANG_AUTO_TUNING_MAX_CPU_COUNT``.
    """

    folder: Path
    tables: tuple[Path, ...] = ()
    budget: Budget | None = None
    again: bool = False
    keeps: bool = True
    workers: int = 1

    @classmethod
    def from_environment(cls, given: Mapping[str, str] | None = None) -> TuneSettings:
        """Read the settings as they are now.

        Raises
        ------
        FrontendValueError
            If a variable holds what it cannot mean.
        """
        env = environment() if given is None else given
        found = Settings.from_environment(env)
        return cls(
            folder=found.tune_dir or CacheSettings.from_environment(env).folder / "tune",
            tables=found.tune_tables,
            budget=parse_budget(found.tune_budget) if found.tune_budget else None,
            again=found.tune_again,
            keeps=found.tune_cache,
            workers=_workers(found),
        )


def _workers(settings: Settings) -> int:
    count = settings.tune_processes
    if count <= 0:
        count = int(processors() * settings.tune_share)
    most = settings.tune_most
    return max(1, min(count, most) if most > 0 else count)
