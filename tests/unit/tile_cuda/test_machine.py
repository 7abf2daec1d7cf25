"""The table of architectures, and its features against NVIDIA's assembler."""

from __future__ import annotations

from itertools import product

import pytest

from support.toolchain import nvrtc_for
from tile_core.codegen import PrintedSource
from tile_core.errors import TargetError, ToolchainError
from tile_core.remarks import collected_remarks
from tile_core.target import parse_target_spec
from tile_cuda.compiler import compiles
from tile_cuda.driver import arch_of
from tile_cuda.machine import ARCHITECTURES, machine
from tile_cuda.machine_code import compile_source
from tile_cuda.toolkit import first_for

KIB = 1024
SHARED = {"sm_70": 96, "sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99,
          "sm_90": 227, "sm_90a": 227, "sm_100f": 227, "sm_100a": 227, "sm_103a": 227,
          "sm_110a": 227, "sm_120f": 99, "sm_120a": 99, "sm_121a": 99}  # fmt: skip


@pytest.mark.parametrize("arch", SHARED)
def test_sizes(arch):
    found = machine(arch)
    assert (found.name, found.family, found.warp_size) == (arch, "cuda", 32)
    assert found.shared_bytes == SHARED[arch] * KIB
    assert found.multiprocessor.shared_bytes >= found.shared_bytes


def test_the_table_is_complete():
    assert list(ARCHITECTURES) == list(SHARED)
    with pytest.raises(TypeError):
        ARCHITECTURES["sm_60"] = ARCHITECTURES["sm_70"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sm_8", "[TL4003] no NVIDIA architecture is called 'sm_8'\n"
                 "hint: did you mean 'cuda:sm_89' or 'cuda:sm_87' or 'cuda:sm_86'?"),
        ("volta", "[TL4003] no NVIDIA architecture is called 'volta'\n"
                  "hint: use one of sm_70, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, "
                  "sm_100f, sm_100a, sm_103a, sm_110a, sm_120f, sm_120a, sm_121a"),
    ],
)  # fmt: skip
def test_an_unknown_architecture(name, told):
    with pytest.raises(TargetError) as caught:
        machine(name)
    assert str(caught.value) == told


R4, R2, F4 = "{%r0, %r1, %r2, %r3}", "{%r4, %r5}", "{%f0, %f1, %f2, %f3}"
INSTRUCTIONS = {
    "dp4a": "dp4a.s32.s32 %r0, %r1, %r2, %r3;",
    "f16_arithmetic": "fma.rn.f16x2 %r0, %r1, %r2, %r3;",
    "atomic_f16": "atom.global.add.noftz.f16 %h0, [%a], %h1;",
    "atomic_f16x2": "atom.global.add.noftz.f16x2 %r0, [%a], %r1;",
    "atomic_f64": "atom.global.add.f64 %d0, [%a], %d1;",
    "match_sync": "match.any.sync.b32 %r0, %r1, 0xffffffff;",
    "nanosleep": "nanosleep.u32 100;",
    "mma_m16n8k8_f16":
        f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {F4}, {R2}, {{%r6}}, {F4};",
    "mma_int8_m8n8k16":
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};",
    "mma_int4_m8n8k32":
        "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};",
    "load_matrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1];",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
    "tanh_approx": "tanh.approx.f32 %f0, %f1;",
    "ex2_f16x2": "ex2.approx.f16x2 %r0, %r1;",
    "mma_m16n8k16": f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {F4}, {R4}, {R2}, {F4};",
    "mma_bf16": f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {F4}, {R4}, {R2}, {F4};",
    "mma_tf32": f"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {F4}, {R4}, {R2}, {F4};",
    "mma_f64":
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1};",
    "mma_int8_m16n8k32": f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {R4}, {R4}, {R2}, {R4};",
    "mma_int4": f"mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {R4}, {R4}, {R2}, {R4};",
    "cache_hint": "ld.global.L2::cache_hint.b32 %r0, [%a], %b;",
    "async_copy": "cp.async.cg.shared.global [%r0], [%a], 16;",
    "mbarrier": "mbarrier.arrive.shared.b64 %a, [%r0];",
    "bf16_arithmetic": "fma.rn.bf16x2 %r0, %r1, %r2, %r3;",
    "max_nan": "max.NaN.f32 %f0, %f1, %f2;",
    "redux": "redux.sync.add.s32 %r0, %r1, 0xffffffff;",
    "mma_fp8": f"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {F4}, {R4}, {R2}, {F4};",
    "fp8_convert": "cvt.rn.f16x2.e4m3x2 %r0, %h0;",
    "atomic_bf16": "atom.global.add.noftz.bf16 %h0, [%a], %h1;",
    "atomic_bf16x2": "atom.global.add.noftz.bf16x2 %r0, [%a], %r1;",
    "atomic_f32x2": "atom.global.v2.f32.add {%f0, %f1}, [%a], {%f2, %f3};",
    "atomic_f32x4": f"atom.global.v4.f32.add {F4}, [%a], {F4};",
    "clusters": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "dependent_launch": "griddepcontrol.wait;",
    "elect": "elect.sync _|%p, 0xffffffff;",
    "transaction_barriers": "mbarrier.try_wait.parity.shared.b64 %p, [%r0], %r1;",
    "mma_f64_m16n8":
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d0, %d1, %d2, %d3}, {%d0, %d1}, {%d2},"
        " {%d0, %d1, %d2, %d3};",
    "store_matrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r0], {%r1};",
    "copy_engine":
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%r0], [%a, {%r1}], [%r2];",
    "register_reallocation": "setmaxnreg.dec.sync.aligned.u32 40;",
    "async_mma": "wgmma.fence.sync.aligned;",
    "accumulator_memory": "tcgen05.fence::before_thread_sync;",
    "accumulator_memory_scaled":
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [%r0], %a, %b, %r1, [%r2],"
        " [%r3], %p;",
    "accumulator_memory_pairs":
        "cp.async.bulk.tensor.1d.cta_group::2.shared::cluster.global.tile"
        ".mbarrier::complete_tx::bytes [%r0], [%a, {%r1}], [%r2];",
    "scaled_mma":
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3"
        f".f32.ue8m0 {F4}, {R4}, {R2}, {F4}, {{%r6}}, {{0, 1}}, {{%r7}}, {{2, 3}};",
    "accumulator_memory_int8": "tcgen05.mma.cta_group::1.kind::i8 [%r0], %a, %b, %r1, %p;",
}  # fmt: skip
"""One instruction of each feature. `mma_m8n8k4` is missing: it assembles everywhere.

So is `fast_float64`, which is about how fast they are.
"""

