"""What NumPy, torch and Triton call something that the language says in other words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FORMULAS: Mapping[str, str] = MappingProxyType(
    {
        "gelu": "0.5 * x * (1 + T.erf(x * 0.7071067811865476))",
        "logaddexp": "T.max(x, y) + T.log1p(T.exp(-T.abs(x - y)))",
        "maximum": "T.max(x, y)",
        "minimum": "T.min(x, y)",
        "reciprocal": "1 / x",
        "relu": "T.max(x, 0)",
        "sign": "T.if_then_else(x > 0, 1, T.if_then_else(x < 0, -1, 0))",
        "silu": "x * T.sigmoid(x)",
        "softplus": "T.max(x, 0) + T.log1p(T.exp(-T.abs(x)))",
        "square": "x * x",
    }
)
"""Functions of a number `x`, or of `x` and `y`, that are a line of others."""

_CLEARED = "T.alloc_fragment(shape, dtype), then T.fill(tile, value)"
_PRODUCT = "T.gemm(a, b, c), which adds the product of two tiles to a third"
_MOVED = "T.copy(A[i, j], tile), or A[i, j] in a loop of T.Parallel"

SAID_AS: Mapping[str, str] = MappingProxyType(
    {
        name: f"write {said}"
        for name, said in {
            **FORMULAS,
            "all": "T.all_of(tile)",
            "amax": "T.reduce_max(tile, out, dim)",
            "amin": "T.reduce_min(tile, out, dim)",
            "any": "T.any_of(tile)",
            "arange": "for i in T.Parallel(n), whose variable counts",
            "astype": "T.cast(x, dtype)",
            "atomicAdd": "T.atomic_add(A[i], x)",
            "bf16": "T.bfloat16",
            "blockIdx": "with T.Kernel(...) as (bx, by)",
            "constexpr": "an argument of the function below @tile.jit: it is a constant",
            "dot": _PRODUCT,
            "fp16": "T.float16",
            "fp32": "T.float32",
            "full": _CLEARED,
            "inf": "T.infinity(dtype)",
            "load": _MOVED,
            "mean": "T.reduce_sum(tile, out, dim), and divide by the number of elements",
            "mm": _PRODUCT,
            "ones": _CLEARED,
            "power": "T.pow(x, y)",
            "program_id": "with T.Kernel(...) as (bx, by)",
            "softmax": "T.reduce_max, T.exp and T.reduce_sum; tile.nn.softmax is a whole kernel",
            "static_range": "T.unroll(n), or Python's range(n)",
            "store": _MOVED,
            "sum": "T.reduce_sum(tile, out, dim)",
            "swish": FORMULAS["silu"],
            "syncthreads": "T.sync_threads()",
            "threadIdx": "T.get_thread_binding()",
            "trans": "T.gemm(..., transpose_A=True), or T.transpose(tile, out)",
            "zeros": "T.alloc_fragment(shape, dtype), then T.clear(tile)",
            "zeros_like": "T.alloc_fragment(shape, dtype), then T.clear(tile)",
        }.items()
    }
)
"""The hint about each name."""
