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

    Parameters
    ----------
    name
        Of the function.
    identity
        `tile_api.autotuner.identity.identity_of` the function.
    bucket
        The arguments that are not tuned, as values that JSON can hold: results hold for calls
        with equal buckets.
    configs
        To choose from.
    trace
        Returns the traced function for values of the tuned parameters.
    compile_options
        Of `tile_api.compile`.
    options
        How to measure and check.
    inputs
        Tensors to measure on, or None.
    """

    name: str
    identity: str
    bucket: Mapping[str, Any]
    configs: Sequence[Config]
    trace: Callable[[Mapping[str, Any]], Any]
    compile_options: Mapping[str, Any] = field(default_factory=dict)
    options: TuneOptions = field(default_factory=TuneOptions)
    inputs: Sequence[Any] | None = None
