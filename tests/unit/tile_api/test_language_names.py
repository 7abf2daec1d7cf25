"""The `T` namespace is complete, documented, cheap to import, and honest about the rest."""

from __future__ import annotations

import inspect
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.trace import trace
from tile_api.language.foreign_names import FORMULAS, SAID_AS
from tile_api.language.gpu_only import GPU_NAMES
from tile_api.language.nodes import NODES
from tile_api.language.unavailable import UNAVAILABLE
from tile_core.errors import ScopeError, UnknownName, UnsupportedOnTarget

NAMES = (Path(__file__).parents[2] / "data" / "language_names.txt").read_text().split()


def test_every_name_of_tilelang_is_there():
    assert len(NAMES) == len(set(NAMES)) == 713
    assert [name for name in NAMES if not hasattr(T, name)] == []
    assert [name for name in NAMES if name not in T.__all__] == []


def test_what_is_listed_can_be_said():
    """Completion offers the language: no modules, names of other compilers, types of vectors."""
    listed = set(dir(T))
    assert listed < set(T.__all__)
    assert not listed & {*UNAVAILABLE, *NODES, "float32x4", "allocate_module", "importlib", "Any"}
    assert {"copy", "gemm", "Pipelined", "float16", "ptx_mma", "Layout", "int8"} <= listed
    assert [name for name in listed if inspect.ismodule(getattr(T, name))] == []


def test_what_others_call_otherwise_is_told_in_our_words():
    with pytest.raises(UnknownName) as caught:
        _ = T.softplus
    assert caught.value.message == "the language has no 'T.softplus'"
    assert caught.value.hint == "write T.max(x, 0) + T.log1p(T.exp(-T.abs(x)))"
    assert [name for name in SAID_AS if hasattr(T, name)] == []
    said = {word for hint in SAID_AS.values() for word in re.findall(r"\bT\.(\w+)", hint)}
    assert said <= set(dir(T))


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_right(name):
    of_two = name in ("logaddexp", "maximum", "minimum")
    compute = eval(f"lambda x, y: {FORMULAS[name]}", {"T": T})

    @T.prim_func
    def kernel(
        X: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32"), Z: T.Tensor((8,), "float32")
    ):
        with T.Kernel(1):
            for i in T.Parallel(8):
                Z[i] = compute(X[i], Y[i])

    x = np.array([-90.0, -2.5, -1.0, 0.25, 0.5, 1.0, 3.0, 90.0], np.float32)
    y, z = x[::-1].copy(), np.full(8, np.nan, np.float32)
    tile.compile(kernel, target="interpret")(x, y, z)
    wanted = REFERENCES[name](x.astype(np.float64), *([y.astype(np.float64)] if of_two else []))
    np.testing.assert_allclose(z, wanted, rtol=1e-5, atol=1e-7)


REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "gelu": lambda x: np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x]),
    "logaddexp": np.logaddexp,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "reciprocal": np.reciprocal,
    "relu": lambda x: np.where(x > 0, x, 0),
    "sign": np.sign,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "square": np.square,
}


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
