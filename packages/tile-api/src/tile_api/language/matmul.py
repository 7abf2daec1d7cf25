"""Matrix multiplication."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.values import as_region, as_value
from tile_api.language.operands import Annotations, count, element, emit, here, merged
from tile_core.errors import (
    FrontendTypeError,
    FrontendValueError,
    GemmShapeMismatch,
    Note,
    ScopeMismatch,
)
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.expr import AddressOf, Call, Expr, Load
from tile_core.ir.stmt import Store
from tile_core.ops.gemm import Gemm, GemmWarpPolicy, WaitProducts
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.region_pairing import describe

__all__ = ["GemmWarpPolicy", "dp4a", "gemm", "wait_wgmma", "wgmma_gemm"]


def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | int = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    mbar: Any = None,
    annotations: Annotations = None,
    *,
    k_pack: int = 1,
    wg_wait: int = 0,
) -> None:
    """Multiply two tiles and add the product to a third: ``C += op(A) @ op(B)``.

    Parameters
    ----------
    A : [..., M, K], or [..., K, M] if `transpose_A`; shared, fragment or local
    B : [..., K, N], or [..., N, K] if `transpose_B`; shared, fragment or local
    C : [..., M, N]; fragment, shared or local
        Accumulates in its own element type. Leading extents of all three are 1; M, N and K
        are compile-time integers.
    policy
        How warps divide C; no effect on results.
    clear_accum
        Overwrite `C` instead of adding to it; may be an expression such as ``k == 0``.
    k_pack, annotations
        Hints for GPUs, without effect on results.
    wg_wait
        Where MMAs are asynchronous, as on Hopper GPUs: how many MMAs
        issued later may still be in flight when this one is left; -1 for any number,
        and `T.wait_wgmma` waits.
    mbar
        A barrier to arrive on, as programs for Blackwell GPUs pass: no target offers that
        product by name, and compilation says so.

    Raises
    ------
    GemmShapeMismatch
        If M, N or K of the operands disagree.
    DtypeMismatch
        If integers meet floats, or floats are accumulated in integers.
    ScopeMismatch
        If an operand is in global memory.

    Notes
    -----
    Shared tiles of `T.int4` or `T.uint4` that are copied from tensors of that type, have K
    along their rows and are nothing but factors stay two elements to a byte, and the 4-bit
    instructions of NVIDIA GPUs from Turing to Ada multiply them. A tile that is written or
    read element by element has a byte for each element, and is multiplied as bytes.
    """
    op = _product("T.gemm", A, B, C, transpose_A, transpose_B, policy, clear_accum, k_pack)
    _check_hints(wg_wait, annotations)
    if mbar is None:
        emit(replace(op, wg_wait=wg_wait))
        return
    barrier = as_region(mbar, "the barrier of T.gemm")
    _emit_on_gpu("tcgen05_gemm", op, (barrier,))


def wgmma_gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | int = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    annotations: Annotations = None,
) -> None:
    """Start a product of tiles on Hopper GPUs and do not wait; `T.wait_wgmma` does.

    Operands and errors are those of `T.gemm`. Other machines compute it in their own way, at
    once.
    """
    merged({}, annotations)
    op = _product("T.wgmma_gemm", A, B, C, transpose_A, transpose_B, policy, clear_accum, 1)
    emit(replace(op, wg_wait=-1, instruction="async_mma"))


def wait_wgmma(id: int = 0) -> None:
    """Wait until at most `id` of the products that were left in flight still are.

    Products are left so by ``T.gemm(…, wg_wait=-1)`` and `T.wgmma_gemm`, and end in the order
    in which they began. Where products run as they are met there is nothing to wait for.

    Raises
    ------
    FrontendValueError
        If `id` is negative.
    """
    emit(WaitProducts(count(id, "the number of products", least=0)))


def _emit_on_gpu(name: str, op: Gemm, more: tuple[Region, ...]) -> None:
    span = current().span
    Gemm(op.a, op.b, op.c, op.transpose_a, op.transpose_b, op.clear, span=span).verify()
    settings = (
        f"transpose_A={op.transpose_a}",
        f"transpose_B={op.transpose_b}",
        f"policy={op.policy.name}",
    )
    emit(GpuOperator(name, (op.a, op.b, op.c, *more), (op.clear,), settings))


def _product(
    name: str,
    a: Any,
    b: Any,
    c: Any,
    transpose_a: Any,
    transpose_b: Any,
    policy: Any,
    clear: Any,
    k_pack: Any,
) -> Gemm:
    regions = [
        as_region(x, f"{which} of {name}") for which, x in zip("ABC", (a, b, c), strict=True)
    ]
    for region, which in zip(regions, "ABC", strict=True):
        _check_scope(region, f"{which} of {name}")
    flags = [
        _flag(f, f"transpose_{w} of {name}") for f, w in ((transpose_a, "A"), (transpose_b, "B"))
    ]
    return Gemm(
        regions[0],
        regions[1],
        regions[2],
        flags[0],
        flags[1],
        clear=build_expr.truth(as_value(clear)),
        policy=_policy(policy),
        k_pack=count(k_pack, "k_pack"),
    )


def _check_scope(region: Region, what: str) -> None:
    if region.buffer.scope in (Scope.SHARED, Scope.FRAGMENT, Scope.LOCAL, Scope.ACCUMULATOR):
        return
    raise ScopeMismatch(
        f"{what} must be a shared or fragment tile, but {region.buffer.name!r} is in "
        f"{region.buffer.scope.value} memory",
        notes=(Note(f"{region.buffer.name} is declared here", region.buffer.span),),
        hint="copy it into a tile made with T.alloc_shared first",
    )


def _matrix(region: Region, name: str) -> tuple[int, int]:
    """Return rows and columns of an operand of `name`."""
    extents = region.static_extents
    if extents is None or len(extents) < 2 or any(e != 1 for e in extents[:-2]):
        raise GemmShapeMismatch(
            f"{name} needs a matrix of compile-time extents, got {describe(region)}",
            notes=(Note(f"{region.buffer.name} is declared here", region.buffer.span),),
            hint="slice leading dimensions to one element, as in A[k, :, :]",
        )
    return extents[-2], extents[-1]


def _flag(value: Any, what: str) -> bool:
    if isinstance(value, (Expr, str)) or not isinstance(value, (bool, int)):
        raise FrontendTypeError(
            f"{what} must be True or False, got {value!r}",
            hint="pass True or False, known while the kernel is traced",
        )
    return bool(value)


def _policy(policy: Any) -> GemmWarpPolicy:
    try:
        return GemmWarpPolicy(policy)
    except ValueError:
        raise FrontendValueError(
            f"{policy!r} is not a warp policy",
            hint="use T.GemmWarpPolicy.Square, FullRow or FullCol",
        ) from None


def _check_hints(wg_wait: Any, annotations: Any) -> None:
    count(wg_wait, "wg_wait", least=-1)
    merged({}, annotations)


def dp4a(A: Any, B: Any, C: Any) -> None:
    """Add the dot product of four 8-bit integers of `A` and of `B` to an element of `C`.

    Parameters
    ----------
    A, B
        Buffers or elements of int8 or uint8: the four from there on along the last dimension.
    C
        Buffer or element of int32.

    Raises
    ------
    FrontendValueError
        Other element types, or fewer than four elements.
    """
    (a, a_at), (b, b_at), (c, c_at) = (
        element(x, f"{which} of T.dp4a") for which, x in zip("ABC", (A, B, C), strict=True)
    )
    for which, buffer in (("A", a), ("B", b)):
        if buffer.dtype not in ("int8", "uint8"):
            told = f"dp4a requires {which} to be int8 or uint8, got {buffer.dtype}"
            raise FrontendValueError(told, hint="convert it first, or use T.gemm")
        _check_four(which, buffer)
    if c.dtype != "int32":
        raise FrontendValueError(
            f"dp4a requires C to be int32, got {c.dtype}",
            hint="allocate it with T.alloc_local((1,), 'int32')",
        )
    addresses = (AddressOf(a, a_at, "r"), AddressOf(b, b_at, "r"))
    total = Call("dp4a", (*addresses, Load(c, c_at, span=here())), c.dtype, span=here())
    emit(Store(c, c_at, total))


def _check_four(which: str, buffer: Buffer) -> None:
    last = buffer.shape[-1] if buffer.shape else 1
    if isinstance(last, int) and last < 4:
        raise FrontendValueError(
            f"dp4a requires four elements along the last dimension of {which}, "
            f"{buffer.name!r} has {last}",
            hint="pass four consecutive elements, as in A[i, 4 * k : 4 * k + 4]",
        )
