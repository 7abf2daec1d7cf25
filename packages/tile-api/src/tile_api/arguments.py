"""Checks of launch arguments: never a crash, never a silent copy.

A `Signature` is made once per kernel. `check` binds the symbolic dimensions and refuses
what the kernel was not compiled for, naming argument, expectation and what came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tile_api.contracts import check_contracts
from tile_api.geometry import (
    Bound,
    bind_symbols,
    check_rank,
    check_shape,
    check_strides,
    check_symbols,
    declared,
    value_of,
)
from tile_api.scalars import scalar_value
from tile_api.tensors import TensorView, torch_device, view_of
from tile_core.dtypes import DType
from tile_core.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    LaunchError,
    Note,
)
from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_read, storages_written
from tile_core.ir.expr import Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel
from tile_core.records import dataclass
from tile_launch.dtypes import explained

# Element types whose bits mean the same to the runtime; a kernel takes either.
_FAMILIES = (
    frozenset({"float8_e4m3fn", "float8_e4m3fnuz"}),
    frozenset({"float8_e5m2", "float8_e5m2fnuz"}),
    frozenset({"bool", "int8", "uint8"}),
    frozenset({"tfloat32", "float32"}),
    frozenset({"handle", "int64", "uint64"}),
)
_BYTES = frozenset({"int8", "uint8", "float4_e2m1fn_x2"})
# Types of a byte or less that some libraries do not know: their bits travel as plain bytes.
_AS_BYTES = frozenset(
    {
        "float8_e3m4",
        "float8_e4m3b11fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1_unpacked",
    }
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks found out.

    Parameters
    ----------
    values
        Of symbols and scalar parameters.
    args
        What to hand to the executable, one per entry of `Signature.inputs`: NumPy arrays,
        torch tensors, Python numbers, None.
    """

    values: Mapping[Var, Any]
    args: tuple[Any, ...]


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

    def check(
        self,
        args: tuple[Any, ...],
        device: str,
        scalar: Callable[[str, Var, Any], Any] = scalar_value,
    ) -> Checked:
        """Return the values of symbols and what to pass on, or raise a `LaunchError`.

        Parameters
        ----------
        args
            One per entry of `inputs`: arguments, or a `TensorView` that stands for a tensor.
        device
            Where tensors must be: ``"cpu"``, or a kind such as ``"cuda"`` or ``"hip"``.
        scalar
            ``scalar(name, parameter, argument)`` returns a scalar as a number, or None if its
            value is not known yet.
        """
        if len(args) != len(self.inputs):
            raise self._wrong_count(len(args))
        scalars: dict[Var, Any] = {}
        tensors: list[Bound] = []
        written: list[bool] = []
        passed: list[Any] = []
        for position, arg in zip(self.inputs, args, strict=True):
            param = self.kernel.params[position]
            if isinstance(param, Var):
                scalars[param] = scalar(self.name(param), param, arg)
                passed.append(scalars[param])
            elif arg is None and position in self.untouched:
                passed.append(None)
            else:
                view = self._tensor(position, arg)
                self._check_place(param, view, device, tensors)
                tensors.append((param, view))
                written.append(position in self.written)
                passed.append(arg if view.array is None else view.array)
        values = {var: value for var, value in scalars.items() if value is not None}
        for param, view in tensors:
            check_rank(self.name(param), param, view)
        bind_symbols(tensors, values)
        if any(arg is None for arg in passed):
            self._bind_left_out(values, passed)
        check_symbols(self.kernel.name, values)
        check_contracts(self.kernel.name, values, [param for param, _ in tensors])
        for tensor, is_written in zip(tensors, written, strict=True):
            check_shape(self.name(tensor[0]), tensor, values, tensors)
            check_strides(self.name(tensor[0]), tensor, values, written=is_written)
        return Checked(values, tuple(passed))

    def scalar(self, position: int, arg: Any) -> Any:
        """Return the scalar argument at `position` as a Python number, or raise."""
        param = self.kernel.params[position]
        assert isinstance(param, Var), "a scalar parameter"
        return scalar_value(self.name(param), param, arg)

    def output_shapes(self, values: Mapping[Var, Any]) -> list[tuple[int, ...]]:
        """Return the extents of the output tensors, in `Kernel.outputs` order."""
        return [self._output_shape(position, values) for position in self.kernel.outputs]

    def name(self, param: Buffer | Var) -> str:
        """Return what messages call a parameter."""
        return f"{self.kernel.name}.{param.name}"

    # Parts ---------------------------------------------------------------------------------

    def _bind_left_out(self, values: dict[Var, Any], passed: list[Any]) -> None:
        """Give a value to symbols of the body that only tensors tell for which None was passed.

        The extent of a single tensor is 0: without it there are no elements. What several
        tensors should agree on, or the tensor holds in another form, is unknown.
        """
        used = {node for node in walk(self.kernel.body) if isinstance(node, Var)}
        absent = {p for p, arg in zip(self.inputs, passed, strict=True) if arg is None}
        for symbol in symbols_of(self.kernel):
            if symbol not in used or symbol in values:
                continue
            tellers = [p for p in range(len(self.kernel.params)) if self._mentions(p, symbol)]
            left_out = [p for p in tellers if p in absent]
            if not left_out:
                continue
            param = self.kernel.params[left_out[0]]
            if len(tellers) > 1 or not (
                isinstance(param, Buffer) and any(extent is symbol for extent in param.shape)
            ):
                raise ArgumentShapeError(
                    f"{self.name(param)}: None was passed, and no other argument tells the "
                    f"value of {symbol.name}",
                    notes=declared(param),
                    hint="pass a tensor of that shape: the kernel does not read it",
                )
            values[symbol] = 0

    def _mentions(self, position: int, symbol: Var) -> bool:
        """Whether the extents or strides of a parameter depend on `symbol`."""
        param = self.kernel.params[position]
        sizes = (*param.shape, *(param.strides or ())) if isinstance(param, Buffer) else ()
        return any(symbol in free_variables(as_expr(size)) for size in sizes)

    def _output_shape(self, position: int, values: Mapping[Var, Any]) -> tuple[int, ...]:
        param = self.kernel.params[position]
        assert isinstance(param, Buffer), "outputs are tensors"
        shape = []
        for axis, extent in enumerate(param.shape):
            size = value_of(extent, values)
            if size is None:
                unknown = [v.name for v in free_variables(extent) if v not in values]
                raise ArgumentShapeError(
                    f"{self.name(param)}.shape[{axis}]: no argument tells the value of "
                    f"{', '.join(unknown)}",
                    notes=declared(param),
                    hint="pass the tensor yourself, or use the symbol in the shape of an input",
                )
            if size < 0:
                raise ArgumentShapeError(
                    f"{self.name(param)}.shape[{axis}]: {size} is negative",
                    notes=declared(param),
                    hint="check the sizes that this extent is computed from",
                )
            shape.append(size)
        if math.prod(shape) * param.dtype.bits >> 65:
            raise ArgumentShapeError(
                f"{self.name(param)}: no memory holds {' x '.join(map(str, shape))} elements",
                notes=declared(param),
                hint="pass smaller arguments",
            )
        return tuple(shape)

    def _wrong_count(self, got: int) -> LaunchError:
        names = ", ".join(self.kernel.params[p].name for p in self.inputs)
        returned = [self.kernel.params[p].name for p in self.kernel.outputs]
        notes = (Note(f"{', '.join(returned)} is returned, not passed"),) if returned else ()
        takes = f"{len(self.inputs)} argument{'' if len(self.inputs) == 1 else 's'}"
        return ArgumentCountError(
            f"{self.kernel.name}({names}) takes {takes}, got {got}",
            notes=notes,
            hint="pass the arguments in the order of the parameters",
        )

    def _tensor(self, position: int, arg: Any) -> TensorView:
        param = self.kernel.params[position]
        assert isinstance(param, Buffer), "a tensor parameter"
        if arg is None:
            raise LaunchError(
                f"{self.name(param)}: expected a tensor, got None",
                notes=declared(param),
                hint="None stands for tensors that the kernel never reads or writes",
            )
        view = view_of(arg)
        if view is None:
            raise ArgumentTypeError(
                f"{self.name(param)}: expected a tensor, got {type(arg).__name__}",
                notes=declared(param),
                hint="pass a NumPy array, a torch tensor or another DLPack producer",
            )
        if view.problem is not None:
            raise ArgumentLayoutError(
                f"{self.name(param)}: the tensor is not plain memory: {view.problem}",
                notes=declared(param),
                hint="pass a plain dense tensor, or an array of plain numbers",
            )
        if position in self.written and not view.writeable:
            raise ArgumentLayoutError(
                f"{self.name(param)}: the kernel writes this tensor, which is read-only",
                notes=declared(param),
                hint="pass a copy",
            )
        if not _dtypes_match(param.dtype, view.dtype):
            raise ArgumentDtypeError(
                f"{self.name(param)}.dtype: expected {param.dtype}, got {explained(view.dtype)}",
                notes=declared(param),
                hint=_dtype_hint(param.dtype),
            )
        return view

    def _check_place(
        self, param: Buffer, view: TensorView, device: str, before: list[Bound]
    ) -> None:
        name, kind = self.name(param), view.device.partition(":")[0]
        if kind not in (device, torch_device(device)):
            raise ArgumentLayoutError(
                f"{name}.device: the kernel runs on {device}, the tensor is on {view.device}",
                notes=declared(param),
                hint=f"move the tensor to {device}, or compile for the machine it is on",
            )
        for other, seen in before[:1]:
            if seen.device != view.device:
                raise ArgumentLayoutError(
                    f"{name}.device: it is on {view.device}, {other.name} is on {seen.device}",
                    notes=declared(param),
                    hint="all tensors of a call must be on one device",
                )
        if view.address == 0 and all(view.shape):
            raise ArgumentLayoutError(
                f"{name}.data: the address is null",
                notes=declared(param),
                hint="pass a tensor that has memory",
            )
        size = max(1, param.dtype.bits // 8)
        if view.address % size:
            raise ArgumentLayoutError(
                f"{name}.data: the address is not a multiple of the {size} bytes of an element",
                notes=declared(param),
                hint="pass a copy, which begins at an element boundary",
            )


def _dtypes_match(want: DType, got: str) -> bool:
    if want.packing > 1:
        return got in _BYTES or got == want.base
    if want.base in _AS_BYTES and (got in _BYTES or got == want.facts.storage):
        return True
    return want == got or any(want in family and got in family for family in _FAMILIES)


def _dtype_hint(want: DType) -> str:
    if want.packing > 1:
        return "pass bytes (int8 or uint8) that hold two elements each, the first in the low half"
    return f"convert it first: x.to(torch.{want}), or x.astype({str(want)!r})"
