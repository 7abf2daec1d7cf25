"""Small functions that programs written for other compilers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.control import emit_jump
from tile_api.frontend.dtypes import dtype
from tile_api.language.allocate import alloc_buffer
from tile_api.language.loops import loop_break
from tile_api.language.symbols import Var
from tile_api.language.tensor import ptr
from tile_api.language.views import make_tensor, view
from tile_core.errors import FrontendTypeError
from tile_core.ir.expr import AddressOf

__all__ = [
    "AnyDType", "Ptr", "SizeVar", "allocate", "break_loop", "buffer_store", "continue_loop",
    "decl_buffer", "ignore_loop_partition", "meta_var", "sblock_alloc_buffer", "sblock_attr",
    "tvm_thread_invariant", "type_annotation",
]  # fmt: skip


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> Any:
    """Return a buffer: a new one, or with `data` one at that address.

    Parameters
    ----------
    data
        The `data` of another buffer, of which the result is a view, or any address.
    strides
        With an address only.
    elem_offset, align, offset_factor, buffer_type, axis_separators
        Accepted for compatibility and dropped.
    """
    if data is None:
        return alloc_buffer(shape, dtype, scope=scope)
    if isinstance(data, AddressOf):
        return view(data.buffer, shape, dtype)
    return make_tensor(data, shape, dtype, strides)


def buffer_store(buffer: Any, value: Any, indices: Any) -> None:
    """Store `value` at ``buffer[indices]``."""
    buffer[tuple(indices)] = value


def continue_loop() -> None:
    """Start the next iteration of the innermost serial or `while` loop: `continue`, a function."""
    emit_jump(current(), "continue")


def allocate(
    extents: Any, dtype: Any, scope: str = "global", condition: Any = None, annotations: Any = None
) -> Any:
    """Allocate a buffer; `T.alloc_buffer` in TVM's spelling.

    Parameters
    ----------
    condition, annotations
        Accepted for compatibility and dropped.
    """
    return alloc_buffer(extents, dtype, scope=scope)


def identity(value: Any) -> Any:
    """Return `value`: a hint to another compiler."""
    return value


def type_annotation(spec: Any) -> str:
    """Return the name of an element type, the first argument of `T.tvm_access_ptr`."""
    return str(dtype(spec))


def sblock_attr(attrs: Mapping[str, Any]) -> None:
    """Accept attributes of a block of another compiler and drop them.

    Raises
    ------
    FrontendTypeError
        If they are not a dictionary.
    """
    if not isinstance(attrs, Mapping):
        raise FrontendTypeError(
            f"attributes are a dictionary, got {attrs!r}",
            hint='write T.sblock_attr({"name": value})',
        )


def tvm_thread_invariant(cond: Any) -> Any:
    """Return `cond`: a hint to another compiler."""
    return cond


ignore_loop_partition = meta_var = identity
sblock_alloc_buffer = alloc_buffer
break_loop = loop_break
Ptr = ptr
SizeVar = Var
AnyDType = str | dtype
