"""Random functions of whole arrays: at most 12 lines over three dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

from fuzz.arrays import operations
from fuzz.arrays.fillings import FLOATS, INTEGERS, arguments
from fuzz.arrays.program import Argument, Program, Step, kind_of

MOST_STEPS = 12
REFUSALS = (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError)
"""What NumPy raises for lines that fit no arrays."""
MOST_ELEMENTS = 6_000
"""Of a value: programs are compiled often, and run once."""
DTYPES = {
    "float32": 60, "float64": 8, "float16": 6, "bfloat16": 4, "int32": 8, "int64": 4, "int8": 4,
    "uint8": 3, "int16": 2, "uint32": 2, "bool": 4,
}  # fmt: skip
SIZES = (1, 2, 3, 5, 8, 16, 17, 33, 40, 64, 70, 129)
SHAPES = (("n", "m"),) * 8 + (
    ("m",), ("n",), ("n", 1), ("m", "d"), ("n", "m", "d"), ("d", "m"), ("n", "d"), (), ("n", "n"),
    ("d", "n", "m"), (1, "m"), (1, 1), ("n", 1, "d"), (1, "n", "m"), ("n", "n", "m"),
)  # fmt: skip


def _drawn(rng: Random, table: dict[str, int]) -> str:
    return rng.choices([*table], [*table.values()])[0]


def generate(seed: int, number: int) -> Program:
    """Return program `number` of `seed`."""
    rng = Random(f"{seed}:{number}:arrays")
    small = rng.random() < 0.3
    sizes: dict[Any, int] = {1: 1}
    for name in "nmd":
        sizes[name] = rng.choice(SIZES[:6] if small else SIZES)
    if rng.random() < 0.05:
        sizes[rng.choice("nmd")] = 0
    taken = tuple(_argument(rng, sizes) for _ in range(rng.choice((1, 1, 2, 2, 2, 3))))
    if {"float16", "bfloat16"} <= {a.dtype for a in taken}:  # one kind of floats of 16 bits
        taken = tuple(replace(a, dtype=a.dtype.replace("bf", "f")) for a in taken)
    program = Program(rng.randrange(1 << 30), taken, (), ())
    values, steps = [*arguments(program)], list[Step]()
    families, wanted = FAMILIES, rng.randint(1, MOST_STEPS)
    if rng.random() < 0.4:
        families, wanted = ARRANGING, rng.randint(2, 3)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4 * wanted):
            if len(steps) == wanted:
                break
            for step in _lines(rng, values, families):
                made = _made(step, values)
                if made is None or len(steps) == wanted:
                    break
                steps.append(step)
                values.append(made)
    return Program(program.seed, taken, tuple(steps), _outputs(rng, taken, steps))


def _argument(rng: Random, sizes: dict[Any, int]) -> Argument:
    while True:
        shape = tuple(sizes[d] for d in rng.choice(SHAPES))
        if np.prod(shape) <= MOST_ELEMENTS:
            break
    dtype = _drawn(rng, DTYPES)
    return Argument(shape, dtype, _drawn(rng, FLOATS if "float" in dtype else INTEGERS))


def _outputs(rng: Random, taken: Sequence[Argument], steps: Sequence[Step]) -> tuple[int, ...]:
    """Return what nothing reads, and sometimes what something reads."""
    read = {k for step in steps for k in step.operands}
    made = [len(taken) + k for k in range(len(steps))]
    found = [k for k in made if k not in read] or [0]
    if rng.random() < 0.2 and made:
        found.append(rng.choice(made))
    return tuple(dict.fromkeys(found[-3:]))


def _made(step: Step, values: Sequence[Any]) -> Any:
    """Return the value of a step, or None if NumPy refuses it or it is too large."""
    names = [f"x{k}" for k in step.operands]
    known = {f"x{k}": values[k] for k in step.operands}
    try:
        made = np.asarray(eval(step.text.format(*names), {"np": np}, known))
    except REFUSALS:
        return None
    is_known = kind_of(made.dtype) in "fiub" and made.ndim <= 4
    is_half = any(x.dtype == ml_dtypes.bfloat16 for x in values)
    is_known &= not (is_half and step.text in operations.WIDENING)
    is_known &= not {"float16", "bfloat16"} <= {str(x.dtype) for x in (*values, made)}
    return made if is_known and made.size <= MOST_ELEMENTS else None


FAMILIES = {
    "alone": 22, "pair": 21, "fold": 21, "chain": 13, "view": 9, "matrix": 4, "product": 6,
    "gather": 5, "row": 6, "letters": 2, "constant": 7,
}  # fmt: skip
"""Of lines, with how often each is drawn."""
ARRANGING = {
    "view": 40, "row": 20, "fold": 14, "matrix": 6, "product": 8, "gather": 6, "letters": 3,
    "constant": 8, "pair": 8,
}  # fmt: skip
"""The same for short functions, of lines that change where elements stand: each after each."""


def _lines(rng: Random, values: Sequence[Any], families: dict[str, int]) -> list[Step]:
    """Return lines that fit the values, the later ones more often; none if the draw does not."""
    count = len(values)
    first = count - 1 if rng.random() < 0.5 else rng.randrange(count)
    second = rng.randrange(count) if rng.random() < 0.7 else count - 1
    x, y = values[first], values[second]
    one, other = kind_of(x.dtype), kind_of(y.dtype)
    family = _drawn(rng, families)
    match family:
        case "alone":
            own = {"f": operations.FLOAT, "b": operations.TRUTH}.get(one, operations.WHOLE)
            return [Step(rng.choice(own if rng.random() < 0.7 else operations.ANY), (first,))]
        case "pair":
            return [_pair(rng, one, other, (first, second))]
        case "fold" if x.ndim:
            return [_fold(rng, x, first)]
        case "chain" if one == "f" and x.ndim:
            chain, operands = rng.choice(operations.CHAINS), (first, count, count + 1)
            axis = _axis(rng, x.ndim)
            return [
                Step(_placed(rng, text, axis), operands[: k + 1], "sum" * ("keep" in text))
                for k, text in enumerate(chain)
            ]
        case "view" if x.ndim:
            text = rng.choice(operations.VIEWS)
            return [Step(text, (first,), _kind(text))]
        case "matrix" if x.ndim > 1:
            return [Step(rng.choice(operations.MATRICES), (first,))]
        case "product" if x.ndim and y.ndim:
            text = rng.choice(operations.PRODUCTS)
            if "einsum" in text and 1 in (*x.shape, *y.shape):
                return []  # NumPy multiplies by what is broadcast after it has summed
            # its library leaves out what is 0, even times infinity
            return [Step(text, (first, second), "sum")] * (_is_finite(x) and _is_finite(y))
        case "gather" if x.ndim and other in "iu" and x.shape[0]:
            if one != "b" and rng.random() < 0.4:
                return [Step(rng.choice(operations.SCATTERS), (first, second), "sum")]
            return [Step(rng.choice(operations.GATHERS), (first, second))]
        case "row" if x.ndim:
            text = rng.choice(operations.SORTS if rng.random() < 0.4 else operations.SCANS)
            return [Step(_placed(rng, text, _axis(rng, x.ndim)), (first,), _kind(text))]
        case "constant" if x.ndim:
            if rng.random() < 0.6:
                return [Step(rng.choice(operations.CONSTANTS), (first,))]
            text = rng.choice(operations.CONSTANT_SUMS)
            return [Step(text, (first,), _kind(text) or "sum")] * _is_finite(x)
        case "letters" if x.ndim == 2 and one == "f" and rng.random() < 0.2:
            return [Step(rng.choice(operations.COVARIANCES), (first,), "spread")] * _is_finite(x)
        case "letters" if x.ndim > 1:
            text = rng.choice((*operations.EINSUMS, *operations.SYSTEMS))
            is_plain = "einsum" not in text or not {0, 1} & {*x.shape}
            return [Step(text, (first,), "sum")] if is_plain else []
    return []


def _kind(text: str) -> str:
    """Return what rounds in a line along rows: see `Step`."""
    if "gradient" in text:
        return "difference"
    return "sum" * any(word in text for word in ("cum", ".accumulate", "trapezoid"))


def _is_finite(x: Any) -> bool:
    return bool(np.isfinite(x).all())


def _pair(rng: Random, one: str, other: str, operands: tuple[int, int]) -> Step:
    kinds = {one, other}
    own = operations.PAIRS
    if rng.random() < 0.6:
        if "f" in kinds and rng.random() < 0.1:
            return Step(rng.choice(operations.LOGARITHMS), operands, "sum")
        if kinds == {"f"}:
            own = operations.FLOATS if rng.random() < 0.6 else operations.NUMBERS
        elif "f" in kinds:
            own = operations.NUMBERS
        elif kinds == {"b"}:
            own = operations.TRUTHS
        else:
            own = operations.WHOLES if rng.random() < 0.5 else operations.NUMBERS
    return Step(rng.choice(own), operands)


def _fold(rng: Random, x: Any, operand: int) -> Step:
    family = rng.choices(
        ("fold", "position", "sum", "spread", "float", "product"), (30, 12, 34, 10, 10, 4)
    )[0]
    one, several = _axis(rng, x.ndim), _axis(rng, x.ndim, several=True)
    if family == "float" and kind_of(x.dtype) == "f":
        return Step(_placed(rng, rng.choice(operations.FLOAT_FOLDS), one), (operand,), "sum")
    match family:
        case "position":
            return Step(_placed(rng, rng.choice(operations.POSITIONS), one), (operand,))
        case "product":
            return Step(_placed(rng, rng.choice(operations.FACTORS), one), (operand,), "sum")
        case "spread":
            return Step(_placed(rng, rng.choice(operations.SPREADS), one), (operand,), "spread")
        case "sum":
            return Step(_placed(rng, rng.choice(operations.SUMS), several), (operand,), "sum")
    return Step(_placed(rng, rng.choice(operations.FOLDS), several), (operand,))


def _axis(rng: Random, rank: int, *, several: bool = False) -> str:
    """Return an axis as text: mostly the last."""
    axes = ["-1"] * 5 + ["0"] * 3 + [str(rank // 2), str(-rank)]
    if several:
        axes += ["None", "()"] + ["(0, 1)"] * (rank > 1)
    return rng.choice(axes)


def _placed(rng: Random, text: str, axis: str) -> str:
    return text.replace("AXIS", axis).replace("KEPT", rng.choice(("True", "True", "False")))
