"""`tilelang.language.dtypes` and `language.fp8`: types of torch, and which FP8 there is."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.dtypes import DTYPES, dtype
from tile_api.tensors import torch_storage
from tile_api.tilelang.machines import machine
from tile_core.errors import FrontendValueError

int_ = int
_all_dtypes = frozenset(DTYPES)

_FORMATS = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_OF_TORCH = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)


def __getattr__(name: str) -> Any:
    """Load torch when its types are asked for."""
    if name not in ("_TORCH_DTYPE_TO_STR", "_STR_TO_TORCH_DTYPE"):
        raise AttributeError(name)
    pairs = {spelling: torch_storage(dtype(spelling)) for spelling in _OF_TORCH}
    return pairs if name == "_STR_TO_TORCH_DTYPE" else {t: spelt for spelt, t in pairs.items()}


def resolve_torch_storage_dtype(value: object) -> Any:
    """Return the ``torch.dtype`` that stores elements of a type."""
    return dtype(value).as_torch()


def determine_fp8_type(fp8_format: str = "e4m3", device: Any = None) -> str:
    """Return the name of the FP8 type that the machine multiplies: ``"e4m3"`` or ``"e5m2"``.

    The `device` is accepted for compatibility: there is one machine.
    """
    if fp8_format not in _FORMATS:
        raise FrontendValueError(
            f"there is no FP8 format {fp8_format!r}", hint="write 'e4m3' or 'e5m2'"
        )
    here = machine()
    without_zeros = here.is_hip and here.arch != "gfx950"
    if not without_zeros:
        return _FORMATS[fp8_format]
    return f"float8_{fp8_format}fnuz"


def determine_torch_fp8_type(fp8_format: str = "e4m3", device: Any = None) -> Any:
    """Return the ``torch.dtype`` of `determine_fp8_type`."""
    return dtype(determine_fp8_type(fp8_format, device)).as_torch()
