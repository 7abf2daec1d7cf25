"""Printer and parser: the text is stable and reads back."""

import pickle

import pytest

import tile_api.language as T
from tile_core.errors import ParseError
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS

GEMM = """\
kernel gemm[m: int32](A: global float16[m, 64], B: global float16[64, 128], n: int64) -> [1]:
  launch bx: int32 in ((m + 31) // 32) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc A_shared: shared float16[32, 16]
    alloc C_local: local.fragment float32[32, 128]
    @fill(dst=C_local[0:32, 0:128], value=0.0)
    pipelined k: int32 in range(0, 4) stages 3:
      @copy(src=A[bx * 32:32, k * 16:16], dst=A_shared[0:32, 0:16])
      @gemm(a=A_shared[0:32, 0:16], b=B[k * 16:16, 0:128], c=C_local[0:32, 0:128], \
transpose_a=false, transpose_b=false, clear=false)
    view flat: local.fragment float32[4096] of C_local
    parallel i: int32, j: int32 in (32, 128) width 4:
      C_local[i, j] = (j <= i ? max(C_local[i, j], 0.0) : exp2(flat[i * 128 + j]))
"""

STATEMENTS = """\
kernel statements(A: global float32[8] strides [2], s: float32):
  launch  in () threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    alloc v: local.var int32[1]
    v[0] = -3
    for i: int32 in range(7, -1, -2) serial:
      if v[0] < i and not (i == 5):
        continue
      else:
        break
    while v[0] > 0:
      let step: int32 = v[0] // 2
      v[0] = v[0] - max(step, 1)
    assert v[0] == 0, "counts down"
    assume s > float32(-inf), ""
    safe_value A = 1.5
    hint use_swizzle [10, "row"]
    block:
      let a: float16 = cast[float16](s)
      eval atomic_add(&rw A[tx], cast[float32](a), "relaxed")
    let bits: int32 = bitcast[int32](s) >> 3 & 7 | -(4)
    A[ramp(0, 1, 4)] = shuffle([broadcast(s, 4), A[ramp(4, 1, 4)]], [0, 4, 1, 5])
    let far: int64 = int64(5000000000)
    @barrier()
    @print(message="v = ", values=[v[0]])
"""


def parse(text: str) -> Kernel:
    return parse_kernel(text, OPERATORS, str)


@pytest.mark.parametrize("text", [GEMM, STATEMENTS])
def test_text_survives_parsing_and_printing(text: str) -> None:
    kernel = parse(text)
    verify(kernel)
    assert print_kernel(kernel) == text
    assert structurally_equal(kernel, parse(print_kernel(kernel)))


def test_structural_equality_sees_what_differs() -> None:
    assert not structurally_equal(parse(GEMM), parse(GEMM.replace("stages 3", "stages 2")))
    assert not structurally_equal(parse(GEMM), parse(GEMM.replace("bx * 32:32", "bx * 32:16")))
    assert not structurally_equal(parse(GEMM), parse(GEMM.replace("float16", "bfloat16")))
    assert not structurally_equal(parse(GEMM), parse(GEMM.replace("m: int32", "m: int64")))
    renamed = GEMM.replace("A_shared", "tile")
    assert structurally_equal(parse(GEMM), parse(renamed))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  frobnicate", "line 2, column 3: 'frobnicate' starts no statement"),
        ("  A[0] = q", "line 2, column 10: 'q' is not declared"),
        ("  A[0] = 1.0 1.0", "line 2, column 14: unexpected '1.0'"),
        ("  A[0] = $", "line 2, column 10: unexpected '$'"),
        ("  @warp()", "line 2, column 4: there is no operator 'warp'"),
        ("  @fill(size=1)", "line 2, column 13: 'fill' has no field 'size'"),
        (
            "  for i: int32 in range(0, 1, 1) serial",
            "line 2, column 40: expected ':', got 'the end",
        ),
    ],
)
def test_parse_errors_say_where(line: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(f"kernel k(A: global float32[1]):\n{line}\n")
    assert str(caught.value).startswith(f"[TL1101] {message}")


def test_names_are_made_unique_and_legal() -> None:
    kernel = parse(GEMM)
    text = print_kernel(kernel)
    clash = parse_kernel(text.replace("flat", "k_1").replace("C_local", "k_2"), OPERATORS, str)
    assert structurally_equal(kernel, clash)


def test_a_kernel_that_was_pickled_is_written_as_before():
    """Texts that are read from a file equal the defaults of fields, and are other objects."""

    @T.prim_func
    def add(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((8,), "float32")
            T.copy(A, tile)
            T.atomic_add(B, tile, memory_order="".join(["rel", "axed"]))

    text = print_kernel(add.kernel)
    assert "memory_order" not in text
    assert print_kernel(pickle.loads(pickle.dumps(add.kernel))) == text
