"""``tile reduce`` as a user types it, with a backend that fails in many ways."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from support.faulty_backend import install
from tile_api.cli import main
from tile_api.reducing.kernel_edits import statements
from tile_api.reducing.program import read_kernel
from tile_api.reducing.trial import RUN, Plan
from tile_api.reducing.workers import Trials
from tile_core.errors import ToolchainError
from tile_core.testing import build_ir as ir

KERNEL = """
import tile_api as tile
import tile_api.language as T

@tile.jit(out_idx=[2])
def softmax(rows, columns, block=16):
    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), "float32"),
        B: T.Tensor((rows,), "float32"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, block), threads=64) as bx:
            a = T.alloc_shared((block, columns), "float32")
            e = T.alloc_fragment((block, columns), "float32")
            top = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            bias = T.alloc_fragment((block,), "float32")
            T.copy(A[bx * block, 0], a)
            T.copy(B[bx * block], bias)
            T.copy(a, e)
            T.reduce_max(e, top, dim=1)
            for i, j in T.Parallel(block, columns):
                e[i, j] = T.exp(e[i, j] - top[i]) * 2.0
            T.reduce_sum(e, total, dim=1)
            for i, j in T.Parallel(block, columns):
                if bias[i] > 0:
                    e[i, j] = e[i, j] / total[i] + bias[i]
            T.copy(e, C[bx * block, 0])
    return main
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", install(tmp_path / "installed"))
    path = tmp_path / "softmax.py"
    path.write_text(KERNEL)
    return path


def command(file: Path, target: str, *more: str) -> list[str]:
    sizes = ["--args", '{"rows": 40, "columns": 24}', "--budget", "50s"]
    return ["reduce", f"{file}:softmax", "--target", f"faulty:{target}", *sizes, *more]


def reproduced(folder: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(folder / "reproduce.py")]
    return subprocess.run(program, capture_output=True, text=True, check=False, cwd="/")


