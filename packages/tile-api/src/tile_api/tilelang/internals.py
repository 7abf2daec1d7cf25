"""Names of TileLang that programs import and that are kept as words: parts of its compiler."""

from __future__ import annotations

DIALECTS = "cuda rocm cpu metal webgpu ascend"
"""Packages with a ``language`` of their own."""

LANGUAGE = (
    "allocate annotations ast atomic builtin cluster common copy copy_op customize dtypes eager"
    " eager.ast eager.builder experimental experimental.gemm_sp experimental.gemm_sp_op fill_op"
    " fp8 frame gemm gemm_op kernel logical loop math math_intrinsics memscope meta overrides"
    " parallel parser parser.entry pdl persistent pipeline print print_op proxy random reduce"
    " reduce_op scan_op symbolics tile_schedule tir tir.ir tir.op types utils v2 v2.builder"
    " v2.dtypes warp_specialize warpgroup"
)
"""Modules of the language; each has all names of it."""

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

LAYOUTS = (
    "make_volta_swizzled_layout make_tcgen05mma_swizzled_layout make_cutlass_metadata_layout"
    " make_blockscaled_gemm_layout PartialFragment"
)

CUTE = (
    "Layout Swizzle ComposedLayout make_layout make_swizzle make_composed_layout composition"
    " coalesce complement logical_divide logical_product zipped_divide tiled_divide right_inverse"
    " left_inverse size cosize rank depth crd2idx idx2crd from_tilelang to_tilelang"
)

PASSES = (
    "AddWrapperForSingleBufStore AlignDynamicSharedMemoryAllocations AnnotateDeviceRegions"
    " AnnotateReadOnlyParams AnnotateWarpGroupRegAlloc ClusterPlanning ConfigIndexBitwidth"
    " DecoupleTypeCast EliminateStorageSyncForMBarrier FlattenBuffer FrontendLegalize"
    " HoistBroadcastValues HoistNonRestrictParams IfStmtBinding InjectAssumes InjectFenceProxy"
    " InjectPTXAsyncCopy InjectSoftwarePipeline InjectTmaBarrier LayoutInference LayoutReducer"
    " LegalizeNegativeIndex LegalizeSafeMemoryAccess LegalizeVectorizedLoop LetInline"
    " LoopUnswitching"
    " LowerAccessPtr LowerDeviceKernelLaunch LowerDeviceStorageAccessInfo LowerHopperIntrin"
    " LowerIntrin LowerL2Persistent LowerLDGSTG LowerOpaqueBlock LowerPTXAsyncCopy"
    " LowerSharedBarrier LowerSharedTmem LowerThreadAllreduce LowerTileOp MakePackedAPI"
    " MarkCudaSyncCalls MergeIfStmt MergeSharedMemoryAllocations MultiVersionBuffer"
    " PersistThreadblock PipelinePlanning PlanAndUpdateBufferAllocationLocation"
    " ProducerConsumerWarpSpecialized"
    " ReuseLocalDescriptorAllocations RewriteWgmmaSync Simplify SplitHostDevice StorageRewrite"
    " ThreadPartialSync ThreadSync UnrollLoop VectorizeLoop VectorizePlanner VerifyParallelLoop"
    " WarpSpecialized WarpSpecializedPipeline get_pass_context"
)

SIMPLIFIERS = "Simplify LetInline"

ANALYSES = "ASTPrinter LayoutVisual NestedLoopChecker FragmentLoopChecker SemanticChecker"

PHASES = (
    "LowerAndLegalize OptimizeForTarget PreLowerSemanticCheck LayoutVisual"
    " allow_fence_proxy allow_tma_and_warp_specialized allow_vectorize allow_warp_specialized"
    " allow_global_thread_synchronization should_enable_aggressive_merge"
    " should_force_let_inline should_enable_layout_visual module_has_tma"
)

NODES = "Fill AtomicAdd Copy Conv2DIm2ColOp GemmWarpPolicy Gemm GemmSP ReduceOp CumSumOp RegionOp"

ADAPTERS = (
    "BaseKernelAdapter TVMFFIKernelAdapter CythonKernelAdapter CtypesKernelAdapter"
    " NVRTCKernelAdapter TorchDLPackKernelAdapter MetalKernelAdapter CuTeDSLKernelAdapter"
)

ROLLER = (
    "DefaultPolicy TensorCorePolicy TileDict Stride PrimFuncNode OutputNode Edge"
    " get_tensorized_func_and_tags get_roller_hints_from_func"
)

TRACERS = "LowerTrace LowerTracer enable disable trace register"

UNPACKING = (
    "_tir_packed_to_signed_convert _tir_packed_to_unsigned_convert"
    " _tir_packed_to_unsigned_convert_with_zeros _tir_packed_int_to_int_convert"
    " _tir_packed_to_fp4_to_f16 _tir_u8_to_f4_to_bf16 _tir_u8_to_f8_e4m3_to_f16"
    " _tir_u8_to_f8_e5m2_to_f16 _tir_u32_to_f4_to_f16"
)

CUDA_TEXTS = "get_lop3_intrin_group get_mxfp_intrin_group interleave_weight"

SPARSE = "compress torch_compress get_e_factor get_e_replicate_factor"
