"""The table of TileLang's module paths, and where each of their names is at home."""

from __future__ import annotations

from collections.abc import Mapping

VERSION = "0.1.15"
"""The version of TileLang whose names these are."""

_ROOMS = "tile_api.tilelang.rooms"


def _names(home: str, names: str) -> dict[str, str]:
    """Return that each of `names` is at `home`; ``new=old`` renames."""
    pairs = (name.partition("=") for name in names.split())
    return {name: f"{home}:{old or name}" for name, _, old in pairs}


_COMPILING = _names("tile_api.compiling", "compile par_compile") | _names(
    f"{_ROOMS}.lowering", "lower"
)
_JIT = (
    _COMPILING
    | _names("tile_api.jitting", "jit lazy_jit=jit JITImpl=JITKernelFactory")
    | _names("tile_api.kernel", "JITKernel=CompiledKernel CompiledArtifact=CompiledKernel")
)
_CACHE = _names("tile_api.cache", "clear_cache enable_cache disable_cache is_cache_enabled")
_LAYOUTS = _names(
    "tile_api.layout",
    "Layout Fragment SwizzleMode make_swizzled_layout make_full_bank_swizzled_layout"
    " make_half_bank_swizzled_layout make_quarter_bank_swizzled_layout make_linear_layout"
    " make_wgmma_swizzled_layout make_gemm_fragment_8x8 make_gemm_fragment_8x8_transposed"
    " make_fully_replicated_layout_fragment make_mma_swizzle_layout",
)
_TUNING = _names(
    "tile_api.autotuner",
    "autotune AutoTuner AutotuneResult set_autotune_inputs get_autotune_inputs",
)
_SUPPLY = _names("tile_api.profiler", "TensorSupplyType")
_PROFILER = _names("tile_api.profiler", "Profiler do_bench") | _SUPPLY
_NUMBERS = _names("tile_api.numbers", "cdiv next_power_of_2")
_CONFIGS = _names("tile_api.pass_configs", "PassConfigKey")

MODULES: Mapping[str, Mapping[str, str]] = {
    "": {
        **_JIT,
        **_CACHE,
        **_TUNING,
        **_PROFILER,
        **_NUMBERS,
        **_CONFIGS,
        **_names("tile_api.layout", "Layout Fragment"),
    },
    "language": {},
    "jit": _JIT,
    "jit.kernel": _JIT,
    "cache": _CACHE,
    "layout": _LAYOUTS,
    "layout.layout": _LAYOUTS,
    "layout.fragment": _LAYOUTS,
    "layout.swizzle": _LAYOUTS,
    "profiler": _PROFILER,
    "profiler.bench": _PROFILER,
    "autotuner": _TUNING,
    "math": _NUMBERS,
    "transform": _CONFIGS,
    "transform.pass_config": _CONFIGS,
}
"""Names of each module by its path below ``tilelang``."""

STARS: Mapping[str, str] = {"language": "tile_api.language"}
"""Modules that have all public names of another one."""
