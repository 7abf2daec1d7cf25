"""Which names a block of statements binds."""

from __future__ import annotations

import ast
from collections.abc import Sequence

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned_names(body: Sequence[ast.AST]) -> set[str]:
    """Return the names bound in `body`, not counting those of nested functions."""
    found: set[str] = set()
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.AnnAssign) and node.value is None:
            continue  # a bare annotation binds nothing
        stack.extend(ast.iter_child_nodes(node))
    return found


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
