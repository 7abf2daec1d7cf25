"""Configurations: the lists that users write, in every accepted form, and what they prune."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_api.autotuner.identity import canonical
from tile_core.errors import TuningError

PASS_CONFIGS = "pass_configs"
"""A key of a configuration that is no parameter of the function, but one of compiling."""

_LAUNCH = ("num_warps", "num_stages")
_HINT = 'write configs=[{"block_M": 64}, {"block_M": 128}], or a function that returns such a list'


@dataclass(frozen=True, slots=True)
class Config:
    """Values for the tuned parameters, and pass configurations on top of those of the kernel."""

    values: Mapping[str, Any]
    pass_configs: Mapping[Any, object] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """The configuration as the user wrote it."""
        more = {PASS_CONFIGS: dict(self.pass_configs)} if self.pass_configs else {}
        return {**self.values, **more}

    @property
    def key(self) -> str:
        """The configuration as text, the same in every process."""
        return canonical(self.given)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.given.items()) or "(as it is)"


def listed_configs(
    configs: object, arguments: Mapping[str, Any], parameters: Iterable[str], positional: int = 0
) -> tuple[Config, ...]:
    """Return the configurations to choose from, in the order given, each once.

    `configs` are dictionaries (or objects with ``kwargs``, as Triton has them), or a function that
    returns some; it gets those of the `arguments` (the call's, then defaults) that it takes. The
    first `positional` ones are given by position: functions that take any arguments get these so.

    Raises
    ------
    TuningError
        If there are none, or one names a parameter that does not exist.
    """
    known = tuple(parameters)
    found = _called(configs, arguments, positional) if callable(configs) else configs
    if isinstance(found, Mapping | str | bytes) or not isinstance(found, Iterable):
        raise TuningError(
            f"configs are a list of dictionaries, got {type(found).__name__}", hint=_HINT
        )
    unique: dict[str, Config] = {}
    for item in found:
        config = _config(item, known)
        unique.setdefault(config.key, config)
    if not unique:
        raise TuningError("there is no configuration to choose from", hint=_HINT)
    return tuple(unique.values())


def _config(item: object, known: tuple[str, ...]) -> Config:
    values = item if isinstance(item, Mapping) else getattr(item, "kwargs", None)
    if not isinstance(values, Mapping):
        raise TuningError(
            f"a configuration is a dictionary, got {type(item).__name__}: {item!r}", hint=_HINT
        )
    chosen = {str(k): v for k, v in values.items() if k != PASS_CONFIGS}
    if not isinstance(item, Mapping):  # Triton keeps these beside the dictionary
        chosen |= {n: getattr(item, n) for n in _LAUNCH if n in known and hasattr(item, n)}
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise TuningError(
            f"a configuration sets {unknown[0]!r}, which is no parameter of the function",
            hint=f"its parameters are {', '.join(known) or 'none'}",
        )
    passes = values.get(PASS_CONFIGS) or {}
    if not isinstance(passes, Mapping):
        raise TuningError(
            f"pass_configs of a configuration are a dictionary, got {passes!r}",
            hint='write {"block_M": 64, "pass_configs": {tile.PassConfigKey...: True}}',
        )
    return Config(chosen, dict(passes))


def _called(function: Callable[..., Any], arguments: Mapping[str, Any], positional: int) -> Any:
    """Call a user's function with those of the call's arguments that it takes."""
    import inspect

    taken = inspect.signature(function).parameters
    kinds = {p.kind for p in taken.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        if inspect.Parameter.VAR_POSITIONAL not in kinds:
            return function(**arguments)
        first, rest = _as_called(arguments, positional)
        return function(*first, **rest)
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return function(*arguments.values())
    if tuple(taken) == ("args", "kwargs") and not arguments.keys() & taken.keys():
        return function(*_as_called(arguments, positional))  # as older versions called it
    by_name = {name: arguments[name] for name in taken if name in arguments}
    missing = [n for n, p in taken.items() if n not in by_name and p.default is p.empty]
    if not missing:
        return function(**by_name)
    if len(taken) == 1 and len(arguments) > 1:
        return function(dict(arguments))
    if not by_name and len(taken) <= len(arguments):  # TileLang passes them in their order
        return function(*list(arguments.values())[: len(taken)])
    raise TuningError(
        f"the function of configurations wants {missing[0]!r}, which the call does not have",
        hint=f"the call has {', '.join(arguments) or 'no arguments'}",
    )


def _as_called(
    arguments: Mapping[str, Any], positional: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that were given by position, and the others by name."""
    items = list(arguments.items())
    return tuple(value for _, value in items[:positional]), dict(items[positional:])


_KEYS = ("early_config_prune", "perf_model", "top_k")
_PRUNE_HINT = (
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
            raise TuningError("prune_configs_by is not understood", hint=_PRUNE_HINT)
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
        raise TuningError(f"top_k is a number or a share, got {top!r}", hint=_PRUNE_HINT)
    count = int(len(configs) * top) if isinstance(top, float) and top <= 1 else int(top)
    times = {c.key: float(model(**{**arguments, **c.values})) for c in configs}
    chosen = {c.key for c in sorted(configs, key=lambda c: times[c.key])[: max(1, count)]}
    return tuple(c for c in configs if c.key in chosen)


def _function(value: object) -> Callable[..., Any]:
    if not callable(value):
        raise TuningError(f"pruning takes a function, got {type(value).__name__}", hint=_PRUNE_HINT)
    return value
