"""What is said of tuning: by the author of a kernel, by calls, and by the environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from tile_api.autotuner.configs import Config
from tile_api.disk_cache.location import CacheSettings
from tile_api.settings import Settings
from tile_api.settings.budget import Budget, parse_budget
from tile_core.environment import environment, processors
from tile_core.errors import TuningError
from tile_core.tasks import Executors, checked_executor


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """How candidates are measured and checked.

    Parameters
    ----------
    warmup, rep
        Milliseconds to run a candidate before, and while, it is measured.
    timeout
        Seconds after which a step of one candidate (compiling, one check, one visit of the
        clock) counts as hung; its process is killed.
    budget
        See `tile_api.settings.budget.parse_budget`; None follows ``TILE_TUNE_BUDGET``.
    supply_type
        A `TensorSupplyType`: what generated inputs look like.
    supply_prog
        ``supply_prog(params)`` returns the inputs: one for each parameter that is passed.
    ref_prog
        A function of the inputs with the right results, if there is one.
    rtol, atol, max_mismatched_ratio
        What makes a result equal to that of `ref_prog`.
    skip_check
        Measure without comparing.
    manual_check_prog
        ``manual_check_prog(got, expected)`` raises if the results are wrong.
    cache_input_tensors
        Ask `supply_prog` once for all candidates with parameters of the same shapes.
    early_stop, early_stop_factor
        Stop measuring a candidate that takes this many times as long as the best.
    sizes
        Values of symbolic dimensions and scalar parameters by name, for generated inputs.
    table
        A further table of results to look into, before tuning.
    executor
        Whose workers compile candidates: see `tile_api.par_compile`. Candidates are measured here.
    """

    warmup: float = 25
    rep: float = 100
    timeout: float = 100
    budget: object = None
    supply_type: Any = None
    supply_prog: Callable[..., Any] | None = None
    ref_prog: Callable[..., Any] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None
    cache_input_tensors: bool = False
    early_stop: bool = True
    early_stop_factor: float = 5.0
    sizes: Mapping[str, int] = field(default_factory=dict)
    table: object = None
    executor: Executors | None = None

    def __post_init__(self) -> None:
        for name in ("warmup", "rep", "timeout", "early_stop_factor"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise TuningError(
                    f"{name} is a number that is not negative, got {value!r}",
                    hint=f"write {name}={_DEFAULTS[name]}",
                )
        for name in ("ref_prog", "supply_prog", "manual_check_prog"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TuningError(
                    f"{name} is a function, got {type(value).__name__}",
                    hint=f"write {name}=lambda *tensors: ...",
                )

        if self.executor is not None:
            checked_executor(self.executor)

    @property
    def checks(self) -> bool:
        """Whether results are compared with those of a reference."""
        return self.ref_prog is not None and not self.skip_check


class TuneKeywords(TypedDict, total=False):
    """The attributes of `TuneOptions` as keywords of `tile_api.autotune`."""

    warmup: float
    rep: float
    timeout: float
    budget: object
    supply_type: Any
    supply_prog: Callable[..., Any] | None
    ref_prog: Callable[..., Any] | None
    rtol: float
    atol: float
    max_mismatched_ratio: float
    skip_check: bool
    manual_check_prog: Callable[..., Any] | None
    cache_input_tensors: bool
    early_stop: bool
    early_stop_factor: float
    sizes: Mapping[str, int]
    table: object
    executor: Executors | None


_DEFAULTS: Mapping[str, float] = {"warmup": 25, "rep": 100, "timeout": 100, "early_stop_factor": 5}
OPTION_NAMES: Sequence[str] = tuple(TuneOptions.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Task:
    """A function with arguments, and configurations to choose from.

    The bucket holds the arguments that are not tuned, as values that JSON can hold: results hold
    for calls with equal buckets. `trace` returns the traced function for values of the tuned
    parameters; `inputs` are tensors to measure on.
    """

    name: str
    identity: str
    bucket: Mapping[str, Any]
    configs: Sequence[Config]
    trace: Callable[[Mapping[str, Any]], Any]
    compile_options: Mapping[str, Any] = field(default_factory=dict)
    options: TuneOptions = field(default_factory=TuneOptions)
    inputs: Sequence[Any] | None = None


_INPUTS: ContextVar[tuple[Any, ...] | None] = ContextVar("tile_autotune_inputs", default=None)


@contextmanager
def set_autotune_inputs(*tensors: Any) -> Iterator[None]:
    """Measure candidates on these tensors.

    Parameters
    ----------
    tensors
        One for each parameter that is passed to the kernel; or one list of them.

    Examples
    --------
    >>> with set_autotune_inputs(1, 2):
    ...     get_autotune_inputs()
    (1, 2)
    """
    is_list = len(tensors) == 1 and isinstance(tensors[0], list | tuple)
    token = _INPUTS.set(tuple(tensors[0]) if is_list else tensors)
    try:
        yield
    finally:
        _INPUTS.reset(token)


def get_autotune_inputs() -> tuple[Any, ...] | None:
    """Return the tensors of the block around, or None."""
    return _INPUTS.get()


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
        """Read the settings as they are now."""
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
