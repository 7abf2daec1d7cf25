"""Layouts: single facts, wrong answers others gave, and the texts of refusals."""

import numpy as np
import pytest

from tile_core.errors import LayoutError
from tile_core.ir.expr import Binary, BinaryOp
from tile_core.layout import (
    Layout,
    Strided,
    compact,
    evaluate,
    from_strides,
    maximum,
    minimum,
    packed_panels,
    padded,
    row_major,
    same_expr,
    simplify,
)
from tile_core.layout.formulas import INT64, as_index, coordinate, inputs, to_text
from tile_core.layout.index_tables import tabulate


def message(action):
    with pytest.raises(LayoutError) as caught:
        action()
    return str(caught.value)


class TestStrided:
    def test_composition_that_loses_no_elements(self):
        """A known algebra answers 4:1 here and drops two of the six elements."""
        outer, inner = Strided((4, 3), (1, 10)), Strided((6,), (1,))
        assert [outer(inner(i)) for i in range(6)] == [0, 1, 2, 3, 10, 11]
        assert message(lambda: outer.compose(inner)) == (
            "[TL3001] (4, 3):(1, 10) composed with (6,):(1,) is no strided layout: "
            "a mode of the inner one crosses modes of the outer one unevenly"
        )

    def test_composition_that_carries_into_the_next_mode(self):
        """A known algebra sends 5 to 16 here; the outer layout has 1 there."""
        outer, inner = Strided((4, 4), (4, 1)), Strided((3, 2), (1, 2))
        assert outer(inner(5)) == 1
        assert "is no strided layout" in message(lambda: outer.compose(inner))

    def test_product_with_a_number_is_product_with_its_compact_layout(self):
        """A known algebra divides instead when the second operand is a plain number."""
        assert Strided((4,), (1,)).product(3) == Strided((4, 3), (1, 4))
        assert Strided((4,), (1,)).product(compact(3)) == Strided((4, 3), (1, 4))

    def test_layouts_are_hashable_values(self):
        assert len({Strided((4,), (1,)), Strided((4,), (1,)), Strided((4,), (2,))}) == 2

    def test_composition_whose_modes_do_not_nest_but_whose_values_do(self):
        outer, inner = Strided((2, 2), (1, 2)), Strided((2, 2), (3, 0))
        assert outer.compose(inner) == Strided((2, 2), (3, 0))

    @pytest.mark.parametrize(
        ("action", "text"),
        [
            (lambda: Strided((4,), (1, 2)), "shape (4,) and stride (1, 2) differ in rank"),
            (lambda: Strided((0,), (1,)), "extents must be >= 1 and strides >= 0, got (0,):(1,)"),
            (lambda: Strided((4,), (2,))(4), "(4,):(2,) has no element 4: it has 4"),
            (
                lambda: compact(4).compose(Strided((4,), (2,))),
                "(4,):(2,) reaches beyond the 4 elements of (4,):(1,)",
            ),
            (
                lambda: Strided((2, 2), (1, 1)).complement(8),
                "(2, 2):(1, 1) has no complement: mode 2:1 overlaps others",
            ),
            (
                lambda: compact(4).complement(6),
                "(4,):(1,) has no complement in 6: it covers multiples of 4",
            ),
            (
                lambda: Strided((4,), (2,)).inverse(),
                "(4,):(2,) has no inverse: no mode has stride 1",
            ),
        ],
    )
    def test_refusals(self, action, text):
        assert message(action) == f"[TL3001] {text}"


