"""What is refused of functions of arrays beside what stands in them, with the whole text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tile_api as tile
from tile_api.arrays import deriving
from tile_api.arrays.planning.plan import Blocks
from tile_core.errors import ElementUnknown, TileError

X = np.ones((4, 6), "float32")


def told(program, text: str, **names: object) -> str:
    """Return the error of the last line of a program, without its place."""
    with pytest.raises(TileError) as caught:
        program(text, tile=tile, np=np, X=X, Blocks=Blocks, **names)
    lines = str(caught.value).splitlines()
    last = text.rstrip().splitlines()[-1].strip()
    assert lines[2:5:2] == ["  |", f"  | {'^' * len(last)}"]
    assert lines[3].endswith(f" | {last}")
    return "\n".join(lines[:1] + lines[5:])


NO_FUNCTION = "is no function that @tile.function could decorate"
DEF = "hint: write @tile.function above a `def` that returns arrays"
ARRAYS = "hint: pass arrays, np.asarray makes them; and numbers, texts, None, or tuples of such"
DECORATED = {
    "len": f"<built-in function len> {NO_FUNCTION}",
    "np.exp": f"<ufunc 'exp'> {NO_FUNCTION}",
    "tile.nn.silu": f"<tile.function silu> {NO_FUNCTION}",
    "runs": f"runs runs later, by async or yield: it {NO_FUNCTION}",
    "steps": f"steps runs later, by async or yield: it {NO_FUNCTION}",
}
ELEMENTS = {
    "complex64": ("complex64", "pass x.real and x.imag"),
    ">f4": (">f4", 'x.astype("float32")'),
    "longdouble": (str(np.dtype("longdouble")), 'x.astype("float64")'),
    "U1": ("<U1", 'x.astype("float32")'),
    "object": ("object", 'x.astype("float32")'),
    "datetime64[D]": ("datetime64[D]", 'x.astype("float32")'),
}


@pytest.mark.parametrize("what", DECORATED)
def test_what_is_decorated(program, what):
    text = f"""
        async def runs(x): return x
        def steps(x): yield x
        tile.function({what})
    """
    assert told(program, text) == f"[TL1003] {DECORATED[what]}\n{DEF}"


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_types_without_arithmetic(program, dtype):
    name, hint = ELEMENTS[dtype]
    text = """
        def f(x): return x * 2
        tile.function(f)(given)
    """
    assert told(program, text, given=np.zeros(3, "int8").astype(dtype)) == (
        f"[TL1003] f: argument 'x' has elements of {name}, for which there is no arithmetic\n"
        f"hint: {hint}"
    )


@pytest.mark.parametrize("given", ["[1.0, 2.0]", "{1: X}", "memoryview(b'ab')", "(X, X)"])
def test_what_is_no_array(program, given):
    text = f"""
        def f(x): return x
        tile.function(f)({given})
    """
    kind = type(eval(given, {"X": X})).__name__
    assert told(program, text) == f"[TL1003] f: argument 'x' is a {kind}\n{ARRAYS}"


@pytest.mark.parametrize(
    ("call", "message"),
    [("(X, 3)", "f: too many positional arguments"),
     ("(X, z=3)", "f: got an unexpected keyword argument 'z'"),
     ("(X, x=3)", "f: multiple values for argument 'x'"),
     ("()", "f: missing a required argument: 'x'")],
)  # fmt: skip
def test_other_arguments(program, call, message):
    text = f"""
        def f(x): return x
        tile.function(f){call}
    """
    assert told(program, text) == f"[TL6002] {message}"


@pytest.mark.parametrize(
    ("field", "size"), [("rows", 0), ("stream", -1), ("columns", 1.5), ("threads", "many")]
)
def test_blocks_of_no_size(program, field, size):
    text = f"Blocks({field}={size!r})"
    assert told(program, text) == (
        f"[TL1002] Blocks: {field} is {size!r}\n"
        "hint: sizes of blocks are whole numbers of 1 or more"
    )


def test_blocks_that_are_none(program):
    text = "tile.function(blocks=64)(lambda x: x)"
    assert told(program, text) == (
        "[TL1003] blocks are a int\nhint: blocks=Blocks(rows=32), of tile_api.arrays.planning.plan"
    )


@pytest.mark.parametrize("use", ["kept[0] + 1", "kept[0].sum()", "kept[0][0]", "np.exp(kept[0])"])
def test_arrays_that_outlive_their_function(program, use):
    text = f"""
        kept = []
        def f(x): return kept.append(x) or x
        tile.function(f).source(X)
        {use}
    """
    assert told(program, text) == (
        "[TL1201] an array is used that was there while another function was captured: it has no "
        "elements\nhint: return it from the function, and use what a call returns"
    )


def test_arrays_of_another_function() -> None:
    kept = []

    def first(x):
        kept.append(x)
        return x

    tile.function(first).source(X)
    with pytest.raises(ElementUnknown, match="while another function was captured"):
        tile.function(lambda x: x + kept[0]).source(X)


def test_kernels_that_cannot_be_written(program, monkeypatch):
    def fail(*_):
        raise KeyError("axis")

    monkeypatch.setattr(deriving, "tasks_of", fail)
    text = """
        def f(x): return x * 2
        tile.function(f)(X)
    """
    assert told(program, text) == (
        "[TL9001] the kernels of f cannot be written: KeyError: 'axis'\n"
        "note: of this:\nx: float32[4, 6]\nout[x0, x1]: float32[4, 6] = (2.0 * x[x0, x1])\n"
        "hint: report it with the function; until it is mended, other Blocks may do"
    )


def test_equations_mean_something_without_kernels(monkeypatch) -> None:
    monkeypatch.setattr(deriving, "tasks_of", None)
    f = tile.function(lambda x: x * 2)
    np.testing.assert_array_equal(f.interpret(X), X * 2)
    assert f.equations(X).parameters[0].shape == (4, 6)


def test_kernels_that_cannot_be_compiled(program, monkeypatch):
    right = deriving.written

    def wrong(*given):
        kernel = right(*given)
        return replace(kernel, text=kernel.text.replace("2.0", "T.nothing"))

    monkeypatch.setattr(deriving, "written", wrong)
    text = """
        def f(x): return x * 2
        tile.function(target="cpu")(f)(X)
    """
    found = told(program, text)
    assert found.startswith("[TL9001] the kernels of f cannot be compiled: ")
    assert "note: in the kernels\n" in found
    assert "note: of this:\nimport tile_api" in found
    assert "T.nothing" in found


def test_targets_that_are_none_are_the_user_s(program):
    text = """
        def f(x): return x * 2
        tile.function(target="gpu")(f)(X)
    """
    assert told(program, text).startswith("[TL7001] no backend serves target 'gpu'")


@pytest.mark.parametrize("returned", ["()", "[]"])
def test_nothing_is_returned(returned) -> None:
    with pytest.raises(ElementUnknown, match="<lambda> returns nothing"):
        tile.function(eval(f"lambda x: {returned}")).source(X)


def test_parameters_by_position_alone() -> None:
    @tile.function(target="cpu")
    def f(x, /, y, *, by=2):
        return x * by + y

    np.testing.assert_array_equal(f(X, X), X * 3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float32", "float64"])
def test_types_are_compared_as_numpys(dtype) -> None:
    def facts(x):
        same = [x.dtype == t for t in (np.float32, "f4", np.dtype("int8"), bool, float)]
        return x * 0 + hash((*same, x.dtype != np.float32, x.dtype.kind == "f", x.dtype.name)) % 97

    x = np.zeros(1, dtype if dtype != "bool" else "int32")
    np.testing.assert_array_equal(tile.function(target="cpu")(facts)(x), facts(x))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sofmax", "there is tile.nn.softmax"), ("dropout", "write it with functions of NumPy")],
)
def test_names_that_tile_nn_does_not_have(program, name, hint):
    assert told(program, f"tile.nn.{name}(X)") == (
        f"[TL1013] tile.nn has no {name!r}\nhint: {hint}"
    )
    assert not hasattr(tile.nn, name)
