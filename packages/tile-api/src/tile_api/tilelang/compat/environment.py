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
ROCM_HOME = os.environ.get("ROCM_HOME", "")
TL_ROOT = str(Path(__file__).parents[1])
TL_LIBS: list[str] = []
THIRD_PARTY_ROOT = CUTLASS_INCLUDE_DIR = TILELANG_TEMPLATE_PATH = ""
TILELANG_HIP_SAVE_TEMP_FILES = "0"


class CacheState:
    """Whether kernels are found again, as functions of a class."""

    enable = staticmethod(cache.enable_cache)
    disable = staticmethod(cache.disable_cache)
    is_enabled = staticmethod(cache.is_cache_enabled)


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

    is_cache_enabled = staticmethod(cache.is_cache_enabled)
    enable_cache = staticmethod(cache.enable_cache)
    disable_cache = staticmethod(cache.disable_cache)

    def is_cache_globally_disabled(self) -> bool:
        """Tell whether kernels are compiled anew each time."""
        return not cache.is_cache_enabled()

    def is_autotune_cache_disabled(self) -> bool:
        """Tell whether results of tuning are not kept."""
        return self.TILELANG_AUTO_TUNING_DISABLE_CACHE.lower() in _YES

    def is_print_on_compilation_enabled(self) -> bool:
        """Tell whether compilations are reported."""
        return Settings.from_environment().verbose

    def get_default_target(self) -> str:
        """Return the target of kernels that name none."""
        return Settings.from_environment().target

    def get_default_execution_backend(self) -> str:
        """Return ``"auto"``: there is one runtime."""
        return "auto"

    def _unlimited(self) -> float | None:
        """Return None: a compilation takes as long as it takes, and times are in reports."""
        return None

    get_compile_timeout_seconds = get_pass_profile_threshold_ms = _unlimited

    def _only_way(self) -> str:
        """Return ``""``: there is one cost model, and reports show passes and differences."""
        return ""

    get_pass_diff_mode = get_lower_trace_mode = get_default_layout_cost_model = _only_way

    def get_lower_trace_dir(self) -> str:
        """Return the folder of such traces."""
        return self.TILELANG_LOWER_TRACE_DIR

    is_jit_diagnostics_enabled = is_pass_profile_enabled = is_print_on_compilation_enabled
    get_default_verbose = is_print_on_compilation_enabled

    def _no(self) -> bool:
        """Tell that it is not so: the question is one of another project's build."""
        return False

    should_use_kernel_cache_lib_stamp = should_cleanup_temp_files = _no
    is_running_autodd = is_light_import = is_span_enable = _no


_YES = ("1", "true", "yes", "on")

env = Environment()


def set_log_level(level: int | str) -> None:
    """Set from which level on the loggers of this project, and TileLang's name, report."""
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


def build_date(version_str: str | None = None) -> str:
    """Return ``""``: nothing of this package is built."""
    return ""


def get_runtime_library_dirs() -> list[str]:
    """Return no folders: there are no shared libraries."""
    return []


def prepend_dll_search_path(paths: object) -> None:
    """Do nothing: there are no shared libraries to be found."""


def prepend_pythonpath(path: object) -> None:
    """Let processes that are started from this one find modules in a folder."""
    parts = (str(path), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, parts))


def find_lib_path(name: str = "", py_ext: bool = False) -> list[str]:
    """Return the folder of this package: there is no shared library."""
    return [str(Path(__file__).parent)]
