"""What captured tensors of torch have beside what NumPy's arrays have: torch's methods.

A function means the same for arrays and for tensors as long as it is written as NumPy's are. What
only torch has is torch's. What both have, and mean something else by, is neither's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_api.arrays.capturing import numpy_names
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.equations.sizes import Size, number_of
from tile_core.errors import UnknownArrayFunction

FUNCTIONS = numpy_names.FUNCTIONS
call_function, call_ufunc = numpy_names.call_function, numpy_names.call_ufunc
call_torch, changed, taken = numpy_names.call_torch, numpy_names.changed, numpy_names.taken
assign = numpy_names.assign

_OF_NUMPY = frozenset({"axis", "axes", "keepdims", "ddof", "repeats", "initial", "where", "out"})
"""Keywords that torch's methods have not, or only for code of NumPy."""
_ASKED: dict[str, Callable[[Array], Any]] = {
    "numel": numpy_names.size_of, "dim": lambda x: x.ndim, "ndimension": lambda x: x.ndim,
    "is_floating_point": lambda x: x.dtype.is_float,
}  # fmt: skip
_FOLDS = ("sum", "prod", "mean", "any", "all")
_OTHERWISE = {
    "std": "NumPy divides by how many there are, torch by one less",
    "var": "NumPy divides by how many there are, torch by one less",
    "max": "NumPy gives the largest, torch its position, too",
    "min": "NumPy gives the least, torch its position, too",
    "repeat": "NumPy repeats each element, torch the array",
    **dict.fromkeys(_FOLDS, "NumPy folds no dimension of none given, torch folds all"),
    "transpose": "NumPy is given the order of dimensions, torch two that change places",
}
"""Methods that both have: what differs."""
_CLEAR = {
    "std": "x.std(ddof=1), x.std(correction=1)", "var": "x.var(ddof=1), x.var(correction=1)",
    "max": "x.max(axis=k), x.max(dim=k)", "min": "x.min(axis=k), x.min(dim=k)",
    "repeat": "np.repeat(x, n, axis), torch.tile(x, sizes)", "transpose": "x.T",
    **{name: f"x.{name}(), or x" for name in _FOLDS},
}  # fmt: skip


class _CallableSize:
    """How many elements there are: NumPy's attribute, and torch's method that gives sizes."""

    sizes: tuple[Any, ...]

    def __call__(self, dim: int | None = None) -> Any:
        """Return all sizes, or one."""
        return self.sizes if dim is None else self.sizes[dim]


class _Count(_CallableSize, int):
    pass


class _SymbolicCount(_CallableSize, Size):
    pass


def size_of(x: Array) -> Any:
    """Return how many elements there are, which called gives the sizes."""
    count = numpy_names.size_of(x)
    made: _Count | _SymbolicCount
    if isinstance(count, Size):
        made = _SymbolicCount(number_of(count), count.terms, count.usual)
    else:
        made = _Count(count)
    made.sizes = x.shape
    return made


def method(array: Array, name: str) -> Callable[..., Any]:
    """Return a method of tensors: NumPy's where it is written so, else torch's."""
    from tile_api.integrations.torch_decompositions import method_of

    function = method_of(name)
    if function is None or name == "reshape":
        return numpy_names.method(array, name)
    if name in _ASKED:
        return lambda: _ASKED[name](array)

    def called(*args: Any, **keywords: Any) -> Any:
        if numpy_names.has_method(name):
            if not keywords and _differs(array, name, args):
                raise UnknownArrayFunction(
                    f"{name} of a tensor may mean two things: {_OTHERWISE[name]}",
                    hint=f"write {_CLEAR[name]}",
                )
            if keywords.keys() & _OF_NUMPY or not (keywords or _is_of_torch(name, args)):
                return numpy_names.method(array, name)(*args, **keywords)
        if name == "where" and args:  # as a function it begins with the condition
            return call_torch(function, (args[0], array, *args[1:]), keywords)
        return call_torch(function, (array, *args), keywords)

    return called


def _differs(array: Array, name: str, args: Sequence[Any]) -> bool:
    """Tell whether NumPy and torch mean something else by a call without keywords."""
    match name:
        case "std" | "var" | "repeat":
            return True
        case "max" | "min":
            return bool(args)
        case "sum" | "prod" | "mean" | "any" | "all":
            return bool(args) and args[0] in ((), [])
        case "transpose":  # of two dimensions in their order, which torch exchanges
            return _is_pair(args) and array.ndim == 2 and args[0] % 2 < args[1] % 2
    return False


def _is_of_torch(name: str, args: Sequence[Any]) -> bool:
    """Tell whether NumPy takes no such arguments, or none of such kinds."""
    match name:
        case "transpose":
            return _is_pair(args)
        case "flatten" | "ravel" | "squeeze":
            return bool(args)
        case "sum" | "prod" | "mean" | "any" | "all" | "argmax" | "argmin":
            return len(args) > 1
    return False


def _is_pair(args: Sequence[Any]) -> bool:
    return len(args) == 2 and all(isinstance(k, int) for k in args)
