"""Print the tables: ``nox -s bench``, or ``python benchmarks/run.py square attention``.

Ratios are ours over the best peer at the same thread count: medians of interleaved runs in
one process, after the outputs were checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from measure import Row, cores, print_table
from tables_arrays import arrays
from tables_gemm import avx2, narrow, ragged, skinny, square, transposed
from tables_gpu import print_emulator_times, print_gpu_compile_times
from tables_models import models
from tables_narrow import without_instructions
from tables_nn import nn
from tables_process import alternating, print_compile_times
from tables_rows import attention_rows, elementwise, row_wise

from tile_cpu.machine import host_machine
from tile_cpu.measured_peak import measure_fma_gflops

Table = Callable[[Mapping[str, float]], Iterator[Row]]

TABLES: dict[str, tuple[str, str, Table]] = {
    "square": ("float32 GEMM, square", "GFLOP/s", square),
    "transposed": ("float32 GEMM, all storage orders", "GFLOP/s", transposed),
    "ragged": ("float32 GEMM, ragged sizes", "GFLOP/s", ragged),
    "narrow": ("bfloat16, int8 and float16 GEMM", "GOP/s", narrow),
    "unaided": (
        "narrow types without instructions for them, against float32",
        "GOP/s",
        without_instructions,
    ),
    "skinny": ("GEMM with few rows", "GFLOP/s", skinny),
    "avx2": ("GEMM compiled for AVX2", "GFLOP/s", avx2),
    "attention": ("flash attention forward against torch SDPA", "GFLOP/s", attention_rows),
    "rows": ("softmax and norms", "GB/s", row_wise),
    "elementwise": ("elementwise, against copy bandwidth", "GB/s", elementwise),
    "arrays": ("functions of whole arrays, by hand, torch", "G/s", arrays),
    "models": ("blocks under torch.compile, against Inductor and eager", "GFLOP/s", models),
    "nn": ("kernels of tile_nn, against Inductor and eager", "GB/s", nn),
    "alternating": ("taking turns with torch", "GFLOP/s", alternating),
}


REPORTS: dict[str, Callable[[], None]] = {
    "compile": print_compile_times,
    "compile-gpu": print_gpu_compile_times,
    "emulator": print_emulator_times,
}


def main(wanted: list[str]) -> None:
    """Print the tables named in `wanted`, or all of them."""
    known = (*TABLES, *REPORTS)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no table {unknown[0]!r}; there are {', '.join(known)}")
    host = host_machine()
    fma = measure_fma_gflops()
    bf16 = 2 if host.has("avx512bf16") else 1
    peaks = {"float32": fma, "bfloat16": bf16 * fma}
    print(f"{host.name}, {cores()} cores, {fma:.1f} GFLOP/s of float32 per core at most")
    for name, (title, unit, table) in TABLES.items():
        if not wanted or name in wanted:
            print_table(title, unit, table(peaks))
    for name, report in REPORTS.items():
        if not wanted or name in wanted:
            report()


if __name__ == "__main__":
    main(sys.argv[1:])
