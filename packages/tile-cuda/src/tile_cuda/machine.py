"""NVIDIA architectures: what each offers, as data. Passes ask for features, never for versions.

Features were taken from the assembler: an architecture has one if the instruction is real there.
Instructions that assemble but expand to slow sequences (``mma.m8n8k4`` after Turing, 4-bit integer
products after Ada, warp-level fp8 products in data centres after Ada) are not features, nor is what
assembles and does not run (clusters of several blocks on consumer cards). Sizes: CUDA C++
Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tile_core.machine import AsyncMma, MmaInstruction, Multiprocessor, SimtMachine
from tile_core.simt.architectures import row_called
from tile_core.simt.division_strength_reduction import FEATURE

_BYTES = ("int8", "uint8")
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


def mma_instructions_of(features: frozenset[str]) -> frozenset[MmaInstruction]:
    """Return the matrix instructions that kernels may name where `features` are: `T.ptx_mma`.

    Those of `tile_cuda.atoms`, and beside them forms that matrix products never choose: packed
    4-bit integers, and accumulators in float16 of 8-bit floats. An instruction is offered wherever
    it assembles, be it in one step or in several. PTX ISA, "Matrix multiply-accumulate operation
    using mma".
    """
    return frozenset(product for feature, product in _named_products() if feature in features)


def _named_products() -> Iterator[tuple[str, MmaInstruction]]:
    """Yield a feature and a product that assembles where it is.

    Registers of 4-bit integers are bytes of two, the low half first.
    """
    for total in ("float32", "float16"):
        half = ("float16", "float16", total)
        yield "mma_m16n8k16", MmaInstruction("m16n8k16", *half)
        yield "mma_m16n8k8_f16", MmaInstruction("m16n8k8", *half)
        yield "f16_arithmetic", MmaInstruction("m8n8k4", *half)
    for shape in ("m16n8k16", "m16n8k8"):
        yield "mma_bf16", MmaInstruction(shape, "bfloat16", "bfloat16", "float32")
    for shape in ("m16n8k8", "m16n8k4"):
        for kind in ("float32", "tfloat32"):
            yield "mma_tf32", MmaInstruction(shape, kind, kind, "float32")
    yield "mma_f64", MmaInstruction("m8n8k4", "float64", "float64", "float64")
    for a in _BYTES:
        for b in _BYTES:
            yield "mma_int8_m8n8k16", MmaInstruction("m8n8k16", a, b, "int32")
            for shape in ("m16n8k16", "m16n8k32", "m16n8k64"):
                yield "mma_int8_m16n8k32", MmaInstruction(shape, a, b, "int32")
    for a in _FLOAT8:
        for b in _FLOAT8:
            for shape in ("m16n8k16", "m16n8k32"):
                for total in ("float32", "float16"):
                    yield "fp8_convert", MmaInstruction(shape, a, b, total)


_PRODUCTS = ("fence", "commit", "wait", "pin", "ss", "ss_set", "rs", "rs_set", "operand")
_MATRICES = tuple(f"x{count}{order}" for count in (1, 2, 4) for order in ("", "_trans"))

DEVICE_NAMES: Mapping[str, str] = {
    **{
        "async_copy": "cp_async",
        "async_copy_commit": "cp_async_commit",
        "async_copy_wait": "cp_async_wait",
        "async_copy_mbarrier_arrive": "cp_async_mbarrier_arrive",
        "tensor_load": "tma_load",
        "tensor_load_pair": "tma_load_pair",
        "tensor_load_multicast": "tma_load_multicast",
        "tensor_store": "tma_store",
        "tensor_reduce_add": "tma_reduce_add",
        "tensor_reduce_min": "tma_reduce_min",
        "tensor_reduce_max": "tma_reduce_max",
        "bulk_store_commit": "tma_store_commit",
        "bulk_store_wait_read": "tma_store_wait_read",
        "bulk_store_wait": "tma_store_wait",
        "tensor_map_prefetch": "tma_prefetch",
    },
    **{f"async_mma_{name}": f"wgmma_{name}" for name in _PRODUCTS},
    **{
        f"accumulators_{name}": f"tcgen05_{name}"
        for name in (
            *("alloc", "base", "free", "load", "store", "before", "after"),
            *("mma", "mma_set", "mma_ts", "mma_ts_set"),
            *("scales", "mma_scaled", "mma_scaled_set"),
            *("alloc_pair", "free_pair", "mma_pair", "mma_pair_set", "tell_first"),
        )
    },
    "accumulators_arrive": "tcgen05_commit",
    "accumulators_arrive_pair": "tcgen05_commit_pair",
    **{f"load_matrix_{form}": f"ldmatrix_{form}" for form in _MATRICES},
    **{f"store_matrix_{form}": f"stmatrix_{form}" for form in _MATRICES},
}
"""What the device header calls functions of `tile_core.ir.device_calls`; PTX ISA has most names."""


_TENSOR_MEMORY_NAMES: Mapping[str, str] = {**DEVICE_NAMES, "async_mma_operand": "tcgen05_operand"}

_KIB = 1024

_VOLTA = frozenset(
    {
        "mma_m8n8k4",  # four 8x8x4 products of quarter warps
        "dp4a",
        "f16_arithmetic",
        "atomic_f16",
        "atomic_f16x2",
        "atomic_f64",
        "match_sync",
        "nanosleep",
    }
)
_TURING = _VOLTA | {
    "mma_m16n8k8_f16",
    "mma_int8_m8n8k16",
    "mma_int4_m8n8k32",
    "load_matrix",
    "movmatrix",
    "tanh_approx",
    "ex2_f16x2",
}
_AMPERE = (_TURING - {"mma_m8n8k4"}) | {
    "mma_m16n8k16",
    "mma_bf16",
    "mma_tf32",
    "mma_f64",
    "mma_int8_m16n8k32",
    "mma_int4",
    "cache_hint",
    "async_copy",
    "mbarrier",
    "bf16_arithmetic",
    "max_nan",
    "redux",
}
_FAST_FLOAT64 = frozenset({FEATURE})  # half as many float64 units as of float32
_ADA = _AMPERE | {"mma_fp8", "fp8_convert"}
_HOPPER = (_ADA - {"mma_int4", "mma_int4_m8n8k32", "mma_fp8"}) | {
    "atomic_bf16",
    "atomic_bf16x2",
    "atomic_f32x2",
    "atomic_f32x4",
    "clusters",
    "dependent_launch",
    "elect",
    "transaction_barriers",
    "mma_f64_m16n8",
    "store_matrix",
    "copy_engine",
}
_HOPPER_ONLY = _HOPPER | {"register_reallocation", "async_mma"} | _FAST_FLOAT64
_MEMORY = frozenset({"accumulator_memory", "accumulator_memory_scaled", "accumulator_memory_pairs"})
_BLACKWELL = _HOPPER | {"register_reallocation"} | _MEMORY
_INTEGERS = frozenset({"accumulator_memory_int8"})  # products of 8-bit integers, there too
_CONSUMER_BLACKWELL = (_BLACKWELL - _MEMORY - {"clusters"}) | {"mma_fp8", "scaled_mma"}

_WGMMA = AsyncMma(rows=64, step_bits=256, warps=4)
"""PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"."""


