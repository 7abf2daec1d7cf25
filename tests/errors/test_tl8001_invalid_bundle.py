"""TL8001: a file is no bundle, or it is damaged."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from support.bundles import bundle_of_numbers
from tile_launch import load
from tile_launch.errors import InvalidBundle


def told(path: Path) -> str:
    with pytest.raises(InvalidBundle) as caught:
        load(path)
    return str(caught.value).replace(str(path), "x.tile")


def test_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    path.write_text("hello")
    assert told(path) == (
        "[TL8001] x.tile is no bundle of kernels, or it is damaged: File is not a zip file\n"
        "hint: save the kernel again: kernel.save(path)"
    )


def test_another_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert told(path) == (
        "[TL8001] x.tile is no bundle of kernels, or it is damaged: There is no item named "
        "'bundle.json' in the archive\n"
        "hint: save the kernel again: kernel.save(path)"
    )


def test_code_that_was_exchanged(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["0/code"] += b"more"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert told(path) == "[TL8001] x.tile: the code for cuda:sm_80 is not what was saved"


def test_what_makes_no_sense_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["0/manifest.json"])
    manifest["steps"][0]["grid"][0] = ["__import__", "os"]
    parts["0/manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert told(path) == (
        "[TL8001] x.tile: 0/manifest.json: steps[0]: grid: ['__import__', 'os'] is not an "
        "operation that is known"
    )


def test_a_manifest_that_was_edited(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["0/manifest.json"] = parts["0/manifest.json"].replace(b"1024", b"2048")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    assert told(path) == "[TL8001] x.tile: the manifest for cuda:sm_80 is not what was saved"


def test_a_part_that_unpacks_to_more_than_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bundle.json", " " * (8 << 20))
    assert told(path) == (
        "[TL8001] x.tile: bundle.json has 8388608 bytes, of at most 1048576 that are read"
    )


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.tile")
    assert told(tmp_path / "x.tile") == (
        "[TL8001] x.tile is no bundle of kernels: it is no file on a disk"
    )
