"""The environment variables that are read: one table, from which everything about them is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tile_api.settings import kinds
from tile_api.settings.kinds import Domain
from tile_core.errors import FrontendValueError
from tile_core.logs import ALL, CATEGORIES, SIGNS
from tile_core.records import dataclass

KEPT = ("ir", "src", "asm", "trace")
"""What ``TILE_KEEP`` may name."""

CHECKS = ("all", "none", "oob", "bounds", "uninit", "race", "wait", "barrier", "counters")
"""What ``TILE_CHECK`` may name; ``oob`` and ``bounds`` are the same."""

_GPU = "an architecture, multiprocessors=N, memory=GIB, or several, as in sm_90,memory=80"
SCHEDULES = ("forward", "reverse", "random")
LONGEST = 1e6
"""Seconds that a time limit may have."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable, and the attribute of `tile_api.settings.Settings` that it sets."""

    name: str  # of the variable, ``TILE_…``
    field: str  # of the attribute
    kind: Domain
    default: Any  # the value of the attribute where nothing is set
    meaning: str  # what it is for, in a sentence
    aliases: tuple[str, ...] = ()  # names that are read if the variable itself is not set
    of_code: bool = False  # whether it decides which code is generated
    unset: str = ""  # what happens without it, where `default` does not say

    def source(self, env: Mapping[str, str]) -> str | None:
        """Return the name under which `env` has a value for it, or None."""
        return next((name for name in (self.name, *self.aliases) if env.get(name)), None)

    def read(self, env: Mapping[str, str]) -> Any:
        """Return the value of the attribute in an environment."""
        name = self.source(env)
        if name is None:
            return self.default
        return self.value_of(env[name], f"the environment variable {name}")

    def value_of(self, text: str, where: str) -> Any:
        """Return what a text that is not empty means; `where` is named if that is nothing."""
        try:
            return self.kind.read(text)
        except ValueError as wrong:
            because = f": {wrong}" if str(wrong) else ""
            raise FrontendValueError(
                f"{where} is {text!r}{because}", hint=f"set it to {self.kind.allowed}"
            ) from None


def _schedule(text: str) -> str:
    order, _, seed = text.partition(":")
    if order not in SCHEDULES or (seed and (order != "random" or not seed.isdecimal())):
        raise ValueError
    return text


def _kept(text: str) -> tuple[str, ...]:
    """Read what to keep; 1 and 0 are what TileLang's variable of that meaning may be."""
    short = {"0": (), "1": ("ir",)}
    found: tuple[str, ...] = short[text] if text in short else kinds.names(KEPT).read(text)
    return found


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(kinds.path_of(part) for part in text.split(os.pathsep) if part)


def _share(text: str) -> float:
    found = kinds.read_by(float, text)
    if not 0 < found <= 1:
        raise ValueError
    return found


def _budget(text: str) -> str:
    from tile_api.settings.budget import parse_budget

    kinds.read_by(parse_budget, text)
    return text


_COUNT = Domain(
    "number", "a number of processes; -1 means not set", lambda text: kinds.read_by(int, text)
)


@lru_cache(maxsize=1)
def variables() -> tuple[Variable, ...]:
    """Return the table, one row for each attribute of the settings."""
    return tuple(row for rows in grouped().values() for row in rows)


def grouped() -> Mapping[str, tuple[Variable, ...]]:
    """Return the rows of the table by what they are about."""
    return {
        "Compiling": _of_compiling(),
        "Caches": _of_caches(),
        "Tuning": _of_tuning(),
        "Looking": _of_looking(),
        "Checking": _of_checking(),
    }


def _gpu(text: str) -> str:
    """Return the text of a GPU that programs can be told of."""
    from tile_api.settings.pretended_gpu import parse_gpu  # few name one

    parse_gpu(text)
    return text


