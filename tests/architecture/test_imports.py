"""The import contracts hold, and each of them would notice being broken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "from importlinter.cli import lint_imports_command as main; main(['--no-cache'])"
PLANTED = {
    "packages point one way": ("tile_core/driver.py", "import tile_api"),
    "layers of tile_core": ("tile_core/errors.py", "import tile_core.plugins.host"),
    "layers of tile_api": ("tile_api/frozen_values.py", "import tile_api.cli"),
    "layers of tile_cpu": ("tile_cpu/machine.py", "import tile_cpu.lowering"),
    "layers of tile_cuda": ("tile_cuda/atoms.py", "import tile_cuda.rules"),
    "layers of tile_hip": ("tile_hip/atoms.py", "import tile_hip.rules"),
    "layers of tile_launch": ("tile_launch/manifest.py", "import tile_launch.kernel"),
    "layers of tile_sim": ("tile_sim/memory.py", "import tile_sim.plugin"),
    "layers of tile_nn": ("tile_nn/checks.py", "import tile_nn.kernels"),
    "no circles among siblings": ("tile_core/ir/node.py", "import tile_core.ir.stmt"),
    "the compiler and the language never name a backend": (
        "tile_api/planted.py",
        "import tile_cpu.plugin",
    ),
    "one door to TVM": ("tile_cpu/plugin.py", "def sneak():\n    import tvm"),
    "torch stays at the border": ("tile_core/planted.py", "import torch"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts against the packages that lie directly in `folder`."""
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Copy the packages and their contracts, so that a test may break them."""
    for source in (ROOT / "packages").glob("*/src/*"):
        if source.is_dir() and not source.name.startswith("."):  # such as a tool's cache
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tmp_path / source.name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contracts_hold(workspace: Path) -> None:
    result = lint(workspace)
    assert result.returncode == 0, result.stdout
    assert f"Contracts: {len(PLANTED)} kept, 0 broken" in result.stdout


def test_violations_are_noticed(workspace: Path) -> None:
    """Each contract tells its own, however many others are broken."""
    for file, line in PLANTED.values():
        with (workspace / file).open("a") as module:
            module.write(f"\n\n{line}\n")
    told = lint(workspace).stdout
    assert f"Contracts: 0 kept, {len(PLANTED)} broken" in told
    for contract, (file, line) in PLANTED.items():
        of_it = told.partition(f"\n{contract}\n{'-' * len(contract)}\n")[2]
        of_it = re.split(r"\n[^\n]+\n-+\n", of_it)[0]
        ends = file.removesuffix(".py").replace("/", "."), line.split()[-1]
        siblings = [f".{end.rpartition('.')[2]}" for end in ends]
        assert any(f" {' -> '.join(pair)} (" in of_it for pair in (ends, siblings)), contract


def test_a_new_module_must_be_given_a_room(workspace: Path) -> None:
    (workspace / "tile_core" / "attic.py").write_text('"""Things."""\n')
    result = lint(workspace)
    assert result.returncode != 0
    assert "attic" in result.stdout
