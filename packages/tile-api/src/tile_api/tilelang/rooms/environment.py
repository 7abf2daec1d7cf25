"""`tilelang.env`, logging, and notes on names that go away."""

from __future__ import annotations

import functools
import logging
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tile_api import cache
from tile_api.settings import Settings

logger = logging.getLogger("tilelang")

CUDA_HOME = os.environ.get("CUDA_HOME", "")


class Environment:
    """TileLang's environment variables as attributes, read when asked for, and its cache.

    ``env.TILELANG_VERBOSE`` is the text of the variable, ``""`` where it is not set; setting
    the attribute sets the variable. Those that mean something here are listed in
    ``docs/reference/environment.md``.
    """

    @property
    def TILELANG_CACHE_DIR(self) -> str:
        """The folder of compiled kernels."""
        from tile_api.disk_cache import disk_cache

        return str(disk_cache().folder)

    def __getattr__(self, name: str) -> str:
        if not name.isupper():
            raise AttributeError(name)
        return os.environ.get(name, "")

    def __setattr__(self, name: str, value: object) -> None:
        os.environ[name] = str(value)

    def is_cache_enabled(self) -> bool:
        """Tell whether kernels are found again."""
        return cache.is_cache_enabled()

    def enable_cache(self) -> None:
        """Let kernels be found again."""
        cache.enable_cache()

    def disable_cache(self) -> None:
        """Compile every kernel anew."""
        cache.disable_cache()

    def is_print_on_compilation_enabled(self) -> bool:
        """Tell whether compilations are reported."""
        return Settings.from_environment().verbose

    def get_default_target(self) -> str:
        """Return the target of kernels that name none."""
        return Settings.from_environment().target

    def get_default_execution_backend(self) -> str:
        """Return ``"auto"``: there is one runtime."""
        return "auto"

    def get_default_verbose(self) -> bool:
        """Tell whether compilations are reported."""
        return Settings.from_environment().verbose


env = Environment()


def set_log_level(level: int | str) -> None:
    """Set from which level on the loggers of this project, and TileLang's name, report.

    Parameters
    ----------
    level
        As for `logging.Logger.setLevel`; names in any case.
    """
    wanted = level.upper() if isinstance(level, str) else level
    for name in ("tilelang", "tile"):
        logging.getLogger(name).setLevel(wanted)


def deprecated_warning(
    method_name: str, new_method_name: str, phaseout_version: str | None = None
) -> None:
    """Warn that a name has another one."""
    until = f", until {phaseout_version}" if phaseout_version else ""
    warnings.warn(
        f"{method_name} is deprecated{until}: use {new_method_name}",
        DeprecationWarning,
        stacklevel=3,
    )


def deprecated(
    method_name: str, new_method_name: str, phaseout_version: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that warns at each call that a function has another name."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def warned(*args: Any, **keywords: Any) -> Any:
            deprecated_warning(method_name, new_method_name, phaseout_version)
            return function(*args, **keywords)

        return warned

    return decorate


def find_lib_path(name: str = "", *args: object) -> list[str]:
    """Return the folder of this package: there is no shared library."""
    return [str(Path(__file__).parent)]