def _of_compiling() -> tuple[Variable, ...]:
    return (
        Variable("TILE_TARGET", "target", kinds.text("a target, such as cpu or cuda:sm_80@sim"),
            "auto", "The target of kernels that name none.",
            aliases=("TILELANG_DEFAULT_TARGET",), of_code=True,
            unset="auto: a GPU if there is one, else this CPU"),
        Variable("TILE_FORCE_TARGET", "forced_target", kinds.text("a target, as TILE_TARGET"), "",
            "The target of all kernels, whatever target the program names.", of_code=True,
            unset="it is left to the program"),
        Variable("TILE_PRETENDED_GPU", "pretended_gpu", Domain("GPU", _GPU, _gpu), "",
            "Which GPU TileLang programs are told of, where kernels run on the host.",
            unset="sm_90 for data centres on the CPU, else the one that is emulated"),
        Variable("TILE_NUM_THREADS", "threads", kinds.number("threads; 0 follows torch or OpenMP"),
            0, "Threads of a CPU kernel.", of_code=True, unset="0: as torch or OpenMP has them"),
        Variable("TILE_CUDA_COMPILER", "cuda_compiler",
            kinds.text("nvrtc, nvcc, or the path of an nvcc"), "",
            "Who translates kernels for NVIDIA GPUs.", of_code=True,
            unset="the first NVRTC that knows the architecture, else the first such nvcc"),
        Variable("TILE_HIP_COMPILER", "hip_compiler",
            kinds.text("hiprtc, hipcc, clang, zig, or the path of a clang"), "",
            "Who translates kernels for AMD GPUs.", of_code=True,
            unset="the first compiler that knows the architecture"),
        Variable("TILE_DISABLE_PLUGINS", "disabled_plugins",
            Domain("names", "names of entry points", lambda text: tuple(kinds.split(text))), (),
            "Plugins that are not loaded, backends among them; read once, before the first kernel.",
            unset="all that are installed are loaded"),
    )  # fmt: skip


def _of_caches() -> tuple[Variable, ...]:
    return (
        Variable("TILE_DISABLE_CACHE", "cache", kinds.inverted_flag(), True,
            "Compile every kernel anew.", aliases=("TILELANG_DISABLE_CACHE",),
            unset="kernels are found again, in memory and on disk"),
        Variable("TILE_CACHE_DIR", "cache_dir", kinds.folder(), None,
            "Where compiled kernels are kept.", aliases=("TILELANG_CACHE_DIR",),
            unset="$XDG_CACHE_HOME/tile, else ~/.cache/tile"),
        Variable("TILE_CACHE_SIZE", "cache_size", kinds.size("0 keeps nothing on disk"), 4 << 30,
            "What compiled kernels may take; the least recently used go first.", unset="4GiB"),
    )  # fmt: skip


def _of_tuning() -> tuple[Variable, ...]:
    return (
        Variable("TILE_TUNE_BUDGET", "tune_budget",
            Domain("time", "model, a time such as 10s or 2m, or full", _budget), "",
            "How much work tuning may be, where a kernel does not say.",
            unset="full: every configuration is measured"),
        Variable("TILE_TUNE_AGAIN", "tune_again", kinds.flag(), False,
            "Tune although there is a result."),
        Variable("TILE_TUNE_DIR", "tune_dir", kinds.folder(), None,
            "Where tables and logs of tuning are kept.", unset="tune, in the folder of the cache"),
        Variable("TILE_TUNE_TABLES", "tune_tables",
            Domain("paths", "paths of tables, separated as in PATH", _paths), (),
            "Further tables of tuning to look into.", unset="none"),
        Variable("TILE_TUNE_DISABLE_CACHE", "tune_cache", kinds.inverted_flag(), True,
            "Neither read nor keep results of tuning.",
            aliases=("TILELANG_AUTO_TUNING_DISABLE_CACHE",), unset="they are read and kept"),
        Variable("TILE_TUNE_WORKERS", "tune_processes", _COUNT, -1,
            "Processes that compile candidates.",
            aliases=("TILELANG_AUTO_TUNING_CPU_COUNTS",), unset="a share of the processors"),
        Variable("TILE_TUNE_CPU_SHARE", "tune_share",
            Domain("number", "a share above 0, and at most 1", _share), 1.0,
            "The share of the processors that compile candidates.",
            aliases=("TILELANG_AUTO_TUNING_CPU_UTILITIES",), unset="1: all of them"),
        Variable("TILE_TUNE_MAX_WORKERS", "tune_most", _COUNT, -1,
            "The most processes that compile candidates.",
            aliases=("TILELANG_AUTO_TUNING_MAX_CPU_COUNT",), unset="no limit"),
    )  # fmt: skip


