"""Others' packages that something needs: imported, or what is wrong with them, and the way out."""

from __future__ import annotations

import re
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Final

from tile_core.errors import MissingPackage, Note
from tile_core.installed import copies

OLDEST: Final = MappingProxyType(
    {
        "numpy": ("1.26", "numpy>=1.26"),
        "torch": ("2.4", "tile-api[torch]"),
        "jax": ("0.6", "tile-api[jax]"),
    }
)
"""The oldest version that works, and what is installed to have one."""


def needed(package: str, what: str) -> ModuleType:
    """Return the module of a package that `what` needs.

    Raises
    ------
    MissingPackage
        If there is none, if it is too old, or if importing it fails: half of one version lies over
        another, or libraries are missing. All that is installed under its name is told.
    """
    try:
        module = import_module(package)
    except Exception as error:  # what is half installed raises what it likes
        why = "is not installed"
        if not (isinstance(error, ModuleNotFoundError) and error.name == package):
            why = f"cannot be imported: {type(error).__name__}: {error}"
        raise _missing(package, what, why) from error
    version = str(getattr(module, "__version__", "unknown"))  # a folder left over has none
    if is_too_old(package, version):
        why = f"has version {version}, and not {OLDEST[package][0]} or newer"
        raise _missing(package, what, why)
    return module


def is_too_old(package: str, version: str) -> bool:
    """Whether a version of one of these packages is too old.

    Examples
    --------
    >>> is_too_old("numpy", "1.25.2"), is_too_old("torch", "2.13.0+cpu")
    (True, False)
    """
    return _numbers(version) < _numbers(OLDEST[package][0])


def several(package: str) -> str:
    """Return which versions of a package are installed, and where; empty if there is but one."""
    found = copies(package)
    if len({version for version, _ in found}) < 2:
        return ""
    places = " and ".join(f"{package} {version} in {place}" for version, place in found)
    return f"installed are {places}"


def _missing(package: str, what: str, why: str) -> MissingPackage:
    told, source = several(package), OLDEST[package][1]
    hint = f"python -m pip install --upgrade '{source}'"
    if told:
        hint = f"python -m pip uninstall {package}, until none is left; then {hint}"
    notes = (Note(told),) if told else ()
    return MissingPackage(f"{what} needs {package}, which {why}", notes=notes, hint=hint)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
