"""Every function that lowered programs may call is in the device header, as its instruction."""

from __future__ import annotations

import re

import pytest

from support.hip_header import ARCHITECTURES, assembly, built, complaints
from tile_core.errors import ToolchainError
from tile_core.ir.device_calls import ASYNC_CALLS, COUNTED_CALLS, DEVICE_CALLS
from tile_hip.machine import DEVICE_NAMES, machine

FRAGMENTS = {
    "f": ("float", "F"), "d": ("double", "D"), "h": ("half_t", "H"), "b": ("bfloat16_t", "B"),
    "i": ("int", "I"), "s": ("tile::i8", "S8"), "u": ("tile::u8", "U8"), "e4": ("tile::e4m3", "E4"),
    "e5": ("tile::e5m2", "E5"), "n4": ("tile::e4m3_fnuz", "N4"), "n5": ("tile::e5m2_fnuz", "N5"),
}  # fmt: skip
"""Registers of each element type, and what they are read from and written to."""


def body_of(call: str) -> str:
    """Return a kernel's text with a call, and the registers that it names."""
    words = set(re.findall(r"\w+", call))
    before, after = [], []
    for name, (kind, source) in FRAGMENTS.items():
        if name in words:
            each = "TILE_UNROLL\nfor (int r = 0; r < 64; ++r)"
            before.append(f"tile::frag<{kind}, 64> {name};")
            before.append(f"{each} {name}[r] = {source}[r * 128 + tid];")
            after.append(f"{each} {source}[r * 128 + tid] = {name}[r];")
    if "shared" in words:
        before.append("tile::sptr<half_t> shared = tile::smem<half_t>(1024, 8192);")
    return "\n".join([*before, f"{call};", *after])


# What a call is written like, the feature that it needs, and what it becomes.
CALLS: dict[str, list[tuple[str, str, str]]] = {
    "load": [
        ("tile::load<8>(h, H + (tid * 8))", "", r"global_load_dwordx4"),
        ("tile::load<4>(f + 4, F + (tid * 4))", "", r"global_load_dwordx4"),
        ("tile::load<8>(h + 8, shared + (tid * 8))", "", r"ds_read_b128"),
        ("tile::load<4>(h + 16, shared + (tid * 4))", "", r"ds_read_b64"),
        ("tile::load<4>(u, U8 + (tid * 4))", "", r"global_load_dword "),
        ("tile::load<2>(d, D + (tid * 2))", "", r"global_load_dwordx4"),
    ],
    "store": [
        ("tile::store<4>(F + (tid * 4), f + 4)", "", r"global_store_dwordx4"),
        ("tile::store<8>(shared + (tid * 8), h + 8)", "", r"ds_write_b128"),
        ("tile::store<16>(U8 + (tid * 16), u)", "", r"global_store_dwordx4"),
    ],
    "cp_async": [
        (f"tile::cp_async<{n}>(shared + (tid * 8), H + (tid * 8), tid < n)", "", rf"ds_write_{w}")
        for n, w in ((4, "b32"), (8, "b64"), (16, "b128"))
    ],
    "cp_async_commit": [("tile::cp_async_commit()", "", "")],
    "cp_async_wait": [("tile::cp_async_wait<2>()", "", "")],
    "sync": [("shared[tid] = h[0]; tile::sync()", "", r"s_waitcnt lgkmcnt\(0\)\s+s_barrier")],
    "quotient": [("f[0] = tile::quotient(f[1], f[2])", "", "v_div_fixup_f64")],
    "sync_warp": [("tile::sync_warp()", "", "")],
    "uniform": [("I[0] = tile::uniform(tid >> 6)", "", "v_readfirstlane_b32")],
    "lds_load": [
        (
            "tile::lds_load<4>(shared + (tile::uniform(tid >> 6) * 128), H, tid * 2 + n, tid < n)",
            "counted_load",
            r"s_mov_b32 m0, s\d+\s+s_nop 0\s+buffer_load_dword v\d+, s\[\d+:\d+\], 0 offen lds",
        ),
        (
            "tile::lds_load<4>(tile::view<float>(shared), F, tile::i64(tid) * n, true)",
            "counted_load",
            r"buffer_load_dword v\d+, s\[\d+:\d+\], 0 offen lds",
        ),
        (
            "tile::lds_load<16>(shared, H, tid * 8 + n, tid < n)",
            "counted_load_16",
            r"s_nop 0\s+buffer_load_dwordx4 v\d+, s\[\d+:\d+\], 0 offen lds",
        ),
    ],
    "bar_ready": [("tile::bar_ready(tile::smem<tile::u32>(0, 32), 32)", "", "s_barrier")],
    "bar_sync_counted": [
        ("tile::bar_sync_counted(tile::smem<tile::u32>(0, 32), 3, 128)", "", r"s_sleep 1")
    ],
    "bar_arrive_counted": [
        ("tile::bar_arrive_counted(tile::smem<tile::u32>(0, 32), 3, 128)", "", r"ds_add_rtn_u32")
    ],
    "keep_order": [("tile::keep_order()", "", "sched_barrier")],
    "lds_wait": [("tile::lds_wait<7>()", "counted_load", r"s_waitcnt vmcnt\(7\)\n")],
    "atomic_add": [
        ("tile::atomic_add<2>(H + (tid * 2), h)", "atomic_f16x2", "global_atomic_pk_add_f16"),
        ("tile::atomic_add<4>(F + (tid * 4), f)", "atomic_f32", "global_atomic_add_f32"),
        ("tile::atomic_add<1>(D + (tid), d)", "atomic_f64", "global_atomic_add_f64"),
        ("tile::atomic_add<2>(B + (tid * 2), b)", "atomic_bf16x2", "global_atomic_pk_add_bf16"),
        ("tile::atomic_add<3>(I + (tid * 3), i)", "", "global_atomic_add "),
    ],
    "store_nibble": [
        ("tile::store_nibble(U8 + tid, (n & 1) * 4, u[0])", "", "global_atomic_cmpswap"),
        ("tile::store_nibble(tile::smem<tile::u8>(0, 32) + tid, 4, u[0])", "", "ds_cmpst_rtn_b32"),
    ],
    "dp4a": [
        ("tile::dp4a(i, s, s + 4)", "dot4", "v_dot4c?_i32_i8"),
        ("tile::dp4a(i + 1, u, u + 4)", "dot4", "v_dot4_u32_u8"),
    ],
}  # fmt: skip

