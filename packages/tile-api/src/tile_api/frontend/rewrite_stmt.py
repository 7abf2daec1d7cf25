"""The statement half of the rewrite."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tile_api.frontend.names import assigned_names, target_names
from tile_api.frontend.rewrite_expr import (
    ExpressionRewriter,
    constant,
    load_name,
    located,
    state_call,
    thunk,
)
from tile_api.frontend.source import SpanTable
from tile_core.errors import FrontendError, Span

_AUGMENTED = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
_FLAG = "set an alloc_var before `break` and test it after the loop"
_REJECTED: dict[str, tuple[str, str]] = {
    "Try": ("`try` has no meaning in a kernel", "test conditions with `if`"),
    "TryStar": ("`try` has no meaning in a kernel", "test conditions with `if`"),
    "Match": ("`match` is not supported in a kernel", "write `if` and `elif`"),
    "Global": ("`global` is not possible in a kernel", "write to an output tensor"),
    "Nonlocal": ("`nonlocal` is not possible in a kernel", "use T.alloc_var, or a T.Ref parameter"),
    "AsyncFunctionDef": ("`async def` has no meaning in a kernel", "use T.macro"),
    "AsyncFor": ("`async for` has no meaning in a kernel", "use T.Pipelined"),
    "AsyncWith": ("`async with` has no meaning in a kernel", "use `with`"),
}


class StatementRewriter:
    """Turns statements into calls of the activation.

    The `kind` is that of `rewrite_function`; bare annotations in an eager body declare parameters.
    """

    def __init__(
        self,
        table: SpanTable,
        expressions: ExpressionRewriter,
        kind: str,
        parameters: frozenset[str],
    ) -> None:
        self.table = table
        self.expressions = expressions
        self.kind = kind
        self.parameters = parameters
        self.declared: list[str] = []
        self.problems: list[FrontendError] = []
        self._count = 0

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the tracing form of a block; what cannot be reached is left out."""
        result: list[ast.stmt] = []
        for position, statement in enumerate(body):
            result += self.statement(statement)
            if isinstance(statement, (ast.Break, ast.Continue)) and position + 1 < len(body):
                following = body[position + 1]
                keyword = "break" if isinstance(statement, ast.Break) else "continue"
                result += [
                    self._at(following),
                    self._do("unreachable", following, constant(keyword, following)),
                ]
                break
        return result or [located(ast.Pass(), body[0])]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Return the tracing form of one statement."""
        name = type(node).__name__
        if name in _REJECTED:
            self._reject(node, *_REJECTED[name])
            return []
        method: Any = getattr(self, f"_{name.lower()}", None)
        if method is None:
            return [node]
        result: list[ast.stmt] = method(node)
        return result

    def _reject(self, node: ast.stmt | ast.expr, message: str, hint: str) -> None:
        span = Span.of(node, file=self.table.file)
        self.problems.append(FrontendError(message, span=span, hint=hint))

    def _temporary(self) -> str:
        self._count += 1
        return f"__tile_{self._count}"

    def _at(self, node: ast.stmt, hint: str | None = None) -> ast.stmt:
        return self._do("at", node, constant(self.table.mark(node, hint), node))

    def _do(self, method: str, node: ast.AST, *args: ast.expr) -> ast.stmt:
        return located(ast.Expr(value=state_call(method, node, *args)), node)

    def _set(self, name: str, value: ast.expr, like: ast.AST) -> ast.stmt:
        target = located(ast.Name(id=name, ctx=ast.Store()), like)
        return located(ast.Assign(targets=[target], value=value), like)

    def _value(self, node: ast.expr) -> ast.expr:
        return self.expressions.rewrite(node)

    # Assignments ---------------------------------------------------------------------------

    def _assign(self, node: ast.Assign) -> list[ast.stmt]:
        first = node.targets[0]
        single = len(node.targets) == 1
        hint = _hint(first)
        if single and isinstance(first, ast.Name):
            value = self._value(node.value)
            return [self._at(node, hint), self._bind(first, value, node)]
        value = self._held(node.value, first if single else None)
        temporary = self._temporary()
        result = [self._at(node, hint), self._set(temporary, value, node)]
        for target in node.targets:
            result += self._store(target, load_name(temporary, node), node)
        return result

    def _held(self, node: ast.expr, target: ast.expr | None) -> ast.expr:
        """Return the right-hand side, with the elements of a display fixed one by one."""
        if isinstance(node, (ast.Tuple, ast.List)):
            same = isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(node.elts)
            inner = target.elts if same else [None] * len(node.elts)  # type: ignore[union-attr]
            elements = [
                self._value(e) if isinstance(e, ast.Starred) else self._item(e, t)
                for e, t in zip(node.elts, inner, strict=True)
            ]
            return located(type(node)(elts=elements, ctx=ast.Load()), node)
        return state_call("hold", node, self._value(node))

    def _item(self, node: ast.expr, target: ast.expr | None) -> ast.expr:
        if isinstance(node, (ast.Tuple, ast.List)):
            return self._held(node, target)
        name = target.id if isinstance(target, ast.Name) else None
        want = state_call("want", node, constant(name, node))
        return state_call("item", node, want, self._value(node), constant(name, node))

    def _bind(self, target: ast.Name, value: ast.expr, like: ast.AST) -> ast.stmt:
        old = load_name(target.id, target)
        bound = state_call("bind", like, constant(target.id, target), old, value)
        return self._set(target.id, bound, like)

    def _store(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        match target:
            case ast.Name():
                return [self._bind(target, value, node)]
            case ast.Tuple() | ast.List():
                return self._unpack(target, value, node)
            case ast.Subscript():
                number = self.expressions.mark(target)
                place = self._value(target.value), self.expressions.index(target.slice)
                return [self._do("put", node, number, *place, value)]
            case ast.Attribute() if self.kind == "inline":
                name = constant(target.attr, target)
                return [self._do("set_attribute", node, self._value(target.value), name, value)]
        self._reject(
            target,
            "an attribute cannot be assigned to in a kernel",
            "use a name, an alloc_var or a buffer element; stateful helper objects are made with "
            "@T.meta_class and T.inline",
        )
        return []

    def _unpack(
        self, target: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt
    ) -> list[ast.stmt]:
        temporaries = [self._temporary() for _ in target.elts]
        slots: list[ast.expr] = []
        for name, element in zip(temporaries, target.elts, strict=True):
            slot: ast.expr = located(ast.Name(id=name, ctx=ast.Store()), element)
            if isinstance(element, ast.Starred):
                slot = located(ast.Starred(value=slot, ctx=ast.Store()), element)
            slots.append(slot)
        unpacked = located(ast.Tuple(elts=slots, ctx=ast.Store()), target)
        source = state_call("unpackable", node, value)
        result: list[ast.stmt] = [located(ast.Assign(targets=[unpacked], value=source), node)]
        for name, element in zip(temporaries, target.elts, strict=True):
            inner = element.value if isinstance(element, ast.Starred) else element
            result += self._store(inner, load_name(name, element), node)
        return result

    def _augassign(self, node: ast.AugAssign) -> list[ast.stmt]:
        symbol = constant(_AUGMENTED[type(node.op)], node)
        target = node.target
        value = self._value(node.value)
        if isinstance(target, ast.Name):
            name = constant(target.id, target)
            old = load_name(target.id, target)
            result = state_call("aug", node, name, old, symbol, value)
            return [self._at(node, target.id), self._set(target.id, result, node)]
        if isinstance(target, ast.Subscript):
            number = self.expressions.mark(target)
            place = self._value(target.value), self.expressions.index(target.slice)
            return [self._at(node), self._do("aug_put", node, number, *place, symbol, value)]
        if self.kind == "inline":
            read = ast.Attribute(value=target.value, attr=target.attr, ctx=ast.Load())
            before = self._value(located(read, target))
            name = constant(target.attr, target)
            result = state_call("aug_value", node, before, symbol, value)
            owner = self._value(target.value)
            return [self._at(node), self._do("set_attribute", node, owner, name, result)]
        return self._store(target, value, node)

    def _annassign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        target = node.target
        if node.value is not None:
            plain = located(ast.Assign(targets=[target], value=node.value), node)
            return self._assign(plain)
        if isinstance(target, ast.Name) and target.id in self.parameters and self.kind == "eager":
            self.declared.append(target.id)
            spec = self._value(node.annotation)
            name = constant(target.id, target)
            old = load_name(target.id, target)
            declared = state_call("declare", node, name, old, thunk(spec))
            return [self._at(node, target.id), self._set(target.id, declared, node)]
        return []

    def _delete(self, node: ast.Delete) -> list[ast.stmt]:
        result: list[ast.stmt] = [self._at(node)]
        for target in node.targets:
            if isinstance(target, ast.Name):
                unbound = located(
                    ast.Attribute(load_name("__tile_s", node), "unbound", ast.Load()), node
                )
                result.append(self._set(target.id, unbound, node))
            else:
                self._reject(target, "only names can be deleted in a kernel", "leave it out")
        return result

    # Blocks --------------------------------------------------------------------------------

    def _leave(self, names: Sequence[str], node: ast.stmt) -> list[ast.stmt]:
        """Retire the names that the block just ended bound."""
        if not names:
            return []
        return [self._reassign(names, node, "left", self._pack(names, node))]

    def _pack(self, names: Sequence[str], node: ast.stmt) -> ast.expr:
        values: list[ast.expr] = [load_name(n, node) for n in names]
        return located(ast.Tuple(elts=values, ctx=ast.Load()), node)

    def _reassign(
        self, names: Sequence[str], node: ast.stmt, method: str, *args: ast.expr
    ) -> ast.stmt:
        texts: list[ast.expr] = [constant(n, node) for n in names]
        packed = located(ast.Tuple(elts=texts, ctx=ast.Load()), node)
        slots: list[ast.expr] = [located(ast.Name(id=n, ctx=ast.Store()), node) for n in names]
        target = located(ast.Tuple(elts=slots, ctx=ast.Store()), node)
        value = state_call(method, node, packed, *args)
        return located(ast.Assign(targets=[target], value=value), node)

    def _if(self, node: ast.If) -> list[ast.stmt]:
        names = sorted(assigned_names([*node.body, *node.orelse]))
        saved, side = self._temporary(), self._temporary()
        test = state_call("branch", node, self._value(node.test))
        chosen: list[ast.stmt] = [
            located(
                ast.If(
                    test=load_name(side, node),
                    body=self.block(node.body),
                    orelse=self.block(node.orelse) if node.orelse else [],
                ),
                node,
            )
        ]
        if names:
            before = load_name(saved, node)
            after = self._pack(names, node)
            chosen.append(self._reassign(names, node, "rejoin", before, after))
        prefix = [self._set(saved, self._pack(names, node), node)] if names else []
        loop = self._for_loop(ast.Name(id=side, ctx=ast.Store()), test, chosen, node)
        return [self._at(node), *prefix, loop, *self._leave(names, node)]

    def _for_loop(
        self, target: ast.expr, iterable: ast.expr, body: list[ast.stmt], node: ast.stmt
    ) -> ast.stmt:
        located(target, node)
        loop = ast.For(target=target, iter=iterable, body=body, orelse=[])
        return located(loop, node)

    def _for(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            self._reject(node.orelse[0], "`else` after a loop is not supported", _FLAG)
        if any(not isinstance(leaf, ast.Name) for leaf in _leaves(node.target)):
            self._reject(node.target, "a loop index must be a plain name", "write `for i in …`")
        iterable = node.iter
        value = (
            self.expressions.call(iterable, "loop_call")
            if isinstance(iterable, ast.Call)
            else self._value(iterable)
        )
        names = target_names(node.target)
        texts: list[ast.expr] = [constant(n, node) for n in names]
        packed = located(ast.Tuple(elts=texts, ctx=ast.Load()), node)
        loop = state_call("loop", node, value, packed)
        body = self.block(node.body)
        inside = sorted(assigned_names([node.target, *node.body]))
        return [
            self._at(node),
            self._for_loop(node.target, loop, body, node),
            *self._leave(inside, node),
        ]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        if node.orelse:
            self._reject(node.orelse[0], "`else` after a loop is not supported", _FLAG)
        test = state_call("while_", node, thunk(self._value(node.test)))
        body = self.block(node.body)
        unused = ast.Name(id=self._temporary(), ctx=ast.Store())
        names = sorted(assigned_names(node.body))
        return [self._at(node), self._for_loop(unused, test, body, node), *self._leave(names, node)]

    def _with(self, node: ast.With) -> list[ast.stmt]:
        item, *others = node.items
        targets = [i.optional_vars for i in node.items]
        names = target_names(item.optional_vars)
        texts: list[ast.expr] = [constant(n, node) for n in names]
        packed = located(ast.Tuple(elts=texts, ctx=ast.Load()), node)
        manager = state_call("with_", node, self._value(item.context_expr), packed)
        if others:
            inner = located(ast.With(items=others, body=node.body), node)
            body = self._with(inner)
        else:
            body = self.block(node.body)
        wrapped = ast.withitem(context_expr=manager, optional_vars=item.optional_vars)
        block = located(ast.With(items=[wrapped], body=body), node)
        bound = [t for t in targets if t is not None]
        inside = sorted(assigned_names([*bound, *node.body]))
        return [self._at(node), block, *self._leave(inside, node)]

    # The rest ------------------------------------------------------------------------------

    def _break(self, node: ast.Break) -> list[ast.stmt]:
        return [self._at(node), self._do("break_", node)]

    def _continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [self._at(node), self._do("continue_", node)]

    def _expr(self, node: ast.Expr) -> list[ast.stmt]:
        if isinstance(node.value, ast.Constant):
            return []
        return [self._at(node), self._do("expr", node, self._value(node.value))]

    def _assert(self, node: ast.Assert) -> list[ast.stmt]:
        message = constant(None, node) if node.msg is None else self._value(node.msg)
        test = self._value(node.test)
        return [self._at(node), self._do("assert_", node, test, thunk(message))]

    def _return(self, node: ast.Return) -> list[ast.stmt]:
        value = constant(None, node) if node.value is None else self._value(node.value)
        result = state_call("ret", node, value)
        return [self._at(node), located(ast.Return(value=result), node)]

    def _raise(self, node: ast.Raise) -> list[ast.stmt]:
        cause = None if node.cause is None else self._value(node.cause)
        error = None if node.exc is None else self._value(node.exc)
        return [self._at(node), located(ast.Raise(exc=error, cause=cause), node)]

    def _functiondef(self, node: ast.FunctionDef | ast.ClassDef) -> list[ast.stmt]:
        return [self._at(node, node.name), node, self._named([node.name], node)]

    _classdef = _functiondef

    def _import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        return [self._at(node), node, self._named(sorted(assigned_names([node])), node)]

    _importfrom = _import

    def _named(self, names: list[str], node: ast.stmt) -> ast.stmt:
        return self._do("named", node, *(constant(n, node) for n in names))


def _hint(target: ast.expr) -> str | None:
    """Return the name for what a value is assigned to."""
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else None


def _leaves(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for element in target.elts for leaf in _leaves(element)]
    return [target]
