"""Matrix products against torch (MKL, oneDNN) and NumPy (OpenBLAS)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from measure import Row, Run, cores, median_ms, set_threads

from kernels import matmul
from tile_cpu.machine import machine
from tile_cpu.measured_peak import multiply_adds

SIZES = (256, 512, 1024, 2048, 4096)
Extents: TypeAlias = tuple[int, int, int]
PEAK = "multiply-adds on registers"
TILES = ((128, 128, 32), (128, 128, 128), (256, 256, 128))


def _operands(shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    if dtype is torch.int8:
        return torch.randint(-8, 8, shape, dtype=dtype, generator=generator)
    return torch.randint(-3, 4, shape, generator=generator).to(dtype)


def _peers(a: torch.Tensor, b: torch.Tensor, a_op: Any, b_op: Any, numpy: bool) -> dict[str, Run]:
    """Return torch's product, and NumPy's, of op(A) and op(B) into given memory."""
    left, right = a_op(a), b_op(b)
    out = torch.empty(left.shape[0], right.shape[1], dtype=a.dtype)
    if a.dtype is torch.int8:
        return {"torch": lambda: torch._int_mm(left, right)}
    peers: dict[str, Run] = {"torch": lambda: torch.mm(left, right, out=out)}
    if numpy:
        x, y, z = left.numpy(), right.numpy(), out.numpy()
        peers["numpy"] = lambda: np.matmul(x, y, out=z)
    return peers


def measure(name: str, mnk: Extents, tiles: Extents, threads: int, **options: Any) -> Row:
    """Check one product against torch in exact integers, then time it.

    `options` are those of `measure_tiles`.
    """
    (row,) = measure_tiles({name: tiles}, mnk, threads, **options)
    return row


def measure_tiles(
    cases: Mapping[str, Extents],
    mnk: Extents,
    threads: int,
    *,
    dtype: str = "float32",
    out: str = "float32",
    accum: str = "float32",
    trans: str = "NN",
    bar: float = 0.0,
    of_peak: bool = False,
    target: str | None = None,
) -> list[Row]:
    """Check and time one product with the tiles of several `cases`, all beside the same peers.

    If `of_peak` multiply-adds on registers take their turns, too: the clock of a core follows
    the load, its own and that of its neighbours, so the most it can do is a matter of the moment.
    """
    m, n, k = mnk
    trans_a, trans_b = (c == "T" for c in trans)
    torch_dtype = getattr(torch, dtype)
    a = _operands((k, m) if trans_a else (m, k), torch_dtype)
    b = _operands((n, k) if trans_b else (k, n), torch_dtype)
    factory = _for_target(target) if target else matmul
    exact = (a.T if trans_a else a).double() @ (b.T if trans_b else b).double()
    tolerance = 0 if out in ("float32", "int32") else 2**-7
    runs: dict[str, Run] = {}
    for name, tiles in cases.items():
        kernel = factory(m, n, k, *tiles, dtype, out, accum, trans_a, trans_b)
        got = kernel(a, b)
        torch.testing.assert_close(got.double(), exact, rtol=tolerance, atol=tolerance)
        runs[name] = kernel.raw(a, b, torch.empty_like(got))

    set_threads(threads)
    # float16 has no fast peer: torch's float32 is the one to beat.
    pa, pb = (a.float(), b.float()) if dtype == "float16" else (a, b)
    flip = {True: lambda x: x.T, False: lambda x: x}
    runs |= _peers(pa, pb, flip[trans_a], flip[trans_b], dtype == "float32")
    most = 0.0
    if of_peak:
        arch = machine(target.partition(":")[2]) if target else None
        runs[PEAK], most = multiply_adds(arch, threads)
    times = median_ms(runs, threads, 0.6 * len(cases) if m * n * k < 2**33 else 3.0)
    ours = {name: times.pop(name) for name in cases}
    if of_peak:
        most *= 1e3 / times.pop(PEAK)
    work = 2 * m * n * k / 1e9
    return [Row(name, threads, ms, times, work, most, bar) for name, ms in ours.items()]


def _for_target(target: str | None) -> Any:
    import tile_api as tile

    return tile.jit(out_idx=[-1], target=target)(matmul.func)


def square(peaks: Mapping[str, float], sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """M = N = K in float32."""
    for threads in range(1, cores() + 1):
        for size in sizes:
            cases = {
                f"fp32 {size} {'x'.join(map(str, tiles))}": tiles
                for tiles in TILES
                if threads == 1 or tiles[0] < size
            }
            yield from measure_tiles(cases, (size,) * 3, threads, bar=0.97, of_peak=True)


def transposed(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Measure the four storage orders, which should cost the same."""
    for trans in ("NN", "NT", "TN", "TT"):
        for size in (512, 1024, 2048):
            name = f"fp32 {trans} {size} 128x128x32"
            tiles = (128, 128, 32)
            yield measure(name, (size,) * 3, tiles, 1, trans=trans, bar=0.97, of_peak=True)


def ragged(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Sizes that no tile divides."""
    cases = (((1000, 1000, 1000), 0.95), ((333, 777, 555), 0.95), ((127, 129, 131), 0.85))
    for threads in range(1, min(2, cores()) + 1):
        for mnk, bar in cases:
            if threads == 2:
                bar = 0.9 if mnk[0] > 127 else 0.0
            name = f"fp32 {'x'.join(map(str, mnk))}"
            yield measure(name, mnk, (128, 128, 32), threads, bar=bar, of_peak=True)


def narrow(peaks: Mapping[str, float]) -> Iterator[Row]:
    """bfloat16, int8 and float16."""
    wide, small = (256, 256, 256), (128, 128, 32)
    for size in (512, 1024, 2048):
        cases = (
            ("bfloat16", "bfloat16", "float32", wide, 1.0),
            ("bfloat16", "bfloat16", "float32", small, 0.97),
            ("int8", "int32", "int32", wide, 0.95),
            ("int8", "int32", "int32", (128, 128, 64), 0.95),
            ("float16", "float32", "float32", (128, 128, 32), 1.03),
        )
        for dtype, out, accum, tiles, bar in cases:
            name = f"{dtype} {size} {'x'.join(map(str, tiles))}"
            yield measure(name, (size,) * 3, tiles, 1, dtype=dtype, out=out, accum=accum, bar=bar)


def skinny(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Few rows: bound by memory."""
    for threads in range(1, cores() + 1):
        for m, tiles, bar in ((16, (16, 512, 16), 2.0), (1, (1, 1024, 8), 1.1)):
            for trans in ("NN", "NT"):
                yield measure(
                    f"fp32 {trans} M={m} N=K=4096",
                    (m, 4096, 4096),
                    tiles,
                    threads,
                    trans=trans,
                    bar=bar if threads == 1 else 0.0,
                )


def avx2(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Compile the same kernel for AVX2 and measure it against AVX2's own peak."""
    for size in (512, 1024, 2048):
        yield measure(
            f"fp32 {size} on cpu:haswell",
            (size,) * 3,
            (128, 128, 32),
            1,
            of_peak=True,
            target="cpu:haswell",
        )
