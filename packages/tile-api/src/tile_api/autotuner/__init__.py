"""Finding the best configuration of a kernel: TileLang's interface, within a stated time.

Names are resolved on first use: workers and the command line load what they need and no more.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile_api.autotuner.class_api import AutoTuner, AutotuneResult
    from tile_api.autotuner.configs import Config
    from tile_api.autotuner.decorator import AutotunedFactory, autotune
    from tile_api.autotuner.options import TuneOptions, get_autotune_inputs, set_autotune_inputs
    from tile_api.autotuner.tune import Tuned
    from tile_api.settings.budget import Budget, parse_budget

_HOMES = {
    "AutoTuner": "class_api",
    "AutotuneResult": "class_api",
    "AutotunedFactory": "decorator",
    "Budget": ".settings.budget",
    "Config": "configs",
    "TuneOptions": "options",
    "Tuned": "tune",
    "autotune": "decorator",
    "get_autotune_inputs": "options",
    "parse_budget": ".settings.budget",
    "set_autotune_inputs": "options",
}

__all__ = [
    "AutoTuner",
    "AutotuneResult",
    "AutotunedFactory",
    "Budget",
    "Config",
    "TuneOptions",
    "Tuned",
    "autotune",
    "get_autotune_inputs",
    "parse_budget",
    "set_autotune_inputs",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
