"""Which compiler translates a kernel, and what it says where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_core.errors import ToolchainError
from tile_hip import compilers
from tile_hip.clang import Clang, clang_at
from tile_hip.compiler import clang_flags
from tile_hip.compilers import clangs, hipccs, wanted_compiler


def program(path: Path, version: str, processors: str, linker: str = "ld.lld") -> Path:
    """Write a program that answers as a clang of `version`, and a linker beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo "clang version {version} (somewhere)";'
        f' echo "InstalledDir: {path.parent}";;\n'
        f'*) echo "Available CPUs:"; for cpu in {processors}; do echo "\t$cpu"; done;; esac\n'
    )
    path.chmod(0o755)
    if linker:
        (path.parent / linker).write_text("#!/bin/sh\n")
        (path.parent / linker).chmod(0o755)
    return path


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """An environment without any compiler."""
    for name in ("TILE_HIP_COMPILER", "ROCM_PATH", "HIP_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(compilers, "_rocm_roots", tuple)
    monkeypatch.setattr(compilers, "libraries", tuple)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


@pytest.fixture
def rocm(empty, monkeypatch, tmp_path):
    """ROCm with its hipcc and its clang."""
    root = tmp_path / "rocm"
    program(root / "bin" / "hipcc", "18.0.0", "gfx90a gfx942")
    program(root / "llvm" / "bin" / "clang", "20.0.0", "gfx90a gfx942 gfx950")
    monkeypatch.setattr(compilers, "_rocm_roots", lambda: (root,))
    return root


def test_the_first_that_knows_the_architecture(rocm, monkeypatch, tmp_path):
    path = program(tmp_path / "path" / "clang-19", "19.1.7", "gfx90a gfx942", "ld.lld-19")
    monkeypatch.setenv("PATH", str(path.parent))
    assert wanted_compiler("gfx942").name == "hipcc 18.0.0"
    assert wanted_compiler("gfx950").name == "clang 20.0.0"
    assert [found().name for found in hipccs()] == ["hipcc 18.0.0"]
    assert [found().name for found in clangs()] == ["clang 20.0.0", "clang 19.1.7"]


def test_wishes(rocm, monkeypatch, tmp_path):
    path = program(tmp_path / "path" / "clang-19", "19.1.7", "gfx90a gfx942")
    assert wanted_compiler("gfx942", "clang").name == "clang 20.0.0"
    assert wanted_compiler("gfx942", str(path)).name == "clang 19.1.7"
    assert wanted_compiler("gfx942", str(rocm / "bin" / "hipcc")).name == "hipcc 18.0.0"
    monkeypatch.setenv("TILE_HIP_COMPILER", "clang")
    assert wanted_compiler("gfx942").name == "clang 20.0.0"
    assert wanted_compiler("gfx942", "hipcc").name == "hipcc 18.0.0"


def test_the_newest_clang_in_the_path(empty, monkeypatch, tmp_path):
    old = program(tmp_path / "path" / "clang-17", "17.0.1", "gfx942")
    program(tmp_path / "path" / "clang-20", "20.1.0", "gfx942")
    program(tmp_path / "path" / "clang", "18.0.0", "gfx942")
    monkeypatch.setenv("PATH", str(old.parent))
    assert [found().version for found in clangs()] == ["20.1.0", "17.0.1", "18.0.0"]


def test_the_linker_of_the_same_version(empty, monkeypatch, tmp_path):
    first = program(tmp_path / "one" / "clang", "19.1.7", "gfx942", "ld.lld-19")
    other = program(tmp_path / "two" / "clang", "18.1.0", "gfx942", "")
    monkeypatch.setenv("PATH", str(first.parent))
    linkers = [wanted_compiler("gfx942", str(first)).linker]
    assert linkers == [(str(tmp_path / "one" / "ld.lld-19"),)]
    with pytest.raises(ToolchainError) as caught:
        wanted_compiler("gfx942", str(other))
    (note,) = caught.value.notes
    assert note.text == "clang 18.1.0 has no linker beside it: it needs ld.lld"


NOTHING = "pip install 'tile-hip[zig]', or apt install clang-19 lld-19, or install ROCm"
TOO_NEW = "pip install 'tile-hip[zig]', or install ROCm"


@pytest.mark.parametrize(
    ("arch", "wish", "told"),
    [
        (
            "gfx942",
            "",
            f"[TL5001] no compiler that is installed makes code for gfx942\nhint: {NOTHING}",
        ),
        (
            "gfx950",
            "",
            f"[TL5001] no compiler that is installed makes code for gfx950\nhint: {TOO_NEW}",
        ),
        *(
            (
                "gfx90a",
                wish,
                f"[TL5001] {wish} is requested, and there is none; gfx90a needs a compiler\n"
                f"hint: {NOTHING}",
            )
            for wish in ("hiprtc", "hipcc", "clang", "zig")
        ),
        (
            "gfx90a",
            "nvcc",
            "[TL5001] the compiler of HIP is to be 'nvcc', which is none\n"
            "hint: set TILE_HIP_COMPILER to hiprtc, hipcc, clang, zig, or to the path of a clang",
        ),
        (
            "gfx90a",
            "/no/such/clang",
            "[TL5001] /no/such/clang cannot be run: No such file or directory",
        ),
        (
            "gfx90a",
            "/bin/true",
            "[TL5001] /bin/true is no clang: it does not tell its version\n"
            "hint: point TILE_HIP_COMPILER to a clang from 17 on, or to a hipcc",
        ),
    ],
)
def test_no_compiler(empty, arch, wish, told):
    with pytest.raises(ToolchainError) as caught:
        wanted_compiler(arch, wish)
    assert str(caught.value) == told


def test_a_compiler_that_is_too_old(empty, tmp_path):
    path = program(tmp_path / "path" / "clang", "19.1.7", "gfx90a gfx942")
    with pytest.raises(ToolchainError) as caught:
        wanted_compiler("gfx950", str(path))
    assert str(caught.value) == (
        f"[TL5001] {path} is requested, which makes no code for gfx950\n"
        "note: clang 19.1.7 does not know gfx950\n"
        f"hint: {TOO_NEW}"
    )


def test_one_that_does_not_work_does_not_keep_the_others_away(rocm, monkeypatch):
    for name in ("bin/hipcc", "llvm/bin/clang"):
        (rocm / name).write_text("#!/no/such/interpreter\n")
    with pytest.raises(ToolchainError) as caught:
        wanted_compiler("gfx942")
    notes = [note.text for note in caught.value.notes]
    assert [text.split(": ")[0].rsplit("/", 1)[1] for text in notes] == [
        "hipcc cannot be run", "clang cannot be run",
    ]  # fmt: skip
    program(rocm / "llvm" / "bin" / "clang", "20.0.0", "gfx942")
    clang_at.cache_clear()
    assert wanted_compiler("gfx942").name == "clang 20.0.0"
    with pytest.raises(ToolchainError, match="hipcc cannot be run"):
        wanted_compiler("gfx942", str(rocm / "bin" / "hipcc"))


def test_zig_brings_its_linker(monkeypatch):
    pytest.importorskip("ziglang")
    found = wanted_compiler("gfx950", "zig")
    assert isinstance(found, Clang)
    assert found.kind == "zig"
    assert [found.command[1:], found.linker[1:]] == [("clang",), ("ld.lld",)]
    assert found.processors >= {"gfx90a", "gfx942", "gfx950"}


def test_flags_of_nvidia():
    flags = ["-O2", "-DX=1", "--expt-extended-lambda", "-lineinfo", "--ptxas-options=-v"]
    assert clang_flags(flags) == ("-O2", "-DX=1")
