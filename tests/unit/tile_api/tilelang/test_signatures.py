"""Functions are called as in TileLang: parameters, their order, and defaults, name by name."""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import tile_api.language as T
import tile_api.tilelang as tilelang
from support.signatures import Wanted, differences, read_signatures
from tile_api.language.unavailable import Unavailable
from tile_api.tilelang.paths import MODULES
from tile_api.tilelang.unsupported import Unsupported

TABLE = Path(__file__).parents[3] / "data" / "tilelang_signatures.txt"
"""What TileLang 0.1.15 has of what there is here, too; TVM's functions as its wheel has them."""
ROWS = read_signatures(TABLE.read_text(encoding="utf-8"), MODULES)
SPACE = {
    "T": T,
    "_dtypes": T,
    "GemmWarpPolicy": T.GemmWarpPolicy,
    "TensorSupplyType": tilelang.TensorSupplyType,
    "tilelang": tilelang,
    "_FULL_WARP_MASK": 0xFFFFFFFF,
    "_DEFAULT_SHFL_WIDTH": 32,
}
OTHERWISE = {
    "compile": "func has no default, not None",  # there it is asked for, too
    "JITKernel.get_profiler": "tensor_supply_type is None by default, not TensorSupplyType.Auto",
    "assume": "cond has no default, not None",
    "tvm_thread_allreduce": "needs count",  # it takes any number there, of which four make sense
}
"""What is otherwise here, by the first difference, and means the same."""


def found(row: Wanted) -> Any:
    """Return what a row names: a method as its class has it, a constructor as the class."""
    thing: Any = importlib.import_module(f"tile_api.tilelang.{row.path}".rstrip("."))
    *owners, last = row.name.split(".")
    for owner in owners:
        thing = getattr(thing, owner)
    return thing if last == "__init__" else getattr(thing, last)


def as_called(row: Wanted, thing: Any) -> tuple[Wanted, Any]:
    """Return the row with the object as a parameter, where what was found takes it."""
    *owners, last = row.name.split(".")
    plain = owners and last != "__init__" and inspect.isfunction(thing)
    owner = found(Wanted(row.path, ".".join(owners), "")) if plain else None
    if not plain or isinstance(inspect.getattr_static(owner, last), staticmethod):
        return row, thing
    return Wanted(row.path, row.name, ", ".join(filter(None, ("self", row.parameters)))), thing


def rows_by_module() -> list[Any]:
    grouped: dict[str, list[Wanted]] = defaultdict(list)
    for row in ROWS:
        grouped[row.path].append(row)
    return [pytest.param(rows, id=path or "tilelang") for path, rows in sorted(grouped.items())]


@pytest.mark.parametrize("rows", rows_by_module())
def test_everything_is_called_as_in_tilelang(rows: list[Wanted]) -> None:
    wrong = []
    for row in rows:
        thing = found(row)
        assert not isinstance(thing, (Unsupported, Unavailable)), row
        if callable(thing):  # else a property, which stands for a method without arguments
            texts = differences(*as_called(row, thing), SPACE)
            if texts[:1] != [OTHERWISE.get(row.name)]:
                wrong += [f"{row.name}: {text}" for text in texts]
    assert wrong == []
