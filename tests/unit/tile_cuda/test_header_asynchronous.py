"""Barriers in memory, copies of tensors and clusters become their instructions on sm_90a."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cuda_header import ptx
from support.nvrtcs import NVRTCS, machine_code_of
from tile_core.errors import ToolchainError
from tile_core.ir.device_calls import ASYNC_CALLS
from tile_cuda.machine import DEVICE_NAMES

KERNELS = Path(__file__).parents[2] / "data" / "hopper"
RANKS = range(1, 6)
DECLARED = (
    "tile::sptr<tile::u64> bar = tile::smem<tile::u64>(0, 8);\n"
    "tile::sptr<half_t> S = tile::smem<half_t>(1024, 8192);\n"
    "tile::sptr<float> SF = tile::smem<float>(1024, 4096);\n"
    "tile::frag<half_t, 8> h; TILE_UNROLL for (int i = 0; i < 8; ++i) h[i] = H[i];\n"
)

# What a call is written like, its PTX, and the machine code; "" where that has no one name.
CALLS = {
    "mbarrier_init": ("(bar, 3)", r"mbarrier\.init\.shared\.b64 \[%r\d+\], %r\d+;", "SYNCS.EXCH"),
    "fence_mbarrier_init": ("()", r"fence\.mbarrier_init\.release\.cluster;", ""),
    "mbarrier_arrive": ("(bar + 1)", r"mbarrier\.arrive\.shared\.b64", "SYNCS.ARRIVE"),
    "mbarrier_arrive_remote": (
        "(bar + 1, n)", r"mapa\.shared::cluster\.u32 there[^;]*;\s*mbarrier\.arrive\.release"
        r"\.cluster\.shared::cluster\.b64 _, \[there\];", "SYNCS.ARRIVE.TRANS64.RED",
    ),
    "mbarrier_free_remote": (
        "(bar + 1, n)", r"mapa\.shared::cluster\.u32 there[^;]*;\s*mbarrier\.arrive"
        r"\.shared::cluster\.b64 _, \[there\];", "SYNCS.ARRIVE.TRANS64.RED",
    ),
    "mbarrier_expect_tx": ("(bar, n)", r"mbarrier\.expect_tx\.relaxed", "SYNCS.ARRIVE"),
    "mbarrier_arrive_expect_tx": ("(bar, n)", r"mbarrier\.arrive\.expect_tx", "SYNCS.ARRIVE"),
    "mbarrier_wait": ("(bar, n & 1)", r"mbarrier\.try_wait\.parity", "SYNCS.PHASECHK"),
    "mbarrier_wait_cluster": (
        "(bar, n & 1)", r"mbarrier\.try_wait\.parity\.acquire\.cluster", "CCTL.IVALL",
    ),
    "cp_async_mbarrier_arrive": ("(bar)", r"cp\.async\.mbarrier\.arrive\.noinc", "ARRIVES"),
    "fence_proxy_async": ("()", r"fence\.proxy\.async\.shared::cta;", "FENCE.VIEW.ASYNC"),
    "bulk_load": ("(S, H, 256, bar)", r"cp\.async\.bulk\.shared::cluster\.global", "UBLKCP"),
    "bulk_store": ("(H, S, 256)", r"cp\.async\.bulk\.global\.shared::cta\.bulk_group", "UBLKCP"),
    "bulk_reduce_add": (
        "(F, SF, 256)", r"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group\.add\.f32",
        "UBLKRED",
    ),
    "bulk_copy_remote": (
        "(S, n, S + 64, 128, bar)", r"cp\.async\.bulk\.shared::cluster\.shared::cta", "UBLKCP",
    ),
    "tma_store_commit": ("()", r"cp\.async\.bulk\.commit_group;", "UTMACMDFLUSH"),
    "tma_store_wait_read": ("<1>()", r"cp\.async\.bulk\.wait_group\.read 1;", "DEPBAR"),
    "tma_store_wait": ("<2>()", r"cp\.async\.bulk\.wait_group 2;", "DEPBAR"),
    "tma_prefetch": ("(X)", r"prefetch\.tensormap", "UTMACCTL.PF"),
    "elect": ("()", r"elect\.sync", "ELECT"),
    "cluster_arrive": ("()", r"barrier\.cluster\.arrive\.aligned;", "UCGABAR_ARV"),
    "cluster_arrive_relaxed": ("()", r"barrier\.cluster\.arrive\.relaxed\.aligned;", "UCGABAR_ARV"),
    "cluster_wait": ("()", r"barrier\.cluster\.wait\.aligned;", "UCGABAR_WAIT"),
    "cluster_sync": ("()", r"barrier\.cluster\.arrive\.aligned;", "UCGABAR_WAIT"),
    "cluster_rank": ("()", r"%cluster_ctarank", ""),
    "remote": ("(S + tid, n)", r"mapa\.u64", ""),
    "grid_wait": ("()", r"griddepcontrol\.wait;", "ACQBULK"),
    "grid_launch": ("()", r"griddepcontrol\.launch_dependents;", "PREEXIT"),
    "registers_increase": ("<232>()", r"setmaxnreg\.inc\.sync\.aligned\.u32 232;", "USETMAXREG"),
    "registers_decrease": ("<40>()", r"setmaxnreg\.dec\.sync\.aligned\.u32 40;", "USETMAXREG"),
}  # fmt: skip
USED = {"elect": "I[0] = {};", "cluster_rank": "I[1] = {};", "remote": "H[0] = {}[0];"}
COORDINATES = [", ".join(["n", "tid", "3", "n + 1", "-2"][:rank]) for rank in RANKS]


def kernel(body: str) -> str:
    return (
        '#include "tile.h"\nTILE_KERNEL(128, 1) TILE_CLUSTER(2, 1, 1) void k('
        "TILE_TENSOR_MAP(X), tile::gptr<float> F, tile::gptr<half_t> H, tile::gptr<int> I, int n) {"
        f"\nconst int tid = threadIdx.x;\n{DECLARED}{body}\n}}\n"
    )


def call(name: str) -> str:
    text = f"tile::{name}{CALLS[name][0]}"
    return USED.get(name, "{};").format(text)


def copies() -> list[tuple[str, str, str]]:
    """Copies of tensors in every rank: text, PTX, machine code."""
    found = []
    for rank, at in zip(RANKS, COORDINATES, strict=True):
        registers = r"\{%r\d+(, %r\d+){%d}\}".replace("%d", str(rank - 1))
        head = rf"cp\.async\.bulk\.tensor\.{rank}d\.shared::cluster\.global\.tile\.mbarrier"
        found += [
            (f"tma_load<{rank}>(S, X, bar, {at})",
             rf"{head}::complete_tx::bytes \[%r\d+\], \[%rd\d+, {registers}\], \[%r\d+\];",
             f"UTMALDG.{rank}D"),
            (f"tma_load_multicast<{rank}>(S, X, bar, 3, {at})",
             rf"{head}::complete_tx::bytes\.multicast::cluster \[%r\d+\], "
             rf"\[%rd\d+, {registers}\], \[%r\d+\], %rs\d+;", f"UTMALDG.{rank}D.MULTICAST"),
            (f"tma_store<{rank}>(X, S, {at})",
             rf"cp\.async\.bulk\.tensor\.{rank}d\.global\.shared::cta\.tile\.bulk_group "
             rf"\[%rd\d+, {registers}\], \[%r\d+\];", f"UTMASTG.{rank}D"),
        ]  # fmt: skip
        found += [
            (f"tma_reduce_{how}<{rank}>(X, S, {at})",
             rf"cp\.reduce\.async\.bulk\.tensor\.{rank}d\.global\.shared::cta\.{how}\.tile",
             f"UTMAREDG.{rank}D.{how.upper()}")
            for how in ("add", "min", "max")
        ]  # fmt: skip
    return found


def test_the_tables_are_complete():
    elsewhere = ("wgmma", "stmatrix", "tcgen05", "tma_load_pair")  # tests of their own
    names = {DEVICE_NAMES.get(c.name, c.name) for c in ASYNC_CALLS}
    names = {name for name in names if not name.startswith(elsewhere)}
    assert names == set(CALLS) | {text.split("<")[0] for text, _, _ in copies()}


@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_every_call_becomes_its_instruction(nvrtc):
    code = machine_code_of(kernel("\n".join(map(call, CALLS))), nvrtc)
    for name, (_, pattern, instruction) in CALLS.items():
        assert re.search(pattern, code.ptx), name
        assert any(o.startswith(instruction) for o in code.counts), name


@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_copies_of_tensors_of_every_rank(nvrtc):
    rows = copies()
    code = machine_code_of(kernel("\n".join(f"tile::{text};" for text, _, _ in rows)), nvrtc)
    for text, pattern, instruction in rows:
        assert re.search(pattern, code.ptx), text
        assert code.counts[instruction] == 1, text


def test_copies_take_a_coordinate_for_each_dimension():
    body = f"{DECLARED}tile::tensor_map X; tile::tma_load<2>(S, X, bar, 1);"
    with pytest.raises(ToolchainError, match="tile::tma_load: a coordinate for each dimension"):
        ptx(body, "sm_90a")


@pytest.mark.parametrize("kind", ["half_t", "bfloat16_t", "float", "double", "int", "tile::u32"])
def test_sums_of_bulk_copies_by_type(kind):
    pointer = {"half_t": "H", "bfloat16_t": "B", "float": "F", "double": "D", "int": "I",
               "tile::u32": "U"}[kind]  # fmt: skip
    code = {"half_t": "noftz.f16", "bfloat16_t": "noftz.bf16", "float": "f32", "double": "f64",
            "int": "s32", "tile::u32": "u32"}[kind]  # fmt: skip
    text = ptx(f"tile::bulk_reduce_add({pointer}, tile::smem<{kind}>(0, 64), 64);", "sm_90a")
    assert f"bulk_group.add.{code} " in text


@pytest.mark.parametrize(
    ("arch", "text", "needs"),
    [
        ("sm_75", "tile::mbarrier_wait(bar, 0);", "mbarrier_wait needs sm_80 or newer"),
        ("sm_80", "tile::mbarrier_arrive_expect_tx(bar, 4);", "expect_tx needs sm_90 or newer"),
        ("sm_89", "tile::bulk_load(S, H, 16, bar);", "bulk_load needs sm_90 or newer"),
        ("sm_80", "tile::tma_store_wait<0>();", "tma_store_wait needs sm_90 or newer"),
        ("sm_80", "tile::cluster_sync();", "cluster_sync needs sm_90 or newer"),
        ("sm_90", "tile::wgmma_fence();", "wgmma_fence needs sm_90a"),
        ("sm_90", "tile::registers_decrease<40>();", "registers_decrease needs sm_90a"),
    ],
)
def test_what_an_architecture_lacks_is_refused_in_words(arch, text, needs):
    with pytest.raises(ToolchainError, match=re.escape(needs)):
        ptx(DECLARED + text, arch)


def test_barriers_in_memory_work_before_hopper():
    body = "tile::mbarrier_init(bar, 1); tile::mbarrier_arrive(bar); tile::mbarrier_wait(bar, 0);"
    assert "mbarrier.test_wait.parity" in ptx(DECLARED + body, "sm_80")


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_a_product_of_matrices_in_the_printed_form(nvrtc):
    code = machine_code_of((KERNELS / "gemm.cu").read_text(), nvrtc)
    assert code.spills == 0
    assert not re.search(r"C75\d\d", code.log)
    for opcode, count in {
        "HGMMA.64x256x16.F32": 4, "UTMALDG.2D": 5, "UTMASTG.2D": 4, "STSM.16.M88.4": 16,
        "USETMAXREG.DEALLOC.CTAPOOL": 1, "USETMAXREG.TRY_ALLOC.CTAPOOL": 1,
    }.items():  # fmt: skip
        assert code.counts[opcode] == count, opcode
    # Once round the loop of the consumers, and of the producer; a person's code has 52 and 64.
    assert code.loop_with("HGMMA") <= 50
    assert code.loop_with("UTMALDG") <= 33
    waits = re.findall(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x\d)", code.text)
    assert waits == ["0x1", "0x0"]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_a_product_of_matrices_by_clusters(nvrtc):
    code = machine_code_of((KERNELS / "gemm_cluster.cu").read_text(), nvrtc)
    assert code.spills == 0
    assert not re.search(r"C75\d\d", code.log)
    for opcode, count in {
        "HGMMA.64x256x16.F32": 4, "UTMALDG.2D": 1, "UTMALDG.2D.MULTICAST": 2,
        "SYNCS.ARRIVE.TRANS64.RED.A1T0": 1, "UCGABAR_ARV": 2, "UCGABAR_WAIT": 2,
    }.items():  # fmt: skip
        assert code.counts[opcode] == count, opcode
    assert code.loop_with("HGMMA") <= 58
