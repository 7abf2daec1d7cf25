"""What the author of a kernel says of its tuning, beside the configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from tile_core.errors import TuningError


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


_DEFAULTS: Mapping[str, float] = {"warmup": 25, "rep": 100, "timeout": 100, "early_stop_factor": 5}
OPTION_NAMES: Sequence[str] = tuple(TuneOptions.__dataclass_fields__)
