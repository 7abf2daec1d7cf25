"""Kernels across ranks as kernels of one process: ranks become a dimension of the grid."""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.errors import UnsupportedForm
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import as_expr, binary, cast, const
from tile_core.ir.expr import AddressOf, Binary, BinaryOp, Expr, Load, Var
from tile_core.ir.names import Names
from tile_core.ir.node import Node, nodes_of, walk_once
from tile_core.ir.print_expr import print_expr
from tile_core.ir.ranks import RANK, is_symmetric, rank_parameters
from tile_core.ir.stmt import (
    Alloc,
    Check,
    CheckKind,
    For,
    Kernel,
    Launch,
    Leaf,
    Let,
    Seq,
    Stmt,
    Store,
    flattened,
)
from tile_core.ops.control import Barrier, Breakpoint
from tile_core.ops.signals import SIGNALS
from tile_core.records import replace


def ranks_as_blocks(kernel: Kernel) -> Kernel:
    """Return a kernel that does in one launch what `kernel` does on all ranks of a group.

    Before   kernel k(A: float32[ranks, 8] strides [s, 1], B: float32[8], F: signals, rank, ranks):
               launch bx in (2): copy A[(rank + 1) % ranks, 0:8], B[0:8];  signal F[rank, bx]
    After    kernel k[ranks](A: float32[ranks, 8], B: float32[ranks, 8]):
               alloc F;  launch (1): F[0:ranks, 0:n] = 0
               launch bx, rank in (2, ranks):
                 copy A[(rank + 1) % ranks, 0:8], B[rank, 0:8];  signal F[rank, bx]

    Every tensor has a first dimension for the ranks, of which each touches its own part but for
    symmetric ones; flags are made for each launch. Machines that run and check one grid so run
    and check all ranks.

    Returns the same object if the kernel asks for no rank.

    Raises
    ------
    UnsupportedForm
        If the host asks for the rank, blocks of one rank wait for all of their grid, or an
        operator takes a whole tensor.
    """
    found = rank_parameters(kernel)
    return kernel if found is None else _AllRanks(kernel, *found).run()


class _AllRanks:
    def __init__(self, kernel: Kernel, rank: Var, ranks: Var) -> None:
        self.kernel, self.rank, self.ranks = kernel, rank, ranks
        self.params = kernel.params[:-2]
        private = {
            b for b in self.params if isinstance(b, Buffer) and not is_symmetric(b, kernel)
        }  # fmt: skip
        private |= {n.buffer for n in nodes_of(kernel.body, Alloc) if n.buffer.scope.is_global}
        self.made: dict[Node, Node] = {}
        self.lifted: set[Node] = set()
        for buffer in (*nodes_of(kernel.body, Buffer), *self.params):
            if isinstance(buffer, Buffer):
                self._lift(buffer, private)

    def _lift(self, buffer: Buffer, private: set[Buffer]) -> None:
        """Say what a buffer becomes: one with a part for each rank."""
        if buffer in self.made:
            return
        if buffer in self.params and buffer not in private:
            self.made[buffer] = replace(buffer, strides=None, workspace=is_flags(buffer))
        elif buffer.storage in private:
            origin = buffer.origin
            if isinstance(origin, Buffer):
                self._lift(origin, private)
                origin = self.made[origin]  # type: ignore[assignment]
            strides = buffer.strides
            if strides is not None:
                distance = Var(f"{buffer.name}_stride", dtype_of("int64"), span=buffer.span)
                strides = (distance, *strides)
            made = replace(
                buffer, shape=(self.ranks, *buffer.shape), strides=strides, origin=origin
            )
            self.made[buffer] = made
            self.lifted.add(made)

    def run(self) -> Kernel:
        """Return the kernel of all ranks."""
        flags = {p: self.made[p] for p in self.params if is_flags(p)}
        kept = [p for p in self.params if p not in flags]
        place = {p: k for k, p in enumerate(kept)}
        outputs = tuple(place[self.params[k]] for k in self.kernel.outputs)
        body: list[Stmt] = []
        for made in flags.values():
            assert isinstance(made, Buffer)
            body += [Alloc(made, span=made.span), _cleared(made)]
        for item in flattened(self.kernel.body):
            body += self._host(item)
        return replace(
            self.kernel,
            params=tuple(self.made.get(p, p) for p in kept),
            body=Seq(tuple(body)),
            outputs=outputs,
        )

    def _host(self, stmt: Stmt) -> list[Stmt]:
        """Return what the host does for all ranks at once."""
        if isinstance(stmt, Launch):
            return [self._launch(stmt)]
        if names(self.rank, stmt):
            if isinstance(stmt, Check) and stmt.kind is CheckKind.ASSUME:
                return []
            raise UnsupportedForm(
                "the host asks for the rank, and runs once for all of them here",
                span=stmt.span,
                hint="ask for T.rank() inside of T.Kernel",
            )
        return [_Body(self, self.rank).visit(stmt)]  # type: ignore[list-item]

    def _launch(self, launch: Launch) -> Launch:
        """Return the launch of the blocks of all ranks: the last dimension of the grid."""
        if any(names(self.rank, extent) for extent in launch.grid):
            raise UnsupportedForm(
                "the number of blocks depends on the rank",
                span=launch.span,
                hint="launch as many on each rank, and let some of them do nothing",
            )
        for barrier in nodes_of(launch.body, Barrier):
            if barrier.scope == "grid":
                raise UnsupportedForm(
                    "blocks of one rank wait for each other in a kernel across ranks",
                    span=barrier.span,
                    hint="wait for signals of these blocks, or for T.barrier_ranks",
                )
        rank = Var(RANK, self.rank.dtype, span=launch.span)
        body = _Body(self, rank)
        variables, grid = launch.block_vars, launch.grid
        first: tuple[Let, ...] = ()
        if len(variables) == 3:
            variables, grid, first = _folded(launch)
        return replace(
            launch,
            block_vars=(*variables, rank),
            grid=(*grid, self.ranks),
            body=Seq((*first, *flattened(body.visit(launch.body)))),  # type: ignore[arg-type]
            cluster=(*launch.cluster, *(1,) * (len(grid) + 1 - len(launch.cluster)))
            if launch.cluster
            else (),
        )


