"""torch's functions by name: what is captured when one is called with a captured array.

The same table serves operators of ``aten``, as `torch.compile` hands graphs of them over, and
torch's functions in code that is run on captured arrays.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing import (
    accumulations,
    augmented_assignment,
    creation,
    folds,
    linear_algebra,
    products,
    views,
    zero_dimensional,
)
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import FLOAT32, element_type, lift
from tile_api.arrays.capturing.torch_convolutions import (
    conv,
    conv_transpose,
    convolution,
    convolution_backward,
)
from tile_api.arrays.capturing.torch_elements import (
    ELEMENTS,
    cast,
    elements,
    floats_only,
    type_of_number,
    where,
)
from tile_api.arrays.capturing.torch_floating_and_rational import PARTS
from tile_api.arrays.capturing.torch_linear_algebra import FACTORISATIONS
from tile_api.arrays.capturing.torch_pooling import WINDOWS
from tile_api.arrays.capturing.torch_shapes import SHAPES, expand, sizes_given
from tile_api.arrays.capturing.torch_sorting import ORDER, Found
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.equations.expressions import INDEX
from tile_core.dtypes import DType
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

_IGNORED = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "requires_grad",
     "implicit", "_stacklevel"}
)  # fmt: skip
"""Keywords that say where a result lies, and nothing of its elements."""


_UNSET = (None, False)
"""Values of keywords that a function can do without."""


def call_row(name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return what a function of torch that has a row, or an operator of ``aten``, gives.

    Raises
    ------
    UnknownArrayFunction
        If there is no row for it, or it takes no such arguments here.
    """
    known = FUNCTIONS.get(name)
    if known is None:
        raise UnknownArrayFunction(
            f"torch.{name} cannot be captured",
            hint="write it with functions that can, or call it outside",
        )
    kept = {k: _plain(x) for k, x in keywords.items() if k not in _IGNORED}
    given = [_plain(x) for x in args]
    accepted = inspect.signature(known)
    kept = {k: x for k, x in kept.items() if k in accepted.parameters or x not in _UNSET}
    try:
        bound = accepted.bind(*given, **kept)
    except TypeError as error:
        raise UnknownArrayFunction(f"torch.{name}: {error}") from error
    if zero_dimensional.takes_one(name, bound):
        return zero_dimensional.of_one(known, bound)
    return augmented_assignment.viewing(name, given[0] if given else None, known(*given, **kept))


def require_results(made: Any, wanted: Sequence[tuple[tuple[int, ...], str]]) -> None:
    """Refuse results that differ from what torch says that a function gives.

    Parameters
    ----------
    made
        An array, or several, None among them where torch gives none.
    wanted
        Their shapes and types.

    Raises
    ------
    ArrayShapeError
        If one has another shape, or another type, or there are more or fewer.
    """
    several = made if isinstance(made, (tuple, list)) else [made]
    mine = [(tuple(x.shape), str(x.dtype)) for x in several if x is not None]
    if mine != [*wanted]:
        given, theirs = (
            ", ".join(f"{dtype} of {shape}" for shape, dtype in each) for each in (mine, wanted)
        )
        raise ArrayShapeError(f"it gives {given} where torch has {theirs}")


def _plain(x: Any) -> Any:
    """Return a type of torch's as ours; sizes as a tuple."""
    if str(x).startswith("torch.") and not isinstance(x, str):
        return str(x).removeprefix("torch.")
    return x


def _kind(dtype: Any, default: DType) -> DType:
    return default if dtype is None else element_type(dtype)


# -- reductions --------------------------------------------------------------------------------


def _axes(dim: Any) -> Any:
    """Return axes as NumPy has them: torch means all by an empty list."""
    if isinstance(dim, (list, tuple)):
        return tuple(dim) or None
    return dim


