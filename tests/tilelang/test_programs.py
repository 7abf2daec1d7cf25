"""Programs as users of TileLang write them, for a GPU, run as they are through the alias.

Each of them checks its own results against torch. None names this project: what makes them run
here is `tile_api.tilelang.install`, as in ``tile run --as-tilelang``.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tile_api
from tile_api.tilelang import install

FOLDER = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
HOPPER = ("hopper_ws_gemm",)
"""Those that name what only Hopper GPUs have."""
TEST_FILES = ("rms_norm",)
"""Those whose functions a test runner calls."""
EVERYWHERE = [name for name in NAMES if name not in (*HOPPER, *TEST_FILES)]
THREADS = ("gemv_simt", "tensorcore_by_hand", "warp_reduce")
"""Those that are written thread by thread, or with instructions of GPUs."""
EMULATED = [
    *(("cuda:sm_80@sim", name) for name in THREADS),
    *(("cuda:sm_80@sim", name) for name in ("gemm_splitk", "histogram", "mha_bwd", "retention")),
    *(("hip:gfx942@sim", name) for name in ("gemm_int8", "histogram", "rope")),
    *(("cuda:sm_90a@sim", name) for name in (*HOPPER, "hopper_pipelined_attention")),
    ("cuda:sm_90a@sim", "mla_decode"),
]


@pytest.fixture(autouse=True)
def a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what programs change for their whole process: arguments, caches, random numbers."""
    torch = pytest.importorskip("torch")
    for variable in ("TILE_TARGET", "TILELANG_DEFAULT_TARGET", "TILE_INTERPRET"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "argv", ["program.py"])
    torch.manual_seed(0)
    yield
    tile_api.enable_cache()


def run(name: str, target: str) -> None:
    with install(target):
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_on_the_cpu(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(name, "cpu")
    assert capsys.readouterr().out.strip()


@pytest.mark.in_turn(12)
@pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")  # tiles in local memory
@pytest.mark.parametrize(("target", "name"), EMULATED)
def test_in_the_emulator(target: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(name, target)
    assert capsys.readouterr().out.strip()


def test_on_the_command_line() -> None:
    program = [str(FOLDER / "gemm.py"), "--m", "96", "--k", "64"]
    command = [sys.executable, "-m", "tile_api.cli", "run", "--as-tilelang", "--target", "cpu"]
    done = subprocess.run([*command, *program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("All check passed.\n")


@pytest.mark.parametrize("name", TEST_FILES)
def test_files_of_tests(name: str, tmp_path: Path) -> None:
    plugin = ["-p", "tile_api.tilelang.plugin", "--tile-target=cpu", "-p", "no:cacheprovider"]
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(settings), *plugin]
    done = subprocess.run(
        [*command, str(FOLDER / f"{name}.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_a_program_is_made_for_this_project(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert "import tilelang" in text
    assert not re.search(r"tile_(api|core|cpu|cuda|sim)|@sim|target=.cpu", text)
    assert re.search(r"assert|assert_close|assert_allclose", text), "programs check their results"


def test_there_are_many() -> None:
    assert len(NAMES) >= 40
