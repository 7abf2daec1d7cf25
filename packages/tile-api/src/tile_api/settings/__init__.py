"""Settings: one frozen record, mirrored by the environment, with one attribute for each variable.

``tile.settings.target`` tells what a setting is now, and `override` changes some for a while:

>>> from tile_api import settings
>>> with settings.override(target="cpu", logs="+layout,codegen"):
...     settings.target, settings.logs
('cpu', ('+layout', 'codegen'))

`tile_api.settings.variables` has the table of variables, attributes and meanings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from tile_api.settings.variables import Variable, variables
from tile_core.environment import environment, laid_over
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.records import dataclass
from tile_core.spelling import nearest


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user's environment asks for; each attribute says which variable it mirrors.

    Parameters
    ----------
    target
        ``TILE_TARGET``: what ``target=None`` means.
    forced_target
        ``TILE_FORCE_TARGET``: what kernels are compiled for, whatever target the program names;
        empty leaves it to the program.
    pretended_gpu
        ``TILE_PRETENDED_GPU``: which GPU programs are told of that run on the host in its place.
    threads
        ``TILE_NUM_THREADS``: threads of a CPU kernel; 0 follows torch or OpenMP.
    cuda_compiler, hip_compiler
        ``TILE_CUDA_COMPILER``, ``TILE_HIP_COMPILER``: who translates kernels for GPUs.
    disabled_plugins
        ``TILE_DISABLE_PLUGINS``: names of entry points that are not loaded.
    cache
        False with ``TILE_DISABLE_CACHE=1``: compile every kernel anew.
    cache_dir, cache_size
        ``TILE_CACHE_DIR``, ``TILE_CACHE_SIZE``: where compiled kernels are kept (None means the
        user's folder of caches), and how many bytes of them.
    tune_budget, tune_again, tune_dir, tune_tables
        ``TILE_TUNE_BUDGET``, ``TILE_TUNE_AGAIN``, ``TILE_TUNE_DIR``, ``TILE_TUNE_TABLES``: how much
        work tuning may be, whether results are ignored, where they are kept, and where else they
        are looked for.
    tune_cache, tune_processes, tune_share, tune_most
        ``TILE_TUNE_DISABLE_CACHE``, ``TILE_TUNE_WORKERS``, ``TILE_TUNE_CPU_SHARE``,
        ``TILE_TUNE_MAX_WORKERS``: whether results are read and kept, and how many processes
        compile.
    logs
        ``TILE_LOGS``: categories of `tile_core.logs.CATEGORIES`, with ``+`` or ``-``.
    keep, keep_dir
        ``TILE_KEEP``, ``TILE_KEEP_DIR``: which texts of kernels are written, and where (None
        means ``tile-kept`` in the current folder).
    verbose
        ``TILE_VERBOSE=1``: report compile phases on stderr.
    full_traceback
        ``TILE_FULL_TRACEBACK=1``: tracebacks show the compiler's frames, too.
    interpret
        ``TILE_INTERPRET=1``: run kernels in the reference interpreter.
    checks
        ``TILE_CHECK``: what the emulator and the interpreter look for.
    verify
        ``TILE_VERIFY=1``: verify the IR after every pass.
    sim_schedule, sim_async, sim_threads, sim_time_limit
        ``TILE_SIM_SCHEDULE``, ``TILE_SIM_ASYNC``, ``TILE_SIM_THREADS``, ``TILE_SIM_TIME_LIMIT``:
        how the emulator runs threads.
    """

    target: str = "auto"
    forced_target: str = ""
    pretended_gpu: str = ""
    threads: int = 0
    cuda_compiler: str = ""
    hip_compiler: str = ""
    disabled_plugins: tuple[str, ...] = ()
    cache: bool = True
    cache_dir: Path | None = None
    cache_size: int = 4 << 30
    tune_budget: str = ""
    tune_again: bool = False
    tune_dir: Path | None = None
    tune_tables: tuple[Path, ...] = ()
    tune_cache: bool = True
    tune_processes: int = -1
    tune_share: float = 1.0
    tune_most: int = -1
    logs: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    keep_dir: Path | None = None
    verbose: bool = False
    full_traceback: bool = False
    interpret: bool = False
    checks: tuple[str, ...] = ("all",)
    verify: bool = False
    sim_schedule: str = "forward"
    sim_async: str = "late"
    sim_threads: int = 0
    sim_time_limit: float = 0.0

    @classmethod
    def from_environment(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read the settings as they are now; nothing is remembered between calls.

        Raises
        ------
        FrontendValueError
            If a variable has a value that means nothing.
        """
        found = environment() if env is None else env
        return cls(**{row.field: row.read(found) for row in variables()})


def current() -> Settings:
    """Return all settings as they are now.

    Raises
    ------
    FrontendValueError
        If a variable has a value that means nothing.
    """
    return Settings.from_environment()


@contextmanager
def override(**values: Any) -> Iterator[Settings]:
    """Use other settings inside of a ``with`` block, in this thread; what is not given stays.

    Parameters
    ----------
    values
        Attributes of `Settings`, as values or as the text that the variable would have; None
        means what holds where nothing is set.

    Raises
    ------
    FrontendTypeError
        If there is no such setting.
    FrontendValueError
        If a value means nothing.
    """
    changes: dict[str, str] = {}
    for field, value in values.items():
        row = _row(field)
        text = "" if value is None else _text(row, value)
        if text:
            row.value_of(text, f"the setting {field}")
        elif row.default and not (value is None or isinstance(value, str)):
            raise FrontendValueError(
                f"the setting {field} is {value!r}", hint=f"set it to {row.kind.allowed}"
            )
        changes |= {row.name: text, **dict.fromkeys(row.aliases, "")}
    with laid_over(changes):
        yield current()


def environment_of_code() -> tuple[str | bytes | None, ...]:
    """Return the raw values of the variables that decide which code is generated.

    A cheap part of cache keys: equal before and after only if compiling again would make
    the same kernel.
    """
    env = environment()
    # `os.environ` decodes and encodes at every access; the table below it is ten times faster.
    raw = getattr(env, "_data", None) if env is os.environ else None
    if raw is not None and os.name == "posix":
        return tuple(map(raw.get, _names_of_code()[1]))
    return tuple(map(env.get, _names_of_code()[0]))


@lru_cache(maxsize=1)
def _names_of_code() -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    """Return the names of those variables, and the names as the operating system has them."""
    rows = (row for row in variables() if row.of_code)
    names = tuple(name for row in rows for name in (row.name, *row.aliases))
    return names, tuple(map(os.fsencode, names))


def _row(field: str) -> Variable:
    known = {row.field: row for row in variables()}
    if field not in known:
        near = nearest(field, known)
        raise FrontendTypeError(
            f"there is no setting {field!r}",
            hint=f"did you mean {near}=...?" if near else f"there are {', '.join(known)}",
        )
    return known[field]


def _text(row: Variable, value: object) -> str:
    """Return a value as the text that its variable would have."""
    if isinstance(value, bool):
        negative = row.default is True  # such as TILE_DISABLE_CACHE
        return "1" if value is not negative else "0"
    if isinstance(value, (list, tuple, set, frozenset)):
        between = os.pathsep if row.kind.name == "paths" else ","
        return between.join(map(str, value))
    return str(value)


def __getattr__(name: str) -> Any:
    """Return one setting as it is now."""
    for row in variables():
        if row.field == name:
            return row.read(environment())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(row.field for row in variables())})
