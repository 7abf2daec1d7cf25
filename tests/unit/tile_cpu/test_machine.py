"""Rows of machines, finding the one we run on, refusing to run what it cannot."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tile_core.errors import MissingFeature, TargetError
from tile_cpu.machine import (
    MACHINES,
    host_machine,
    machine,
    match_host,
    missing_features,
    parse_cpuinfo,
    require_runnable,
)
from tile_cpu.plugin import parse_target

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


def test_rows_state_their_vectors() -> None:
    widths = {name: row.vector_bytes for name, row in MACHINES.items()}
    assert widths["haswell"] == widths["alderlake"] == widths["znver3"] == 32
    assert widths["skylake-avx512"] == widths["znver4"] == widths["sapphirerapids"] == 64
    assert MACHINES["x86-64-v2"].vector_bytes == 16
    assert (MACHINES["haswell"].lanes(32), MACHINES["znver4"].lanes(64)) == (8, 8)
    assert (MACHINES["haswell"].vector_registers, MACHINES["znver4"].vector_registers) == (16, 32)


def test_rows_state_their_dot_products() -> None:
    having = lambda feature: {name for name, row in MACHINES.items() if row.has(feature)}  # noqa: E731
    assert having("avxvnni") == {"alderlake", "sapphirerapids", "znver5"}
    assert having("avx512bf16") == {"cooperlake", "sapphirerapids", "znver4", "znver5"}
    assert having("amx-int8") == {"sapphirerapids"}
    assert having("fma") == set(MACHINES) - {"x86-64-v2"}


def test_llvm_knows_every_row() -> None:
    from tile_cpu.tir.nodes import tvm

    for row in MACHINES.values():
        target = tvm.target.Target(row.llvm_target())
        assert tvm.target.codegen.llvm_is_valid_cpu(row.cpu, "x86_64-linux-gnu")
        spelt = {"sse4_2": "sse4.2", "bmi1": "bmi"}
        for feature in row.features:
            assert tvm.target.codegen.target_has_features(spelt.get(feature, feature), target)


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
    with pytest.raises(TargetError, match="no x86 machine is called 'zen9'") as caught:
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
