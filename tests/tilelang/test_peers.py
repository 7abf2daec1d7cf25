"""The command that runs programs of others: what it tells of each, and that it goes on."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from support.peers import left_out

HERE = Path(__file__).parent

PROGRAMS = {
    "program.py": "import tilelang\nprint(tilelang.__version__)\n",
    "below/wrong.py": "import helper_that_is_not_there\n",
    "below/test_absent.py": "import neighbour_that_is_not_there\ndef test_passes(): pass\n",
    "below/test_several.py": """\
import os
import pytest
import tilelang.testing

def test_passes(): pass
def test_dies(): os._exit(3)
def test_hangs():
    while True: pass
@pytest.mark.parametrize("size", [1, 2])
def test_sizes(size): assert size == 1, "sizes differ"
def test_another(): assert False
def test_skips(): pytest.skip("not today")
""",
}
LIST = """\
# a comment
cpu,hip:* | below/test_several.py::test_another | internals | asserts on a text
hip:* | program.py | instruction | has none
"""


@pytest.fixture
def peers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("peers_command", HERE / "peers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in PROGRAMS.items():
        path = tmp_path / "programs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "list.txt").write_text(LIST)
    return tmp_path / "programs"


def test_passed_left_out_and_failed(
    peers: ModuleType, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    arguments = [str(folder), "--log", str(log), "--left-out", str(tmp_path / "list.txt")]
    assert peers.main([*arguments, "--timeout", "4"]) == 1
    lines = capfd.readouterr().out.splitlines()
    file = "below/test_several.py"
    assert lines == [
        f"left out: {file}::test_another: internals: asserts on a text",
        "failed: below/test_absent.py: "
        "ModuleNotFoundError: No module named 'neighbour_that_is_not_there'",
        f"failed: {file}::test_sizes[2]: AssertionError: sizes differ",
        "failed: below/wrong.py: ModuleNotFoundError: No module named 'helper_that_is_not_there'",
        f"timeout: {file}::test_hangs: after 4 s",
        f"died: {file}::test_dies: status 3",
        "1 died, 3 failed, 1 left out, 3 passed, 1 skipped, 1 timeout",
    ]
    before = log.read_text()
    assert peers.main([*arguments, "--only", "program.py"]) == 1  # the log has failures still
    assert log.read_text() == before
    (folder / "below/wrong.py").write_text("print(1)\n")
    peers.main([*arguments, "--only", "*wrong.py", "--again"])
    again = [json.loads(line) for line in log.read_text()[len(before) :].splitlines()]
    assert [(one["file"], one["outcome"]) for one in again] == [("below/wrong.py", "passed")]


def test_the_list_that_is_kept_is_well_formed() -> None:
    rows = left_out.read(HERE / "peers_left_out.txt")
    assert all(row.reason and row.file for row in rows)
    assert left_out.reasons(left_out.parse(LIST), "hip:gfx942@sim", "program.py") == {
        "": "instruction: has none"
    }
    with pytest.raises(ValueError, match="there is no kind 'because'"):
        left_out.parse("* | a.py | because | of this")