def _folded(launch: Launch) -> tuple[tuple[Var, ...], tuple[Expr, ...], tuple[Let, ...]]:
    """Return a grid of two dimensions, and what the last two of three are in it."""
    x, y, z = launch.block_vars
    both = Var(f"{y.name}{z.name}", y.dtype)
    width, height, depth = launch.grid
    return (x, both), (width, height * depth), (Let(y, both % height), Let(z, both // height))


class _Body:
    """What a block does, for the rank that it belongs to."""

    def __init__(self, kernel: _AllRanks, rank: Var) -> None:
        self.kernel = kernel
        self.done: dict[Node, Node] = {kernel.rank: rank, **kernel.made}
        self.rank = rank

    def visit(self, node: Node) -> Node:
        """Return a node with its tensors' parts of this rank."""
        if node in self.done:
            return self.done[node]
        made = node.map_children(self.visit)
        if isinstance(made, (Load, Store, AddressOf)) and made.buffer in self.kernel.lifted:
            made = replace(made, indices=(self.rank, *made.indices))
        elif isinstance(made, Region) and made.buffer in self.kernel.lifted:
            made = replace(made, starts=(self.rank, *made.starts), extents=(1, *made.extents))
        elif isinstance(made, Leaf) and not isinstance(made, Breakpoint):
            if any(child in self.kernel.lifted for child in made.children()):
                raise UnsupportedForm(
                    f"the operator {made.mnemonic!r} takes a whole tensor, not that of a rank",
                    span=made.span,
                    hint="copy what it works on with T.copy",
                )
        elif isinstance(made, Seq):
            made = replace(
                made, body=tuple(part for item in made.body for part in self._checked(item))
            )
        self.done[node] = made
        return made

    def _checked(self, stmt: Stmt) -> list[Stmt]:
        """Return a statement behind checks that the ranks which it names exist."""
        places: list[tuple[Buffer, object]] = []
        if isinstance(stmt, Store):
            places = [(stmt.buffer, stmt.indices[0])] if stmt.indices else []
        elif isinstance(stmt, Leaf) and not isinstance(stmt, SIGNALS):
            regions = (*stmt.writes(), *stmt.reads())
            places = [(r.buffer, r.starts[0]) for r in regions if r.starts]
        symmetric = {*self.kernel.made.values()} - self.kernel.lifted
        named = dict.fromkeys(
            as_expr(first)
            for buffer, first in places
            if buffer in symmetric and not self._is_sure(first)
        )
        return [*(self._exists(rank, stmt) for rank in named), stmt]

    def _is_sure(self, rank: object) -> bool:
        """Whether a rank is the own one, or taken modulo their number."""
        match rank:
            case Binary(op=BinaryOp.FLOORMOD, b=count):
                return count is self.kernel.ranks
        return rank is self.rank

    def _exists(self, rank: Expr, stmt: Stmt) -> Check:
        natural = binary(BinaryOp.LE, const(0, rank.dtype), rank)
        inside = binary(BinaryOp.AND, natural, binary(BinaryOp.LT, rank, self.kernel.ranks))
        told = f"there is no rank {print_expr(rank, Names())}"
        return Check(inside, told, CheckKind.ASSERT, span=stmt.span)


def is_flags(param: Buffer | Var) -> bool:
    """Whether a parameter holds the flags of a group."""
    return isinstance(param, Buffer) and param.scope is Scope.SIGNALS


def names(var: Var, root: Node) -> bool:
    """Whether a statement or expression asks for a variable."""
    return any(node is var for node in walk_once(root))


def _cleared(flags: Buffer) -> Launch:
    """Return the launch of one thread that sets all flags to zero."""
    variables = [Var("ijkl"[axis], dtype_of("int32")) for axis in range(flags.rank)]
    body: Stmt = Store(flags, tuple(variables), const(0, flags.dtype), span=flags.span)
    for var, extent in reversed(list(zip(variables, flags.shape, strict=True))):
        zero, one = const(0, var.dtype), const(1, var.dtype)
        body = For(var, zero, cast(as_expr(extent), str(var.dtype)), one, body, span=flags.span)
    block = Var("bx", dtype_of("int32"))
    x, y, z = (Var(name, dtype_of("int32")) for name in "xyz")
    return Launch((block,), (const(1),), (x, y, z), (1, 1, 1), body, span=flags.span)
