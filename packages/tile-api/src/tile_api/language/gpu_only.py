"""Names of GPU instructions: callable everywhere, refused where the machine has none.

Nothing here is a function of its own: the tables of `tile_core.ir.gpu_intrinsics` and
`tile_core.ops.gpu_only` say which names exist, and one class turns a call into tile IR.
"""

from __future__ import annotations

from enum import Enum
from inspect import Parameter, Signature
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import BufferValue, VarHandle, as_value
from tile_api.language import barriers, clusters
from tile_api.language.operands import element, emit, here, is_tile
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError
from tile_core.ir.buffer import Region, Scope, whole
from tile_core.ir.expr import AddressOf, Call, Expr, Load, StringConst
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS, GPU_OPERATORS
from tile_core.ir.stmt import Evaluate
from tile_core.ops.gpu_only import GpuOperator
from tile_core.records import dataclass

_ANY = Signature(
    [Parameter("args", Parameter.VAR_POSITIONAL), Parameter("settings", Parameter.VAR_KEYWORD)]
)


def _signature(name: str) -> Signature:
    from tile_api.language.gpu_signatures import signature_of  # few kernels name instructions

    return signature_of(name) or _ANY


def _arranged(name: str, args: Any, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if not settings:
        return args, settings
    from tile_api.language.gpu_signatures import arranged

    return arranged(name, args, settings)


def gpu_call(name: str, *args: Expr, dtype: DType | None = None) -> Call:
    """Return a call of the GPU intrinsic `name`."""
    return Call(name, args, dtype or dtype_of(GPU_INTRINSICS[name][0]), span=here())


@dataclass(frozen=True, slots=True)
class GpuIntrinsic:
    """The function ``T.name``: a scalar instruction of GPUs.

    Buffers and barriers among the arguments are passed by address, arguments that can only be
    given by name as their name followed by their value. A kernel that calls it compiles only for
    GPUs that have the instruction; elsewhere compilation raises `UnsupportedOnTarget`.
    """

    name: str

    @property
    def __signature__(self) -> Signature:
        """What `inspect.signature` tells."""
        return _signature(self.name)

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Emit the instruction; return its result where it has one that is used."""
        current()
        args, settings = _arranged(self.name, args, settings)
        values: list[Expr] = [_argument(self.name, a) for a in args if a is not None]
        for key, value in settings.items():
            if value is not None:
                values += [StringConst(key, span=here()), _argument(self.name, value)]
        result = gpu_call(self.name, *values)
        if self.name in _VALUES:
            return result
        emit(Evaluate(result))
        return None


_VALUES = frozenset(
    [
        "__fns",
        "clc_get_first_ctaid_x",
        "clc_get_first_ctaid_y",
        "clc_get_first_ctaid_z",
        "clc_is_canceled",
        "create_tma_descriptor",
    ]
)


def _argument(name: str, value: Any) -> Expr:
    if isinstance(value, str):
        return StringConst(value, span=here())
    if isinstance(value, (list, tuple, dict)):
        return StringConst(repr(value), span=here())
    if isinstance(value, Load) and value.buffer.scope is Scope.BARRIER:
        return AddressOf(value.buffer, value.indices, "rw", span=here())
    if isinstance(value, (BufferValue, Region)):
        buffer, indices = element(value, f"an argument of T.{name}")
        return AddressOf(buffer, indices, "rw", span=here())
    return as_value(value)


@dataclass(frozen=True, slots=True)
class GpuTileOperator:
    """The function ``T.name``: an operator on tiles that only GPUs with it can run."""

    name: str

    @property
    def __signature__(self) -> Signature:
        """What `inspect.signature` tells."""
        return _signature(self.name)

    def __call__(self, *args: Any, **settings: Any) -> None:
        """Emit the operator; compilation for other machines raises `UnsupportedOnTarget`."""
        _arranged(self.name, args, settings)  # names that there are not are refused
        regions: list[Region] = []
        values: list[Expr] = []
        texts: list[str] = []
        for value in args:
            _sort(self.name, "", value, regions, values, texts)
        for key, value in settings.items():
            _sort(self.name, key, value, regions, values, texts)
        emit(GpuOperator(self.name, tuple(regions), tuple(values), tuple(texts)))


def _sort(
    name: str, key: str, value: Any, regions: list[Region], values: list[Expr], texts: list[str]
) -> None:
    if value is None:
        return
    if is_tile(value) or (isinstance(value, (Load, VarHandle)) and not key):
        regions.append(_region(value))
    elif isinstance(value, (bool, str, Enum, list, tuple, dict)) or (key and _is_int(value)):
        texts.append(f"{key}={value.name if isinstance(value, Enum) else value}")
    elif isinstance(value, Load) and value.buffer.scope is Scope.BARRIER:
        regions.append(_region(value))
    elif isinstance(value, (int, float, Expr)):
        values.append(as_value(value))
    else:
        raise FrontendTypeError(
            f"T.{name} cannot take {type(value).__name__} {value!r}",
            span=here(),
            hint="pass numbers, strings, buffers, regions or elements",
        )


def _is_int(value: object) -> bool:
    return isinstance(value, int)


def _region(value: Any) -> Region:
    if isinstance(value, Region):
        return value
    if isinstance(value, (Load, VarHandle)):
        starts = tuple(value.indices)
        return Region(value.buffer, starts, (1,) * len(starts), is_element=True, span=here())
    return whole(value.buffer if isinstance(value, BufferValue) else value)


_OWN = frozenset({"cast_rs", "wgmma_gemm", *barriers.__all__, *clusters.__all__})
"""What is reached through functions written by hand."""

GPU_NAMES: dict[str, GpuIntrinsic | GpuTileOperator] = {
    **{name: GpuIntrinsic(name) for name in GPU_INTRINSICS if name not in _OWN},
    **{name: GpuTileOperator(name) for name in GPU_OPERATORS if name not in _OWN},
}
"""The functions of the `T` namespace that stand for GPU instructions."""
