"""Kernels for other machines use those machines' instructions; they can be read anywhere."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tile_core.errors import MissingFeature
from tile_cpu.cpu_machine import Isa, host_isa
from tile_cpu.machine import MACHINES, host_machine, missing_features
from tile_cpu.openmp_launcher import OWN_CODE
from tile_cpu.toolchain import compile_module
from unit.tile_cpu.gemm_programs import Case, program

F32 = ("float32",) * 3
BF16 = ("bfloat16", "bfloat16", "float32")
INT8 = ("int8", "int8", "int32")
UINT8 = ("uint8", "uint8", "int32")
MIXED = ("uint8", "int8", "int32")
HALF = ("float16", "float16", "float32")


def assembly(name: str, dtypes: tuple[str, str, str]) -> str:
    case = Case(128, 128, 256, block=(64, 64), dtypes=dtypes)
    return compile_module(program(case, MACHINES[name]), MACHINES[name]).asm()


@pytest.mark.in_turn(4)
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
        ("neoverse-v2", F32, r"fmla\s+v\d+\.4s", r"\bfmaf?\b"),
        ("neoverse-v2", BF16, r"bfdot\s+v\d+\.4s", r"__truncsfbf2"),
        ("neoverse-v2", INT8, r"sdot\s+v\d+\.4s", r"\bmla\b"),
        ("neoverse-v2", UINT8, r"udot\s+v\d+\.4s", r"\bmla\b"),
        ("neoverse-v2", MIXED, r"usdot\s+v\d+\.4s", r"\bmla\b"),
        ("neoverse-n1", INT8, r"sdot\s+v\d+\.4s", r"\bmla\b"),
        ("neoverse-n1", MIXED, r"\bmla\s+v\d+\.4s", r"[su]dot"),
        ("neoverse-n1", BF16, r"fmla\s+v\d+\.4s", r"bfdot|bfcvt|__truncsfbf2"),
        ("aarch64", INT8, r"\bmla\s+v\d+\.4s", r"[su]dot"),
        ("aarch64", HALF, r"fcvtl\s+v\d+\.4s", r"\bbl\s+__(ext|trunc)|fcvt\s+s\d+, h"),
        ("apple-m1", BF16, r"fmla[.\s]", r"bfdot|bfcvt|__truncsfbf2"),
        ("apple-m2", BF16, r"bfdot[.\s]", r"__truncsfbf2"),
    ],
)
def test_instructions(name: str, dtypes: tuple[str, str, str], wanted: str, unwanted: str) -> None:
    text = assembly(name, dtypes)
    assert re.search(wanted, text)
    assert not re.search(unwanted, text)


@pytest.mark.parametrize("name", ["haswell", "znver4", "neoverse-v2"])
def test_accumulators_stay_in_registers(name: str) -> None:
    """The k loop of a whole register tile loads operands and nothing else."""
    text = assembly(name, F32)
    loops = re.findall(r"^(\.LBB\w+):((?:(?!^\.LBB).)*?)\b[jb][\w.]+\s+\1\b", text, re.M | re.S)
    products = {"haswell": "vfmadd", "znver4": "vfmadd", "neoverse-v2": "fmla"}[name]
    hot = max((body for _, body in loops), key=lambda body: len(re.findall(products, body)))
    assert len(re.findall(products, hot)) >= {"neoverse-v2": 24}.get(name, 12)
    assert not re.search(r"\b[re]?sp\b", hot)
    assert not re.search(r"vmov\wps\s+%[yz]mm\d+, |\bst[rp]\b", hot)  # nothing is stored


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ((Isa.AARCH64, "Linux"), "neoverse-v2"),
        ((Isa.AARCH64, "Darwin"), "apple-m1"),
        ((Isa.X86_64, "Darwin"), "haswell"),
        ((host_isa(), "Linux"), host_machine().name),
    ],
    ids=str,
)
def test_the_launcher_of_loops_is_code_of_the_process(code: tuple[Isa, str], name: str) -> None:
    machine = MACHINES[name]
    if code[1] == "Darwin":
        machine = replace(machine, system=OWN_CODE[code][0])
    text = compile_module(program(Case(8, 16, 4), machine), machine).source()
    triple, layout = OWN_CODE[code]
    assert f'target datalayout = "{layout}"' in text
    assert f'target triple = "{triple}"' in text


def test_foreign_code_does_not_run() -> None:
    name = next((n for n, row in MACHINES.items() if missing_features(row)), None)
    if name is None:
        pytest.skip("this machine can run everything there is a row for")
    compiled = compile_module(program(Case(8, 16, 4), MACHINES[name]), MACHINES[name])
    with pytest.raises(MissingFeature, match=name):
        compiled.entry()
