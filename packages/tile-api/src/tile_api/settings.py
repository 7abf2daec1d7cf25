"""Settings: every environment variable the project reads, in one frozen record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user's environment asks for.

    Parameters
    ----------
    interpret
        ``TILE_INTERPRET=1``: run kernels in the reference interpreter, with all its checks.
    verify
        ``TILE_VERIFY=1``: verify the IR after every pass.
    target
        ``TILE_TARGET`` (or ``TILELANG_DEFAULT_TARGET``): what ``target=None`` means.
    threads
        ``TILE_NUM_THREADS``: threads of a CPU kernel; 0 follows torch or OpenMP.
    verbose
        ``TILE_VERBOSE=1`` (or ``TILELANG_VERBOSE=1``): report compile phases on stderr.
    """

    interpret: bool = False
    verify: bool = False
    target: str = "auto"
    threads: int = 0
    verbose: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings as they are now; nothing is remembered between calls."""
        env = os.environ if environment is None else environment

        def flag(*names: str) -> bool:
            return any(env.get(name, "").lower() in _TRUE for name in names)

        threads = env.get("TILE_NUM_THREADS", "")
        return cls(
            interpret=flag("TILE_INTERPRET"),
            verify=flag("TILE_VERIFY"),
            target=env.get("TILE_TARGET") or env.get("TILELANG_DEFAULT_TARGET") or "auto",
            threads=int(threads) if threads.isdigit() else 0,
            verbose=flag("TILE_VERBOSE", "TILELANG_VERBOSE"),
        )
