"""Whole programs as C++: people should recognise their kernels."""

from textwrap import dedent

from support.device_programs import (
    BX,
    TID,
    at,
    do,
    flat,
    function,
    load,
    loop,
    place,
    program,
    registers,
    scalar,
    shared,
    store,
)
from tile_core.codegen import print_program
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr, binary, cast
from tile_core.ir.expr import AddressOf, BinaryOp, Call
from tile_core.ir.stmt import Alloc, Evaluate, If, LoopKind

N = scalar("N")
I = scalar("i")


def vector_add(name="add"):
    A, B, C = (flat(x, 0, "float32") for x in "ABC")
    index = BX * 128 + TID
    body = store(C, index, load(A, index) + load(B, index), span=place(9))
    guarded = If(binary(BinaryOp.LT, index, N), body, span=place(8))
    return function((A, B, C, N), guarded, name=name, span=place(5))


def test_vector_add():
    source = print_program(program(vector_add()))
    assert source.text == dedent(
        """\
        #include "tile.h"

        // add for sm_80
        TILE_KERNEL(128, 1) void add(
            tile::gptr<const float> A, tile::gptr<const float> B, tile::gptr<float> C, int N) {
          const int bx = blockIdx.x;
          const int tid = threadIdx.x;
          if (bx * 128 + tid < N) {  // kernel.py:8
            C[bx * 128 + tid] = A[bx * 128 + tid] + B[bx * 128 + tid];  // kernel.py:9
          }
        }
        TILE_EXPORT(add)
        """
    )
    assert source.entry_points == ("add",)
    assert {n: s.line for n, s in source.lines.items()} == {4: 5, 5: 5, 8: 8, 9: 9}
    assert source.span_at(10) == place(9)
    assert source.span_at(2) is None


def test_copy_through_shared_memory():
    A, C = flat("A", 8192, "float16"), flat("C", 8192, "float32")
    tile, out = shared("A_shared", 1024, "float16"), registers("out", 8, "float16")
    body = (
        do("async_copy", 16, at(tile, TID * 8, "w"), at(A, BX * 1024 + TID * 8), True, line=11),
        do("async_copy_commit", line=11),
        do("async_copy_wait", 0, line=11),
        do("sync", line=11),
        Alloc(out, span=place(12)),
        do("load", 8, at(out, 0, "w"), at(tile, TID * 8), line=12),
        loop(
            I, 8,
            store(C, BX * 1024 + TID * 8 + I, cast(load(out, I), "float32") * 2.0, span=place(14)),
            kind=LoopKind.UNROLL, span=place(13),
        ),
    )  # fmt: skip
    source = print_program(program(function((A, C), *body, name="scale", tiles={tile: 256})))
    assert source.text == dedent(
        """\
        #include "tile.h"

        // scale for sm_80
        TILE_KERNEL(128, 1) void scale(tile::gptr<const half_t> A, tile::gptr<float> C) {
          const int bx = blockIdx.x;
          const int tid = threadIdx.x;
          tile::sptr<half_t> A_shared = tile::smem<half_t>(256, 1024);
          tile::cp_async<16>(A_shared + (tid * 8), A + (bx * 1024 + tid * 8), true);  // kernel.py:11
          tile::cp_async_commit();
          tile::cp_async_wait<0>();
          tile::sync();
          tile::frag<half_t, 8> out;  // kernel.py:12
          tile::load<8>(out, A_shared + (tid * 8));
          TILE_UNROLL
          for (int i = 0; i < 8; ++i) {  // kernel.py:13
            C[bx * 1024 + tid * 8 + i] = tile::cast<float>(out[i]) * 2.0f;  // kernel.py:14
          }
        }
        TILE_EXPORT(scale)
        """  # noqa: E501
    )
    assert source.lines[14] == source.lines[15] == place(13)


def test_only_indices_that_are_used_are_named():
    C = flat("C", 0, "float32")
    text = print_program(program(function((C,), store(C, 0, 1.0), grid=(4, 4)))).text
    assert "threadIdx" not in text
    assert "blockIdx" not in text
    grid = function((C,), store(C, BX, 1.0), grid=(4, 4), threads=(32, 2, 1))
    text = print_program(program(grid)).text
    assert "TILE_KERNEL(64, 1)" in text
    assert "const int bx = blockIdx.x;" in text
    assert "threadIdx" not in text


def test_memory_is_constant_unless_something_may_write_it():
    A, B, C, D = (flat(x, 0, "float32") for x in "ABCD")
    body = (
        store(D, 0, load(A)),
        Evaluate(Call("extern:f", (AddressOf(B, (as_expr(0),)),), dtype_of("int32"))),
        Evaluate(Call("atomic_add", (at(C, 0, "r"), as_expr(1.0)), dtype_of("float32"))),
    )
    text = print_program(program(function((A, B, C, D), *body))).text
    assert "tile::gptr<const float> A" in text
    for name in "BCD":
        assert f"tile::gptr<float> {name}" in text


def test_extents_of_tensors_are_never_negative():
    C = flat("C", 0, "int32")
    tensor = Buffer("C", (N,), dtype_of("int32"), Scope.GLOBAL)
    f = function((C, N), store(C, 0, N % 3))
    assert "C[0] = N % 3;" in print_program(program(f, params=(tensor,))).text
    assert "C[0] = tile::floormod(N, 3);" in print_program(program(f)).text


def test_c_texts_come_first_with_lines_of_their_own():
    sources = ("int twice(int x) {\n  return 2 * x;\n}\n", "int one() { return 1; }")
    source = print_program(program(vector_add(), sources=(*sources, sources[0])))
    lines = source.text.split("\n")
    assert lines[2:7] == [*sources[0].strip().split("\n"), "", sources[1]]
    assert (source.lines[4].file, source.lines[4].line) == ("<source 1>", 2)
    assert (source.lines[7].file, source.lines[7].line) == ("<source 2>", 1)
    assert source.text.count("twice") == 1


def test_several_launches_have_several_entry_points():
    source = print_program(program(vector_add("add_1"), vector_add("exp"), vector_add("exp")))
    assert source.entry_points == ("add_1", "exp_kernel", "exp_kernel_2")
    assert source.text.count("TILE_EXPORT(exp_kernel_2)") == 1


def test_printing_twice_gives_the_same_text():
    lowered = program(vector_add())
    assert print_program(lowered) == print_program(lowered)
