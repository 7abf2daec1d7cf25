"""Tracebacks show the user's lines, and the compiler's if they are asked for."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import InternalError, TileError

HERE = Path(__file__).name


def files_of(action: Callable[[], object]) -> list[str]:
    """Return the files of the frames with which an action fails, the outermost first."""
    with pytest.raises(TileError) as caught:
        action()
    frames = traceback.extract_tb(caught.value.__traceback__)
    return [Path(frame.filename).name for frame in frames if "pytest" not in frame.filename]


def trace_something_wrong() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=0):
            A[0] = 1.0


def make_something_wrong() -> None:
    @tile.jit(target="interpret")
    def made(n):
        @T.prim_func
        def kernel(A: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=0):
                A[0] = 1.0

        return kernel

    made(3)


@T.prim_func
def fine(A: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        A[0] = 1.0


def call_wrongly() -> None:
    tile.compile(fine, target="interpret")(np.zeros(3, "float32"))


def compile_for_nothing() -> None:
    tile.compile(fine, target="tpu")


def lower_for_nothing() -> None:
    tile.lower(fine, target="tpu")


@T.prim_func
def asserted(A: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        thread = T.get_thread_binding()
        A[thread] = T.shfl_xor(A[thread], 1)
        T.device_assert(A[thread] > 0)


def fail_in_a_thread() -> None:
    tile.compile(asserted, target="interpret")(np.zeros(32, "float32"))


CASES = {
    fail_in_a_thread: [HERE, HERE, "callable_kernel.py"],
    trace_something_wrong: [HERE, HERE, "tracebacks.py", HERE],
    make_something_wrong: [HERE, HERE, "tracebacks.py", HERE, HERE],
    call_wrongly: [HERE, HERE, "callable_kernel.py"],
    compile_for_nothing: [HERE, HERE, "tracebacks.py"],
    lower_for_nothing: [HERE, HERE, "tracebacks.py"],
}


@pytest.mark.parametrize("action", CASES, ids=lambda action: action.__name__)
def test_frames(action, monkeypatch):
    monkeypatch.setenv("TILE_FULL_TRACEBACK", "0")
    assert files_of(action) == CASES[action]
    monkeypatch.setenv("TILE_FULL_TRACEBACK", "1")
    assert len(files_of(action)) > len(CASES[action])


def test_failures_of_the_compiler_keep_their_frames(monkeypatch):
    monkeypatch.setenv("TILE_FULL_TRACEBACK", "0")

    def fail(*args: object) -> None:
        raise InternalError("something is wrong inside")

    monkeypatch.setattr("tile_api.cached_builds.build", fail)
    with tile.settings.override(cache=False):
        assert len(files_of(lambda: tile.compile(fine, target="interpret"))) > 3


def test_a_wrong_setting_hides_no_error(monkeypatch):
    monkeypatch.setenv("TILE_FULL_TRACEBACK", "perhaps")
    with pytest.raises(TileError, match="threads must be positive"):
        trace_something_wrong()


def name_nothing() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            A[0] = nothing  # noqa: F821


def test_causes_show_the_users_lines_alone(monkeypatch):
    monkeypatch.setenv("TILE_FULL_TRACEBACK", "0")
    with pytest.raises(TileError) as caught:
        name_nothing()
    cause = caught.value.__cause__
    assert isinstance(cause, NameError)
    frames = traceback.extract_tb(cause.__traceback__)
    assert [Path(frame.filename).name for frame in frames] == [HERE]


@pytest.mark.parametrize("compiles", [tile.compile, tile.jit(target="interpret")(lambda: 1)])
def test_errors_of_what_torch_is_kept_from_name_the_users_line(compiles):
    with pytest.raises(TileError) as caught:
        compiles(1) if compiles is tile.compile else compiles()
    assert Path(caught.value.span.file).name == HERE
