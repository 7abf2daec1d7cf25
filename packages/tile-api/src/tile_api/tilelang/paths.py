"""The table of TileLang's module paths, and where each of their names is at home.

A home is ``"module:attribute"``, ``"module:"`` for a module itself, or ``"-reason"`` for a name
without counterpart, with a key of `tile_api.tilelang.unsupported.REASONS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tile_api.tilelang import names as known

VERSION = "0.1.15"
"""The version of TileLang whose names these are."""

_COMPAT = "tile_api.tilelang.compat"


def _names(home: str, names: str) -> dict[str, str]:
    """Return that each of `names` is at `home`; ``new=old`` renames."""
    pairs = (name.partition("=") for name in names.split())
    return {name: f"{home}:{old or name}" for name, _, old in pairs}


def _compat(name: str, names: str) -> dict[str, str]:
    return _names(f"{_COMPAT}.{name}", names)


_LOWER = _compat("compilation", "lower")
_COMPILE = {
    **_names("tile_api.compiling", "compile"),
    **_names("tile_api.parallel_compiling", "par_compile"),
}
_KERNEL = _compat("compilation", "JITKernel")
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
)
_TUNING = _names(
    "tile_api.autotuner",
    "autotune AutoTuner AutotuneResult set_autotune_inputs get_autotune_inputs",
)
_SUPPLY = _names("tile_api.timing.profiler", "TensorSupplyType")
_PROFILER = _names("tile_api.timing.profiler", "Profiler do_bench") | _SUPPLY
_NUMBERS = _names("tile_api.integer_helpers", "cdiv next_power_of_2")
_CONFIGS = _names("tile_api.pass_configs.keys", "PassConfigKey")
_PARAMS = _compat("params", "KernelParam")
_ARTIFACT = _names("tile_api.lowered", "CompiledArtifact=LoweredKernel")
_POSTPROC = _compat(
    "compilation",
    "register_cuda_postproc register_hip_postproc register_c_postproc"
    " register_cuda_postproc_callback register_hip_postproc_callback"
    " register_c_postproc_callback",
)
_LOGGING = _compat("environment", "set_log_level logger")
_CHECKS = _compat(
    "testing",
    "main set_random_seed torch_assert_close requires_cuda requires_cuda_compute_version"
    " requires_cuda_compute_version_ge requires_cuda_compute_version_gt"
    " requires_cuda_compute_version_le requires_cuda_compute_version_lt"
    " requires_cuda_compute_version_eq requires_rocm requires_metal requires_llvm requires_cdna"
    " requires_cuda_or_cdna requires_gfx950 requires_package requires_gpu process_func regression",
)
_TENSORS = {
    **_SUPPLY,
    **_compat("testing", "torch_assert_close"),
    **_compat("params", "map_torch_type get_tensor_supply adapt_torch2tvm is_float8_dtype"),
    **_compat("params", "fp8_remove_negative_zeros_"),
}
_TARGETS = _compat(
    "targets",
    "determine_target check_cuda_availability check_hip_availability check_metal_availability"
    " AVAILABLE_TARGETS AVALIABLE_TARGETS=AVAILABLE_TARGETS SUPPORTED_TARGETS=AVAILABLE_TARGETS"
    " target_is_cuda target_is_hip target_is_volta target_is_turing target_is_ampere"
    " target_is_hopper target_is_sm120 target_is_cdna target_is_rdna target_is_cpu"
    " target_is_gfx950 target_get_warp_size target_has_async_copy target_has_ldmatrix"
    " target_has_stmatrix target_has_bulk_copy target_is_metal auto_detect_target=determine_target",
)
_NVCC = _compat(
    "targets",
    "get_target_compute_version parse_compute_version get_cuda_version have_fp16 have_int8"
    " have_bf16 have_fp8 have_fp4 have_tensorcore have_tma have_cudagraph have_pdl have_mbarrier"
    " get_target_arch is_hopper",
)
_ARCHS = _compat(
    "archs",
    "CUDA CPU CDNA TileDevice=Device auto_infer_current_arch get_arch is_cuda_arch is_volta_arch"
    " is_ampere_arch is_ada_arch is_hopper_arch is_blackwell_arch is_cdna_arch has_mma_support"
    " is_tensorcore_supported_precision get_num_sms get_cuda_device_properties"
    " get_cuda_device_name get_device_name=get_cuda_device_name get_device_attribute"
    " get_shared_memory_per_block get_max_dynamic_shared_size_bytes get_registers_per_block"
    " get_persisting_l2_cache_max_size is_cpu_arch is_rdna_arch check_sm_version",
)
_TEMPLATES = _compat(
    "templates",
    "BaseTemplate MatmulTemplate GEMVTemplate ElementwiseTemplate GeneralReductionTemplate"
    " FlashAttentionTemplate ConvTemplate Hint",
)
_ROLLER = _compat("templates", "Hint NoRasterization Rasterization2DRow Rasterization2DColumn")
_QUANTIZE = _compat("unpacking", known.UNPACKING) | dict.fromkeys(
    known.CUDA_TEXTS.split(), "-sources"
)
_COMPRESSING = _compat("unpacking", "general_compress") | {"interleave_weight": "-sources"}
_EMITTERS = dict.fromkeys(known.EMITTERS.split(), "-emitters") | _names(
    "tile_api.layout", "make_mma_swizzle_layout"
)
_DEPRECATED = _compat("environment", "deprecated deprecated_warning")
_TOOLS = _names("tile_api.tools", "plot_layout") | _compat("analyzer", "Analyzer AnalysisResult")
_SPARSE_LAYOUT = _compat("semi_sparse", "GROUP_CONFIG get_e_factor")
_SPARSE = {
    **_compat("semi_sparse", "randn_semi_sparse randint_semi_sparse arange_semi_sparse"),
    **_SPARSE_LAYOUT,
    **dict.fromkeys(known.SPARSE.split(), "-sparse"),
}
_SIMPLIFY = _compat("compilation", "simplify_prim_func apply_simplify")
_BUILD = _compat("environment", "build_date")
_REGIONS = _compat("scopes", known.REGIONS)
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
    **_compat("environment", "env build_date get_runtime_library_dirs prepend_dll_search_path"),
    "Path": "pathlib:Path",
    "DataType": "tvm:DataType",
    "tvm": "tvm:",
    "dtypes": "tile_api.tilelang.language.dtypes:",
}
_EXPORTED = {
    "PassContext": "tvm.ir.transform:PassContext",
    "PrimFunc": "tile_api.language:PrimFunc",
    "Range": "tvm.ir:Range",
    "Target": "tvm.target:Target",
    "TVMTarget": "tvm.target:Target",
    "logger": f"{_COMPAT}.environment:logger",
    "tirx": "tvm.tirx:",
    "tvm": "tvm:",
}
"""Names that stand in many modules of TileLang, because those use them: most are of TVM."""

_OF_MODULES: dict[str, Mapping[str, str]] = {
    "": _TOP,
    "jit": {
        **_JIT,
        **_PARAMS,
        **_names("tile_api.compiling", "cached=compile"),
        **_names("tile_api.language", "prim_func JITFunc"),
        **_compat("targets", "determine_target"),
        **_compat("archs", "get_available_cpu_count"),
        **_LOGGING,
    },
    "jit.kernel": {**_JIT, **_LOGGING},
    "jit.param": _PARAMS,
    "jit.exceptions": _compat("compilation", "JITNoBuilderError EagerJITBuildError"),
    "cache": {**_CACHE, **_KERNEL, **_compat("environment", "env")},
    "env": _CACHE | _LOGGING | _compat("environment", known.ENVIRONMENT),
    "backend.target": _TARGETS,
    "layout": _LAYOUTS,
    "layout.layout": _LAYOUTS,
    "layout.fragment": _LAYOUTS,
    "layout.swizzle": _LAYOUTS,
    "layout.swizzle_mode": _LAYOUTS,
    "profiler": {**_PROFILER, **_TENSORS, **_PARAMS},
    "profiler.bench": {**_PROFILER, **_LOGGING, **_compat("archs", "device")},
    "autodd": {"main": "-reducing"},
    "autotuner": _TUNING,
    "autotuner.tuner": {**_TUNING, **_LOGGING},
    "autotuner.param": _TUNING,
    "autotuner.capture": _TUNING,
    "math": _NUMBERS,
    "transform": {**_CONFIGS, **_SIMPLIFY},
    "transform.pass_config": _CONFIGS,
    "transform.simplify": _SIMPLIFY,
    "engine": {**_LOWER, **_POSTPROC, **_PARAMS, **_ARTIFACT},
    "engine.lower": _LOWER,
    "engine.callback": _POSTPROC,
    "engine.param": {**_PARAMS, **_ARTIFACT},
    "language.dtypes": _compat("types", "_TORCH_DTYPE_TO_STR _STR_TO_TORCH_DTYPE _all_dtypes int_")
    | _compat("types", "resolve_torch_storage_dtype"),
    "language.fp8": _compat("types", "determine_fp8_type determine_torch_fp8_type"),
    "testing": {**_CHECKS, **_TARGETS, "nvcc": "tile_api.tilelang.contrib.nvcc:"},
    "testing.perf_regression": _compat("testing", "process_func regression"),
    "utils": {**_TENSORS, **_TARGETS, **_DEPRECATED, **_REGIONS, **_BUILD},
    "utils.tensor": _TENSORS,
    "utils.target": _TARGETS,
    "utils.deprecated": _DEPRECATED,
    "utils.device": _compat("targets", "get_current_device is_cuda_available IS_MPS")
    | _compat("archs", "IS_CUDA IS_NPU device_synchronize get_available_cpu_count"),
    "utils.sparse": _SPARSE,
    "utils.language": _REGIONS,
    "utils.version": _BUILD,
    "contrib.nvcc": _NVCC,
    "cuda.target": _TARGETS,
    "rocm.target": _TARGETS,
    "metal.target": _TARGETS,
    "carver": {**_ARCHS, **_ROLLER, **_TEMPLATES},
    "carver.arch": {**_ARCHS, **_TARGETS},
    **dict.fromkeys((f"carver.arch.{name}" for name in known.ARCHS.split()), _ARCHS),
    "carver.template": _TEMPLATES,
    **dict.fromkeys((f"carver.template.{name}" for name in known.SHAPES.split()), _TEMPLATES),
    "carver.roller": {**_ROLLER, **_ARCHS},
    "carver.roller.hint": _ROLLER,
    "carver.roller.rasterization": _ROLLER,
    "tools": _TOOLS,
    "tools.plot_layout": _TOOLS,
    "tools.Analyzer": {**_TOOLS, **_LOGGING},
    "tools.analyzer": _TOOLS,
    "quantize": {**_QUANTIZE, **_COMPRESSING},
    "quantize.quantization": _QUANTIZE,
    "quantize.utils": _COMPRESSING,
    "quantize.lop3": _QUANTIZE,
    "quantize.mxfp": _QUANTIZE,
    "tileop": _names("tile_api.language", "GemmWarpPolicy"),
    "tileop.base": _names("tile_api.language", "GemmWarpPolicy"),
    "intrinsics": _EMITTERS,
    "cuda.intrinsics": _EMITTERS,
    "rocm.intrinsics": _EMITTERS,
    **dict.fromkeys((f"intrinsics.{name}" for name in known.INTRINSICS.split()), _EMITTERS),
    **dict.fromkeys((f"cuda.intrinsics.{name}" for name in known.INTRINSICS.split()), _EMITTERS),
    "cuda.intrinsics.sparse_layout": _SPARSE_LAYOUT,
    "libinfo": _compat("environment", "find_lib_path get_dll_directories=get_runtime_library_dirs"),
}


def _modules() -> tuple[dict[str, Mapping[str, str]], dict[str, str]]:
    """Return the names of all modules: those with a counterpart, and the rest with a reason."""
    rows: dict[str, dict[str, str]] = {path: {} for path in known.LANGUAGE.split()}
    stars = dict.fromkeys(rows, "tile_api.language")
    for head, names in known.read_names().items():
        path, _, kind = head.partition(": ")
        *language, reason = kind.split()
        rows[path] = {name: _EXPORTED.get(name, f"-{reason}") for name in names}
        if language:
            stars[path] = "tile_api.language"
    for where, older in known.OLDER.items():
        path, _, key = where.partition(" ")
        rows.setdefault(path, {}).update(dict.fromkeys(older.split(), f"-{key}"))
    for path, homes in _OF_MODULES.items():
        rows.setdefault(path, {}).update(homes)
    return dict(sorted(rows.items())), stars


MODULES, STARS = _modules()
"""Names of each module by its path below ``tilelang``, packages before what is in them; and the
module all of whose names are there, too, for some of the paths."""
