"""What is wrong with a program of threads, told where it is written."""

from __future__ import annotations

import pytest

import tile_api as tile
from tile_core.errors import TileError

HEAD = """
@T.threads(target="cuda:sm_80")
def kernel(x: T.Tensor((256,), "float32"), y: T.Tensor((256,), "float32")):
    with T.launch(
        grid=(2,),
        threads=(128, 1, 1),
        params=dict(x=T.flat(x, (256,), "float32"), y=T.flat(y, (256,), "float32")),
    ) as (bx, tx, ty, tz):
        y[tx] = x[tx]
"""
CASES = {
    "no machine": ('(target="cuda:sm_80")', "", "TL1003", "is for one machine, and names it", 1),
    "a CPU": ("cuda:sm_80", "cpu", "TL4001", "which has no threads of such a kind", 3),
    "outputs": ('"cuda:sm_80"', '"cuda:sm_80", outputs=(2,)', "TL1009",
                "outputs names parameter 2 of kernel, which has 2", 2),
    "no grid": ("grid=(2,),", "", "TL1003", "a launch says by name how many blocks", 3),
    "no threads": ("threads=(128, 1, 1),", "", "TL1003", "a launch says by name how many", 3),
    "one extent": ("(128, 1, 1)", "(128,)", "TL1003", "has three extents, and got (128,)", 5),
    "a number": ("(128, 1, 1)", "128", "TL1003", "threads has three extents, and got 128", 5),
    "no thread": ("(128, 1, 1)", "(0, 1, 1)", "TL1003", "three extents, and got (0, 1, 1)", 5),
    "a cluster": ("grid=(2,)", "grid=(2,), cluster=2", "TL1003", "three extents, and got 2", 4),
    "a misspelt word": ("grid=(2,)", "grid=(2,), shared_byte=4", "TL1003",
                        "T.launch takes no 'shared_byte'", 4),
    "a tensor that is not given": (', y=T.flat(y, (256,), "float32")', "", "TL1102",
                                   "threads are not given the tensor 'y'", 8),
    "a fraction as an index": ("x[tx]", "x[1.5]", "TL1102", "an index of 'x' is float32", 8),
    "outside of the launch": ("        y[tx] = x[tx]", "        y[tx] = x[tx]\n    y[0] = 1.0",
                              "TL1003", "no thread runs this: it stands outside of a launch", 9),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_message(case, program):
    old, new, code, told, line = CASES[case]
    assert HEAD.count(old) == 1
    target = "cpu" if case == "a CPU" else "cuda:sm_80"
    with pytest.raises(TileError) as caught:
        tile.lower(program(HEAD.replace(old, new))["kernel"], target=target)
    assert caught.value.code == code
    assert told in caught.value.message
    assert caught.value.span.line == line
    assert caught.value.hint


def test_the_program_that_is_changed_is_right(program):
    lowered = tile.lower(program(HEAD)["kernel"], target="cuda:sm_80")
    assert "y[tx] = x[tx]" in lowered.kernel_source
