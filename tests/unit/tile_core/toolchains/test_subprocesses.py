"""Compilers that are programs: those that crash, hang, print garbage, or are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_core.errors import ToolchainCrash, ToolchainError
from tile_core.toolchains import subprocesses
from tile_core.toolchains.subprocesses import run_program


def program(folder: Path, script: str) -> tuple[str]:
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return (str(path),)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -SEGV $$", "cc crashed (SIGSEGV)"),
        ("echo why >&2; kill -ABRT $$", "cc crashed (SIGABRT):\nwhy"),
        (
            "echo \"nvcc error   : 'ptxas' died due to signal 11\" >&2; exit 139",
            "cc crashed (status 139):\nnvcc error   : 'ptxas' died due to signal 11",
        ),
        (
            "echo 'x.cpp:1: internal compiler error: in f' >&2; exit 1",
            "cc crashed (status 1):\nx.cpp:1: internal compiler error: in f",
        ),
        (
            "echo 'clang: error: unable to execute command: Segmentation fault' >&2; exit 254",
            "cc crashed (status 254):\nclang: error: unable to execute command: Segmentation fault",
        ),
    ],
)
def test_a_crash(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(ToolchainCrash) as caught:
        run_program(program(tmp_path, script))
    assert caught.value.message == message


def test_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocesses, "TIME_LIMIT", 0.2)
    with pytest.raises(ToolchainCrash, match=r"cc did not come to an end within 0\.2 s"):
        run_program(program(tmp_path, "exec sleep 60"))


def test_garbage(tmp_path: Path) -> None:
    done = run_program(program(tmp_path, r"printf '\377\376 x'; exit 1"))
    assert (done.returncode, done.stdout) == (1, "\ufffd\ufffd x")


def test_no_such_program() -> None:
    with pytest.raises(ToolchainError) as caught:
        run_program(("/no/such/cc",), hint="install one")
    assert str(caught.value) == (
        "[TL5001] /no/such/cc cannot be run: No such file or directory\nhint: install one"
    )
