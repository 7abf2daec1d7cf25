"""Settings: the environment variables that the language reads, in one frozen record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.errors import FrontendValueError

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
    forced_target
        ``TILE_FORCE_TARGET``: what kernels are compiled for, whatever target the program names;
        empty leaves it to the program.
    threads
        ``TILE_NUM_THREADS``: threads of a CPU kernel; 0 follows torch or OpenMP.
    verbose
        ``TILE_VERBOSE=1`` (or ``TILELANG_VERBOSE=1``): report compile phases on stderr.
    cache
        False with ``TILE_DISABLE_CACHE=1`` (or ``TILELANG_DISABLE_CACHE=1``): compile
        every kernel anew.
    """

    interpret: bool = False
    verify: bool = False
    target: str = "auto"
    forced_target: str = ""
    threads: int = 0
    verbose: bool = False
    cache: bool = True

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings as they are now; nothing is remembered between calls.

        Raises
        ------
        FrontendValueError
            If a variable that is a number is none.
        """
        env = os.environ if environment is None else environment

        def flag(*names: str) -> bool:
            return any(env.get(name, "").lower() in _TRUE for name in names)

        threads = env.get("TILE_NUM_THREADS", "") or "0"
        if not threads.isdecimal():
            raise FrontendValueError(
                f"the environment variable TILE_NUM_THREADS is {threads!r}",
                hint="set it to a number of threads; 0 follows torch or OpenMP",
            )
        return cls(
            interpret=flag("TILE_INTERPRET"),
            verify=flag("TILE_VERIFY"),
            target=env.get("TILE_TARGET") or env.get("TILELANG_DEFAULT_TARGET") or "auto",
            forced_target=env.get("TILE_FORCE_TARGET", ""),
            threads=int(threads),
            verbose=flag("TILE_VERBOSE", "TILELANG_VERBOSE"),
            cache=not flag("TILE_DISABLE_CACHE", "TILELANG_DISABLE_CACHE"),
        )


def environment_of_code() -> tuple[str | None, ...]:
    """Return the raw values of the variables that decide which code is generated.

    A cheap part of cache keys: equal before and after only if compiling again would make
    the same kernel.
    """
    get = os.environ.get
    return tuple([get(name) for name in _OF_CODE])


_OF_CODE = (
    "TILE_INTERPRET",
    "TILE_TARGET",
    "TILELANG_DEFAULT_TARGET",
    "TILE_FORCE_TARGET",
    "TILE_NUM_THREADS",
    "TILE_CUDA_COMPILER",
    "TILE_HIP_COMPILER",
)
