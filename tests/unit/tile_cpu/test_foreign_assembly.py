"""Kernels for other machines use those machines' instructions; they can be read anywhere."""

from __future__ import annotations

import re

import pytest

from tile_core.errors import MissingFeature
from tile_cpu.machine import MACHINES, missing_features
from tile_cpu.toolchain import compile_module
from unit.tile_cpu.gemm_programs import Case, program

F32 = ("float32",) * 3
BF16 = ("bfloat16", "bfloat16", "float32")
INT8 = ("int8", "int8", "int32")
HALF = ("float16", "float16", "float32")


def assembly(name: str, dtypes: tuple[str, str, str]) -> str:
    case = Case(128, 128, 256, block=(64, 64), dtypes=dtypes)
    return compile_module(program(case, MACHINES[name]), MACHINES[name]).asm()


@pytest.mark.parametrize(
    ("name", "dtypes", "wanted", "unwanted"),
    [
        ("haswell", F32, r"vfmadd\d+ps.*%ymm", r"%zmm"),
        ("haswell", INT8, r"vpmaddwd.*%ymm", r"%zmm|vpdpbusd"),
        ("haswell", HALF, r"vcvtph2ps.*%ymm", r"%zmm|__extendhfsf2@"),
        ("haswell", BF16, r"vfmadd\d+ps.*%ymm", r"vdpbf16ps|__truncsfbf2"),
        ("alderlake", INT8, r"vpdpbusd.*%ymm", r"%zmm"),
        ("skylake-avx512", F32, r"vfmadd\d+ps.*%zmm", r"vdpbf16ps|vpdpbusd"),
        ("skylake-avx512", INT8, r"vpmaddwd.*%zmm", r"vpdpbusd"),
        ("icelake-server", INT8, r"vpdpbusd.*%zmm", r"vdpbf16ps"),
        ("znver4", BF16, r"vdpbf16ps.*%zmm", r"%tmm"),
        ("znver4", INT8, r"vpdpbusd.*%zmm", r"%tmm"),
        ("sapphirerapids", BF16, r"vdpbf16ps.*%zmm", r"__truncsfbf2"),
    ],
)
def test_instructions(name: str, dtypes: tuple[str, str, str], wanted: str, unwanted: str) -> None:
    text = assembly(name, dtypes)
    assert re.search(wanted, text)
    assert not re.search(unwanted, text)


@pytest.mark.parametrize("name", ["haswell", "znver4"])
def test_accumulators_stay_in_registers(name: str) -> None:
    """The k loop of a whole register tile loads operands and nothing else."""
    text = assembly(name, F32)
    loops = re.findall(r"^(\.LBB\w+):((?:(?!^\.LBB).)*?)\bj\w+\s+\1\b", text, re.M | re.S)
    hot = max((body for _, body in loops), key=lambda body: len(re.findall(r"vfmadd", body)))
    assert len(re.findall(r"vfmadd", hot)) >= 12
    assert "rsp" not in hot
    assert not re.search(r"vmov\wps\s+%[yz]mm\d+, ", hot)  # nothing is stored


def test_foreign_code_does_not_run() -> None:
    name = next((n for n, row in MACHINES.items() if missing_features(row)), None)
    if name is None:
        pytest.skip("this machine can run everything there is a row for")
    compiled = compile_module(program(Case(8, 16, 4), MACHINES[name]), MACHINES[name])
    with pytest.raises(MissingFeature, match=name):
        compiled.entry()
