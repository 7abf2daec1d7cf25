"""Which names a block of statements binds."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_KNOWN = "_bound_names"


def assigned_names(body: Iterable[ast.AST]) -> set[str]:
    """Return the names bound in `body`, not counting those of nested functions."""
    return set().union(*map(_bound, body))


def _bound(node: ast.AST) -> frozenset[str]:
    """Return the names that a statement or a target binds.

    The statement remembers them, for blocks are asked about again by those around them.
    """
    known: frozenset[str] | None = getattr(node, _KNOWN, None)
    if known is not None:
        return known
    found: set[str] = set()
    stack = [node]
    while stack:
        at = stack.pop()
        if isinstance(at, _SCOPES):
            continue
        if isinstance(at, ast.stmt) and at is not node:
            found |= _bound(at)
        elif isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(at.name)
        elif isinstance(at, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in at.names}
        elif isinstance(at, ast.Name):
            if not isinstance(at.ctx, ast.Load):
                found.add(at.id)
        elif not (isinstance(at, ast.AnnAssign) and at.value is None):  # which binds nothing
            for value in vars(at).values():
                several = value if isinstance(value, list) else (value,)
                stack += [child for child in several if isinstance(child, ast.AST)]
    known = frozenset(found)
    setattr(node, _KNOWN, known)
    return known


def target_names(target: ast.expr | None) -> tuple[str, ...]:
    """Return the names of an assignment target, left to right."""
    if target is None:
        return ()
    return tuple(node.id for node in _in_order(target) if isinstance(node, ast.Name))


def _in_order(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for element in target.elts for leaf in _in_order(element)]
    if isinstance(target, ast.Starred):
        return _in_order(target.value)
    return [target]
