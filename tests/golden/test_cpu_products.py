"""How products are taken apart on each processor: steps, register tiles, loops, rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tile_cpu.gemm.macrokernel import plan_gemm, plan_steps
from tile_cpu.gemm.operands import GemmSpec, padded_row, round_up, window_columns
from tile_cpu.gemm.register_tile_shape import RegisterTile, in_pairs_of_lines, row_segments
from tile_cpu.machine import MACHINES

Golden = Callable[..., None]

PROCESSORS = ("x86-64-v2", "haswell", "alderlake", "skylake-avx512", "sapphirerapids", "znver5",
              "aarch64", "neoverse-n1", "neoverse-v2")  # fmt: skip
TYPES = (
    ("float32", "float32", "float32"), ("float64", "float64", "float64"),
    ("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"),
    ("float8_e4m3fn", "float8_e5m2", "float32"), ("float32", "float32", "float64"),
    ("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("int8", "uint8", "int32"),
    ("int8", "int8", "int64"), ("int16", "int16", "int32"), ("int32", "int32", "int32"),
    ("int8", "int16", "int32"), ("int64", "int64", "int64"), ("int64", "int64", "int32"),
)  # fmt: skip
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 16, 17, 64, 256)
DEPTHS = (1, 100, 192, 193, 288, 480, 481, 1000, 4096)


def kernel_text(spec: GemmSpec) -> str:
    k = spec.kernel
    flipped = ", signs of B flipped" if k.flip_b else ""
    types = f"{k.a_dtype} and {k.b_dtype} in {k.accumulator}"
    return f"{k.step.name} {k.lanes} x {k.group} of {types}{flipped}"


def plans(name: str) -> Iterator[str]:
    """Yield how one processor multiplies."""
    for types in TYPES:
        spec = plan_gemm(MACHINES[name], *types, 256, 256)
        steps = (plan_steps(spec, k, 256) for k in DEPTHS)
        yield f"{' '.join(types)}: {kernel_text(spec)}; {window_columns(spec)} columns packed"
        yield f"  steps {' '.join(f'{s.count}x{s.step}' for s in steps)}"
        for transposed in (False, True):
            found = []
            for rows in ROWS:
                spec = plan_gemm(MACHINES[name], *types, rows, 256, transposed_b=transposed)
                found.append(f"{rows}={spec.form.name[:3]}{spec.tile.mr}x{spec.tile.nv}")
            yield f"  {'transposed' if transposed else 'as it is'}: {' '.join(found)}"
        narrow = (plan_gemm(MACHINES[name], *types, rows, n) for rows in (1, 8, 64)
                  for n in (1, 8, 16, 24, 64))  # fmt: skip
        yield f"  narrow: {' '.join(f'{s.tile.mr}x{s.tile.nv}' for s in narrow)}"


@pytest.mark.parametrize("name", PROCESSORS)
def test_on(name: str, golden: Golden) -> None:
    golden("\n".join(plans(name)))


def test_segments_are_all_rows_in_tiles_of_much_the_same_height() -> None:
    for m in range(65):
        for mr in range(1, 17):
            found = row_segments(m, mr)
            rows = [s.start + k * s.size for s in found for k in range(s.count)]
            sizes = [s.size for s in found for _ in range(s.count)]
            assert rows == [sum(sizes[:k]) for k in range(len(sizes))]
            assert sum(sizes) == m
            assert len(sizes) == -(-m // mr), "no more than there must be"
            assert max(sizes, default=1) <= mr
            assert m < mr or min(sizes) >= mr // 2


def test_sizes() -> None:
    assert [round_up(n, 4) for n in range(10)] == [0, 4, 4, 4, 4, 8, 8, 8, 8, 12]
    assert [padded_row(64, t) - 64 for t in ("int8", "float16", "float32", "float64", "int4")] == [
        64, 32, 16, 8, 64
    ]  # fmt: skip
    tiles = [in_pairs_of_lines(RegisterTile(1, nv), nbytes) for nv in (1, 3, 4, 5)
             for nbytes in (32, 64)]  # fmt: skip
    assert [tile.nv for tile in tiles] == [1, 1, 3, 2, 4, 4, 4, 4]
