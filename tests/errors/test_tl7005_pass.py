"""TL7005: a pass is named that a pipeline does not have, or cannot do without."""

from __future__ import annotations

import pytest

from tile_core.errors import PassError
from tile_core.pass_manager.pipeline import Pass, Pipeline

PIPELINE = Pipeline(
    (Pass(name="plan_pipelines", run=len), Pass(name="stage_epilogues", run=len, is_optional=True))
)


def test_an_unknown_name() -> None:
    with pytest.raises(PassError) as caught:
        PIPELINE.stopping_after("plan_pipeline")
    assert str(caught.value) == (
        "[TL7005] the pipeline has no pass 'plan_pipeline'\nhint: did you mean 'plan_pipelines'?"
    )


def test_a_necessary_pass() -> None:
    with pytest.raises(PassError) as caught:
        PIPELINE.without("plan_pipelines")
    assert str(caught.value) == (
        "[TL7005] pass 'plan_pipelines' is necessary and cannot be skipped\n"
        "hint: passes that can be skipped: stage_epilogues"
    )


def test_a_place_that_is_none() -> None:
    with pytest.raises(PassError) as caught:
        PIPELINE.inserted(Pass(name="mine", run=len))
    assert str(caught.value) == (
        "[TL7005] pass 'mine' is registered neither before nor after one other pass\n"
        "hint: name one: before='...' or after='...'"
    )
