"""torch's views, parts and joins of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_api.arrays.capturing import indexing, joins, views
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import lift
from tile_api.arrays.capturing.torch_elements import cast, promoted
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.index_bounds import clipped
from tile_core.errors import UnknownArrayFunction


def sizes_given(first: Any, rest: Sequence[Any]) -> list[int]:
    """Return sizes that were given as one list, or each by itself."""
    return list(first) if isinstance(first, (list, tuple)) else [first, *rest]


def transpose(input: Any, dim0: int, dim1: int) -> Array:
    """`torch.transpose`."""
    x = lift(input)
    return x if not x.ndim and {dim0, dim1} <= {0, -1} else views.swapaxes(x, dim0, dim1)


def view(input: Any, size: Any, *rest: int) -> Array:
    """`torch.reshape`, and ``aten.view``."""
    if isinstance(size, str):
        raise UnknownArrayFunction("a view of bits as another type")
    return views.reshape(input, sizes_given(size, rest))


def permute(input: Any, dims: Any, *rest: int) -> Array:
    """`torch.permute`."""
    return views.transpose(input, sizes_given(dims, rest))


def expand(input: Any, size: Any, *rest: int) -> Array:
    """``aten.expand``: -1 keeps a size."""
    sizes = sizes_given(size, rest)
    own = [1] * (len(sizes) - input.ndim) + list(input.shape)
    return views.broadcast_to(input, [n if k == -1 else k for k, n in zip(sizes, own, strict=True)])


def squeeze(input: Any, dim: Any = None) -> Array:
    """`torch.squeeze`: dimensions of other sizes than 1 stay."""
    asked = [dim] if isinstance(dim, int) else range(input.ndim) if dim is None else dim
    gone = [k % input.ndim for k in asked if input.ndim and input.shape[k] == 1]
    return views.squeeze(input, gone)


def part(input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Array:
    """``aten.slice``."""
    along = views.axis_of(dim, input.ndim)
    return indexing.taken(input, (*[slice(None)] * along, slice(start, end, step)))


def select(input: Any, dim: int, index: int) -> Array:
    """`torch.select`."""
    along = views.axis_of(dim, input.ndim)
    return indexing.taken(input, (*[slice(None)] * along, index))


def split(tensor: Any, split_size: Any, dim: int = 0) -> list[Array]:
    """`torch.split` into parts of a size, or of several."""
    size = int(tensor.shape[dim])
    each = [split_size] * -(-size // split_size) if isinstance(split_size, int) else split_size
    ends = [sum(each[: k + 1]) for k in range(len(each))]
    return [part(tensor, dim, end - n, min(end, size)) for end, n in zip(ends, each, strict=True)]


def unbind(input: Any, dim: int = 0) -> list[Array]:
    """`torch.unbind`."""
    return [select(input, dim, k) for k in range(int(input.shape[dim]))]


def cat(tensors: Sequence[Any], dim: int = 0) -> Array:
    """`torch.cat`: vectors of no elements fit everywhere."""
    kept = [x for x in tensors if x.ndim != 1 or x.size] or list(tensors)
    kind = promoted(*tensors)
    return joins.concatenate([cast(x, kind) for x in kept], dim)


def stack(tensors: Sequence[Any], dim: int = 0) -> Array:
    """`torch.stack`."""
    kind = promoted(*tensors)
    return joins.stack([cast(x, kind) for x in tensors], dim)


def constant_pad_nd(input: Any, pad: Sequence[int], value: Any = 0) -> Array:
    """`torch.nn.functional.pad` with a constant; negative widths cut off."""
    widths = [(0, 0)] * input.ndim
    for k in range(len(pad) // 2):
        before, after = pad[2 * k : 2 * k + 2]
        axis = input.ndim - 1 - k
        size = int(input.shape[axis])
        input = part(input, axis, max(0, -before), size - max(0, -after))
        widths[axis] = (max(0, before), max(0, after))
    return joins.pad(input, widths, constant_values=value)


def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Array:
    """`torch.slice_scatter`: an array with a part from elsewhere."""
    along = views.axis_of(dim, input.ndim)
    first, last, _ = slice(start, end, step).indices(int(input.shape[along]))
    if last <= first:
        return input  # type: ignore[no-any-return]

    def at(indices: Indices) -> Expr:
        here = clipped(eq.subtract(indices[along], const(first)), 0, last - first - 1)
        inside = eq.make(
            "and", eq.make("le", const(first), indices[along]),
            eq.make("lt", indices[along], const(last)),
        )  # fmt: skip
        if step != 1:
            rest = eq.integer_part("mod", here, const(step))
            inside = eq.make("and", inside, eq.make("eq", rest, const(0)))
        place = eq.integer_part("floordiv", here, const(step))
        place = const(0) if src.shape[along] == 1 else place
        new = src.read_as(input.dtype, (*indices[:along], place, *indices[along + 1 :]))
        return eq.where(inside, new, input.at(indices))

    return Array(input.shape, input.dtype, at)


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Array:
    """`torch.select_scatter`."""
    at = index % int(input.shape[dim])
    return slice_scatter(input, views.expand_dims(src, dim), dim, at, at + 1)


def index(input: Any, indices: Sequence[Any]) -> Array:
    """``aten.index``: None stands for all of a dimension."""
    return indexing.taken(input, tuple(slice(None) if i is None else i for i in indices))


def repeat(input: Any, repeats: Any, *rest: int) -> Array:
    """``aten.repeat``."""
    return views.tile(input, sizes_given(repeats, rest))


def flip(input: Any, dims: Any, *rest: int) -> Array:
    """`torch.flip`."""
    return views.flip(input, tuple(sizes_given(dims, rest)))


def tile(input: Any, dims: Any, *rest: int) -> Array:
    """`torch.tile`."""
    return views.tile(input, sizes_given(dims, rest))


def getitem(input: Any, key: Any) -> Any:
    """Return a part of an array, or one of several results."""
    return indexing.taken(input, key) if isinstance(input, Array) else input[key]


def embedding(
    weight: Any, indices: Any, *_: Any, norm_type: float | None = None, max_norm: Any = None,
    **others: Any,
) -> Any:  # fmt: skip
    """`torch.embedding`; and that of `torch.nn.functional`, which takes the indices first."""
    if norm_type is not None:
        weight, indices = indices, weight
    if max_norm is not None:
        raise UnknownArrayFunction(
            "torch.nn.functional.embedding: max_norm writes into the weights",
            hint="bound the norms of rows before",
        )
    return indexing.take(weight, indices, 0)


SHAPES: dict[str, Any] = {
    "view": view, "_unsafe_view": view, "reshape": view, "permute": permute, "expand": expand,
    "transpose": transpose, "swapaxes": transpose, "movedim": views.moveaxis,
    "t": lambda input: views.transpose(input), "unsqueeze": views.expand_dims, "squeeze": squeeze,
    "flatten": lambda input, start_dim=0, end_dim=-1: views.reshape(
        input, [*input.shape[:start_dim], -1, *input.shape[end_dim % input.ndim + 1 :]]
    ),
    "slice": part, "select": select, "narrow": lambda input, dim, start, length: part(
        input, dim, start, start + length
    ),
    "split": split, "split_with_sizes": split, "unbind": unbind,
    "chunk": lambda input, chunks, dim=0: split(input, -(-int(input.shape[dim]) // chunks), dim),
    "cat": cat, "concat": cat, "stack": stack, "flip": flip, "roll": views.roll,
    "repeat": repeat, "tile": tile, "constant_pad_nd": constant_pad_nd,
    "slice_scatter": slice_scatter, "select_scatter": select_scatter, "index": index,
    "index_select": lambda input, dim, index: indexing.take(input, index, dim),
    "embedding": embedding,
    "gather": lambda input, dim, index: indexing.take_along_axis(input, index, dim),
    "diagonal": lambda input, offset=0, dim1=0, dim2=1: joins.diagonal(input, offset, dim1, dim2),
    "getitem": getitem,
}  # fmt: skip
"""By the name that torch gives a function, or an operator of ``aten``."""
