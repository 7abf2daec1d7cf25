"""Checks of launch arguments: never a crash, never a silent copy.

A `Signature` is made once per kernel. `check` binds the symbolic dimensions and refuses
what the kernel was not compiled for, naming argument, expectation and what came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tile_api.tensors import TensorView, has_misleading_layout, is_tensor, view_of
from tile_core.dtypes import Kind
from tile_core.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    LaunchError,
    Note,
)
from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_read, storages_written
from tile_core.ir.evaluate import evaluate, free_variables
from tile_core.ir.expr import Extent, Var
from tile_core.ir.stmt import Kernel

# Element types whose bits mean the same to the runtime; a kernel takes either.
_FAMILIES = (
    frozenset({"float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz"}),
    frozenset({"float8_e5m2", "float8_e5m2fnuz"}),
    frozenset({"bool", "int8", "uint8"}),
    frozenset({"tfloat32", "float32"}),
    frozenset({"handle", "int64", "uint64"}),
)
_BYTES = frozenset({"int8", "uint8", "float4_e2m1fn_x2"})


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a kernel, and which of them the caller passes.

    Parameters
    ----------
    inputs
        Positions of the parameters the caller passes, in call order.
    untouched
        Positions whose tensors the body never reads or writes: None is accepted there.
    written
        Positions whose tensors the body may change: read-only arrays are refused there.
    """

    kernel: Kernel
    inputs: tuple[int, ...]
    untouched: frozenset[int]
    written: frozenset[int]

    @classmethod
    def of(cls, kernel: Kernel) -> Signature:
        """Derive the signature of `kernel` from its parameters and the effects of its body."""
        written = storages_written(kernel.body)
        touched = written | storages_read(kernel.body)
        positions = range(len(kernel.params))
        return cls(
            kernel,
            tuple(i for i in positions if i not in kernel.outputs),
            frozenset(i for i in positions if kernel.params[i] not in touched),
            frozenset(i for i in positions if kernel.params[i] in written),
        )

    def check(self, args: tuple[Any, ...], device: str) -> dict[Var, int]:
        """Return the values of symbols and scalar parameters, or raise a `LaunchError`.

        Parameters
        ----------
        args
            One per entry of `inputs`.
        device
            Where tensors must be: ``"cpu"``, or a kind such as ``"cuda"``.
        """
        if len(args) != len(self.inputs):
            raise self._wrong_count(len(args))
        values: dict[Var, Any] = {}
        views: list[tuple[Buffer, TensorView]] = []
        for position, arg in zip(self.inputs, args, strict=True):
            param = self.kernel.params[position]
            if isinstance(param, Var):
                values[param] = self._scalar(param, arg)
            elif not (arg is None and position in self.untouched):
                view = self._tensor(param, arg, position in self.written)
                self._check_device(param, view, device, views)
                views.append((param, view))
        scalars = dict(values)
        self._bind(views, values)
        for param, view in views:
            self._check_shape(param, view, values)
            self._check_strides(param, view, values)
        return values | scalars

    def output_shapes(self, values: Mapping[Var, Any]) -> list[tuple[int, ...]]:
        """Return the extents of the output tensors, in `Kernel.outputs` order."""
        shapes = []
        for position in self.kernel.outputs:
            param = self.kernel.params[position]
            assert isinstance(param, Buffer), "outputs are tensors"
            missing = [v for e in param.shape for v in free_variables(e) if v not in values]
            if missing:
                raise ArgumentShapeError(
                    f"{self._name(param)}: no argument tells the extent {missing[0].name!r} of "
                    "this output",
                    hint="pass the tensor yourself, or use the symbol in an input's shape",
                )
            shapes.append(tuple(int(evaluate(e, values)) for e in param.shape))
        return shapes

    # Parts ---------------------------------------------------------------------------------

    def _name(self, param: Buffer | Var, field: str = "") -> str:
        return f"{self.kernel.name}.{param.name}{field}"

    def _declared(self, param: Buffer | Var) -> tuple[Note, ...]:
        return (Note("the parameter is declared here", param.span),) if param.span else ()

    def _wrong_count(self, got: int) -> LaunchError:
        names = ", ".join(self.kernel.params[p].name for p in self.inputs)
        returned = [self.kernel.params[p].name for p in self.kernel.outputs]
        notes = (Note(f"{', '.join(returned)} is returned, not passed"),) if returned else ()
        return ArgumentCountError(
            f"{self.kernel.name}({names}) takes {len(self.inputs)} arguments, got {got}",
            notes=notes,
        )

    def _scalar(self, param: Var, arg: Any) -> Any:
        kind = param.dtype.kind
        if param.dtype.is_handle:
            return self._address(param, arg)
        if is_tensor(arg) and getattr(arg, "shape", None) == () and hasattr(arg, "item"):
            arg = arg.item()
        is_bool = isinstance(arg, bool) or type(arg).__name__ in ("bool_", "bool")
        is_int = hasattr(arg, "__index__") and not is_bool
        if kind is Kind.BOOL:
            accepted = is_bool
        elif kind is Kind.FLOAT:
            accepted = (isinstance(arg, float) or is_int or hasattr(arg, "__float__")) and not (
                is_bool or is_tensor(arg) or isinstance(arg, str)
            )
        else:
            accepted = is_int
        if not accepted:
            raise ArgumentTypeError(
                f"{self._name(param)}: expected {_article(kind.value)} scalar ({param.dtype}), "
                f"got {type(arg).__name__}",
                notes=self._declared(param),
            )
        if kind in (Kind.INT, Kind.UINT):
            return self._integer(param, int(arg))
        return bool(arg) if kind is Kind.BOOL else float(arg)

    def _integer(self, param: Var, value: int) -> int:
        from tile_core.ir.arith import integer_bounds

        low, high = integer_bounds(param.dtype)
        if not low <= value <= high:
            raise ArgumentTypeError(
                f"{self._name(param)}: {value} does not fit {param.dtype} ({low}..{high})",
                notes=self._declared(param),
            )
        return value

    def _address(self, param: Var, arg: Any) -> int:
        if is_tensor(arg):
            return view_of(arg).address
        if hasattr(arg, "__index__"):
            return int(arg)
        raise ArgumentTypeError(
            f"{self._name(param)}: expected an address (int) or a tensor, got {type(arg).__name__}"
        )

    def _tensor(self, param: Buffer, arg: Any, is_written: bool) -> TensorView:
        if not is_tensor(arg):
            hint = "pass a NumPy array, a torch tensor or another DLPack producer"
            raise ArgumentTypeError(
                f"{self._name(param)}: expected a tensor, got {type(arg).__name__}",
                notes=self._declared(param),
                hint=hint,
            )
        reason = has_misleading_layout(arg)
        if reason is not None:
            raise ArgumentLayoutError(f"{self._name(param)}: the tensor is not plain: {reason}")
        view = view_of(arg)
        if is_written and not getattr(getattr(arg, "flags", None), "writeable", True):
            raise ArgumentLayoutError(
                f"{self._name(param)}: the kernel writes it, the array is read-only",
                hint="pass x.copy(), or clear the flag with x.setflags(write=True)",
            )
        if not _dtypes_match(param.dtype, view.dtype):
            raise ArgumentDtypeError(
                f"{self._name(param, '.dtype')}: expected {param.dtype}, got {view.dtype}",
                notes=self._declared(param),
                hint=_dtype_hint(param, view),
            )
        return view

    def _check_device(
        self, param: Buffer, view: TensorView, device: str, before: list[tuple[Buffer, TensorView]]
    ) -> None:
        if view.device.partition(":")[0] != device:
            raise ArgumentLayoutError(
                f"{self._name(param, '.device')}: the kernel runs on {device}, the tensor is on "
                f"{view.device}",
                hint=f"move it there, or compile with target={view.device.partition(':')[0]!r}",
            )
        for other, seen in before[:1]:
            if seen.device != view.device:
                raise ArgumentLayoutError(
                    f"{self._name(param, '.device')}: {view.device}, but {other.name} is on "
                    f"{seen.device}"
                )
        if view.address == 0 and all(view.shape):
            raise ArgumentLayoutError(f"{self._name(param, '.data')}: the address is null")
        if view.address % max(1, param.dtype.bits // 8):
            raise ArgumentLayoutError(
                f"{self._name(param, '.data')}: the address is not a multiple of the element size",
                hint="pass a tensor that starts at an element boundary",
            )

    def _bind(self, views: list[tuple[Buffer, TensorView]], values: dict[Var, Any]) -> None:
        """Give symbols their values: plain dimensions first, then strides, then solved ones."""
        for param, view in views:
            if len(view.shape) != param.rank:
                raise ArgumentShapeError(
                    f"{self._name(param, '.ndim')}: expected {param.rank} dimensions "
                    f"{_spelt(param.shape)}, got {len(view.shape)} {view.shape}",
                    notes=self._declared(param),
                )
            for extent, got in zip(param.shape, logical_shape(param, view), strict=True):
                if isinstance(extent, Var):
                    values.setdefault(extent, got)
        for param, view in views:
            if param.strides is not None:
                for stride, got in zip(param.strides, logical_strides(param, view), strict=True):
                    if isinstance(stride, Var):
                        values.setdefault(stride, got)
        for param, view in views:
            for extent, got in zip(param.shape, logical_shape(param, view), strict=True):
                _solve(extent, got, values)

    def _check_shape(self, param: Buffer, view: TensorView, values: Mapping[Var, Any]) -> None:
        for axis, (extent, got) in enumerate(
            zip(param.shape, logical_shape(param, view), strict=True)
        ):
            want = evaluate(extent, values) if _is_known(extent, values) else got
            packed_tail = param.dtype.packing > 1 and axis == param.rank - 1
            if want == got or (packed_tail and got == want + want % 2):
                continue
            spelt = "" if isinstance(extent, int) else f" ({_spelt((extent,))[1:-1]})"
            raise ArgumentShapeError(
                f"{self._name(param, f'.shape[{axis}]')}: expected {want}{spelt}, got {got}",
                notes=self._declared(param),
                hint=None if isinstance(extent, int) else "the same symbol must have one value",
            )

    def _check_strides(self, param: Buffer, view: TensorView, values: Mapping[Var, Any]) -> None:
        if 0 in view.shape:
            return
        got_all = logical_strides(param, view)
        want_all = _wanted_strides(param, logical_shape(param, view), values)
        for axis, (want, got) in enumerate(zip(want_all, got_all, strict=True)):
            if want != got and view.shape[axis] != 1:
                contiguous = param.strides is None
                raise ArgumentLayoutError(
                    f"{self._name(param, f'.strides[{axis}]')}: expected {want}, got {got}",
                    notes=self._declared(param),
                    hint="pass x.contiguous(), or declare the parameter as T.StridedTensor"
                    if contiguous
                    else None,
                )


def _article(kind: str) -> str:
    return {"int": "an int", "uint": "an int"}.get(kind, f"a {kind}")


def _spelt(shape: tuple[Extent, ...]) -> str:
    from tile_core.ir.names import Names
    from tile_core.ir.print_expr import print_extent

    return f"({', '.join(print_extent(e, Names()) for e in shape)})"


def _dtypes_match(want: Any, got: str) -> bool:
    if want.packing > 1:
        return got in _BYTES
    if want.base.startswith("float6") or want.base == "float4_e2m1_unpacked":
        return got in _BYTES or got == want.facts.storage
    return want == got or any(want in family and got in family for family in _FAMILIES)


def _dtype_hint(param: Buffer, view: TensorView) -> str | None:
    if param.dtype.packing > 1:
        return "pass bytes that hold two elements each, the first in the low half"
    return f"convert it first, for example x.to(torch.{param.dtype}) or x.astype({param.dtype!r})"


def logical_shape(param: Buffer, view: TensorView) -> tuple[int, ...]:
    """Return the extents in elements of the parameter: packed bytes count twice."""
    if param.dtype.packing == 1 or not view.shape:
        return view.shape
    return (*view.shape[:-1], view.shape[-1] * param.dtype.packing)


def logical_strides(param: Buffer, view: TensorView) -> tuple[int, ...]:
    """Return the strides in elements of the parameter: packed bytes count twice."""
    if param.dtype.packing == 1 or not view.shape:
        return view.strides
    return (*(s * param.dtype.packing for s in view.strides[:-1]), view.strides[-1])


def _wanted_strides(
    param: Buffer, shape: tuple[int, ...], values: Mapping[Var, Any]
) -> tuple[int, ...]:
    if param.strides is not None:
        return tuple(int(evaluate(s, values)) for s in param.strides)
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _is_known(extent: Extent, values: Mapping[Var, Any]) -> bool:
    return all(v in values for v in free_variables(extent))


def _solve(extent: Extent, got: int, values: dict[Var, Any]) -> None:
    """Solve a linear extent such as ``m + 1`` or ``2 * m`` for its one unknown symbol."""
    unknown = [v for v in free_variables(extent) if v not in values]
    if len(unknown) != 1:
        return
    (var,) = unknown
    at0, at1 = (evaluate(extent, values | {var: x}) for x in (0, 1))
    slope = at1 - at0
    if slope and (got - at0) % slope == 0:
        candidate = (got - at0) // slope
        if evaluate(extent, values | {var: candidate}) == got:
            values[var] = candidate
