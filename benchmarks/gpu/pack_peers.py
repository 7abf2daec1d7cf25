"""Pack TileLang for a machine without a network.

    python benchmarks/gpu/pack_peers.py peers.tar.xz           here, where there is a network
    tar -xf peers.tar.xz -C SITE; export PYTHONPATH=SITE       there

Wheels come from pip; sources that only people and other vendors' GPUs need are left out. torch,
NumPy and what comes with them are expected there, and nvcc, which TileLang runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEELS = (
    "tilelang==0.1.15",
    "apache-tvm-ffi>=0.1.11,<0.1.13",
    "z3-solver>=4.13.0,<4.15.5",
    "torch-c-dlpack-ext",
)
"""What TileLang requires beyond what comes with torch: its METADATA says so."""

PLATFORMS = ("2_28", "2_27", "2_24", "2_17")
LEFT_OUT = (
    "/src/ascend/", "/src/rocm/", "/src/metal/", "/src/transform/", "/3rdparty/tvm/src/",
    "/3rdparty/composable_kernel/", "/tests/", ".data/", "/RECORD", "/z3/include/",
)  # fmt: skip
"""Sources of other vendors' rooms, and what only people read; all Python stays."""


def download(folder: Path, python: str) -> None:
    """Fetch the wheels for x86-64 Linux."""
    platforms = [word for p in PLATFORMS for word in ("--platform", f"manylinux_{p}_x86_64")]
    platforms += ["--platform", "manylinux2014_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", python, "--implementation", "cp"]
    subprocess.run([*command, *platforms, "-d", str(folder), *WHEELS], check=True)


def unpack(wheels: Path, site: Path) -> None:
    """Unpack wheels side by side, without what is left out."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not any(part in f"/{name}" for part in LEFT_OUT):
                    archive.extract(name, site)


def share_libraries(site: Path) -> None:
    """Replace libraries that occur under two names by links: wheels cannot hold any."""
    for library in site.rglob("*.so"):
        for twin in library.parent.glob(f"{library.name}.*"):
            if twin.read_bytes() == library.read_bytes():
                twin.unlink()
                twin.symlink_to(library.name)


def pack(site: Path, out: Path) -> None:
    """Write the archive."""
    with tarfile.open(out, "w:xz", preset=6) as archive:
        for entry in sorted(site.iterdir()):
            archive.add(entry, entry.name)


def main() -> None:
    """Download, leave out, pack, and tell the size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--python", default="3.12", help="the version there")
    parser.add_argument("--wheels", type=Path, help="a folder that has them already")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        wheels, site = given.wheels or Path(place, "wheels"), Path(place, "site")
        if given.wheels is None:
            download(wheels, given.python)
        unpack(wheels, site)
        share_libraries(site)
        pack(site, given.out)
    print(f"{given.out}: {given.out.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
