"""Element-wise operators, as their classes ask for it: `ElementCases`."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from tile_core.interp.values import Array
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Kernel, Leaf
from tile_core.ops.operator import ElementCases, TileOperator
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical
from tile_core.testing.oracle import numbers, poison

SHAPE, TILE = (7, 13), (4, 13)
"""Of tensors, and of tiles, the second of which hangs over."""
SCOPES = {"global": None, "shared": ir.shared, "fragment": ir.fragment, "local": ir.local}


def cases(operators: Mapping[str, type[Leaf]]) -> Iterator[Case]:
    """Yield the cases of operators that say what they do to arrays."""
    for cls in operators.values():
        if issubclass(cls, TileOperator) and cls.cases is not None:
            for dtype in cls.cases.dtypes:
                for scope in SCOPES if dtype == cls.cases.dtypes[0] else ("fragment",):
                    yield _case(cls, cls.cases, dtype, scope)


def _case(cls: type[TileOperator], wanted: ElementCases, dtype: str, scope: str) -> Case:
    hints, values = typing.get_type_hints(cls), dict(wanted.values or {})
    names = tuple(f.name for f in fields(cls) if hints[f.name] is Region)
    whole = {name: ir.tensor(name, SHAPE, dtype) for name in names}
    tensors = {name: ir.operand(tensor) for name, tensor in whole.items()}
    op = _operator(cls, tensors, values, dtype)
    read, written = (
        [n for n, t in whole.items() if any(r.buffer is t for r in some)]
        for some in (op.reads(), op.writes())
    )

    def build() -> Kernel:
        def body(bx: Any) -> list[Any]:
            parts = {n: ir.region(t, (bx * TILE[0], 0), TILE) for n, t in whole.items()}
            make = SCOPES[scope]
            if make is None:
                return [_operator(cls, parts, values, dtype)]
            tiles = {name: make(f"{name}_tile", TILE, dtype) for name in names}
            operands = {name: ir.operand(tile) for name, tile in tiles.items()}
            return [
                *ir.alloc(*tiles.values()),
                *(ir.copy(parts[name], tile) for name, tile in tiles.items()),
                _operator(cls, operands, values, dtype),
                *(ir.copy(tiles[name], parts[name]) for name in written),
            ]

        blocks = -(-SHAPE[0] // TILE[0])
        return ir.kernel([*whole.values()], blocks, body, threads=32)

    def inputs(rng: np.random.Generator) -> list[Array]:
        return [
            poison(SHAPE, dtype) if scope == "global" and name not in read
            else numbers(rng, SHAPE, dtype)
            for name in names
        ]  # fmt: skip

    def expected(*arrays: Array) -> dict[int, Array]:
        known = {n: logical(a, dtype) for n, a in zip(names, arrays, strict=True)}
        found = wanted.reference(**known, **values)
        return {names.index(name): found[name] for name in written}

    name = f"operator/{cls.mnemonic}/{dtype}/{scope}-{label(SHAPE)}"
    return Case(name, build, inputs, expected, exact=wanted.exact)


def _operator(
    cls: type[TileOperator], regions: Mapping[str, Region], values: Mapping[str, Any], dtype: str
) -> TileOperator:
    """Return an operator on these regions; values that are expressions have their type."""
    hints = typing.get_type_hints(cls)
    given = {
        name: ir.value(value, dtype) if hints[name] is Expr else value
        for name, value in values.items()
    }
    made: TileOperator = cls(**{**regions, **given})  # type: ignore[arg-type]  # its own fields
    return made
