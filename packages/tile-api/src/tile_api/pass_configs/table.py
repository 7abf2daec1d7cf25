"""The table of pass configurations: what each holds, where it counts, and what it does.

From it come the checks of values, the warnings about keys that have nothing to do here, and the
page ``docs/reference/pass-configs.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tile_api.pass_configs.keys import PassConfigKey
from tile_core.records import dataclass

Key = PassConfigKey

GPUS = "cuda, hip"
EVERYWHERE = "cpu, cuda, hip"


@dataclass(frozen=True, slots=True)
class ConfigKind:
    """What a value may be."""

    allowed: str  # in words, as they go on after "is"
    read: Callable[[object], object]  # the value as the compiler reads it, or `ValueError`


@dataclass(frozen=True, slots=True)
class PassConfig:
    """One key of ``pass_configs``."""

    key: PassConfigKey
    kind: ConfigKind
    default: object  # what holds without it
    targets: str  # kinds of targets on which it does something
    meaning: str  # what it does; goes on after "because" if that is nothing
    silent: tuple[object, ...] = ()  # values that ask for what is done anyway
    refused: bool = False  # whether ignoring another value would change results
    hint: str = ""  # what to do instead


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise ValueError


def _level(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10:
        return value
    raise ValueError


def _milliseconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise ValueError


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError


def _flags(value: object) -> str:
    words = value.split() if isinstance(value, str) else value
    if isinstance(words, list | tuple) and all(isinstance(word, str) for word in words):
        return " ".join(words)
    raise ValueError


def _bits(value: object) -> object:
    if value in (32, 64) and not isinstance(value, bool | float):
        return value
    raise ValueError


def _anything(value: object) -> object:
    return value


FLAG = ConfigKind("True or False", _flag)
LEVEL = ConfigKind("a number from 0 to 10", _level)
TIME = ConfigKind("a number of milliseconds", _milliseconds)
TEXT = ConfigKind("text", _text)
FLAGS = ConfigKind("a string or a list of strings", _flags)
BITS = ConfigKind("32 or 64", _bits)
ANYTHING = ConfigKind("anything", _anything)


def _idle(key: PassConfigKey, why: str, always: object = False, **more: Any) -> PassConfig:
    """Return the row of a flag that does nothing: it always is as if it were `always`."""
    return PassConfig(key, FLAG, always, "", why, silent=(always,), **more)


@lru_cache(maxsize=1)
def table() -> dict[str, PassConfig]:
    """Return all rows by the names of their keys."""
    rows = (*_of_mathematics(), *_of_gpus(), *_of_gpus_alike(), *_of_compilers())
    return {
        row.key.value: row
        for row in (*rows, *_of_checks(), *_of_looking(), *_of_expressions(), *_of_tir())
    }


def _of_mathematics() -> tuple[PassConfig, ...]:
    return (
        PassConfig(Key.TL_ENABLE_FAST_MATH, FLAG, False, GPUS,
            "Functions and divisions are approximated, and on NVIDIA GPUs subnormal numbers are "
            "zero: `--use_fast_math` for their compilers, `-fapprox-func -freciprocal-math` for "
            "clang. CPUs and emulators have one implementation of each function."),
        PassConfig(Key.TL_DISABLE_FAST_MATH, FLAG, False, GPUS,
            "Nothing is approximated, whatever `tl.enable_fast_math` says."),
        PassConfig(Key.TL_ALLOW_TF32, FLAG, False, GPUS,
            "Matrix products may round float32 operands to tf32 (xf32 on AMD GPUs)."),
        _idle(Key.TL_ENABLE_FP32X2_REDUCTION,
            "reductions are written as single operations, which the compiler of the GPU may pair"),
    )  # fmt: skip


def _of_gpus() -> tuple[PassConfig, ...]:
    return (
        PassConfig(Key.TL_DISABLE_WARP_SPECIALIZED, FLAG, False, "cuda",
            "On Hopper all threads copy: no warps do it for others, and no results leave in bulk."),
        PassConfig(Key.TL_DISABLE_TMA_LOWER, FLAG, False, "cuda",
            "The same as `tl.disable_warp_specialized`: bulk copies are what such warps are for."),
        PassConfig(Key.TL_DISABLE_WGMMA, FLAG, False, "cuda",
            "Warps multiply on Hopper where warpgroups could."),
        PassConfig(Key.TL_DISABLE_SHUFFLE_ELECT, FLAG, False, "cuda",
            "Bulk copies are started by a thread of a fixed number instead of an elected one."),
        PassConfig(Key.TL_ENABLE_ASYNC_COPY, FLAG, True, "cuda",
            "False: copies go through registers instead of `cp.async`."),
        PassConfig(Key.HIP_LDS_LOAD, FLAG, True, "hip",
            "False: copies go through registers instead of straight into shared memory."),
        PassConfig(Key.TL_DISABLE_PIPELINE_FOLDING, FLAG, False, GPUS,
            "The last iterations of software pipelines are peeled off the steady state, which has "
            "no branch then: longer code, for a comparison less per iteration."),
        PassConfig(Key.TL_DISABLE_STORE_STAGING, FLAG, False, GPUS,
            "8-bit and 16-bit results of matrix products are stored from where they are: by "
            "default rows are put together in shared memory first."),
        PassConfig(Key.TL_DISABLE_SHARED_MEMORY_REUSE, FLAG, False, GPUS,
            "Every shared tile has bytes of its own."),
    )  # fmt: skip


def _of_gpus_alike() -> tuple[PassConfig, ...]:
    """Return the rows about GPUs that have nothing to do."""
    return (
        _idle(Key.TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE,
            "shared tiles that are never alive together share bytes wherever they stand", True,
            hint="tl.disable_shared_memory_reuse gives each tile its own"),
        _idle(Key.TL_DISABLE_VECTORIZE_256, "no access is wider than 16 bytes", True),
        _idle(Key.TL_ENABLE_LOWER_LDGSTG,
            "accesses of tensors are plain, and the compiler of the GPU chooses the instructions"),
        _idle(Key.TL_ENABLE_LOWER_LDGSTG_PREDICATED,
            "accesses of tensors are plain, and the compiler of the GPU chooses the instructions"),
        _idle(Key.TL_ENABLE_AUTO_SCHEDULE, "pipelined loops are scheduled by their dependences"),
        _idle(Key.TL_ENABLE_AUTO_WARP_SPECIALIZATION,
            "warps are specialised on Hopper wherever that is of use", True,
            hint="tl.disable_warp_specialized forbids it"),
        _idle(Key.TL_REDUCER_FORCE_BASELINE, "reducers are lowered in one way"),
        PassConfig(Key.TL_LAYOUT_COST_MODEL, ANYTHING, None, "", "layouts are chosen in one way",
            (None,), hint="T.annotate_layout chooses another"),
    )  # fmt: skip


def _of_compilers() -> tuple[PassConfig, ...]:
    return (
        PassConfig(Key.CUDA_COMPILER, TEXT, "", "cuda",
            "`nvrtc`, `nvcc` or the path of an nvcc, as `TILE_CUDA_COMPILER` for all kernels."),
        PassConfig(Key.HIP_COMPILER, TEXT, "", "hip",
            "`hiprtc`, `hipcc`, `clang`, `zig` or the path of a clang, as `TILE_HIP_COMPILER` for "
            "all kernels."),
        PassConfig(Key.TL_DEVICE_COMPILE_FLAGS, FLAGS, "", GPUS,
            "Further flags for the compiler of the GPU, after `compile_flags`."),
        PassConfig(Key.TL_PTXAS_REGISTER_USAGE_LEVEL, LEVEL, None, "cuda",
            "How freely NVIDIA's assembler spends registers: its `--register-usage-level`."),
        _idle(Key.TL_ENABLE_PTXAS_VERBOSE_OUTPUT,
            "the assembler's report is always asked for", hint="read kernel.resources"),
        _idle(Key.TL_EMIT_LINE_DIRECTIVES,
            "the text of a kernel has the lines of its program as comments",
            hint="read kernel.get_kernel_source()"),
    )  # fmt: skip


def _of_checks() -> tuple[PassConfig, ...]:
    return (
        PassConfig(Key.TL_DISABLE_SAFE_MEMORY_ACCESS, FLAG, False, EVERYWHERE,
            "Accesses of tensors are not checked against their box: each must lie inside."),
        PassConfig(Key.TL_DISABLE_THREAD_STORAGE_SYNC, FLAG, False, EVERYWHERE,
            "Barriers are left to programs of threads: between accesses of shared memory that "
            "such a program makes itself, nothing is put in."),
        _idle(Key.TL_DISABLE_OUT_OF_BOUND_WARNING,
            "an index that certainly leaves its tensor is an error (TL2003), and no other is "
            "warned of", True),
        _idle(Key.TL_DISABLE_DATA_RACE_CHECK, "races are found by running, not by compiling", True,
            hint="run the program with `tile check`"),
        _idle(Key.TL_DISABLE_BUFFER_INIT_CHECK,
            "reads of what nothing has written are found by running, not by compiling", True,
            hint="run the program with `tile check`"),
        _idle(Key.TL_DISABLE_PRELOWER_SEMANTIC_CHECK, "every kernel is verified"),
        PassConfig(Key.TL_CONFIG_INDEX_BITWIDTH, BITS, None, "",
            "indices have the bits that they need", (None, 32, 64),
            hint="leave it out: indices have the bits that they need"),
    )  # fmt: skip


def _of_looking() -> tuple[PassConfig, ...]:
    logs = "set TILE_LOGS=passes"
    return (
        _idle(Key.TL_AST_PRINT_ENABLE, "kernels are printed by a command",
            hint="use `tile lower FILE.py:KERNEL`"),
        _idle(Key.TL_ENABLE_DUMP_IR, "programs are kept by a setting", hint="set TILE_KEEP=ir"),
        PassConfig(Key.TL_DUMP_IR_DIR, TEXT, "", "", "programs are kept by a setting", ("",),
            hint="set TILE_KEEP=ir and TILE_KEEP_DIR"),
        PassConfig(Key.CUDA_KERNELS_OUTPUT_DIR, TEXT, "", "", "sources are kept by a setting",
            ("",), hint="set TILE_KEEP=src and TILE_KEEP_DIR"),
        _idle(Key.TL_LAYOUT_VISUALIZATION_ENABLE, "layouts are drawn by a command",
            hint="use `tile report`, or print(kernel.layouts())"),
        PassConfig(Key.TL_LAYOUT_VISUALIZATION_FORMATS, ANYTHING, None, "",
            "layouts are drawn by a command", (None, ""),
            hint="use `tile report`, or print(kernel.layouts())"),
        _idle(Key.TL_PASS_PROFILE, "times of passes are told by a setting", hint=logs),
        PassConfig(Key.TL_PASS_PROFILE_THRESHOLD_MS, TIME, None, "",
            "times of passes are told by a setting", hint=logs),
        _idle(Key.TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS,
            "the plan of shared memory stands in the report", hint="use `tile report`"),
        _idle(Key.TL_ENABLE_VECTORIZE_PLANNER_VERBOSE, "passes are told of by a setting",
            hint=logs),
        _idle(Key.TL_ENABLE_REDUCER_PLAN_VERBOSE, "passes are told of by a setting", hint=logs),
    )  # fmt: skip


def _of_expressions() -> tuple[PassConfig, ...]:
    always = "expressions are always simplified, and exactly"
    loops = "loops are split at bounds, and branches stay in them"
    names = "names of values stay, for the compiler behind to inline"
    return (
        _idle(Key.TL_SIMPLIFY, always, True),
        _idle(Key.TL_SIMPLIFY_TRANSITIVELY_PROVE_INEQUALITIES, always),
        _idle(Key.TL_SIMPLIFY_CONVERT_BOOLEAN_TO_AND_OF_ORS, always),
        _idle(Key.TL_SIMPLIFY_APPLY_CONSTRAINTS_TO_BOOLEAN_BRANCHES, always),
        _idle(Key.TL_SIMPLIFY_PROPAGATE_KNOWNS_TO_PROVE_CONDITIONAL, always),
        _idle(Key.TL_SIMPLIFY_PROPAGATE_KNOWNS_TO_SIMPLIFY_EXPRESSIONS, always),
        _idle(Key.TL_SIMPLIFY_ENABLE_LET_INLINE, names),
        _idle(Key.TL_FORCE_LET_INLINE, names),
        _idle(Key.TL_IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS, names),
        _idle(Key.TL_DISABLE_LOOP_UNSWITCHING, loops, True),
        _idle(Key.TL_LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE, loops),
        _idle(Key.TL_STORAGE_REWRITE_DETECT_INPLACE, "tiles are reused by their liveness alone"),
    )  # fmt: skip


def _of_tir() -> tuple[PassConfig, ...]:
    none = "kernels do not pass through that pass of TVM"
    return (
        PassConfig(Key.TIR_USE_ASYNC_COPY, FLAG, True, "cuda",
            "The same as `tl.enable_async_copy`."),
        PassConfig(Key.TIR_NOALIAS, FLAG, True, "", "tensors of a call are taken not to overlap",
            (True,), refused=True, hint="name those that may: T.annotate_restrict_buffers(A, B)"),
        PassConfig(Key.TIR_ADD_LOWER_PASS, ANYTHING, (), "",
            "there is no program of TVM to run it on",
            ((), [], None), refused=True,
            hint="write a plugin with a pass on tile IR: docs/reference/hooks.md"),
        _idle(Key.TIR_SIMPLIFY, none, True),
        _idle(Key.TIR_ENABLE_EQUIV_TERMS_IN_CSE, none),
        _idle(Key.TIR_DISABLE_CSE, none),
        _idle(Key.TIR_DISABLE_STORAGE_REWRITE, none),
        _idle(Key.TIR_DISABLE_VECTORIZE,
            "the width of accesses follows from layouts and alignment"),
        _idle(Key.TIR_ENABLE_DEBUG, none),
        _idle(Key.TIR_MERGE_STATIC_SMEM, "all shared tiles are in one block of memory", True),
    )  # fmt: skip
