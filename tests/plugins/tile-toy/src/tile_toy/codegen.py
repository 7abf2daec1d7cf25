"""From tile IR without tile operators to Python: one template for each kind of statement."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent
from typing import Any

import numpy as np

from tile_core.dtypes import FORMATS, dtype_of
from tile_core.errors import DeviceAssertError, UnsupportedOnTarget
from tile_core.interp.values import convert
from tile_core.ir import expr as e
from tile_core.ir import stmt as s
from tile_core.ir.buffer import Buffer
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.names import Names
from tile_core.ir.node import Node, rewrite
from tile_core.ir.print_expr import print_expr

REFUSED = (e.AddressOf, e.Bitcast, e.Broadcast, e.Ramp, e.Shuffle, e.StringConst)
TEMPLATES: dict[type, str] = {
    s.Let: "{x.var} = {x.var.dtype}({x.value})",
    s.Alloc: "{x.buffer} = Box(np.empty(({x.buffer.shape},), {x.buffer.dtype}))",
    s.Store: "{x.buffer}[{x.indices}] = {x.value}",
    s.Evaluate: "{x.value}",
    s.For: "for {x.var} in map({x.var.dtype}, range({x.start}, {x.stop}, {x.step})):\n{x.body}",
    s.While: "while {x.cond}:\n{x.body}",
    s.If: "if {x.cond}:\n{x.then}\nelse:\n{x.otherwise}",
    s.Launch: "for {x.block_vars}, in np.ndindex({x.grid}):\n{x.body}",
    s.Check: "if not ({x.cond}):\n    raise Failed('''{x.message}''')",
    s.AnnotateSafeValue: "{x.buffer}.safe = {x.value}",
    s.Break: "break",
    s.Continue: "continue",
    s.AnnotateLayout: "pass",
    s.Hint: "pass",
}


class Text:
    """A node as templates see it: its attributes are nodes too, and its string is Python."""

    def __init__(self, node: Any, names: Names) -> None:
        self.node, self.names = node, names

    def __getattr__(self, name: str) -> Text:
        return Text(getattr(self.node, name), self.names)

    def __str__(self) -> str:
        match self.node:
            case tuple(parts):
                return ", ".join(str(Text(part, self.names)) for part in parts)
            case None | s.Seq(body=()):
                return "    pass"
            case s.Seq(body=body):
                return "\n".join(str(Text(part, self.names)) for part in body)
            case Buffer(origin=None) as buffer:
                return self.names.of(buffer)
            case e.Expr() as value:
                return print_expr(value, self.names)
            case node if type(node) in TEMPLATES:
                return indent(TEMPLATES[type(node)].format(x=self), "    ")
        return str(self.node)


def python(kernel: s.Kernel) -> str:
    """Return a module whose function ``main`` takes the kernel's parameters."""
    x = Text(rewrite(kernel, pythonic), Names())
    lines = [f"def main({x.params}):"]
    for p in (p for p in x.node.params if isinstance(p, Buffer)):
        lines.append(f"    {Text(p, x.names)} = Box({Text(p, x.names)})")
        sizes = [(axis, n) for axis, n in enumerate(p.shape) if isinstance(n, e.Var)]
        lines += [f"    {Text(n, x.names)} = {Text(p, x.names)}.shape[{k}]" for k, n in sizes]
    return "\n".join([*lines, str(x.body)]) + "\n"


def pythonic(x: Node) -> Node:
    """Return `x` in a form whose text is Python, or raise if there is none."""
    name = x.function if isinstance(x, e.Call) else x.dtype if isinstance(x, Buffer) else "np"
    view = getattr(x, "origin", None) is not None
    if name not in NAMESPACE or view or isinstance(x, REFUSED):
        what = getattr(x, "function", type(x).__name__)
        raise UnsupportedOnTarget(f"the toy has no such {what}", span=x.span)
    return replace(x, lazy=False) if isinstance(x, e.Select) else x


class Box:
    """An array that gives `safe` outside, and ignores what is written there."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.safe = np.asarray(array), array.shape, 0

    def __getitem__(self, index: Any) -> Any:
        return self.array[index] if self.has(index) else self.array.dtype.type(self.safe)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.has(index):
            self.array[index] = value

    def has(self, index: Any) -> bool:
        index = index if isinstance(index, tuple) else (index,)
        return all(0 <= i < n for i, n in zip(index, self.shape, strict=True))


def cast_to(name: str, value: Any) -> Any:
    lanes = np.asarray([value])
    return TYPES[name](convert(lanes, dtype_of(lanes.dtype.name), dtype_of(name))[0])


TYPES = {n: dtype_of(n).numpy().type for n, form in FORMATS.items() if form.bits >= 8}
NAMESPACE: dict[str, Any] = {
    **{name: getattr(np, name) for name in INTRINSICS if hasattr(np, name)},
    **TYPES,
    "cast": {kind: lambda value, name=name: cast_to(name, value) for name, kind in TYPES.items()},
    "select": lambda condition, then, otherwise: then if condition else otherwise,
    **{"min": np.fmin, "max": np.fmax, "truncmod": np.fmod, "inf": np.inf, "nan": np.nan},
    **{"truncdiv": lambda a, b: (a - np.fmod(a, b)) // b, "true": True},
    **{"false": False, "np": np, "Box": Box, "Failed": DeviceAssertError},
}
