"""Every module path and every public name of TileLang: of now, and of older versions.

A row of ``names.txt``, beside this file, is a path, the key of the reason why its names have no
counterpart, and, on the lines below, the names that have none. ``language`` before the key says
that the module has all names of the language, too.
"""

from __future__ import annotations

from pathlib import Path


def read_names() -> dict[str, list[str]]:
    """Return the names of each row of the table by its first line, in the table's order."""
    text = (Path(__file__).parent / "names.txt").read_text(encoding="utf-8")
    rows: dict[str, list[str]] = {}
    head = ""
    for line in text.splitlines():
        if line.startswith(" "):
            rows[head] += line.split()
        else:
            head, rows[line] = line, []
    return rows


LANGUAGE = (
    "language.cluster language.copy language.experimental language.experimental.gemm_sp"
    " language.gemm language.math language.memscope language.parallel language.pdl"
    " language.persistent language.pipeline language.print language.print_op language.random"
    " language.reduce language.types language.v2 language.v2.builder language.v2.dtypes"
    " language.warpgroup cuda.language.print_op"
)
"""Modules of the language in older versions."""

ARCHS = "arch_base cdna cpu cuda driver driver.cuda_driver rdna"

SHAPES = "base conv elementwise flashattention gemv general_reduce matmul"

ENVIRONMENT = (
    "env Environment CacheState CUDA_HOME ROCM_HOME TL_ROOT TL_LIBS THIRD_PARTY_ROOT"
    " CUTLASS_INCLUDE_DIR TILELANG_TEMPLATE_PATH TILELANG_HIP_SAVE_TEMP_FILES"
    " get_runtime_library_dirs get_cuda_dll_search_dirs=get_runtime_library_dirs"
    " prepend_dll_search_path prepend_pythonpath"
)

REGIONS = (
    "is_global is_shared is_shared_dynamic is_fragment is_local is_local_var is_tensor_memory"
    " is_reducer array_reduce bits_product get_buffer_elems get_prim_func_name is_full_region"
    " prim_expr_equal retrieve_dtype retrieve_shape retrieve_stride to_buffer_region"
    " get_buffer_region_from_load=to_buffer_region to_tile_region=to_buffer_region"
)

INTRINSICS = (
    "layout layout.mma_layout layout.utils layout.mfma_layout macro macro.mfma_macro_generator"
    " macro.mma_macro_generator macro.mma_sm120_macro_generator macro.mma_sp_macro_generator"
    " macro.tcgen05_macro_generator macro.wgmma_macro_generator macro.wgmma_sp_macro_generator"
    " mfma_layout mfma_macro_generator mma_layout mma_macro_generator mma_sm70_macro_generator"
    " mma_sp_macro_generator tcgen05_macro_generator utils wgmma_macro_generator"
)

EMITTERS = (
    "TensorCoreIntrinEmitter TensorCoreIntrinEmitterWithLadderTransform"
    " TensorCoreIntrinEmitterSM120 SparseTensorCoreIntrinEmitter INT4TensorCoreIntrinEmitter"
    " INT4TensorCoreIntrinEmitterWithLadderTransform WGMMATensorCoreIntrinEmitter"
    " WGSparseTensorCoreIntrinEmitter TCGEN05TensorCoreIntrinEmitter MatrixCoreIntrinEmitter"
    " MatrixCorePreshuffleIntrinEmitter get_swizzle_layout get_ldmatrix_offset get_mma_micro_size"
    " mma_store_index_map get_mma_store_index_map shared_16x16_to_mma_32x8_layout"
    " shared_16x16_to_mma_32x8_layout_sr shared_16x16_to_mma_32x8_layout_rs"
    " shared_16x16_to_mma_32x8_layout_trans shared_16x16_to_ldmatrix_32x8_layout"
    " shared_16x32_to_mma_32x16_layout shared_32x16_to_mma_32x16_layout"
    " ldmatrix_32x8_to_shared_16x16_layout ldmatrix_trans_32x8_to_shared_16x16_layout"
    " ldmatrix_32x16_to_shared_16x32_layout_a ldmatrix_32x16_to_shared_16x32_layout_b"
    " mma_store_32x8_to_shared_16x16_layout mma_load_a_32x4_to_shared_16x8_layout"
    " mma_load_b_32x4_to_shared_16x8_layout mma_load_a_32x16_to_shared_16x32_layout"
    " mma_load_b_32x16_to_shared_16x32_layout"
)

UNPACKING = (
    "_tir_packed_to_signed_convert _tir_packed_to_unsigned_convert"
    " _tir_packed_to_unsigned_convert_with_zeros _tir_packed_int_to_int_convert"
    " _tir_packed_to_fp4_to_f16 _tir_u8_to_f4_to_bf16 _tir_u8_to_f8_e4m3_to_f16"
    " _tir_u8_to_f8_e5m2_to_f16 _tir_u32_to_f4_to_f16"
)

CUDA_TEXTS = "get_lop3_intrin_group get_mxfp_intrin_group interleave_weight"

SPARSE = "compress torch_compress get_e_replicate_factor"

OLDER = {
    "analysis passes": "SemanticChecker",
    "carver.roller roller": "get_tensorized_func_and_tags get_roller_hints_from_func",
    "engine.phase phases": "LowerAndLegalize OptimizeForTarget PreLowerSemanticCheck LayoutVisual"
    " allow_fence_proxy allow_tma_and_warp_specialized allow_vectorize allow_warp_specialized"
    " allow_global_thread_synchronization should_enable_aggressive_merge"
    " should_force_let_inline should_enable_layout_visual module_has_tma",
    "ir phases": "Conv2DIm2ColOp Gemm GemmSP RegionOp",
    "jit.adapter adapters": "CtypesKernelAdapter TorchDLPackKernelAdapter",
    "layout emitters": "make_blockscaled_gemm_layout",
    "layout.cute cute": "make_swizzle make_composed_layout zipped_divide tiled_divide depth crd2idx"
    " idx2crd from_tilelang to_tilelang",
    "transform passes": "AlignDynamicSharedMemoryAllocations AnnotateWarpGroupRegAlloc"
    " ClusterPlanning EliminateStorageSyncForMBarrier FrontendLegalize InjectFenceProxy"
    " InjectPTXAsyncCopy InjectTmaBarrier LayoutReducer LowerDeviceStorageAccessInfo"
    " LowerHopperIntrin LowerL2Persistent LowerLDGSTG LowerPTXAsyncCopy LowerSharedBarrier"
    " LowerSharedTmem MarkCudaSyncCalls MergeSharedMemoryAllocations MultiVersionBuffer"
    " PersistThreadblock ProducerConsumerWarpSpecialized ReuseLocalDescriptorAllocations"
    " RewriteWgmmaSync ThreadPartialSync WarpSpecialized WarpSpecializedPipeline"
    " get_pass_context",
}
"""Names by their module and the key of the reason why they have no counterpart."""
