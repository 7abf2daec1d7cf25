"""`tilelang.utils.sparse`, `sparse_layout`: matrices of which two in four numbers are zero."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_core.errors import DtypeMismatch, MissingFeature

_TWO_OF_FOUR = (
    "float16 bfloat16 int8 uint8 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz"
)
_ONE_OF_TWO = "float32 tfloat32"

GROUP_CONFIG: Mapping[DType, tuple[int, int]] = MappingProxyType(
    {dtype_of(name): (2, 4) for name in _TWO_OF_FOUR.split()}
    | {dtype_of(name): (1, 2) for name in _ONE_OF_TWO.split()}
)
"""How many elements are kept of how many neighbours, by dtype."""


def get_e_factor(a_dtype: Any, meta_dtype: Any) -> int:
    """Return how many elements of a dense row one element of the metadata describes.

    A group of neighbours takes four bits.
    """
    dtype = dtype_of(str(a_dtype))
    if dtype not in GROUP_CONFIG:
        raise DtypeMismatch(
            f"no sparse matrix product takes {dtype}",
            hint=f"use one of {', '.join(map(str, GROUP_CONFIG))}",
        )
    return dtype_of(str(meta_dtype)).bits // 4 * GROUP_CONFIG[dtype][1]


def _torch() -> Any:
    from tile_api.tensors import torch_if_installed

    torch = torch_if_installed()
    if torch is None:
        raise MissingFeature("torch is not installed", hint="pip install torch")
    return torch


def _two_in_four(dense: Any, transposed: bool) -> Any:
    """Return `dense` with the two smallest of four neighbours set to zero."""
    torch = _torch()
    rows, columns = dense.shape
    grouped = dense.reshape(rows, columns // 4, 4)
    kept = torch.zeros_like(grouped, dtype=torch.bool)
    kept.scatter_(2, grouped.float().abs().topk(2, dim=2).indices, True)
    sparse = torch.where(kept, grouped, torch.zeros_like(grouped)).reshape(rows, columns)
    return sparse.t().contiguous() if transposed else sparse


def randn_semi_sparse(
    M: int, K: int, dtype: Any = None, device: Any = "cuda", transposed: bool = False
) -> Any:
    """Return normal numbers (M, K), or (K, M) transposed, two in four along K zero."""
    torch = _torch()
    dense = torch.randn((M, K), dtype=torch.float32, device=device)
    return _two_in_four(dense, transposed).to(dtype or torch.float16)


def randint_semi_sparse(
    M: int,
    K: int,
    low: int,
    high: int,
    dtype: Any = None,
    device: Any = "cuda",
    transposed: bool = False,
) -> Any:
    """Return integers (M, K), or (K, M) transposed, two in four along K zero."""
    torch = _torch()
    dense = torch.randint(low, high, (M, K), dtype=torch.int32, device=device)
    return _two_in_four(dense, transposed).to(dtype or torch.int8)


def arange_semi_sparse(
    M: int, K: int, dtype: Any = None, device: Any = "cuda", transposed: bool = False
) -> Any:
    """Return 1, 2, 3 … (M, K), or (K, M) transposed, two in four along K zero."""
    torch = _torch()
    dense = torch.arange(1, M * K + 1, dtype=torch.float32, device=device).reshape(M, K)
    return _two_in_four(dense, transposed).to(dtype or torch.float16)
