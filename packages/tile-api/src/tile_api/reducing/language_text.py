"""A reduced kernel as a program in the language, where every part of it has a form there."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from dataclasses import fields, replace

from tile_api.reducing.kernel_edits import used_variables
from tile_api.reducing.language_expressions import NoSpelling, region, spelt
from tile_core.ir import stmt as s
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.names import Names
from tile_core.ir.printer import symbols_of
from tile_core.ops.atomic import AtomicTile
from tile_core.ops.copy import Copy, Fill, Transpose
from tile_core.ops.gemm import Gemm, GemmWarpPolicy
from tile_core.ops.operator import TileOperator
from tile_core.ops.reduce import Reduce
from tile_core.ops.scan import Scan

_ALLOCATED = {Scope.SHARED: "shared", Scope.FRAGMENT: "fragment", Scope.LOCAL: "local"}
_LOOPS = {
    s.LoopKind.SERIAL: "serial",
    s.LoopKind.UNROLL: "unroll",
    s.LoopKind.VECTORIZED: "vectorized",
}
TAKEN = frozenset(
    {"T", "Plan", "PLAN", "kernel", "replace", "try_kernel", "default_host", "outcome"}
)
"""Names of programs that try kernels, see `tile_api.reducing.program`."""


def language_of(kernel: s.Kernel) -> str | None:
    """Return a Python program that defines the kernel, or None if it has no such form.

    The program need not give the very same tile IR: whoever offers it traces it and looks.
    """
    if kernel.sources or kernel.options != s.KernelOptions():
        return None
    try:
        return "\n".join(_program(kernel)) + "\n"
    except NoSpelling:
        return None


def _program(kernel: s.Kernel) -> Iterator[str]:
    names = Names()
    yield "import tile_api.language as T"
    yield ""
    params = []
    for symbol in symbols_of(kernel):
        yield f'{names.of(symbol)} = T.dynamic("{symbol.name}", "{symbol.dtype}")'
    for param in kernel.params:
        if isinstance(param, Var):
            params.append(f"{names.of(param)}: T.{param.dtype}")
        else:
            params.append(f"{names.of(param)}: {_tensor(param, names)}")
    yield ""
    yield "@T.prim_func"
    if params:
        yield f"def {kernel.name}("
        yield from (f"    {param}," for param in params)
        yield "):"
    else:
        yield f"def {kernel.name}():"
    yield from _block(kernel.body, 1, names)
    used = [names.of(node) for node in [*kernel.params, *symbols_of(kernel)]]
    if any(keyword.iskeyword(name) or name in TAKEN for name in [kernel.name, *used]):
        raise NoSpelling("a name that Python, or the program around it, keeps")


def _shape(extents: tuple[Extent, ...], names: Names) -> str:
    inside = ", ".join(spelt(e, names) for e in extents)
    return f"({inside},)" if len(extents) == 1 else f"({inside})"


def _tensor(buffer: Buffer, names: Names) -> str:
    shape = _shape(buffer.shape, names)
    if buffer.strides is None:
        return f'T.Tensor({shape}, "{buffer.dtype}")'
    return f'T.StridedTensor({shape}, {_shape(buffer.strides, names)}, "{buffer.dtype}")'


def _block(body: s.Stmt, depth: int, names: Names) -> list[str]:
    lines = [line for stmt in s.flattened(body) for line in _lines(stmt, depth, names)]
    return lines or [f"{'    ' * depth}pass"]


def _lines(stmt: s.Stmt, depth: int, names: Names) -> Iterator[str]:
    pad = "    " * depth
    head = _head(stmt, names)
    if head is None:
        yield pad + _simple(stmt, names)
        return
    yield f"{pad}{head}:"
    if isinstance(stmt, s.If):
        yield from _block(stmt.then, depth + 1, names)
        if stmt.otherwise is not None:
            yield f"{pad}else:"
            yield from _block(stmt.otherwise, depth + 1, names)
        return
    if isinstance(stmt, s.Launch):
        used = used_variables(stmt.body)
        for axis, var in enumerate(stmt.thread_vars):
            if var in used:
                yield f"{pad}    {names.of(var)} = T.get_thread_binding({axis})"
    for body in stmt.children():
        if s.is_statement(body):
            yield from _block(body, depth + 1, names)


def _head(stmt: s.Stmt, names: Names) -> str | None:
    """Return what introduces the body of a statement; None for those without one."""

    def e(*extents: Extent) -> str:
        return ", ".join(spelt(extent, names) for extent in extents)

    match stmt:
        case s.Launch(grid=grid, threads=threads, cluster=()):
            blocks = ", ".join(names.of(var) for var in stmt.block_vars)
            count = threads[0] if threads[1:] == (1, 1) else threads
            blocks = f"({blocks})" if len(grid) > 1 else blocks
            return f"with T.Kernel({e(*grid)}, threads={count}) as {blocks}"
        case s.For(var=var, start=a, stop=b, step=c, kind=kind):
            return f"for {names.of(var)} in T.{_LOOPS[kind]}({e(a, b, c)})"
        case s.Pipelined(var=var, start=a, stop=b, num_stages=n, order=(), stage=()):
            return f"for {names.of(var)} in T.Pipelined({e(a, b)}, num_stages={n})"
        case s.Parallel(vars=variables, extents=extents, coalesced_width=None, loop_layout=None):
            return f"for {', '.join(map(names.of, variables))} in T.Parallel({e(*extents)})"
        case s.While(cond=cond):
            return f"while {e(cond)}"
        case s.If(cond=cond):
            return f"if {e(cond)}"
    return None


def _simple(stmt: s.Stmt, names: Names) -> str:
    match stmt:
        case s.Let(var=var, value=value):
            text = spelt(value, names)
            return f"{names.of(var)} = {text}"
        case s.Alloc(buffer=buffer) if buffer.scope in _ALLOCATED and buffer.origin is None:
            shape, where = _shape(buffer.shape, names), _ALLOCATED[buffer.scope]
            return f'{names.of(buffer)} = T.alloc_{where}({shape}, "{buffer.dtype}")'
        case s.Store(buffer=buffer, indices=indices, value=value) if buffer.scope is not Scope.VAR:
            where = ", ".join(spelt(index, names) for index in indices)
            return f"{names.of(buffer)}[{where}] = {spelt(value, names)}"
        case s.Break():
            return "break"
        case s.Continue():
            return "continue"
        case s.Leaf():
            return _operator(stmt, names)
    raise NoSpelling(type(stmt).__name__)


def _operator(op: s.Leaf, names: Names) -> str:
    match op:
        case Copy(src=src, dst=dst, is_async=False):
            return f"T.copy({region(src, names)}, {region(dst, names)})"
        case Transpose(src=src, dst=dst):
            return f"T.transpose({region(src, names)}, {region(dst, names)})"
        case Fill(dst=dst, value=value):
            return f"T.fill({region(dst, names)}, {spelt(value, names)})"
        case Gemm(a=a, b=b, c=c, wg_wait=0, instruction=None, nibbles=False):
            tiles = ", ".join(region(r, names) for r in (a, b, c))
            words = [f"transpose_A={op.transpose_a}", f"transpose_B={op.transpose_b}"]
            words.append(f"clear_accum={spelt(op.clear, names)}")
            if op.policy is not GemmWarpPolicy.Square:
                words.append(f"policy=T.GemmWarpPolicy.{op.policy.name}")
            return f"T.gemm({tiles}, {', '.join(words)})"
        case Reduce(kind=kind, src=src, dst=dst, dim=dim, clear=clear, nan_propagate=False):
            tiles = f"{region(src, names)}, {region(dst, names)}"
            return f"T.reduce_{kind.value}({tiles}, dim={dim}, clear={clear})"
        case Scan(kind=kind, src=src, dst=dst, dim=dim, reverse=reverse):
            tiles = f"{region(src, names)}, {region(dst, names)}"
            return f"T.cum{kind.value}({tiles}, dim={dim}, reverse={reverse})"
        case AtomicTile(kind=kind, src=src, dst=dst, memory_order="relaxed", use_bulk=False):
            return f"T.atomic_{kind.value}({region(dst, names)}, {region(src, names)})"
        case TileOperator() if op.cases is not None:  # its spelling follows from its fields
            return f"T.{op.spellings[0]}({', '.join(_operands(op, names))})"
    raise NoSpelling(op.mnemonic)


def _operands(op: TileOperator, names: Names) -> Iterator[str]:
    """Yield the operands of an operator, all by name."""
    for field in fields(op):
        value = getattr(op, field.name)
        if isinstance(value, Region):
            yield f"{field.name}={region(value, names)}"
        elif isinstance(value, Expr):
            yield f"{field.name}={spelt(value, names)}"
        elif isinstance(value, (int, float, str)):
            yield f"{field.name}={value!r}"
        elif field.name != "span":
            raise NoSpelling(f"{op.mnemonic} of {field.name}")


def traced_again(text: str, like: s.Kernel) -> s.Kernel | None:
    """Return the kernel that a program of `language_of` defines; None if it does not trace.

    The name and the outputs are those of `like`, which the program was made of.
    """
    name = like.name
    import linecache

    file = f"<{name} as a program>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, object] = {}
    try:
        exec(compile(text, file, "exec"), scope)
        kernel = getattr(scope[name], "kernel", None)
    except Exception:  # whatever the frontend refuses
        return None
    finally:
        linecache.cache.pop(file, None)
    return replace(kernel, outputs=like.outputs) if isinstance(kernel, s.Kernel) else None
