"""Programs that functions of arrays are printed as: they lint, run, and are what is compiled."""

from __future__ import annotations

import math
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
from support.array_programs import PROGRAMS, Program
from tile_api import settings
from tile_api.arrays.equations.listing import digest, listed
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.printing.numpy_text import equations_in_numpy
from tile_core.errors import UnsupportedOnTarget

ROOT = Path(__file__).parents[4]
SCALE = 3.0
# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def scaled(x, by=SCALE, *, rows=None):
    return x * by + SCALE if rows is None else x[:rows] * np.float32(by)


def program(name: str) -> Program:
    return next(p for p in PROGRAMS if p.name == name)


def run(text: str, path: Path, target: str) -> str:
    """Run a file as `python file.py` does; return what it printed."""
    path.write_text(text)
    with settings.override(target=target):
        lines: list[str] = []
        names = runpy.run_path(str(path), init_globals={"print": lines.append})
        names["main"]()
    return "\n".join(lines)


def test_they_pass_the_linter_of_our_examples(tmp_path) -> None:
    ruff = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    if ruff is None:
        pytest.skip("no linter")
    for number, p in enumerate(PROGRAMS):
        # The model, which takes its time, decides about sizes; every eighth program will do.
        blocks = None if number % 8 == 0 else Blocks(resident=16_384 * (number % 2))
        text = Function(p.function, blocks=blocks).source(**p.arguments())
        (tmp_path / f"{p.name}_{number}.py").write_text(text)
    x = np.zeros((4, 300), "float32")
    (tmp_path / "expert.py").write_text(
        Function(program("softmax").function, target="cuda:sm_80").source(x, tier="expert")
    )
    rules = "examples/**"
    config = (ROOT / "pyproject.toml").read_text().replace(rules, f"{tmp_path}/**")
    (tmp_path / "ruff.toml").write_text("")
    (tmp_path / "pyproject.toml").write_text(
        config.replace('"packages/*/src"', f'"{ROOT}/packages/*/src"')
    )
    command = [ruff, "check", "--no-cache", "--config", str(tmp_path / "pyproject.toml"), "."]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    "name", ["softmax", "two_layers", "with_log_sum", "embedding", "four_bits"]
)
def test_they_compare_themselves_with_numpy(name: str, tmp_path) -> None:
    p = program(name)
    text = Function(p.function).source(**p.arguments())
    told = run(text, tmp_path / "program.py", "cpu")
    assert told.startswith(f"{name}: (")
    assert told.count("from NumPy") == len(p.expected(p.arguments()))


def test_they_say_where_kernels_are_wrong(tmp_path) -> None:
    text = Function(program("softmax").function).source(np.zeros((5, 70), "float32"))
    broken = text.replace("/ total[i]", "/ total[0]")
    assert broken != text
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        run(broken, tmp_path / "program.py", "cpu")


@pytest.mark.parametrize("p", [program("softmax"), program("two_layers"), program("causal")])
def test_they_are_what_is_compiled(p: Program, tmp_path) -> None:
    function = Function(p.function, target="interpret")
    (tmp_path / "program.py").write_text(function.source(**p.arguments()))
    names = runpy.run_path(str(tmp_path / "program.py"))
    kernels = function.kernels(**p.arguments())
    with settings.override(target="interpret"):
        found = [v.compile_key() for v in names.values() if hasattr(v, "get_tir")]
    assert found == [kernel.compile_key() for kernel in kernels]


def test_numbers_are_copied_with_the_function(tmp_path) -> None:
    function = Function(scaled, target="cpu")
    x = np.ones((5, 7), "float32")
    text = function.source(x, 0.5)
    assert "SCALE = 3.0" in text
    assert "return scaled(x=x, by=0.5, rows=None)" in text
    assert run(text, tmp_path / "program.py", "cpu") == "scaled: (5, 7), at most 0.0e+00 from NumPy"
    assert "rows=2" in function.source(x, rows=2)


def test_what_cannot_be_copied_is_written_as_equations(tmp_path) -> None:
    weights = np.arange(7, dtype="float32")

    def weighted(x):
        return (x * weights).sum(axis=-1)

    def doubled(x):
        return dict(np=np)["np"].exp(x) + ml_dtypes.finfo("float32").bits

    x = np.ones((5, 7), "float32")
    text = Function(weighted).source(x)
    assert "the equations of weighted" in text
    assert run(text, tmp_path / "program.py", "cpu").startswith("weighted: (5,)")
    assert "the equations of doubled" in Function(doubled).source(x)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("p", PROGRAMS, ids=[f"{k}-{p.name}" for k, p in enumerate(PROGRAMS)])
