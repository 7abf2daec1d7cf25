"""Exponentials of differences to a maximum: which are bounded, which are not, what they give."""

import copy

import numpy as np
import pytest

from tile_core.driver import build
from tile_core.interp import interpret
from tile_core.ir.expr import Select
from tile_core.ir.node import nodes_of
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS
from tile_core.plugins.host import installed_plugins
from tile_core.target import Target
from tile_core.testing.oracle import runner
from tile_cpu.passes.bound_exponents import bound_exponents

AVX2, AVX512 = Target("cpu", "haswell"), Target("cpu", "skylake-avx512")
HEAD = """\
kernel k(X: global float32[37, 43], Y: global float32[37, 43]):
  launch bx: int32 in (5) threads tx: int32, ty: int32, tz: int32 in (128, 1, 1):
    alloc x: local.fragment float32[8, 43]
    alloc y: local.fragment float32[8, 43]
    alloc t: local.fragment float32[8]
    alloc u: local.fragment float32[8]
    alloc w: local.fragment float32[8, 1]
    @copy(src=X[bx * 8, 0], dst=x[0:8, 0:43])
"""
TAIL = "@copy(src=x[0:8, 0:43], dst=Y[bx * 8, 0])"
MAXIMUM = "@reduce(kind=MAX, src=x[0:8, 0:43], dst=t[0:8], dim=1)"
KEPT = "@reduce(kind=MAX, src=x[0:8, 0:43], dst=w[0:8, 0:1], dim=1)"
SUM = "@reduce(kind=SUM, src=x[0:8, 0:43], dst=t[0:8], dim=1)"


def loop(*body: str) -> str:
    return "\n".join(["parallel i: int32, j: int32 in (8, 43):", *(f"  {line}" for line in body)])


def parse(*statements: str) -> Kernel:
    lines = [f"    {line}" for stmt in (*statements, TAIL) for line in stmt.splitlines()]
    kernel = parse_kernel(HEAD + "\n".join(lines) + "\n", OPERATORS, str)
    verify(kernel)
    return kernel


def is_bounded(kernel: Kernel, target: Target = AVX2) -> bool:
    result = bound_exponents(kernel, target)
    verify(result)
    assert (result is kernel) == (print_kernel(result) == print_kernel(kernel))
    return any(True for _ in nodes_of(result, Select))


def elements(seed: int) -> list[np.ndarray]:
    """Rows of all sizes of numbers, and with what is none."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (37, 43)) * np.exp2(rng.integers(-20, 30, (37, 1)))
    x[3, 5], x[4, 6], x[5, 7], x[6] = np.nan, np.inf, -np.inf, -np.inf
    x[7] = -np.arange(43.0) * 4
    return [x.astype(np.float32), np.zeros((37, 43), np.float32)]


BOUNDED = {
    "a difference": (MAXIMUM, loop("x[i, j] = exp(x[i, j] - t[i])")),
    "a multiple": (MAXIMUM, loop("x[i, j] = exp2((x[i, j] - t[i]) * 1.5)")),
    "of multiples": (MAXIMUM, loop("x[i, j] = exp2(x[i, j] * 2.0 - 2.0 * t[i])")),
    "into another tile": (
        MAXIMUM,
        loop("y[i, j] = exp(x[i, j] - t[i])"),
        loop("x[i, j] = y[i, j]"),
    ),
    "a dimension kept": (KEPT, loop("x[i, j] = exp(x[i, j] - w[i, 0])")),
    "something between": (MAXIMUM, loop("y[i, j] = t[i]"), loop("x[i, j] = exp(x[i, j] - t[i])")),
}
UNBOUNDED = {
    "of sums": (SUM, loop("x[i, j] = exp(x[i, j] - t[i])")),
    "the other way round": (MAXIMUM, loop("x[i, j] = exp(t[i] - x[i, j])")),
    "a negative multiple": (MAXIMUM, loop("x[i, j] = exp((x[i, j] - t[i]) * -1.5)")),
    "of two multiples": (MAXIMUM, loop("x[i, j] = exp(x[i, j] * 1.5 - t[i] * 0.5)")),
    "another row's": (MAXIMUM, loop("y[i, j] = exp(x[i, j] - t[7 - i])")),
    "another tile's": (MAXIMUM, loop("y[i, j] = exp(y[i, j] - t[i])")),
    "a tile changed since": (
        MAXIMUM, loop("x[i, j] = x[i, j] * 3.0"), loop("x[i, j] = exp(x[i, j] - t[i])"),
    ),
    "maxima changed since": (
        MAXIMUM, "@copy(src=u[0:8], dst=t[0:8])", loop("x[i, j] = exp(x[i, j] - t[i])"),
    ),
    "a tile changed meanwhile": (
        MAXIMUM, loop("x[i, j] = x[i, j] * 3.0", "y[i, j] = exp(x[i, j] - t[i])"),
    ),
    "one element for all": (MAXIMUM, loop("x[i, 0] = exp(x[i, 0] - t[i])")),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_at_most_zero_is_bounded(name: str) -> None:
    kernel = parse(*BOUNDED[name])
    assert is_bounded(kernel)
    assert not is_bounded(kernel, AVX512)  # it scales by any power of two


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_may_be_positive_is_not(name: str) -> None:
    assert not is_bounded(parse(*UNBOUNDED[name]))


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_exponentials_are_those_of_the_interpreter(name: str) -> None:
    kernel = parse(*BOUNDED[name])
    wanted, got = elements(2), elements(2)
    with np.errstate(all="ignore"):
        interpret(kernel, wanted)
        bounded = copy.deepcopy(elements(2))
        interpret(bound_exponents(kernel, AVX2), bounded)
    runner("cpu:haswell", installed_plugins())(kernel, got)
    np.testing.assert_array_equal(bounded[1], wanted[1])
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-5, atol=1e-44)
    assert np.isnan(got[1][3, 5])
    assert got[1][7].max() == 1.0


FORMS = (
    "-(x[i, j] * x[i, j])", "min(x[i, j], 0.0)", "-abs(x[i, j])", "max(x[i, j], -1.0)",
    "-(x[i, j] * 2.0)", "(x[i, j] > 0.0 ? 0.0 : x[i, j])", "(x[i, j] > 1.0 ? 0.0 : x[i, j])",
    "(x[i, j] < 0.0 ? x[i, j] : 0.0)", "min(x[i, j], 1.0)", "-min(x[i, j], 0.0)",
    "abs(x[i, j]) / -3.0",
)  # fmt: skip


@pytest.mark.parametrize("function", ["exp", "exp2"])
@pytest.mark.parametrize("form", FORMS)
def test_exponentials_of_what_has_a_sign_by_itself(form: str, function: str) -> None:
    """Small and large arguments of both signs; results that are denormal, 0 and infinite."""
    kernel = parse(loop(f"x[i, j] = {function}({form})"))
    wanted, got = (elements(3) for _ in range(2))
    with np.errstate(all="ignore"):
        interpret(kernel, wanted)
    runner("cpu:haswell", installed_plugins())(kernel, got)
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-5, atol=1e-44)


@pytest.mark.parametrize(("arg", "is_one"), [("x[i, j] - t[i]", True), ("x[i, j]", False)])
def test_bounded_exponentials_are_scaled_by_one_product(arg: str, is_one: bool) -> None:
    """The exponent of the second factor of two is what a shift to the right leaves."""
    kernel = parse(MAXIMUM, loop(f"x[i, j] = exp({arg})"))
    text = build(kernel, "cpu:haswell", installed_plugins()).asm()
    assert ("vpsrld" not in text) == is_one
