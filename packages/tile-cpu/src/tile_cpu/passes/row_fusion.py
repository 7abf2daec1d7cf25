"""Passes over one row made fewer: sources read in place, passes joined, dead tiles dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_core.arith.affine import linear_in
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Cast, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import Let, Stmt, Store
from tile_cpu.passes.buffer_uses import KernelUses
from tile_cpu.passes.row_dependence import covers_row, is_row, same_place
from tile_cpu.passes.row_passes import Indices, RowPass, Total


def read_sources_in_place(passes: Sequence[RowPass], row: Var, facts: KernelUses) -> list[RowPass]:
    """Return `passes` that read global tensors instead of copies of their rows.

    Before   x[i, j] = X[m + i, j];  t[i] = max over j of x[i, j]
    After    x[i, j] = X[m + i, j];  t[i] = max over j of X[m + i, j]

    The tensor is not written by the kernel, and elements of a row lie side by side. A copy
    that nobody reads any more is left to `drop_dead_stores`.
    """
    result: list[RowPass] = []
    copied: dict[Buffer, tuple[Expr, Var]] = {}
    for one in passes:
        changed = _with_old_values(one, {n: _source(n, copied, row) for n in one.loads()})
        for storage in one.written():
            copied.pop(storage, None)
        stores = list(changed.stores())
        if len(stores) == 1 and changed.column is not None:
            store = stores[0]
            if covers_row(store.buffer, store.indices, changed, row) and _is_source(
                store.value, changed, facts
            ):
                copied[store.buffer] = (store.value, changed.column)
        result.append(changed)
    return result


def _source(load: Load, copied: dict[Buffer, tuple[Expr, Var]], row: Var) -> Expr:
    """Return what the element that `load` reads was copied from, if it was."""
    if load.buffer not in copied:
        return load
    if len(load.indices) == 2 and not is_row(load.buffer, load.indices[0], row):
        return load
    value, column = copied[load.buffer]
    return substitute(value, {column: load.indices[-1]})


def _is_source(value: Expr, one: RowPass, facts: KernelUses) -> bool:
    inner = value.value if isinstance(value, Cast) else value
    if not isinstance(inner, Load) or not inner.buffer.scope.is_global or one.column is None:
        return False
    if not facts.is_read_only(inner.buffer.storage) or inner.buffer.dtype.packing > 1:
        return False
    if any(isinstance(n, Load) or n in one.bound() - {one.column}
           for i in inner.indices for n in walk(i)):  # fmt: skip
        return False
    moves = [linear_in(i, one.column) for i in inner.indices]
    steps = [None if m is None else m[0] for m in moves]
    return steps[-1] == 1 and not any(steps[:-1]) and None not in steps


def join_passes(passes: Sequence[RowPass], row: Var) -> list[RowPass]:
    """Return `passes` with each joined to an earlier one that touches the same elements.

    Before   s[i, j] = f(x[i, j]);  t[i] = sum over j of s[i, j]
    After    v = f(x[i, j]);  s[i, j] = v;  t[i] = sum over j of v
    """
    result: list[RowPass] = []
    for one in passes:
        for position in range(len(result) - 1, -1, -1):
            joined = _joined(result[position], one)
            if joined is not None:
                result[position] = joined
                break
            if not _are_independent(result[position], one):
                result.append(one)
                break
        else:
            result.append(one)
    return result


def _are_independent(first: RowPass, second: RowPass) -> bool:
    return not (
        first.written() & (second.read() | second.written()) or first.read() & second.written()
    )


def _joined(first: RowPass, second: RowPass) -> RowPass | None:
    """Return both in one pass over the columns, None if that is wrong or no use."""
    if first.column is None or second.column is None or first.columns != second.columns:
        return None
    if first.column.dtype != second.column.dtype:
        return None
    shared = (first.read() | first.written()) & (second.read() | second.written())
    results = {total.dst.storage for total in first.totals}
    late = {total.dst.storage for total in second.totals}
    stored = {store.buffer.storage for store in first.stores()}
    if not shared or results & (second.read() | second.written()) or late & stored:
        return None
    if not _stores_one_place_each(first):
        return None
    second = _rewritten(second, {second.column: first.column})
    named, values = _with_named_values(first)
    replacements: dict[Node, Node] = {}
    for node in second.loads():
        if node.buffer.storage in first.written():
            value = next((v for s, v in values if s.buffer is node.buffer
                          and same_place(s.indices, node.indices)), None)  # fmt: skip
            if value is None:
                return None
            replacements[node] = value
    touched = list(first.touched())
    for store in second.stores():
        for buffer, indices in touched:
            if buffer.storage is store.buffer.storage and not (
                buffer is store.buffer and same_place(indices, store.indices)
            ):
                return None
    second = _with_old_values(second, replacements)
    overwritten = {store.buffer.storage for store in second.stores()}
    kept, totals = _with_named_totals(first.totals, overwritten)
    body = (*named, *kept, *second.body)
    return RowPass(first.column, first.columns, body, (*totals, *second.totals))


def _with_named_totals(
    totals: Sequence[Total], overwritten: set[Buffer]
) -> tuple[list[Let], list[Total]]:
    """Return names for the values that are combined of what is `overwritten` before the end."""
    names: list[Let] = []
    result: list[Total] = []
    for total in totals:
        if any(n.buffer.storage in overwritten for n in nodes_of(total.value, Load)):
            name = Var(f"{total.dst.name}_value", total.value.dtype)
            names.append(Let(name, total.value))
            total = replace(total, value=name)
        result.append(total)
    return names, result


def _stores_one_place_each(one: RowPass) -> bool:
    """Whether no buffer is written at two places, which might be the same one at times."""
    places: dict[Buffer, Indices] = {}
    return all(
        same_place(places.setdefault(store.buffer, store.indices), store.indices)
        for store in one.stores()
    )


def _with_named_values(one: RowPass) -> tuple[list[Let | Store], list[tuple[Store, Var]]]:
    """Return the body with a name for each value stored, and the last such name per place."""
    body: list[Let | Store] = []
    values: list[tuple[Store, Var]] = []
    for stmt in one.body:
        if isinstance(stmt, Store):
            if isinstance(stmt.value, Var):
                values.insert(0, (stmt, stmt.value))
            else:
                name = Var(f"{stmt.buffer.name}_value", stmt.value.dtype)
                body.append(Let(name, stmt.value, span=stmt.span))
                stmt = replace(stmt, value=name)
                values.insert(0, (stmt, name))
        body.append(stmt)
    return body, values


def drop_dead_stores(
    passes: Sequence[RowPass], row: Var, private: set[Buffer]
) -> tuple[list[RowPass], set[Buffer]]:
    """Return `passes` without stores nobody reads, and the buffers that are dead at the end.

    Nothing but `passes` touches the `private` buffers.
    """
    dead = {b for b in private if _starts_covered(passes, b, row)}
    live: dict[Buffer, bool] = {}
    result: list[RowPass] = []
    for one in reversed(passes):
        totals = tuple(t for t in one.totals if live.get(t.dst, t.dst not in dead))
        for total in totals:
            live[total.dst] = not (total.clear and covers_row(
                total.dst, total.indices, replace(one, column=None, columns=1), row
            ))  # fmt: skip
        kept = _live_body(replace(one, totals=totals), live, dead, row)
        if kept.body or kept.totals:
            result.append(kept)
    return result[::-1], dead


def _live_body(one: RowPass, live: dict[Buffer, bool], dead: set[Buffer], row: Var) -> RowPass:
    """Return `one` with live statements only; `live` changes to what holds before it."""
    body: list[Let | Store] = []
    needed: set[Node] = set()

    def need(*exprs: Expr) -> None:
        for expr in exprs:
            for node in walk(expr):
                needed.add(node)
                if isinstance(node, Load):
                    live[node.buffer] = True

    for total in one.totals:
        need(total.value, *total.indices)
        if not total.clear:
            live[total.dst] = True
    for stmt in reversed(one.body):
        if isinstance(stmt, Let):
            if stmt.var not in needed:
                continue
            need(stmt.value)
        else:
            if not live.get(stmt.buffer, stmt.buffer not in dead):
                continue
            if covers_row(stmt.buffer, stmt.indices, one, row):
                live[stmt.buffer] = False
            need(stmt.value, *stmt.indices)
        body.append(stmt)
    return replace(one, body=tuple(reversed(body)))


def _starts_covered(passes: Sequence[RowPass], buffer: Buffer, row: Var) -> bool:
    """Whether each row of `buffer` is written completely before any of it is read."""
    for one in passes:
        if any(node.buffer is buffer for node in one.loads()):
            return False
        for stmt in one.stores():
            if stmt.buffer is buffer:
                return covers_row(buffer, stmt.indices, one, row)
        for total in one.totals:
            if total.dst is buffer:
                once = replace(one, column=None, columns=1)
                return total.clear and covers_row(buffer, total.indices, once, row)
    return False


def _rewritten(one: RowPass, replacements: Mapping[Any, Node]) -> RowPass:
    """Return `one` with nodes replaced in everything it evaluates, indices included."""
    table: dict[Node, Node] = {a: b for a, b in replacements.items() if a is not b}
    if not table:
        return one
    body = tuple(substitute(stmt, table) for stmt in one.body)
    column = one.column if one.column is None else substitute(one.column, table)
    totals = tuple(replace(t, value=substitute(t.value, table)) for t in one.totals)
    return RowPass(column, one.columns, body, totals)


def _with_old_values(one: RowPass, values: Mapping[Any, Node]) -> RowPass:
    """Return `one` with loads replaced by what their elements held when the pass began.

    A load that follows a store to its buffer stays: it reads what was stored.
    """
    stored: set[Buffer] = set()

    def replaced(node: Stmt | Expr) -> Any:
        loads = [n for n in nodes_of(node, Load) if n.buffer.storage not in stored]
        table: dict[Node, Node] = {n: values[n] for n in loads if values.get(n, n) is not n}
        return substitute(node, table) if table else node

    body: list[Let | Store] = []
    for stmt in one.body:
        body.append(replaced(stmt))
        if isinstance(stmt, Store):
            stored.add(stmt.buffer.storage)
    totals = tuple(replace(total, value=replaced(total.value)) for total in one.totals)
    return RowPass(one.column, one.columns, tuple(body), totals)
