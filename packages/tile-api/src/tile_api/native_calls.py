"""Calls in C for the kernels of this process: the library they share, and what C must know."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from tile_api.arguments import Signature
from tile_api.disk_cache.location import CacheSettings
from tile_api.settings import Settings
from tile_core.dtypes import DType, Kind
from tile_core.ir.arith import integer_bounds
from tile_core.ir.buffer import Buffer
from tile_launch.native.c_structures import ArgumentKind as Passed
from tile_launch.native.call_specialisation import Learner
from tile_launch.native.caller import Parameter
from tile_launch.native.launch_plans import Starter
from tile_launch.native.library import c_compiler, ready_library
from tile_launch.scalars import largest_float

_SCALARS = {Kind.BOOL: Passed.BOOL, Kind.INT: Passed.INT, Kind.UINT: Passed.INT}
_SCALARS[Kind.FLOAT] = Passed.FLOAT


@lru_cache(maxsize=1)
def native_library() -> Any:
    """Return the library that makes calls, compiled on first use; None if there is none.

    It is kept beside the cache of kernels. Without a C compiler, or where nothing is kept on
    disk, Python makes the calls.
    """
    settings = CacheSettings.from_environment()
    if not settings.limit or not Settings.from_environment().cache:
        return None
    return ready_library(settings.folder / "native", c_compiler())


def learner_of(
    executable: Callable[..., None], signature: Signature, keyed: frozenset[int]
) -> Learner:
    """Return what learns to make the calls of a kernel in C.

    Parameters
    ----------
    keyed
        Positions of scalars that checks depend on.
    """
    return Learner(executable, partial(_parameters, signature, keyed), native_library)


def _parameters(
    signature: Signature, keyed: frozenset[int], starter: Starter
) -> list[Parameter] | None:
    """Return what C must know of the parameters; None if it cannot read one of them."""
    found = []
    for position, param in enumerate(signature.kernel.params):
        if isinstance(param, Buffer):
            if param.dtype.packing > 1:
                return None
            is_output = position in signature.kernel.outputs
            kind = Passed.OUTPUT if is_output else Passed.TENSOR
            found.append(Parameter(kind, alignment=starter.alignments[position]))
        elif param.dtype.kind in _SCALARS:
            is_keyed = position in keyed or position in starter.keyed
            found.append(_scalar(param.dtype, is_keyed=is_keyed))
        else:
            return None
    return found


def _scalar(dtype: DType, *, is_keyed: bool) -> Parameter:
    kind = _SCALARS[dtype.kind]
    low, high = integer_bounds(dtype) if kind is Passed.INT else (0, 0)
    return Parameter(kind, is_keyed, low, high, largest=largest_float(str(dtype)))
