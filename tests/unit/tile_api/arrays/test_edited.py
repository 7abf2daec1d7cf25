"""Files of edited kernels run in place of generated ones, and are compared once."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest

import tile_api as tile
from support.array_programs import PROGRAMS, attention, softmax, two_layers
from tile_api.arrays.compared import _ranges
from tile_api.arrays.function import Function
from tile_api.cli import main
from tile_api.disk_cache.location import COMPARED
from tile_core.errors import FrontendTypeError, KernelsDiffer

# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
RANDOM = np.random.default_rng(3)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILE_CACHE_SIZE", "1M")
    return tmp_path / "cache"


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype("float32")


def written(path, function, *args, replace=("", ""), tier="developer", **options) -> Function:
    """Print a function's kernels, edit them, and return the function with these kernels."""
    text = Function(function, **options).source(*args, tier=tier)
    assert replace[0] in text
    path.write_text(text.replace(*replace))
    return Function(function, kernels=str(path), **options)


def test_another_block_shape(tmp_path) -> None:
    q, k, v = numbers(2, 100, 16), numbers(2, 70, 16), numbers(2, 70, 24)
    edited = written(
        tmp_path / "a.py", attention, q, k, v, replace=("BM=64", "BM=32"), target="cpu"
    )
    np.testing.assert_allclose(edited(q, k, v), attention(q, k, v), rtol=1e-4, atol=1e-5)
    assert (edited(q, k, v) == edited(q=q, k=k, v=v)).all()


def test_a_file_is_compared_once(tmp_path, cache) -> None:
    x = numbers(5, 70)
    counted = (
        "def launch(x):\n",
        "CALLS = []\n\n\ndef launch(x):\n    CALLS.append(len(CALLS))\n    if len(CALLS) > 6:\n"
        "        raise RuntimeError\n",
    )
    edited = written(tmp_path / "a.py", softmax, x, replace=counted, target="interpret")
    np.testing.assert_allclose(edited(x), softmax(x), rtol=1e-5)  # five comparisons and a call
    (note,) = (cache / COMPARED).glob("*.json")
    told = json.loads(note.read_text())
    assert told["function"] == "softmax"
    assert 0 <= told["most"] < 1e-5
    again = Function(softmax, kernels=str(tmp_path / "a.py"), target="interpret")
    for _ in range(6):
        again(x)
    (tmp_path / "a.py").write_text((tmp_path / "a.py").read_text().replace("CALLS)", "CALLS )"))
    other = Function(softmax, kernels=str(tmp_path / "a.py"), target="interpret")
    other(x)
    assert len([*(cache / COMPARED).glob("*.json")]) == 2
    assert main(["cache", "clear"]) == 0
    assert [*(cache / COMPARED).iterdir()] == []


def test_without_a_cache_nothing_is_kept(tmp_path, cache, monkeypatch) -> None:
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    x = numbers(5, 70)
    written(tmp_path / "a.py", softmax, x, target="interpret")(x)
    assert not (cache / COMPARED).exists()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
def test_threads_of_a_gpu(target: str, tmp_path) -> None:
    x, a, b = numbers(9, 20), numbers(20, 300), numbers(300, 33)
    edited = written(tmp_path / "a.py", two_layers, x, a, b, tier="expert", target=target)
    np.testing.assert_allclose(edited(x, a, b), two_layers(x, a, b), rtol=1e-4, atol=1e-4)


def test_arrays_that_are_too_large_for_the_interpreter(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tile_api.arrays.compared.MOST_ELEMENTS", 10)
    monkeypatch.setattr("tile_api.arrays.compared.evaluated", None)
    x, a = numbers(5, 70), numbers(70, 9)

    def product(x, a):
        return x @ a

    edited = written(tmp_path / "a.py", product, x, a, target="cpu")
    np.testing.assert_allclose(edited(x, a), x @ a, rtol=1e-5, atol=1e-5)
    wrong = written(
        tmp_path / "b.py",
        product,
        x,
        a,
        replace=(", acc)", ", acc, transpose_A=False, clear_accum=True)"),
        target="cpu",
    )
    with pytest.raises(KernelsDiffer, match="do not compute product"):
        wrong(x, a)


def test_what_holds_the_results(tmp_path) -> None:
    class Both(NamedTuple):
        low: np.ndarray
        total: np.ndarray

    def both(x, scale):
        return Both(x.min(axis=0), (x * scale).sum())

    x = numbers(5, 7)
    scale = np.asarray(2.0, "float32")
    edited = written(tmp_path / "a.py", both, x, scale, target="interpret")
    found = edited(x.T.copy().T, scale)
    assert isinstance(found, Both)
    assert found.total.shape == ()
    np.testing.assert_allclose(found.total, x.sum() * 2, rtol=1e-5)


def test_integers_of_four_bits(tmp_path) -> None:
    def clipped(x):
        return np.clip(x, -8, 7).astype("int4")

    x = np.arange(-12, 12, dtype="int32").reshape(3, 8)
    edited = written(tmp_path / "a.py", clipped, x, target="cpu")
    assert str(edited(x).dtype) == "int4"
    np.testing.assert_array_equal(edited(x).astype("int32"), np.clip(x, -8, 7))


def test_tensors_of_torch(tmp_path) -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 70)
    edited = written(tmp_path / "a.py", softmax, x, target="cpu")
    found = edited(x)
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, torch.softmax(x, -1))


def test_a_file_beside_the_function(tmp_path, monkeypatch) -> None:
    program = "import numpy as np\n\n\ndef twice(x):\n    return 2 * x\n"
    (tmp_path / "functions.py").write_text(program)
    monkeypatch.syspath_prepend(str(tmp_path))
    import functions

    x = numbers(3, 5)
    (tmp_path / "twice_tiles.py").write_text(tile.function(functions.twice).source(x))
    edited = tile.function(kernels="twice_tiles.py", target="interpret")(functions.twice)
    np.testing.assert_array_equal(edited(x), 2 * x)
    with pytest.raises(FrontendTypeError, match=r"runs what .*twice_tiles\.py launches"):
        edited.kernels(x)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "name", ["positions", "moments", "embedding", "quantised_rows", "cross_entropy", "rotary"]
)
def test_unedited_files_agree(name: str, tmp_path) -> None:
    p = next(p for p in PROGRAMS if p.name == name)
    written(tmp_path / "a.py", p.function, *p.arguments().values(), target="cpu")(**p.arguments())


def test_ranges() -> None:
    assert _ranges([3]) == "3"
    assert _ranges([0, 1, 2, 7, 9, 10]) == "0 to 2, 7, 9 to 10"
    assert _ranges([*range(0, 20, 2)]) == "0, 2, 4, 6, …"
