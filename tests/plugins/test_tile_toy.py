"""The example backend: found through its entry point, compiled for, run, and honest."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.driver import build
from tile_core.errors import DeviceAssertError, UnsupportedOnTarget
from tile_core.ir.parser import parse_kernel
from tile_core.ops.operator_table import OPERATORS
from tile_core.plugins.host import PluginHost

HEAD = """\
kernel scale[n: int32](A: global float16[n], B: global float32[32], s: int32):
  launch bx: int32 in (3) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
"""
BODY = """\
    alloc tile: shared float16[16]
    @copy(src=A[bx * 16:16], dst=tile[0:16])
    parallel i: int32 in (16):
      let x: float32 = cast[float32](tile[i]) * cast[float32](s)
      B[bx * 16 + i] = (tile[i] > float16(4.0) ? x : -x)
"""


def kernel(body: str):
    return parse_kernel(HEAD + body, OPERATORS, str)


def test_a_kernel_runs_and_stays_inside_its_tensors(host: PluginHost) -> None:
    built = build(kernel(BODY), "toy", host)
    memory = np.full(40, -7.0, "float32")
    a = np.arange(20).astype("float16")
    built.executable(a, memory[4:36], 3)
    padded = np.concatenate([a.astype("float32"), np.zeros(12, "float32")])
    np.testing.assert_array_equal(memory[4:36], np.where(padded > 4, 3 * padded, -3 * padded))
    np.testing.assert_array_equal(memory[[*range(4), *range(36, 40)]], -7.0)
    assert built.text("source").startswith(
        "def main(A, B, s):\n    A = Box(A)\n    n = A.shape[0]\n"
    )


def test_checks_stop_the_kernel(host: PluginHost) -> None:
    built = build(kernel('    assert s > 0, "positive"\n'), "toy", host)
    arguments = np.zeros(4, "float16"), np.zeros(32, "float32")
    built.executable(*arguments, 1)
    with pytest.raises(DeviceAssertError, match="positive"):
        built.executable(*arguments, 0)


@pytest.mark.parametrize("value", ["bitcast[float32](bx)", "erf(1.0)"])
def test_what_it_cannot_do_it_says(host: PluginHost, value: str) -> None:
    with pytest.raises(UnsupportedOnTarget, match="the toy has no such"):
        build(kernel(f"    B[bx] = {value}\n"), "toy", host)


def test_passes_of_plugins_stand_where_they_say(host: PluginHost) -> None:
    _, target = host.resolve("toy")
    assert host.pipeline(target).names == (
        "lower_scaled_gemms", "select_ranges", "order_threads", "lower_serially",
    )  # fmt: skip
