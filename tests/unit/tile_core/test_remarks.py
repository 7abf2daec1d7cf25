"""What passes say goes to whoever collects it, once, and not if it was an attempt that failed."""

from __future__ import annotations

import pytest

from tile_core.pass_manager.instrumentation import attempted
from tile_core.remarks import Remark, collected_remarks, remark, tentative_remarks
from tile_launch.errors import Span

LINE = Span("kernel.py", 7, 4, 9)


def test_text():
    said = Remark("missed", "vectorise", "rows are not aligned", LINE)
    assert str(said) == "kernel.py:7: missed: rows are not aligned [vectorise]"
    assert str(Remark("passed", "plan", "done")) == "passed: done [plan]"


def test_everybody_who_collects_gets_it_once():
    remark("passed", "p", "nobody listens")
    with collected_remarks() as outer:
        remark("passed", "p", "first", LINE)
        with collected_remarks() as inner:
            for _ in range(3):
                remark("missed", "p", "second", LINE)
        remark("missed", "p", "second", None)
    assert [r.message for r in inner] == ["second"]
    assert [(r.message, r.span) for r in outer] == [
        ("first", LINE),
        ("second", LINE),
        ("second", None),
    ]


def fails():
    remark("passed", "p", "for nothing")
    raise ValueError("too much")


@pytest.mark.parametrize("trying", [tentative_remarks, attempted])
def test_attempts_that_fail_have_said_nothing(trying):
    with collected_remarks() as found:
        with pytest.raises(ValueError, match="too much"), trying():
            fails()
        with trying():
            remark("passed", "p", "this time")
            assert found == []
    assert [r.message for r in found] == ["this time"]
