"""`tilelang.utils.sparse`: matrices of which two in four numbers are zero."""

from __future__ import annotations

from typing import Any

from tile_core.errors import MissingFeature


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
