"""Declarations of tensors and pointers: `T.Tensor`, `T.StridedTensor`, `T.ptr` and their like."""

from __future__ import annotations

import warnings
from typing import Any

from tile_api.frontend.builder import KernelWarning, current, here
from tile_api.frontend.dtypes import dtype as dtype_class
from tile_api.frontend.types import PointerSpec, TensorSpec, as_dtype, tensor_spec
from tile_api.frontend.values import BufferValue, as_value
from tile_api.frontend.vector_buffers import buffer_value
from tile_core.errors import FrontendTypeError, FrontendValueError, ShapeMismatch
from tile_core.ir.buffer import Buffer as BufferNode
from tile_core.ir.buffer import Scope
from tile_core.ir.expr import Expr


def _at_address(spec: TensorSpec, data: Any, name: str = "view") -> BufferValue:
    """Return the tensor that `spec` describes at the address `data`."""
    if isinstance(data, BufferValue):
        data = data.data
    address = as_value(data)
    if not (address.dtype.is_handle or str(address.dtype) in ("int64", "uint64")):
        raise FrontendTypeError(
            f"a tensor needs an address to lie at, got a value of {address.dtype}",
            span=here(),
            hint="pass buffer.data, a T.ptr parameter, or an element of a table of addresses",
        )
    builder = current()
    node = BufferNode(
        builder.take_hint(name),
        spec.shape,
        spec.dtype,
        spec.scope,
        spec.strides,
        origin=address,
        span=builder.span,
    )
    return buffer_value(node, spec.lanes)


