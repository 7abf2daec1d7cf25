"""Running sums and maxima of tiles along one dimension."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.values import as_region
from tile_api.language.operands import Annotations, emit
from tile_api.language.reductions import flag, normal_dim
from tile_core.ops.reduce import ReduceKind
from tile_core.ops.scan import Scan

__all__ = ["cummax", "cumsum"]


def cumsum(
    src: Any, dst: Any = None, dim: Any = 0, reverse: Any = False, annotations: Annotations = None
) -> None:
    """Write the running sum of `src` along `dim` to `dst`, each element included.

    Parameters
    ----------
    dst
        Of the same shape; by default `src` itself.
    reverse
        Run from the end.

    Raises
    ------
    FrontendValueError
        If there is no dimension `dim`.
    ShapeMismatch
        If the shapes differ.
    """
    _scan("T.cumsum", ReduceKind.SUM, src, dst, dim, reverse)


def cummax(
    src: Any, dst: Any = None, dim: Any = 0, reverse: Any = False, annotations: Annotations = None,
    *, nan_propagate: Any = False,
) -> None:  # fmt: skip
    """Write the running maximum of `src` along `dim` to `dst`; see `T.cumsum`.

    Parameters
    ----------
    nan_propagate
        It is NaN from the first NaN on; by default NaN elements are ignored.
    """
    nan = flag("T.cummax", "nan_propagate", nan_propagate)
    _scan("T.cummax", ReduceKind.MAX, src, dst, dim, reverse, nan)


def _scan(
    name: str, kind: ReduceKind, src: Any, dst: Any, dim: Any, reverse: Any, nan: bool = False
) -> None:
    source = as_region(src, f"the source of {name}")
    target = source if dst is None else as_region(dst, f"the destination of {name}")
    axis = normal_dim(name, dim, source)
    emit(Scan(kind, source, target, axis, flag(name, "reverse", reverse), nan))
