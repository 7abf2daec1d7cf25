"""Arrays beside those that a function is called with: what stands in it, and what it makes anew."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from tile_api.arrays.equations.equations import ConstantArray
from tile_api.tensors import array_of, tensor_of


class ConstantArrays:
    """The constants of a function, as arrays of the kind that it is called with."""

    def __init__(self, constants: Iterable[ConstantArray]) -> None:
        self._values = [t.values for t in constants]
        self._tensors: dict[Any, list[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    def behind(self, arrays: Iterable[Any]) -> list[Any]:
        """Return arrays with the constants behind them, tensors on their device if those are."""
        given = [*arrays]
        tensor = a_tensor(given) if self._values else None
        if tensor is None:
            return [*given, *self._values]
        device = str(tensor.device)
        if device not in self._tensors:
            self._tensors[device] = [tensor_of(x.copy(), device) for x in self._values]
        return [*given, *self._tensors[device]]


def a_tensor(arrays: Iterable[Any]) -> Any:
    """Return the first tensor of torch among arrays, or None."""
    torch = sys.modules.get("torch")
    return next((x for x in arrays if torch is not None and isinstance(x, torch.Tensor)), None)


def as_given(results: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Return what kernels made that took nothing: NumPy's arrays, unless tensors were given."""
    given = a_tensor(arrays)
    made = []
    for x in results:
        tensor = a_tensor([x])
        if given is None and tensor is not None and tensor.device.type == "cpu":
            made.append(array_of(tensor))
        else:
            made.append(x if given is None or tensor is not None else tensor_of(x, given.device))
    return made