def test_an_error_of_the_compiler_becomes_a_report(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "report.zip"
    typed = [sys.executable, "-m", "tile_api.cli", *command(file, "raises", "--out", str(place))]
    done = subprocess.run(typed, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "statements  drop statements" in done.stderr
    with zipfile.ZipFile(place) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "report"
    assert {path.name for path in folder.iterdir()} == {
        "README.md", "doctor.txt", "environment.json", "failure.txt", "kernel.tile",
        "original-softmax.py", "original.tile", "reproduce.py",
    }  # fmt: skip
    kernel = read_kernel((folder / "kernel.tile").read_text())
    assert len(statements(kernel)) <= 4
    assert not kernel.params
    assert len(statements(read_kernel((folder / "original.tile").read_text()))) > 15
    assert "@T.prim_func\ndef main():" in (folder / "reproduce.py").read_text()
    again = reproduced(folder)
    assert again.returncode == 1
    assert "[TL9001] the compiler failed to lower the kernel 'main'" in again.stdout
    assert "no shuffle for" in (folder / "failure.txt").read_text()
    about = json.loads((folder / "environment.json").read_text())
    assert about["target"] == "faulty:raises"
    assert about["packages"]["tile-core"]
    assert "faulty:raises" in (folder / "doctor.txt").read_text()
    assert "tile reduce" in (folder / "README.md").read_text()


def test_tilelang_programs_are_reduced_unedited(file: Path, tmp_path: Path) -> None:
    file.write_text(KERNEL.replace("tile_api.language", "tilelang.language").replace(
        "import tile_api as tile", "import tilelang as tile"))  # fmt: skip
    asked = ["--as-tilelang", "--code", "TL9001", "--out", str(tmp_path / "report")]
    typed = [sys.executable, "-m", "tile_api.cli", *command(file, "raises", *asked)]
    done = subprocess.run(typed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kernel = read_kernel((tmp_path / "report" / "kernel.tile").read_text())
    assert len(statements(kernel)) <= 4
    assert "until='lower'" in (tmp_path / "report" / "reproduce.py").read_text()
    assert "--as-tilelang" in (tmp_path / "report" / "README.md").read_text()


def test_a_wrong_result_stays_wrong(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "report"
    asked = ["--wrong-against", "interpreter", "--out", str(place)]
    assert main(command(file, "wrong", *asked)) == 0
    kernel = read_kernel((place / "kernel.tile").read_text())
    assert len(statements(kernel)) <= 4
    again = reproduced(place)
    assert again.returncode == 1
    assert "elements differ" in again.stdout


def test_a_crash_takes_no_reduction_down(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "report"
    assert main(command(file, "crashes", "--crash", "--out", str(place))) == 0
    kernel = read_kernel((place / "kernel.tile").read_text())
    assert len(statements(kernel)) <= 4
    assert reproduced(place).returncode == -signal.SIGKILL
    assert "a crash (SIGKILL) while it runs" in (place / "README.md").read_text()


@pytest.mark.usefixtures("file")
def test_what_hangs_is_killed_and_the_next_one_tried() -> None:
    a = ir.tensor("A", (4,))
    hangs = ir.kernel([a], 1, lambda bx: ir.when(bx < 1, ir.fill(a, 1)))
    well = ir.kernel([a], 1, lambda bx: ir.fill(a, 1))
    with closing(Trials(Plan("faulty:hangs", until=RUN), timeout=3)) as tries:
        assert tries(well).kind == "fine"
        outcome = tries(hangs)
        assert (outcome.kind, outcome.phase) == ("hang", "run")
        assert tries(well).kind == "fine"


def test_an_interrupted_reduction_writes_what_it_has(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "report"
    typed = [sys.executable, "-m", "tile_api.cli", *command(file, "raises", "--out", str(place))]
    with subprocess.Popen(typed, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if "drop statements" in line:
                os.kill(process.pid, signal.SIGINT)
                break
        told += process.stderr.readlines()
    assert process.returncode == 0, "".join(told)
    kernel = read_kernel((place / "kernel.tile").read_text())
    assert 4 <= len(statements(kernel)) < 20


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--budget", "soon"], "'soon' is no time: write 90s, 10m or 1h"),
        (["--timeout", "0s"], "'0s' is no time"),
        (["--wrong-against", "me"], "invalid choice: 'me'"),
        (["--seed", "x"], "invalid int value: 'x'"),
        (["--code", "TL0"], "'TL0' is no code of an error: write one as TL6503"),
        (["--code", "TL6599"], "'TL6599' is no code of an error: write one as TL6503"),
        (["--tolerance", "-1"], "'-1' is no share: write 0 or more, such as 1e-3"),
        (["--tolerance", "nan"], "'nan' is no share: write 0 or more, such as 1e-3"),
    ],
)
def test_arguments_that_make_no_sense(words, told, file, capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["reduce", str(file), *words])
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing.py"], "there is no file 'nothing.py'"),
        (["{file}", "--values", "[1]"], "--values is [1], no object"),
        (["{file}", "--args", "{{"], "--args is not JSON"),
        (
            ["{file}", "--crash", "--code", "TL6503"],
            "[TL1002] --code and --crash ask for failures of different kinds\n"
            "hint: name one of them, or none to keep what the kernel does\n",
        ),
        (["{file}:other"], "has no kernel called 'other'"),
        (
            ["{file}", "--args", '{{"rows": 4, "columns": 4}}', "--values", '{{"n": 3}}'],
            "[TL1002] --values names 'n', and main has no such size or scalar\nhint: it has none\n",
        ),
    ],
)
def test_errors_of_users_are_told(words, told, file, capsys) -> None:
    assert main(["reduce", *(word.format(file=file) for word in words)]) == 1
    assert told in capsys.readouterr().err


SYMBOLIC = """
import tile_api.language as T

n = T.dynamic("n")

@T.prim_func
def fill(A: T.Tensor((n,), "float32"), f: T.float32):
    with T.Kernel(1, threads=32):
        for i in T.serial(n):
            A[i] = f
"""


@pytest.mark.usefixtures("file")
def test_values_are_numbers_of_what_there_is(tmp_path, capsys) -> None:
    path = tmp_path / "fill.py"
    path.write_text(SYMBOLIC)
    assert main(["reduce", str(path), "--values", '{"n": "many"}']) == 1
    assert capsys.readouterr().err == (
        "[TL1002] --values has 'many' for n, no number\nhint: write {\"n\": 100}\n"
    )
    assert main(["reduce", str(path), "--values", '{"m": 3}']) == 1
    assert capsys.readouterr().err.endswith("hint: it has f, n\n")


def test_a_place_that_cannot_be_written_is_told(file, tmp_path, capsys) -> None:
    (tmp_path / "taken").write_text("")
    place = tmp_path / "taken" / "report"
    assert main(command(file, "raises", "--budget", "0.1s", "--out", str(place))) == 1
    told = capsys.readouterr().err
    assert f"[TL5001] the report cannot be written to {place}: Not a directory\n" in told
    assert "Traceback" not in told


@pytest.mark.usefixtures("file")
def test_a_process_that_does_not_start_is_no_failure_of_the_kernel(tmp_path, monkeypatch) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "numpy.py").write_text("raise ImportError('no numpy here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    kernel = ir.kernel([ir.tensor("A", (4,))], 1, lambda bx: [])
    with closing(Trials(Plan("cpu"))) as tries, pytest.raises(ToolchainError) as caught:
        tries(kernel)
    assert str(caught.value) == (
        "[TL5001] the process that tries kernels does not start: ImportError: no numpy here\n"
        "hint: look for what is wrong with the installation: tile doctor"
    )


ENDLESS = """
import os, sys
from contextlib import closing
from support.faulty_backend import install
from tile_api.reducing.trial import RUN, Plan
from tile_api.reducing.workers import Trials
from tile_core.testing import build_ir as ir

a = ir.tensor("A", (4,))
hangs = ir.kernel([a], 1, lambda bx: ir.when(bx < 1, ir.fill(a, 1)))
well = ir.kernel([a], 1, lambda bx: ir.fill(a, 1))
with closing(Trials(Plan("faulty:hangs", until=RUN), timeout=1000)) as tries:
    tries(well)
    print(tries._process.pid, flush=True)
    tries(hangs)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot be asked for that")
@pytest.mark.usefixtures("file")
def test_kernels_that_hang_end_with_who_tries_them() -> None:
    tests = str(Path(__file__).parents[2])
    paths = os.pathsep.join((tests, os.environ["PYTHONPATH"]))
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    server = int(process.stdout.readline())
    (child,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    time.sleep(1)  # it has begun to hang
    process.kill()
    process.communicate()
    left = time.monotonic() + 20
    while alive := [n for n in (server, int(child)) if is_running(n)]:
        assert time.monotonic() < left, alive
        time.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
