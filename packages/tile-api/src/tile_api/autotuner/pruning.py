"""Pruning: what the user knows better than any model is left out before anything is compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api.autotuner.configs import Config, listed_configs
from tile_core.errors import TuningError

_KEYS = ("early_config_prune", "perf_model", "top_k")
_HINT = (
    "write prune=lambda configs, arguments: [c for c in configs if ...], or Triton's "
    'prune_configs_by={"early_config_prune": ..., "perf_model": ..., "top_k": ...}'
)


def pruned(
    configs: Sequence[Config],
    prune: object,
    prune_by: object,
    arguments: Mapping[str, Any],
    parameters: Sequence[str],
) -> tuple[Config, ...]:
    """Return the configurations that remain, in their order.

    Parameters
    ----------
    prune
        ``prune(configs, arguments)`` returns those of the dictionaries that are worth a try; or
        ``prune(config, arguments)``, if its first parameter is called ``config``, tells of one.
    prune_by
        Triton's dictionary: ``early_config_prune(configs, arguments)`` returns some,
        ``perf_model(**arguments, **config)`` a time, of which the best ``top_k`` (a number, or a
        share of all) remain.

    Raises
    ------
    TuningError
        If one of them is not what it should be, or nothing remains.
    """
    left = tuple(configs)
    if prune is not None:
        left = _filtered(left, _function(prune), arguments, parameters)
    if prune_by is not None:
        if not isinstance(prune_by, Mapping) or set(prune_by) - {*_KEYS}:
            raise TuningError("prune_configs_by is not understood", hint=_HINT)
        early, model = prune_by.get("early_config_prune"), prune_by.get("perf_model")
        if early is not None:
            left = _filtered(left, _function(early), arguments, parameters)
        if model is not None:
            left = _best(left, _function(model), prune_by.get("top_k", 1.0), arguments)
    if not left:
        raise TuningError(
            "pruning left no configuration", hint="keep at least one, whatever the arguments"
        )
    return left


def _filtered(
    configs: tuple[Config, ...],
    keep: Callable[..., Any],
    arguments: Mapping[str, Any],
    parameters: Sequence[str],
) -> tuple[Config, ...]:
    if next(iter(inspect.signature(keep).parameters), "") == "config":
        return tuple(c for c in configs if keep(c.given, dict(arguments)))
    kept = keep([c.given for c in configs], dict(arguments))
    return listed_configs(kept, arguments, parameters) if kept else ()


def _best(
    configs: tuple[Config, ...], model: Callable[..., Any], top: Any, arguments: Mapping[str, Any]
) -> tuple[Config, ...]:
    if isinstance(top, bool) or not isinstance(top, int | float) or top <= 0:
        raise TuningError(f"top_k is a number or a share, got {top!r}", hint=_HINT)
    count = int(len(configs) * top) if isinstance(top, float) and top <= 1 else int(top)
    times = {c.key: float(model(**{**arguments, **c.values})) for c in configs}
    chosen = {c.key for c in sorted(configs, key=lambda c: times[c.key])[: max(1, count)]}
    return tuple(c for c in configs if c.key in chosen)


def _function(value: object) -> Callable[..., Any]:
    if not callable(value):
        raise TuningError(f"pruning takes a function, got {type(value).__name__}", hint=_HINT)
    return value
