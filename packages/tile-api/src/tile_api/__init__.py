"""What users of the tile language import.

Names are resolved on first use: ``import tile_api`` loads neither TVM nor torch nor NumPy.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import tile_core

if TYPE_CHECKING:
    from tile_api import language, layout, nn, ranks, reducing, settings, tools, tracing
    from tile_api.arrays.annotations import Array
    from tile_api.arrays.capturing.scan import scan
    from tile_api.arrays.function import Function, function
    from tile_api.arrays.planning.plan import Blocks
    from tile_api.autotuner import AutoTuner, autotune
    from tile_api.cache import disable_cache, enable_cache, is_cache_enabled
    from tile_api.compile_keys import compile_key
    from tile_api.compiling import compile
    from tile_api.cost import estimate
    from tile_api.integer_helpers import cdiv, next_power_of_2
    from tile_api.jitting import jit
    from tile_api.kernel import CompiledKernel
    from tile_api.kernel import CompiledKernel as JITKernel
    from tile_api.layout import Fragment, Layout
    from tile_api.lowering import lower
    from tile_api.parallel_compiling import par_compile
    from tile_api.pass_configs.keys import PassConfigKey
    from tile_api.rank_blocks import ranks_as_blocks
    from tile_api.timing.profiler import Profiler, TensorSupplyType, do_bench, do_bench_cudagraph

__author__ = "The tile authors"
__version__ = "0.1.0"

if getattr(tile_core, "__author__", None) != __author__:
    _place = next(iter(getattr(tile_core, "__path__", ())), tile_core.__file__)
    raise ImportError(
        f"[TL7004] the package tile_core in {_place} is not this project's\n"
        "hint: python -m pip uninstall tile-core; then install tile-core "
        f"{__version__} from where tile-api {__version__} came from"
    )
tile_core.verify_companion("tile_core", __version__)
tile_core.verify_companion("tile_launch", __version__)  # from now on it sees forks

_HOMES = {
    "Array": "tile_api.arrays.annotations:Array",
    "Blocks": "tile_api.arrays.planning.plan:Blocks",
    "CompiledKernel": "tile_api.kernel:CompiledKernel",
    "Fragment": "tile_api.layout:Fragment",
    "Function": "tile_api.arrays.function:Function",
    "JITKernel": "tile_api.kernel:CompiledKernel",
    "Layout": "tile_api.layout:Layout",
    "PassConfigKey": "tile_api.pass_configs.keys:PassConfigKey",
    "Profiler": "tile_api.timing.profiler:Profiler",
    "TensorSupplyType": "tile_api.timing.profiler:TensorSupplyType",
    "AutoTuner": "tile_api.autotuner:AutoTuner",
    "autotune": "tile_api.autotuner:autotune",
    "autotuner": "tile_api.autotuner:",
    "cache": "tile_api.cache:",
    "cdiv": "tile_api.integer_helpers:cdiv",
    "compile": "tile_api.compiling:compile",
    "compile_key": "tile_api.compile_keys:compile_key",
    "disable_cache": "tile_api.cache:disable_cache",
    "do_bench": "tile_api.timing.profiler:do_bench",
    "do_bench_cudagraph": "tile_api.timing.profiler:do_bench_cudagraph",
    "estimate": "tile_api.cost:estimate",
    "enable_cache": "tile_api.cache:enable_cache",
    "is_cache_enabled": "tile_api.cache:is_cache_enabled",
    "function": "tile_api.arrays.function:function",
    "jit": "tile_api.jitting:jit",
    "language": "tile_api.language:",
    "layout": "tile_api.layout:",
    "lower": "tile_api.lowering:lower",
    "next_power_of_2": "tile_api.integer_helpers:next_power_of_2",
    "nn": "tile_api.nn:",
    "par_compile": "tile_api.parallel_compiling:par_compile",
    "profiler": "tile_api.timing.profiler:",
    "ranks": "tile_api.ranks:",
    "ranks_as_blocks": "tile_api.rank_blocks:ranks_as_blocks",
    "reducing": "tile_api.reducing:",
    "scan": "tile_api.arrays.capturing.scan:scan",
    "settings": "tile_api.settings:",
    "tools": "tile_api.tools:",
    "tracing": "tile_api.tracing:",
}

__all__ = [
    "Array", "AutoTuner", "Blocks", "CompiledKernel", "Fragment", "Function", "JITKernel",
    "Layout", "PassConfigKey", "Profiler", "TensorSupplyType", "autotune", "cdiv", "compile",
    "compile_key", "disable_cache", "do_bench", "do_bench_cudagraph", "enable_cache",
    "estimate", "function", "is_cache_enabled", "jit", "language", "layout", "lower",
    "next_power_of_2", "nn", "par_compile", "ranks", "ranks_as_blocks", "reducing", "scan",
    "settings", "tools", "tracing",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        if name.startswith("_") or find_spec(f"{__name__}.{name}"):  # Python looks for these
            raise AttributeError(f"module 'tile_api' has no attribute {name!r}")
        from tile_api.frontend.python_errors import unknown_name

        raise unknown_name("tile_api", name, __all__, "tile.", _elsewhere(name))
    module, _, attribute = home.partition(":")
    loaded = importlib.import_module(module)
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value
    return value


def _elsewhere(name: str) -> str | None:
    """Return where a name is that is looked for here, if it is in a namespace beside this one."""
    if name in dir(importlib.import_module("tile_api.nn")):
        return f"it is tile.nn.{name}"
    if name in dir(importlib.import_module("tile_api.language")):
        return f"it is T.{name}: import tile_api.language as T"
    return None


def __dir__() -> list[str]:
    return sorted(__all__)
