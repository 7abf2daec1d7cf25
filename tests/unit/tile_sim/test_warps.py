"""Exchange between lanes, and indivisible updates, in the emulator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tile_core.errors import DataRace, Deadlock, InternalError, TileError
from tile_sim import checking
from tile_sim.sources import SourceKernel

CPP = {
    "int8": "tile::i8", "uint8": "tile::u8", "int16": "tile::i16", "uint16": "tile::u16",
    "int32": "int", "uint32": "tile::u32", "int64": "tile::i64", "uint64": "tile::u64",
    "float16": "half_t", "float32": "float", "float64": "double",
}  # fmt: skip
LANES = np.arange(32)
WAVE = np.arange(64)


def _kernel(body: str, cpp: str, threads: int, **options: int) -> SourceKernel:
    text = f"""#include "tile.h"
TILE_KERNEL({threads}, 1) void warps(tile::gptr<const {cpp}> A, tile::gptr<{cpp}> O) {{
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  const {cpp} x = A[tid];
{body}
}}
TILE_EXPORT(warps)
"""
    return SourceKernel(text, "warps", block=threads, **options)


def _results(calls: list[str], values: np.ndarray, cpp: str, warp_size: int = 32) -> np.ndarray:
    """Return what each call gives to each thread: calls x threads."""
    threads = len(values)
    body = "\n".join(f"  O[{i * threads} + tid] = {call};" for i, call in enumerate(calls))
    output = np.full((len(calls), threads), 99).astype(values.dtype)
    with checking("all", schedule="random:3"):
        _kernel(body, cpp, threads, warp_size=warp_size)(1, A=values, O=output)
    return output


def _source_of(width: int, lanes: np.ndarray) -> dict[str, np.ndarray]:
    first, last = lanes // width * width, lanes // width * width + width - 1
    down, up, xor, far = lanes + 3, lanes - 3, lanes ^ 5, lanes ^ 35
    return {
        "shfl_down(x, 3": np.where(down <= last, down, lanes),
        "shfl_up(x, 3": np.where(up >= first, up, lanes),
        "shfl_xor(x, 5": np.where(xor <= last, xor, lanes),
        "shfl_xor(x, 35": np.where((far <= last) & (far < len(lanes)), far, lanes),
        "shfl_idx(x, 45": first + 45 % width,
    }


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("dtype", CPP)
@pytest.mark.parametrize(("lanes", "width"), [(32, 32), (32, 8), (64, 64), (64, 32), (64, 8)])
def test_shuffles(dtype: str, lanes: int, width: int) -> None:
    values = (np.arange(lanes) * 3 + 1).astype(dtype)
    sources = _source_of(width, np.arange(lanes))
    calls = [f"tile::{call}{')' if width == lanes else f', {width})'}" for call in sources]
    results = _results(calls, values, CPP[dtype], lanes)
    for call, source, got in zip(calls, sources.values(), results, strict=True):
        np.testing.assert_array_equal(got, values[source], err_msg=call)


def test_votes_and_matches() -> None:
    body = """
  O[tid] = tile::any(x == 5) + 10 * tile::all(x >= 0) + 100 * tile::any(x > 31)
      + 1000 * tile::all(x > 0);
  O[32 + tid] = int(tile::ballot(x % 3 == 0));
  O[64 + tid] = int(tile::match_any(x % 3));
  O[96 + tid] = int(tile::match_all(x));
  O[128 + tid] = int(tile::match_all(x / 32));
  if (tid < 10) { O[160 + tid] = int(tile::activemask()); }
  else { O[160 + tid] = int(tile::activemask()); }"""
    output = np.full(192, 99, np.int32)
    _kernel(body, "int", 32)(1, A=LANES.astype(np.int32), O=output)
    rows = output.view(np.uint32).reshape(6, 32)
    masks = [sum(1 << int(n) for n in LANES if n % 3 == r) for r in range(3)]
    np.testing.assert_array_equal(rows[0], 11)
    np.testing.assert_array_equal(rows[1], masks[0])
    np.testing.assert_array_equal(rows[2], [masks[n % 3] for n in LANES])
    np.testing.assert_array_equal(rows[3], 0)
    np.testing.assert_array_equal(rows[4], 0xFFFFFFFF)
    np.testing.assert_array_equal(rows[5], np.where(LANES < 10, 0x3FF, 0xFFFFFC00))


@pytest.mark.parametrize("schedule", ["forward", "random:2"])
def test_votes_and_matches_of_64_lanes(schedule: str) -> None:
    """Masks have 64 bits: a lane of the upper half is told from its twin below."""
    body = """
  O[tid] = tile::any(x == 63) + 10 * tile::all(x >= 0) + 100 * tile::any(x > 63)
      + 1000 * tile::all(x < 63);
  O[64 + tid] = tile::cast<tile::i64>(tile::ballot(x % 3 == 0));
  O[128 + tid] = tile::cast<tile::i64>(tile::match_any(x % 3));
  O[192 + tid] = tile::cast<tile::i64>(tile::match_all(x));
  O[256 + tid] = tile::cast<tile::i64>(tile::match_all(x / 64));
  if (tid < 40) { O[320 + tid] = tile::cast<tile::i64>(tile::activemask()); }
  else { O[320 + tid] = tile::cast<tile::i64>(tile::activemask()); }"""
    output = np.full(384, 99, np.int64)
    with checking("all", schedule=schedule):
        _kernel(body, "tile::i64", 64, warp_size=64)(1, A=WAVE.astype(np.int64), O=output)
    rows = output.view(np.uint64).reshape(6, 64)
    masks = np.array([sum(1 << int(n) for n in WAVE if n % 3 == r) for r in range(3)], np.uint64)
    np.testing.assert_array_equal(rows[0], 11)
    np.testing.assert_array_equal(rows[1], masks[0])
    np.testing.assert_array_equal(rows[2], masks[WAVE % 3])
    np.testing.assert_array_equal(rows[3], 0)
    np.testing.assert_array_equal(rows[4], np.uint64(2**64 - 1))
    lower, upper = np.uint64(2**40 - 1), np.uint64(2**64 - 2**40)
    np.testing.assert_array_equal(rows[5], np.where(WAVE < 40, lower, upper))


@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:2"])
def test_half_of_a_wave_does_not_meet(schedule: str) -> None:
    """Where a warp of 32 would."""
    body = "  if (tid < 32) { O[tid] = tile::shfl_xor(x, 1); }"
    arrays = {"A": WAVE.astype(np.int32), "O": np.zeros(64, np.int32)}
    with checking("all", schedule=schedule):
        _kernel(body, "int", 64)(1, **arrays)
        with pytest.raises(Deadlock, match="shuffle"):
            _kernel(body, "int", 64, warp_size=64)(1, **arrays)
    np.testing.assert_array_equal(arrays["O"][:32], LANES ^ 1)


def test_pairs_of_a_wave_exchange_through_shared_memory() -> None:
    """Behind a barrier of all 64 lanes; without it, lanes of the other half are not done."""
    body = """
  tile::sptr<int> s = tile::smem<int>(0, 64);
  s[tid] = x;
  tile::sync_warp();
  O[tid] = s[63 - tid];"""
    arrays = {"A": WAVE.astype(np.int32), "O": np.zeros(64, np.int32)}
    _kernel(body, "int", 64, shared_bytes=256, warp_size=64)(1, **arrays)
    np.testing.assert_array_equal(arrays["O"], WAVE[::-1])
    for wrong, lanes in ((body, 32), (body.replace("  tile::sync_warp();", ""), 64)):
        kernel = _kernel(wrong, "int", 64, shared_bytes=256, warp_size=lanes)
        with pytest.raises(DataRace):
            kernel(1, **arrays)


REDUCTIONS: dict[str, Callable[[np.ndarray], object]] = {
    "sum": np.sum, "max": np.max, "min": np.min,
    "bitand": np.bitwise_and.reduce, "bitor": np.bitwise_or.reduce,
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("warp_size", [32, 64])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "float16", "float32", "float64"])
def test_reductions(dtype: str, warp_size: int) -> None:
    values = np.random.default_rng(2).integers(1, 20, 128).astype(dtype)
    names = [n for n in REDUCTIONS if not ("bit" in n and "float" in dtype)]
    calls = [f"tile::warp_reduce_{name}(x)" for name in names]
    for name, got in zip(names, _results(calls, values, CPP[dtype], warp_size), strict=True):
        wanted = [REDUCTIONS[name](part) for part in values.reshape(-1, warp_size)]
        np.testing.assert_array_equal(got, np.repeat(wanted, warp_size), err_msg=name)


@pytest.mark.parametrize("schedule", ["forward", "reverse", "random:2"])
@pytest.mark.parametrize("lanes", [32, 64])
def test_values_of_whole_warps(lanes: int, schedule: str) -> None:
    """Compared one by one, however often lanes come by and however far apart they are."""
    body = """
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    sum += tile::uniform(tid / LANES * 10 + i);
  }
  for (int i = 0; i < (tid & 3); ++i) {
    sum += tile::uniform(i);
  }
  tile::sync_warp();
  for (int i = 0; i < (tid & 3); ++i) {
    sum += tile::uniform(i + 7) - 7;
  }
  O[tid] = sum;""".replace("LANES", str(lanes))
    tid, output = np.arange(128), np.zeros(128, np.int32)
    with checking("all", schedule=schedule):
        _kernel(body, "int", 128, warp_size=lanes)(1, A=output.copy(), O=output)
    times = tid % 4
    np.testing.assert_array_equal(output, tid // lanes * 30 + 3 + times * (times - 1))
    wrong = _kernel(body.replace("i + 7)", "i + tid)"), "int", 128, warp_size=lanes)
    with (
        checking("none", schedule=schedule),
        pytest.raises(InternalError, match="different val") as e,
    ):
        wrong(1, A=output.copy(), O=output)
    assert e.value.span is not None
    assert "i + tid" in wrong.text[e.value.span.line - 1]


def test_lanes_that_do_different_things_are_reported() -> None:
    body = "  if (tid & 1) { O[tid] = tile::shfl_xor(x, 1); }\n  else { tile::sync_warp(); }"
    with pytest.raises(TileError, match="shuffle"):
        _kernel(body, "int", 32)(1, A=LANES.astype(np.int32), O=np.zeros(32, np.int32))


UPDATES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "max": max, "min": min,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", CPP)
@pytest.mark.parametrize("threads", [1, 3])
def test_atomics_of_blocks_and_threads(dtype: str, threads: int) -> None:
    """In global and shared memory, by several threads of the host."""
    cpp, is_float = CPP[dtype], "float" in dtype
    names = [n for n in UPDATES if not (is_float and n in ("and", "or", "xor"))]
    calls = "\n".join(
        f"  tile::atomic_{n}(O + {i}, x);\n  tile::atomic_{n}(s + {i}, x);"
        for i, n in enumerate(names)
    )
    body = f"""
  tile::sptr<{cpp}> s = tile::smem<{cpp}>(0, 8);
  if (tid < 8) {{ s[tid] = tile::cast<{cpp}>(1); }}
  tile::sync();
{calls}
  tile::sync();
  if (tid < {len(names)}) {{ O[8 + bx * 8 + tid] = s[tid]; }}"""
    values = np.random.default_rng(5).integers(0, 3, 64).astype(dtype)
    output = np.ones(8 + 8 * 4, dtype)
    kernel = _kernel(body, cpp, 64, shared_bytes=64)
    with checking("all", threads=threads):
        kernel(4, A=values, O=output)
    for i, name in enumerate(names):
        once, often = 1, 1
        for v in values:
            once = UPDATES[name](once, int(v))
        for v in np.tile(values, 4):
            often = UPDATES[name](often, int(v))
        wrap = dtype if is_float else np.dtype(dtype).str
        assert output[i] == np.array(often).astype(wrap), name
        np.testing.assert_array_equal(output[8 + i :: 8], np.array(once).astype(wrap), name)


def test_other_atomics() -> None:
    body = """
  if (tid == 0) {
    O[0] = tile::atomic_exchange(O + 4, 7);
    O[1] = tile::atomic_cas(O + 4, 7, 8) + tile::atomic_cas(O + 4, 7, 9);
    O[2] = tile::atomic_load(O + 4, tile::acquire);
    tile::atomic_store(O + 5, 12, tile::release);
    O[3] = tile::atomic_add(O + 5, 1);
    tile::frag<int, 4> v;
    for (int i = 0; i < 4; ++i) { v[i] = i; }
    tile::atomic_add<4>(O + 8, v + 0);
  }"""
    output = np.full(12, 5, np.int32)
    _kernel(body, "int", 32)(1, A=LANES.astype(np.int32), O=output)
    np.testing.assert_array_equal(output, [5, 15, 8, 12, 8, 13, 5, 5, 5, 6, 7, 8])


def test_a_thread_may_poll_what_another_writes() -> None:
    body = """
  if (tid == 0) { while (tile::atomic_load(O + 0) != 31) { } }
  else { tile::atomic_add(O + 0, 1); }"""
    for schedule in ("forward", "reverse", "random:1"):
        output = np.zeros(1, np.int32)
        with checking("all", schedule=schedule):
            _kernel(body, "int", 32)(1, A=LANES.astype(np.int32), O=output)
        assert output[0] == 31
