"""Explicit thread programs as loops over threads between barriers."""

from __future__ import annotations

from tile_core.analysis.uniformity import Uniformity, is_thread_program
from tile_core.errors import Note, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import binary, const
from tile_core.ir.effects import storages_written
from tile_core.ir.expr import BinaryOp, Call, Expr, Load, Var
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, contains, nodes_of, rewrite, substitute, walk
from tile_core.ir.stmt import (
    Alloc,
    For,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
    flattened,
)
from tile_core.ir.visitor import expressions_in, statements_in
from tile_core.ops.control import Barrier
from tile_core.ops.printing import Print
from tile_core.ops.privatise_tiles import privatise_tiles
from tile_core.passes.coroutines import Await, awaits
from tile_core.passes.count_signals import Arrive
from tile_core.passes.thread_loops import ThreadLoops
from tile_core.passes.warp_exchange import Exchange
from tile_core.records import replace

_EXCHANGES = Effect.WARP | Effect.BLOCK


def serialise_threads(kernel: Kernel) -> Kernel:
    """Return `kernel` with every launch of explicit threads turned into one program per block.

    Before   v = A[tx];  s[tx] = v;  barrier;  B[tx] = s[127 - tx] + v
    After    for t in range(128): v[t] = A[t]; s[t] = v[t]
             for t in range(128): B[t] = s[127 - t] + v[t]

    Loops and branches whose conditions are the same for all threads stay around the loops
    over threads. Thread-private buffers and names that live across a barrier get one
    element per thread; shuffles, votes and warp reductions go through such arrays, with
    warps of 32 threads. Tile operators and data-parallel loops run once per block, or once per
    range of threads where a range runs them alone; ranges take their turns in the order of
    the program. Returns the same object when no launch speaks of its threads.

    Raises
    ------
    UnsupportedOnTarget
        If threads take different ways around something they must do together.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, Launch) and is_thread_program(node):
            return replace(node, body=_Serialiser(node).run())
        if isinstance(node, Launch) and not awaits(node.body):
            body = rewrite(node.body, lambda n: n.body if isinstance(n, OnThreads) else n)
            return node if body is node.body else replace(node, body=body)
        return node

    return rewrite(privatise_tiles(kernel, lambda launch: not is_thread_program(launch)), rule)


class _Serialiser:
    """Splits the body of one launch into groups of statements, each a loop over threads."""

    def __init__(self, launch: Launch) -> None:
        self.launch, self.loops = launch, ThreadLoops(launch)
        self.has_coroutines = awaits(launch.body)
        apart = _written_apart(launch)
        self.facts = Uniformity(launch, apart)
        while missed := self._miscounted(launch.body, inside=False):
            self.facts = Uniformity(launch, self.facts.storages | missed)

    def run(self) -> Stmt:
        """Return the block's one program."""
        body = self.launch.body
        if not self.meets(body):
            return self.loops.over_threads(body)
        result = self.sequence(body)
        return Seq((*self.loops.hoisted, *result))

    # Facts -------------------------------------------------------------------------------

    def meets(self, stmt: Node) -> bool:
        """Whether the threads of the block must come together somewhere in `stmt`."""
        match stmt:
            case Parallel() | Barrier() | OnThreads() | Await():
                return True
            case Leaf():
                return not self.acts_per_thread(stmt)
            case Call(function=function):
                return bool(effect_of(function) & _EXCHANGES) or self._children_meet(stmt)
        return self._children_meet(stmt)

    def _children_meet(self, stmt: Node) -> bool:
        return any(self.meets(c) for c in stmt.children() if not isinstance(c, Buffer))

    def acts_per_thread(self, stmt: Node) -> bool:
        """Whether a statement without inner statements differs between threads."""
        match stmt:
            case Alloc(buffer=buffer):
                return self.facts.is_private(buffer)
            case Store(buffer=buffer):
                own = self.facts.is_private(buffer)
                return own or any(self.facts.varies(c) for c in (*stmt.indices, stmt.value))
            case Print(values=values) if values:
                return True
            case Arrive():
                return True
            case Leaf():
                touched = [*nodes_of(stmt, Buffer)]
                own = any(self.facts.is_private(b) for b in touched)
                return own or any(
                    self.facts.varies(c) for c in stmt.children() if not isinstance(c, Buffer)
                )
        return any(
            self.facts.varies(c) if isinstance(c, Expr) else self.acts_per_thread(c)
            for c in stmt.children()
            if not isinstance(c, Buffer)
        )

    def _miscounted(self, stmt: Node, *, inside: bool) -> set[Buffer]:
        """Return private storages written in a loop over threads though thought common."""
        found: set[Buffer] = set()
        match stmt:
            case Store(buffer=buffer):
                storage = buffer.storage
                common = storage.scope.is_thread_private and not self.facts.is_private(storage)
                return {storage} if inside and common else set()
            case For() | While() | If() | Pipelined():
                whole = self.acts_per_thread(stmt) and not self.meets(stmt)
                inside = inside or whole
        for inner in statements_in(stmt):
            found |= self._miscounted(inner, inside=inside)
        return found

    # Splitting ---------------------------------------------------------------------------

    def sequence(self, stmt: Stmt) -> list[Stmt]:
        """Return `stmt` as statements of the block, none of which speaks of a thread."""
        group: list[Stmt] = []
        result: list[Stmt] = []

        def flush() -> None:
            if group:
                result.append(self.loops.over_threads(Seq(tuple(group))))
                group.clear()

        for item in flattened(stmt):
            if isinstance(item, Alloc) and self.facts.is_private(item.buffer):
                result.append(self.loops.expanded(item))
            elif self.meets(item):
                flush()
                result += self.together(item)
            elif isinstance(item, Let) and self.acts_per_thread(item):
                self.name(item, group)
            elif self.acts_per_thread(item) or self.loops.mask is not None:
                group.append(item)
            else:
                if not isinstance(item, (Let, Alloc)):
                    flush()
                result.append(item)
        flush()
        return result

    def name(self, let: Let, group: list[Stmt]) -> None:
        """Make a name that differs between threads known to all later groups."""
        if not contains(let.value, Load, Call):
            self.loops.names[let.var] = let.value
            return
        self.loops.names[let.var] = cell = self.loops.array(let.var.name, let.var)
        group.append(Store(cell, (self.loops.index,), let.value, span=let.span))

    def together(self, stmt: Stmt) -> list[Stmt]:
        """Return something the threads do together, or that holds such a thing inside."""
        match stmt:
            case Barrier():
                self.refuse_apart(stmt, masked=stmt.scope != "warp" and stmt.count is None)
                return []
            case Await(cond=cond):
                each = self.facts.varies(cond)
                self.refuse_apart(stmt, masked=not each)
                return [self.loops.over_threads(stmt) if each else self.loops.named(stmt)]
            case Parallel() | Leaf():
                self.refuse_apart(stmt, masked=True)
                self._refuse_private(stmt)
                return [self.loops.named(stmt)]
            case OnThreads(first=first, count=count, body=body):
                with self.loops.only(first, count):
                    inner = self.sequence(body)
                return [replace(stmt, body=Seq(tuple(inner)))] if self.has_coroutines else inner
            case If():
                return self.branch(stmt)
            case For() | Pipelined() | While():
                bounds = expressions_in(stmt)
                if any(map(self.facts.varies, bounds)) or self.facts.leaves_apart(stmt.body):
                    raise self.apart(stmt)
                return [self.loops.named(replace(stmt, body=Seq(tuple(self.sequence(stmt.body)))))]
        return self.exchange(stmt)

    def branch(self, stmt: If) -> list[Stmt]:
        """Return a branch that holds something the threads do together."""
        if any(_exchanges(node) for node in walk(stmt.cond)):
            before, cond = self.values(stmt.cond)
            return [*before, *self.branch(replace(stmt, cond=cond))]
        if not self.facts.varies(stmt.cond):
            then = Seq(tuple(self.sequence(stmt.then)))
            otherwise = stmt.otherwise
            rest = None if otherwise is None else Seq(tuple(self.sequence(otherwise)))
            return [self.loops.named(replace(stmt, then=then, otherwise=rest))]
        result: list[Stmt] = []
        outer = self.loops.mask
        for body, holds in ((stmt.then, True), (stmt.otherwise, False)):
            if body is None:
                continue
            cond = stmt.cond if holds else ~stmt.cond
            if outer is not None:
                cond = binary(BinaryOp.AND, Load(outer, (self.loops.index,)), cond)
            mask = self.loops.array("active", const(True))
            self.loops.mask = None
            result.append(self.loops.over_threads(Store(mask, (self.loops.index,), cond)))
            self.loops.mask = mask
            result += self.sequence(body)
            self.loops.mask = outer
        return result

    def exchange(self, stmt: Stmt) -> list[Stmt]:
        """Return a statement whose expressions exchange values between threads."""
        if isinstance(stmt, Let):
            before, value = self.values(stmt.value)
            group: list[Stmt] = []
            let = replace(stmt, value=value)
            if not self.acts_per_thread(stmt):
                return [*before, self.loops.named(let)]
            self.name(let, group)
            return [*before, *(self.loops.over_threads(s) for s in group)]
        before = []
        changed = stmt
        for child in expressions_in(stmt):
            if any(_exchanges(n) for n in walk(child)):
                steps, value = self.values(child)
                before += steps
                changed = substitute(changed, {child: value})
        return [*before, self.loops.over_threads(changed)]

    def values(self, expr: Expr) -> tuple[list[Stmt], Expr]:
        """Return statements that exchange, and `expr` in terms of what they received."""
        steps: list[Stmt] = []

        def rule(node: Node) -> Node:
            if isinstance(node, Call) and _exchanges(node):
                return Exchange(self.loops, node, steps).received()
            return node

        value = rewrite(expr, rule)
        return steps, value

    # Errors ------------------------------------------------------------------------------

    def refuse_apart(self, stmt: Node, *, masked: bool) -> None:
        """Raise if not all threads get here."""
        if masked and self.loops.mask is not None:
            raise self.apart(stmt)

    def _refuse_private(self, stmt: Node) -> None:
        inside = [*nodes_of(stmt, Let, Alloc)]
        own = {n.var if isinstance(n, Let) else n.buffer for n in inside}  # of each iteration
        for node in walk(stmt):
            if node in own or (isinstance(node, Buffer) and node.storage in own):
                continue
            match node:
                case Buffer(name=name) if self.facts.is_private(node):
                    why = "of which each thread has its own"
                case Var(name=name) if node in self.facts.variables:
                    why = "which differs between threads"
                case _:
                    continue
            raise UnsupportedOnTarget(
                f"a data-parallel loop uses {name!r}, {why}",
                span=stmt.span,
                hint="index the threads yourself, or run it with TILE_INTERPRET=1",
            )

    def apart(self, stmt: Node) -> UnsupportedOnTarget:
        """Return the error for threads that take different ways around a meeting."""
        meeting = next(iter(nodes_of(stmt, Leaf)), stmt)
        return UnsupportedOnTarget(
            "threads of a block take different ways around something they must do together",
            span=stmt.span or self.launch.span,
            notes=(Note("the threads meet here", meeting.span),) if meeting.span else (),
            hint="make the condition the same for all threads, or run the kernel in the "
            "reference interpreter (TILE_INTERPRET=1) or in an emulator of GPUs (@sim)",
        )


def _written_apart(launch: Launch) -> set[Buffer]:
    """Return thread-private storages that a range of threads writes, and others use too."""
    inside: dict[Buffer, set[Node | None]] = {}
    written: set[Buffer] = set()

    def visit(node: Node, part: Node | None) -> None:
        if isinstance(node, OnThreads):
            part = part or node
            written.update(storages_written(node))
        if isinstance(node, Buffer) and node.storage.scope.is_thread_private:
            inside.setdefault(node.storage, set()).add(part)
        if not isinstance(node, (Alloc, Buffer)):
            for child in node.children():
                visit(child, part)

    visit(launch.body, None)
    return {s for s, parts in inside.items() if s in written and len(parts) > 1}


def _exchanges(node: Node) -> bool:
    return isinstance(node, Call) and bool(effect_of(node.function) & _EXCHANGES)
