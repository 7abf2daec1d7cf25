"""`tile.Array["b n d", "float16"]`: shapes and types that parameters of a function have."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tile_api.arrays.capturing.elementwise import element_type
from tile_api.arrays.equations.dims import joined
from tile_api.frontend.source import calling_span, evaluate_annotations, read_source
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import (
    ArgumentDtypeError,
    ArgumentShapeError,
    ArgumentTypeError,
    FrontendError,
    Note,
    SignatureError,
    Span,
)
from tile_core.records import dataclass

_DIMENSION = re.compile(r"[^\W\d]\w*|\d+|\.\.\.")
_WAY = 'names, numbers and one "...", such as tile.Array["... n 64", "float16"]'


@dataclass(frozen=True, slots=True)
class ArrayType:
    """What an array is to be.

    Parameters
    ----------
    text
        As it was written.
    before, after
        Dimensions: names, or numbers; between them stand any others, if `is_open`.
    is_optional
        Whether it may be None.
    """

    text: str
    before: tuple[str | int, ...]
    after: tuple[str | int, ...]
    is_open: bool
    dtype: DType | None
    is_optional: bool = False

    def __or__(self, other: Any) -> ArrayType:
        """Return the type that is None, too."""
        if other is not None:
            return NotImplemented
        parts = self.before, self.after, self.is_open, self.dtype
        return ArrayType(self.text, *parts, is_optional=True)

    def dimensions(self, rank: int) -> tuple[str | int | None, ...] | None:
        """Return what each dimension is called, or its size; None if there are not so many."""
        rest = rank - len(self.before) - len(self.after)
        if rest < 0 or (rest and not self.is_open):
            return None
        return (*self.before, *[None] * rest, *self.after)


class Array:
    """Annotates a parameter of a function of arrays.

    ``tile.Array["b n d"]`` is an array of three dimensions. Those of one name have one size, in
    all parameters, and kernels go through them in one loop; a number is the size itself, and
    ``...`` stands for any dimensions. ``tile.Array["n", "float16"]`` has elements of that type.
    ``tile.Array["n"] | None`` may be missing.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> @tile.function
    ... def scaled(x: tile.Array["n m"], weights: tile.Array["m", "float32"]):
    ...     return x * weights
    >>> scaled(np.ones((2, 3), "float32"), np.arange(3, dtype="float32"))
    array([[0., 1., 2.],
           [0., 1., 2.]], dtype=float32)
    """

    def __class_getitem__(cls, item: Any) -> ArrayType:
        """Return the annotation."""
        shape, *rest = item if isinstance(item, tuple) else (item,)
        shape = str(shape) if isinstance(shape, int) else shape  # "64" without its quotes
        if not isinstance(shape, str) or len(rest) > 1:
            raise _malformed(f"tile.Array[{', '.join(map(repr, (shape, *rest)))}]")
        words = shape.split()
        strange = [w for w in words if not _DIMENSION.fullmatch(w)]
        if strange or words.count("...") > 1:
            raise _malformed(f"{(strange or ['...'])[0]!r} in tile.Array[{shape!r}]")
        sizes = [int(w) if w.isdigit() else w for w in words]
        at = words.index("...") if "..." in words else len(words)
        dtype = element_type(rest[0]) if rest else None
        return ArrayType(shape, tuple(sizes[:at]), tuple(sizes[at + 1 :]), "..." in words, dtype)


def _malformed(what: str) -> SignatureError:
    return SignatureError(f"no dimensions: {what}", span=calling_span(), hint=_WAY)


def array_types(function: types.FunctionType) -> dict[str, ArrayType]:
    """Return the annotations of a function that are about arrays."""
    found = evaluate_annotations(function, leave_unknown=True)
    for name, text in found.items():
        if type(text) is str and "Array[" in text:
            raise SignatureError(
                f"{function.__name__}: the annotation of {name} has names that are not known here: "
                f"{text}",
                span=_place(function, name),
                hint="import tile_api as tile, where the function is defined",
            )
    return {name: a for name, a in found.items() if isinstance(a, ArrayType)}


def check(
    function: types.FunctionType, expected: Mapping[str, ArrayType], given: Mapping[str, Any]
) -> None:
    """Refuse arguments, or a result, "return", that are not what annotations say.

    Dimensions of one name become one.
    """
    met: dict[str, tuple[str, int]] = {}
    for name, kind in expected.items():
        if name not in given:
            continue
        x, who = given[name], "the result" if name == "return" else name
        if not hasattr(x, "shape"):
            if x is None and kind.is_optional:
                continue
            raise ArgumentTypeError(
                f"{function.__name__}: {who} is a {type(x).__name__}, and annotated as an array",
                **_places(function, [name]),
                hint="pass an array; annotate with `| None` what may be missing",
            )
        shape = tuple(map(int, x.shape))
        dimensions = kind.dimensions(len(shape))
        if dimensions is None:
            raise ArgumentShapeError(
                f"{function.__name__}: {who} has shape {shape}, and is annotated {kind.text!r}",
                **_places(function, [name]),
            )
        for axis, (size, dimension) in enumerate(zip(x.shape, dimensions, strict=True)):
            if isinstance(dimension, int) and size != dimension:
                raise ArgumentShapeError(
                    f"{function.__name__}: {who} has shape {shape}, and is annotated {kind.text!r}:"
                    f" dimension {axis} is {int(size)}, not {dimension}",
                    **_places(function, [name]),
                )
            if isinstance(dimension, str):
                other, known = met.setdefault(dimension, (name, size))
                if size != known:
                    raise ArgumentShapeError(
                        f"{function.__name__}: {dimension} is {int(known)} in {other}, and "
                        f"{int(size)} in {who}, which has shape {shape}",
                        **_places(function, [other, name]),
                    )
                joined(known, size)
        dtype = dtype_of(str(x.dtype).removeprefix("torch."))
        if kind.dtype is not None and dtype != kind.dtype:
            raise ArgumentDtypeError(
                f"{function.__name__}: {who} has elements of {dtype}, and is annotated with "
                f"{kind.dtype}",
                **_places(function, [name]),
                hint=f'{name}.astype("{kind.dtype}")' if name != "return" else None,
            )


def _places(function: types.FunctionType, names: Sequence[str]) -> dict[str, Any]:
    """Return where the call stands, and the annotations."""
    notes = []
    for name in dict.fromkeys(names):
        span = _place(function, name)
        if span is not None:
            notes.append(Note(f"the annotation of {name}", span))
    return {"span": calling_span(), "notes": tuple(notes)}


def _place(function: types.FunctionType, name: str) -> Span | None:
    try:
        return read_source(function).parameter_span(name)
    except FrontendError:  # its text is not to be had
        return None
