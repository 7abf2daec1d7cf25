"""Bundles as files: the same bytes, replaced at once, and never half understood."""

from __future__ import annotations

import os
import random
import zipfile
from pathlib import Path

import pytest

from support.bundles import bundle_of_numbers, numbers
from tile_launch.bundle import Variant, read_bundle, write_bundle
from tile_launch.describe_bundle import describe
from tile_launch.errors import InvalidBundle, TileError

TARGETS = ("cuda:sm_80", "hip:gfx942")


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    variants = [Variant(numbers(t), t.encode() * 100) for t in TARGETS]
    write_bundle(path, variants)
    found = read_bundle(path)
    assert (found.kernel, list(found.variants)) == ("numbers", variants)
    assert [v.code for v in found.variants] == [v.code for v in variants]


def test_the_same_kernel_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        bundle_of_numbers(tmp_path / name, *TARGETS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_is_replaced_at_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path)
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            bundle_of_numbers(path, *TARGETS)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.tile"]
    bundle_of_numbers(path, *TARGETS)
    assert len(read_bundle(path).variants) == 2


def test_files_have_the_rights_that_others_get(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        bundle_of_numbers(tmp_path / "x.tile")
    finally:
        os.umask(before)
    assert (tmp_path / "x.tile").stat().st_mode & 0o777 == 0o640


def test_a_bundle_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path, *TARGETS)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidBundle):
            read_bundle(path)


def test_a_bundle_with_a_wrong_byte(tmp_path: Path) -> None:
    """It is refused, or the byte said nothing: then everything is as it was."""
    path = tmp_path / "x.tile"
    bundle_of_numbers(path, *TARGETS)
    whole, right, draw = path.read_bytes(), read_bundle(path), random.Random(0)
    refused = 0
    for _ in range(400):
        at, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        try:
            found = read_bundle(path)
        except TileError:
            refused += 1
        else:
            assert found == right
            assert [v.code for v in found.variants] == [v.code for v in right.variants]
    assert refused > 300


def test_variants_that_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InvalidBundle, match="for one machine: cuda:sm_80, cuda:sm_80"):
        bundle_of_numbers(tmp_path / "x.tile", "cuda:sm_80", "cuda:sm_80")
    with pytest.raises(InvalidBundle, match="at least one variant"):
        write_bundle(tmp_path / "x.tile", [])
    assert os.listdir(tmp_path) == []


def test_an_index_that_lies(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["bundle.json"] = parts["bundle.json"].replace(b"cuda:sm_80", b"hip:gfx942")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(InvalidBundle, match=r"is for cuda:sm_80, not hip:gfx942"):
        read_bundle(path)


def test_what_is_inside_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path, *TARGETS)
    monkeypatch.setattr("tile_launch.describe_bundle.reason_against", lambda variant: "no GPU")
    assert describe(path) == (
        "numbers(A: float32[m, 8], scale: float32) -> B: float32[m, 8]\n"
        "\n"
        "cuda:sm_80: 9 bytes of machine code; does not run here: no GPU\n"
        "  launch numbers: grid m x 1 x 1, 32 x 1 x 1 threads, 1024 bytes of shared memory\n"
        "  compiler: by hand\n"
        "\n"
        "hip:gfx942: 9 bytes of machine code; does not run here: no GPU\n"
        "  launch numbers: grid m x 1 x 1, 32 x 1 x 1 threads, 1024 bytes of shared memory\n"
        "  compiler: by hand\n"
    )