_NARROW = {
    "mfma_fp8_fnuz": (("n4", "fp8"), ("n5", "bf8")), "mfma_fp8": (("e4", "fp8"), ("e5", "bf8"))
}  # fmt: skip
PRODUCTS = [
    *(("32x32x8", "16x16x16", "f", x, x, f"mfma_{t}", f"{t}{end}", f"{t}{end}")
      for x, t, end in (("h", "f16", ""), ("b", "bf16", "(_1k)?"))),
    ("32x32x2", "16x16x4", "f", "f", "f", "mfma_f32", "f32", "f32"),
    ("", "16x16x4", "d", "d", "d", "mfma_f64", "", "f64"),
    ("32x32x8", "16x16x16", "i", "s", "s", "mfma_i8", "i8", "i8"),
    ("32x32x16", "16x16x32", "i", "s", "s", "mfma_i8_wide", "i8", "i8"),
    ("32x32x32", "16x16x64", "i", "s", "s", "mfma_i8_wide2", "i8", "i8"),
    ("32x32x4", "16x16x8", "f", "f", "f", "mfma_xf32", "xf32", "xf32"),
    ("32x32x16", "16x16x32", "f", "h", "h", "mfma_f16_wide", "f16", "f16"),
    ("32x32x16", "16x16x32", "f", "b", "b", "mfma_bf16_wide", "bf16", "bf16"),
    *(("32x32x16", "16x16x32", "f", a, b, feature, f"{y}_{x}", f"{y}_{x}")
      for feature, types in _NARROW.items() for a, x in types for b, y in types),
]  # fmt: skip
SUMS = {"f": "f32", "d": "f64", "i": "i32"}
for large, small, c, a, b, feature, of_large, of_small in PRODUCTS:
    for shape, types, pack in ((large, of_large, 1), (small, of_small, 2)):
        if shape:
            CALLS.setdefault(f"mfma_{shape}", []).append(
                (f"tile::mfma_{shape}<{pack}>({c}, {a}, {b} + 16)", feature,
                 rf"v_mfma_{SUMS[c]}_{shape}_?{types}\s")
            )  # fmt: skip

