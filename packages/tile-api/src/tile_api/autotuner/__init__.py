"""Finding the best configuration of a kernel: TileLang's interface, within a stated time."""

from __future__ import annotations

from tile_api.autotuner.budget import Budget, parse_budget
from tile_api.autotuner.class_api import AutoTuner, AutotuneResult
from tile_api.autotuner.configs import Config
from tile_api.autotuner.decorator import AutotunedFactory, autotune
from tile_api.autotuner.supplied import get_autotune_inputs, set_autotune_inputs
from tile_api.autotuner.tune import Tuned

__all__ = [
    "AutoTuner",
    "AutotuneResult",
    "AutotunedFactory",
    "Budget",
    "Config",
    "Tuned",
    "autotune",
    "get_autotune_inputs",
    "parse_budget",
    "set_autotune_inputs",
]
