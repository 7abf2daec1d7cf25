"""Launches in programs of threads: what threads are given, and how they see it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from tile_api.frontend.thread_expressions import Thing, ThreadExpressions
from tile_api.frontend.thread_statements import ThreadStatements, viewed
from tile_core.dtypes import dtype_of
from tile_core.errors import Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import const
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import Call, Expr, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Launch, Seq, Stmt, Store
from tile_core.ops.thread_program import TensorMapParameter, ThreadProgram
from tile_core.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class KernelReader:
    """Reads the body of a kernel whose launches are programs of threads.

    Parameters
    ----------
    statements
        Reads what is in launches, and between them.
    target
        The machine that the programs are for.
    name
        Of the kernel, and of launches that have none of their own.
    """

    statements: ThreadStatements
    target: str
    name: str

    def body(self, statements: Sequence[ast.stmt]) -> Seq:
        """Return what the host does: launches, and scalar work between them."""
        found = [self._step(node) for node in statements]
        return Seq(tuple(stmt for stmt in found if stmt is not None))

    def _step(self, node: ast.stmt) -> Stmt | None:
        p = self.statements
        if not isinstance(node, ast.With) or p.called(node.items[0].context_expr) != "launch":
            made = p.statement(node)
            if isinstance(made, Store) and made.buffer.scope is Scope.GLOBAL:
                told = "no thread runs this: it stands outside of a launch"
                raise p.expressions.wrong(node, told, f"put it in `with {_SPELT}:`")
            return made
        with p.scope(), p.told_wrong(node):
            return self._launch(node)

    def _launch(self, node: ast.With) -> Launch:
        """Read ``with T.launch(grid=…, threads=…, params=dict(…)) as (bx, tx, ty, tz):``."""
        p, e, span = self.statements, self.statements.expressions, self.statements.span(node)
        call = node.items[0].context_expr
        assert isinstance(call, ast.Call)
        words = _words_of_launch(e, call)
        told = {key: e.constant(words[key]) for key in _CONSTANTS if key in words}
        _check_extents(e, words, told)
        grid = _numbers(e, words["grid"])
        maps: list[TensorMapParameter] = []
        params = {
            key: self._parameter(key, value, maps, span)
            for key, value in _entries(e, words.get("params"))
        }
        total = told.get("shared_bytes", 0)
        arena = Buffer("arena", (total,), dtype_of("uint8"), Scope.SHARED, span=span)
        shared = {
            key: _shared_view(p, key, value, arena, span)
            for key, value in _entries(e, words.get("shared"))
        }
        indices = _indices(e, node, grid, told.get("names", {}), span)
        e.names |= {**params, **{key: view for key, (view, _) in shared.items()}, **indices}
        head = ThreadProgram(
            name=told.get("name", self.name),
            target=self.target,
            params=tuple(params.values()),
            shared=tuple(view for view, _ in shared.values()),
            offsets=tuple(offset for _, offset in shared.values()),
            shared_bytes=total,
            resident=told.get("resident", 1),
            cooperative=told.get("cooperative", False),
            span=span,
        )
        *blocks, x, y, z = indices.values()
        block = p.block(node.body)
        body = Seq((*(replace(m, access=_access(block, m.var)) for m in maps), head, *block.body))
        threads, cluster = tuple(told["threads"]), tuple(told.get("cluster", ()))
        return Launch(tuple(blocks), grid, (x, y, z), threads, body, cluster, span=span)

    def _parameter(
        self, key: str, node: ast.expr, maps: list[TensorMapParameter], span: Span | None
    ) -> Thing:
        p, e = self.statements, self.statements.expressions
        if isinstance(node, ast.Call):
            match p.called(node):
                case "flat":
                    tensor, shape, dtype = node.args
                    name = p.options(node).get("name", key)
                    return viewed(e, tensor, shape, dtype, name, span)
                case "tensor_map":
                    maps.append(_tensor_map(e, key, node, span))
                    return maps[-1].var
        found = e.thing(node)
        if not isinstance(found, Var):
            raise e.wrong(node, "this is no parameter", "use T.flat, T.tensor_map or a scalar")
        return found


_CONSTANTS = ("threads", "name", "names", "shared_bytes", "resident", "cooperative", "cluster")
_MAP_CONSTANTS = ("box", "element_strides", "swizzle", "interleave", "fill", "l2_promotion")


_MODES = {
    f"{PREFIX}{name}": mode
    for name, mode in (
        ("tensor_load", "r"),
        ("tensor_load_multicast", "r"),
        ("tensor_map_prefetch", ""),
        ("tensor_store", "w"),
    )
}
"""What a tensor is to calls that take its map."""


def _access(body: Seq, used: Var) -> str:
    """Return what a program does through the map of a tensor: calls that are not known, both."""
    calls = [c for c in nodes_of(body, Call) if any(arg is used for arg in c.args)]
    modes = "".join(_MODES.get(call.function, "rw") for call in calls)
    return "".join(mode for mode in "rw" if mode in modes) or "r"


_WORDS = ("grid", "params", "shared", *_CONSTANTS)
"""What a launch is given, by name."""

_SPELT = "T.launch(grid=(8,), threads=(128, 1, 1), params=dict(...)) as (bx, tx, ty, tz)"


def _words_of_launch(e: ThreadExpressions, call: ast.Call) -> dict[str, ast.expr]:
    """Return what a launch is given, by name."""
    for word in call.keywords:
        if word.arg not in _WORDS:
            told = f"T.launch takes no {word.arg!r}"
            raise e.wrong(word.value, told, f"it takes {', '.join(_WORDS)}")
    found = {word.arg: word.value for word in call.keywords if word.arg is not None}
    if call.args or not {"grid", "threads"} <= found.keys():
        told = "a launch says by name how many blocks and threads there are"
        raise e.wrong(call, told, f"write {_SPELT}")
    return found


def _check_extents(
    e: ThreadExpressions, words: Mapping[str, ast.expr], told: Mapping[str, Any]
) -> None:
    for key, lengths, example in (("threads", (3,), "(128, 1, 1)"), ("cluster", (1, 2, 3), "(2,)")):
        value = told.get(key) or (1, 1, 1)
        if (
            not isinstance(value, (tuple, list))
            or len(value) not in lengths
            or not all(type(n) is int and n > 0 for n in value)
        ):
            extents = "three extents" if key == "threads" else "up to three extents"
            message = f"{key} has {extents}, and got {value!r}"
            raise e.wrong(words[key], message, f"write {key}={example}")


def _indices(
    e: ThreadExpressions, node: ast.With, grid: Sequence[Expr], names: Mapping[str, str],
    span: Span | None,
) -> dict[str, Var]:  # fmt: skip
    """Return the indices that a launch names: of blocks, then three of threads."""
    bound = node.items[0].optional_vars
    told = bound.elts if isinstance(bound, ast.Tuple) else []
    dtypes = [*(extent.dtype for extent in grid), *[dtype_of("int32")] * 3]
    if len(told) != len(dtypes) or not all(isinstance(target, ast.Name) for target in told):
        raise e.wrong(
            node.items[0].context_expr,
            "a launch names an index of each extent of its grid, and three of threads",
            "write `as (bx, tx, ty, tz)`",
        )
    keys = [target.id for target in told if isinstance(target, ast.Name)]
    return {
        key: Var(names.get(key, key), dtype, span=span)
        for key, dtype in zip(keys, dtypes, strict=True)
    }


def _numbers(e: ThreadExpressions, node: ast.expr) -> tuple[Expr, ...]:
    return tuple(const(n) if isinstance(n, int) else n for n in e.extents(node))


def _entries(e: ThreadExpressions, node: ast.expr | None) -> list[tuple[str, ast.expr]]:
    """Return what ``dict(a=…, b=…)`` says."""
    if node is None:
        return []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [(word.arg or "", word.value) for word in node.keywords]
    raise e.wrong(node, "parameters and views are given by name", "write dict(x=..., y=...)")


def _tensor_map(
    e: ThreadExpressions, key: str, call: ast.Call, span: Span | None
) -> TensorMapParameter:
    words = {word.arg or "": word.value for word in call.keywords}
    told: dict[str, Any] = {k: e.constant(words[k]) for k in _MAP_CONSTANTS if k in words}
    name = e.constant(words["name"]) if "name" in words else key
    variable = e.constant(words["variable"]) if "variable" in words else name
    return TensorMapParameter(
        var=Var(variable, dtype_of("handle"), span=span),
        name=name,
        tensor=e.buffer(call.args[0]),
        dtype=dtype_of(e.constant(words["dtype"])),
        offset=e.read(words["offset"]) if "offset" in words else const(0),
        extents=_numbers(e, words["extents"]),
        strides=_numbers(e, words["strides"]),
        span=span,
        **told,
    )


def _shared_view(
    p: ThreadStatements, key: str, node: ast.expr, arena: Buffer, span: Span | None
) -> tuple[Buffer, int]:
    """Read ``T.view(offset, shape, dtype)``: bytes of the block's shared memory."""
    e = p.expressions
    if p.called(node) != "view" or not isinstance(node, ast.Call):
        raise e.wrong(node, "this is no view", "write T.view(offset, shape, dtype)")
    words = p.options(node)
    offset, shape, dtype = node.args
    made = viewed(e, ast.Name("arena"), shape, dtype, words.get("name", key), span, arena)
    scope = Scope(words.get("scope", Scope.SHARED.value))
    return replace(made, scope=scope), e.constant(offset)