EMULATED = {"atomic_bf16x2"}
"""Where there is no instruction, by comparing and exchanging."""


def exists(feature: str, arch: str) -> bool:
    return not feature or feature in EMULATED or machine(arch).has(feature)


def test_the_table_and_the_header_agree():
    elsewhere = {"mbarrier", "load_matrix", "mma_", "bar_"}
    known = {n for n in DEVICE_CALLS if not any(n.startswith(p) for p in elsewhere)}
    known -= {call.name for call in ASYNC_CALLS}
    known |= {call.name for call in COUNTED_CALLS}
    known |= {name for name in DEVICE_NAMES if name.startswith("mma_")}
    assert {DEVICE_NAMES.get(name, name) for name in known} <= set(CALLS)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_call_becomes_its_instruction(arch):
    """One kernel for each, so that the instruction is that call's; registers stay registers."""
    rows = [row for group in CALLS.values() for row in group if exists(row[1], arch)]
    text = assembly(arch, *(body_of(call) for call, _, _ in rows))
    for number, (call, feature, pattern) in enumerate(rows):
        emulated = feature in EMULATED and not machine(arch).has(feature)
        kernel = text[text.index(f"\nk{number}:") :]
        kernel = re.sub(r"\s*;;#.*", "", kernel[: kernel.index("s_endpgm")])
        assert bool(re.search(pattern, kernel)) is not emulated, f"{call}\n{kernel}"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products_that_the_architecture_lacks_are_refused_in_words(arch):
    rows = [row for group in CALLS.values() for row in group if not exists(row[1], arch)]
    assert rows
    log = complaints(arch, *(body_of(call) for call, _, _ in rows))
    refused = re.findall(r"tile::(\w+) of .* needs (?:gfx|an AMD GPU)", log)
    assert set(refused) == {re.match(r"tile::(\w+)", call)[1] for call, _, _ in rows}


def test_functions_of_other_gpus_are_refused_in_words():
    calls = ("tile::mbarrier_wait(P, 0);", "tile::mma_m16n8k16(F, H, H);", "tile::wgmma_wait<1>();")
    log = complaints("gfx942", *calls)
    assert len(re.findall("error: .*needs a GPU of NVIDIA", log)) == len(calls)
    with pytest.raises(ToolchainError, match="tile::mbarrier_wait needs a GPU of NVIDIA"):
        built("gfx942", calls[0])


def test_counted_waits_stay_where_they_are_written():
    """The compiler adds no wait for copies to shared memory before it reads there."""
    text = assembly(
        "gfx942",
        """
  tile::sptr<half_t> S = tile::smem<half_t>(0, 16384);
  tile::frag<float, 16> c;
  tile::frag<half_t, 8> a;
  TILE_UNROLL
  for (int i = 0; i < 16; ++i) c[i] = 0.0f;
  const int wave = tile::uniform(tid >> 6);
  tile::lds_load<4>(S + wave * 128, H, tid * 2, true);
  TILE_NO_UNROLL
  for (int k = 0; k < n; ++k) {
    tile::lds_load<4>(S + ((k + 1 & 1) * 4096 + wave * 128), H, k * 256 + tid * 2, tid < n);
    tile::lds_wait<1>();
    tile::sync();
    tile::load<8>(a, S + ((k & 1) * 4096 + tid * 8));
    tile::mfma_32x32x8<2>(c, a, a);
    tile::sync();
  }
  tile::store<16>(F + (tid * 16), c);
        """,
    )
    start = text.index("s_cbranch")
    loop = text[text.index("offen lds", start) : text.index("global_store")]
    assert re.findall(r"vmcnt\((\d+)\)", loop) == ["1"]
    assert loop.count("s_barrier") == 2
