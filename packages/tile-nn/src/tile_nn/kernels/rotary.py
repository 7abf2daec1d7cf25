"""`tile_nn.rotary`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks

LAYOUTS = ("BHTD", "BTHD")


@tile.function
def rotary(
    x: Any, cos: Any, sin: Any, k: Any = None, *, interleaved: bool = False, layout: str = "BHTD"
) -> Any:
    """Return rows whose pairs of elements are turned by the angles of their positions.

    Parameters
    ----------
    x
        Queries, or keys: ``(batch, heads, length, d)``, floats of any type.
    cos, sin
        ``(length, r / 2)``, or ``(batch, length, r / 2)``, floats of any type: the cosine and sine
        for each pair. The first `r` elements of a row are turned, the others stay as they are.
    k
        Turned by the same angles in the same kernel, with heads of its own; returned after `x`.
    interleaved
        Whether neighbours are a pair (GPT-J, DeepSeek); else an element of the first half of `r`
        and the one in its place in the second half (Llama, Qwen, Gemma: NeoX).
    layout
        ``"BTHD"`` if `x` and `k` are ``(batch, length, heads, d)``.

    Returns
    -------
    y, or (y, turned k)
        Of the shapes and types of what is turned; computed in float32, and rounded once.

    Notes
    -----
    ``(a, b)`` becomes ``(a · cos - b · sin, b · cos + a · sin)``. The gradient is the rotation
    back. Tables of transformers repeat each half: pass ``cos[..., : r // 2]``. Known elsewhere as
    ``apply_rotary_emb`` (flash-attn), ``apply_rope`` (FlashInfer), ``rotary_embedding`` (vLLM, with
    ``is_neox``), ``liger_rope``. J. Su et al., *RoFormer*, 2021.
    """
    checks.floats("rotary", x=x, cos=cos, sin=sin, k=k)
    checks.one_of("tile_nn.rotary: layout", layout, LAYOUTS)
    told = "(batch, heads, length, d)" if layout == "BHTD" else "(batch, length, heads, d)"
    for name, given in (("x", x), ("k", k)):
        if given is not None:
            checks.require(
                given.ndim == 4, "rotary", f"{name} has {given.ndim} dimensions", f"it is {told}"
            )
            _check_tables(name, given.shape, cos, sin, layout)
    if cos.ndim == 3:
        cos, sin = (np.expand_dims(table, 1) for table in (cos, sin))
    if layout == "BTHD":
        cos, sin = (_with_heads(table) for table in (cos, sin))
    turned = [_turned(given, cos, sin, interleaved) for given in (x, k) if given is not None]
    return turned[0] if k is None else tuple(turned)


def _check_tables(name: str, shape: Any, cos: Any, sin: Any, layout: str) -> None:
    batch, length = shape[0], shape[2 if layout == "BHTD" else 1]
    checks.require(
        cos.ndim in (2, 3) and 2 * cos.shape[-1] <= shape[-1], "rotary",
        f"cos has shape {tuple(map(int, cos.shape))}, and {name} rows of {shape[-1]}",
        "it is (length, r / 2) or (batch, length, r / 2), where r is at most the length of a row",
    )  # fmt: skip
    pairs = cos.shape[-1]
    wanted = (length, pairs) if cos.ndim == 2 else (batch, length, pairs)
    told = "(length, r / 2)" if cos.ndim == 2 else "(batch, length, r / 2)"
    checks.of_shape("rotary", wanted, told, cos=cos, sin=sin)


def _with_heads(table: Any) -> Any:
    """Return a table for rows of which the heads are the last but one dimension."""
    return np.expand_dims(table, 1) if table.ndim == 2 else np.swapaxes(table, 1, 2)


def _turned(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    width = 2 * cos.shape[-1]
    turned = tile.nn.rotary(x[..., :width], cos, sin, interleaved=interleaved).astype(x.dtype)
    rest = x[..., width:]
    return turned if width == x.shape[-1] else np.concatenate([turned, rest], axis=-1)
