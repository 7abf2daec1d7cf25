"""Rows of machines, finding the one we run on, refusing to run what it cannot."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tile_core.errors import MissingFeature, TargetError
from tile_cpu.arm_machines import match_arm
from tile_cpu.cpu_machine import Isa, host_isa
from tile_cpu.machine import (
    MACHINES,
    host_machine,
    machine,
    missing_features,
    parse_cpuinfo,
    require_runnable,
)
from tile_cpu.plugin import parse_target
from tile_cpu.x86_machines import match_host

CPUINFO = """\
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
flags		: fpu sse4_2 popcnt avx avx2 fma f16c bmi1 bmi2 movbe avx512f avx512bw avx512cd \
avx512dq avx512vl avx512_vnni avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq \
avx512ifma gfni{more}

processor	: 1
vendor_id	: GenuineIntel
"""

ARM_CPUINFO = """\
processor	: 0
BogoMIPS	: 2100.00
Features	: fp asimd evtstrm aes atomics fphp asimdhp cpuid asimdrdm asimddp{more}
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: 0xd40

processor	: 1
CPU implementer	: 0x61
"""
_TRIPLES = {Isa.X86_64: "x86_64-unknown-linux-gnu", Isa.AARCH64: "aarch64-unknown-linux-gnu"}


def test_rows_state_their_vectors() -> None:
    widths = {name: row.vector_bytes for name, row in MACHINES.items()}
    assert widths["haswell"] == widths["alderlake"] == widths["znver3"] == 32
    assert widths["skylake-avx512"] == widths["znver4"] == widths["sapphirerapids"] == 64
    assert MACHINES["x86-64-v2"].vector_bytes == MACHINES["neoverse-v2"].vector_bytes == 16
    assert MACHINES["apple-m1"].vector_registers == 32
    assert (MACHINES["haswell"].lanes(32), MACHINES["znver4"].lanes(64)) == (8, 8)
    assert (MACHINES["haswell"].vector_registers, MACHINES["znver4"].vector_registers) == (16, 32)


def test_rows_state_their_dot_products() -> None:
    having = lambda feature: {name for name, row in MACHINES.items() if row.has(feature)}  # noqa: E731
    assert having("avxvnni") == {"alderlake", "sapphirerapids", "znver5"}
    assert having("avx512bf16") == {"cooperlake", "sapphirerapids", "znver4", "znver5"}
    assert having("amx-int8") == {"sapphirerapids"}
    assert having("bf16") == having("i8mm") >= {"neoverse-v1", "neoverse-v2", "apple-m2"}
    assert having("dotprod") - having("i8mm") == {"neoverse-n1", "apple-m1"}


def test_products_are_rounded_once_but_on_the_oldest_level() -> None:
    fused = {name for name, row in MACHINES.items() if row.fuses_multiply_add}
    assert fused == set(MACHINES) - {"x86-64-v2"}


def test_llvm_knows_every_row() -> None:
    from tile_cpu.tir.nodes import tvm

    for row in MACHINES.values():
        target = tvm.target.Target(row.llvm_target())
        assert tvm.target.codegen.llvm_is_valid_cpu(row.cpu, _TRIPLES[row.isa])
        spelt = {"sse4_2": "sse4.2", "bmi1": "bmi"}
        for feature in row.features:
            assert tvm.target.codegen.target_has_features(spelt.get(feature, feature), target)


def test_foreign_machines_name_their_system() -> None:
    triple = {name: row.llvm_target().get("mtriple", "") for name, row in MACHINES.items()}
    assert triple["apple-m1"] == "arm64-apple-macosx14.0.0"
    own = {name for name, row in MACHINES.items() if row.isa is host_isa() and not row.system}
    assert {name for name, text in triple.items() if not text} == own
    assert triple["neoverse-n1" if host_isa() is Isa.X86_64 else "znver3"] in _TRIPLES.values()


def test_an_arm_processor_is_known_by_its_part() -> None:
    whole = parse_cpuinfo(ARM_CPUINFO.format(more=" sve i8mm bf16 asimdfhm"), Isa.AARCH64)
    assert whole == MACHINES["neoverse-v1"]
    masked = parse_cpuinfo(ARM_CPUINFO.format(more=" i8mm bf16 asimdfhm"), Isa.AARCH64)
    assert (masked.name, masked.disabled) == ("neoverse-v1", ("sve",))
    assert masked.llvm_target()["mattr"] == ["-sve"]


def test_an_unknown_arm_processor_has_what_it_shows() -> None:
    plain, newer = frozenset({"neon", "crc"}), MACHINES["neoverse-n1"].features | {"sha3"}
    assert match_arm(0x99, 1, plain) == MACHINES["aarch64"]
    assert match_arm(0x99, 1, newer) == MACHINES["neoverse-n1"]
    assert match_arm(0x99, 1, MACHINES["apple-m2"].features).name == "apple-m2"


def test_an_arm_processor_that_tells_nothing_has_what_all_have() -> None:
    assert parse_cpuinfo("processor : 0\nflags : fpu", Isa.AARCH64) == MACHINES["aarch64"]


def test_code_for_another_architecture_is_refused_by_its_name() -> None:
    with pytest.raises(MissingFeature, match=r"'neoverse-n1'.*\(haswell\): it lacks AArch64"):
        require_runnable(MACHINES["neoverse-n1"], MACHINES["haswell"])


def test_a_known_model_is_its_row() -> None:
    assert parse_cpuinfo(CPUINFO.format(more=" avx512_bf16")) == MACHINES["znver4"]


def test_what_a_hypervisor_masks_is_switched_off() -> None:
    host = parse_cpuinfo(CPUINFO.format(more=""))
    assert (host.name, host.disabled) == ("znver4", ("avx512bf16",))
    assert not host.has("avx512bf16")
    assert host.llvm_target() == {"kind": "llvm", "mcpu": "znver4", "mattr": ["-avx512bf16"]}


def test_an_unknown_model_is_a_generic_level() -> None:
    some = match_host("Somebody", 1, 2, MACHINES["x86-64-v3"].features | {"gfni"})
    assert some == MACHINES["x86-64-v3"]
    assert match_host("Somebody", 1, 2, frozenset()).features == frozenset()


def test_without_wide_registers_vectors_are_narrower() -> None:
    masked = match_host("AuthenticAMD", 25, 17, MACHINES["x86-64-v3"].features)
    assert (masked.cpu, masked.vector_bytes, masked.vector_registers) == ("znver4", 32, 16)


def test_the_host_can_run_its_own_code() -> None:
    assert missing_features(host_machine()) == ()
    require_runnable(machine(""))


def test_foreign_code_is_refused_by_name() -> None:
    lake, haswell = MACHINES["sapphirerapids"], MACHINES["haswell"]
    lacking = missing_features(lake, haswell)
    assert "avx512bf16" in lacking
    assert "fma" not in lacking
    with pytest.raises(MissingFeature, match=r"'sapphirerapids'.*haswell.*amx-bf16.*avx512f"):
        require_runnable(lake, haswell)


def test_unknown_names_are_target_errors() -> None:
    with pytest.raises(TargetError, match="no processor is called 'zen9'") as caught:
        machine("zen9")
    assert "skylake-avx512" in (caught.value.hint or "")


def test_describing_machines_loads_no_compiler() -> None:
    code = "import sys, tile_cpu.machine; print('tvm' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_targets_name_machines_that_exist() -> None:
    assert parse_target("cpu:haswell") is not None
    with pytest.raises(TargetError, match="pdp11"):
        parse_target("cpu:pdp11")
