"""What TileLang's modules hold beside its language."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest
from tile_api.tilelang.utils import language
from tile_api.tilelang.utils import target as targets

import tile_api as tile
import tile_api.language as T
import tile_api.tilelang as tilelang
from support.trace import trace
from tile_api.tilelang import carver, install, names, quantize
from tile_core.dtypes import dtype_of
from tile_core.errors import DtypeMismatch, FrontendValueError, UnsupportedName


def unpacked(unpack, packed, count: int, dtype: str, storage: str = "uint8"):
    """Run a kernel that unpacks `count` numbers from each element of `packed`."""

    @T.prim_func
    def main(A: T.Tensor((len(packed),), storage), B: T.Tensor((len(packed) * count,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(len(packed) * count):
                B[i] = unpack(A[i // count], i % count)

    kernel = tile.compile(main, out_idx=[1], target="interpret")
    return np.asarray(kernel(packed)).astype("float64").tolist()


def test_where_buffers_are():
    predicates = {name for name in names.REGIONS.split() if name[:3] == "is_"} - {"is_full_region"}

    def told(A):
        made = {
            "global": A,
            "shared": T.alloc_shared((4,), "float32"),
            "fragment": T.alloc_fragment((4,), "float32"),
            "local": T.alloc_local((4,), "float32"),
            "local_var": T.alloc_var("int32"),
            "tensor_memory": T.alloc_tmem((128, 64), "float32"),
            "reducer": T.alloc_reducer((4,), "float32"),
        }
        for place, buffer in made.items():
            hold = {name for name in predicates if getattr(language, name)(buffer)}
            both = {"is_shared_dynamic"} if place == "shared" else set()
            assert hold == {f"is_{place}", *both}

    trace(told, A="float32[4]")


BYTES = np.arange(0, 256, 5, dtype="uint8")
NIBBLES = [int(b) >> shift & 15 for b in BYTES for shift in (0, 4)]


@pytest.mark.parametrize(
    ("make", "meaning"),
    [
        ("_tir_packed_to_unsigned_convert", lambda x: x),
        ("_tir_packed_to_signed_convert", lambda x: x - 8),
        ("_tir_packed_int_to_int_convert", lambda x: x - 16 * (x > 7)),
        (
            "_tir_packed_to_fp4_to_f16",
            lambda x: (-1) ** (x >> 3) * 2.0 ** ((x & 7) - 7) if x & 7 else 0.0,
        ),
    ],
)
def test_unpacking(make: str, meaning) -> None:
    convert = getattr(quantize, make)("uint", 8)
    found = unpacked(lambda value, at: convert(4, value, at, "float16"), BYTES, 2, "float16")
    assert found == [meaning(x) for x in NIBBLES]


def test_unpacking_with_zeros() -> None:
    convert = quantize._tir_packed_to_unsigned_convert_with_zeros("int", 32)
    found = unpacked(
        lambda value, at: convert(4, value, at, T.int32(7), "int32"),
        np.array([0x76543210], "int32"),
        8,
        "int32",
        "int32",
    )
    assert found == [x - 7 for x in range(8)]


def test_unpacking_scaled_floats() -> None:
    convert = quantize._tir_u8_to_f4_to_bf16
    found = unpacked(
        lambda value, at: T.cast(convert(4, value, at, T.uint8(2), "bfloat16"), "float32"),
        BYTES,
        2,
        "float32",
    )
    steps = [((x & 6) >> 1) + 1 for x in NIBBLES]
    expected = [
        (-1) ** (x >> 3) * 2.0**step * (1 + (x & 1) / 2)
        for x, step in zip(NIBBLES, steps, strict=True)
    ]
    assert found == expected


def test_unpacking_fp8() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bytes_ = np.arange(0, 120, dtype="uint8")
    convert = quantize._tir_u8_to_f8_e4m3_to_f16
    found = unpacked(lambda value, at: convert(8, value, "float16"), bytes_, 1, "float16")
    assert found == bytes_.view(ml_dtypes.float8_e4m3fn).astype("float64").tolist()


def test_packing() -> None:
    numbers = np.arange(16).reshape(2, 8)
    packed = quantize.general_compress(numbers, 4)
    assert packed.dtype == np.int8
    assert packed.view("uint8").tolist() == [[0x10, 0x32, 0x54, 0x76], [0x98, 0xBA, 0xDC, 0xFE]]
    assert quantize.general_compress(numbers, 4, np.uint32).tolist() == [[0x76543210], [0xFEDCBA98]]
    with pytest.raises(FrontendValueError, match="7 numbers of 4 bits do not fill bytes"):
        quantize.general_compress(numbers[:, :7], 4)
    with pytest.raises(UnsupportedName, match="get_lop3_intrin_group returns functions in CUDA"):
        quantize.get_lop3_intrin_group("float16", "uint", 4)


def test_targets() -> None:
    with install("cpu"):
        assert targets.determine_target("auto") == "cuda"
        found = targets.determine_target("auto", return_object=True)
        assert (found.kind.name, found.arch) == ("cuda", "sm_90")
        assert targets.target_is_hopper("cuda")
        assert targets.target_is_hopper("cuda -arch=sm_90a")
        assert targets.target_is_ampere("cuda -arch=sm_89")
        assert targets.target_is_cdna({"kind": "hip", "mcpu": "gfx942"})
        assert targets.check_cuda_availability()
        assert tilelang.contrib.nvcc.get_target_compute_version() == "9.0"
        assert tilelang.contrib.nvcc.have_fp8()
        assert tilelang.contrib.nvcc.have_tma("cuda")
    with install("cpu", gpu="sm_89"):
        assert targets.target_is_ampere("cuda")
        assert not tilelang.contrib.nvcc.have_tma("cuda")
    with install("hip:gfx942@sim"):
        assert targets.determine_target() == "hip"
        assert targets.target_get_warp_size("hip") == 64
        assert not targets.check_cuda_availability()


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim"])
def test_the_machine_as_a_chooser_of_tiles_sees_it(target: str) -> None:
    with install(target):
        arch = carver.arch.CUDA("cuda")
        assert carver.arch.driver.get_num_sms() == arch.compute_max_core >= 1
        assert arch.smem_cap >= 99 << 10
        assert arch.sm_version == (80 if "80" in target else 90)
        assert carver.arch.driver.get_device_attribute(10) == 32  # numbers of CUDA's driver
        version = [carver.arch.driver.get_device_attribute(number) for number in (75, 76)]
        assert version == [arch.sm_version // 10, 0]
        assert carver.arch.CUDA("cuda -arch=sm_90a").sm_version == 90


@pytest.mark.parametrize(
    ("template", "axes"),
    [
        (carver.template.MatmulTemplate(M=1024, N=512, K=256), 2),
        (carver.template.FlashAttentionTemplate(2, 8, 64, 256, 256), 2),
        (carver.template.ConvTemplate(N=1, C=64, H=16, W=16, F=64, K=3, P=1), 2),
        (carver.template.GEMVTemplate(N=1024, K=1024), 1),
        (carver.template.ElementwiseTemplate(shape=[512, 512], dtype="float16"), 1),
        (carver.template.GeneralReductionTemplate("SR", [1024, 512]), 1),
    ],
)
def test_hints(template, axes: int) -> None:
    with install("cuda:sm_80@sim"):
        arch = carver.arch.CUDA("cuda")
        hints = template.with_arch(arch).recommend_hints(topk=5)
    assert len(hints) == 5
    assert [hint.cost for hint in hints] == sorted(hint.cost for hint in hints)
    for hint in hints:
        assert len(hint.block) == len(hint.warp) == axes
        assert all(b % w == 0 for b, w in zip(hint.block, hint.warp, strict=True))
        if axes == 2:
            assert sum(hint.block) * hint.rstep[0] * 2 * hint.pipeline_stage <= arch.smem_cap
    with pytest.raises(UnsupportedName):
        template.equivalent_function().script()


def test_four_warps_share_a_tile_unless_it_is_small_or_large() -> None:
    with install("cuda:sm_80@sim"):
        hints = carver.template.MatmulTemplate(M=512, N=512, K=64).recommend_hints(topk=1000)
    warps = {tuple(hint.block): hint.thread for hint in hints}
    assert (warps[16, 16], warps[16, 32], warps[32, 16]) == ([1, 1], [1, 2], [2, 1])
    assert warps[32, 32] == warps[128, 128] == [2, 2]
    assert warps[128, 256] == [4, 2]


def test_a_matrix_product_for_many_multiprocessors_has_large_tiles() -> None:
    with install("cuda:sm_80@sim"):
        large, *_ = carver.template.MatmulTemplate(M=8192, N=8192, K=8192).recommend_hints()
        small, *_ = carver.template.MatmulTemplate(M=64, N=4096, K=4096).recommend_hints()
        least = carver.template.MatmulTemplate(M=16, N=4096, K=4096).recommend_hints()
    assert large.block[0] * large.block[1] >= 128 * 128
    assert small.block[0] <= 64
    assert {hint.block[0] for hint in least} == {16}


@T.prim_func
def add(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        for i, j in T.Parallel(64, 64):
            B[i, j] = A[i, j] + 1.0


def test_analysis() -> None:
    with install("cuda:sm_80@sim"):
        found = tilelang.tools.Analyzer.analysis(add, carver.arch.CUDA("cuda"))
    assert found.total_global_bytes == 2 * 64 * 64 * 4
    assert found.total_flops == 64 * 64
    assert found.estimated_time > 0


def test_parameters() -> None:
    kernel = tile.compile(add, target="interpret")
    params = [tilelang.engine.KernelParam.from_buffer(p) for p in kernel.params]
    assert [p.shape for p in params] == [[64, 64], [64, 64]]
    assert not params[0].is_scalar()
    supply = tilelang.utils.tensor.get_tensor_supply(tilelang.TensorSupplyType.One)
    assert supply(params[0]).sum() == 4096
    torch = pytest.importorskip("torch")
    assert params[0].torch_dtype() is torch.float32
    assert tilelang.utils.tensor.map_torch_type("bfloat16") is torch.bfloat16


def test_semi_sparse_matrices() -> None:
    pytest.importorskip("torch")
    with install("cpu"):
        made = tilelang.utils.sparse.randn_semi_sparse(8, 32)
    assert (made.reshape(8, 8, 4) != 0).sum(-1).eq(2).all()


@pytest.mark.parametrize(
    ("dtype", "meta", "factor"),
    [("float16", "int16", 16), ("int8", "int32", 32), ("float8_e4m3", "int8", 8),
     ("float32", "int16", 8), ("tfloat32", "int8", 4)],
)  # fmt: skip
def test_layouts_of_semi_sparse_matrices(dtype: str, meta: str, factor: int) -> None:
    with install("cpu"):
        from tilelang.cuda.intrinsics.sparse_layout import GROUP_CONFIG, get_e_factor

        kept, group = GROUP_CONFIG[dtype_of(dtype)]
        assert kept * 2 == group
        assert get_e_factor(dtype, meta) == factor
        with pytest.raises(DtypeMismatch, match="no sparse matrix product takes float64"):
            get_e_factor("float64", meta)


def test_hooks_on_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def hook(code: str, target: object) -> str:
        return code

    with install("cpu"):
        assert tilelang.register_cuda_postproc(hook) is hook
        assert tilelang.register_cuda_postproc()(hook) is hook
    with install("cuda:sm_80@sim"), pytest.raises(UnsupportedName, match="changes the source"):
        tilelang.register_cuda_postproc(hook)


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    env = tilelang.env
    monkeypatch.setenv("TILELANG_VERBOSE", "1")
    assert env.TILELANG_VERBOSE == "1"
    assert env.TILELANG_NOT_SET == ""
    assert env.is_print_on_compilation_enabled()
    assert env.TILELANG_CACHE_DIR
    assert tilelang.cached is tilelang.cache.cached is tilelang.compile
    assert env.is_cache_enabled() == tilelang.is_cache_enabled()
    before = [logging.getLogger(name).level for name in ("tile", "tilelang")]
    try:
        tilelang.set_log_level("warning")
        assert logging.getLogger("tilelang").level == logging.WARNING
    finally:
        for name, level in zip(("tile", "tilelang"), before, strict=True):
            logging.getLogger(name).setLevel(level)


def test_deprecated() -> None:
    @tilelang.deprecated("old", "new")
    def old() -> int:
        return 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert old() == 1
    assert str(caught[0].message) == "old is deprecated: use new"


@T.prim_func
def strided(A: T.StridedTensor((8, 4), (8, 1), "float32"), n: T.int32):
    with T.Kernel(1, threads=32):
        A[0, 0] = n


def test_a_traced_function_tells_its_tensors() -> None:
    (tensor,) = strided.buffer_map.values()
    assert (list(tensor.shape), list(tensor.strides)) == ([8, 4], [8, 1])
    assert strided.buffer_map[strided.params[0]].dtype == "float32"


def test_a_call_may_return_the_kernel() -> None:
    with install("cpu"):

        @tilelang.jit
        def doubled(A, block: int = 16):
            n = T.const("n")
            A: T.Tensor((n,), "float32")
            B = T.empty((n,), "float32")
            with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * 2
            return B

        tuned = tilelang.autotune(configs=[{"block": 8}], warmup=1, rep=1)(doubled)
        a = np.arange(8, dtype="float32")
        for function in (doubled, tuned):
            kernel = function(a, __return_kernel=True)
            assert isinstance(kernel, tilelang.JITKernel)
            assert kernel(a).tolist() == (a * 2).tolist()


def test_the_class_of_kernels_compiles_one() -> None:
    with install("cpu"):
        kernel = tilelang.JITKernel(strided, target="cuda")
        assert isinstance(kernel, tilelang.JITKernel)
        assert kernel.target.startswith("cpu")
    assert not isinstance(strided, tilelang.JITKernel)
