"""torch's factorisations, and what they solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tile_api.arrays.capturing import (
    decompositions,
    elementwise,
    factorisations,
    singular_values,
    views,
)
from tile_api.arrays.capturing.torch_elements import floats_only


def _of_floats(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def of(A: Any, **kwargs: Any) -> Any:
        floats_only(name, A)
        return function(A, **kwargs)

    return of


def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """`torch.linalg.solve`."""
    for x in (A, B):
        floats_only("linalg.solve", x)
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]):  # vectors
        return solve(A, views.expand_dims(B, -1))[..., 0]
    if left:
        return factorisations.solve(A, B)
    turned = factorisations.solve(views.swapaxes(A, -1, -2), views.swapaxes(B, -1, -2))
    return views.swapaxes(turned, -1, -2)


def qr(A: Any, mode: str = "reduced") -> Any:
    """`torch.linalg.qr`."""
    floats_only("linalg.qr", A)
    found = factorisations.qr(A, mode)
    return factorisations.QRResult(A[:0].sum(0), found) if mode == "r" else found


_inv, _det, _slogdet = (
    _of_floats(getattr(factorisations, name), f"linalg.{name}")
    for name in ("inv", "det", "slogdet")
)


_eigh, _eigvalsh, _svdvals, _pinv, _rank, _cond = (
    _of_floats(getattr(singular_values, name), f"linalg.{name}")
    for name in ("eigh", "eigvalsh", "svdvals", "pinv", "matrix_rank", "cond")
)


def svd(A: Any, full_matrices: bool = True) -> Any:
    """`torch.linalg.svd`."""
    floats_only("linalg.svd", A)
    return singular_values.svd(A, full_matrices)


def logdet(A: Any) -> Any:
    """`torch.logdet`: NaN of a negative determinant."""
    sign, found = _slogdet(A)
    return elementwise.where(sign < 0, float("nan"), found)


def cholesky(A: Any, upper: bool = False) -> Any:
    """`torch.linalg.cholesky`."""
    floats_only("linalg.cholesky", A)
    return factorisations.cholesky(A, upper=upper)


FACTORISATIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "linalg_solve": solve,
        "linalg_inv": _inv, "inverse": _inv,
        "linalg_det": _det, "det": _det,
        "linalg_slogdet": _slogdet, "slogdet": _slogdet,
        "logdet": logdet,
        "linalg_cholesky": cholesky, "cholesky": cholesky,
        "linalg_qr": qr,
        "linalg_eigh": _eigh, "linalg_eigvalsh": _eigvalsh,
        "linalg_svd": svd, "linalg_svdvals": _svdvals, "linalg_pinv": _pinv, "pinverse": _pinv,
        "linalg_matrix_rank": _rank, "linalg_cond": _cond,
        "linalg_matrix_power": decompositions.matrix_power,
        "matrix_power": decompositions.matrix_power,
    }
)  # fmt: skip
"""Functions by torch's names for them."""