def test_equations_in_numpy(p: Program) -> None:
    arguments = p.arguments()
    function = Function(p.function)
    names = {"np": np, "math": math}
    with np.errstate(all="ignore"):
        exec("\n".join(equations_in_numpy(function.equations(**arguments))), names)
        found = names["in_numpy"](*arguments.values())
    wanted = function.interpret(**arguments)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for got, right in pairs:
        assert got.dtype == right.dtype
        np.testing.assert_allclose(
            got, right, rtol=1e-5, atol=1e-5 * (1.0 + float(np.abs(right).max()))
        )


def test_steps_are_copied_or_written_out(tmp_path) -> None:
    def smoothed(x):
        return tile.scan(lambda h, y: (h * 0.5 + y, h), x[0], x)[1]

    made = {"f": lambda h, y: (h * 0.5 + y, h)}

    def hidden(x):
        return tile.scan(made["f"], x[0], x)[1]

    x = np.zeros((9, 5), "float32")
    text = Function(smoothed).source(x)
    assert run(text, tmp_path / "a.py", "cpu").startswith("smoothed: (9, 5), at most")
    text = Function(hidden).source(x)
    assert "for t in range(9):" in text
    assert run(text, tmp_path / "b.py", "cpu").startswith("hidden: (9, 5), at most")


def test_functions_without_names_are_written_out(tmp_path) -> None:
    x = np.zeros((9, 5), "float32")
    for f in (lambda x: x * 2, lambda x: x + 1):
        said = run(Function(f).source(x), tmp_path / "a.py", "cpu")
        assert said == "<lambda>: (9, 5), at most 0.0e+00 from NumPy"


@pytest.mark.parametrize(
    ("function", "printed"),
    [(np.exp2, "exp2"), (np.exp, "exp"), (lambda x: np.exp(x + np.float32(math.log(2))), "exp")],
    ids=["base 2", "base e", "a sum"],
)
def test_the_base_of_an_exponential(function, printed: str) -> None:
    text = Function(lambda x: function(x), blocks=Blocks()).source(np.zeros((4, 64), "float32"))
    assert re.findall(r"T\.(exp\w*)\(", text) == [printed]


def test_names_of_short_types(tmp_path) -> None:
    x = np.zeros((9, 5), ml_dtypes.bfloat16)
    text = Function(program("softmax").function).source(x)
    assert run(text, tmp_path / "a.py", "cpu").startswith("softmax: (9, 5), at most")


def test_stores_round_to_the_type_of_a_result() -> None:
    def product(a, b):
        return (a @ b).astype("bfloat16"), np.maximum(a, 0).astype("bfloat16")

    halves = np.ones((64, 64), ml_dtypes.bfloat16)
    text = Function(product).source(halves, halves)
    assert "T.cast(T.cast(" not in text
    twice = Function(lambda x: ((y := (2 * x).astype("bfloat16")), np.exp(y)))
    assert twice.source(halves.astype("float32")).count('"bfloat16"), "float32")') == 1


def test_equations_have_a_digest() -> None:
    p = program("softmax")
    lines = listed(Function(p.function).equations(np.zeros((37, 211), "float32")))
    assert lines == (
        "x: float32[37, 211]",
        "t0[x0] = max_x1 x[x0, x1]",
        "t1[x0, x1] = exp((x[x0, x1] + (-1.0 * t0[x0])))",
        "t2[x0] = Σ_x1 t1[x0, x1]",
        "out[x0, x1]: float32[37, 211] = (t1[x0, x1] * reciprocal(t2[x0]))",
    )
    others = listed(Function(p.function).equations(np.zeros((37, 212), "float32")))
    assert digest(lines) != digest(others)
    assert f"Equations {digest(lines)}:" in Function(p.function).source(**p.arguments())


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
def test_threads_of_a_gpu(target: str, tmp_path) -> None:
    x, a, b = (np.zeros(shape, "float32") for shape in ((9, 20), (20, 512), (512, 300)))
    function = Function(program("two_layers").function, target=target)
    text = function.source(x, a, b, tier="expert")
    assert text.count("@T.threads") == len(function.explain(x, a, b).kernels) > 1
    assert run(text, tmp_path / "threads.py", "cpu").startswith("two_layers: (9, 300), at most")


def test_cpus_have_no_programs_of_threads() -> None:
    function = Function(program("softmax").function, target="cpu")
    with pytest.raises(UnsupportedOnTarget, match="has no programs of threads, as GPUs have"):
        function.source(np.zeros((5, 7), "float32"), tier="expert")
