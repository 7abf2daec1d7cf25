"""The C interface of the runtime is what Python takes it for."""

from __future__ import annotations

import ctypes

import pytest

from tile_core.errors import ToolchainError
from tile_sim import abi
from tile_sim.build import RUNTIME
from tile_sim.settings import ASYNC_MODES, SCHEDULES
from tile_sim.toolchain import find_compiler, run_compiler

STRUCTURES = {
    "tsim_parameter": abi.CParameter,
    "tsim_kernel": abi.CKernel,
    "tsim_buffer": abi.CBuffer,
    "tsim_tensor_map": abi.CTensorMap,
    "tsim_config": abi.CConfig,
    "tsim_report": abi.CReport,
    "tsim_counter": abi.CCounter,
    "tsim_result": abi.CResult,
}
CHECKS = {
    "TSIM_CHECK_BOUNDS": "bounds",
    "TSIM_CHECK_UNINIT": "uninit",
    "TSIM_CHECK_RACE": "race",
    "TSIM_CHECK_WAIT": "wait",
    "TSIM_CHECK_BARRIER": "barrier",
    "TSIM_COUNT_BANKS | TSIM_COUNT_SECTORS": "counters",
}
TYPES = (
    *"BOOL I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64 E4M3 E5M2 I4 U4".split(),
    *("E4M3_FNUZ", "E5M2_FNUZ"),
)
NUMBERS = {
    "TSIM_ABI_VERSION": abi.ABI_VERSION,
    **{text: abi.CHECK_BITS[name] for text, name in CHECKS.items()},
    **{f"TSIM_{name.upper()}": k for k, name in enumerate(SCHEDULES)},
    "TSIM_LATE": ASYNC_MODES.index("late"),
    "TSIM_EARLY": ASYNC_MODES.index("early"),
    "TSIM_ANY_TIME": ASYNC_MODES.index("random"),
    **{f"TSIM_{kind.name}": kind.value for kind in abi.ReportKind},
    **{f"TSIM_{actor.name}": actor.value for actor in abi.Actor},
    **{f"TSIM_{name}": k for k, name in enumerate(TYPES)},
    "TSIM_MAX_RANK": abi.MAX_RANK,
    "TSIM_NO_MEMORY": abi.Space.NONE,
    "TSIM_REGISTERS": abi.Space.REGISTERS,
    "TSIM_SHARED": abi.Space.SHARED,
    "TSIM_GLOBAL": abi.Space.GLOBAL,
    "TSIM_BOXES": abi.Space.BOXES,
    "TSIM_OPERANDS": abi.Space.OPERANDS,
}


def claims():
    for name, structure in STRUCTURES.items():
        yield f"sizeof({name})", ctypes.sizeof(structure)
        for field, *_ in structure._fields_:
            place = getattr(structure, field)
            yield f"offsetof({name}, {field})", place.offset
            yield f"sizeof((({name}*)0)->{field})", place.size
    yield from NUMBERS.items()


def check(pairs, tmp_path):
    """Let the compiler compare each expression with its value."""
    lines = ["#include <stddef.h>", '#include "abi.h"']
    lines += [f'static_assert(({text}) == {value}, "{text}");' for text, value in pairs]
    source = tmp_path / "claims.cpp"
    source.write_text("\n".join(lines))
    arguments = ["-fsyntax-only", f"-I{RUNTIME}", str(source)]
    run_compiler(find_compiler(), arguments, what="abi.h")


def test_layouts_and_numbers(tmp_path):
    check(claims(), tmp_path)


def test_a_difference_would_be_noticed(tmp_path):
    with pytest.raises(ToolchainError, match="TSIM_DATA_RACE"):
        check([*claims(), ("TSIM_DATA_RACE", 5)], tmp_path)


def test_every_element_type_has_a_number():
    short = {
        "bool": "BOOL", "bfloat16": "BF16", "float8_e4m3fn": "E4M3", "float8_e5m2": "E5M2",
        "float8_e4m3fnuz": "E4M3_FNUZ", "float8_e5m2fnuz": "E5M2_FNUZ",
    }  # fmt: skip
    names = [
        short.get(name, name.replace("uint", "U").replace("int", "I").replace("float", "F"))
        for name in abi.TYPES
    ]
    assert tuple(names) == TYPES


def test_every_check_has_a_bit():
    assert set(abi.CHECK_BITS) == set(CHECKS.values())
