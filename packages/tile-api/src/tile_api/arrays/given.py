"""Arguments of functions of arrays: which are arrays, and what kernels depend on."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing import numpy_names, tensor_methods
from tile_api.frontend.source import calling_span
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError

_PLAIN = (bool, int, float, str, np.generic, np.dtype, type, type(None))


def is_plain(x: Any) -> bool:
    """Tell whether `x` may stand beside arrays: the function is captured with it."""
    return all(map(is_plain, x)) if isinstance(x, tuple) else isinstance(x, _PLAIN)


def is_array(x: Any) -> bool:
    """Tell whether `x` is an array, of whatever library."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.generic)


def dtype_in(x: Any) -> DType:
    """Return the type of the elements of an array."""
    return dtype_of(str(x.dtype).removeprefix("torch."))


def names_for(arrays: Mapping[str, Any]) -> Any:
    """Return what is captured of functions and methods: torch's methods where tensors are given."""
    is_torch = any(str(x.dtype).startswith("torch.") for x in arrays.values())
    return tensor_methods if is_torch else numpy_names


def key_of(arrays: Mapping[str, Any], others: Mapping[str, Any]) -> Any:
    """Return what the kernels for some arguments are a function of."""
    return (
        tuple((n, tuple(x.shape), str(x.dtype)) for n, x in arrays.items()),
        tuple((n, fact_of(x)) for n, x in others.items()),
    )


_EXACT = frozenset({int, bool, str, type(None)})


def fact_of(x: Any) -> Any:
    """Return what kernels depend on of an argument that is no array: 0.0 is not -0.0."""
    kind = type(x)
    if kind in _EXACT:
        return (kind, x)
    return (kind, repr(x)) if isinstance(x, (float, np.generic, tuple)) else (kind, x)


def arrays_and_others(
    function: str, arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays among the arguments of a function, and what it is captured with.

    Raises
    ------
    FrontendTypeError
        If there is no arithmetic for the elements of an array, or something is no argument.
    """
    arrays = {n: x for n, x in arguments.items() if is_array(x)}
    others = {n: x for n, x in arguments.items() if n not in arrays}
    for name, x in others.items():
        if not is_plain(x):
            raise FrontendTypeError(
                f"{function}: argument {name!r} is a {type(x).__name__}",
                span=calling_span(),
                hint="pass arrays, np.asarray makes them; and numbers, texts, None, or "
                "tuples of such",
            )
    for name, x in arrays.items():
        try:
            dtype_in(x)
        except FrontendTypeError:
            raise FrontendTypeError(
                f"{function}: argument {name!r} has elements of "
                f"{str(x.dtype).removeprefix('torch.')}, for which there is no arithmetic",
                span=calling_span(),
                hint=_cast_of(name, x),
            ) from None
    return arrays, others


def asks_for_gradients(given: Sequence[Any]) -> bool:
    """Tell whether torch is to know how results depend on arguments."""
    if not any([getattr(x, "requires_grad", False) for x in given]):
        return False
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.is_grad_enabled())


def _cast_of(name: str, x: Any) -> str:
    """Return what would make elements that kernels compute with."""
    if "complex" in str(x.dtype):
        return f"pass {name}.real and {name}.imag"
    kind, order = getattr(x.dtype, "kind", ""), getattr(x.dtype, "byteorder", "=")
    if kind in ("i", "u", "f") and order in "<>":
        return f'{name}.astype("{x.dtype.newbyteorder("=")}")'
    return f'{name}.astype("float64")' if kind == "f" else f'{name}.astype("float32")'
