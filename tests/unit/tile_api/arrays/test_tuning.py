"""`tune=`: candidates of the model, measured on the arrays of a call, and kept in tables."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest

import tile_api as tile
import tile_api.autotuner.tune as tuner
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks
from tile_core.errors import MeasuringImpossible, TuningError

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def layer(x, w):
    return np.maximum(x @ w, 0)


def arrays(n: int = 128) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return tuple(random.standard_normal(s).astype("float32") for s in ((n, 256), (256, 512)))


def slowest(tasks: list):
    """Return a tuner that takes the candidate which the model likes least."""

    def tune(task):
        tasks.append(task)
        return SimpleNamespace(config=task.configs[-1], latency=0.25, source="search")

    return tune


def test_what_was_measured_is_taken(monkeypatch) -> None:
    tasks: list = []
    monkeypatch.setattr(tuner, "tune", slowest(tasks))
    x, w = arrays()
    function = Function(layer, target="cpu", tune="3s")
    text = str(function.explain(x, w))
    (task,) = tasks
    assert task.options.budget.seconds == 3
    assert [id(a) for a in task.inputs] == [id(x), id(w)]
    first, last = task.configs[0].values, task.configs[-1].values
    assert asdict(Blocks(**last)) == last != first
    assert "250 us measured on " in text
    assert f"best of {len(task.configs)} sizes" in text
    assert f"BM={last['rows']}, " in function.source(x, w)
    assert "by the model" in str(Function(layer, target="cpu").explain(x, w))


def test_one_measurement_serves_all_sizes_of_a_symbol(monkeypatch) -> None:
    tasks: list = []
    monkeypatch.setattr(tuner, "tune", slowest(tasks))

    @tile.function(target="cpu", tune=2)
    def named(x: tile.Array["n 256"], w: tile.Array["256 512"]):  # noqa: F722
        return layer(x, w)

    for n in (128, 7):
        x, w = arrays(n)
        np.testing.assert_allclose(named(x, w), layer(x, w), rtol=1e-3, atol=1e-3)
    (task,) = tasks
    assert task.options.sizes == {"n": 128}


def test_results_are_kept_on_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TILE_TUNE_DIR", str(tmp_path))
    x, w = arrays()
    made = Function(layer, target="cpu", tune="2s").explain(x, w)
    assert "measured on " in str(made)
    assert [*tmp_path.rglob("*.json*")]
    monkeypatch.setattr(tuner, "_searched", None)  # it would be called to measure again
    assert str(Function(layer, target="cpu", tune="2s").explain(x, w)) == str(made)


@pytest.mark.parametrize(
    ("options", "told"),
    [({"tune": "soon"}, "[TL8101] 'soon' is not a time budget"),
     ({"tune": True}, "[TL8101] True is not a time budget"),
     ({"tune": 2, "blocks": Blocks()}, "[TL8101] blocks= leaves nothing to tune"),
     ({"tune": 2, "kernels": "layer.py"}, "[TL8101] kernels= leaves nothing to tune")],
)  # fmt: skip
def test_misuse(options: dict, told: str) -> None:
    with pytest.raises(TuningError) as caught:
        tile.function(**options)(layer)
    text = str(caught.value)
    assert text.startswith(f"{told}\n  --> {__file__}:")
    given = next(reversed(options))
    assert text.splitlines()[-1] == (
        'hint: write "model", a time such as "10s" or "2m", or "full"' if given == "tune"
        else f"hint: leave out {given}= or tune="
    )  # fmt: skip


def test_machines_that_are_not_here_measure_nothing() -> None:
    x, w = (np.zeros(s, "float32") for s in ((4096, 1024), (1024, 1024)))
    with pytest.raises(MeasuringImpossible, match="sm_80"):
        Function(layer, target="cuda:sm_80", tune="1s").explain(x, w)
