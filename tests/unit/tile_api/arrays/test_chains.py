"""Random chains of reductions that depend on each other, streamed in blocks that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

ROWS, LENGTH = 20, 150
KEPT = "(axis=-1, keepdims=True)"
FOLDS = (*("{}." + name + KEPT for name in ("max", "min", "sum", "mean", "var")),
         "np.logaddexp.reduce({}, axis=-1, keepdims=True)")  # fmt: skip
STEPS = ("{t} - {r}", "({t}) * {r}", "np.exp(-np.abs({t} - {r}))", "({t}) / (1 + np.abs({r}))",
         "np.tanh({t} + {r})", "({t} - {r}) ** 2", "np.where({t} >= {r}, {t}, 0.0)",
         "np.maximum({t}, {r})", "np.exp({t} - ({t}).max(axis=-1, keepdims=True))")  # fmt: skip


def chain(seed: int) -> str:
    """Return the text of a function of two tables and a row."""
    random = np.random.default_rng(seed)
    tables, rows, lines = ["x", "y", "(x * w)", "(y + w)"], [], ["def chain(x, y, w):"]

    def chosen(items: Any) -> str:
        return str(items[random.integers(len(items))])

    for count in range(int(random.integers(2, 6))):
        if not rows or random.random() < 0.55:
            lines.append(f"    r{count} = {chosen(FOLDS).format(chosen(tables))}")
            rows.append(f"r{count}")
        else:
            step = chosen(STEPS).format(t=chosen(tables), r=chosen(rows))
            lines.append(f"    t{count} = {step}")
            tables.append(f"t{count}")
    last = f"({tables[-1]}).sum(axis=-1, keepdims=True)"
    return "\n".join([*lines, f"    return {chosen(rows)}, {chosen(tables)} + {last}"])


# 1014 reads a sum through another table, 1092 and 1122 a logarithm of a sum that is 0 at first.
@pytest.mark.in_turn(12)
@pytest.mark.parametrize("seed", [*range(24), 1014, 1092, 1122])
def test_streamed_chains_agree(seed: int) -> None:
    check(seed, Blocks(rows=8, stream=32, resident=0))


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("seed", [*range(24, 32), 1092])
def test_chains_in_parts_agree(seed: int) -> None:
    check(seed, Blocks(stream=32, parts=2))


def check(seed: int, blocks: Blocks) -> None:
    """Compare kernels with NumPy in 64 bits, and allow for what NumPy loses in 32."""
    text = chain(seed)
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    random = np.random.default_rng(seed)
    arguments = {
        "x": random.standard_normal((ROWS, LENGTH)).astype("float32"),
        "y": (3 * random.standard_normal((ROWS, LENGTH))).astype("float32"),
        "w": random.standard_normal(LENGTH).astype("float32"),
    }
    wanted = names["chain"](**{n: x.astype("float64") for n, x in arguments.items()})
    single = names["chain"](**arguments)
    found = Function(names["chain"], target="cpu", blocks=blocks)(**arguments)
    for got, exact, plain in zip(found, wanted, single, strict=True):
        if not np.abs(exact).max() < 1e6:
            continue
        allowed = 1e-5 * (1 + np.abs(exact)) + 4 * np.abs(plain - exact).max()
        assert (np.abs(got - exact) <= allowed).all(), text
