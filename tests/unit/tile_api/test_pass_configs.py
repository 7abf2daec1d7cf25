"""Every key of ``pass_configs`` does what its row says, is warned of by name, or is refused."""

from __future__ import annotations

import warnings

import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.pass_configs import normalise_pass_configs
from tile_api.pass_configs.table import BITS, FLAG, FLAGS, LEVEL, TEXT, TIME, table
from tile_core.errors import FrontendValueError, TileWarning

ROWS = table()
IDLE = [row for row in ROWS.values() if not row.targets]
WRONG = {
    FLAG: ["False", "", 2, 1.0, [], "true"],
    LEVEL: [11, -1, True, "3", 2.0],
    TIME: [-1, "1", True],
    TEXT: [1, True, ["nvcc"]],
    FLAGS: [1, True, [1], {"-G": 1}],
    BITS: [48, True, 32.0, "32"],
}
OTHER = {FLAG: [True, False], LEVEL: [3], TIME: [1.5], TEXT: ["folder"], FLAGS: ["-G"]}


@pytest.mark.parametrize("key", ROWS)
def test_values_are_checked(key):
    row = ROWS[key]
    for value in WRONG.get(row.kind, []):
        with pytest.raises(FrontendValueError) as caught:
            normalise_pass_configs({key: value})
        told = f"[TL1002] pass config {key!r} is {row.kind.allowed}, got {value!r}\nhint: "
        assert str(caught.value).startswith(told)
    assert normalise_pass_configs({key: None}) == {}
    if row.default is not None:
        assert normalise_pass_configs({row.key: row.default}) == {key: row.default}


@pytest.mark.parametrize("row", IDLE, ids=lambda row: row.key.value)
def test_what_has_nothing_to_do_says_so_unless_it_asks_for_what_is_done(row):
    name = row.key.value
    for value in row.silent:
        assert normalise_pass_configs({name: value}) in ({name: value}, {})
    for value in OTHER.get(row.kind, ["something"]):
        if value in row.silent or row.kind is BITS:
            continue
        if row.refused:
            with pytest.raises(FrontendValueError) as error:
                normalise_pass_configs({name: value})
            assert f"pass config {name!r} cannot be {value!r}: {row.meaning}" in str(error.value)
            continue
        with pytest.warns(TileWarning) as caught:
            normalise_pass_configs({name: value})
        (told,) = caught
        way = f"; {row.hint}" if row.hint else ""
        assert str(told.message) == (
            f"pass config {name!r} has nothing to do here, because {row.meaning}{way}"
        )


def test_a_warning_is_told_once_at_the_line_of_the_user():
    configs = {"tl.ast_print_enable": True}
    tile.lower(two_tiles, target="cpu")  # imports what makes warnings forget whom they told
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            tile.lower(two_tiles, target="cpu", pass_configs=configs)
    (told,) = caught
    assert told.filename == __file__


def test_newer_spellings():
    assert normalise_pass_configs({"tirx.use_async_copy": False}) == {"tir.use_async_copy": False}
    assert normalise_pass_configs({"tl.dump_ir_path": ""}) == {"tl.dump_ir_dir": ""}
    flags = {"tl.device_compile_flags": ["-G", "-DX=1"]}
    assert normalise_pass_configs(flags) == {"tl.device_compile_flags": "-G -DX=1"}


@T.prim_func
def product(
    A: T.Tensor((200, 256), "float16"),
    B: T.Tensor((256, 128), "float16"),
    C: T.Tensor((200, 128), "float16"),
):
    with T.Kernel(2, threads=128) as b:
        left = T.alloc_shared((128, 32), "float16")
        right = T.alloc_shared((32, 128), "float16")
        sums = T.alloc_fragment((128, 128), "float32")
        T.clear(sums)
        for k in T.Pipelined(8, num_stages=2):
            T.copy(A[b * 128, k * 32], left)
            T.copy(B[k * 32, 0], right)
            T.gemm(left, right, sums)
        T.copy(sums, C[b * 128, 0])


