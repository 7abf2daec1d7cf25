"""What arguments of kernels have to be: errors say what would be supported.

They run while a kernel is captured: once for shapes and types, not with each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_api.frontend.source import calling_span
from tile_core.errors import ArrayShapeError, FrontendTypeError, FrontendValueError

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def one_of(what: str, given: object, known: Sequence[object]) -> None:
    """Refuse a setting that is not among `known`.

    Raises
    ------
    FrontendValueError
        It names those that are.
    """
    if given not in known:
        told = ", ".join(map(repr, known))
        raise FrontendValueError(
            f"{what} is {given!r}", span=calling_span(), hint=f"it is one of {told}"
        )


def setting(is_right: bool, problem: str, hint: str) -> None:
    """Refuse a setting that means nothing.

    Raises
    ------
    FrontendValueError
        `hint` says what would be supported.
    """
    if not is_right:
        raise FrontendValueError(problem, span=calling_span(), hint=hint)


def of_type(kernel: str, known: Sequence[str], **arrays: Any) -> None:
    """Refuse arrays whose elements are of none of the types `known`; None is passed over.

    Raises
    ------
    FrontendTypeError
        It names the types that are supported.
    """
    for name, array in arrays.items():
        if array is not None and not hasattr(array, "dtype"):
            raise FrontendTypeError(
                f"tile_nn.{kernel}: {name} is a {type(array).__name__}, and no array",
                span=calling_span(),
                hint=f"pass an array of {_either(known)}",
            )
        if array is not None and array.dtype not in known:
            raise FrontendTypeError(
                f"tile_nn.{kernel}: {name} has elements of {array.dtype}",
                span=calling_span(),
                hint=f"cast it to {_either(known)}",
            )


def of_named_type(kernel: str, known: Sequence[str], name: str, array: Any) -> None:
    """Refuse an array of NumPy or torch, not captured, whose elements are of no type `known`.

    Raises
    ------
    FrontendTypeError
        It names the types that are supported.
    """
    given = getattr(array, "dtype", type(array).__name__)
    if str(given).removeprefix("torch.") not in known:
        raise FrontendTypeError(
            f"tile_nn.{kernel}: {name} has elements of {given}",
            span=calling_span(),
            hint=f"cast it to {_either(known)}",
        )


def floats(kernel: str, **arrays: Any) -> None:
    """Refuse arrays that hold no floats of 16 bits or more; see `of_type`."""
    of_type(kernel, FLOATS, **arrays)


def integers(kernel: str, **arrays: Any) -> None:
    """Refuse arrays that hold no integers; see `of_type`."""
    of_type(kernel, INTEGERS, **arrays)


def of_shape(kernel: str, wanted: Sequence[int], told: str, **arrays: Any) -> None:
    """Refuse arrays that have another shape than `wanted`, which is `told` by names.

    Raises
    ------
    ArrayShapeError
        It names both shapes.
    """
    for name, array in arrays.items():
        if array is not None and tuple(array.shape) != tuple(wanted):
            raise ArrayShapeError(
                f"tile_nn.{kernel}: {name} has shape {_plain(array.shape)}",
                span=calling_span(),
                hint=f"its shape is {told}, here {_plain(wanted)}",
            )


def broadcasts(kernel: str, wanted: Sequence[int], told: str, **arrays: Any) -> None:
    """Refuse arrays that do not broadcast to a shape.

    Raises
    ------
    ArrayShapeError
        It names both shapes.
    """
    for name, array in arrays.items():
        shape = _plain(array.shape)
        ends = zip(reversed(shape), reversed(_plain(wanted)), strict=False)
        fits = len(shape) <= len(wanted) and all(n in (1, most) for n, most in ends)
        require(
            fits, kernel, f"{name} has shape {shape}",
            f"it broadcasts to {told}, here {_plain(wanted)}",
        )  # fmt: skip


def require(is_right: bool, kernel: str, problem: str, hint: str) -> None:
    """Refuse shapes that do not fit.

    Raises
    ------
    ArrayShapeError
        If they do not; `hint` says what would be supported.
    """
    if not is_right:
        raise ArrayShapeError(f"tile_nn.{kernel}: {problem}", span=calling_span(), hint=hint)


def ranked(kernel: str, least: int, told: str, **arrays: Any) -> None:
    """Refuse arrays of fewer dimensions than `least`; `told` says what they are.

    Raises
    ------
    ArrayShapeError
        It says what the dimensions mean.
    """
    for name, array in arrays.items():
        if array is not None and array.ndim < least:
            raise ArrayShapeError(
                f"tile_nn.{kernel}: {name} has {array.ndim} dimensions",
                span=calling_span(),
                hint=f"it is {told}",
            )


def matrix(kernel: str, x: Any, weight: Any) -> None:
    """Refuse a matrix that rows cannot be multiplied by.

    Raises
    ------
    ArrayShapeError
        It names both shapes.
    """
    require(
        weight.ndim == 2 and weight.shape[1] == x.shape[-1], kernel,
        f"weight has shape {_plain(weight.shape)}, and rows of x {x.shape[-1]} elements",
        "weight is (n, k), x is (..., k)",
    )  # fmt: skip


def window(kernel: str, window_size: object) -> None:
    """Refuse what is no pair of how many keys before and behind a query it sees.

    Raises
    ------
    FrontendValueError
        It says what a pair means.
    """
    setting(
        isinstance(window_size, tuple) and [type(n) for n in window_size] == [int, int]
        and min(window_size) >= -1,
        f"tile_nn.{kernel}: window_size is {window_size!r}",
        "a pair: how many keys before and behind a query it sees, -1 for all",
    )  # fmt: skip


def even(kernel: str, **arrays: Any) -> None:
    """Refuse arrays whose rows have no two halves.

    Raises
    ------
    ArrayShapeError
        If the last dimension is odd.
    """
    for name, array in arrays.items():
        require(
            array.shape[-1] % 2 == 0, kernel, f"rows of {name} have {array.shape[-1]} elements",
            "an even number of them: two halves",
        )  # fmt: skip


def _either(known: Sequence[str]) -> str:
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} or {known[-1]}"


def _plain(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(int, shape))