class TensorType:
    """The callable behind `T.Tensor`, and `T.SharedBuffer` and its like, which lie elsewhere.

    ``T.Tensor(shape, dtype)`` and ``T.Tensor[shape, dtype]`` declare a parameter;
    ``T.Tensor(shape, dtype, data=address)`` makes a tensor of memory that exists.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> n = T.dynamic("n")
    >>> @T.prim_func
    ... def twice(A: T.Tensor((n, 4), "float32"), B: T.Tensor[(n, 4), "float32"]):
    ...     with T.Kernel(n, threads=32) as row:
    ...         for i in T.Parallel(4):
    ...             B[row, i] = A[row, i] * 2
    >>> tile.compile(twice, out_idx=[-1], target="cpu")(np.ones((1, 4), "float32"))
    array([[2., 2., 2., 2.]], dtype=float32)
    """

    def __init__(self, name: str, scope: Scope) -> None:
        self._name, self._scope = name, scope

    def __call__(
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        scope: str | None = None,
        *,
        strides: Any = None,
    ) -> Any:
        """Declare a contiguous row-major tensor.

        Parameters
        ----------
        shape
            An int, an expression or a sequence of them, in elements.
        data
            An address: return a tensor that lies there instead of a declaration.
        """
        spec = tensor_spec(shape, dtype, strides=strides, scope=scope, default_scope=self._scope)
        return spec if data is None else _at_address(spec, data)

    def __getitem__(self, item: Any) -> TensorSpec:
        """Declare a tensor: ``T.Tensor[shape, dtype]`` or ``T.Tensor[(N,)]``."""
        is_pair = isinstance(item, tuple) and len(item) == 2
        if is_pair and (isinstance(item[1], (str, type)) or isinstance(item[0], (tuple, list))):
            return tensor_spec(*item, default_scope=self._scope)
        return tensor_spec(item, default_scope=self._scope)

    def from_ptr(self, data: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> Any:
        """Return the tensor of `shape` that lies at the address `data`."""
        return self(shape, dtype, data, strides=strides)

    def __repr__(self) -> str:
        return f"T.{self._name}"


class StridedTensorType(TensorType):
    """The callable behind `T.StridedTensor`.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> s = T.dynamic("s")
    >>> @T.prim_func
    ... def copied(A: T.StridedTensor((4,), (s,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i]
    >>> tile.compile(copied, out_idx=[-1], target="cpu")(np.arange(8, dtype="float32")[::2])
    array([0., 2., 4., 6.], dtype=float32)
    """

    def __call__(  # type: ignore[override]
        self,
        shape: Any,
        strides: Any,
        dtype: Any = "float32",
        data: Any = None,
        scope: str | None = None,
    ) -> Any:
        """Declare a tensor with strides, in elements; symbols are bound at the call.

        Raises
        ------
        ShapeMismatch
            If shape and strides differ in rank.
        """
        return super().__call__(shape, dtype, data, scope, strides=strides)

    def __getitem__(self, item: Any) -> TensorSpec:
        """Declare a tensor: ``T.StridedTensor[shape, strides, dtype]``."""
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise ShapeMismatch(
                "T.StridedTensor[...] takes a shape, strides and a dtype",
                span=here(),
                hint='write T.StridedTensor[(M, N), (s, 1), "float32"]',
            )
        shape, strides, *rest = item
        return tensor_spec(shape, *rest, strides=strides, default_scope=self._scope)


class BufferType(TensorType):
    """The callable behind `T.Buffer`, the deprecated spelling of `T.Tensor`.

    Examples
    --------
    >>> import warnings
    >>> import tile_api.language as T
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     buffer = T.Buffer((4, 8), "float16")
    >>> str(buffer.dtype), str(said[0].message)
    ('float16', 'T.Buffer is deprecated: use T.Tensor')
    """

    def __call__(  # type: ignore[override]
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = None,
        scope: str | None = None,
        align: int = 0,
        offset_factor: int = 0,
        buffer_type: str = "",
        axis_separators: Any = None,
    ) -> Any:
        """Declare a tensor; alignment and offset factors are accepted and ignored.

        Raises
        ------
        FrontendValueError
            If a nonzero `elem_offset` is given: slice the tensor instead.
        """
        warnings.warn("T.Buffer is deprecated: use T.Tensor", KernelWarning, stacklevel=2)
        if elem_offset is not None and not (isinstance(elem_offset, int) and elem_offset == 0):
            hint = "pass the address of the first element: T.make_tensor(address, shape, dtype)"
            raise FrontendValueError("elem_offset is not supported", span=here(), hint=hint)
        strides = strides or None
        return super().__call__(shape, dtype, data, scope, strides=strides)

    def __getitem__(self, item: Any) -> TensorSpec:
        warnings.warn("T.Buffer is deprecated: use T.Tensor", KernelWarning, stacklevel=2)
        return super().__getitem__(item)


Tensor = TensorType("Tensor", Scope.GLOBAL)
StridedTensor = StridedTensorType("StridedTensor", Scope.GLOBAL)
Buffer = BufferType("Buffer", Scope.GLOBAL)
SharedBuffer = TensorType("SharedBuffer", Scope.SHARED)
FragmentBuffer = TensorType("FragmentBuffer", Scope.FRAGMENT)
LocalBuffer = TensorType("LocalBuffer", Scope.LOCAL)


class _PointerType(dtype_class):
    """`T.ptr`: the element type of addresses; called, the annotation of a raw pointer.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(address: T.ptr("float32")):
    ...     A = T.make_tensor(address, (4,), "float32")
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             A[i] = A[i] * 2
    >>> "at<float>(address)" in tile.lower(twice, target="cuda:sm_80").kernel_source
    True
    """

    __slots__ = ()

    def __call__(  # type: ignore[override]
        self, dtype: Any = None, storage_scope: str = "global", is_size_var: bool = False, **_: Any
    ) -> Any:
        """Return the annotation of a pointer parameter to elements of `dtype`."""
        from tile_api.frontend.types import as_scope

        known = None if dtype is None else as_dtype(dtype, "what the pointer points to")
        return PointerSpec(known, as_scope(storage_scope))


ptr = _PointerType("handle")
handle = ptr


PrimExpr = Expr

__all__ = [
    "Buffer", "FragmentBuffer", "LocalBuffer", "PrimExpr", "SharedBuffer", "StridedTensor",
    "Tensor", "handle", "ptr",
]  # fmt: skip
