"""Smaller programs that fail in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from fuzz.meaning import Invalid
from fuzz.operations import COMPARISONS, LOGIC, const
from fuzz.program import (
    STATEMENTS,
    Expr,
    If,
    Launch,
    Loop,
    Program,
    Tensor,
    Tile,
)
from fuzz.run import Finding, run

SECONDS = 120.0
REFERENCE = "interpret"


def shrink(program: Program, finding: Finding, seconds: float = SECONDS) -> tuple[Program, Finding]:
    """Return a smaller program, and what is wrong with it: the same on the same target.

    Where the interpreter agrees with NumPy about `program`, it does about the smaller one: steps
    may lead to a program that means something else, as a start that is now negative for certain.
    """
    end = time.monotonic() + seconds
    targets = [finding.target]
    if finding.kind == "wrong" and not run(program, [REFERENCE], seconds=30.0).findings:
        targets.append(REFERENCE)

    def fails(candidate: Program) -> Finding | None:
        try:
            findings = run(candidate, targets, seconds=30.0).findings
        except (Invalid, KeyError, ValueError, IndexError):
            return None
        same = (finding.target, finding.kind, finding.what)
        alike = [f for f in findings if (f.target, f.kind, f.what) == same]
        return alike[0] if len(alike) == len(findings) == 1 else None

    improved = True
    while improved:
        improved = False
        for candidate in smaller(program):
            if time.monotonic() > end:
                return program, finding
            candidate = tidy(candidate)
            if found := fails(candidate):
                program, finding, improved = candidate, found, True
                break
    return program, finding


def smaller(program: Program) -> Iterator[Program]:
    """Yield programs with less in them, the greatest steps first."""
    if len(program.launches) > 1:
        for n in range(len(program.launches)):
            yield replace(program, launches=_without(program.launches, n))
    yield from _variants(program, _fewer_statements)
    yield from _variants(program, _simpler_expressions)
    if program.symbols:
        fixed = tuple(replace(t, symbols=(None,) * len(t.shape)) for t in program.tensors)
        yield replace(program, tensors=fixed)
    for n, launch in enumerate(program.launches):
        if launch.threads > 32 and not launch.threads_named:
            yield _with(program, n, replace(launch, threads=32))
        for k in range(len(launch.grid)):
            if launch.grid[k] != const(1):
                grid = (*launch.grid[:k], const(1), *launch.grid[k + 1 :])
                yield _with(program, n, replace(launch, grid=grid))
    yield from _variants(program, _shorter)


def _with(program: Program, n: int, launch: Launch) -> Program:
    return replace(program, launches=(*program.launches[:n], launch, *program.launches[n + 1 :]))


def _without(items: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    return (*items[:n], *items[n + 1 :])


def _variants(node: Any, change: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """Yield the node with one change somewhere below it."""
    if isinstance(node, tuple):
        yield from change(node)
        for n, item in enumerate(node):
            for new in _variants(item, change):
                yield (*node[:n], new, *node[n + 1 :])
    elif is_dataclass(node):
        yield from change(node)
        for f in fields(node):
            for new in _variants(getattr(node, f.name), change):
                yield replace(node, **{f.name: new})  # type: ignore[type-var]


def _fewer_statements(node: Any) -> Iterator[Any]:
    if not (isinstance(node, tuple) and node and isinstance(node[0], STATEMENTS)):
        return
    for n, s in enumerate(node):
        if len(node) > 1:
            yield _without(node, n)
        if isinstance(s, If):
            for body in filter(None, (s.then, s.otherwise)):
                yield (*node[:n], *body, *node[n + 1 :])
            if s.otherwise:
                yield (*node[:n], replace(s, otherwise=()), *node[n + 1 :])
        if isinstance(s, Loop):
            yield (*node[:n], *s.body, *node[n + 1 :])
            if s.kind != "serial":
                yield (*node[:n], replace(s, kind="serial", stages=0), *node[n + 1 :])
            if s.count != const(1):
                yield (*node[:n], replace(s, count=const(1)), *node[n + 1 :])


def _simpler_expressions(node: Any) -> Iterator[Any]:
    if not isinstance(node, Expr) or node.kind in ("const", "name"):
        return
    if node.dtype == "bool":
        if node.kind in LOGIC:
            yield from node.args
        return
    if node.kind not in COMPARISONS and node.kind != "load":
        for a in node.args:
            if a.dtype == node.dtype:
                yield a
    if node.low <= 1 <= node.high:
        yield const(1, node.dtype)


def _shorter(node: Any) -> Iterator[Any]:
    """Halve an extent of a parameter or of a tile, where nothing else depends on it."""
    if isinstance(node, Tensor):
        for n, extent in enumerate(node.shape):
            if extent > 2:
                for less in (extent // 2 // 2 * 2, extent - 1):
                    yield replace(node, shape=(*node.shape[:n], less, *node.shape[n + 1 :]))


def tidy(program: Program) -> Program:
    """Return the program without parameters and tiles that nothing uses."""
    used = set(_names(program.launches))
    launches = tuple(
        replace(one, tiles=tuple(t for t in one.tiles if t.name in used))
        for one in program.launches
    )
    shown = set(_names(launches))
    tensors = tuple(
        t for t in program.tensors
        if t.name in used or any(s in shown for s in t.symbols if s)
    )  # fmt: skip
    scalars = tuple(s for s in program.scalars if s.name in shown)
    return replace(program, launches=launches, tensors=tensors or program.tensors, scalars=scalars)


def _names(node: Any) -> Iterator[str]:
    """Yield the names that statements and expressions use."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from _names(item)
    elif isinstance(node, Tile):
        return
    elif is_dataclass(node):
        for f in fields(node):
            yield from _names(getattr(node, f.name))
