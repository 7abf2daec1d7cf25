"""Names of GPU instructions: callable everywhere, refused where the machine has none.

Nothing here is a function of its own: the tables of `tile_core.ir.gpu_intrinsics` and
`tile_core.ops.gpu_only` say which names exist, and one class turns a call into tile IR.
"""

from __future__ import annotations

import functools
from enum import Enum
from inspect import Parameter, Signature, signature
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
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.records import dataclass

_PARAMETERS = """\
clc_get_first_ctaid_x(result)
clc_get_first_ctaid_y(result)
clc_get_first_ctaid_z(result)
clc_is_canceled(result)
clc_try_cancel(result, mbarrier)
clc_try_cancel_multicast(result, mbarrier)
deallocate_tmem(tmem)
increase_descriptor_offset(descriptor, offset)
initialize_tcgen05_descriptor(descriptor, start_address, leading_byte_offset,
    stride_byte_offset, base_offset=0, leading_is_absolute=False, swizzle_mode=0)
initialize_wgmma_descriptor(descriptor, start_address, layout_type_=0, leading_byte_offset=0,
    stride_byte_offset=0)
mma_fill(dtype, local_size, local_ptr, offset)
mma_gemm_blockscaled(A, B, C, SFA, SFB, transpose_A=False, transpose_B=False,
    policy=GemmWarpPolicy.Square, clear_accum=False, *, k_start, sf_a_granularity_k,
    sf_b_granularity_k, sf_layout=None)
ptx_cp_async(dst_access_ptr, src_access_ptr, num_elems, predicate=None)
ptx_ldmatrix(trans, num, src_access_ptr, dst_access_ptr)
ptx_mma_block_scale(accum_dtype, shape, A_layout, B_layout, kind, scale_vec_size, A_dtype,
    B_dtype, scale_type, multiplicand_a, a_index, multiplicand_b, b_index, accumulator, c_index,
    scale_a, scale_b, scale_a_byte_id=0, scale_a_thread_id=0, scale_b_byte_id=0,
    scale_b_thread_id=0)
ptx_mma_sm70(shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index,
    multiplicand_b, b_index, accumulator, c_index)
ptx_mma_sp(dtype, shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index,
    multiplicand_b, b_index, accumulator, c_index, metadata, meta_index, sparse_selector,
    saturate)
ptx_tcgen05_mma_blockscaled_ss(kind_dtype, desc_a, A_offset, desc_b, B_offset, C_ptr, C_offset,
    desc_val, scale_out, sfa_ptr, sfa_offset, sfb_ptr, sfb_offset, reserved0=0, reserved1=0,
    enable_2cta=False)
ptx_tcgen05_mma_ss(kind_dtype, desc_a, A_offset, desc_b, B_offset, C_ptr, C_offset, desc_val,
    scale_out, mask0, mask1, mask2, mask3, enable_ws=False, enable_2cta=False, ws=None,
    warp_specialized=None, variant=None)
ptx_tcgen05_mma_ts(kind_dtype, A_ptr, A_offset, desc_b, B_offset, C_ptr, C_offset, desc_val,
    scale_out, mask0, mask1, mask2, mask3, enable_2cta=False)
ptx_wgmma_rs(dtype, wgmma_prefix, b_is_k_major, a_dtype_abbrv, b_dtype_abbrv, accum_dtype_abbrv,
    A_buf, A_offset, B_desc, B_offset, C_data, C_offset, scale_out, scale_in_a, scale_in_b)
ptx_wgmma_sp_rs(dtype, wgmma_prefix, b_is_k_major, a_dtype_abbrv, b_dtype_abbrv,
    accum_dtype_abbrv, A_buf, A_offset, E_buf, E_offset, sparse_selector, B_desc, B_offset,
    C_data, C_offset, scale_out, scale_in_a, scale_in_b)
ptx_wgmma_sp_ss(dtype, wgmma_prefix, a_is_k_major, b_is_k_major, a_dtype_abbrv, b_dtype_abbrv,
    accum_dtype_abbrv, A_desc, A_offset, E_data, E_offset, sparse_selector, B_desc, B_offset,
    C_data, C_offset, scale_out, scale_in_a, scale_in_b)
ptx_wgmma_ss(dtype, wgmma_prefix, a_is_k_major, b_is_k_major, a_dtype_abbrv, b_dtype_abbrv,
    accum_dtype_abbrv, A_desc, A_offset, B_desc, B_offset, C_data, C_offset, scale_out,
    scale_in_a, scale_in_b)
tcgen05_cp_warpx4(smem_src, tmem_dst, tmem_col_offset=0, *, use_2cta=False)
tcgen05_gemm(A, B, C, transpose_A=False, transpose_B=False, policy=GemmWarpPolicy.Square,
    clear_accum=False, *, mbar, use_2cta=False, annotations=None)
tcgen05_gemm_blockscaled(A, B, C, SFA_tmem, SFB_tmem, transpose_A=False, transpose_B=False,
    clear_accum=False, wg_wait=0, mbar=None, *, k_start, sf_a_granularity_k, sf_b_granularity_k,
    use_2cta=False)
tcgen05_gemm_sp(A_sparse, E, B, C, transpose_A=False, transpose_E=False, transpose_B=False,
    policy=GemmWarpPolicy.Square, clear_accum=False, annotations=None)
tcgen05_mma(A, B, C, transpose_A=False, transpose_B=False, policy=GemmWarpPolicy.Square,
    clear_accum=False, *, mbar, use_2cta=False, annotations=None)
tcgen05_mma_arrive(mbar, arrive_2cta=False)
tcgen05_mma_blockscaled(A, B, C, SFA_tmem, SFB_tmem, transpose_A=False, transpose_B=False,
    clear_accum=False, wg_wait=0, mbar=None, *, k_start, sf_a_granularity_k, sf_b_granularity_k,
    use_2cta=False)
tcgen05_sf_warp_transpose(smem_src)
tma_gather4(src, dst, col, rows, *, barrier, swizzle=None, eviction_policy=None,
    annotations=None)
tma_scatter4(src, dst, col, rows, *, swizzle=None, eviction_policy=None, annotations=None)
wgmma_gemm_sp(A_sparse, E, B, C, transpose_A=False, transpose_E=False, transpose_B=False,
    policy=GemmWarpPolicy.Square, clear_accum=False, annotations=None)
wgmma_mma(A, B, C, transpose_A=False, transpose_B=False, policy=GemmWarpPolicy.Square,
    clear_accum=False, annotations=None)
"""

