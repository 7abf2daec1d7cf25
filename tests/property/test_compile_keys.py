"""Compile keys: equal for equal programs wherever they stand, different for all others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.strategies import Shown, kernels
from tile_api.keys import CompileKey, key_of
from tile_core.compilation.options import BuildOptions
from tile_core.errors import Span
from tile_core.ir.expr import Binary, BinaryOp, Const
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel, KernelOptions
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ops.operator_table import OPERATORS
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_core.target import Target

CPU = Target("cpu", "haswell")
OTHER = {BinaryOp.ADD: BinaryOp.SUB, BinaryOp.SUB: BinaryOp.ADD, BinaryOp.MIN: BinaryOp.MAX}


@cache
def plugins() -> PluginHost:
    return installed_plugins()


def key(kernel: Kernel, target: Target = CPU, **options: Any) -> CompileKey:
    return key_of(kernel, target, BuildOptions(**options), plugins())


@given(kernels(), st.integers(1, 10_000))
def test_places_are_no_part_of_a_key(shown: Shown, line: int) -> None:
    def moved(node: Node) -> Node:
        return replace(node, span=Span("/elsewhere/program.py", line, 4, 9))

    there = rewrite(shown.kernel, moved)
    assert there is not shown.kernel
    assert key(there) == key(shown.kernel)
    assert str(key(there)) == str(key(shown.kernel))
    assert "elsewhere" not in str(key(there))


@settings(max_examples=20)
@given(kernels())
def test_a_program_made_anew_has_the_same_key(shown: Shown) -> None:
    again = parse_kernel(print_kernel(shown.kernel), OPERATORS, str)
    assert key(again).digest == key(shown.kernel).digest


@settings(max_examples=10)
@given(kernels(), kernels())
def test_keys_are_equal_exactly_when_programs_are(one: Shown, other: Shown) -> None:
    same = structurally_equal(one.kernel, other.kernel)
    assert (key(one.kernel) == key(other.kernel)) == same
    assert (key(one.kernel).digest == key(other.kernel).digest) == same


@given(kernels(), st.data())
def test_every_change_of_a_program_changes_its_key(shown: Shown, data: st.DataObject) -> None:
    found = [n for n in walk(shown.kernel) if isinstance(n, Const) or _is_swappable(n)]
    assume(found)
    chosen = data.draw(st.sampled_from(found))

    def changed(node: Node) -> Node:
        if node is not chosen:
            return node
        if isinstance(node, Const):
            return replace(node, value=not node.value if node.dtype.is_bool else node.value + 1)
        assert isinstance(node, Binary)
        return replace(node, op=OTHER[node.op])

    there = rewrite(shown.kernel, changed)
    assert not structurally_equal(there, shown.kernel)
    assert key(there).digest != key(shown.kernel).digest


def _is_swappable(node: Node) -> bool:
    return isinstance(node, Binary) and node.op in OTHER


@given(kernels(), st.sampled_from(["name", "outputs", "sources", "options"]))
def test_what_belongs_to_a_program_is_in_its_key(shown: Shown, which: str) -> None:
    values: dict[str, Any] = {
        "name": shown.kernel.name + "x",
        "outputs": () if shown.kernel.outputs else (0,),
        "sources": ("int f(void);",),
        "options": KernelOptions((("tl.some", 1),)),
    }
    there = replace(shown.kernel, **{which: values[which]})
    assert key(there).digest != key(shown.kernel).digest


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "compile_flags": st.lists(st.sampled_from(["-O2", "-DX=1", "-O2 -DX=1", ""])).map(tuple),
        "threads": st.integers(0, 3),
        "pass_configs": st.dictionaries(
            st.sampled_from(["a", "b"]),
            st.one_of(st.booleans(), st.integers(0, 1), st.sampled_from(["0", "True", 1.0, None])),
        ).map(lambda d: tuple(sorted(d.items()))),
    },
)


@given(kernels(), OPTIONS, OPTIONS)
def test_options_are_in_keys(shown: Shown, one: dict[str, Any], other: dict[str, Any]) -> None:
    def exact(options: dict[str, Any]) -> str:  # True, 1 and 1.0 are different wishes
        return repr(BuildOptions(**options))

    same = key(shown.kernel, **one).digest == key(shown.kernel, **other).digest
    assert same == (exact(one) == exact(other))


TARGETS = ["cpu:haswell", "cpu:x86-64-v4", "interpret", "cuda:sm_80@sim", "cuda:sm_90a@sim"]


@given(kernels(), st.sampled_from(TARGETS), st.sampled_from(TARGETS))
def test_targets_are_in_keys(shown: Shown, one: str, other: str) -> None:
    (_, a), (_, b) = plugins().resolve(one), plugins().resolve(other)
    assert (key(shown.kernel, a) == key(shown.kernel, b)) == (one == other)


@given(kernels(), st.data())
def test_versions_are_in_keys(shown: Shown, data: st.DataObject) -> None:
    before = key(shown.kernel)
    names = [name for name, _ in before.versions]
    assert {"tile_core", "tile_cpu", "tool apache-tvm", "tool machine"} <= {*names}
    name = data.draw(st.sampled_from(names))
    versions = tuple((n, v + "x" if n == name else v) for n, v in before.versions)
    assert replace(before, versions=versions).digest != before.digest
