"""Programs as Python: what is compiled, and what is shown of a program that fails."""

from __future__ import annotations

from collections.abc import Iterable

from fuzz.operations import ALL
from fuzz.program import (
    BLOCKS,
    Accumulate,
    Atomic,
    Copy,
    Expr,
    Fill,
    Gemm,
    Hint,
    If,
    Launch,
    Loop,
    Parallel,
    Program,
    Reduce,
    Region,
    Scan,
    SetVar,
    Stmt,
    Store,
    Sync,
    Tensor,
    Tile,
    Transpose,
)


def expression(e: Expr, *, bare: bool = False) -> str:
    """Return an expression as text; a `bare` constant takes its type from its neighbour."""
    match e.kind:
        case "const":
            number = f"{e.data}.0" if "float" in e.dtype else str(e.data)
            shown = f"({number})" if e.data < 0 else number
            return shown if bare or e.dtype == "int32" else f"T.cast({number}, {e.dtype!r})"
        case "name":
            return str(e.data)
        case "load":
            return f"{e.data}[{', '.join(map(expression, e.args))}]"
        case "shuffle":
            return f"T.shfl_xor({expression(e.args[0])}, {e.data})"
    # A constant beside something of another kind is written as Python's number.
    alone = all(a.kind == "const" for a in e.args if a.dtype == e.args[-1].dtype)
    casts = e.kind in ("cast", "astype")
    parts = [expression(a, bare=not alone and not casts) for a in e.args]
    # Python's numbers have no methods of ours.
    kind = "cast" if casts and e.args[0].kind == "const" else e.kind
    return ALL[kind].text.format(*parts, dtype=e.dtype)


def region(r: Region) -> str:
    if not r.starts:
        return r.buffer
    starts = [expression(s) for s in r.starts]
    if r.sliced:
        starts = [
            start if extent == 0 else f"{start} : {start} + {extent}"
            for start, extent in zip(starts, r.extents, strict=True)
        ]
    return f"{r.buffer}[{', '.join(starts)}]"


def statement(s: Stmt) -> list[str]:
    match s:
        case Copy():
            return [f"T.copy({region(s.source)}, {region(s.target)})"]
        case Parallel():
            names = ", ".join(name for name, _ in s.axes)
            extents = ", ".join(str(extent) for _, extent in s.axes)
            return [f"for {names} in T.Parallel({extents}):", *indented(s.body)]
        case Store():
            index = ", ".join(map(expression, s.index))
            return [f"{s.buffer}[{index}] = {expression(s.value)}"]
        case SetVar():
            return [f"{s.name} = {expression(s.value)}"]
        case If():
            otherwise = ["else:", *indented(s.otherwise)] if s.otherwise else []
            return [f"if {expression(s.condition)}:", *indented(s.then), *otherwise]
        case Loop(kind="while"):
            return [
                f"{s.index} = 0",
                f"while {s.index} < {expression(s.count)}:",
                *indented(s.body),
                f"    {s.index} = {s.index} + 1",
            ]
        case Loop():
            count = expression(s.count)
            kinds = {"serial": f"T.serial({count})", "unroll": f"T.unroll({count})"}
            header = kinds.get(s.kind, f"T.Pipelined({count}, num_stages={s.stages})")
            return [f"for {s.index} in {header}:", *indented(s.body)]
        case Fill():
            return [f"T.fill({s.buffer}, {s.value})"]
        case Reduce():
            clear = "" if s.clear else ", clear=False"
            return [f"T.reduce_{s.op}({s.source}, {s.target}, dim={s.dim}{clear})"]
        case Scan():
            return [f"T.cumsum({s.source}, {s.target}, dim={s.dim}, reverse={s.reverse})"]
        case Gemm():
            options = [
                f", {name}=True"
                for name, on in zip(("transpose_A", "transpose_B"), s.transpose, strict=True)
                if on
            ]
            options += [", clear_accum=True"] * s.clear
            return [f"T.gemm({s.a}, {s.b}, {s.c}{''.join(options)})"]
        case Atomic():
            index = ", ".join(map(expression, s.index))
            value = s.tile if s.value is None else expression(s.value)
            return [f"T.atomic_{s.op}({s.buffer}[{index}], {value})"]
        case Accumulate():
            return accumulation(s)
        case Transpose():
            return [f"T.transpose({s.source}, {s.target})"]
        case Hint():
            return [s.text]
        case Sync():
            return ["T.sync_threads()"]


