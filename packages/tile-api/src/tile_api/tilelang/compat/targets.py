"""`tilelang.utils.target` and `tilelang.contrib.nvcc`: which machine programs are told of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tile_api.tilelang.machines import USUAL, machine
from tile_core.target import Target, parse_target_spec

AVAILABLE_TARGETS = {
    "auto": "the GPU at hand, or what stands in for it",
    "cuda": "NVIDIA GPUs",
    "hip": "AMD GPUs",
    "llvm": "this CPU",
    "c": "this CPU",
}

IS_MPS = False


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A target with the attributes that programs look at."""

    target: Target

    @property
    def kind(self) -> Any:
        """The kind of machine: ``target.kind.name``."""
        return SimpleNamespace(name=self.target.kind)

    @property
    def arch(self) -> str:
        """The architecture, such as ``sm_90a``."""
        return self.target.arch

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes beside the kind."""
        return {"arch": self.target.arch} if self.target.arch else {}

    def __str__(self) -> str:
        return str(self.target)

    def __enter__(self) -> NamedTarget:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def determine_target(target: Any = "auto", return_object: bool = False) -> Any:
    """Return the target that a program means, told as the GPU that it expects.

    Parameters
    ----------
    target
        Any spelling of a target; ``"auto"`` is the GPU at hand or what stands in for it.
    return_object
        Return an object with ``kind.name``, ``arch`` and ``attrs`` rather than text.
    """
    exact = _meant(target)
    return NamedTarget(exact) if return_object else (exact.kind if target == "auto" else target)


def _meant(target: Any) -> Target:
    here = machine()
    told = Target("hip" if here.is_hip else "cuda", here.arch) if _is_gpu(here) else here.target
    if target is None or target == "auto":
        return told
    found = target.target if isinstance(target, NamedTarget) else parse_target_spec(target)
    if found.kind in USUAL and not found.arch:
        return told if told.kind == found.kind else Target(found.kind, USUAL[found.kind])
    return found


def _is_gpu(here: Any) -> bool:
    return bool(here.is_cuda or here.is_hip)


def check_cuda_availability() -> bool:
    """Tell whether programs for NVIDIA GPUs run."""
    return machine().is_cuda


is_cuda_available = check_cuda_availability


def check_hip_availability() -> bool:
    """Tell whether programs for AMD GPUs run."""
    return machine().is_hip


def check_metal_availability() -> bool:
    """Tell that programs for Apple GPUs do not run."""
    return False


def get_current_device() -> Any:
    """Return the index of the GPU that tensors are on: the first."""
    return 0


def target_is_cuda(target: Any) -> bool:
    """Tell whether a target is an NVIDIA GPU."""
    return _meant(target).kind == "cuda"


def target_is_hip(target: Any) -> bool:
    """Tell whether a target is an AMD GPU."""
    return _meant(target).kind == "hip"


def target_is_metal(target: Any) -> bool:
    """Tell that no target is an Apple GPU."""
    return False


def target_is_cpu(target: Any) -> bool:
    """Tell whether a target is a CPU."""
    return _meant(target).kind == "cpu"


def _version(target: Any) -> int:
    """Return the compute capability of an NVIDIA GPU as one number, 0 of others."""
    meant = _meant(target)
    digits = re.sub(r"\D", "", meant.arch) if meant.kind == "cuda" else ""
    return int(digits or 0)


def _versions(told: str, least: int, end: int = 1000) -> Callable[[Any], bool]:
    def is_one(target: Any) -> bool:
        return least <= _version(target) < end

    is_one.__doc__ = f"Tell whether {told}."
    return is_one


target_is_volta = _versions("a target is of NVIDIA's generation Volta", 70, 75)
target_is_turing = _versions("a target is of NVIDIA's generation Turing", 75, 80)
target_is_ampere = _versions("a target is of NVIDIA's generations Ampere and Ada", 80, 90)
target_is_hopper = _versions("a target is of NVIDIA's generation Hopper", 90, 100)
target_is_sm120 = _versions("a target is a consumer GPU of NVIDIA's Blackwell", 120, 130)
target_has_ldmatrix = _versions("a target loads matrices from shared memory", 75)
target_has_async_copy = _versions("a target copies to shared memory in the background", 80)
target_has_bulk_copy = _versions("a target has a copy engine", 90)
have_mbarrier = _versions("there are barriers in shared memory", 80)
have_pdl = _versions("a kernel can begin before the one in front of it ends", 90)


def target_is_cdna(target: Any) -> bool:
    """Tell whether a target is an AMD GPU for data centres."""
    meant = _meant(target)
    return meant.kind == "hip" and meant.arch.startswith("gfx9")


def target_is_rdna(target: Any) -> bool:
    """Tell whether a target is an AMD GPU for graphics."""
    meant = _meant(target)
    return meant.kind == "hip" and meant.arch.startswith("gfx1")


def target_is_gfx950(target: Any) -> bool:
    """Tell whether a target is a gfx950."""
    return _meant(target).arch == "gfx950"


def target_get_warp_size(target: Any) -> int:
    """Return how many threads of a target run together."""
    return 64 if target_is_cdna(target) else 32


def target_has_stmatrix(target: Any, is_m16n8: bool = False) -> bool:
    """Tell whether a target stores matrices to shared memory."""
    return _version(target) >= 90


# contrib.nvcc ------------------------------------------------------------------------------


def get_target_compute_version(target: Any = None) -> str:
    """Return the compute capability as text, such as ``"8.9"``."""
    version = _version(target)
    return f"{version // 10}.{version % 10}"


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """Return a compute capability as two numbers.

    Examples
    --------
    >>> parse_compute_version("9.0")
    (9, 0)
    """
    major, _, minor = compute_version.partition(".")
    return int(major), int(re.sub(r"\D", "", minor) or 0)


def get_cuda_version(cuda_path: str | None = None) -> tuple[int, int]:
    """Return the version of CUDA that programs are told of."""
    return 12, 8


def _at_least(version: Any, least: tuple[int, int]) -> bool:
    given = version or get_target_compute_version()
    return parse_compute_version(given) >= least


def _since(major: int, minor: int, what: str) -> Callable[..., bool]:
    def have(compute_version: str | None = None) -> bool:
        return _at_least(compute_version, (major, minor))

    have.__doc__ = f"Tell whether there {what}."
    return have


have_fp16 = _since(5, 3, "is arithmetic in float16")
have_int8 = _since(6, 1, "are products of int8")
have_bf16 = _since(8, 0, "is bfloat16")
have_fp8 = _since(8, 9, "is FP8")
have_fp4 = _since(10, 0, "is FP4")


def have_tensorcore(compute_version: str | None = None, target: Any = None) -> bool:
    """Tell whether there are matrix instructions."""
    return _at_least(compute_version, (7, 0))


def have_tma(target: Any = None) -> bool:
    """Tell whether there is a copy engine."""
    return target_has_bulk_copy(target)


def have_cudagraph() -> bool:
    """Tell whether calls can be recorded and played again: where a GPU runs them."""
    return machine().target.kind == "cuda" and not machine().target.executor


def get_target_arch(compute_version: str) -> str:
    """Return the digits of an architecture.

    Examples
    --------
    >>> get_target_arch("9.0"), get_target_arch("8.0")
    ('90a', '80')
    """
    major, minor = parse_compute_version(compute_version)
    return f"{major}{minor}" + ("a" if major >= 9 and major < 12 else "")


def is_hopper(target: Any = None) -> bool:
    """Tell whether a target is of NVIDIA's generation Hopper."""
    return target_is_hopper(target)