@T.prim_func
def product_of_floats(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        left = T.alloc_shared((64, 64), "float32")
        sums = T.alloc_fragment((64, 64), "float32")
        T.copy(A, left)
        T.gemm(left, left, sums, clear_accum=True)
        T.copy(sums, C)


@T.prim_func
def two_tiles(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        first = T.alloc_shared((64,), "float32")
        T.copy(A, first)
        T.copy(first, B)
        second = T.alloc_shared((64,), "float32")
        T.copy(B, second)
        T.copy(second, A)


@T.prim_func
def exchange(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding(0)
        tile_ = T.alloc_shared((64,), "float32")
        tile_[tx] = A[tx]
        A[tx] = tile_[63 - tx]


@T.prim_func
def shifted(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), by: T.int32):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i + by]


CHANGES = [
    ("tl.allow_tf32", True, product_of_floats, "cuda:sm_80"),
    ("tl.allow_tf32", True, product_of_floats, "hip:gfx942"),
    ("tl.disable_warp_specialized", True, product, "cuda:sm_90a"),
    ("tl.disable_tma_lower", True, product, "cuda:sm_90a"),
    ("tl.disable_wgmma", True, product, "cuda:sm_90a"),
    ("tl.disable_shuffle_elect", True, product, "cuda:sm_90a"),
    ("tl.enable_async_copy", False, product, "cuda:sm_80"),
    ("tir.use_async_copy", False, product, "cuda:sm_80"),
    ("hip.lds_load", False, product, "hip:gfx942"),
    ("tl.disable_pipeline_folding", True, product, "cuda:sm_80"),
    ("tl.disable_store_staging", True, product, "cuda:sm_80"),
    ("tl.disable_shared_memory_reuse", True, two_tiles, "cuda:sm_80"),
    ("tl.disable_safe_memory_legalize", True, product, "cuda:sm_80"),
    ("tl.disable_safe_memory_legalize", True, shifted, "cpu:haswell"),
    ("tl.disable_thread_storage_sync", True, exchange, "cuda:sm_80"),
]
OF_COMPILERS = (
    "tl.enable_fast_math",
    "tl.disable_fast_math",
    "tl.device_compile_flags",
    "tl.ptxas_register_usage_level",
    "cuda.compiler",
    "hip.compiler",
)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("key", "value", "kernel", "target"), CHANGES)
def test_what_is_lowered_changes(key, value, kernel, target):
    stage = "source" if not target.startswith("cpu") else "lowered"
    before = tile.lower(kernel, target=target).lowered.text(stage)
    assert (
        tile.lower(kernel, target=target, pass_configs={key: value}).lowered.text(stage) != before
    )
    default = {key: ROWS[key].default}
    assert tile.lower(kernel, target=target, pass_configs=default).lowered.text(stage) == before


def test_every_key_is_tried():
    assert {key for key, *_ in CHANGES} | {*OF_COMPILERS} == {
        name for name, row in ROWS.items() if row.targets
    }


@pytest.mark.parametrize(
    ("configs", "flags"),
    [
        ({}, ("-a",)),
        ({"tl.enable_fast_math": True}, ("-a", "--use_fast_math")),
        ({"tl.enable_fast_math": True, "tl.disable_fast_math": True}, ("-a",)),
        ({"tl.ptxas_register_usage_level": 7}, ("-a", "--ptxas-options=--register-usage-level=7")),
        ({"tl.device_compile_flags": ["-b", "-c"]}, ("-a", "-b", "-c")),
    ],
)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_flags_for_the_compilers_of_gpus(configs, flags, target):
    lowered = tile.lower(two_tiles, target=target, pass_configs=configs, compile_flags="-a")
    assert lowered.lowered.module.compile_flags == flags


@T.prim_func
def quotients(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = T.exp(A[i]) / A[i]


def test_fast_mathematics_is_machine_code():
    """NVRTC approximates the division; HIP's compilers are asked in their own words."""
    pytest.importorskip("cuda.pathfinder")
    exact = tile.compile(quotients, target="cuda:sm_80")
    fast = tile.compile(
        quotients, target="cuda:sm_80", pass_configs={tile.PassConfigKey.TL_ENABLE_FAST_MATH: True}
    )
    assert "div.rn.f32" in exact.ptx
    assert "div.approx.ftz.f32" in fast.ptx
    assert "div.rn.f32" not in fast.ptx