def _summed(fold: Callable[..., Array]) -> Callable[..., Array]:
    def run(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
        kind = _kind(dtype, input.dtype if input.dtype.is_float else INDEX)
        return fold(input, _axes(dim), kind, keepdims=keepdim)

    return run


def _mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return folds.mean(input, _axes(dim), _kind(dtype, input.dtype), keepdims=keepdim)


def _extreme(fold: Callable[..., Array]) -> Callable[..., Array]:
    def run(input: Any, dim: Any = (), keepdim: bool = False) -> Array:
        return fold(input, _axes(dim), keepdims=keepdim)

    return run


def _with_position(name: str) -> Callable[..., Any]:
    """Return `torch.max` or `torch.min`: of all, of two arrays, or with positions along one."""
    fold: Any = getattr(folds, name)
    position: Any = getattr(folds, f"arg{name}")

    def run(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return fold(input)
        if isinstance(dim, Array):
            return elements(UFUNCS[f"{name}imum"], input, dim)
        found = fold(input, dim, keepdims=keepdim), position(input, dim, keepdims=keepdim)
        return Found(*found)

    return run


def _position(name: str) -> Callable[..., Array]:
    fold: Any = getattr(folds, f"arg{name}")

    def run(input: Any, dim: int | None = None, keepdim: bool = False) -> Array:
        made: Array = fold(input, dim, keepdims=keepdim)
        return made

    return run


def _truth(fold: Callable[..., Array]) -> Callable[..., Array]:
    def run(input: Any, dim: Any = None, keepdim: bool = False) -> Array:
        return fold(input, _axes(dim), keepdims=keepdim)

    return run


def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Any = None,
) -> Array:  # fmt: skip
    """`torch.var`."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = correction if correction is not None else 0 if unbiased is False else 1
    return folds.var(input, _axes(dim), correction=less, keepdims=keepdim)


def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Any = None,
) -> Array:  # fmt: skip
    """`torch.std`."""
    return folds.root(var(input, dim, unbiased, keepdim, correction=correction))


def var_mean(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """`torch.var_mean`."""
    squares = var(input, dim, unbiased, keepdim, correction=correction)
    return squares, _mean(input, None if isinstance(dim, bool) else dim, keepdim)


def _running(fold: Callable[..., Array]) -> Callable[..., Array]:
    def run(input: Any, dim: int, *, dtype: Any = None) -> Array:
        kind = _kind(dtype, input.dtype if input.dtype.is_float else INDEX)
        return fold(cast(input, kind), dim)

    return run


def _logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Array:
    return folds.logaddexp_reduce(input, _axes(dim), keepdims=keepdim)


def softmax(input: Any, dim: int, half_to_float: Any = False, *, dtype: Any = None) -> Array:
    """`torch.softmax`, and ``aten._softmax``."""
    x = _wide(input, half_to_float, dtype)
    shifted: Any = np.exp(x - folds.max(x, dim, keepdims=True))
    made: Array = shifted / folds.sum(shifted, dim, keepdims=True)
    return made


def log_softmax(input: Any, dim: int, half_to_float: Any = False, *, dtype: Any = None) -> Array:
    """`torch.log_softmax`, and ``aten._log_softmax``."""
    x = _wide(input, half_to_float, dtype)
    shifted: Any = x - folds.max(x, dim, keepdims=True)
    made: Array = shifted - np.log(folds.sum(np.exp(shifted), dim, keepdims=True))
    return made


def _wide(x: Array, half_to_float: Any, dtype: Any) -> Any:
    return cast(x, FLOAT32 if half_to_float is True else _kind(dtype, x.dtype))


def layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None,
    eps: float = 1e-5,
) -> Array:  # fmt: skip
    """`torch.nn.functional.layer_norm`."""
    axes = tuple(range(-len(normalized_shape), 0))
    x = input - folds.mean(input, axes, keepdims=True)
    made: Any = x / np.sqrt(folds.var(input, axes, keepdims=True) + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias  # type: ignore[no-any-return]


def rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Array:
    """`torch.nn.functional.rms_norm`; `eps` is that of the type it is computed in."""
    axes = tuple(range(-len(normalized_shape), 0))
    kind = "float64" if input.dtype == "float64" else "float32"
    least = float(np.finfo(kind).eps) if eps is None else eps
    made: Any = input / np.sqrt(folds.mean(input * input, axes, keepdims=True) + least)
    return made if weight is None else made * weight  # type: ignore[no-any-return]


# -- products ----------------------------------------------------------------------------------


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """`torch.addmm`, and `torch.baddbmm`."""
    made: Any = products.matmul(mat1, mat2)
    made = made if alpha == 1 else elements(UFUNCS["multiply"], made, alpha)
    if beta == 0:
        return made  # type: ignore[no-any-return]
    return ELEMENTS["add"](made, input if beta == 1 else input * beta)  # type: ignore[no-any-return]


def linear(input: Any, weight: Any, bias: Any = None) -> Array:
    """`torch.nn.functional.linear`."""
    made = products.matmul(input, views.swapaxes(weight, -1, -2) if weight.ndim > 1 else weight)
    return made if bias is None else ELEMENTS["add"](made, bias)


def _scores(q: Any, k: Any, mask: Any, is_causal: bool, scale: float | None) -> Any:
    """Return products of queries and keys, with what a mask leaves out at negative infinity."""
    root = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores: Any = products.matmul(q, views.swapaxes(k, -1, -2)) * root
    if is_causal:
        rows, columns = scores.shape[-2:]
        at: Any = views.expand_dims(creation.arange(rows), 1)
        scores = where(at >= creation.arange(columns), scores, -math.inf)
    if mask is not None and mask.dtype.is_bool:
        return where(mask, scores, -math.inf)
    return scores if mask is None else scores + mask


def attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: float | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """``aten._scaled_dot_product_flash_attention_for_cpu``: and the logarithm of each row's sum."""
    if dropout_p:
        raise UnknownArrayFunction("attention that drops elements out")
    scores = _scores(query, key, attn_mask, is_causal, scale)
    top: Any = folds.max(scores, -1, keepdims=True)
    if attn_mask is not None:  # a row that sees nothing is 0
        top = where(top == -math.inf, 0.0, top)
    weights: Any = np.exp(scores - top)
    total: Any = folds.sum(weights, -1, keepdims=True)
    if attn_mask is not None:
        weights = weights / where(total == 0, 1.0, total)
    else:
        weights = weights / total
    made = products.matmul(weights, value)
    return made, cast(views.squeeze(np.log(total) + top, -1), FLOAT32)


def attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, out: Any, logsumexp: Any,
    dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """``aten._scaled_dot_product_flash_attention_for_cpu_backward``."""
    if dropout_p:
        raise UnknownArrayFunction("attention that drops elements out")
    root = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = _scores(query, key, attn_mask, is_causal, scale)
    weights: Any = np.exp(scores - views.expand_dims(logsumexp, -1))
    if attn_mask is not None:
        weights = where(scores == -math.inf, 0.0, weights)
    product: Any = products.matmul(grad_out, views.swapaxes(value, -1, -2))
    delta: Any = folds.sum(grad_out * out, -1, keepdims=True)
    change: Any = weights * (product - delta) * root
    return (
        products.matmul(change, key),
        products.matmul(views.swapaxes(change, -1, -2), query),
        products.matmul(views.swapaxes(weights, -1, -2), grad_out),
    )


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None,
) -> Array:  # fmt: skip
    """`torch.nn.functional.scaled_dot_product_attention`."""
    return attention(
        query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )[0]  # fmt: skip


