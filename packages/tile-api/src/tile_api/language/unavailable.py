"""Names that exist so that programs can be imported, and say why they cannot be used."""

from __future__ import annotations

from typing import Any

from typing_extensions import Never

from tile_api.language.operands import here
from tile_core.errors import UnsupportedOnTarget
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The name ``T.name``: calling it, or asking it for a member, raises `UnsupportedOnTarget`."""

    name: str
    reason: str  # what it belongs to, continuing "T.name ..."
    hint: str  # what to write instead

    def __call__(self, *args: Any, **kwargs: Any) -> Never:
        """Refuse."""
        raise self._refusal(self.name)

    def __getattr__(self, member: str) -> Never:
        """Refuse, except to code that looks for Python's own protocols."""
        if member.startswith("_"):
            raise AttributeError(member)
        raise self._refusal(f"{self.name}.{member}")

    def _refusal(self, what: str) -> UnsupportedOnTarget:
        return UnsupportedOnTarget(f"T.{what} {self.reason}", span=here(), hint=self.hint)


_GROUPS: tuple[tuple[str, str, str], ...] = (
    # reason, hint, names
    (
        "describes memory or registers that only recent NVIDIA GPUs have",
        "use T.alloc_shared and T.alloc_fragment",
        "alloc_descriptor alloc_wgmma_desc alloc_tcgen05_smem_desc"
        " alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc"
        " tma_gather4_bytes TCGEN05DescriptorParams WGMMADescriptorParams"
        " compute_gmma_descriptor compute_umma_descriptor",
    ),
    (
        "writes the matrix instructions of one GPU by hand",
        "use T.gemm, which chooses the instructions",
        "TensorCoreIntrinEmitter TensorCoreIntrinEmitterWithLadderTransform"
        " TensorCoreIntrinEmitterSM120 SparseTensorCoreIntrinEmitter"
        " WGMMATensorCoreIntrinEmitter WGSparseTensorCoreIntrinEmitter"
        " TCGEN05TensorCoreIntrinEmitter get_ldmatrix_offset get_mma_micro_size"
        " mma_store_index_map get_swizzle_layout make_blockscaled_gemm_layout",
    ),
    (
        "schedules the warps of a GPU by role",
        "use T.ws for the groups of a block, or T.Pipelined, which overlaps copies with work",
        "ws_op annotate_ws_schedule annotate_ws_pipeline_depth WSID WSInstr WSOpRef WSPipeline"
        " WSRole WSSchedule WSScope WSSync WSSyncKind",
    ),
    (
        "takes a kernel written in CUDA",
        "use T.Kernel, with T.import_source and T.call_extern for functions in C",
        "CUDASourceCodeKernel call_kernel",
    ),
    (
        "builds host code, which this compiler writes itself",
        "use T.call_extern to call a C function",
        "TVMBackendAllocWorkspace TVMBackendFreeWorkspace anylist_getitem anylist_resetitem"
        " anylist_setitem_call_cpacked anylist_setitem_call_packed call_cpacked"
        " call_cpacked_lowered call_packed call_packed_lowered lookup_param tvm_call_cpacked"
        " tvm_call_cpacked_lowered tvm_call_packed tvm_call_packed_lowered tvm_stack_alloca"
        " tvm_stack_make_array tvm_stack_make_shape tvm_struct_get tvm_struct_set"
        " tvm_throw_last_error tvm_tuple isnullptr handle_add_byte_offset",
    ),
    (
        "names an operation of one code generator",
        "use the portable functions of T",
        "call_llvm_intrin call_llvm_pure_intrin llvm_lookup_intrinsic_id get_active_lane_mask"
        " vscale undef q_multiply_shift q_multiply_shift_per_axis start_profile_intrinsic"
        " end_profile_intrinsic",
    ),
    (
        "belongs to the script form of another compiler",
        "write the statement in Python: if, while, for, names, T.Kernel",
        "bind Range IterVar CallEffectKind ProducerLoad arg"
        " block_name_suffix_context buffer buffer_decl buffer_var env_thread func_name func_ret"
        " get_let_value has_let_value index_map iter_var launch_thread ret"
        " target var Reduce PartialFragment",
    ),
)

UNAVAILABLE: dict[str, Unavailable] = {
    name: Unavailable(name, reason, hint)
    for reason, hint, names in _GROUPS
    for name in names.split()
}
"""The objects by name."""
