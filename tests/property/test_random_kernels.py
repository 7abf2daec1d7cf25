"""Random small kernels: they print and parse back, and mean the same on every backend."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from support.strategies import Shown, arguments, kernels
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.verify import verify
from tile_core.ops.operator_table import OPERATORS
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_core.testing.oracle import INTERPRETER, compare, runner


@given(kernels())
def test_kernels_print_and_parse_back(shown: Shown) -> None:
    kernel = shown.kernel
    verify(kernel)
    text = print_kernel(kernel)
    again = parse_kernel(text, OPERATORS, str)
    assert print_kernel(again) == text
    assert structurally_equal(kernel, again)
    verify(again)


@given(kernels())
def test_kernels_do_not_depend_on_the_order_of_blocks(shown: Shown) -> None:
    def shuffled(k: Kernel, args: list) -> None:
        interpret(k, args, options=InterpretOptions(block_order="random", seed=1))

    kernel = shown.kernel
    compare(kernel, arguments(kernel), shuffled, runner(INTERPRETER, PluginHost()), exact=True)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("backend", "examples"), [("toy", 30), ("cpu", 20)])
def test_backends_agree_with_the_interpreter(backend: str, examples: int) -> None:
    host = installed_plugins()

    @settings(max_examples=examples)
    @given(kernels())
    def agrees(shown: Shown) -> None:
        ours, theirs = runner(INTERPRETER, host), runner(backend, host)
        compare(shown.kernel, arguments(shown.kernel), theirs, ours)

    agrees()