_ANY = Signature(
    [Parameter("args", Parameter.VAR_POSITIONAL), Parameter("settings", Parameter.VAR_KEYWORD)]
)


@functools.cache
def _signature(name: str) -> Signature:
    """Return how an instruction is called; `_ANY` if it takes what it is given."""
    text = _texts().get(name)
    if text is None:
        return _ANY
    space: dict[str, object] = {"GemmWarpPolicy": GemmWarpPolicy}
    exec(f"def {name}{text}: ...", space)
    found = space[name]
    assert callable(found)
    return signature(found)


@functools.cache
def _texts() -> dict[str, str]:
    """Return the parameters by name: a line that is not indented begins with one."""
    joined = _PARAMETERS.replace("\n    ", " ").splitlines()
    return {name: f"({rest}" for name, _, rest in (line.partition("(") for line in joined)}


def _arranged(
    name: str, args: tuple[Any, ...], settings: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments that were given by name in the places of their parameters."""
    told = _signature(name) if settings else _ANY  # few kernels need the texts
    if told is _ANY:
        return args, settings
    bound = told.bind_partial(*args, **settings)
    last = max((k for k, n in enumerate(told.parameters) if n in bound.arguments), default=-1)
    places: list[Any] = []
    rest: dict[str, Any] = {}
    for number, (key, parameter) in enumerate(told.parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY:
            rest |= {key: bound.arguments[key]} if key in bound.arguments else {}
        elif number <= last:
            default = None if parameter.default is parameter.empty else parameter.default
            places.append(bound.arguments.get(key, default))
    return tuple(places), rest


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
    {
        *("__fns", "clc_get_first_ctaid_x", "clc_get_first_ctaid_y", "clc_get_first_ctaid_z"),
        *("clc_is_canceled", "create_tma_descriptor"),
    }
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
    elif isinstance(value, (bool, str, Enum, list, tuple, dict)) or (
        key and isinstance(value, int)
    ):
        texts.append(f"{key}={value.name if isinstance(value, Enum) else value}")
    elif isinstance(value, Load) and value.buffer.scope is Scope.BARRIER:
        regions.append(_region(value))
    elif isinstance(value, (int, float, Expr)):
        values.append(as_value(value))
    else:
        raise FrontendTypeError(
            f"T.{name} cannot take {type(value).__name__} {value!r}",
            hint="pass numbers, strings, buffers, regions or elements",
        )


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