def cross(input: Any, other: Any, *, dim: int | None = None) -> Array:
    """`torch.cross`; without `dim`, along the first dimension of three elements."""
    if dim is None:
        dim = next((k for k, n in enumerate(input.shape) if n == 3), -1)
    return linear_algebra.cross(input, other, axis=dim)


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    """`torch.linalg.vector_norm`."""
    floats_only("linalg.vector_norm", x)
    x = cast(x, _kind(dtype, x.dtype))
    return linear_algebra.vector_norm(x, axis=_axes(dim), keepdims=keepdim, ord=ord)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Array:
    """`torch.cdist`."""
    apart: Any = views.expand_dims(x1, -2) - views.expand_dims(x2, -3)
    return vector_norm(apart, p, -1)


# -- creation ----------------------------------------------------------------------------------


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Array:
    """`torch.full`."""
    kind = _kind(dtype, type_of_number(fill_value))
    return cast(creation.full(size, fill_value, str(kind)), kind)


def _filled(value: int) -> Callable[..., Array]:
    return lambda *size, dtype=None: full(
        sizes_given(size[0], size[1:]), value, dtype=_kind(dtype, FLOAT32)
    )


def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Array:
    """`torch.full_like`."""
    return full(list(input.shape), fill_value, dtype=_kind(dtype, input.dtype))


