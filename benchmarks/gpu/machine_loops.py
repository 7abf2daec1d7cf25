"""Loops in SASS: what may follow each instruction, and the loop that has most of the products."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set

PRODUCTS = ("HGMMA", "QGMMA", "IGMMA", "HMMA", "QMMA", "IMMA")

Lines = list[tuple[int, str]]
Edges = Mapping[int, tuple[int, ...]]
"""From the address of an instruction to what may follow it."""

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);", re.MULTILINE)
_PREDICATE = re.compile(r"^@!?U?P\w+ ")


def instructions_of(code: str) -> Lines:
    """Return the instructions of SASS text with their addresses, predicates among them."""
    return [(int(m[1], 16), m[2].strip()) for m in _LINE.finditer(code)]


def loop_of_products(code: str) -> list[str]:
    """Return the instructions of a round, without their predicates; all of SASS text is read.

    Of kernels without products it is the longest loop; empty if there is none.
    """
    lines = instructions_of(code)
    texts = {at: _PREDICATE.sub("", text) for at, text in lines}

    def weight(loop: set[int]) -> tuple[int, int]:
        return sum(texts[at].startswith(PRODUCTS) for at in loop), len(loop)

    edges = ways(lines)
    found: set[int] = set()
    inside = max(_loops(edges), key=weight, default=set())
    while inside and (not found or weight(inside)[0]):
        found = inside
        inside = max(_loops(_without_turn(edges, found)), key=weight, default=set())
    return [texts[at] for at in sorted(found)]


def ways(lines: Sequence[tuple[int, str]]) -> Edges:
    """Return what each instruction may be followed by."""
    known = {at for at, _ in lines}
    found = {}
    for (at, text), behind in zip(lines, [*(a for a, _ in lines[1:]), None], strict=True):
        words = _PREDICATE.sub("", text)
        opcode = re.split(r"[\s.]", words)[0]
        target = re.search(r"0x([0-9a-f]+)", words) if opcode == "BRA" else None
        is_sure = text == words and not (target and "," in words.partition("0x")[0])
        goes_on = behind is not None and not (is_sure and opcode in ("BRA", "EXIT", "RET"))
        nexts = [behind] if goes_on and behind is not None else []
        if target and int(target[1], 16) in known:
            nexts.append(int(target[1], 16))
        found[at] = tuple(nexts)
    return found


def _without_turn(edges: Edges, loop: set[int]) -> Edges:
    """Return the inside of a loop, without the way back to where it is entered."""
    entries = {to for at, nexts in edges.items() if at not in loop for to in nexts} & loop
    entries = entries or {min(loop)}  # a program may begin with a loop
    return {at: tuple(n for n in edges[at] if n in loop and n not in entries) for at in loop}


def _loops(edges: Edges) -> Iterable[set[int]]:
    """Return the sets of instructions that reach each other.

    Kosaraju: an order of being finished, then the same walk against the arrows.
    """
    order: list[int] = []
    seen: set[int] = set()
    for start in edges:
        stack = [(start, iter(edges[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            at, nexts = stack[-1]
            step = next((n for n in nexts if n not in seen), None)
            if step is None:
                order.append(stack.pop()[0])
            else:
                seen.add(step)
                stack.append((step, iter(edges[step])))
    before: dict[int, list[int]] = {at: [] for at in edges}
    for at, nexts_of in edges.items():
        for to in nexts_of:
            before[to].append(at)
    left = set(edges)
    for start in reversed(order):
        group = reached(start, before, left)
        left -= group
        if len(group) > 1 or start in edges[start]:
            yield group


def reached(start: int, edges: Mapping[int, Sequence[int]], within: Set[int]) -> set[int]:
    """Return `start`, and what one comes to from it without leaving `within`."""
    if start not in within:
        return set()
    found, stack = {start}, [start]
    while stack:
        fresh = [to for to in edges[stack.pop()] if to in within and to not in found]
        found.update(fresh)
        stack += fresh
    return found
