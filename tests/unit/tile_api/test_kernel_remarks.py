"""``kernel.remarks()``: what passes did, could not do and found out, with the user's lines."""

from __future__ import annotations

from pathlib import Path

import pytest

import tile_api as tile
import tile_api.language as T
from support.remarked import notes
from tile_api.cache import default_cache
from tile_api.cli import main
from tile_api.disk_cache.entry_codec import CachedBuild
from tile_core.errors import FrontendValueError, TileWarning


@T.prim_func
def product(
    A: T.Tensor((128, 250), "float16"),
    B: T.Tensor((250, 128), "float16"),
    C: T.Tensor((128, 128), "float32"),
):
    with T.Kernel(1, threads=128):
        left = T.alloc_shared((128, 32), "float16")
        right = T.alloc_shared((32, 128), "float16")
        sums = T.alloc_fragment((128, 128), "float32")
        T.clear(sums)
        for k in T.Pipelined(8, num_stages=2):
            T.copy(A[0, k * 32], left)
            T.copy(B[k * 32, 0], right)
            T.gemm(left, right, sums)
        T.copy(sums, C)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.strip() == text)


def told(report: object, text: str) -> set[tuple[str, str, int]]:
    """Return kind, pass and line of remarks with a text."""
    return {
        (r.kind, r.pass_name, r.span.line if r.span else 0)
        for r in report  # type: ignore[attr-defined]
        if text in r.message
    }


def test_what_was_done_not_done_and_found_out():
    found = tile.lower(product, target="cuda:sm_90a").remarks()
    gemm = line_of("T.gemm(left, right, sums)")
    assert ("passed", "select_rule", gemm) in told(found, "@gemm is lowered by cuda.gemm")
    assert {kind for kind, *_ in told(found, "")} == {"passed", "missed", "analysis"}
    rows = line_of("T.copy(A[0, k * 32], left)")
    assert ("missed", "specialise_warps", rows) in told(found, "'left'")
    assert ("analysis", "bounds_checks", rows) in told(found, "A, axis 1: k * 32 + 31 < 250")


def test_loops_that_overlap_say_so():
    found = tile.lower(product, target="cuda:sm_80").remarks("passed", "plan_pipelines")
    loop = line_of("for k in T.Pipelined(8, num_stages=2):")
    assert told(found, "iterations overlap") == {("passed", "plan_pipelines", loop)}


def test_kinds_and_passes_choose():
    kernel = tile.lower(product, target="cuda:sm_90a")
    every = [*kernel.remarks()]
    for kind in ("passed", "missed", "analysis"):
        assert [*kernel.remarks(kind)] == [r for r in every if r.kind == kind]
    some = kernel.remarks("missed", "specialise_warps")
    assert len(some) > 0
    assert some[0].pass_name == "specialise_warps"
    assert str(kernel.remarks(pass_name="no such pass")) == "no remarks"
    with pytest.raises(FrontendValueError, match="no remarks of the kind 'mised'"):
        kernel.remarks("mised")


@T.prim_func
def too_deep(A: T.Tensor((8, 8192), "float32"), B: T.Tensor((8192,), "float32")):
    with T.Kernel(1, threads=128):
        rows = T.alloc_shared((8192,), "float32")
        for k in T.Pipelined(8, num_stages=6):
            T.copy(A[k, 0], rows)
            for i in T.Parallel(8192):
                B[i] += rows[i]


def test_warnings_are_remarks():
    with pytest.warns(TileWarning, match="stages fit into"):
        kernel = tile.lower(too_deep, target="cuda:sm_80")
    (said,) = [r for r in kernel.remarks("missed") if "stages fit" in r.message]
    assert said.is_warning
    assert said.pass_name == "with_reduced_depth"
    # What was said of depths that did not fit is forgotten.
    assert len(told(kernel.remarks(), "iterations overlap")) == 1
    assert notes(kernel.remarks("missed")) == ()


def test_a_kernel_out_of_the_cache_gives_its_remarks_back(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILE_CACHE_SIZE", "1GiB")
    default_cache().clear()
    first = tile.compile(product, target="cpu")
    default_cache().clear()
    again = tile.compile(product, target="cpu")
    assert isinstance(again._built, CachedBuild)
    assert not isinstance(first._built, CachedBuild)
    assert str(again.remarks()) == str(first.remarks())
    assert told(first.remarks(), "is lowered by cpu.")


def test_logs_and_the_command_tell_them(capsys, tmp_path):
    with tile.settings.override(logs="remarks"):
        tile.lower(product, target="cuda:sm_80")
    err = capsys.readouterr().err
    assert "tile.remarks: " in err
    assert ": passed: @gemm is lowered by cuda.gemm.mma [select_rule]\n" in err
    assert main(["lower", f"{__file__}:product", "--target", "cuda:sm_80", "--remarks"]) == 0
    every = capsys.readouterr().out
    assert ": analysis: A, axis 1: k * 32 + 31 < 250" in every
    assert (
        main(["lower", f"{__file__}:product", "--target", "cuda:sm_80", "--remarks", "missed"]) == 0
    )
    assert ": passed: " not in capsys.readouterr().out
