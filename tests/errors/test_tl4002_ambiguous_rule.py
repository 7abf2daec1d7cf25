"""TL4002: two rules of equal priority accept one operator."""

from __future__ import annotations

import pytest

from tile_core.dtypes import DType
from tile_core.errors import AmbiguousRule
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.expr import Const
from tile_core.ops.copy import Fill
from tile_core.ops.rule import Rule, select
from tile_core.target import Target

EXPECTED = """\
[TL4002] one.fill and other.fill both claim 'fill'
hint: give one of the rules a higher priority"""


def rule(name: str, priority: int = 0) -> Rule[Fill]:
    return Rule(name=name, op=Fill, lower=lambda op, ctx: None, priority=priority)


def test_message() -> None:
    box = Buffer("box", (4,), DType("float32"), Scope.GLOBAL)
    fill = Fill(whole(box), Const(0.0, DType("float32")))
    tied = [rule("one.fill"), rule("minor.fill", -1), rule("other.fill")]
    with pytest.raises(AmbiguousRule) as caught:
        select(fill, Target("toy"), tied)
    assert str(caught.value) == EXPECTED
    assert select(fill, Target("toy"), [*tied, rule("major.fill", 1)]).name == "major.fill"
