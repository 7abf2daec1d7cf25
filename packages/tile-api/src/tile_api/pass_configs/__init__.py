"""Pass configurations: TileLang's keys, which of them change anything here, and checks."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tile_core.errors import FrontendTypeError, FrontendValueError, TileWarning

_RENAMED = {"tl.dump_ir_path": "tl.dump_ir_dir"}
_PREFIXES = {"tirx.": "tir."}
"""How newer versions of TileLang spell keys."""


def normalise_pass_configs(configs: Mapping[object, object] | None) -> dict[str, object]:
    """Return `configs` with names as keys and values of the types that the compiler reads.

    Warns of keys that nobody knows, and of those that have nothing to do here. A value of None is
    that of a key that is not there.
    """
    if not isinstance(configs, (Mapping, type(None))):
        raise FrontendTypeError(
            f"pass_configs are a dictionary, got {configs!r}",
            hint="write pass_configs={tile.PassConfigKey.TL_ENABLE_FAST_MATH: True}",
        )
    normal: dict[str, object] = {}
    for key, value in (configs or {}).items():
        if not isinstance(key, str):
            raise FrontendTypeError(
                f"the keys of pass_configs are names, got {key!r}",
                hint="use the members of tile.PassConfigKey",
            )
        name = _name_of(key)
        if value is not None:
            normal[name] = _value_of(name, value)
    return normal


def _name_of(key: str) -> str:
    """Return the name of a key as this project spells it."""
    name = str(key.value) if isinstance(key, Enum) else str(key)
    for theirs, ours in _PREFIXES.items():
        if name.startswith(theirs):
            name = ours + name.removeprefix(theirs)
    return _RENAMED.get(name, name)


def _value_of(name: str, value: object) -> object:
    """Return the value of a key as the compiler reads it; warn if nothing will."""
    from tile_api.frontend.source import warn_caller
    from tile_api.pass_configs.table import table  # few kernels have any

    row = table().get(name)
    if row is None:
        warn_caller(f"pass config {name!r} is not known and is ignored", UserWarning)
        return value
    try:
        read = row.kind.read(value)
    except ValueError:
        raise FrontendValueError(
            f"pass config {name!r} is {row.kind.allowed}, got {value!r}",
            hint=row.hint or "leave it out, or give it such a value",
        ) from None
    if row.targets or read in row.silent:
        return read
    if row.refused:
        raise FrontendValueError(
            f"pass config {name!r} cannot be {value!r}: {row.meaning}", hint=row.hint
        )
    way = f"; {row.hint}" if row.hint else ""
    why = f"has nothing to do here, because {row.meaning}{way}"
    warn_caller(f"pass config {name!r} {why}", TileWarning)
    return read
