"""Programs for AVX-512 and VNNI run on processors with AVX2: LLVM splits their vectors.

The kernel is what the backend makes for the processor it is meant for, vectors of 512 bits in 32
registers with it. LLVM translates it for the processor at hand; of the instructions that the
backend asks for by name, each is a function here, written in plain IR. What remains untested is
LLVM's own choice of instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from support.emulated_instructions import instruction
from support.pretended_machine import pretend_from_environment
from tile_cpu import llvm_functions, python_caller, toolchain
from tile_cpu import machine as machines
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.gemm import instruction_kernel as gemm_kernel
from tile_cpu.machine import MACHINES
from tile_cpu.tir.build import extern
from tile_cpu.tir.nodes import PrimExpr

NEEDED = "avx2"
EMULATED = MACHINES["znver5"].features | MACHINES["alderlake"].features
"""What is emulated. ``sapphirerapids`` has more, and remains foreign."""

_emulation = ExitStack()
_missing_features, _tvm_target = machines.missing_features, toolchain._tvm_target
_with_masked_loads_kept = toolchain._with_masked_loads_kept
_PREFIX = "tile_instruction_"
_TO_BF16 = re.compile(r"  (%\w+) = fptrunc <(\d+) x float> (%\w+) to <\d+ x bfloat>\n")
_USED = re.compile(r"@llvm\.x86\.(avx512(?:bf16)?\.[\w.]*\w)")


def prepare_machines() -> None:
    """Make detection find what the environment asks for, and emulate what is missing then."""
    pretend_from_environment()
    _emulation.enter_context(emulated_features())


def can_run(machine: CpuMachine) -> bool:
    """Whether code for `machine` runs here, if features are emulated."""
    missing = set(_missing_features(machine))
    return not missing or (machines.host_machine().has(NEEDED) and missing <= EMULATED)


@contextmanager
def emulated_features() -> Iterator[None]:
    """Meanwhile, kernels for processors that have more than this one run here, slowly.

    Their assembly is not theirs.
    """
    with ExitStack() as stack:
        here = machines.host_machine()

        def missing_features(wanted: CpuMachine, host: CpuMachine | None = None) -> tuple[str, ...]:
            missing = _missing_features(wanted, host)
            return missing if host or not can_run(wanted) else ()

        def is_emulated(machine: CpuMachine) -> bool:
            return bool(_missing_features(machine)) and can_run(machine)

        def tvm_target(machine: CpuMachine) -> Any:
            if is_emulated(machine):
                machine = replace(machine, cpu=here.cpu, disabled=here.disabled)
            return _tvm_target(machine)

        def definitions(names: Iterable[str], machine: CpuMachine) -> str:
            names = set(names)
            asked = {name for name in names if name.startswith(_PREFIX)}
            text = llvm_functions.definitions(names - asked, machine)
            if asked and not text:
                text = llvm_functions._attributes(machine)
            text += "".join(_asking(name) for name in sorted(asked))
            if not is_emulated(machine):
                return text
            own, theirs = llvm_functions._attributes(here), llvm_functions._attributes(machine)
            return _without_instructions(text).replace(theirs, own)

        def with_masked_loads_kept(library: Any, machine: CpuMachine) -> Any:
            # It is about masks of instructions; those here have none, nor registers of 512 bits.
            return library if is_emulated(machine) else _with_masked_loads_kept(library, machine)

        for module, name, instead in (
            (machines, "missing_features", missing_features),
            (python_caller, "missing_features", missing_features),
            (toolchain, "_tvm_target", tvm_target),
            (toolchain, "definitions", definitions),
            (toolchain, "_with_masked_loads_kept", with_masked_loads_kept),
            (gemm_kernel, "llvm_pure", _by_function(gemm_kernel.llvm_pure)),
        ):
            stack.enter_context(patch.object(module, name, instead))
        yield


def _by_function(llvm_pure: Any) -> Any:
    def call(dtype: str, name: str, *args: PrimExpr) -> PrimExpr:
        if not name.startswith("llvm.x86.avx512"):
            return llvm_pure(dtype, name, *args)
        return extern(dtype, _PREFIX + name.removeprefix("llvm.x86.").replace(".", "_"), *args)

    return call


_SIGNATURES = {
    "vpdpbusd": ("i32", 32, ("i32", 32), ("i8", 8), ("i8", 8)),
    "pmaddw_d": ("i32", 32, ("i16", 16), ("i16", 16)),
}


def _asking(symbol: str) -> str:
    """Return a function that is one instruction, which the backend asks for inside a kernel."""
    match = re.fullmatch(_PREFIX + r"avx512_(\w+)_(\d+)", symbol)
    assert match, symbol
    scalar, bits, *parameters = _SIGNATURES[match[1]]
    size = int(match[2])
    result = f"<{size // bits} x {scalar}>"
    types = [f"<{size // bits} x {scalar}>" for scalar, bits in parameters]
    name = f"llvm.x86.avx512.{match[1].replace('_', '.')}.{size}"
    listed = ", ".join(f"{kind} %p{i}" for i, kind in enumerate(types))
    return f"""\
declare {result} @{name}({", ".join(types)})
define {result} @{symbol}({listed}) #0 {{
  %r = call {result} @{name}({listed})
  ret {result} %r
}}
"""


def _without_instructions(text: str) -> str:
    """Return IR that calls functions of its own where it asks for AVX-512 instructions."""
    text = _TO_BF16.sub(_converting, text)
    used = sorted(set(_USED.findall(text)))
    lines = [line for line in text.splitlines() if not _is_declaration(line)]
    own = _USED.sub(lambda match: "@emulated." + match[1], "\n".join(lines))
    return "\n".join([own, *(instruction(name) for name in used), ""])


def _converting(match: re.Match[str]) -> str:
    result, n, value = match.groups()
    call = f"call <{n} x i16> @llvm.x86.avx512bf16.cvtneps2bf16.{32 * int(n)}"
    return f"""\
  {result}.bits = {call}(<{n} x float> {value})
  {result} = bitcast <{n} x i16> {result}.bits to <{n} x bfloat>
"""


def _is_declaration(line: str) -> bool:
    return line.startswith("declare ") and _USED.search(line) is not None
