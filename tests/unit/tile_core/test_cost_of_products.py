"""Whatever a backend multiplies with is counted as tensor work, at a rate of its own."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

import tile_api.language as T
import tile_cuda.atoms
from support.scaled_products import E2M1, E4M3, ScaledProduct
from tile_core.cost.gpu_calls import SCALED, product_of
from tile_core.cost.gpu_issue import Issue, Issued
from tile_core.cost.iteration_spaces import Space
from tile_core.cost.statement_walk import visit
from tile_core.driver import lower
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr
from tile_core.ir.device_calls import DEVICE_CALLS, device_call
from tile_core.ir.expr import AddressOf, Call
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost
from tile_cuda.machine import ARCHITECTURES, machine
from tile_cuda.speeds import PRODUCTS
from tile_hip.machine import DEVICE_NAMES as HIP_NAMES
from tile_hip.speeds import PRODUCTS as AMD

NEITHER = "fence|commit|wait|pin|operand"  # what stands around products
BYTES = ScaledProduct(n=128, step=128, each=True)
PAIRS = ScaledProduct(n=128, step=128, each=True, a=E2M1, b=E2M1, scales=E4M3, group=16)
KINDS = ("float16", "bfloat16", "tfloat32", "int8", "float8_e4m3fn", "float8_e5m2", "float64")


def header_names() -> set[str]:
    """Return every function of headers of CUDA that multiplies matrices, as programs call it."""
    found: set[str] = set()
    for header in files("tile_cuda").joinpath("include/tile_cuda").iterdir():
        for name in re.findall(r"\b((?:mma|wgmma|tcgen05_mma)_?\w*)\(", header.read_text()):
            found.add(re.sub(r"^tcgen05_mma", "accumulators_mma", name))
    asynchronous = {n.replace("wgmma_", "async_mma_") for n in found}
    return {n for n in asynchronous if not re.search(f"_({NEITHER})$", n)}


def table_names() -> set[str]:
    """Return what tables of instructions, and of calls, have."""
    machines = ARCHITECTURES.values()
    atoms = [*tile_cuda.atoms.all_atoms()]
    for m in machines:
        for pair in (("uint8", "uint8"), (E4M3, E4M3)):
            atoms += tile_cuda.atoms.atoms_for_nibbles(m, *pair, "int32")
            atoms += tile_cuda.atoms.atoms_with_scales(m, *pair, pair[0] == "uint8")
    calls = {n for n in DEVICE_CALLS if "mma" in n and not re.search(f"_({NEITHER})$", n)}
    return {a.function for a in atoms} | calls | {n for n in HIP_NAMES if n.startswith("mma_")}


@pytest.mark.parametrize("name", sorted(table_names() | header_names()))
def test_every_product_is_tensor_work(name: str) -> None:
    row = device_call(name)
    assert row is not None
    shared = Buffer("S", (64,), dtype_of("int8"), Scope.SHARED)
    place = AddressOf(shared, (as_expr(0),))
    templates = {"accumulators_mma_ts": (64, 0, 2), "async_mma_rs": (64, 0, 2)}
    templates["accumulators_mma_pair"] = (64, 0, 0, 2)
    chosen = next((t for n, t in templates.items() if name.startswith(n)), (128, 64, 0, 0, 2))
    if name.startswith("async_mma_ss"):
        chosen = (64, 0, 0, 2)
    args = () if name.startswith("mma_") else map(as_expr, chosen)
    call = Call(f"device:{name}", (*args, *[place] * (row.operands or 3)), dtype_of("int32"))
    found = product_of(call, machine("sm_90a").async_mma)
    assert found is not None
    assert found.flops >= 2 * 8 * 8 * 4


def issued(kernel: Kernel, target: str, host: PluginHost) -> Issued:
    program = lower(kernel, target, host).module
    (function,) = program.functions
    counting = Issue(function, program.machine)
    visit(function.launch, Space({}), counting, with_threads=True)
    return counting.found


def gemm(dtype: str, total: str) -> Kernel:
    @T.prim_func
    def product(
        A: T.Tensor((256, 256), dtype),
        B: T.Tensor((256, 256), dtype),
        C: T.Tensor((256, 256), total),
    ):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a, b = T.alloc_shared((128, 64), dtype), T.alloc_shared((128, 64), dtype)
            c = T.alloc_fragment((128, 128), total)
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[bx * 128, k * 64], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * 128, bx * 128])

    return product.kernel


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float8_e4m3fn"])
def test_kernels_multiply_what_they_ask_for(arch: str, dtype: str, host: PluginHost) -> None:
    total = "int32" if dtype == "int8" else "float32"
    found = issued(gemm(dtype, total), f"cuda:{arch}", host)
    if found.flops:
        assert sum(found.flops.values()) == 2 * 256**3
    else:  # of arithmetic
        assert found.instructions["products"] == 0
        assert not any(
            a for a in tile_cuda.atoms.atoms_for_tiles(machine(arch), dtype, dtype, total)
        )


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a"])
@pytest.mark.parametrize("product", [BYTES, PAIRS], ids=["MXFP8", "NVFP4"])
def test_products_with_scales(arch: str, product: ScaledProduct, host: PluginHost) -> None:
    found = issued(product.kernel(), f"cuda:{arch}", host)
    joint = machine(arch).has("accumulator_memory")
    assert found.flops == {(SCALED + product.a, joint): 2 * 128 * 128 * 256}


@pytest.mark.parametrize("row", [*PRODUCTS, *AMD], ids=lambda r: f"{r.name}-{r.arch}")
def test_products_are_faster_than_arithmetic(row) -> None:
    """No type that an architecture multiplies is left to the rate of its arithmetic."""
    if row.arch.startswith("gfx"):
        return
    one = machine(row.arch)
    for kind in KINDS:
        total = "int32" if kind == "int8" else kind if kind == "float64" else "float32"
        if tile_cuda.atoms.atoms_for(one, kind, kind, total):
            lanes = row.double_lanes if kind == "float64" else row.lanes
            assert row.product_rate(kind) >= 2 * lanes
            assert any(kind.startswith(known) for known in row.products) or kind == "float64"
    for kind, feature in (
        (E4M3, "scaled_mma"), (E2M1, "scaled_mma"),
        (E4M3, "accumulator_memory_scaled"), (E2M1, "accumulator_memory_scaled"),
    ):  # fmt: skip
        if one.has(feature):
            assert row.product_rate(SCALED + kind) >= row.product_rate("float8_e4m3fn")
