"""Checks of arguments: never a crash, never a silent copy.

A `Signature` is made once per kernel. `Signature.check` binds the variables in shapes and refuses
what the kernel was not compiled for, naming argument, expectation and what came. The errors'
`subject` tells which parameter, variable or condition they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tile_launch.contract import Contract, require_kept
from tile_launch.dtypes import are_bits_of, bits_of, bytes_of, explained, matches, packing_of
from tile_launch.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    AssumptionError,
    ContractViolation,
    EmptyGridError,
    LaunchError,
    Note,
)
from tile_launch.expressions import Expression, value_of, variables_of, words_of
from tile_launch.manifest import Condition, Manifest, Parameter, Scalar, Tensor
from tile_launch.scalars import integer_bounds, scalar_value
from tile_launch.symbol_solver import (
    Bound,
    bind,
    check_rank,
    known_value,
    plain_view,
    shape_of,
    strides_of,
)
from tile_launch.views import View


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks found out: values of variables and scalars, and what to launch on."""

    values: Mapping[str, Any]
    passed: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a kernel, and positions of those that the caller passes, in call order.

    Calls may not leave `needed` variables open. A kernel that was compiled `in_process` takes
    elements of four bits one to a byte, too, and no integers for a type of floats that NumPy lacks.
    """

    manifest: Manifest
    inputs: tuple[int, ...]
    needed: frozenset[str] = frozenset()
    contracts: Mapping[int, Contract] = field(default_factory=dict)
    in_process: bool = False

    def check(
        self,
        args: tuple[Any, ...],
        device: str,
        scalar: Callable[[str, str, Any], Any] = scalar_value,
    ) -> Checked:
        """Return the values of variables and what to pass on, or say what does not fit.

        Arguments are one per entry of `inputs`, or a `View` that stands for a tensor. Tensors must
        be on `device`: ``"cpu"``, or a kind such as ``"cuda"``. ``scalar(name, dtype, argument)``
        returns a number, or None if its value is not known yet.

        Raises
        ------
        LaunchError
            If an argument does not fit, a grid is empty, or a stated condition is false.
        """
        if len(args) != len(self.inputs):
            raise self._wrong_count(len(args))
        scalars: dict[str, Any] = {}
        tensors: list[Bound] = []
        passed: list[Any] = []
        for position, arg in zip(self.inputs, args, strict=True):
            param = self.manifest.parameters[position]
            with _About(param):
                if isinstance(param, Scalar):
                    scalars[param.name] = scalar(self.name(param), param.dtype, arg)
                    passed.append(scalars[param.name])
                elif arg is None and not param.is_used:
                    passed.append(None)
                else:
                    view = self._tensor(param, arg)
                    self._check_place(param, view, device, tensors)
                    tensors.append((param, view))
                    passed.append(arg if view.passed is None else view.passed)
        values = {name: value for name, value in scalars.items() if value is not None}
        for param, view in tensors:
            check_rank(self.name(param), param, view)
        bind(tensors, values)
        if any(arg is None for arg in passed):
            self._bind_left_out(values, passed)
        self._check_symbols(values)
        kinds = [condition.kind for condition in self.manifest.conditions]
        for number, kind in enumerate(kinds):
            if kind == "contract":
                self._check_condition(number, values, tensors)
        for bound in tensors:
            with _About(bound[0]):
                self._check_shape(bound, values, tensors)
                self._check_strides(bound, values)
        for number, kind in enumerate(kinds):
            if kind != "contract":
                self._check_condition(number, values, tensors)
        return Checked(values, tuple(passed))

    def scalar(self, position: int, arg: Any) -> Any:
        """Return the scalar argument at `position` as a Python number, or raise."""
        param = self.manifest.parameters[position]
        assert isinstance(param, Scalar), "a scalar parameter"
        return scalar_value(self.name(param), param.dtype, arg)

    def name(self, param: Parameter) -> str:
        """Return what messages call a parameter."""
        return f"{self.manifest.kernel}.{param.name}"

    def output_shapes(self, values: Mapping[str, Any]) -> list[tuple[int, ...]]:
        """Return the extents of the outputs, in order."""
        shapes = []
        for position in self.manifest.outputs:
            param = self.manifest.parameters[position]
            assert isinstance(param, Tensor), "outputs are tensors"
            with _About(param):
                shapes.append(self._output_shape(param, values))
        return shapes

    # Parts ---------------------------------------------------------------------------------

    def _wrong_count(self, got: int) -> LaunchError:
        manifest = self.manifest
        names = ", ".join(manifest.parameters[p].name for p in self.inputs)
        returned = [manifest.parameters[p].name for p in manifest.outputs if p not in self.inputs]
        takes = f"{len(self.inputs)} argument{'' if len(self.inputs) == 1 else 's'}"
        return ArgumentCountError(
            f"{manifest.kernel}({names}) takes {takes}, got {got}",
            notes=(Note(f"{', '.join(returned)} is returned, not passed"),) if returned else (),
            hint="pass the arguments in the order of the parameters",
        )

    def _tensor(self, param: Tensor, arg: Any) -> View:
        name = self.name(param)
        if arg is None:
            refused = LaunchError if self.in_process else ArgumentTypeError
            raise refused(
                f"{name}: expected a tensor, got None",
                hint="None stands for tensors that the kernel never reads or writes",
            )
        view = plain_view(name, arg)
        if param.is_written and not view.writeable:
            raise ArgumentLayoutError(
                f"{name}: the kernel writes this tensor, which is read-only", hint="pass a copy"
            )
        fits = matches(param.dtype, view.dtype)
        if self.in_process:
            fits = fits or (packing_of(param.dtype) > 1 and view.dtype == param.dtype)
        elif not fits:
            fits = are_bits_of(param.dtype, view.dtype)
        if not fits:
            raise ArgumentDtypeError(
                f"{name}.dtype: expected {param.dtype}, got {explained(view.dtype)}",
                hint=_hint_for(param.dtype),
            )
        return view

    def _check_place(self, param: Tensor, view: View, device: str, before: list[Bound]) -> None:
        name, kind = self.name(param), view.device.partition(":")[0]
        if kind != device and (kind, device) != ("cuda", "hip"):  # torch's name for AMD's GPUs
            raise ArgumentLayoutError(
                f"{name}.device: the kernel runs on {device}, the tensor is on {view.device}",
                hint=f"move the tensor to {device}, or compile for the machine it is on",
            )
        for other, seen in before[:1]:
            if seen.device != view.device:
                raise ArgumentLayoutError(
                    f"{name}.device: it is on {view.device}, {other.name} is on {seen.device}",
                    hint="all tensors of a call must be on one device",
                )
        if view.address == 0 and all(view.shape):
            raise ArgumentLayoutError(
                f"{name}.data: the address is null", hint="pass a tensor that has memory"
            )
        size = max(1, bits_of(param.dtype) // 8)
        if view.address % size:
            raise ArgumentLayoutError(
                f"{name}.data: the address is not a multiple of the {size} bytes of an element",
                hint="pass a copy, which begins at an element boundary",
            )

    def _bind_left_out(self, values: dict[str, Any], passed: list[Any]) -> None:
        """Give a value to variables of the code that only tensors tell for which None was passed.

        The extent of a single tensor is 0: without it there are no elements. What several
        tensors should agree on, or the tensor holds in another form, is unknown.
        """
        absent = {p for p, arg in zip(self.inputs, passed, strict=True) if arg is None}
        for symbol in self.manifest.symbols:
            if symbol not in self.needed or symbol in values:
                continue
            tellers = [p for p, t in enumerate(self.manifest.parameters) if _mentions(t, symbol)]
            left_out = [p for p in tellers if p in absent]
            if not left_out:
                continue
            param = self.manifest.parameters[left_out[0]]
            with _About(param):
                if len(tellers) > 1 or not (isinstance(param, Tensor) and symbol in param.shape):
                    raise ArgumentShapeError(
                        f"{self.name(param)}: None was passed, and no other argument tells the "
                        f"value of {symbol}",
                        hint="pass a tensor of that shape: the kernel does not read it",
                    )
            values[symbol] = 0

    def _check_symbols(self, values: Mapping[str, Any]) -> None:
        scalars = {p.name: p.dtype for p in self.manifest.parameters if isinstance(p, Scalar)}
        dtypes = {**scalars, **self.manifest.symbols}
        for name, value in values.items():
            bounds = integer_bounds(dtypes[name]) if name in dtypes else None
            if bounds is not None and not bounds[0] <= value <= bounds[1]:
                raise ArgumentShapeError(
                    f"{self.manifest.kernel}: {name} is {value}, which does not fit {dtypes[name]}",
                    hint=f'declare it as {name} = T.dynamic("{name}", "int64")',
                    subject=("variable", name),
                )

    def _check_shape(self, bound: Bound, values: Mapping[str, Any], owners: list[Bound]) -> None:
        param, view = bound
        name, last = self.name(param), len(param.shape) - 1
        is_packed = packing_of(param.dtype) > 1 and view.dtype != param.dtype
        if packing_of(param.dtype) > 1 and not is_packed and view.shape[-1] % 2:
            raise ArgumentShapeError(
                f"{name}.shape[{last}]: {view.shape[-1]} is odd; two elements share a byte",
                hint="pad the last dimension by one element",
            )
        for axis, (extent, got) in enumerate(zip(param.shape, shape_of(bound), strict=True)):
            want = known_value(extent, values)
            fills_a_byte = is_packed and axis == last
            if want is None or want == got or (fills_a_byte and got == want + want % 2):
                continue
            told = str(want) if isinstance(extent, int) else f"{words_of(extent)} = {want}"
            raise ArgumentShapeError(
                f"{name}.shape[{axis}]: expected {told}, got {got}",
                notes=_origins(extent, values, owners, bound),
                hint="pass a tensor of that extent; T.dynamic declares dimensions of any extent",
            )

    def _check_strides(self, bound: Bound, values: Mapping[str, Any]) -> None:
        param, _ = bound
        name, shape = self.name(param), shape_of(bound)
        if 0 in shape:
            return
        wanted = _wanted_strides(param, shape, values)
        for axis, (want, got) in enumerate(zip(wanted, strides_of(bound), strict=True)):
            if shape[axis] == 1:
                continue
            if want is not None and want != got:
                hint = "pass x.contiguous() or numpy.ascontiguousarray(x), or declare the "
                raise ArgumentLayoutError(
                    f"{name}.strides[{axis}]: expected {want}, got {got}",
                    hint=hint + "parameter as T.StridedTensor" if param.strides is None else None,
                )
            if got < 0:
                raise ArgumentLayoutError(
                    f"{name}.strides[{axis}]: {got} is negative",
                    hint="pass numpy.ascontiguousarray(x)",
                )
            if got == 0 and param.is_written:
                raise ArgumentLayoutError(
                    f"{name}.strides[{axis}]: the kernel writes this tensor, whose {shape[axis]} "
                    "elements along the axis share one place in memory",
                    hint="pass x.clone() or x.copy() of a broadcast tensor",
                )

    def _check_condition(
        self, number: int, values: Mapping[str, Any], tensors: list[Bound]
    ) -> None:
        condition, subject = self.manifest.conditions[number], ("condition", number)
        if any(name not in values for name in variables_of(condition.value)):
            return
        known = tuple(Note(f"{v} is {values[v]}") for v in variables_of(condition.value))
        is_grid = condition.kind == "grid"
        try:
            found = value_of(condition.value, values)
        except ArithmeticError as error:
            what = " ".join(condition.message.split(" ")[:4]) if is_grid else "the condition"
            raise LaunchError(
                f"{what} cannot be computed: {error}",
                notes=known,
                hint="pass arguments for which it is defined",
                subject=subject,
            ) from None
        if is_grid and found < 1:
            raise EmptyGridError(
                f"{self.manifest.kernel}: {condition.message} is {found}; it must be at least 1",
                notes=known,
                hint="do not call the kernel when there is nothing to do",
                subject=subject,
            )
        if condition.kind == "contract" and not found:
            raise self._broken(number, condition, values, tensors)
        if not is_grid and not found:
            raise AssumptionError(
                f"{condition.kind.capitalize()}: {condition.message} (does not hold for these "
                "arguments)",
                notes=known,
                hint="pass arguments for which it holds",
                subject=subject,
            )

    def _broken(
        self, number: int, condition: Condition, values: Mapping[str, Any], tensors: list[Bound]
    ) -> ContractViolation:
        """Return the error that a dimension has a value which its contract excludes."""
        kernel, name = self.manifest.kernel, next(iter(variables_of(condition.value)), "a number")
        origin, contract = _origin(name, tensors), self.contracts.get(number)
        if contract is not None:
            try:
                is_scalar = origin is None
                require_kept(kernel, name, contract, values[name], origin, is_scalar=is_scalar)
            except ContractViolation as error:
                error.subject = ("variable", name)
                return error
        cause = "" if origin is None else f" because of {origin}"
        return ContractViolation(
            f"{kernel}: {name} is {values.get(name)}{cause}; its contract is {condition.message}",
            hint="pass an argument of such a size",
        )

    def _output_shape(self, param: Tensor, values: Mapping[str, Any]) -> tuple[int, ...]:
        shape = []
        for axis, extent in enumerate(param.shape):
            size, name = known_value(extent, values), f"{self.name(param)}.shape[{axis}]"
            if size is None:
                unknown = ", ".join(v for v in variables_of(extent) if v not in values)
                raise ArgumentShapeError(
                    f"{name}: no argument tells the value of {unknown}",
                    hint="pass the tensor yourself, or use the symbol in the shape of an input",
                )
            if size < 0:
                raise ArgumentShapeError(
                    f"{name}: {size} is negative",
                    hint="check the sizes that this extent is computed from",
                )
            shape.append(size)
        if prod(shape) * bytes_of(param.dtype) >> 62:
            raise ArgumentShapeError(
                f"{self.name(param)}: no memory holds {' x '.join(map(str, shape))} elements",
                hint="pass smaller arguments",
            )
        return tuple(shape)


class _About:
    """Says of the errors of a block which parameter they are about."""

    __slots__ = ("param",)

    def __init__(self, param: Parameter) -> None:
        self.param = param

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, LaunchError):
            error.subject = ("parameter", self.param.name)


def _hint_for(dtype: str) -> str:
    if packing_of(dtype) > 1:
        return "pass bytes (int8 or uint8) that hold two elements each, the first in the low half"
    return f"convert it first: x.to(torch.{dtype}), or x.astype({dtype!r})"


def _sizes(param: Parameter, axes: str) -> tuple[Expression, ...]:
    if isinstance(param, Scalar):
        return ()
    return param.shape if axes == "shape" else (param.strides or ())


def _mentions(param: Parameter, symbol: str) -> bool:
    """Whether the extents or strides of a parameter depend on `symbol`."""
    sizes = (*_sizes(param, "shape"), *_sizes(param, "strides"))
    return any(symbol in variables_of(size) for size in sizes)


def _origins(
    extent: Expression, values: Mapping[str, Any], owners: list[Bound], but: Bound
) -> tuple[Note, ...]:
    """Say which argument gave each variable of `extent` its value."""
    notes = []
    for name in variables_of(extent):
        for owner in owners:
            shape = owner[0].shape
            if name in shape and owner is not but:
                place = f"{owner[0].name}.shape[{shape.index(name)}]"
                notes.append(Note(f"{name} is {values[name]} because of {place}"))
                break
    return tuple(notes)


def _origin(name: str, tensors: list[Bound]) -> str | None:
    """Return which part of which argument gives a variable its value, as messages spell it."""
    places = [
        (f"{param.name}.{axes}[{k}]", extent)
        for axes in ("shape", "strides")
        for param, _ in tensors
        for k, extent in enumerate(_sizes(param, axes))
        if name in variables_of(extent)
    ]
    exact = (place for place, extent in places if extent == name)
    return next(exact, places[0][0] if places else None)


def _wanted_strides(
    param: Tensor, shape: tuple[int, ...], values: Mapping[str, Any]
) -> list[int | None]:
    if param.strides is not None:
        return [known_value(stride, values) for stride in param.strides]
    strides: list[int | None] = []
    step = 1
    for extent, got in zip(reversed(param.shape), reversed(shape), strict=True):
        strides.append(step)
        known = known_value(extent, values)
        step *= got if known is None else known
    return strides[::-1]
