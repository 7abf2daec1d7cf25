"""Calls in C for the kernels of this process: the library they share, and one caller for each."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from functools import lru_cache
from typing import Any

from tile_api.arguments import Signature
from tile_api.disk_cache.location import CacheSettings
from tile_api.settings import Settings
from tile_core.dtypes import DType, Kind
from tile_core.ir.arith import integer_bounds
from tile_core.ir.buffer import Buffer
from tile_runtime.native.caller import Caller, Parameter
from tile_runtime.native.layouts import Kind as Passed
from tile_runtime.native.library import build_library, is_supported, open_library
from tile_runtime.native.starting import Starter

_COMPILERS = ("cc", "gcc", "clang")
_SCALARS = {Kind.BOOL: Passed.BOOL, Kind.INT: Passed.INT, Kind.UINT: Passed.INT}
_SCALARS[Kind.FLOAT] = Passed.FLOAT


@lru_cache(maxsize=1)
def native_library() -> Any:
    """Return the library that makes calls, compiled on first use; None if there is none.

    It is kept beside the cache of kernels. Without a C compiler, or where nothing is kept on
    disk, Python makes the calls.
    """
    settings = CacheSettings.from_environment()
    if not settings.limit or not Settings.from_environment().cache or not is_supported():
        return None
    path = build_library(settings.folder / "native", c_compiler())
    return None if path is None else open_library(path)


def c_compiler() -> list[str]:
    """Return the command of a C compiler, ``$CC`` first; one that does not exist if none does."""
    for name in (os.environ.get("CC", ""), *_COMPILERS):
        found = shutil.which(name) if name else None
        if found:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return ["cc"]


def caller_of(library: Any, signature: Signature, starter: Starter, keyed: set[int]) -> Caller:
    """Return the caller of a kernel.

    Parameters
    ----------
    library
        As `native_library` returns it.
    starter
        What the executable tells of itself.
    keyed
        Positions of scalars that checks depend on, beside those of `starter`.
    """
    parameters = []
    for position, param in enumerate(signature.kernel.params):
        if position in signature.kernel.outputs:
            parameters.append(Parameter(Passed.OUTPUT))
        elif isinstance(param, Buffer):
            parameters.append(Parameter(Passed.TENSOR, alignment=starter.alignments[position]))
        else:
            is_keyed = position in keyed or position in starter.keyed
            parameters.append(_scalar(param.dtype, is_keyed=is_keyed))
    return Caller(library, parameters)


def is_callable(signature: Signature) -> bool:
    """Whether C knows all kinds of parameters of a kernel."""
    return all(
        param.dtype.packing == 1 if isinstance(param, Buffer) else param.dtype.kind in _SCALARS
        for param in signature.kernel.params
    )


def _scalar(dtype: DType, *, is_keyed: bool) -> Parameter:
    kind = _SCALARS[dtype.kind]
    low, high = integer_bounds(dtype) if kind is Passed.INT else (0, 0)
    return Parameter(kind, is_keyed, low, high)
