"""What a host must know of a kernel, as `tile_launch` launches it without this package.

Variables and tensors go by names, each its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.effects import storages_read, storages_written
from tile_core.ir.expr import Binary, Cast, Const, Expr, Extent, Select, Unary, UnaryOp, Var
from tile_core.ir.free_variables import is_host_evaluable
from tile_core.ir.names import Names
from tile_core.ir.node import Node
from tile_core.ir.print_expr import print_expr
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Check, Kernel, Launch, Seq
from tile_launch.contract import Contract
from tile_launch.expressions import Expression
from tile_launch.manifest import Condition, Parameter, Scalar, Tensor

_UNARY = {UnaryOp.NEG: "neg", UnaryOp.NOT: "not", UnaryOp.BITNOT: "~"}


class HostNames:
    """Gives every variable and every tensor a name of its own, close to what it is called."""

    def __init__(self) -> None:
        self._names: dict[Buffer | Var, str] = {}
        self._taken: set[str] = set()

    def of(self, named: Buffer | Var) -> str:
        """Return the name, the same at every call."""
        found = self._names.get(named)
        if found is None:
            found, count = named.name, 1
            while found in self._taken:
                count += 1
                found = f"{named.name}_{count}"
            self._names[named] = found
            self._taken.add(found)
        return found


def host_expression(extent: Extent, names: HostNames) -> Expression:
    """Return an expression as hosts compute it.

    Before   (m + 127) // 128
    After    ("//", ("+", "m", 127), 128)

    Raises `InternalError` if it reads memory or calls a function: hosts compute nothing of the
    kind.
    """
    match extent:
        case int():
            return extent
        case Const(value=value):
            return value
        case Var():
            return names.of(extent)
        case Binary(op=op, a=a, b=b):
            return (op.value, host_expression(a, names), host_expression(b, names))
        case Unary(op=unary, a=a):
            return (_UNARY[unary], host_expression(a, names))
        case Select(cond=cond, then=then, otherwise=otherwise):
            return ("select", *host_expressions((cond, then, otherwise), names))
        case Cast(value=value, dtype=dtype) if dtype.is_int or dtype.is_float:
            return ("int" if dtype.is_int else "float", host_expression(value, names))
    raise InternalError(f"{type(extent).__name__} in what the host computes", span=extent.span)


def host_expressions(extents: Iterable[Extent], names: HostNames) -> tuple[Expression, ...]:
    """Return several expressions as hosts compute them."""
    return tuple(host_expression(extent, names) for extent in extents)


def host_parameters(
    params: Sequence[Buffer | Var],
    names: HostNames,
    alignments: Mapping[Buffer, int] | None = None,
    signature: Kernel | None = None,
) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel.

    `alignments` are bytes that addresses of tensors are multiples of, beyond what their elements
    ask for. The body of `signature`, the kernel that people call, tells which tensors are used and
    written; None where somebody else checks arguments.
    """
    uses = [(True, True)] * len(params) if signature is None else _uses(signature)
    return tuple(
        Scalar(name=names.of(param), dtype=str(param.dtype))
        if isinstance(param, Var)
        else tensor_of(param, names, (alignments or {}).get(param, 1), *use)
        for param, use in zip(params, uses, strict=True)
    )


def _uses(kernel: Kernel) -> list[tuple[bool, bool]]:
    """Return, for each parameter, whether the kernel uses it, and whether it may write it."""
    written = storages_written(kernel.body)
    used = written | storages_read(kernel.body)
    return [(param in used, param in written) for param in kernel.params]


def tensor_of(
    param: Buffer,
    names: HostNames,
    alignment: int = 1,
    is_used: bool = True,
    is_written: bool = True,
) -> Tensor:
    """Return a tensor parameter."""
    return Tensor(
        name=names.of(param),
        dtype=str(param.dtype),
        shape=host_expressions(param.shape, names),
        strides=None if param.strides is None else host_expressions(param.strides, names),
        alignment=alignment,
        is_used=is_used,
        is_written=is_written,
    )


def host_symbols(kernel: Kernel, names: HostNames) -> dict[str, str]:
    """Return the type of each variable in the shapes and strides of parameters."""
    return {names.of(symbol): str(symbol.dtype) for symbol in symbols_of(kernel)}


def conditions_of(kernel: Kernel, names: HostNames) -> list[tuple[Condition, Node]]:
    """Return what the host checks before anything runs, and the statement or variable it is of."""
    known = dict.fromkeys((*symbols_of(kernel), *(p for p in kernel.params if isinstance(p, Var))))
    found: list[tuple[Condition, Node]] = []

    def add(condition: Expr, kind: str, message: str, source: Node) -> None:
        if is_host_evaluable(condition, known):
            value = host_expression(condition, names)
            found.append((Condition(value=value, kind=kind, message=message), source))

    for var in known:
        if var.contract is not None:
            name = names.of(var)
            value, told = _promise(var.contract, name), var.contract.told(name)
            found.append((Condition(value=value, kind="contract", message=told), var))
    for stmt in host_conditions(kernel):
        if isinstance(stmt, Launch):
            for axis, extent in zip("xyz", stmt.grid, strict=False):
                if (static_value(extent) or 0) <= 0:
                    text = f"the grid's {axis} extent {print_expr(as_expr(extent), Names())}"
                    add(as_expr(extent), "grid", text, stmt)
        else:
            add(stmt.cond, stmt.kind.value, stmt.message or print_expr(stmt.cond, Names()), stmt)
    return found


def _promise(contract: Contract, name: str) -> Expression:
    """Return a contract as the expression that its variable makes true.

    Before   1 <= m, m % 128 == 0
    After    ("and", (">=", "m", 1), ("==", ("%", "m", 128), 0))
    """
    parts: list[Expression] = [(">=", name, contract.low)]
    if contract.high is not None:
        parts.append(("<=", name, contract.high))
    if contract.multiple_of > 1:
        parts.append(("==", ("%", name, contract.multiple_of), 0))
    return reduce(lambda a, b: ("and", a, b), parts)


def host_conditions(kernel: Kernel) -> list[Check | Launch]:
    """Return the launches, and the checks that every run reaches unconditionally."""
    found: list[Check | Launch] = []

    def visit(stmt: Node) -> None:
        if isinstance(stmt, Seq):
            for item in stmt.body:
                visit(item)
        elif isinstance(stmt, Launch):
            found.append(stmt)
            visit(stmt.body)
        elif isinstance(stmt, Check) and isinstance(stmt.cond, Expr):
            found.append(stmt)

    visit(kernel.body)
    return found
