"""The expression half of the rewrite."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from tile_api.frontend.source import SpanTable
from tile_core.errors import FrontendError, Span

STATE = "__tile_s"
E = TypeVar("E", bound=ast.AST)

_COMPARE = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_FRAME_BUILTINS = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})


def located(node: E, like: ast.AST) -> E:
    """Return `node`, which gets the place of `like`: an expression, a statement or a parameter."""
    new: Any = node
    old: Any = like
    new.lineno, new.col_offset = old.lineno, old.col_offset
    new.end_lineno, new.end_col_offset = old.end_lineno, old.end_col_offset
    return node


def load_name(name: str, like: ast.AST) -> ast.Name:
    """Return the expression `name`, located at `like`."""
    return located(ast.Name(id=name, ctx=ast.Load()), like)


def constant(value: object, like: ast.AST) -> ast.Constant:
    """Return the expression for a Python constant, located at `like`."""
    return located(ast.Constant(value=value), like)  # type: ignore[arg-type]


def state_call(method: str, like: ast.AST, *args: ast.expr) -> ast.Call:
    """Return the expression ``__tile_s.method(*args)``, located at `like`."""
    state = load_name(STATE, like)
    function = located(ast.Attribute(value=state, attr=method, ctx=ast.Load()), like)
    return located(ast.Call(func=function, args=list(args), keywords=[]), like)


def thunk(body: ast.expr) -> ast.Lambda:
    """Return ``lambda: body``."""
    none = ast.arguments(
        posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
    )
    return located(ast.Lambda(args=none, body=body), body)


class ExpressionRewriter(ast.NodeTransformer):
    """Routes names, subscripts, calls, logic and conditional expressions.

    Places of calls and subscripts are recorded in `table`; reads of local names are checked.
    """

    def __init__(self, table: SpanTable, locals_: frozenset[str]) -> None:
        self.table = table
        self.locals = locals_
        self.problems: list[FrontendError] = []

    def rewrite(self, node: ast.expr) -> ast.expr:
        """Return the tracing form of an expression."""
        result: ast.expr = self.visit(node)
        return result

    def reject(self, node: ast.expr | ast.stmt, message: str, hint: str) -> None:
        """Record a construct that has no meaning in a kernel."""
        span = Span.of(node, file=self.table.file)
        self.problems.append(FrontendError(message, span=span, hint=hint))

    def mark(self, node: ast.expr | ast.stmt, like: ast.AST | None = None) -> ast.Constant:
        """Return the number of a newly recorded place."""
        return constant(self.table.mark(node), like or node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Check reads of local names."""
        if isinstance(node.ctx, ast.Load) and node.id in self.locals:
            return state_call("rd", node, constant(node.id, node), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Leave plain Python, run while tracing, as it is."""
        return node  # plain Python, run while tracing

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Route reads of elements."""
        number = self.mark(node)
        target, index = self.rewrite(node.value), self.index(node.slice)
        return state_call("get", node, number, target, index)

    def index(self, node: ast.expr) -> ast.expr:
        """Return what stands in brackets, slices spelt out as calls."""
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            values = [constant(None, node) if p is None else self.rewrite(p) for p in parts]
            return state_call("slice", node, *values)
        if isinstance(node, ast.Tuple):
            elements = [
                located(ast.Starred(self.rewrite(e.value), ast.Load()), e)
                if isinstance(e, ast.Starred)
                else self.index(e)
                for e in node.elts
            ]
            return located(ast.Tuple(elts=elements, ctx=ast.Load()), node)
        return self.rewrite(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Route `and` and `or`; operands are evaluated when needed."""
        keyword = "and" if isinstance(node.op, ast.And) else "or"
        operands = [self._operand(v) for v in node.values]
        return state_call("logic", node, constant(keyword, node), *operands)

    def _operand(self, node: ast.expr) -> ast.Lambda:
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.reject(
                    inner,
                    "`:=` is not possible in an operand that may not be evaluated",
                    "assign to the name in a statement of its own",
                )
        return thunk(self.rewrite(node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Route `not`."""
        operand = self.rewrite(node.operand)
        if isinstance(node.op, ast.Not):
            return state_call("not_", node, operand)
        return located(ast.UnaryOp(op=node.op, operand=operand), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Route conditional expressions."""
        parts = (node.test, node.body, node.orelse)
        return state_call("ternary", node, *(self._operand(p) for p in parts))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Route chained comparisons, and those that Python would decide by itself."""
        if len(node.ops) == 1:
            self.generic_visit(node)
            if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                symbol = constant(_COMPARE[type(node.ops[0])], node)
                return state_call("equal", node, symbol, node.left, node.comparators[0])
            return node
        rest: list[ast.expr] = []
        for op, operand in zip(node.ops, node.comparators, strict=True):
            symbol = constant(_COMPARE[type(op)], operand)
            pair = ast.Tuple(elts=[symbol, self._operand(operand)], ctx=ast.Load())
            rest.append(located(pair, operand))
        return state_call("compare", node, self._operand(node.left), *rest)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Route calls; `breakpoint()` takes along what the user can see."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        is_bare = name == "breakpoint" and not node.args and not node.keywords
        if is_bare and name not in self.locals:
            names = sorted(self.locals)
            keys: list[ast.expr | None] = [constant(name, node) for name in names]
            values: list[ast.expr] = [load_name(name, node) for name in names]
            seen = located(ast.Dict(keys=keys, values=values), node)
            return state_call("stop_here", node, self.mark(node), seen)
        return self.call(node, "call")

    def call(self, node: ast.Call, method: str) -> ast.expr:
        """Return the call of `node` routed through `method` of the activation."""
        args = [self.rewrite(a) for a in node.args]
        keywords = [
            located(ast.keyword(arg=k.arg, value=self.rewrite(k.value)), k) for k in node.keywords
        ]
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_BUILTINS:
            plain = ast.Call(func=node.func, args=args, keywords=keywords)
            return located(plain, node)
        routed = state_call(method, node, self.mark(node), self.rewrite(node.func), *args)
        routed.keywords = keywords
        return routed

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """Route `:=`."""
        name = node.target.id
        old = load_name(name, node)
        value = state_call("bind", node, constant(name, node), old, self.rewrite(node.value))
        return located(ast.NamedExpr(target=node.target, value=value), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Check what a comprehension runs over."""
        iterable = state_call("iterate", node.iter, self.mark(node.iter), self.rewrite(node.iter))
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.reject(inner, "`:=` is not possible in a comprehension", "write a statement")
        tests = [self.rewrite(test) for test in node.ifs]
        return ast.comprehension(
            target=node.target, iter=iterable, ifs=tests, is_async=node.is_async
        )

    def visit_Await(self, node: ast.Await) -> ast.expr:
        """Refuse."""
        self.reject(node, "`await` has no meaning in a kernel", "remove it")
        return node

    def visit_Yield(self, node: ast.Yield) -> ast.expr:
        """Refuse."""
        self.reject(node, "`yield` has no meaning in a kernel", "write to an output tensor")
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        """Refuse."""
        self.reject(node, "`yield from` has no meaning in a kernel", "write to an output tensor")
        return node
