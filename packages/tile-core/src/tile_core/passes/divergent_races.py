"""Races within branches that threads take apart, where no barrier can stand."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.analysis.memory_access import ExecutingThreads, MemoryAccess, inlined, is_plain
from tile_core.analysis.memory_dependence import MemoryDependences
from tile_core.analysis.thread_dependence import ThreadDependences
from tile_core.analysis.uniformity import is_thread_program
from tile_core.errors import DataRace, Note, Span
from tile_core.ir.effects import Mode
from tile_core.ir.expr import Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import (
    Break,
    Continue,
    For,
    If,
    Launch,
    Let,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
    While,
)
from tile_core.ir.visitor import statements_in
from tile_core.passes.insert_barriers import NONE, Flow, Path, State


def refuse_divergent_races(launch: Launch, warp_size: int = 32) -> Launch:
    """Return `launch` if no branch that threads take apart holds a race of theirs.

    Barriers for such a branch stand before it: they cannot order what happens in it. Only what
    tables of all threads show for sure is refused; a barrier of the warp or of some threads, or
    a signal, that the program puts there counts.

    Raises
    ------
    DataRace
        With both lines.
    """
    if is_thread_program(launch):
        _Apart(launch, warp_size).search(launch.body, ())
    return launch


class _Apart(Flow):
    """Follows branches that threads take apart, as if all threads in them stayed together."""

    def __init__(self, launch: Launch, warp_size: int) -> None:
        super().__init__(launch, MemoryDependences())
        names = self.uniform.variables
        self.memory.threads = ThreadDependences(
            launch, names, self.memory.stands_for, warp_size, only_sure=True
        )
        self.spans: dict[MemoryAccess, Span | None] = {}

    def search(self, stmt: Stmt, path: Path) -> None:
        """Look for branches that threads take apart."""
        match stmt:
            case If(cond=cond) if self.uniform.varies(cond):
                self._branches(stmt, path)
            case Let(var=var, value=value) if is_plain(value):
                self.meaning[var] = value
            case Seq() | If() | For() | Pipelined() | While():
                for k, inner in enumerate(statements_in(stmt)):
                    self.search(inner, (*path, k))

    def _branches(self, stmt: If, path: Path) -> None:
        held = inlined(stmt.cond, self.meaning)
        if not isinstance(held, Expr) or not is_plain(held):
            return
        outside, differs = self.when, self.uniform.varies(stmt.cond)
        for k, (body, cond) in enumerate(((stmt.then, held), (stmt.otherwise, ~held))):
            if body is not None:
                self.when = (*outside, cond) if differs else outside
                self.visit(body, (*path, k), NONE)
        self.when = outside

    def visit(self, stmt: Stmt, path: Path, state: State) -> State:
        """Follow a statement; nothing comes after those that leave an iteration of a loop."""
        if isinstance(stmt, (Break, Continue)):
            return NONE
        return super().visit(stmt, path, state)

    def _if(self, stmt: If, path: Path, state: State) -> State:
        self._branches(stmt, path)
        return NONE

    def _on_threads(self, stmt: OnThreads, path: Path, state: State) -> State:
        return NONE

    def _loop(self, stmt: For | Pipelined | While, path: Path, state: State) -> State:
        self.visit(stmt.body, (*path, 0), NONE)
        return NONE

    def _touches(
        self, root: Node, path: Path, executed_by: ExecutingThreads, part: str = ""
    ) -> tuple[MemoryAccess, ...]:
        found = super()._touches(root, path, executed_by, part)
        made = tuple(t for t in found if t.executed_by is ExecutingThreads.THREAD)
        self.spans |= dict.fromkeys(made, getattr(root, "span", None))
        return made

    def _act(self, path: Path, made: Iterable[MemoryAccess], state: State) -> State:
        for touch in made:
            for pending in state:
                earlier = pending.touch
                if Mode.READ not in (touch.mode, earlier.mode):
                    continue
                if self.memory.conflict(pending, touch):
                    raise self._race(earlier, touch)
        return super()._act(path, made, state)

    def _race(self, earlier: MemoryAccess, now: MemoryAccess) -> DataRace:
        did, does = ["read" if touch.mode is Mode.READ else "written" for touch in (earlier, now)]
        there = self.spans[earlier]
        return DataRace(
            f"threads of a branch have {now.buffer.name!r} {did} and {does} by each other, and no "
            "barrier of the block can stand in a branch that not all threads take",
            span=self.spans[now],
            notes=() if there is None else (Note(f"it is {did} here", there),),
            hint="end the branch in between, or write T.sync_warp() where the threads are of one "
            "warp",
        )
