"""Kernels are traced from the text that was imported: edits after that are seen, and said."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import os
import sys

import numpy as np
import pytest

import tile_api as tile
from tile_api.jitting import JITKernelFactory
from tile_core.errors import FrontendError

LAZY = """\
import tile_api.language as T

def make():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = {value}
    return kernel
"""
EAGER = """\
import tile_api as tile
import tile_api.language as T

@tile.jit(target="interpret")
def make(A):
    n = T.const("n")
    A: T.Tensor((n,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            A[i] = {value}
"""


class Module:
    """A module in a file that is edited."""

    def __init__(self, path):
        self.path = path

    def write(self, text, **values):
        self.path.write_text(text.format(**values))

    def load(self):
        """Run the file as it is now."""
        spec = importlib.util.spec_from_file_location(self.path.stem, self.path)
        self.module = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            spec.loader.exec_module(self.module)
        finally:
            sys.dont_write_bytecode = before
        return self

    def result(self):
        a = np.zeros(4, "float32")
        made = self.module.make
        if isinstance(made, JITKernelFactory):
            made(a)
        else:
            tile.compile(made(), target="interpret")(a)
        return a[0]


@pytest.fixture
def module(tmp_path):
    return Module(tmp_path / "edited.py")


STYLES = pytest.mark.parametrize("text", [LAZY, EAGER], ids=["lazy", "eager"])


@STYLES
def test_what_is_edited_before_it_is_traced_is_refused(module, text):
    module.write(text, value=1)
    module.load()
    module.write(text, value=2)
    with pytest.raises(FrontendError, match="was edited after it was imported"):
        module.result()
    assert module.load().result() == 2


@STYLES
@pytest.mark.parametrize(("before", "after"), [("0.0", "-0.0"), ("1", "1.0"), ("1", "True")])
def test_numbers_that_are_equal_are_edits(module, text, before, after):
    module.write(text, value=before)
    module.load()
    module.write(text, value=after)
    with pytest.raises(FrontendError, match="was edited after it was imported"):
        module.result()


@STYLES
def test_lines_that_moved_are_found(module, text):
    module.write(text, value=3)
    module.load()
    module.write("# more\n\n\nx = 1\n" + text, value=3)
    assert module.result() == 3


@STYLES
def test_a_module_that_is_loaded_again_is_read_again(module, text):
    """`linecache` remembers what it read before."""
    for value in (1, 2, 22):
        module.write(text, value=value)
        assert module.load().result() == value


@STYLES
def test_a_file_that_does_not_change_is_not_compiled_again(module, text, monkeypatch):
    module.write(text, value=4)
    os.utime(module.path, (1, 1))
    module.load()
    asked = []
    monkeypatch.setattr("tile_api.frontend.source_snapshot._codes", asked.append)
    assert module.result() == 4
    assert asked == []


@STYLES
@pytest.mark.parametrize("later", ["", "def make(:\n", "\0"])
def test_files_that_are_none_any_more(module, text, later):
    module.write(text, value=5)
    module.load()
    linecache.clearcache()
    module.path.write_text(later)
    with pytest.raises(FrontendError, match="was edited after"):
        module.result()


# Decorators ---------------------------------------------------------------------------------


def kept(function):
    @functools.wraps(function)
    def wrapper(*args, **named):
        return function(*args, **named)

    return wrapper


@kept
def lazy(value):
    import tile_api.language as T

    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = value

    return kernel


def test_decorators_around_factories_are_called():
    calls = []

    @tile.jit(target="interpret")
    @functools.lru_cache
    @kept
    def make(value):
        calls.append(value)
        return lazy(value)

    a = np.zeros(4, "float32")
    for _ in range(2):
        make(2)(a)
    assert a[0] == 2
    assert calls == [2]


def test_decorators_around_kernels_are_refused():
    import tile_api.language as T

    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            A[0] = 1

    for decorate in (T.prim_func, T.macro):
        with pytest.raises(FrontendError, match=r"leave out what 'kept\.<locals>\.wrapper'"):
            decorate(kept(kernel))
    with pytest.raises(FrontendError, match="a decorator wrapped 'kernel'"):
        tile.jit(kept(kernel))(np.zeros(4, "float32"))
