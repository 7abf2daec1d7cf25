"""One thread of a warp issues bulk copies: the one that the machine itself elects."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.device import device
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.effect import Effect
from tile_core.ir.effects import effects_of
from tile_core.ir.expr import AddressOf, Binary, BinaryOp, Call, Const, Expr, Load, Var
from tile_core.ir.node import contains, nodes_of, walk
from tile_core.ir.stmt import Alloc, Break, Continue, For, If, Let, Seq, Stmt, Store, While
from tile_core.ir.visitor import StmtRewriter, expressions_in, statements_in
from tile_core.machine import SimtMachine
from tile_core.records import dataclass, replace
from tile_core.simt.warp_uniform_branches import is_exchange

_LOADS = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "tensor_load", "tensor_load_pair", "tensor_load_multicast", "bulk_load",
        "tensor_map_prefetch",
    )
)  # fmt: skip
_STORES = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "tensor_store", "tensor_reduce_add", "tensor_reduce_min", "tensor_reduce_max", "bulk_store",
        "bulk_reduce_add", "bulk_store_commit", "bulk_store_wait_read", "bulk_store_wait",
    )
)  # fmt: skip
_COMPARISONS = (BinaryOp.LT, BinaryOp.GE)


def elect_issuers(stmt: Stmt, thread: Var, machine: SimtMachine) -> Stmt:
    """Return `stmt` such that elected threads issue bulk copies.

    Before   if (tid == 0) { … tensor_load(…) … }
    After    if (tid < 32 && elect()) { … tensor_load(…) … }

    The copy engine takes its orders from a warp. Where only a comparison says that a single thread
    gives one, the assembler makes a loop over the threads that might; it believes an election.
    Where the number of the warp has been exchanged among its lanes (see
    `make_branches_warp_uniform`), that
    number says which warp elects: after a comparison of threads in a loop the assembler would
    take all that follows for different in every lane, and operands of products, too.

    Branches are left as they are where whole warps may not come to them, or where it matters
    which thread takes them. Stores are counted by the thread that starts them: those of a
    program are all elected, or none.
    """
    if not machine.has("elect"):
        return stmt
    scope = _Scope({thread: 0}, frozenset((thread,)), machine.warp_size)
    both = _Elected(scope, _LOADS | _STORES).rewrite(stmt)
    if not _starts(both, _STORES, outside=True):
        return both
    return _Elected(scope, _LOADS).rewrite(stmt)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known where a statement stands.

    Parameters
    ----------
    lines
        Variables that number threads such that those of a warp are together; each with the
        number of the thread of the block that it calls 0.
    varying
        Variables of which threads of a warp may have different values.
    together
        Whether warps are whole.
    number
        A variable that all lanes know to be the number of their warp in the block, if any.
    """

    lines: Mapping[Var, int]
    varying: frozenset[Var]
    warp: int
    together: bool = True
    number: Var | None = None

    def after(self, let: Stmt) -> _Scope:
        """Return what is known behind a statement: definitions tell of values."""
        if not isinstance(let, Let):
            return self
        offset = self._offset(let.value)
        if offset is not None:
            lines = {**self.lines, let.var: offset}
            return replace(self, lines=lines, varying=self.varying | {let.var})
        if self._is_shared(let):
            return replace(self, number=let.var) if self._is_warp(let) else self
        if not self.varies(let.value):
            return self
        return replace(self, varying=self.varying | {let.var})

    def _is_shared(self, let: Let) -> bool:
        """Whether all lanes of a warp were given the value of one."""
        width = let.value.args[-1] if is_exchange(let) and isinstance(let.value, Call) else None
        return isinstance(width, Const) and int(width.value) == self.warp

    def _is_warp(self, let: Let) -> bool:
        """Whether what lanes were given is the number of their warp in the block."""
        match let.value:
            case Call(args=(Binary(op=BinaryOp.FLOORDIV, a=Var() as line, b=Const(value=by)), *_)):
                return self.lines.get(line) == 0 and int(by) == self.warp
        return False

    def _offset(self, value: Expr) -> int | None:
        """Return the thread that `value` calls 0 if it numbers threads, whole warps together."""
        match value:
            case Var():
                return self.lines.get(value)
            case Binary(op=BinaryOp.ADD | BinaryOp.SUB, a=Var() as base, b=Const(value=moved)) if (
                base in self.lines and int(moved) % self.warp == 0
            ):
                by = int(moved) if value.op is BinaryOp.SUB else -int(moved)
                return self.lines[base] + by
        return None

    def varies(self, expr: Expr) -> bool:
        """Whether threads of a warp may see different values of `expr`."""
        return any(isinstance(n, (Load, Call)) or n in self.varying for n in walk(expr))

    def takes_whole_warps(self, cond: Expr) -> bool:
        """Whether all threads of a warp find the same."""
        match cond:
            case Binary(op=BinaryOp.AND | BinaryOp.OR, a=a, b=b):
                return self.takes_whole_warps(a) and self.takes_whole_warps(b)
            case Binary(op=op, a=Var() as line, b=Const(value=bound)) if line in self.lines:
                return op in _COMPARISONS and int(bound) % self.warp == 0
        return not self.varies(cond)

    def assuming(self, cond: Expr, *, holds: bool) -> _Scope:
        """Return what is known in a branch: whole warps take it, or do not."""
        return self if self.takes_whole_warps(cond) else replace(self, together=False)

    def within(self, loop: Stmt) -> _Scope:
        """Return what is known in a loop, of which whole warps run each iteration, or do not."""
        whole = not contains(loop, Break, Continue)
        if isinstance(loop, While):
            whole = whole and self.takes_whole_warps(loop.cond)
        else:
            whole = whole and not any(map(self.varies, expressions_in(loop)))
        return self if whole else replace(self, together=False)


