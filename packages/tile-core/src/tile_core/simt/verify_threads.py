"""What must hold of a program of one thread before it is printed: nothing lowers it any more."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.analysis.uniformity import Uniformity
from tile_core.errors import ControlFlowError, Note, OutOfScratch, TileError, VerifyError
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.device_calls import PREFIX, device_call
from tile_core.ir.expr import AddressOf, Binary, Call, Const, Expr, Load, Select, Var
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.node import Node, walk_once
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Check,
    Continue,
    Evaluate,
    For,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    Seq,
    Stmt,
    Store,
    While,
    flattened,
)
from tile_core.ir.visitor import expressions_in, statements_in, variables_of
from tile_core.machine import SimtMachine
from tile_core.ops.thread_program import TensorMapParameter, ThreadProgram
from tile_core.simt.resource_limits import check_launch

_ALLOWED = (Seq, Let, Alloc, Store, Evaluate, For, While, If, Break, Continue, Check)
_OF_ALL = frozenset({f"{PREFIX}sync", f"{PREFIX}cluster_sync"})
"""Barriers that all threads of a block must reach."""


def verify_threads(
    kernel: Kernel, launch: Launch, head: ThreadProgram, machine: SimtMachine
) -> None:
    """Raise a `TileError` if the program of a thread is ill-formed.

    * the block has as many threads, and as much shared memory, as the machine gives it;
    * views of shared memory lie within it, and at multiples of the size of their elements;
    * names are used where they are visible; buffers are flat; element types agree;
    * calls are of functions that the machine's header has, template arguments constant;
    * barriers of the whole block stand where all of its threads come by.
    """
    check_launch(launch, machine)
    _verify_views(head, machine)
    maps = [s for s in statements_in(launch.body) if isinstance(s, TensorMapParameter)]
    _verify_parameters(kernel, head, maps)
    scalars = [param for param in kernel.params if isinstance(param, Var)]
    visible: set[Node] = {*symbols_of(kernel), *scalars, *head.params, *head.shared}
    visible |= {*launch.block_vars, *launch.thread_vars, *_named_by_host(kernel)}
    _Reader(Uniformity(launch)).stmts(statements_in(launch.body), visible, controlled=False)


def _named_by_host(kernel: Kernel) -> set[Var]:
    """Return the names that the host gives between launches."""
    return {stmt.var for stmt in flattened(kernel.body) if isinstance(stmt, Let)}


def _verify_views(head: ThreadProgram, machine: SimtMachine) -> None:
    if head.shared_bytes > machine.shared_bytes:
        raise OutOfScratch(
            f"a block needs {head.shared_bytes} bytes of shared memory, and {machine.name} gives "
            f"it {machine.shared_bytes}",
            span=head.span,
            hint="use smaller views, or let some share their bytes",
        )
    for buffer, offset in zip(head.shared, head.offsets, strict=True):
        end = offset + (buffer.nbytes or 0)
        size = max(1, buffer.dtype.bits // 8)
        if offset < 0 or end > head.shared_bytes or offset % size:
            raise VerifyError(
                f"the view {buffer.name!r} takes bytes {offset} to {end - 1} of "
                f"{head.shared_bytes}, and its elements have {size}",
                span=buffer.span or head.span,
                hint="keep views inside of the shared memory, at multiples of their elements",
            )


def _verify_parameters(
    kernel: Kernel, head: ThreadProgram, maps: Iterable[TensorMapParameter]
) -> None:
    described = {told.var for told in maps}
    for param in head.params:
        if isinstance(param, Buffer):
            is_fine = param.scope is Scope.GLOBAL and isinstance(param.origin, Buffer)
        else:
            is_map = param in described
            is_fine = isinstance(param, Var) and (is_map or param.dtype != "handle")
            is_fine |= any(param is known for known in kernel.params)
        if not is_fine:
            raise VerifyError(
                f"a parameter of {head.name} is neither a flat tensor, nor a scalar or a map",
                span=head.span,
            )


class _Reader:
    """Goes through the statements of one thread, which see names bound before them."""

    def __init__(self, threads: Uniformity) -> None:
        self.threads = threads

    def stmts(self, body: Iterable[Stmt], visible: set[Node], *, controlled: bool) -> None:
        here = set(visible)
        for stmt in body:
            try:
                self.stmt(stmt, here, controlled)
            except TileError as error:
                error.at(stmt.span)
                raise

    def stmt(self, stmt: Stmt, visible: set[Node], controlled: bool) -> None:
        if isinstance(stmt, Leaf):
            if not isinstance(stmt, (ThreadProgram, TensorMapParameter)):
                raise VerifyError(f"a program of threads has no operator {stmt.mnemonic!r}")
            return
        if not isinstance(stmt, _ALLOWED):
            raise VerifyError(f"a program of threads has no {type(stmt).__name__}")
        for expr in expressions_in(stmt):
            self.expr(expr, visible, controlled)
        match stmt:
            case Alloc(buffer=buffer):
                visible.add(buffer)
            case Let(var=var, value=value):
                _same(var, value)
                visible.add(var)
            case Store(buffer=buffer, indices=indices, value=value):
                self.access(buffer, indices, visible)
                if value.dtype != buffer.dtype:
                    raise VerifyError(
                        f"{value.dtype} is stored to {buffer.name!r} of {buffer.dtype}",
                        hint="convert it with T.cast",
                    )
            case Seq(body=body):
                self.stmts(body, visible, controlled=controlled)
            case For() | While() | If():
                controlled |= any(map(self.threads.varies, expressions_in(stmt)))
                for part in statements_in(stmt):
                    self.stmts((part,), visible | set(variables_of(stmt)), controlled=controlled)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...], visible: set[Node]) -> None:
        base: Buffer | Expr | None = buffer
        while isinstance(base, Buffer) and base not in visible:
            base = base.origin
        if base is None:
            if buffer.scope is Scope.GLOBAL:
                raise VerifyError(
                    f"threads are not given the tensor {buffer.name!r}",
                    hint=f"name it in T.launch: params=dict({buffer.name}=T.flat("
                    f"{buffer.name}, shape, dtype))",
                )
            raise VerifyError(f"buffer {buffer.name!r} is used before it is declared")
        if buffer.rank != 1 or len(indices) != 1:
            raise VerifyError(
                f"{buffer.name!r} is not flat: a thread sees arrays of one dimension",
                notes=(Note("declared here", buffer.span),),
            )
        if not indices[0].dtype.is_int:
            raise VerifyError(
                f"an index of {buffer.name!r} is {indices[0].dtype}", hint="convert it with T.cast"
            )
        at, size = static_value(indices[0]), static_value(buffer.shape[0])
        is_known = buffer.scope is not Scope.GLOBAL and at is not None and size is not None
        if is_known and not 0 <= at < size:  # type: ignore[operator]
            raise VerifyError(f"index {at} leaves {buffer.name!r}, which has {size} elements")

    def expr(self, root: Expr, visible: set[Node], controlled: bool) -> None:
        for node in walk_once(root):
            match node:
                case Var() if node not in visible:
                    raise VerifyError(f"variable {node.name!r} is used where it is not bound")
                case Load() | AddressOf():
                    self.access(node.buffer, node.indices, visible)
                case Binary(a=a, b=b):
                    _same(a, b)
                case Select(then=a, otherwise=b):
                    _same(a, b)
                case Call():
                    _verify_call(node)
                    if controlled and node.function in _OF_ALL:
                        raise ControlFlowError(
                            "a barrier of the whole block stands where only some of its threads "
                            "may come by",
                            hint="move it out of the `if`, or count threads: T.device.bar_sync",
                        )


def _same(a: Expr, b: Expr) -> None:
    if a.dtype != b.dtype:
        raise VerifyError(f"values of {a.dtype} and {b.dtype} meet", hint="convert one with T.cast")


def _verify_call(call: Call) -> None:
    if call.function.startswith("extern:"):
        return
    if not call.function.startswith(PREFIX):
        if call.function not in INTRINSICS:
            raise VerifyError(f"there is no intrinsic {call.function!r}")
        return
    row = device_call(call.function.removeprefix(PREFIX))
    if row is None:
        raise VerifyError(
            f"the device header has no function {call.function.removeprefix(PREFIX)!r}",
            hint="tile_core.ir.device_calls lists them",
        )
    count = row.templates if row.operands is None else len(call.args) - row.operands
    count -= row.is_typed
    if len(call.args) < count or not all(isinstance(a, Const) for a in call.args[:count]):
        raise VerifyError(f"T.device.{row.name} begins with {count} constants")
