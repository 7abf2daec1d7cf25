"""A program: what compiling some kernels makes in this process, as JSON on standard output."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tile_api as tile
import tile_api.language as T

MACHINES = {
    "bfloat16": ("cpu", "cpu:skylake-avx512"),
    "int8": ("cpu", "cpu:haswell"),
    "any size": ("cpu:haswell",),
    "attention": ("cpu:skylake-avx512",),
}
"""By kernel: what it is compiled for."""

SAVED = "int8"
"""What is saved, too."""

STAGES = ("tile", "planned", "lowered", "source")


def of_any_size() -> Any:
    """C = A @ B, whose sizes are known when it is called."""
    M, N, K = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            a = T.alloc_shared((32, 16), "float32")
            b = T.alloc_shared((16, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 16), num_stages=2):
                T.copy(A[by * 32, k * 16], a)
                T.copy(B[k * 16, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return gemm


def kernels(benchmarks: str) -> dict[str, Any]:
    """Return kernels by name; most are those that are measured."""
    sys.path.insert(0, benchmarks)
    from kernels import attention, matmul

    narrow = (96, 80, 64, 32, 32, 16, "bfloat16", "float32", "float32")
    return {
        "bfloat16": matmul.get_tir(*narrow),
        "int8": matmul.get_tir(100, 72, 96, 64, 64, 32, "int8", "int32", "int32"),
        "any size": of_any_size(),
        "attention": attention.get_tir(2, 64, 32, "float32", 32, 32, causal=True),
    }


def texts(name: str, traced: Any) -> dict[str, str]:
    """Return each stage for each machine, and digests of files."""
    found: dict[str, str] = {}
    for target in MACHINES[name]:
        kernel = tile.compile(traced, target=target)
        found |= {f"{target} {stage}": kernel.ir(stage) for stage in STAGES}
        found[f"{target} assembly"] = kernel.asm
        found[f"{target} module"] = digest(kernel.artifact.module.source().encode())
    if name == SAVED:
        with TemporaryDirectory() as folder:
            tile.compile(traced, target="cpu").save(Path(folder, "saved"))
            found["saved"] = digest(Path(folder, "saved").read_bytes())
    return found


def digest(code: bytes) -> str:
    """Return what tells files apart."""
    return sha256(code).hexdigest()


if __name__ == "__main__":
    made = {name: texts(name, traced) for name, traced in kernels(sys.argv[1]).items()}
    print(json.dumps({f"{name}: {key}": text for name in made for key, text in made[name].items()}))
