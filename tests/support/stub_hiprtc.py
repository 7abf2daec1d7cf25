"""A run-time compiler that answers as ROCm's does, and misbehaves where it is asked to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def build_stub(folder: Path) -> Path:
    """Return a folder with hiprtc 6.2 and the Code Object Manager: one stub under two names.

    Its own name is another, or whoever looks into this process later would find an hiprtc.
    """
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    found = folder / "lib"
    found.mkdir()
    built = found / "stub.so"
    source = Path(__file__).parent / "stub_hiprtc.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", built, source], check=True)
    (found / "libhiprtc.so").symlink_to(built.name)
    (found / "libamd_comgr.so.2").symlink_to(built.name)
    return found
