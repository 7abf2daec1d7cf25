"""The trace in progress: where statements go, and which user line they come from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from enum import Enum
from typing import Any, Protocol, TypeVar

from tile_api.frontend.accumulation import as_update
from tile_api.frontend.source import SpanTable, calling_span
from tile_core.arith.interval import Interval
from tile_core.dtypes import DType
from tile_core.errors import ControlFlowError, ScopeError, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr, Load, Var
from tile_core.ir.node import has_more_nodes
from tile_core.ir.stmt import Launch, Let, Parallel, Pipelined, Seq, Stmt, Store, While
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass
from tile_launch.contract import Contract

S = TypeVar("S", bound="Stmt")


class KernelWarning(UserWarning):
    """Something in a kernel is legal but probably not what was meant."""


class BlockKind(Enum):
    """What a block of statements is the body of."""

    FUNCTION = "function"
    LAUNCH = "with T.Kernel"
    SERIAL = "loop"
    VECTORIZED = "T.vectorized"
    PARALLEL = "T.Parallel"
    PIPELINED = "T.Pipelined"
    WHILE = "while"
    BRANCH = "if"
    REGION = "with"
    THREADS = "with T.ws"

    @property
    def is_loop(self) -> bool:
        """Whether the block runs any number of times."""
        return self in _LOOPS

    @property
    def is_dynamic(self) -> bool:
        """Whether it is known only at run time how often the block runs."""
        return self.is_loop or self is BlockKind.BRANCH


_LOOPS = frozenset(
    {
        *(BlockKind.SERIAL, BlockKind.VECTORIZED, BlockKind.PARALLEL),
        *(BlockKind.PIPELINED, BlockKind.WHILE),
    }
)

MOST_TERMS = 512
"""Statements with fewer terms stay as they are written."""

_NOT_CUT = (Seq, Parallel, Pipelined, While, Launch)
"""Statements whose expressions are evaluated again and again, or on the host."""


@dataclass(slots=True)
class Block:
    """Statements collected so far, and whether a `break` or `continue` ended them."""

    kind: BlockKind
    form: object = None  # the frame that opened it, if others ask for that
    statements: list[Stmt] = field(default_factory=list)
    ended_by: str | None = None
    warned: bool = False


class Prologue(Protocol):
    """What the trace of an eager function knows besides its statements."""

    def constant(
        self, builder: Builder, name: str, dtype: DType, contract: Contract | None = None
    ) -> Any:
        """Return the constant called `name`: a symbol, or an int where it is known."""

    def declare(self, builder: Builder, name: str, old: Any, spec: Any) -> Buffer | None:
        """Return the buffer of a tensor parameter declared in the body; None of anything else."""

    def reached_kernel(self) -> None:
        """Note that the first launch begins."""


class Builder:
    """Collects the statements of one kernel."""

    def __init__(self, name: str, *, eager: Prologue | None = None) -> None:
        self.name = name
        self.eager = eager  # what an eager function adds: constants and declared tensors
        self.blocks: list[Block] = [Block(BlockKind.FUNCTION)]
        self.launch: Frame | None = None  # the enclosing ``with T.Kernel``
        self.before_launch: list[Stmt] = []  # allocations that the next launch begins with
        self.launched = False
        self._unlaunched: ScopeError | None = None
        self.ranges: dict[Var, Interval] = {}  # of loop, block and thread indices
        self.outputs: list[Buffer] = []  # declared with `T.empty`, in order
        self.returned: tuple[Buffer, ...] | None = None
        self.sources: list[str] = []
        self.pass_configs: dict[str, object] = {}
        self.compile_flags: list[str] = []
        self.attrs: dict[str, object] = {}
        self.accumulators: set[Buffer] = set()  # fragments that matrix products add to
        self.reducers: dict[Buffer, str] = {}  # what each accumulator computes
        self.layouts: dict[Buffer, tuple[Any, Span | None]] = {}  # as annotated, and where
        self.place: tuple[SpanTable, int] | None = None
        self.hint: str | None = None
        self.operand_of: str | None = None  # inside an operand that may not be evaluated
        self.threads_leave = False  # some statement is T.thread_return
        self.conditional = False  # that operand is evaluated only sometimes
        self.depth = 0  # of nested macro calls
        self._counts: dict[str, int] = {}
        self._pending: list[tuple[Frame, int]] = []  # with the number of blocks once entered

    @property
    def span(self) -> Span | None:
        """The user's line being executed."""
        return None if self.place is None else self.place[0].span(self.place[1])

    def fresh(self, name: str) -> str:
        """Return `name`, with a number appended if it was handed out before."""
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        return f"{name}_{count}" if count else name

    def take_hint(self, default: str) -> str:
        """Return the name that the value under construction will be bound to, once."""
        name, self.hint = self.hint or default, None
        return name

    def emit(self, stmt: Stmt) -> Stmt:
        """Append a statement to the innermost block and return it with its span.

        Tile operators are verified.
        """
        if stmt.span is None:
            stmt = replace(stmt, span=self.span)
        if self.conditional:
            raise ControlFlowError(
                f"an operand of {self.operand_of} is evaluated only when needed, so it cannot "
                "contain a statement",
                span=self.span,
                hint="use an `if` statement and an alloc_var for the result",
            )
        if self.launch is not None and not isinstance(stmt, _NOT_CUT):
            stmt = self._cut(stmt)
        if isinstance(stmt, TileOperator):
            stmt = self._checked(stmt)
        if isinstance(stmt, Store) and stmt.buffer in self.reducers:
            stmt = self._accumulated(stmt)
        block = self.blocks[-1]
        if block.ended_by is None:
            block.statements.append(stmt)
        elif not block.warned:
            block.warned = True
            self.warn(f"statements after {block.ended_by!r} are never executed and are dropped")
        return stmt

    def _accumulated(self, stmt: Store) -> Stmt:
        if stmt.buffer.scope is Scope.REDUCER or not self.inside(BlockKind.PARALLEL):
            return stmt
        return as_update(stmt, self.reducers[stmt.buffer])

    def note_outside(self, error: ScopeError) -> None:
        """Note a statement that stands outside of launches: a mistake if the kernel has any.

        A body without `T.Kernel` is one block of one thread, which may have tiles.
        """
        if self.launched:
            raise error
        self._unlaunched = self._unlaunched or error

    def begin_launch(self, launch: Frame) -> None:
        """Note that a launch begins, unless there is what should stand in it."""
        if self._unlaunched is not None:
            raise self._unlaunched
        self.launch, self.launched = launch, True

    def _checked(self, op: TileOperator) -> Stmt:
        if self.launch is None:
            self.note_outside(
                ScopeError(
                    f"the tile operator {op.mnemonic!r} must be inside `with T.Kernel(...)`",
                    span=op.span,
                    hint="move it into the body of a `with T.Kernel(...) as ...:`",
                )
            )
        op.verify()
        if isinstance(op, Gemm) and op.c.buffer.scope is Scope.FRAGMENT:
            self.accumulators.add(op.c.buffer)
        if isinstance(op, Copy) and self.inside(BlockKind.PARALLEL):
            src, dst = op.src, op.dst
            if src.is_element and dst.is_element:
                from tile_core.ir.build_expr import as_expr, cast

                value = Load(src.buffer, tuple(as_expr(s) for s in src.starts), span=op.span)
                where = tuple(as_expr(s) for s in dst.starts)
                return Store(dst.buffer, where, cast(value, dst.buffer.dtype), span=op.span)
        return op

    def warn(self, message: str) -> None:
        """Warn about the user's current line."""
        span = self.span
        if span is None:
            warnings.warn(message, KernelWarning, stacklevel=3)
        else:
            warnings.warn_explicit(message, KernelWarning, span.file, span.line)

    def open(self, kind: BlockKind) -> Block:
        """Begin a block; statements go there until it is closed."""
        self.blocks.append(Block(kind))
        return self.blocks[-1]

    def close(self) -> Seq:
        """End the innermost block and return its statements."""
        while self._pending and self._pending[-1][1] == len(self.blocks):
            frame, _ = self._pending.pop()
            frame.exit(self)
        block = self.blocks.pop()
        return Seq(tuple(block.statements), span=self.span)

    def enter_until_end(self, frame: Frame, names: tuple[str, ...] = ()) -> Any:
        """Enter a frame that was used as a statement; it ends with the enclosing block."""
        if frame is self.launch:
            return frame  # that of the launch around, which was asked for
        value = frame.enter(self, names)
        self._pending.append((frame, len(self.blocks)))
        return value

    @contextmanager
    def aside(self, statements: list[Stmt]) -> Iterator[None]:
        """Collect what is emitted meanwhile in `statements`."""
        self.blocks.append(Block(BlockKind.REGION, statements=statements))
        try:
            yield
        finally:
            self.blocks.pop()

    def end_block(self, keyword: str) -> None:
        """Note that nothing after this `break` or `continue` is reached."""
        self.blocks[-1].ended_by = self.blocks[-1].ended_by or keyword

    def inside(self, kind: BlockKind) -> bool:
        """Whether a block of `kind` encloses the current statement."""
        return any(block.kind is kind for block in self.blocks)

    @property
    def is_dynamic(self) -> bool:
        """Whether the current statement may run any number of times."""
        return any(block.kind.is_dynamic for block in self.blocks)

    def let(self, name: str, value: Expr) -> Var:
        """Name the value of `value` at this point and return the name."""
        var = Var(name, value.dtype, span=self.span)
        self.emit(Let(var, value))
        return var

    def _cut(self, stmt: S) -> S:
        if not has_more_nodes(stmt, MOST_TERMS):
            return stmt
        from tile_api.frontend.large_expressions import with_named_parts  # few kernels need it

        return with_named_parts(stmt, MOST_TERMS, self._part)

    def _part(self, name: str, value: Expr) -> Var:
        """Name a part of the statement at hand, which is as small as it gets."""
        var = Var(self.fresh(name), value.dtype, span=self.span)
        if self.blocks[-1].ended_by is None:
            self.blocks[-1].statements.append(Let(var, value, span=self.span))
        return var

    @contextmanager
    def operand(self, construct: str, *, conditional: bool) -> Iterator[None]:
        """Evaluate an operand of `construct`: no macros, and no statements if conditional."""
        before = self.operand_of, self.conditional
        self.operand_of, self.conditional = construct, conditional or self.conditional
        try:
            yield
        finally:
            self.operand_of, self.conditional = before

    def declare(self, buffer: Buffer) -> Buffer:
        """Return `buffer` with the current line as the place of its declaration."""
        return buffer if buffer.span is not None else replace(buffer, span=self.span)


