"""The table of TileLang's module paths, and where each of their names is at home.

A home is ``"module:attribute"``, ``"module:"`` for a module itself, or ``"-reason"`` for a name
without counterpart, with a key of `tile_api.tilelang.unsupported.REASONS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tile_api.tilelang import internals

VERSION = "0.1.15"
"""The version of TileLang whose names these are."""

_ROOMS = "tile_api.tilelang.rooms"


def _names(home: str, names: str) -> dict[str, str]:
    """Return that each of `names` is at `home`; ``new=old`` renames."""
    pairs = (name.partition("=") for name in names.split())
    return {name: f"{home}:{old or name}" for name, _, old in pairs}


def _room(name: str, names: str) -> dict[str, str]:
    return _names(f"{_ROOMS}.{name}", names)


_LOWER = _room("lowering", "lower")
_COMPILE = _names("tile_api.compiling", "compile par_compile")
_KERNEL = _names("tile_api.kernel", "JITKernel=CompiledKernel")
_JIT = {
    **_COMPILE,
    **_KERNEL,
    **_names("tile_api.jitting", "jit lazy_jit=jit JITImpl=JITKernelFactory"),
}
_CACHE = {
    **_names("tile_api.cache", "clear_cache enable_cache disable_cache is_cache_enabled"),
    **_names("tile_api.compiling", "cached=compile"),
}
_LAYOUTS = _names(
    "tile_api.layout",
    "Layout Fragment SwizzleMode make_swizzled_layout make_full_bank_swizzled_layout"
    " make_half_bank_swizzled_layout make_quarter_bank_swizzled_layout make_linear_layout"
    " make_wgmma_swizzled_layout make_gemm_fragment_8x8 make_gemm_fragment_8x8_transposed"
    " make_fully_replicated_layout_fragment make_mma_swizzle_layout",
) | dict.fromkeys(internals.LAYOUTS.split(), "-emitters")
_TUNING = _names(
    "tile_api.autotuner",
    "autotune AutoTuner AutotuneResult set_autotune_inputs get_autotune_inputs",
)
_SUPPLY = _names("tile_api.profiler", "TensorSupplyType")
_PROFILER = _names("tile_api.profiler", "Profiler do_bench") | _SUPPLY
_NUMBERS = _names("tile_api.numbers", "cdiv next_power_of_2")
_CONFIGS = _names("tile_api.pass_configs", "PassConfigKey")
_PARAMS = _room("params", "KernelParam")
_ARTIFACT = _names("tile_api.lowered", "CompiledArtifact=LoweredKernel")
_POSTPROC = _room(
    "hooks",
    "register_cuda_postproc register_hip_postproc register_c_postproc"
    " register_cuda_postproc_callback register_hip_postproc_callback"
    " register_c_postproc_callback",
)
_LOGGING = _room("environment", "set_log_level logger")
_CHECKS = _room(
    "testing",
    "main set_random_seed torch_assert_close requires_cuda requires_cuda_compute_version"
    " requires_cuda_compute_version_ge requires_cuda_compute_version_gt"
    " requires_cuda_compute_version_le requires_cuda_compute_version_lt"
    " requires_cuda_compute_version_eq requires_rocm requires_metal requires_llvm requires_cdna"
    " requires_cuda_or_cdna requires_gfx950 requires_package requires_gpu process_func regression",
)
_TENSORS = {
    **_SUPPLY,
    **_room("testing", "torch_assert_close"),
    **_room("params", "map_torch_type get_tensor_supply adapt_torch2tvm"),
}
_TARGETS = _room(
    "targets",
    "determine_target check_cuda_availability check_hip_availability check_metal_availability"
    " AVAILABLE_TARGETS AVALIABLE_TARGETS=AVAILABLE_TARGETS SUPPORTED_TARGETS=AVAILABLE_TARGETS"
    " target_is_cuda target_is_hip target_is_volta target_is_turing target_is_ampere"
    " target_is_hopper target_is_sm120 target_is_cdna target_is_rdna target_is_cpu"
    " target_is_gfx950 target_get_warp_size target_has_async_copy target_has_ldmatrix"
    " target_has_stmatrix target_has_bulk_copy",
)
_NVCC = _room(
    "targets",
    "get_target_compute_version parse_compute_version get_cuda_version have_fp16 have_int8"
    " have_bf16 have_fp8 have_fp4 have_tensorcore have_tma is_hopper",
)
_ARCHS = _room(
    "archs",
    "CUDA CPU CDNA TileDevice=Device auto_infer_current_arch get_arch is_cuda_arch is_volta_arch"
    " is_ampere_arch is_ada_arch is_hopper_arch is_blackwell_arch is_cdna_arch has_mma_support"
    " is_tensorcore_supported_precision get_num_sms get_cuda_device_properties"
    " get_cuda_device_name get_device_attribute get_shared_memory_per_block"
    " get_max_dynamic_shared_size_bytes get_persisting_l2_cache_max_size",
)
_TEMPLATES = _room(
    "templates",
    "BaseTemplate MatmulTemplate GEMVTemplate ElementwiseTemplate GeneralReductionTemplate"
    " FlashAttentionTemplate ConvTemplate Hint",
)
_ROLLER = _room("templates", "Hint NoRasterization Rasterization2DRow Rasterization2DColumn")
_QUANTIZE = _room("unpacking", internals.UNPACKING) | dict.fromkeys(
    internals.CUDA_TEXTS.split(), "-sources"
)
_COMPRESSING = _room("compressing", "general_compress") | {"interleave_weight": "-sources"}
_EMITTERS = dict.fromkeys(internals.EMITTERS.split(), "-emitters") | _names(
    "tile_api.layout", "make_mma_swizzle_layout"
)
_DEPRECATED = _room("environment", "deprecated deprecated_warning")
_TOOLS = _names("tile_api.tools", "plot_layout") | _room("analyzer", "Analyzer AnalysisResult")
_SPARSE = _room("semi_sparse", "randn_semi_sparse randint_semi_sparse arange_semi_sparse") | (
    dict.fromkeys(internals.SPARSE.split(), "-sparse")
)
_SIMPLIFY = _room("passes", "simplify_prim_func apply_simplify")
_TOP = {
    **_JIT,
    **_LOWER,
    **_CACHE,
    **_TUNING,
    **_PROFILER,
    **_NUMBERS,
    **_CONFIGS,
    **_POSTPROC,
    **_LOGGING,
    **_DEPRECATED,
    **_ARTIFACT,
    **_names("tile_api.layout", "Layout Fragment"),
    **_room("environment", "env"),
    "tvm": "tvm:",
}

_OF_MODULES: dict[str, Mapping[str, str]] = {
    "": _TOP,
    "jit": {**_JIT, **_PARAMS},
    "jit.kernel": _JIT,
    "jit.param": _PARAMS,
    "jit.adapter": dict.fromkeys(internals.ADAPTERS.split(), "-adapters"),
    "cache": _CACHE,
    "env": _CACHE | _room("environment", "env Environment CUDA_HOME"),
    "layout": _LAYOUTS,
    "layout.layout": _LAYOUTS,
    "layout.fragment": _LAYOUTS,
    "layout.swizzle": _LAYOUTS,
    "layout.cute": dict.fromkeys(internals.CUTE.split(), "-cute"),
    "profiler": _PROFILER,
    "profiler.bench": _PROFILER,
    "autodd": {"main": "-reducing"},
    "autotuner": _TUNING,
    "autotuner.tuner": _TUNING,
    "autotuner.param": _TUNING,
    "autotuner.capture": _TUNING,
    "math": _NUMBERS,
    "transform": {**_CONFIGS, **_SIMPLIFY, **dict.fromkeys(internals.PASSES.split(), "-passes")},
    "transform.pass_config": _CONFIGS,
    "transform.simplify": _SIMPLIFY | dict.fromkeys(internals.SIMPLIFIERS.split(), "-passes"),
    "analysis": dict.fromkeys(internals.ANALYSES.split(), "-passes"),
    "engine": {**_LOWER, **_POSTPROC, **_PARAMS, **_ARTIFACT},
    "engine.lower": _LOWER,
    "engine.callback": _POSTPROC,
    "engine.param": {**_PARAMS, **_ARTIFACT},
    "engine.phase": dict.fromkeys(internals.PHASES.split(), "-phases"),
    "testing": _CHECKS,
    "testing.perf_regression": _room("testing", "process_func regression"),
    "utils": {**_TENSORS, **_TARGETS, **_DEPRECATED},
    "utils.tensor": _TENSORS,
    "utils.target": _TARGETS,
    "utils.deprecated": _DEPRECATED,
    "utils.device": _room("targets", "get_current_device is_cuda_available IS_MPS"),
    "utils.sparse": _SPARSE,
    "utils.language": _room(
        "scopes", "is_global is_shared is_shared_dynamic is_fragment is_local is_local_var"
    ),
    "contrib": {},
    "contrib.nvcc": _NVCC,
    "carver": {**_ARCHS, **_ROLLER},
    "carver.arch": _ARCHS,
    "carver.arch.driver": _ARCHS,
    "carver.arch.driver.cuda_driver": _ARCHS,
    "carver.arch.arch_base": _ARCHS,
    "carver.arch.cuda": _ARCHS,
    "carver.arch.cdna": _ARCHS,
    "carver.arch.cpu": _ARCHS,
    "carver.template": _TEMPLATES,
    "carver.template.base": _TEMPLATES,
    "carver.roller": {**_ROLLER, **dict.fromkeys(internals.ROLLER.split(), "-roller")},
    "carver.roller.hint": _ROLLER,
    "carver.roller.rasterization": _ROLLER,
    "carver.roller.policy": dict.fromkeys(internals.ROLLER.split(), "-roller"),
    "tools": _TOOLS,
    "tools.plot_layout": _TOOLS,
    "tools.analyzer": _TOOLS,
    "tools.cuda": {},
    "tools.cuda.iket": dict.fromkeys(internals.TRACERS.split(), "-tracing"),
    "tools.pass_visualizer": dict.fromkeys(internals.TRACERS.split(), "-tracing"),
    "tools.lower_trace": dict.fromkeys(internals.TRACERS.split(), "-tracing"),
    "quantize": {**_QUANTIZE, **_COMPRESSING},
    "quantize.quantization": _QUANTIZE,
    "quantize.utils": _COMPRESSING,
    "quantize.lop3": _QUANTIZE,
    "quantize.mxfp": _QUANTIZE,
    "tileop": {},
    "tileop.base": _names("tile_api.language", "GemmWarpPolicy"),
    "tileop.gemm": {},
    "intrinsics": _EMITTERS,
    "ir": dict.fromkeys(internals.NODES.split(), "-phases"),
    "libinfo": _room("environment", "find_lib_path"),
}


def _languages() -> tuple[dict[str, Mapping[str, str]], dict[str, str]]:
    """Return the modules of the language: each of them has all its names."""
    rows: dict[str, Mapping[str, str]] = {}
    stars: dict[str, str] = {}
    for dialect in ("", *(f"{name}." for name in internals.DIALECTS.split())):
        if dialect:
            rows[dialect[:-1]] = {}
        for part in ("", *internals.LANGUAGE.split()):
            path = f"{dialect}language.{part}".rstrip(".")
            rows[path], stars[path] = {}, "tile_api.language"
    for path in internals.INTRINSICS.split():
        rows[f"intrinsics.{path}"] = rows[f"cuda.intrinsics.{path}"] = _EMITTERS
    rows["cuda.intrinsics"] = rows["rocm.intrinsics"] = _EMITTERS
    return rows, stars


_ROWS, STARS = _languages()
"""Modules that have all public names of another one."""

MODULES: Mapping[str, Mapping[str, str]] = dict(sorted({**_OF_MODULES, **_ROWS}.items()))
"""Names of each module by its path below ``tilelang``; packages before what is in them."""
