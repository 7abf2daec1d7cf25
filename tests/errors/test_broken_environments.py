"""Ten kinds of broken environment: each gives one message, which the page for users shows."""

from __future__ import annotations

import ctypes
import errno
import socket
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
from support.stubs import compiled_stub
from tile_api.autotuner.probe import add_one
from tile_api.cli import doctor, main
from tile_core.errors import LaunchError, MissingFeature, MissingPackage, TileError
from tile_core.needed_packages import needed, several
from tile_core.plugins.host import PluginHost
from tile_launch import cuda_driver

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "mend-an-installation.md"


def shown(heading: str) -> list[str]:
    """Return the messages that the page shows under a heading."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [block.partition("\n```")[0] for block in section.split("```text\n")[1:]]


def said(error: BaseException) -> str:
    """Return a message without the place in a program."""
    assert isinstance(error, TileError)
    error.span = None
    return str(error)


def numbers(target: str) -> None:
    """Compile a kernel anew, and run it."""
    kernel, result = tile.compile(add_one.kernel, target=target), np.zeros(256, np.float32)
    kernel(np.arange(256, dtype=np.float32), result)
    assert result[3] == 4


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(TileError) as caught:
        numbers("cuda:sm_80@sim")
    assert [said(caught.value)] == shown("No compiler")


def test_an_old_numpy(monkeypatch):
    monkeypatch.setattr(np, "__version__", "1.24.4")
    with pytest.raises(MissingPackage) as caught:
        needed("numpy", "a function of arrays")
    assert [said(caught.value)] == shown("An old NumPy")


def test_a_home_that_cannot_be_written(monkeypatch, tmp_path):
    home = tmp_path / "home"
    home.write_text("a file, which root cannot write into either")
    for name in ("TILE_CACHE_DIR", "TILELANG_CACHE_DIR", "XDG_CACHE_HOME", "TILE_CACHE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        numbers("cpu")
    with pytest.raises(TileError) as refused:
        numbers("cuda:sm_80@sim")
    told = [str(caught[0].message), said(refused.value)]
    assert [text.replace(str(home), "/home/you") for text in told] == shown(
        "A home that cannot be written"
    )
    assert [*doctor._folders()] == [
        f"nothing can be kept in {home}/.cache/tile: TILE_CACHE_DIR names another folder\n"
    ]


def test_no_network(monkeypatch):
    def refused(*args, **kwargs):
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    numbers("cpu")
    numbers("cuda:sm_80@sim")
    assert shown("No network") == []


def test_the_wrong_architecture():
    with pytest.raises(TileError) as caught:
        numbers("cuda:sm_87a")
    assert [said(caught.value)] == shown("The wrong architecture")


def test_two_versions_of_torch(monkeypatch, tmp_path):
    for version in ("2.5.0", "2.9.0"):
        folder = tmp_path / f"torch-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: torch\nVersion: {version}\n\n")
    (tmp_path / "torch.py").write_text("raise OSError('libtorch.so: undefined symbol')\n")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(MissingPackage) as caught:
        needed("torch", "an operator of torch")
    told = said(caught.value).replace(str(tmp_path), "/home/you/site-packages")
    head, note, hint = told.splitlines()
    assert sorted(note.removeprefix("note: installed are ").split(" and ")) == [
        "torch 2.5.0 in /home/you/site-packages",
        "torch 2.9.0 in /home/you/site-packages",
    ]
    (page,) = shown("Two versions of torch")
    assert [head, hint] == page.splitlines()[::2]
    assert [*doctor._others()] == [f"{several('torch')}: uninstall all but one\n"]


def test_somebody_elses_package(monkeypatch, tmp_path):
    folder = tmp_path / "tile_cuda-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: tile-cuda\nVersion: 1.0\nAuthor: A Stranger\n\n")
    (tmp_path / "tile_cuda").mkdir()
    (tmp_path / "tile_cuda" / "__init__.py").write_text("")
    monkeypatch.delitem(sys.modules, "tile_cuda", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TileError) as caught:
        PluginHost().resolve("cuda:sm_80")
    sys.modules.pop("tile_cuda", None)
    told = said(caught.value).replace(str(tmp_path), "/home/you/site-packages")
    assert [told] == shown("Somebody else's package")


def test_an_extra_that_is_missing(monkeypatch):
    host = PluginHost()
    monkeypatch.setattr(host, "backends", lambda: {"cpu": None, "interpret": None})
    extra = host._nobody_serves(doctor.parse_target_spec("cuda:sm_80"))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingPackage) as caught:
        tile.compile(add_one.kernel, target="cpu").as_torch_op("mine::add_one")
    assert [said(extra), said(caught.value)] == shown("An extra that is missing")
    monkeypatch.setattr(host, "backends", lambda: {})
    assert host._nobody_serves(doctor.parse_target_spec("cpu")).hint == "pip install tile-cpu"


def test_an_old_driver(monkeypatch, tmp_path_factory):
    path = compiled_stub("tile_cuda", tmp_path_factory.getbasetemp())
    library = ctypes.CDLL(str(path))
    driver = cuda_driver.open_driver(str(path))
    words = {200: "the device kernel image is invalid"}
    monkeypatch.setattr(
        cuda_driver.CudaDriver, "check", lambda self, code, what: _refused(code, what, words)
    )
    try:
        library.stub_old(0, 200)
        with driver.inside(driver.context(0), 0), pytest.raises(LaunchError) as unreadable:
            driver.load(b"a cubin")
        library.stub_old(803, 0)
        words[803] = "system has unsupported display driver / cuda driver combination"
        with pytest.raises(MissingFeature, match=r"combination \(error 803\)"):
            cuda_driver.open_driver(str(path))
    finally:
        library.stub_old(0, 0)

    class Older:
        """The functions of a driver of before `cuLaunchKernelEx`."""

        def __getattr__(self, name: str) -> object:
            if name == "cuLaunchKernelEx":
                raise AttributeError(name)
            return getattr(library, name)

    monkeypatch.setattr(cuda_driver, "cuda_library", lambda path: Older())
    with pytest.raises(MissingFeature) as older:
        cuda_driver.open_driver()
    assert [said(unreadable.value), said(older.value)] == shown("An old driver")


def _refused(code: int, what: str, words: dict[int, str]) -> None:
    if code:
        raise LaunchError(f"the CUDA driver refused {what}: {words[code]} (error {code})")


def test_a_full_disk(monkeypatch, tmp_path, capsys):
    compiler = tmp_path / "g++"
    full = "error writing to /tmp/cc1.s: No space left on device"
    compiler.write_text(f"#!/bin/sh\necho '{full}' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(TileError) as caught:
        numbers("cuda:sm_80@sim")
    assert [said(caught.value)] == shown("A full disk")

    def nothing_more(args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(doctor, "run", nothing_more)
    assert main(["doctor", "cpu"]) == 1
    assert capsys.readouterr().err == "tile doctor: [Errno 28] No space left on device\n"
