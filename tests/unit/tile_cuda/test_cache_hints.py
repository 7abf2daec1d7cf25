"""Wishes for the cache are in the instructions of every kind of copy, and change no result."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.cuda_header import ptx
from support.nvrtcs import NVRTCS, machine_code_of
from tile_core.errors import InternalError
from tile_core.ir.build_expr import as_expr
from tile_core.ir.cache_hints import HINTED, POLICIES, hint, hint_name
from tile_core.ir.device_calls import DEVICE_CALLS
from tile_sim.sources import SourceKernel

POLICY = pytest.mark.parametrize("policy", POLICIES)
AT = "n, 2, 3, 4, 5"
HALVES = "tile::frag<half_t, 8> h; for (int i = 0; i < 8; ++i) h[i] = F[i]; "


def engine_calls(policy: str) -> list[tuple[str, str, str]]:
    """Every copy of the engine, as it is called, in PTX and in machine code."""
    wish = f"tile::{policy}"
    found = [
        (f"bulk_load<{wish}>(S, H, 256, bar)",
         r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes"
         r"\.L2::cache_hint ", "UBLKCP.S.G"),
        (f"bulk_store<{wish}>(H, S, 256)",
         r"cp\.async\.bulk\.global\.shared::cta\.bulk_group\.L2::cache_hint ", "UBLKCP.G.S"),
        (f"bulk_reduce_add<{wish}>(H, S, 256)",
         r"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group\.L2::cache_hint\.add"
         r"\.noftz\.f16 ", r"UBLKRED\.G\.S\.ADD\S*"),
    ]  # fmt: skip
    for rank in range(1, 6):
        at, kind = ", ".join(AT.split(", ")[:rank]), rf"{rank}d"
        load = rf"cp\.async\.bulk\.tensor\.{kind}\.shared::cluster\.global\.tile\.mbarrier::"
        store = rf"\.bulk\.tensor\.{kind}\.global\.shared::cta"
        found += [
            (f"tma_load<{rank}, {wish}>(S, X, bar, {at})",
             rf"{load}complete_tx::bytes\.L2::cache_hint ", f"UTMALDG.{rank}D"),
            (f"tma_load_multicast<{rank}, {wish}>(S, X, bar, 3, {at})",
             rf"{load}complete_tx::bytes\.multicast::cluster\.L2::cache_hint ",
             f"UTMALDG.{rank}D.MULTICAST"),
            (f"tma_store<{rank}, {wish}>(X, S, {at})",
             rf"cp\.async{store}\.tile\.bulk_group\.L2::cache_hint ", f"UTMASTG.{rank}D"),
        ]  # fmt: skip
        found += [
            (f"tma_reduce_{how}<{rank}, {wish}>(X, S, {at})",
             rf"cp\.reduce\.async{store}\.{how}\.tile\.bulk_group\.L2::cache_hint ",
             f"UTMAREDG.{rank}D.{how.upper()}")
            for how in ("add", "min", "max")
        ]  # fmt: skip
    return found


@pytest.mark.in_turn(6)
@POLICY
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_copies_of_the_engine(policy: str, nvrtc: Any) -> None:
    calls = engine_calls(policy)
    body = "\n".join(f"tile::{text};" for text, _, _ in calls)
    code = machine_code_of(
        '#include "tile.h"\nTILE_KERNEL(128, 1) TILE_CLUSTER(2, 1, 1) void k('
        "TILE_TENSOR_MAP(X), tile::gptr<half_t> H, int n) {\n"
        "tile::sptr<tile::u64> bar = tile::smem<tile::u64>(0, 8);\n"
        f"tile::sptr<half_t> S = tile::smem<half_t>(1024, 8192);\n{body}\n}}\n",
        nvrtc,
    )
    assert f"createpolicy.fractional.L2::{policy}.b64" in code.ptx
    for text, pattern, instruction in calls:
        assert re.search(pattern, code.ptx), text
        # The last operand of an instruction with a wish is a pair of registers with it.
        wishing = rf"\b{instruction} .*, desc\[UR\d+\] ;"
        assert len(re.findall(wishing, code.text)) == 1, text


@pytest.mark.in_turn(4)
@POLICY
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_copies_and_vectors_of_threads(policy: str, arch: str) -> None:
    wish = f"tile::{policy}"
    text = ptx(
        f"{HALVES}tile::cp_async<16, {wish}>(tile::smem<half_t>(0, 64), H); "
        f"tile::cp_async<8, {wish}>(tile::smem<half_t>(0, 64), H); "
        f"tile::load<8, {wish}>(h, H); tile::load<4, {wish}>(h, H + 8); "
        f"tile::load<2, {wish}>(h, H + 16); "
        f"tile::store<8, {wish}>(H, h); tile::store<4, {wish}>(H + 8, h); "
        f"tile::store<2, {wish}>(H + 16, h);",
        arch,
    )
    assert f"createpolicy.fractional.L2::{policy}.b64" in text
    for instruction in (
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B",
        "cp.async.ca.shared.global.L2::cache_hint.L2::128B",
        *(f"{kind}.global.L2::cache_hint{size}.b32" for kind in ("ld", "st")
          for size in (".v4", ".v2", "")),
    ):  # fmt: skip
        assert text.count(f"{instruction} ") == 1, instruction


def test_older_architectures_and_narrow_accesses_have_no_wishes() -> None:
    body = "tile::load<8, tile::evict_first>(h, H); tile::store<8, tile::evict_last>(H + 8, h);"
    assert "cache_hint" not in ptx(HALVES + body, "sm_75")
    narrow = "tile::load<1, tile::evict_first>(h, H); tile::store<1, tile::evict_last>(H + 8, h);"
    assert "cache_hint" not in ptx(HALVES + narrow, "sm_80")


def test_a_wish_is_a_constant_of_calls_that_take_one() -> None:
    assert set(DEVICE_CALLS) >= HINTED
    for policy in POLICIES:
        (number,) = hint(policy)
        assert hint_name("tensor_load", as_expr(number)) == policy
        assert hint_name("mbarrier_wait", as_expr(number)) is None
    assert hint(None) == ()
    with pytest.raises(InternalError, match="no cache does 'evict_never'"):
        hint("evict_never")


def product(policy: str | None, cluster: Any = None, **wishes: Any) -> Any:
    """Return a product whose first factor goes with a wish, and so does what is stored."""

    @T.prim_func
    def kernel(
        A: T.Tensor((256, 192), "float16"),
        B: T.Tensor((192, 256), "float16"),
        C: T.Tensor((256, 256), "float16"),
    ):
        with T.Kernel(2, 2, threads=128, cluster_dims=cluster) as (bx, by):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            out = T.alloc_shared((128, 128), "float16")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * 128, k * 64], a, eviction_policy=policy, **wishes)
                T.copy(B[k * 64, bx * 128], b)
                T.gemm(a, b, c)
            T.copy(c, out)
            T.copy(out, C[by * 128, bx * 128], eviction_policy=policy, **wishes)

    return kernel


def rows(policy: str | None, **wishes: Any) -> Any:
    """Return a kernel that copies rows through shared memory, and others through registers."""

    @T.prim_func
    def kernel(
        X: T.Tensor((1024,), "float32"), Y: T.Tensor((1024,), "float32"),
        Z: T.Tensor((1024,), "float32"),
    ):  # fmt: skip
        with T.Kernel(4, threads=64) as bx:
            x = T.alloc_shared((256,), "float32")
            y = T.alloc_fragment((256,), "float32")
            T.copy(X[bx * 256], x, eviction_policy=policy, **wishes)
            T.copy(x, Y[bx * 256], eviction_policy=policy)
            T.copy(X[bx * 256], y, eviction_policy=policy)
            T.copy(y, Z[bx * 256], eviction_policy=policy)

    return kernel


WAYS = {
    "engine": (product, {}, "sm_90a", ("tma_load<2, {}>", "tma_store<2, {}>")),
    "cluster": (
        product, {"cluster": (2, 1, 1)}, "sm_90a",
        ("tma_load_multicast<2, {}>", "tma_store<2, {}>"),
    ),
    "threads": (product, {}, "sm_80", ("cp_async<16, {}>", "store<8, {}>")),
    "stretches": (
        rows, {"prefer_instruction": "tma"}, "sm_90a",
        ("bulk_load<{}>", "bulk_store<{}>", "load<4, {}>", "store<4, {}>"),
    ),
    "vectors": (rows, {}, "sm_80", ("load<4, {}>", "store<4, {}>")),
}  # fmt: skip


@pytest.mark.in_turn(6)
@POLICY
@pytest.mark.parametrize("way", WAYS)
def test_copies_say_what_the_program_wishes(way: str, policy: str) -> None:
    make, wishes, arch, calls = WAYS[way]
    kernel = tile.compile(make(policy, **wishes), target=f"cuda:{arch}@sim")
    plain = tile.lower(make(None, **wishes), target=f"cuda:{arch}")
    text = kernel.get_kernel_source()
    for call in calls:
        assert f"tile::{call.format(f'tile::{policy}')}(" in text
    # Nothing else is different, and what nobody wished for has no wish.
    assert text.count("tma_load<2>(b") == plain.kernel_source.count("tma_load<2>(b")
    assert "evict" not in plain.kernel_source
    assert re.sub(r", tile::evict_\w+|<tile::evict_\w+>", "", text) == plain.kernel_source
    rng = np.random.default_rng(1)
    if make is product:
        a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((256, 192), (192, 256)))
        c = np.full((256, 256), np.nan, np.float16)
        kernel(a, b, c)
        np.testing.assert_array_equal(c, (a.astype(np.float32) @ b).astype(np.float16))
    else:
        x = rng.integers(-9, 9, 1024).astype(np.float32)
        y, z = (np.full(1024, np.nan, np.float32) for _ in range(2))
        kernel(x, y, z)
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(z, x)


def test_other_machines_do_as_without_a_wish() -> None:
    for target in ("cuda:sm_75", "hip:gfx942"):
        text, plain = (
            tile.lower(rows(p), target=target).kernel_source for p in (POLICIES[0], None)
        )
        assert text == plain


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("tile::load<4, tile::evict_first>(r, s)", "a cache hint goes with global memory"),
        ("tile::load<4, (tile::hint)7>(r, X)", "there is no such cache hint"),
    ],
)
def test_the_emulator_refuses_wishes_that_mean_nothing(call: str, why: str) -> None:
    text = f"""#include "tile.h"
TILE_KERNEL(32, 1) void k(tile::gptr<const float> X) {{
  tile::sptr<float> s = tile::smem<float>(0, 64);
  tile::frag<float, 4> r;
  {call};
}}
TILE_EXPORT(k)
"""
    with pytest.raises(Exception, match=why):
        SourceKernel(text, "k", block=32, shared_bytes=256)(1, X=np.zeros(64, np.float32))