def _of_looking() -> tuple[Variable, ...]:
    return (
        Variable("TILE_LOGS", "logs",
            kinds.names(
                (ALL, *CATEGORIES), signs=SIGNS,
                allowed=f"all, or some of {', '.join(CATEGORIES)}, as in +layout,codegen,-cache",
            ), (),
            "What is told on stderr, and through the loggers `tile.CATEGORY`: a line about each "
            "named category, the whole text with a + before it, nothing with a -.",
            unset="nothing"),
        Variable("TILE_KEEP", "keep", Domain("names", kinds.names(KEPT).allowed, _kept), (),
            "Which texts of every compiled kernel are written to files: `ir` at every stage, "
            "`src` that the target's compiler gets, `asm`, and a `trace` of the phases.",
            aliases=("TL_LOWER_TRACE",), unset="none"),
        Variable("TILE_KEEP_DIR", "keep_dir", kinds.folder(), None,
            "Where they are written.", aliases=("TL_LOWER_TRACE_DIR",),
            unset="tile-kept, in the current folder"),
        Variable("TILE_VERBOSE", "verbose", kinds.flag(), False,
            "Tell the phases of each compilation, and their times, on stderr.",
            aliases=("TILELANG_VERBOSE",)),
        Variable("TILE_FULL_TRACEBACK", "full_traceback", kinds.flag(), False,
            "Show the frames of the compiler, too, in the traceback of an error."),
    )  # fmt: skip


def _of_checking() -> tuple[Variable, ...]:
    return (
        Variable("TILE_INTERPRET", "interpret", kinds.flag(), False,
            "Run kernels in the reference interpreter, whatever their target.", of_code=True),
        Variable("TILE_CHECK", "checks", kinds.names(CHECKS), ("all",),
            "What the emulator and the interpreter look for.",
            unset="all, which leaves out the counters"),
        Variable("TILE_VERIFY", "verify", kinds.flag(), False,
            "Verify the program after every pass."),
        Variable("TILE_SIM_SCHEDULE", "sim_schedule",
            Domain("name", "forward, reverse, or random:SEED with a number", _schedule), "forward",
            "Which thread the emulator runs next where several can."),
        Variable("TILE_SIM_ASYNC", "sim_async", kinds.choice("late", "early", "random"), "late",
            "When the data of asynchronous copies arrives in the emulator."),
        Variable("TILE_SIM_THREADS", "sim_threads", kinds.number("threads; 0 means one per CPU"), 0,
            "Threads of this machine over which the emulator spreads blocks.", unset="one per CPU"),
        Variable("TILE_SIM_TIME_LIMIT", "sim_time_limit",
            kinds.seconds(LONGEST, "0 means no limit"), 0.0,
            "After how long the emulator gives up a launch.", unset="no limit"),
    )  # fmt: skip


OF_THE_SYSTEM: Mapping[str, str] = {
    "CC": "the C compiler of kernels that bring C code along; without it cc, gcc or clang",
    "CUDA_HOME": "where a CUDA toolkit is: nvcc, NVRTC, cuobjdump",
    "CUDA_PATH": "the same, after `CUDA_HOME`",
    "CXX": "the C++ compiler of the emulator; without it g++, clang++ or the one in ziglang",
    "HIP_PATH": "where ROCm's libraries are, after `ROCM_PATH`",
    "LD_LIBRARY_PATH": "where else HIPRTC is looked for",
    "OMP_NUM_THREADS": "threads of CPU kernels, as of torch's, unless `TILE_NUM_THREADS` says more",
    "ROCM_PATH": "where ROCm is: its clang and its libraries",
    "XDG_CACHE_HOME": "the folder of caches, unless `TILE_CACHE_DIR` names one",
}
"""Variables that belong to others, and what they mean here."""

ACCEPTED: Mapping[str, str] = {
    "TILELANG_CLEANUP_TEMP_FILES": "there are no temporary files to keep: see `TILE_KEEP`",
    "TILELANG_COMPILE_TIMEOUT_SECONDS": "a compiler has ten minutes for a kernel",
    "TILELANG_ENABLE_DATA_RACE_CHECK": "races are found by running: see `TILE_CHECK`",
    "TILELANG_ENABLE_IR_SPAN": "every statement knows its line",
    "TILELANG_EXECUTION_BACKEND": "there is one runtime",
    "TILELANG_JIT_DIAGNOSTICS": "see `TILE_LOGS`",
    "TILELANG_LAYOUT_COST_MODEL": "layouts are chosen in one way",
    "TILELANG_PASS_DIFF": "see `tile report`",
    "TILELANG_PASS_DIFF_OUTPUT": "see `tile report`",
    "TILELANG_PASS_PROFILE": "see `TILE_LOGS=passes`",
    "TILELANG_PASS_PROFILE_THRESHOLD_MS": "see `TILE_LOGS=passes`",
    "TILELANG_PRINT_ON_COMPILATION": "see `TILE_VERBOSE`",
    "TILELANG_TMP_DIR": "there are no temporary files to place",
    "TL_COMPOSABLE_KERNEL_PATH": "nothing of it is used",
    "TL_CUTLASS_PATH": "nothing of it is used",
    "TL_TEMPLATE_PATH": "nothing of it is used",
}
"""Variables of TileLang that change nothing here, and why."""