def accumulation(s: Accumulate) -> list[str]:
    update = f"T.reducer_update({s.reducer}[{', '.join(map(expression, s.index))}], "
    lines = [f"{update}{expression(s.value)})"]
    if s.condition is not None:
        lines = [f"if {expression(s.condition)}:", f"    {lines[0]}"]
    names = ", ".join(name for name, _ in s.axes)
    extents = ", ".join(str(extent) for _, extent in s.axes)
    return [
        f"T.reducer_init({s.reducer}, {s.start})",
        f"for {names} in T.Parallel({extents}):",
        *(f"    {line}" for line in lines),
        f"T.finalize_reducer({s.reducer}, {s.target})",
    ]


def indented(body: Iterable[Stmt]) -> list[str]:
    return [f"    {line}" for s in body for line in statement(s)] or ["    pass"]


def allocation(t: Tile) -> str:
    if t.scope == "var":
        start = "" if t.start is None else f", {t.start}"
        return f"{t.name} = T.alloc_var({t.dtype!r}{start})"
    if t.scope.startswith("reducer_"):
        op = t.scope.removeprefix("reducer_")
        return f"{t.name} = T.alloc_reducer({t.shape}, {t.dtype!r}, op={op!r})"
    return f"{t.name} = T.alloc_{t.scope}({t.shape}, {t.dtype!r})"


def launch(one: Launch) -> list[str]:
    names = BLOCKS[: len(one.grid)]
    named = names[0] if len(names) == 1 else f"({', '.join(names)})"
    grid = ", ".join(map(expression, one.grid))
    body = [allocation(t) for t in one.tiles]
    if one.safe:
        values = ", ".join(f"{tensor}: {value}" for tensor, value in one.safe)
        body.append(f"T.annotate_safe_value({{{values}}})")
    if one.threads_named:
        body.append("tx = T.get_thread_binding()")
    lines = [f"    {line}" for line in body] + indented(one.body)
    return [f"with T.Kernel({grid}, threads={one.threads}) as {named}:", *lines]


def declared(t: Tensor) -> str:
    extents = [s or str(n) for s, n in zip(t.symbols, t.shape, strict=True)]
    shape = f"({extents[0]},)" if len(extents) == 1 else f"({', '.join(extents)})"
    return f"{t.name}: T.Tensor({shape}, {t.dtype!r})"


def text(program: Program) -> str:
    """Return the program as a module that defines ``main``."""
    lines = ["import tile_api.language as T", ""]
    lines += [f"{s} = T.dynamic({s!r})" for s in sorted(program.symbols)]
    lines += ["", "@T.prim_func", "def main("]
    lines += [f"    {declared(t)}," for t in program.tensors]
    lines += [f"    {s.name}: T.{s.dtype}," for s in program.scalars]
    lines += ["):"]
    lines += [f"    {line}" for one in program.launches for line in launch(one)]
    return "\n".join(lines) + "\n"


def reproduction(program: Program, target: str) -> str:
    """Return the program with arguments and a comparison with the interpreter."""
    arguments = [
        f"    argument({n}, {t.shape}, {t.dtype!r}, {t.low}, {t.high}, {t.output}),"
        for n, t in enumerate(program.tensors)
    ]
    arguments += [f"    {s.value}," for s in program.scalars]
    return "\n".join(
        [
            text(program),
            "# Run it with tests/ on the path of Python.",
            "import numpy as np",
            "import tile_api as tile",
            "from fuzz.arguments import argument as of_seed",
            "",
            f"argument = lambda *form: of_seed({program.seed}, *form)",
            "expected, found = (",
            "    [",
            *(f"    {line}" for line in arguments),
            "    ]",
            "    for _ in range(2)",
            ")",
            "tile.compile(main, target='interpret')(*expected)",
            f"tile.compile(main, target={target!r})(*found)",
            f"for a, b in zip(expected[: {len(program.tensors)}], found):",
            "    np.testing.assert_array_equal(b, a)",
            "",
        ]
    )
