"""What is to be tuned: made by the decorator, the class and the command alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_api.autotuner.configs import Config
from tile_api.autotuner.options import TuneOptions


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
