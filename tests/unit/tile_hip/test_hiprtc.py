"""The run-time compiler of ROCm, against a library that answers as it does."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from support.stub_hiprtc import build_stub
from support.toolchain import amd_compiler_for
from tile_core.errors import ToolchainError
from tile_hip import compilers, hiprtc_library
from tile_hip.assembly import kernels_of
from tile_hip.code_object import functions_in
from tile_hip.compilers import wanted_compiler
from tile_hip.hiprtc import Hiprtc, load
from tile_hip.hiprtc_library import Library, libraries

KERNEL = 'extern "C" __attribute__((global)) void kern(float* a) { a[0] = 1.0f; }'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_stub(tmp_path_factory.mktemp("rocm"))


@pytest.fixture
def hiprtc(folder) -> Hiprtc:
    return load(Library(folder / "libhiprtc.so", folder / "libamd_comgr.so.2", "6.2"))


def test_what_it_is(hiprtc):
    assert hiprtc.name == "hiprtc 6.2"
    assert [hiprtc.supports(arch) for arch in ("gfx90a", "gfx942", "gfx950")] == [True, True, False]


def test_code_and_instructions_read_back(hiprtc, tmp_path):
    code = amd_compiler_for("gfx942").build(KERNEL, "gfx942", ()).code
    (tmp_path / "code").write_bytes(code)
    text = f"{KERNEL} // code {tmp_path}/code"
    output = hiprtc.build(text, "gfx942", ("-DX=1", "--use_fast_math"))
    assert output.is_accepted
    assert output.code == code
    ((name, (_, instructions)),) = functions_in(code).items()
    words = struct.unpack(f"<{len(instructions) // 4}I", instructions)
    assert [int(each.operands) for each in kernels_of(output.assembly)[name]] == list(words)
    _, options, headers = (line.split() for line in output.log.splitlines())
    assert options[0] == "--offload-arch=gfx942"
    assert options[-3:] == ["-DX=1", "-fapprox-func", "-freciprocal-math"]
    assert {"tile.h", "tile_hip.h", "tile_hip/types.h"} <= set(headers)


def test_a_text_that_is_refused(hiprtc):
    output = hiprtc.build("refuse", "gfx942", ())
    assert not output.is_accepted
    assert output.log == "kernel.hip:1:1: error: refused\n"


def test_a_failure_without_a_log(hiprtc):
    with pytest.raises(ToolchainError) as caught:
        hiprtc.build("fail", "gfx942", ())
    assert str(caught.value) == "[TL5001] hiprtc 6.2 failed: HIPRTC_ERROR_INTERNAL"
    log, _ = hiprtc.library.compile("fine", "kernel.hip", (), {}, (), name="it")
    assert log.split()[1] == "1"  # programs that there are


def test_an_architecture_that_disassembly_does_not_know(hiprtc):
    with pytest.raises(ToolchainError, match="Code Object Manager failed: INVALID_ARGUMENT"):
        hiprtc.comgr.disassemble({"kern": (0, b"\0\0\0\0")}, "gfx803")


def test_a_library_that_cannot_be_loaded(tmp_path):
    broken = tmp_path / "libhiprtc.so"
    broken.write_bytes(b"nothing")
    with pytest.raises(ToolchainError, match=r"libhiprtc\.so cannot be loaded: "):
        load(Library(broken, broken, ""))


def test_where_it_is_looked_for(monkeypatch, tmp_path):
    def install(*names: str) -> Path:
        root = tmp_path / names[0]
        (root / "lib").mkdir(parents=True)
        for name in names[1:]:
            (root / "lib" / name).write_bytes(b"")
        return root

    new = install("new", "libhiprtc.so.7.0.1", "libamdhip64.so.7.0.1", "libamd_comgr.so.3")
    old = install("old", "libamdhip64.so.5.2.21153", "libamd_comgr.so.2", "libamd_comgr.so.2.4.0")
    bare = install("bare", "libhiprtc.so.6")
    monkeypatch.setattr(hiprtc_library, "_SYSTEM", (str(bare / "lib"),))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("ROCM_PATH", str(new))
    monkeypatch.setenv("HIP_PATH", str(new))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(old / "lib"))
    found = [one for one in libraries() if str(one.hiprtc).startswith(str(tmp_path))]
    assert [one.hiprtc.name for one in found] == ["libhiprtc.so.7.0.1", "libamdhip64.so.5.2.21153"]
    assert [one.comgr.name for one in found] == ["libamd_comgr.so.3", "libamd_comgr.so.2"]
    assert [(one.version, one.is_recent) for one in found] == [("7.0", True), ("5.2", False)]


def test_libraries_of_the_process_come_first(monkeypatch, tmp_path):
    (tmp_path / "libhiprtc.so").write_bytes(b"")
    (tmp_path / "libamd_comgr.so").write_bytes(b"")
    maps = tmp_path / "maps"
    maps.write_text(f"7f00-7f01 r-xp 00000000 08:01 42                 {tmp_path}/libhiprtc.so\n")
    monkeypatch.setattr(hiprtc_library, "_MAPPED", maps)
    first = next(iter(libraries()))
    assert first == Library(tmp_path / "libhiprtc.so", tmp_path / "libamd_comgr.so", "")
    assert first.is_recent


@pytest.mark.parametrize(("version", "wish"), [("6.2", ""), ("6.2", "hiprtc"), ("5.2", "hiprtc")])
def test_it_is_chosen(hiprtc, folder, monkeypatch, version, wish):
    library = Library(folder / "libhiprtc.so", folder / "libamd_comgr.so.2", version)
    monkeypatch.setattr(compilers, "libraries", lambda: (library,))
    monkeypatch.delenv("TILE_HIP_COMPILER", raising=False)
    assert wanted_compiler("gfx942", wish).name == f"hiprtc {version}"
    assert isinstance(wanted_compiler("gfx942"), Hiprtc) == library.is_recent
