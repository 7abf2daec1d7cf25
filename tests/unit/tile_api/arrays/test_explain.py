"""What is told of kernels: the roles of dimensions, the rules, and why there are several."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks
from tile_core.errors import BackendNotFound, TargetError


@tile.function
def centred(x, y):
    return x @ y - x.mean(axis=0, keepdims=True).sum()


@tile.function
def two(x, one, other):
    return np.maximum(x @ one, 0) @ other


@tile.function(blocks=Blocks())
def log_sum(x):
    return np.logaddexp.reduce(x, axis=-1)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, "float32")


def test_roles_and_rules() -> None:
    told = log_sum.explain(zeros(300, 50_000))
    assert str(told) == (
        "log_sum: x -> out\n"
        "  rows: x0 of 300 in blocks of 64\n"
        "  stream: x1 of 50000 in blocks of 64\n"
        "  highest = max: independent\n"
        "  total = sum: scaling"
    )


def test_why_there_are_several() -> None:
    first, second = two.explain(zeros(37, 96), zeros(96, 512), zeros(512, 300)).kernels
    assert first.outputs == ("t0",)
    assert first.reasons == (
        "it is read by more than 256 columns: each block of columns would compute it again",
    )
    assert second.inputs == ("other", "t0")
    assert second.reasons == ()


def test_what_is_the_same_for_all_blocks_is_apart() -> None:
    kernels = centred.explain(zeros(70, 30), zeros(30, 90)).kernels
    assert len(kernels) > 1
    assert kernels[-1].outputs == ("out",)
    assert all(k.reasons for k in kernels[:-1])


def test_what_notebooks_and_reports_show(tmp_path) -> None:
    arguments = zeros(37, 96), zeros(96, 512), zeros(512, 300)
    function = two.on("cuda:sm_80")
    told = function.explain(*arguments)
    html = told._repr_html_()
    assert "<h3>two_0: x, one -&gt; t0</h3>" in html
    assert html.count('class="facts"') == 2
    assert '<th scope="row">apart</th>' in html
    function.report(tmp_path / "page.html", *arguments, kernel=0)
    page = (tmp_path / "page.html").read_text()
    assert html in page
    assert "main for cuda:sm_80" in page


@pytest.mark.parametrize("target", ["nonsense", "cuda:sm_5", "cpu:zen99", "", 3])
def test_a_target_that_is_none_is_refused_before_anything_runs(target: object) -> None:
    def total(x):
        return x.sum(axis=-1)

    function = Function(total).on(target)  # type: ignore[arg-type]
    for what in (function.source, function.explain):
        with pytest.raises((TargetError, BackendNotFound)):
            what(np.ones((3, 4), "float32"))
