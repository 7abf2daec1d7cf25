"""TL8301: a kernel that was to be reduced does not fail as was asked for."""

from __future__ import annotations

import pytest

from tile_api.cli import main
from tile_api.reducing import reduce_kernel
from tile_core.errors import NothingToReduce
from tile_core.testing import build_ir as ir

TEXT = """
import tile_api.language as T

@T.prim_func
def scale(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] *= 2.0
"""


def test_message() -> None:
    kernel = ir.kernel([ir.tensor("A", (4,))], 1, lambda bx: [], name="idle")
    with pytest.raises(NothingToReduce) as caught:
        reduce_kernel(kernel, lambda kernel: False)
    assert str(caught.value) == (
        "[TL8301] idle does not fail in the way that was asked for\n"
        "hint: give a test that is true of the whole kernel"
    )


def test_a_kernel_that_is_well(tmp_path, capsys) -> None:
    (tmp_path / "k.py").write_text(TEXT)
    assert main(["reduce", f"{tmp_path}/k.py", "--target", "toy", "--out", f"{tmp_path}/r"]) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "[TL8301] scale does not fail for toy: nothing wrong",
        "hint: name the target and the sizes that fail: --target, --args, --values",
    ]
    assert not (tmp_path / "r").exists()


def test_a_kernel_that_fails_otherwise(tmp_path, capsys) -> None:
    (tmp_path / "k.py").write_text(TEXT)
    place = [f"{tmp_path}/k.py", "--target", "elsewhere", "--out", f"{tmp_path}/r"]
    assert main(["reduce", *place, "--code", "TL2001"]) == 1
    text = capsys.readouterr().err
    assert text.splitlines()[-2].startswith(
        "[TL8301] scale does not fail with TL2001 for elsewhere, but with TL7001 while it "
        "compiles: no backend serves target 'elsewhere'"
    )
    assert text.splitlines()[-1] == (
        "hint: leave --code, --message, --crash and --wrong-against out to reduce what it does"
    )