def _filled_like(value: int) -> Callable[..., Array]:
    return lambda input, *, dtype=None: full_like(input, value, dtype=dtype)


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Array:
    """`torch.arange`."""
    first, last = (0, start) if end is None else (start, end)
    is_whole = all(isinstance(x, int) for x in (first, last, step))
    return creation.arange(first, last, step, _kind(dtype, INDEX if is_whole else FLOAT32))


def _to(input: Any, dtype: Any = None) -> Array:
    return cast(input, _kind(dtype, input.dtype))


def _clone(input: Any, **_: Any) -> Array:
    """`torch.clone`: what is written into it leaves the other one as it is."""
    x = lift(input)
    return Array(x.shape, x.dtype, x.at)


def _same(input: Any) -> Array:
    return lift(input)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **ELEMENTS, **PARTS, **SHAPES, **ORDER, **WINDOWS,
    "sum": _summed(folds.sum), "prod": _summed(folds.prod), "mean": _mean, "var": var, "std": std,
    "var_mean": var_mean, "amax": _extreme(folds.max), "amin": _extreme(folds.min),
    "max": _with_position("max"), "min": _with_position("min"), "argmax": _position("max"),
    "argmin": _position("min"), "any": _truth(folds.any), "all": _truth(folds.all),
    "linalg_vector_norm": vector_norm, "cdist": cdist,
    "cumsum": _running(accumulations.cumsum), "cumprod": _running(accumulations.cumprod),
    "logsumexp": _logsumexp, "softmax": softmax, "_softmax": softmax, "log_softmax": log_softmax,
    "_log_softmax": log_softmax, "layer_norm": layer_norm, "rms_norm": rms_norm,
    "mm": products.matmul, "bmm": products.matmul, "matmul": products.matmul,
    "mv": products.matmul, "dot": products.matmul, "addmm": addmm, "baddbmm": addmm,
    **FACTORISATIONS,
    "cross": cross, "linalg_cross": lambda input, other, *, dim=-1: cross(input, other, dim=dim),
    "addmv": addmm, "linear": linear, "einsum": products.einsum,
    "conv1d": conv, "conv2d": conv, "conv3d": conv, "convolution": convolution,
    "conv_transpose1d": conv_transpose, "conv_transpose2d": conv_transpose,
    "conv_transpose3d": conv_transpose,
    "convolution_backward": convolution_backward,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
    "scaled_dot_product_attention": scaled_dot_product_attention,
    "tril": lambda input, diagonal=0: creation.tril(input, diagonal),
    "triu": lambda input, diagonal=0: creation.triu(input, diagonal),
    "full": full, "zeros": _filled(0), "ones": _filled(1), "full_like": full_like,
    "zeros_like": _filled_like(0), "ones_like": _filled_like(1), "arange": arange,
    "new_zeros": lambda input, size, *, dtype=None: full(size, 0, dtype=dtype or input.dtype),
    "new_ones": lambda input, size, *, dtype=None: full(size, 1, dtype=dtype or input.dtype),
    "new_full": lambda input, size, fill_value, *, dtype=None: full(
        size, fill_value, dtype=dtype or input.dtype
    ),
    "new_empty": lambda input, size, *, dtype=None: full(size, 0, dtype=dtype or input.dtype),
    "new_empty_strided": lambda input, size, stride, *, dtype=None: full(
        size, 0, dtype=dtype or input.dtype
    ),
    "empty": _filled(0), "empty_like": _filled_like(0),
    "fill": lambda input, value: full_like(input, value) if not isinstance(value, Array) else (
        expand(cast(value, input.dtype), input.shape)
    ),
    "copy": lambda input, src: expand(cast(src, input.dtype), input.shape),
    "scalar_tensor": lambda s, *, dtype=None: full((), s, dtype=dtype),
    "eye": lambda n, m=None, *, dtype=None: creation.eye(n, m, dtype=_kind(dtype, FLOAT32)),
    "iota": lambda length, *, start, step, dtype: creation.arange(
        start, start + length * step, step, dtype
    ),
    "_to_copy": _to, "convert_element_type": _to, "clone": _clone, "alias": _same, "detach": _same,
    "lift_fresh_copy": _same, "contiguous": _same, "positive": _same,
}  # fmt: skip
"""By the name that torch gives a function, or an operator of ``aten``."""
