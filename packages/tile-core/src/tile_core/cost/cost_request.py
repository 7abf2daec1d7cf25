"""What a backend is asked when the time of a kernel is to be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tile_core.cost.iteration_spaces import Space
from tile_core.cost.kernel_work import Work, count_launch
from tile_core.errors import FrontendValueError
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel, Launch, Let, Seq, Stmt
from tile_core.ir.visitor import statements_in
from tile_core.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuestion:
    """A kernel, a machine, and the sizes of tensors.

    Parameters
    ----------
    kernel
        As traced.
    planned
        After the passes on tile IR of its target: what `Backend.lower` receives.
    options
        `tile_core.compilation.options.BuildOptions`, with the rules of the target.
    sizes
        The value of every symbol of a shape.
    machine
        The name of a table of speeds, such as ``"h200"``; empty for the one that the target
        suggests.
    """

    kernel: Kernel
    planned: Kernel
    target: Target
    options: Any
    sizes: Mapping[Var, int]
    machine: str = ""

    def work(self) -> list[Work]:
        """Return what each launch of the kernel, as it was written, computes and moves."""
        return [count_launch(launch, space) for launch, space in launches(self.kernel, self.sizes)]


def launches(kernel: Kernel, sizes: Mapping[Var, int]) -> Iterator[tuple[Launch, Space]]:
    """Yield each launch of a kernel with the space that knows the names the host gave."""
    found: list[tuple[Launch, Space]] = []

    def visit(stmt: Stmt, space: Space) -> Space:
        match stmt:
            case Seq(body=body):
                for item in body:
                    space = visit(item, space)
            case Let(var=var, value=value):
                return space.named(var, value)
            case Launch():
                found.append((stmt, space))
            case _:
                for inner in statements_in(stmt):
                    visit(inner, space)
        return space

    visit(kernel.body, Space(sizes))
    yield from found


def bind_sizes(kernel: Kernel, sizes: Mapping[str, int]) -> dict[Var, int]:
    """Return the value of each symbol of the shapes of `kernel`, and of scalars that are named."""
    symbols: dict[str, Var] = {}
    needed: set[str] = set()
    for param in kernel.params:
        if isinstance(param, Var):
            symbols[param.name] = param
            continue
        for extent in param.shape:
            for node in walk(extent) if isinstance(extent, Expr) else ():
                if isinstance(node, Var):
                    symbols[node.name] = node
                    needed.add(node.name)
        for stride in param.strides or ():
            for node in walk(stride) if isinstance(stride, Expr) else ():
                if isinstance(node, Var):
                    symbols.setdefault(node.name, node)
    _require(kernel, symbols, needed, sizes)
    return {symbols[name]: value for name, value in sizes.items()}


def _require(
    kernel: Kernel, symbols: Mapping[str, Var], needed: set[str], sizes: Mapping[str, int]
) -> None:
    missing = sorted(needed - sizes.keys())
    if missing:
        raise FrontendValueError(
            f"the cost of {kernel.name} depends on {', '.join(missing)}",
            hint=f"give values: estimate(kernel, {', '.join(f'{n}=1024' for n in missing)})",
        )
    for name, value in sizes.items():
        if name not in symbols:
            raise FrontendValueError(
                f"{kernel.name} has no size called {name!r}",
                hint=f"its sizes are {', '.join(sorted(symbols)) or 'all fixed'}",
            )
        if type(value) is not int or value < 0:
            raise FrontendValueError(
                f"size {name} of {kernel.name} is {value!r}, not a number of elements",
                hint=f"write {name}=1024",
            )
