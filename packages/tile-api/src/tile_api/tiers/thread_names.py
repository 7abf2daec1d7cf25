"""Names of variables and buffers in a printed program of threads."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import Alloc, For, Let

_RESERVED = frozenset({*keyword.kwlist, "T", "tile"})
_ILLEGAL = re.compile(r"\W")


class ThreadNames:
    """Gives things the names that they have, changed only where two of them are seen at once.

    Names of a block are free again behind it. What is bound at several places keeps a name of
    its own, so that the second place can say that it means the same.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set(_RESERVED)
        self._given: dict[Node, str] = {}
        self._ever: set[str] = set()
        self._scopes: list[list[Buffer | Var]] = [[]]
        self._repeated: set[Node] = set()
        self._known: dict[Node, str] = {}

    def expect(self, body: Node) -> None:
        """Take note of what a launch binds at several places."""
        counts = Counter(_bound(body))
        self._repeated |= {thing for thing, count in counts.items() if count > 1}

    def __contains__(self, thing: Buffer | Var) -> bool:
        """Whether a thing is seen here."""
        return thing in self._given

    def of(self, thing: Buffer | Var) -> str:
        """Return the name of what was bound before."""
        return self._given[thing]

    def of_function(self, wanted: str) -> str:
        """Return what the function is called, which nothing else at the top of the file is."""
        is_free = wanted.isidentifier() and wanted not in self._taken
        name = wanted if is_free else f"kernel_{_ILLEGAL.sub('_', wanted)}"
        self._taken.add(name)
        return name

    def keep(self, thing: Buffer | Var) -> str | None:
        """Return the own name of a parameter, which callers use; None if Python has it not."""
        name = thing.name
        if not name.isidentifier() or keyword.iskeyword(name):
            return None
        self._take(thing, name)
        return name

    def bind(self, thing: Buffer | Var) -> tuple[str, dict[str, object]]:
        """Return the name of a thing, and what the text has to say of it beside that."""
        if thing in self._known:
            name = self._known[thing]
            self._take(thing, name)
            return name, {"again": True}
        stem = _ILLEGAL.sub("_", thing.name) or "x"
        stem = f"_{stem}" if stem[0].isdigit() else stem
        name, number = stem, 0
        taken = self._taken | self._ever if thing in self._repeated else self._taken
        while name in taken:
            number += 1
            name = f"{stem}_{number}"
        if thing in self._repeated:
            self._known[thing] = name
            self._taken.add(name)  # for good
        self._take(thing, name)
        return name, {} if name == thing.name else {"name": thing.name}

    def _take(self, thing: Buffer | Var, name: str) -> None:
        self._taken.add(name)
        self._ever.add(name)
        self._given[thing] = name
        self._scopes[-1].append(thing)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Free what is bound in the block when it ends."""
        self._scopes.append([])
        yield
        for thing in self._scopes.pop():
            name = self._given.pop(thing)
            if thing not in self._known:
                self._taken.discard(name)

    @contextmanager
    def shadowing(self, things: list[Buffer]) -> Iterator[None]:
        """Let the names of some things be given to others in the block."""
        hidden: dict[Node, str] = {thing: self._given.pop(thing) for thing in things}
        self._taken -= set(hidden.values())
        yield
        self._given |= hidden
        self._taken |= set(hidden.values())


def _bound(body: Node) -> Iterator[Node]:
    for node in walk(body):
        match node:
            case Let(var=var) | For(var=var):
                yield var
            case Alloc(buffer=buffer):
                yield buffer
