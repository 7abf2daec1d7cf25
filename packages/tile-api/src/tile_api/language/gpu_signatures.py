"""What the arguments of GPU instructions are called."""

from __future__ import annotations

import functools
import inspect

from tile_core.ops.gemm import GemmWarpPolicy

_TEXT = """\
clc_get_first_ctaid_x(result)
clc_get_first_ctaid_y(result)
clc_get_first_ctaid_z(result)
clc_is_canceled(result)
clc_try_cancel(result, mbarrier)
clc_try_cancel_multicast(result, mbarrier)
deallocate_tmem(tmem)
gemm_blockscaled(A, B, C, SFA, SFB, transpose_A=False, transpose_B=False,
    policy=GemmWarpPolicy.Square, clear_accum=False, *, k_start, sf_a_granularity_k,
    sf_b_granularity_k, mbar=None, use_2cta=False, sf_layout=None, annotations=None)
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


@functools.cache
def signature_of(name: str) -> inspect.Signature | None:
    """Return how an instruction is called; None if it takes what it is given."""
    text = _texts().get(name)
    if text is None:
        return None
    space: dict[str, object] = {"GemmWarpPolicy": GemmWarpPolicy}
    exec(f"def {name}{text}: ...", space)
    found = space[name]
    assert callable(found)
    return inspect.signature(found)


@functools.cache
def _texts() -> dict[str, str]:
    """Return the parameters by name: a line that is not indented begins with one."""
    joined = _TEXT.replace("\n    ", " ").splitlines()
    return {name: f"({rest}" for name, _, rest in (line.partition("(") for line in joined)}


def arranged(
    name: str, args: tuple[object, ...], settings: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return arguments that were given by name in the places of their parameters.

    Raises
    ------
    TypeError
        If there is no such parameter, or it is given twice.
    """
    signature = signature_of(name)
    if signature is None or not settings:
        return args, settings
    bound = signature.bind_partial(*args, **settings)
    last = max((k for k, n in enumerate(signature.parameters) if n in bound.arguments), default=-1)
    places: list[object] = []
    rest: dict[str, object] = {}
    for number, (key, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY:
            rest |= {key: bound.arguments[key]} if key in bound.arguments else {}
        elif number <= last:
            default = None if parameter.default is parameter.empty else parameter.default
            places.append(bound.arguments.get(key, default))
    return tuple(places), rest
