"""From thread-level TIR to machine code: our pass list, then LLVM inside TVM."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tile_core.errors import ToolchainError
from tile_core.pass_manager.instrumentation import timed
from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.llvm.kernel_text import MASKED_LOAD, keep_masked_loads, number_alias_names
from tile_cpu.llvm_functions import definitions
from tile_cpu.machine import host_machine, require_runnable
from tile_cpu.tir.build import dtype_of_expr, i32
from tile_cpu.tir.nodes import (
    AttrStmt,
    IntImm,
    PrimFunc,
    StringImm,
    Unpicklable,
    load_code,
    structural_map,
    structural_walk,
    tirx,
    tvm,
)
from tile_cpu.tir.split_loads import split_wide_loads


@dataclass(frozen=True, slots=True)
class CompiledModule(Unpicklable):
    """Machine code, TVM's module, linked when its entry is first asked for.

    It can be read anywhere, and run where the features of `machine` exist.
    """

    machine: CpuMachine
    library: Any
    threads: int = 0  # of its parallel loops; 0 follows OpenMP and torch

    def entry(self, name: str = "main") -> Any:
        """Return the callable function `name`; it takes DLPack tensors and numbers.

        Raises
        ------
        MissingFeature
            If this process's machine lacks instructions the code may use.
        """
        require_runnable(self.machine)
        from tile_cpu.openmp_threads import loops_on

        with loops_on(self.threads):
            return self.library[name]

    def source(self) -> str:
        """Return the optimised LLVM IR, the same in every process that compiles the function."""
        return _llvm_ir(self.library)

    def asm(self) -> str:
        """Return the assembly."""
        return str(self.library.inspect_source("asm"))


def _loaded(text: str) -> Any:
    """Return the module that LLVM IR describes, as it is, without optimising it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ll")
        path.write_text(text)
        # As `tvm.runtime.load_module`, which keeps what it loads until the process ends.
        return load_code(str(path), keep_module_alive=False)


def compile_module(source: Any, machine: CpuMachine | None = None) -> CompiledModule:
    """Compile TIR functions for `machine`.

    Before   PrimFuncs on multi-dimensional buffers with explicit vectors and PARALLEL loops
    After    a TVM module of packed functions

    `source` is a PrimFunc, which becomes ``main``, or a dict of them by name.

    Raises
    ------
    ToolchainError
        If TVM or LLVM refuses; the message carries its last line.
    """
    machine = machine or host_machine()
    functions = _functions(source)
    try:
        target = _tvm_target(machine)
        names, has_fp8 = _scan(functions)
        _link_helpers(functions, definitions(names, machine))
        with timed("TVM's passes", "tool"):
            try:
                module = _lowered(functions, target, _passes(has_fp8))
            except ValueError as error:
                if _OVERFLOW not in str(error):
                    raise
                wide = {name: _compared_wide(f) for name, f in functions.items()}
                module = _lowered(wide, target, _passes(has_fp8))
        with timed("LLVM", "tool", machine=machine.name):
            library = tvm.get_global_func("target.build.llvm")(module, target)
            library = _with_masked_loads_kept(library, machine)
    except (RuntimeError, ValueError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ToolchainError(
            f"TVM could not compile for {machine.name}: {lines[-1] if lines else error}"
        ).of_text() from error
    return CompiledModule(machine, library)


def _with_masked_loads_kept(library: Any, machine: CpuMachine) -> Any:
    if not machine.has("avx512f"):
        return library
    text = _llvm_ir(library)
    return _loaded(keep_masked_loads(text)) if MASKED_LOAD in text else library


def _llvm_ir(library: Any) -> str:
    """Return the same text in every process; modules that were read are named after their files."""
    text = number_alias_names(str(library.inspect_source("ll")))
    return re.sub(r"\A; ModuleID = .*", "; ModuleID = 'TVMMod'", text)


def _functions(source: Any) -> dict[str, Any]:
    named = {"main": source} if isinstance(source, PrimFunc) else source
    return {
        name: split_wide_loads(f).with_attr({"global_symbol": name}) for name, f in named.items()
    }


def _tvm_target(machine: CpuMachine) -> Any:
    return tvm.target.Target(machine.llvm_target())


def _scan(functions: Mapping[str, Any]) -> tuple[set[str], bool]:
    """Return the external functions called, and whether an 8-bit float occurs."""
    names: set[str] = set()
    types: set[str] = set()

    def call(node: Any) -> None:
        if node.args and isinstance(node.args[0], StringImm):
            names.add(str(node.args[0].value))

    for function in functions.values():
        structural_walk(
            function,
            ((tvm.ir.Call, call), (tvm.ir.PrimType, lambda node: types.add(str(node.dtype)))),
        )
    return names, any("float8" in name for name in types)


def _link_helpers(functions: dict[str, Any], text: str) -> None:
    if not text:
        return
    name, function = next(iter(functions.items()))  # one import serves the whole module
    body = AttrStmt(i32(0), "pragma_import_llvm", StringImm(text), function.body)
    functions[name] = function.with_body(body)


_OVERFLOW = "exceeds range of"
"""How TVM says that it has folded an index to a constant that its type does not have."""


def _lowered(functions: Mapping[str, Any], target: Any, passes: Sequence[Any]) -> Any:
    module = tirx.transform.BindTarget(target.with_host(target))(tvm.IRModule(functions))
    for step in passes:
        module = step(module)
    return module


def _compared_wide(function: Any) -> Any:
    """Return `function` with comparisons of int32 and constants made in int64.

    Before   if n == 2000000000: y[0] = x[n * 8]
    After    if int64(n) == int64(2000000000): y[0] = x[n * 8]

    TVM puts the constant for `n` inside of the branch, and refuses to compile the index that
    comes of it, though the branch may never run. It does not see through the conversion.
    """

    def widened(node: Any) -> Any:
        has_constant = isinstance(node.a, IntImm) or isinstance(node.b, IntImm)
        if not has_constant or dtype_of_expr(node.a) != "int32":
            return node
        return type(node)(tirx.Cast("int64", node.a), tirx.Cast("int64", node.b))

    kinds = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
    return structural_map(function, (kinds, widened))


def _passes(has_fp8: bool) -> list[Any]:
    t = tirx.transform
    return [
        t.FlattenBuffer(),
        *([t.FP8ComputeLegalize()] if has_fp8 else []),
        t.BF16ComputeLegalize(),
        t.NarrowDataType(32),
        t.VectorizeLoop(True),
        t.UnrollLoop(),
        t.StmtSimplify(),
        t.RemoveNoOp(),
        t.VerifyMemory(),
        t.AnnotateEntryFunc(),
        t.SplitHostDevice(),
        t.MakePackedAPI(),
        *([t.FP8StorageLegalize()] if has_fp8 else []),
        t.BF16StorageLegalize(),
        t.LowerTVMBuiltin(),
        t.LowerIntrin(),
    ]