class _Elected(StmtRewriter[_Scope]):
    """Elects the threads of branches that make one of `calls`."""

    def __init__(self, scope: _Scope, calls: frozenset[str]) -> None:
        super().__init__(scope)
        self.calls = calls

    def rewrite_if(self, stmt: If) -> If:
        """Return a branch with another condition where any thread will do."""
        who = _issuer(stmt, self.scope, self.calls)
        return self.rewrite_default(stmt) if who is None else replace(stmt, cond=who)


def _issuer(stmt: If, scope: _Scope, calls: frozenset[str]) -> Expr | None:
    """Return the condition that elects the thread of a branch, if any thread will do."""
    match stmt.cond:
        case Binary(op=BinaryOp.EQ, a=Var() as line, b=Const(value=number)) if line in scope.lines:
            pass
        case _:
            return None
    if not scope.together or stmt.otherwise is not None or not _starts(stmt.then, calls):
        return None
    if _depends_on_the_thread(stmt.then, scope):
        return None
    first = int(number) // scope.warp * scope.warp
    if scope.number is not None:
        warp = as_expr((scope.lines[line] + first) // scope.warp, scope.number.dtype)
        own = binary(BinaryOp.EQ, scope.number, warp)
        return Binary(BinaryOp.AND, own, device("elect"), dtype_of("bool"))
    mine = binary(BinaryOp.LT, line, as_expr(first + scope.warp, line.dtype))
    if first:
        mine = binary(BinaryOp.AND, binary(BinaryOp.GE, line, as_expr(first, line.dtype)), mine)
    return Binary(BinaryOp.AND, mine, device("elect"), dtype_of("bool"))


def _depends_on_the_thread(body: Stmt, scope: _Scope) -> bool:
    """Whether `body` speaks of the thread, keeps values of its own, or meets other threads."""
    own = {n.buffer for n in nodes_of(body, Alloc)}
    if not scope.varying.isdisjoint(nodes_of(body, Var)):
        return True
    touched = {n.buffer for n in nodes_of(body, Load, Store, AddressOf)}
    if any(b.scope.is_thread_private and b.storage not in own for b in touched):
        return True
    return bool(effects_of(body) & (Effect.WARP | Effect.BLOCK))


def _starts(stmt: Stmt, calls: frozenset[str], *, outside: bool = False) -> bool:
    """Whether `stmt` makes one of the calls; if `outside`, where no thread was elected."""
    match stmt:
        case If(cond=Binary(b=Call(function=function))) if outside and function == f"{PREFIX}elect":
            return False
        case Seq() | If() | For() | While():
            return any(_starts(part, calls, outside=outside) for part in statements_in(stmt))
    return any(node.function in calls for node in nodes_of(stmt, Call))