def _row(
    name: str, features: frozenset[str], block_kib: int, threads: int, blocks: int, all_kib: int
) -> SimtMachine:
    # From Ampere on a block costs one kilobyte more than it asks for.
    shares = Multiprocessor(threads, blocks, all_kib * _KIB, (all_kib - block_kib) * _KIB)
    return SimtMachine(
        name=name,
        family="cuda",
        shared_bytes=block_kib * _KIB,
        features=features,
        mma_instructions=mma_instructions_of(features),
        async_mma=_WGMMA if "async_mma" in features else None,
        multiprocessor=shares,
        device_names=_TENSOR_MEMORY_NAMES if "accumulator_memory" in features else DEVICE_NAMES,
    )


ARCHITECTURES = MappingProxyType(
    {
        row.name: row
        for row in (
            #    name       features   KiB per block, threads, blocks, KiB in all
            _row("sm_70", _VOLTA | _FAST_FLOAT64, 96, 2048, 32, 96),
            _row("sm_75", _TURING, 64, 1024, 16, 64),
            _row("sm_80", _AMPERE | _FAST_FLOAT64, 163, 2048, 32, 164),
            _row("sm_86", _AMPERE, 99, 1536, 16, 100),
            _row("sm_87", _AMPERE, 163, 1536, 16, 164),
            _row("sm_89", _ADA, 99, 1536, 24, 100),
            _row("sm_90", _HOPPER | _FAST_FLOAT64, 227, 2048, 32, 228),
            _row("sm_90a", _HOPPER_ONLY, 227, 2048, 32, 228),
            _row("sm_100f", _BLACKWELL, 227, 2048, 32, 228),
            _row("sm_100a", _BLACKWELL | _INTEGERS | _FAST_FLOAT64, 227, 2048, 32, 228),
            _row("sm_103a", _BLACKWELL, 227, 2048, 32, 228),
            _row("sm_110a", _BLACKWELL | _INTEGERS, 227, 1536, 24, 228),
            _row("sm_120f", _CONSUMER_BLACKWELL, 99, 1536, 24, 100),
            _row("sm_120a", _CONSUMER_BLACKWELL, 99, 1536, 24, 100),
            _row("sm_121a", _CONSUMER_BLACKWELL, 99, 1536, 24, 100),
        )
    }
)
"""By name, oldest first; code for a family (``f``) before that for one of its members (``a``)."""

_MEANT = MappingProxyType(
    {name.rstrip("a"): name for name in ARCHITECTURES if name.endswith("a")} | {"sm_90": "sm_90"}
)
"""What plain names stand for where code for exactly one architecture has all its instructions."""


def machine(arch: str) -> SimtMachine:
    """Return what lowering must know of the architecture `arch`, such as ``"sm_80"``.

    From Blackwell on a plain name such as ``"sm_120"`` is ``"sm_120a"``.

    Raises
    ------
    TargetError
        If there is no such architecture; the hint names the nearest ones.
    """
    return row_called(
        _MEANT.get(arch, arch), ARCHITECTURES, "cuda", f"no NVIDIA architecture is called {arch!r}"
    )
