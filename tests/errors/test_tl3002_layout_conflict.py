"""TL3002: two operators demand different layouts for one buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_api as tile
from tile_core.errors import LayoutConflict
from tile_core.layout import Layout, padded
from tile_core.ops.copy import Copy
from tile_core.ops.fill import Fill
from tile_core.ops.operator import InferLevel
from tile_core.ops.rule import Rule
from tile_core.passes.infer_layouts import infer_layouts
from tile_core.target import Target

PROGRAM = """
@T.prim_func
def kernel(A: T.Tensor((4, 8), "float32")):
    with T.Kernel(1, threads=1):
        tile = T.alloc_shared((4, 8), "float32")
        T.copy(A, tile)
        T.fill(tile, 0)
"""

BETWEEN_OPERATORS = """\
[TL3002] 'tile' cannot be stored as both copy and fill demand
 --> program.py:6:9
  |
6 |         T.fill(tile, 0)
  |         ^^^^^^^^^^^^^^^
note: copy fixed Layout((4, 8), lambda i, j: (i, j), output_shape=(4, 10))
 --> program.py:5:9
  |
5 |         T.copy(A, tile)
  |         ^^^^^^^^^^^^^^^
note: element (0, 1) would lie at 1 for copy and at 4 for fill
hint: copy it into a second buffer between the two operators"""


def _wants(op: Any, layout: Layout) -> Rule[Any]:
    def infer(node: Any, ctx: Any, level: InferLevel) -> dict[Any, Layout]:
        return {node.dst.buffer: layout} if level is InferLevel.STRICT else {}

    return Rule(name="wants", op=op, lower=lambda node, ctx: None, infer_layout=infer)


def test_between_operators(program: Callable[..., dict[str, Any]]) -> None:
    kernel = program(PROGRAM)["kernel"].kernel
    swapped = Layout((4, 8), lambda i, j: (j, i))
    rules = (_wants(Copy, padded((4, 8), 2)), _wants(Fill, swapped))
    with pytest.raises(LayoutConflict) as caught:
        infer_layouts(kernel, Target("toy"), rules)
    assert str(caught.value) == BETWEEN_OPERATORS


ANNOTATED = """
@T.prim_func
def kernel(A: T.Tensor((4, 8), "float32")):
    with T.Kernel(1, threads=1):
        tile = T.alloc_shared((4, 8), "float32")
        T.annotate_layout({tile: lambda i, j: (i, j)})
        T.annotate_layout({tile: lambda i, j: (j, i)})
"""

BETWEEN_ANNOTATIONS = """\
[TL3002] 'tile' is given two different layouts: element (0, 1) is not at the same place in both
 --> program.py:6:9
  |
6 |         T.annotate_layout({tile: lambda i, j: (j, i)})
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: the first is given here
 --> program.py:5:9
  |
5 |         T.annotate_layout({tile: lambda i, j: (i, j)})
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: keep one of them, or copy the tile to a second one with the other layout"""


def test_between_annotations(program: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(LayoutConflict) as caught:
        tile.compile(program(ANNOTATED)["kernel"], target="cpu")
    assert str(caught.value) == BETWEEN_ANNOTATIONS
