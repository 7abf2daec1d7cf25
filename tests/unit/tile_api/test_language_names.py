"""The `T` namespace is complete, documented, cheap to import, and honest about the rest."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tile_api.language as T
from support.trace import trace
from tile_api.language.gpu_only import GPU_NAMES
from tile_api.language.unavailable import UNAVAILABLE
from tile_core.errors import ScopeError, UnsupportedOnTarget

NAMES = (Path(__file__).parents[2] / "data" / "language_names.txt").read_text().split()


def test_every_name_of_tilelang_is_there():
    assert len(NAMES) == len(set(NAMES)) == 713
    assert [name for name in NAMES if not hasattr(T, name)] == []
    assert [name for name in NAMES if name not in T.__all__] == []


def test_all_names_are_listed():
    code = "import tile_api.language as T; print(sorted(set(T.__all__) - set(dir(T))))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_star_import_gives_the_namespace():
    scope: dict[str, object] = {}
    exec("from tile_api.language import *", scope)
    assert [name for name in T.__all__ if name not in scope] == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"the language has no 'T\.frobnicate'"):
        _ = T.frobnicate


def test_importing_is_light():
    code = (
        "import sys, tile_api.language as T;"
        "print([m for m in ('numpy', 'torch', 'tvm') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_function_is_documented():
    functions = {n: getattr(T, n) for n in T.__all__ if inspect.isfunction(getattr(T, n))}
    assert len(functions) > 200
    assert [name for name, f in functions.items() if not (f.__doc__ or "").strip()] == []


@pytest.mark.parametrize("name", sorted(UNAVAILABLE))
def test_unavailable_names_say_why(name):
    thing = getattr(T, name)
    for use in (thing, lambda: thing.member):
        with pytest.raises(UnsupportedOnTarget) as caught:
            use()
        assert caught.value.message.startswith(f"T.{name}")
        assert caught.value.hint


def test_unavailable_names_survive_introspection():
    assert not hasattr(T.WSRole, "__wrapped__")
    assert "WSRole" in repr(T.WSRole)


@pytest.mark.parametrize("name", sorted(GPU_NAMES))
def test_gpu_names_are_refused_outside_kernels_and_emit_inside(name):
    with pytest.raises(ScopeError):
        getattr(T, name)()
    kernel = trace(lambda: getattr(T, name)())
    assert kernel.body
