"""Sequences inside of sequences, for people who read a program."""

from __future__ import annotations

import operator

from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import Alloc, Kernel, Let, Seq, Stmt


def flatten_sequences(kernel: Kernel) -> Kernel:
    """Return `kernel` without sequences that only group statements.

    Before   block:  wait;  block:  gemm;  block:  arrive;  slot = slot + 1
    After    wait;  gemm;  arrive;  slot = slot + 1

    Passes put several statements into the place of one. A sequence in which names or buffers
    begin says where they end, and stays.
    """
    return rewrite(kernel, _opened, (Seq,))


def _opened(node: Node) -> Node:
    if not isinstance(node, Seq):
        return node
    body: list[Stmt] = []
    for item in node.body:
        groups = isinstance(item, Seq) and not any(isinstance(s, (Let, Alloc)) for s in item.body)
        body += item.body if isinstance(item, Seq) and groups else (item,)
    if len(body) == 1 and isinstance(body[0], Seq):
        return body[0]
    same = len(body) == len(node.body) and all(map(operator.is_, body, node.body))
    return node if same else Seq(tuple(body), span=node.span)