class TestIndex:
    def test_operators_fold_constants_and_neutral_operands(self):
        i = coordinate(0)
        for same in (i + 0, 0 + i, i - 0, i * 1, 1 * i, i // 1, i ^ 0, 0 ^ i):
            assert same is i
        for zero in (i * 0, 0 * i, i % 1):
            assert same_expr(zero, as_index(0))
        assert same_expr(as_index(7) // 2 * 3 - 1, as_index(8))
        assert to_text(np.int64(3) * i + np.int64(2)) == "3 * i + 2"
        assert to_text(as_index(-(i - coordinate(1)) % 4)) == "(0 - (i - j)) % 4"

    def test_evaluation_rebuilds_in_another_type(self):
        i, j = inputs(2)

        def written(op):
            return lambda a, b: f"({op.name} {a} {b})"

        operators = {op: written(op) for op in BinaryOp}
        text = evaluate(minimum(i * 4 + j, 7) ^ j, ("x0", "x1"), operators)
        assert text == "(BITXOR (MIN (ADD (MUL x0 4) x1) 7) x1)"

    def test_a_shared_part_is_rebuilt_once(self):
        node = coordinate(0)
        for _ in range(60):
            node = Binary(BinaryOp.ADD, node, node, INT64)
        assert evaluate(node, (1,)) == 2**60

    def test_values_of_other_types_go_through_their_own_operators(self):
        class Symbol:
            def __init__(self, text):
                self.text = text

            def __floordiv__(self, other):
                return Symbol(f"({self.text} div {other})")

        (out,) = Layout(32, lambda i: i // 4)(Symbol("tx"))
        assert out.text == "(tx div 4)"
        assert "evaluate the formula with the operators of the other type" in message(
            lambda: evaluate(maximum(coordinate(0), 3), (Symbol("tx"),))
        )

    @pytest.mark.parametrize(
        ("expr", "box", "text"),
        [
            (lambda i, j: (i * 32 + j) // 32, (8, 32), "i"),
            (lambda i, j: (i * 32 + j) % 32, (8, 32), "j"),
            (lambda i, j: (i * 32 + j) // 8 % 4, (8, 32), "j // 8"),
            (lambda i, j: i // 4 * 4 + i % 4, (16, 1), "i"),
            (lambda i, j: i // 8 * 8 + i // 2 % 4 * 2 + i % 2, (64, 1), "i"),
            (lambda i, j: (i % 8) % 4, (16, 1), "i % 4"),
            (lambda i, j: i // 2 // 3, (64, 1), "i // 6"),
            (lambda i, j: i ^ j ^ i, (8, 8), "j"),
            (lambda i, j: (i * 8 + j) ^ 3, (8, 8), "i * 8 + (j ^ 3)"),
            (lambda i, j: (i ^ j) // 4, (16, 16), "i // 4 ^ j // 4"),
            (lambda i, j: minimum(i, 15) + maximum(j, 0), (16, 4), "i + j"),
            (lambda i, j: j * 4 + i - 2 * j, (4, 8), "j * 2 + i"),
            (lambda i, j: i + j, (1, 8), "j"),
        ],
    )
    def test_simplified_forms(self, expr, box, text):
        assert to_text(simplify(expr(*inputs(2)), box)) == text

    @pytest.mark.parametrize(
        ("expr", "box"),
        [
            (lambda i, j, k: (i * 4 + j) ^ k, (3, 6, 4)),  # j carries into the bits of i
            (lambda i, j, k: (i * 4 - j) ^ k, (3, 2, 4)),  # negative below the unit
            (lambda i, j, k: (i ^ j) // 3, (8, 8, 1)),  # thirds do not respect bits
            (lambda i, j, k: (i ^ j) % 6, (8, 8, 1)),
            (lambda i, j, k: (i * 2 + j) // 4, (4, 3, 1)),  # j reaches the next unit
            (lambda i, j, k: i % 6 // 4, (24, 1, 1)),
            (lambda i, j, k: (i % 6) % 4, (24, 1, 1)),
            (lambda i, j, k: i // 2 * 4 + i % 2, (9, 1, 1)),
        ],
    )
    def test_rules_whose_conditions_are_nearly_met(self, expr, box):
        before = expr(*inputs(3))
        assert (tabulate(simplify(before, box), box) == tabulate(before, box)).all()

    @pytest.mark.parametrize(
        ("fn", "text"),
        [
            (lambda i: i if i < 3 else 0, "an index expression cannot be compared"),
            (lambda i: 0 if i == 0 else 1, "an index expression cannot be compared"),
            (lambda i: i and 3, "an index expression cannot be compared"),
            (lambda i: 8 // i, "the divisor in (8) // (i) is not a positive constant"),
            (lambda i: i % 0, "'%' divides an integer by zero"),
            (
                lambda i: i * 0.5,
                "must be a whole number or an index expression, got cast[float32](",
            ),
            (lambda i: i / 2, "true division of integers (int64) has no meaning"),
            (lambda i, j: i, "the layout function fails on 1 coordinates"),
            (lambda i: "i", "must be a whole number or an index expression, got 'i'"),
            (lambda i: i - 1, "physical coordinate 0, i - 1, is negative: it goes down to -1"),
        ],
    )
    def test_functions_that_are_no_layouts(self, fn, text):
        assert text in message(lambda: Layout(8, fn))

    def test_tables_do_not_wrap_around(self):
        huge = Layout(8, lambda i: i * (1 << 61))
        assert huge(7) == (7 << 61,)
        assert "i * 2305843009213693952 leaves the range of 64-bit integers" in message(huge.table)


class TestLayout:
    def test_panels_of_a_gemm_operand(self):
        f = packed_panels((64, 128), panel=32, interleave=2)
        assert repr(f) == "Layout((64, 128), lambda i, j: (j // 32, i // 2, j % 32, i % 2))"
        assert f.output_shape == (4, 32, 32, 2)
        assert str(f.inverse()) == (
            "Layout((4, 32, 32, 2), lambda i, j, k, l: (j * 2 + l, i * 32 + k))"
        )
        assert packed_panels((128, 64), 32, 2, panel_axis=0).permute((1, 0)) == f
        assert packed_panels((3, 64, 128), 32, 2) == f.expand(3)

    def test_padding_keeps_rows_apart(self):
        f = padded((4, 64), 16)
        assert to_text(f.linear_index_expr()) == "i * 80 + j"
        assert repr(f) == "Layout((4, 64), lambda i, j: (i, j), output_shape=(4, 80))"
        assert f.is_padded()
        assert f.affine() == (0, (80, 1))
        assert f.slice((1, 16), (2, 8)).affine() == (96, (80, 1))
        assert (f.contiguity(), f.vector_width()) == (64, 16)

    def test_a_step_in_the_middle_limits_vectors(self):
        f = Layout((12,), lambda i: i + i // 6 * 2)
        assert f.contiguity() == 6
        assert f.vector_width() == 2
        assert f.affine() is None
        assert Layout((12,), lambda i: i + i // 4 + i // 6).contiguity() == 2

    def test_reshape_across_rows_is_exact(self):
        f = row_major((6, 4)).reshape((8, 3))
        assert f.linear_table().tolist() == np.arange(24).reshape(8, 3).tolist()
        assert f.inverse().compose(f) == row_major((8, 3))

    def test_a_diagonal_is_inverted_by_rotating_back(self):
        f = Layout((8, 8), lambda i, j: (i, (i + j) % 8))
        assert repr(f.inverse()) == "Layout((8, 8), lambda i, j: (i, (j - i) % 8))"

    def test_a_large_box_needs_no_table_for_its_bounds(self):
        f = row_major((1 << 20, 1 << 20))
        assert f.is_bijective()
        assert f.contiguity() == 1 << 20
        assert message(f.linear_table) == (
            "[TL3001] a box of 1048576x1048576 elements is too large for an exact answer\n"
            "hint: tables end at 67108864 elements; describe one tile of the buffer"
        )

    def test_difference_names_the_first_element(self):
        assert row_major((4, 8)).first_difference(padded((4, 8), 1)) == (1, 0)
        assert (
            row_major((4, 8)).same_function(from_strides((4, 8), (8, 1)).reshape((4, 8))) is False
        )
        assert row_major((4, 8)).first_difference(from_strides((4, 8), (8, 1))) is None

    def test_formulas_and_functions_are_compared_apart(self):
        wrapped = Layout((8, 8), lambda i, j: (i, (i + j + 8 - i) % 8))
        odd = Layout((4,), lambda i: (i * 3) % 4)
        same = Layout((4,), lambda i: (i ^ 2) % 4 * 3 % 4 ^ 2)
        assert wrapped == row_major((8, 8))
        assert odd != same
        assert odd.same_function(same)

    @pytest.mark.parametrize(
        ("action", "text"),
        [
            (
                lambda: Layout((4, 0), lambda i, j: i),
                "at least 1, got (4, 0)",
            ),
            (lambda: Layout("ab", lambda i, j: i), "integers known at compile time, got 'ab'"),
            (
                lambda: Layout((4, 4), lambda i, j: (i, j), (4, 3)),
                "the physical coordinates need (4, 4), which is not inside (4, 3)",
            ),
            (lambda: row_major((4, 4))(1), "1 coordinates given for a layout of 2 dimensions"),
            (lambda: row_major((4, 4))(1, 4), "coordinate 4 of dimension 1 is outside 0 ... 3"),
            (
                lambda: Layout((4, 4), lambda i, j: i + j).inverse(),
                "elements (0, 1) and (1, 0) share the address 1",
            ),
            (
                lambda: padded((2, 3), 1).inverse(),
                "a padded layout has no inverse: 6 elements in 8 places",
            ),
            (
                lambda: Layout((5,), lambda i: i * 3 % 5).inverse(),
                "no formula gives input i back from (i * 3 % 5)",
            ),
            (
                lambda: row_major((4,)).compose(row_major((5,))),
                "(5,), do not lie in the box (4,) of the outer one",
            ),
            (lambda: row_major((4, 4)).reshape((5, 3)), "4x4 elements cannot be reshaped to 5x3"),
            (
                lambda: row_major((4, 4)).reshape((4, 4), 16, 8),
                "4x4 elements of 16 bits and 4x4 of 8 differ in size",
            ),
            (
                lambda: row_major((4, 4)).reshape((4, 4), 16, 12),
                "elements of 16 bits cannot be seen as elements of 12 bits",
            ),
            (
                lambda: row_major((4, 4)).transpose().reshape((4, 2), 8, 16),
                "groups of 2 elements are not consecutive and aligned in storage",
            ),
            (
                lambda: padded((4, 4), 1).reshape((4, 2), 8, 16),
                "groups of 2 elements are not consecutive and aligned in storage",
            ),
            (
                lambda: row_major((4, 4)).slice((0, 2), (4, 4)),
                "the part at (0, 2) of extents (4, 4) is not inside (4, 4)",
            ),
            (lambda: row_major((4, 4)).permute((0, 0)), "(0, 0) is no order of 2 dimensions"),
            (lambda: row_major((4, 4)).contiguity(2), "there is no dimension 2 among 2"),
            (lambda: row_major((4,)).first_difference(row_major((5,))), "no common elements"),
            (lambda: from_strides((4,), (-1,)), "strides (-1,) do not suit the shape (4,)"),
            (lambda: padded((4,), -1), "cannot pad the rows of (4,) by -1 elements"),
            (lambda: packed_panels((4,), 4), "panels are cut from matrices, got the shape (4,)"),
            (lambda: packed_panels((4, 4), 0), "a panel is at least one element wide"),
        ],
    )
    def test_refusals(self, action, text):
        assert text in message(action)