DATA_CENTRE = ("sm_90", "sm_90a", "sm_100f", "sm_100a", "sm_103a", "sm_110a")
CONSUMER = ("sm_120f", "sm_120a", "sm_121a")
EXPANDED = {
    *product(("mma_int4", "mma_int4_m8n8k32", "mma_fp8"), DATA_CENTRE),
    *product(("mma_int4", "mma_int4_m8n8k32", "clusters"), CONSUMER),
}
"""They assemble, and become slower instructions; of clusters, those of one block run."""

DECLARATIONS = " ".join(
    (".reg .b32 %r<8>;", ".reg .f32 %f<4>;", ".reg .f64 %d<4>;", ".reg .b16 %h<2>;")
    + (".reg .b64 %a;", ".reg .b64 %b;", ".reg .pred %p;")
)


def test_every_feature_has_an_instruction():
    named = frozenset().union(*(row.features for row in ARCHITECTURES.values()))
    assert named - {"mma_m8n8k4", "fast_float64"} == set(INSTRUCTIONS)


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_features_are_those_of_the_assembler(arch):
    """What the table promises assembles; what it denies is refused, each on its own."""
    nvrtc_for(arch)
    features = machine(arch).features
    wanted = [INSTRUCTIONS[name] for name in sorted(features) if name in INSTRUCTIONS]
    assert compile_source(_inline(" ".join(wanted)), arch, warn=False).code
    for name in sorted(set(INSTRUCTIONS) - features):
        if (name, arch) in EXPANDED:
            continue
        with pytest.raises(ToolchainError):
            compile_source(_inline(INSTRUCTIONS[name]), arch, warn=False)


def _inline(instructions: str) -> PrintedSource:
    assembly = f'asm volatile("{{ {DECLARATIONS} {instructions} }}");'
    return PrintedSource(f'extern "C" __global__ void k() {{ {assembly} }}\n', {}, ("k",))


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [
        ("cuda:sm_120", "cuda:sm_120a"),
        ("cuda:sm_103@sim", "cuda:sm_103a@sim"),
        ({"kind": "cuda", "arch": "sm_100"}, "cuda:sm_100a"),
        ("cuda -arch=sm_121", "cuda:sm_121a"),
        ("cuda:sm_120f", "cuda:sm_120f"),
        ("cuda:sm_90", "cuda:sm_90"),
    ],
)
def test_plain_names_of_blackwell_are_those_with_all_instructions(spelling, meant, host):
    with collected_remarks() as told:
        assert str(host.resolve(spelling)[1]) == meant
    arch = meant[5:].removesuffix("@sim")
    says = f"{arch[:-1]} is compiled as {arch}, which has all of its instructions"
    is_plain = str(parse_target_spec(spelling)) != meant
    assert [r.message for r in told] == [says] * is_plain


def test_what_a_gpu_of_each_capability_runs():
    found = {c: arch_of(*c) for c in ((9, 0), (10, 0), (10, 3), (10, 9), (12, 0), (12, 1), (12, 9))}
    assert list(found.values()) == [
        *("sm_90a", "sm_100a", "sm_103a", "sm_100f", "sm_120a", "sm_121a", "sm_120f"),
    ]


def test_a_compiler_that_is_too_old_is_told_of():
    class Old:
        name = "NVRTC 12.6"

        def supports(self, arch):
            return compiles(arch, frozenset({"sm_90"}), (12, 6))

    with pytest.raises(ToolchainError) as caught:
        first_for("sm_120a", [Old()])
    assert str(caught.value) == (
        "[TL5001] no installed compiler of CUDA makes code for sm_120a\n"
        "note: NVRTC 12.6 does not know sm_120a\n"
        "note: sm_120a came with CUDA 12.8\n"
        "hint: pip install 'tile-api[cuda]'"
    )
