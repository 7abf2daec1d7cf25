"""Statements: a closed union; tile operators are its one open leaf."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, TypeAlias, TypeGuard

from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Const, Expr, Var
from tile_core.ir.node import Node
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(Node):
    """A statement the closed union does not know: a tile operator (`tile_core.ops`).

    `mnemonic` names the class in printed IR, `spellings` are the names of the language that
    write it; its dataclass fields are its operands.
    """

    mnemonic: ClassVar[str] = ""
    spellings: ClassVar[tuple[str, ...]] = ()

    def reads(self) -> tuple[Region, ...]:
        """Regions whose previous contents matter."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Regions changed."""
        return ()

    def verify(self) -> None:
        """Raise a `TileError` with this statement's span if it is ill-formed."""

    def serial_form(self) -> Stmt | None:
        """Return statements on single elements that do the same; None if there are none.

        What one thread runs that stands for all: `tile_core.ops.serial_forms.expand` asks for it.
        """
        return None


Stmt: TypeAlias = (
    "Seq | Let | Alloc | Store | Evaluate | For | Parallel | Pipelined | While | If | OnThreads"
    " | Break | Continue | Check | Launch | AnnotateLayout | AnnotateSafeValue | Hint | Leaf"
)


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Node):
    """Run `body` in order. `Let`, `Alloc` and annotations in it reach to its end."""

    is_block: ClassVar[bool] = True

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Let(Node):
    """Name the value that `value` has now; `var` is visible in the rest of the `Seq`."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(Node):
    """Make `buffer` available, with undefined contents, in the rest of the `Seq`.

    Views (buffers with an `origin`) have no storage of their own and need no `Alloc`.
    """

    buffer: Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Store(Node):
    """``buffer[indices] = value``, one index per dimension.

    `value` has the buffer's dtype. In a global buffer an index outside is skipped. A `Ramp`
    as last index stores a vector.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Node):
    """Evaluate for its effect: atomics, extern calls, barriers among threads."""

    value: Expr


class LoopKind(Enum):
    """How a sequential loop may be compiled; all kinds mean the same."""

    SERIAL = "serial"
    UNROLL = "unroll"
    VECTORIZED = "vectorized"


@dataclass(frozen=True, slots=True, eq=False)
class For(Node):
    """``for var in range(start, stop, step): body``; `step` is not zero."""

    is_block: ClassVar[bool] = True

    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: Stmt
    kind: LoopKind = LoopKind.SERIAL


@dataclass(frozen=True, slots=True, eq=False)
class Parallel(Node):
    """Run `body` once for each point of a box, in any order, spread over the block's threads."""

    is_block: ClassVar[bool] = True

    # vars, extents: one index per dimension, from 0, and how far it counts.
    vars: tuple[Var, ...]
    extents: tuple[Expr, ...]
    body: Stmt
    coalesced_width: int | None = None  # elements per vector access that the user asks for, or None
    # A `tile_core.layout.Fragment` that fixes the distribution, or None.
    loop_layout: object | None = None
    is_async: bool = False  # what is stored may still be in flight afterwards, as with such a copy


@dataclass(frozen=True, slots=True, eq=False)
class Pipelined(Node):
    """``for var in range(start, stop): body``, overlapping copies with work.

    The meaning is always that of the sequential loop.
    """

    is_block: ClassVar[bool] = True

    var: Var
    start: Expr
    stop: Expr
    body: Stmt
    # How many versions of a copied tile may be in flight; 0 or 1 ask for no overlap.
    num_stages: int = 0
    # order, stage: a schedule given by the user, one entry per statement of `body`, or empty.
    order: tuple[int, ...] = ()
    stage: tuple[int, ...] = ()

    @property
    def step(self) -> Expr:
        """What the index grows by: one."""
        return Const(1, self.var.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class While(Node):
    """Run `body` as long as `cond` holds, testing it before each iteration."""

    is_block: ClassVar[bool] = True

    cond: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class If(Node):
    """Run `then` if `cond` holds, else `otherwise` if there is one."""

    is_block: ClassVar[bool] = True

    cond: Expr
    then: Stmt
    otherwise: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OnThreads(Node):
    """Run `body` on `count` threads of the block alone, from thread `first` on.

    Inside, these are all the threads there are: tiles in registers are spread over them, and
    barriers wait for them. Statements for ranges of threads that have none in common run at
    the same time, even where one stands behind the other.
    """

    is_block: ClassVar[bool] = True

    first: int
    count: int
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Break(Node):
    """Leave the innermost sequential or `While` loop."""


@dataclass(frozen=True, slots=True, eq=False)
class Continue(Node):
    """Start the next iteration of the innermost sequential or `While` loop."""


class CheckKind(Enum):
    """Who relies on a checked condition."""

    ASSERT = "assert"  # `assert` or T.device_assert: stop the kernel if false
    ASSUME = "assume"  # T.assume: the compiler may rely on it; the host checks it if it can


@dataclass(frozen=True, slots=True, eq=False)
class Check(Node):
    """State that `cond` holds here."""

    cond: Expr
    message: str
    kind: CheckKind


@dataclass(frozen=True, slots=True, eq=False)
class Launch(Node):
    """Run `body` once per block of a grid, with `threads` threads each; blocks in any order."""

    is_block: ClassVar[bool] = True

    # block_vars, grid: up to three indices and extents, x (fastest) first.
    block_vars: tuple[Var, ...]
    grid: tuple[Expr, ...]
    # thread_vars, threads: always three indices (x, y, z) and three extents, padded with 1.
    thread_vars: tuple[Var, Var, Var]
    threads: tuple[int, int, int]
    body: Stmt
    cluster: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class AnnotateLayout(Node):
    """Fix the physical layout of `buffer` (a `tile_core.layout` Layout or Fragment)."""

    buffer: Buffer
    layout: object


@dataclass(frozen=True, slots=True, eq=False)
class AnnotateSafeValue(Node):
    """Loads of `buffer` outside its box give `value`, in the rest of the `Seq`."""

    buffer: Buffer
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Hint(Node):
    """A performance hint without effect on results, such as a threadblock swizzle."""

    name: str
    values: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """Hints recorded in a kernel's body: pass configurations and compile flags."""

    pass_configs: tuple[tuple[str, object], ...] = ()
    compile_flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Kernel(Node):
    """A function on tensors."""

    is_block: ClassVar[bool] = True

    name: str  # the symbol it is compiled to
    # Buffers (scope global) for tensors, `Var`s for scalars, in call order.
    params: tuple[Buffer | Var, ...]
    body: Stmt  # one or more `Launch`es, run in order, with host-side statements between them
    outputs: tuple[int, ...] = ()  # positions in `params` that the runtime allocates and returns
    sources: tuple[str, ...] = ()  # C texts to compile along with the kernel
    options: KernelOptions = KernelOptions()


def flattened(stmt: Stmt) -> list[Stmt]:
    """Return the statements of a body, sequences in it opened."""
    if not isinstance(stmt, Seq):
        return [stmt]
    return [inner for item in stmt.body for inner in flattened(item)]


_STATEMENTS = (
    Seq, Let, Alloc, Store, Evaluate, For, Parallel, Pipelined, While, If, OnThreads, Break,
    Continue, Check, Launch, AnnotateLayout, AnnotateSafeValue, Hint, Leaf,
)  # fmt: skip


def is_statement(node: object) -> TypeGuard[Stmt]:
    """Tell whether a node is a statement: one of those that `Stmt` names."""
    return isinstance(node, _STATEMENTS)