class Frame:
    """Something to enter with `with`, or as a statement that reaches to the block's end."""

    def enter(self, builder: Builder, names: tuple[str, ...]) -> Any:
        """Begin; `names` are those the value will be bound to. Return that value."""
        raise ControlFlowError(
            f"{type(self).__name__} cannot be entered",
            span=builder.span,
            hint="enter a frame of the language, such as T.Kernel(...)",
        )

    def exit(self, builder: Builder) -> None:
        """End."""

    def __enter__(self) -> Any:
        return self.enter(current(), ())

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.exit(current())


_ACTIVE: ContextVar[Builder | None] = ContextVar("tile_builder", default=None)


def active() -> Builder | None:
    """Return the trace in progress, or None."""
    return _ACTIVE.get()


def here() -> Span | None:
    """Return the user's line being traced; outside a kernel, the line that called us."""
    builder = _ACTIVE.get()
    return calling_span() if builder is None else builder.span


def current() -> Builder:
    """Return the trace in progress, or raise: outside the body of a kernel there is none."""
    builder = _ACTIVE.get()
    if builder is None:
        raise ScopeError(
            "this can only be used inside a kernel",
            span=calling_span(),
            hint="call it in the body of a function decorated with @T.prim_func, @T.macro or "
            "@tile.jit",
        )
    return builder


@contextmanager
def tracing(builder: Builder) -> Iterator[Builder]:
    """Make `builder` the trace in progress."""
    token = _ACTIVE.set(builder)
    try:
        yield builder
    finally:
        _ACTIVE.reset(token)
