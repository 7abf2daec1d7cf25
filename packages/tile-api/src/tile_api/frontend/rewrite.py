"""Rewrite a kernel's syntax tree into calls of an `Activation`, one per construct.

Before::

    x = A[i] + 1
    if x > 0:
        B[i] = x

After::

    __tile_s.at(0); x = __tile_s.bind("x", x, __tile_s.get(1, A, i) + 1)
    __tile_s.at(2)
    for __tile_0 in __tile_s.branch(__tile_s.rd("x", x) > 0):
        if __tile_0:
            __tile_s.at(3); __tile_s.put(4, B, i, __tile_s.rd("x", x))

Line numbers stay those of the user's file.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

from tile_api.frontend.names import assigned_names
from tile_api.frontend.rewrite_expr import STATE, ExpressionRewriter, constant, load_name, located
from tile_api.frontend.rewrite_stmt import StatementRewriter
from tile_api.frontend.source import FunctionSource, SpanTable
from tile_core.errors import FrontendError, Note
from tile_core.records import dataclass

ENTER = "__tile_enter__"
_INNER = "__tile_function__"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A function that traces when it is called."""

    table: SpanTable
    build: Callable[[Callable[[], Any]], types.FunctionType]  # of what makes activations
    declared: tuple[str, ...]  # parameters that a bare annotation in the body declares


def rewrite_function(
    source: FunctionSource, *, kind: str, references: Mapping[str, str]
) -> Rewritten:
    """Return the tracing form of a function.

    The `kind` is "prim_func", "eager", "macro" or "inline"; `references` tell how parameters of a
    macro are passed that are not passed by value. Of all constructs without a meaning in a kernel
    the first is raised, with the others as notes.
    """
    tree = source.tree
    table = SpanTable(source.file)
    parameters = _parameter_names(tree.args)
    locals_ = assigned_names(tree.body)
    expressions = ExpressionRewriter(table, frozenset(locals_) | set(parameters))
    statements = StatementRewriter(table, expressions, kind, frozenset(parameters))
    body = statements.block(tree.body)
    if statements.problems or expressions.problems:
        raise _first_problem([*expressions.problems, *statements.problems])
    prologue = _prologue(tree, parameters, locals_, kind, references)
    new = ast.FunctionDef(
        name=_INNER,
        args=_without_annotations(tree),
        body=[*prologue, *body],
        decorator_list=[],
        returns=None,
    )
    located(new, tree)
    if "type_params" in ast.FunctionDef._fields:
        new.type_params = []  # type: ignore[attr-defined]
    code = _compile(new, source)
    return Rewritten(table, _binder(source, code), tuple(statements.declared))


def _first_problem(problems: list[FrontendError]) -> FrontendError:
    problems.sort(key=lambda p: (p.span.line, p.span.col) if p.span else (0, 0))
    first, *others = problems
    first.notes += tuple(Note(f"also: {p.message}", p.span) for p in others)
    return first


def _parameter_names(args: ast.arguments) -> list[str]:
    return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _all_names(args: ast.arguments) -> set[str]:
    rest = {a.arg for a in (args.vararg, args.kwarg) if a is not None}
    return rest | set(_parameter_names(args))


def _without_annotations(tree: ast.FunctionDef) -> ast.arguments:
    """Keep names and order only; defaults are copied from the original function object."""
    args = tree.args

    def bare(arg: ast.arg) -> ast.arg:
        return located(ast.arg(arg=arg.arg, annotation=None), arg)

    none = constant(None, tree)
    return ast.arguments(
        posonlyargs=[bare(a) for a in args.posonlyargs],
        args=[bare(a) for a in args.args],
        vararg=None if args.vararg is None else bare(args.vararg),
        kwonlyargs=[bare(a) for a in args.kwonlyargs],
        kw_defaults=[None if d is None else none for d in args.kw_defaults],
        kwarg=None if args.kwarg is None else bare(args.kwarg),
        defaults=[none for _ in args.defaults],
    )


def _prologue(
    tree: ast.FunctionDef,
    parameters: list[str],
    locals_: set[str],
    kind: str,
    references: Mapping[str, str],
) -> list[ast.stmt]:
    lines = [f"{STATE} = {ENTER}()"]
    fresh = sorted(locals_ - _all_names(tree.args))
    lines += [f"{' = '.join(fresh)} = {STATE}.unbound"] if fresh else []
    if kind in ("macro", "inline"):
        receiver = parameters[:1] if parameters[:1] in (["self"], ["cls"]) else []
        lines += [
            f"{p} = {STATE}.param({p!r}, {p}, {references.get(p, 'value')!r})"
            for p in parameters
            if p not in receiver
        ]
    statements = ast.parse("\n".join(lines)).body
    for statement in statements:
        for node in ast.walk(statement):
            ast.copy_location(node, tree)
    return statements


def _compile(tree: ast.FunctionDef, source: FunctionSource) -> types.CodeType:
    """Compile `tree` so that its free variables are those of the original function."""
    free = (*source.function.__code__.co_freevars, ENTER)
    factory = ast.parse(f"def __factory__({', '.join(dict.fromkeys(free))}): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    for node in ast.walk(factory):
        ast.copy_location(node, tree)
    used = load_name(_INNER, tree)
    factory.body = [tree, located(ast.Return(value=used), tree)]
    module = ast.Module(body=[factory], type_ignores=[])
    code = compile(module, source.file, "exec", dont_inherit=True)
    outer = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    inner = next(
        c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == _INNER
    )
    return inner.replace(co_name=source.function.__name__)


def _binder(
    source: FunctionSource, code: types.CodeType
) -> Callable[[Callable[[], Any]], types.FunctionType]:
    original = source.function
    cells = dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))

    def build(enter: Callable[[], Any]) -> types.FunctionType:
        entering = types.CellType(enter)
        closure = tuple(entering if n == ENTER else cells[n] for n in code.co_freevars)
        function = types.FunctionType(
            code, original.__globals__, original.__name__, original.__defaults__, closure
        )
        function.__kwdefaults__ = original.__kwdefaults__
        return function

    return build
