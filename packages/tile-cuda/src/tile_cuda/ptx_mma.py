"""The matrix instructions that kernels may name on NVIDIA GPUs: `T.ptx_mma`.

Those of `tile_cuda.atoms`, and beside them forms that matrix products never choose: packed 4-bit
integers, and accumulators in float16 of 8-bit floats. An instruction is offered wherever it
assembles, be it in one step or in several. PTX ISA, "Matrix multiply-accumulate operation using
mma".
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.machine import MmaInstruction

_BYTES = ("int8", "uint8")
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


def mma_instructions_of(features: frozenset[str]) -> frozenset[MmaInstruction]:
    """Return what an architecture with `features` assembles."""
    return frozenset(product for feature, product in _rows() if feature in features)


def _rows() -> Iterator[tuple[str, MmaInstruction]]:
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
