"""An operator of a plugin package: spelt, read back, interpreted, and lowered on every machine."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import tile_api.language as T
from tile_api.language import generated_operators
from tile_api.reducing.language_text import language_of
from tile_core.driver import build, lower
from tile_core.errors import FrontendTypeError, PluginConflict, UnsupportedOnTarget
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Var
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Seq, Stmt
from tile_core.ops.loop_builders import element, load, nest, store
from tile_core.ops.operator import ElementCases, Execution, TileOperator
from tile_core.plugins.hookspecs import hookimpl
from tile_core.plugins.host import PluginHost
from tile_core.records import dataclass
from tile_core.testing.conformance.operators import cases
from tile_core.testing.oracle import runner


@dataclass(frozen=True, slots=True, eq=False)
class Twice(TileOperator):
    """Write twice each element of `src` to `dst`."""

    mnemonic: ClassVar[str] = "their.twice"
    spellings: ClassVar[tuple[str, ...]] = ("twice",)
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    cases: ClassVar[ElementCases] = ElementCases(lambda src, dst: {"dst": 2 * src})
    src: Region
    dst: Region

    def reads(self) -> tuple[Region, ...]:
        return (self.src,)

    def writes(self) -> tuple[Region, ...]:
        return (self.dst,)

    def serial_form(self) -> Stmt:
        def body(at: tuple[Var, ...]) -> Stmt:
            value = load(self.src, range(len(at)), at)
            return store(self.dst, range(len(at)), at, value + value)

        return nest(self.dst.extents, body)


@dataclass(frozen=True, slots=True, eq=False)
class Recur(TileOperator):
    """``tile[i + 1] = tile[i] + 1``: each element depends on the one before it."""

    mnemonic: ClassVar[str] = "their.recur"
    execution: ClassVar[Execution] = Execution.COLLECTIVE
    tile: Region

    def reads(self) -> tuple[Region, ...]:
        return (self.tile,)

    def writes(self) -> tuple[Region, ...]:
        return (self.tile,)

    def serial_form(self) -> Stmt:
        (extent,) = self.tile.static_extents or (1,)

        def body(at: tuple[Var, ...]) -> Stmt:
            (place,) = element(self.tile, (0,), at)
            return store(self.tile, (0,), (at[0] + 1,), load(self.tile, (0,), (place,)) + 1)

        return Seq((nest((extent - 1,), body),))


class Plugin:
    @hookimpl
    def tile_operators(self) -> list[type[TileOperator]]:
        return [Twice, Recur]


@pytest.fixture
def theirs() -> PluginHost:
    host = PluginHost().discover()
    host.add("theirs", Plugin())
    return host


def test_its_cases_on_machines_that_know_nothing_of_it(theirs: PluginHost) -> None:
    made = [c for c in cases(theirs.operators()) if "/their.twice/" in c.name]
    assert len(made) == 6
    for case in made:
        case.check(runner("interpreter", theirs))
        case.check(runner("cpu", theirs))
        lower(case.build(), "cuda:sm_80", theirs)
        lower(case.build(), "hip:gfx942", theirs)


def test_programs_say_it(theirs: PluginHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_operators, "installed_plugins", lambda: theirs)

    @T.prim_func
    def doubled(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            T.twice(A, dst=B)

    text = print_kernel(doubled.kernel)
    assert "@their.twice(src=A[0:8], dst=B[0:8])" in text
    again = parse_kernel(text, theirs.operators(), str)
    assert print_kernel(again) == text
    assert "T.twice(src=A, dst=B)" in (language_of(again) or "")
    with pytest.raises(FrontendTypeError, match="missing a required argument: 'dst'"):
        T.twice(doubled)


RECUR = """\
kernel recur(A: global float32[8]):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    alloc tile: {scope} float32[8]
    @copy(src=A[0:8], dst=tile[0:8])
    @their.recur(tile=tile[0:8])
    @copy(src=tile[0:8], dst=A[0:8])
"""


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim"])
def test_elements_that_depend_on_each_other(theirs: PluginHost, target: str) -> None:
    """One thread runs them, between barriers."""
    kernel = parse_kernel(RECUR.format(scope="shared"), theirs.operators(), str)
    a = np.zeros(8, np.float32)
    build(kernel, target, theirs).executable(a)
    np.testing.assert_array_equal(a, np.arange(8))


def test_registers_of_many_threads_are_out_of_reach_of_one(theirs: PluginHost) -> None:
    kernel = parse_kernel(RECUR.format(scope="local.fragment"), theirs.operators(), str)
    build(kernel, "cpu", theirs)
    with pytest.raises(UnsupportedOnTarget, match="no rule lowers") as caught:
        lower(kernel, "cuda:sm_80", theirs)
    assert "'tile' is spread over the threads" in str(caught.value)


def test_mnemonics_are_taken_once() -> None:
    class Other:
        @hookimpl
        def tile_operators(self) -> list[type[TileOperator]]:
            return [type("Twin", (Twice,), {"mnemonic": "copy"})]

    host = PluginHost()
    host.add("other", Other())
    with pytest.raises(PluginConflict, match="two operators are called 'copy'"):
        host.operators()
