"""Factors of float32 are rounded to tf32 if, and only if, the user allows it."""

import re

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.toolchain import nvrtc_for
from tile_api.kernel import CompiledKernel

KEY = tile.PassConfigKey.TL_ALLOW_TF32


def product(factor="float32", **noted):
    """A product of 64 x 32 by 32 x 64 that notes pass configurations."""

    @T.prim_func
    def product(
        A: T.Tensor((64, 32), factor),
        B: T.Tensor((32, 64), factor),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            T.annotate_pass_configs(noted)
            a = T.alloc_shared((64, 32), factor)
            b = T.alloc_shared((32, 64), factor)
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            T.copy(c, C)

    return product


def of_identity(kernel: CompiledKernel, a: np.ndarray) -> np.ndarray:
    """Return ``a @ identity`` as the kernel computes it."""
    c = np.full((64, 64), np.nan, np.float32)
    kernel(a, np.eye(32, 64, dtype=np.float32), c)
    assert (c[:, 32:] == 0).all()
    return c[:, :32]


def numbers() -> np.ndarray:
    """Float32 numbers from [1, 2) with 20 bits behind the point."""
    whole = np.random.default_rng(1).integers(0, 1 << 20, (64, 32))
    return (1 + whole / 2**20).astype(np.float32)


def to_tf32(x: np.ndarray) -> np.ndarray:
    """Round to 10 bits of mantissa: to nearest, ties away from zero."""
    return ((x.view(np.uint32) + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


def test_products_are_exact_by_default() -> None:
    kernel = tile.compile(product(), target="cuda:sm_80@sim")
    a = numbers()
    np.testing.assert_array_equal(of_identity(kernel, a), a)


def test_products_are_rounded_where_that_is_allowed() -> None:
    kernel = tile.compile(product(), target="cuda:sm_80@sim", pass_configs={KEY: True})
    a = numbers()
    assert not np.array_equal(to_tf32(a), a)
    np.testing.assert_array_equal(of_identity(kernel, a), to_tf32(a))


@pytest.mark.parametrize(
    ("arch", "noted", "given", "used"),
    [
        ("sm_80", {}, {}, False),
        ("sm_80", {"tl.allow_tf32": True}, {}, True),
        ("sm_80", {"tl.allow_tf32": True}, {KEY: False}, False),
        ("sm_89", {}, {"tl.allow_tf32": True}, True),
        ("sm_75", {}, {KEY: True}, False),  # has no such instruction
    ],
)
def test_who_may_allow_it(arch: str, noted: dict, given: dict, used: bool) -> None:
    lowered = tile.lower(product(**noted), target=f"cuda:{arch}", pass_configs=given)
    assert ("tile::mma_m16n8k8(" in lowered.kernel_source) is used


def test_other_products_stay_as_they_are() -> None:
    plain = tile.lower(product("float16"), target="cuda:sm_80")
    allowed = tile.lower(product("float16"), target="cuda:sm_80", pass_configs={KEY: True})
    assert allowed.kernel_source == plain.kernel_source


def test_the_instruction_is_that_of_tf32() -> None:
    nvrtc_for("sm_80")
    exact = tile.compile(product(), target="cuda:sm_80").ptx
    rounded = tile.compile(product(), target="cuda:sm_80", pass_configs={KEY: True}).ptx
    assert "mma.sync" not in exact
    assert set(re.findall(r"mma\.sync\.\S+", rounded)) == {
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
    }
    assert "cvt.rna.tf32.f32" in rounded


def in_rounds(factor: str) -> str:
    """Return the text of a kernel whose threads read the sums of each round's product."""

    @T.prim_func
    def rounds(
        A: T.Tensor((64, 256), factor),
        B: T.Tensor((64, 256), factor),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), factor)
            b = T.alloc_shared((64, 32), factor)
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            T.clear(d)
            for k in T.Pipelined(8, num_stages=3):
                T.copy(A[0, k * 32], a)
                T.copy(B[0, k * 32], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(64, 64):
                    d[i, j] += c[i, j] * 2
            T.copy(d, C)

    return tile.lower(rounds, target="cuda:sm_90a", pass_configs={KEY: True}).kernel_source


def test_rounded_products_that_are_under_way_are_waited_for_like_others() -> None:
    """The compiler must not read the sums of a product in front of the wait for it."""
    waits = [
        re.findall(r"tile::wgmma_(commit|wait<\d>|pin<32>\(\w+)", in_rounds(factor))
        for factor in ("float32", "tfloat32")
    ]
    assert waits[0] == waits[1]
    assert waits[0][:3] == ["commit", "wait<0>", "pin<32>(c"]
