"""Tiles in another order: transposed, or gathered patch by patch from images."""

from __future__ import annotations

import functools
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_buffer, as_region, as_value
from tile_api.language.copies import EVICTION
from tile_api.language.operands import Annotations, choice, count, emit
from tile_core.ops.copy import Transpose
from tile_core.ops.im2col import Im2col

__all__ = ["c2d_im2col", "im2col", "transpose"]


def transpose(src: Any, dst: Any, annotations: Annotations = None) -> None:
    """Write the transpose of `src` to `dst`: ``dst[j, i] = src[i, j]`` on the last two dimensions.

    Raises
    ------
    ShapeMismatch
        If the last two extents are not swapped, or the others differ.
    """
    emit(
        Transpose(
            as_region(src, "the source of T.transpose"),
            as_region(dst, "the destination of T.transpose"),
        )
    )


def im2col(
    img: Any,
    col: Any,
    nhw_step: Any,
    c_step: Any,
    kernel: Any,
    stride: Any,
    dilation: Any,
    pad: Any,
    eviction_policy: str | None = None,
    annotations: Annotations = None,
) -> None:
    """Gather image patches into a tile of the matrix whose product with a filter convolves.

    Parameters
    ----------
    img : [N, H, W, C], global
    col : [..., BM, BK]
        Element (i, j) is row ``nhw_step * BM + i`` and column ``c_step * BK + j`` of the
        matrix with a row per output pixel and a column per filter element and channel.
    kernel, stride, dilation, pad
        The filter's extent and how it moves, equal in both directions, known at compile time.

    Raises
    ------
    ShapeMismatch
        If `img` is not a global tensor of four dimensions.
    DtypeMismatch
        If the element types differ.
    """
    if eviction_policy is not None:
        choice(eviction_policy, EVICTION, "eviction policy")
    emit(
        Im2col(
            as_buffer(img, "the image of T.im2col"),
            as_region(col, "the tile of T.im2col"),
            as_value(nhw_step),
            as_value(c_step),
            count(kernel, "kernel"),
            count(stride, "stride"),
            count(dilation, "dilation"),
            count(pad, "pad", least=0),
        )
    )


@functools.wraps(im2col)
def c2d_im2col(*args: Any, **kwargs: Any) -> None:
    """Do what `T.im2col` does, under its older name; warns."""
    current().warn("T.c2d_im2col is now called T.im2col")
    im2col(*args, **kwargs)
