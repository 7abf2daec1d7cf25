"""Kernels as functions of TVM's IR: parameters, symbols, checks, helpers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.printer import symbols_of
from tile_core.ir.ranks import rank_parameters
from tile_core.ir.stmt import Check, Kernel, Stmt
from tile_core.passes.guards.registry import located, open_registry
from tile_core.passes.infer_layouts import Layouts
from tile_core.records import dataclass
from tile_core.target import Target
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.lowering import calls, casts, expressions, statements, storage
from tile_cpu.lowering.buffer_addresses import special_layouts
from tile_cpu.lowering.cache_hints import streamed_buffers
from tile_cpu.lowering.context import Context, Settings, assigned
from tile_cpu.lowering.types import value_type
from tile_cpu.tir.build import i32, prim, seq
from tile_cpu.tir.nodes import AttrStmt, PrimExpr, PrimFunc, StringImm, Unpicklable, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar

MAIN = "main"
"""The symbol of the compiled function."""


@dataclass(frozen=True, slots=True)
class Lowered(Unpicklable):
    """A kernel as one TIR function, and what the host must know to call it.

    The function takes, in this order: the address of each tensor parameter and the value of
    each scalar one, as the kernel declares them; the symbols; and, if there are `checks`,
    the address of one int32 that receives the number, from 1, of the first failed check.
    """

    function: Any
    machine: CpuMachine
    kernel: Kernel
    symbols: tuple[Var, ...]
    checks: tuple[Check, ...]
    prints: bool
    extern_names: Mapping[str, str]
    layouts: Layouts

    def __str__(self) -> str:
        return str(self.function.script())


def lower_kernel(
    kernel: Kernel, machine: CpuMachine, target: Target, layouts: Layouts, *, guarded: bool
) -> Lowered:
    """Return `kernel` as thread-level TIR.

    Before   launch bx in (4): alloc T; copy A[bx*32], T; …
    After    parallel for b in 4: scratch T; loops of vector loads and stores; …
    """
    names = calls.own_symbols(kernel.sources, calls.names_called(kernel))
    settings = Settings(
        machine,
        target,
        layouts.rules,
        storage.retyped_storages(kernel),
        guarded,
        names,
        special_layouts(layouts),
        layouts.touching,
    )
    ctx = Emitter(settings)
    symbols = symbols_of(kernel)
    ctx.streamed = streamed_buffers(kernel, machine)
    params = {p: _parameter(p) for p in (*kernel.params, *symbols)}
    status = TirVar("status", storage.pointer_to("int32"))
    with ctx.statement() as head:
        for var in (*(p for p in kernel.params if isinstance(p, Var)), *symbols):
            ctx.vars[var] = _scalar(ctx, params[var], var)
        for symbol in symbols:
            ctx.env = ctx.env.with_symbol(symbol)
        _learn_of_ranks(ctx, kernel)
        for param in kernel.params:
            if isinstance(param, Buffer):
                storage.declare_parameter(ctx, param, params[param])
        with ctx.statement() as reporting:
            ctx.status = storage.at_address(ctx, status, "int32", "failed")
        ctx.jump = ctx.cell("int32", "jump")
        ctx.run(assigned(ctx.jump, i32(0)))
        body = ctx.lower_stmt(kernel.body)
        registry = open_registry()
        if registry is not None:
            registry.settle()
    if not ctx.checks:
        reporting = []
    whole = _with_helpers(ctx, seq(reporting, head, ctx.block_entry, body))
    arguments = [*params.values(), *([status] if ctx.checks else [])]
    # Workspaces belong to a device, which TVM would take from tensor arguments.
    for key, number_of in (("device_type", 1), ("device_id", 0)):
        whole = AttrStmt(StringImm("default"), key, i32(number_of), whole)
    function = PrimFunc(arguments, whole)
    return Lowered(
        function, machine, kernel, symbols, tuple(ctx.checks), ctx.prints, names, layouts
    )


def _learn_of_ranks(ctx: Context, kernel: Kernel) -> None:
    """Take down which rank this is, and that it is one of them."""
    found = rank_parameters(kernel)
    if found is None:
        return
    ctx.rank, ranks = found
    ctx.env = ctx.env.assuming(ctx.rank >= 0).assuming(ctx.rank < ranks)


def _parameter(param: Buffer | Var) -> Any:
    if isinstance(param, Buffer):
        return TirVar(f"{param.name}_data", storage.pointer_to("void"))
    kind = value_type(param.dtype)
    if kind == "handle":
        return TirVar(param.name, storage.pointer_to("void"))
    return TirVar(param.name, prim("int32" if kind == "bool" else kind))


def _scalar(ctx: Context, value: PrimExpr, param: Var) -> PrimExpr:
    """Return a parameter as a value of its type: shorter floats come as float32."""
    if param.dtype.is_bool:
        return tirx.NE(value, i32(0))
    if param.dtype.is_float and param.dtype.bits <= 16:
        return ctx.keep(casts.rounded(ctx, value, param.dtype))
    return value


def _with_helpers(ctx: Context, body: TirStmt) -> TirStmt:
    """Link the LLVM text that the body calls; one import serves the function."""
    if not ctx.helpers:
        return body
    text = "\n".join(dict.fromkeys(ctx.helpers.values()))
    return AttrStmt(i32(0), "pragma_import_llvm", StringImm(text), body)


class Emitter(Context):
    """A `Context` that emits."""

    value = expressions.value
    unrounded = expressions.unrounded
    index = expressions.index
    place = storage.place_of

    def lower_stmt(self, stmt: Stmt) -> TirStmt:
        """Return the TIR of `stmt`."""
        registry = open_registry()
        if registry is None:
            return statements.emit(self, stmt)
        with located(registry, stmt):
            return statements.emit(self, stmt)
