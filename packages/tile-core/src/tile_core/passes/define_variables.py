"""Variables without an initial value are zero."""

from __future__ import annotations

from tile_core.analysis.first_access import FirstAccess, first_of
from tile_core.ir.buffer import Scope
from tile_core.ir.build_expr import const
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Alloc, Kernel, Seq, Stmt, Store


def define_variables(kernel: Kernel) -> Kernel:
    """Return `kernel` with a store of zero for each variable that may be read before any other.

    Before   alloc s: local.var int32[1];  while …: s[0] = s[0] + i[0]
    After    alloc s: local.var int32[1];  s[0] = 0;  while …: s[0] = s[0] + i[0]

    Where something else is surely stored first, nothing is put in. A variable that is declared
    inside of a loop is a new one in each iteration. Returns the same object when there is nothing
    to do.
    """

    def rule(node: Node) -> Node:
        return _defined(node) if isinstance(node, Seq) else node

    return rewrite(kernel, rule)


def _defined(sequence: Seq) -> Seq:
    body: list[Stmt] = []
    for place, item in enumerate(sequence.body):
        body.append(item)
        if isinstance(item, Alloc) and item.buffer.scope is Scope.VAR:
            variable = item.buffer
            if first_of(sequence.body[place + 1 :], variable) is FirstAccess.READ:
                zero = const(0, variable.dtype)
                body.append(Store(variable, (const(0),), zero, span=item.span))
    return sequence if len(body) == len(sequence.body) else Seq(tuple(body), span=sequence.span)
