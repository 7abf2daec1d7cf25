"""Bundles: one kernel, compiled for several machines, in one file.

A bundle is a zip archive:

    bundle.json            its form, the kernel, and a record of each variant
    0/manifest.json        what the host must know to run the first variant
    0/code                 its machine code: a cubin, a code object, or a shared library

The same kernel gives the same bytes. Nothing in a bundle is run as Python.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_launch.errors import InvalidBundle, TileError
from tile_launch.manifest import SCHEMA, Manifest
from tile_launch.manifest_json import (
    Reader,
    check_schema,
    load_json,
    parse_manifest,
    text_of_manifest,
)

if TYPE_CHECKING:
    import zipfile

INDEX = "bundle.json"
MOST_BYTES = 1 << 30
"""What a bundle may have, as a file and unpacked."""

MOST_TEXT = 1 << 20
"""What a manifest, and the index, may have."""

_STORED, _DEFLATED = 0, 8  # as archives number them
_FAMILIES = frozenset({"cpu", "cuda", "hip"})


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel compiled for one machine: what the host must know, and the machine code."""

    manifest: Manifest
    code: bytes = field(repr=False)

    @property
    def target(self) -> str:
        """What it was compiled for."""
        return self.manifest.machine.target


@dataclass(frozen=True, slots=True)
class Bundle:
    """A kernel's name and its variants, one for each machine, as they were saved."""

    kernel: str
    variants: tuple[Variant, ...]


def write_bundle(path: str | os.PathLike[str], variants: Sequence[Variant]) -> None:
    """Write a bundle; whoever reads `path` meanwhile finds the old file or the new one.

    Raises
    ------
    InvalidBundle
        If there are no variants, or two for one machine.
    OSError
        If the file cannot be written.
    """
    if not variants:
        raise InvalidBundle("a bundle holds at least one variant")
    targets = [variant.target for variant in variants]
    if len({*targets}) < len(targets):
        raise InvalidBundle(f"two variants of a bundle are for one machine: {', '.join(targets)}")
    place = Path(path)
    aside = place.with_name(f".{place.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with open(aside, "xb") as file:
            file.write(_archive(variants))
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, place)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if isinstance(error, OSError):  # speak of the user's file, not of the one beside it
            raise OSError(error.errno, error.strerror, str(place)) from error
        raise


def _archive(variants: Sequence[Variant]) -> bytes:
    import zipfile  # takes a while, and kernels out of a cache need none

    memory = io.BytesIO()
    rows = []
    with zipfile.ZipFile(memory, "w") as archive:
        for number, variant in enumerate(variants):
            code = f"{number}/code"
            text = text_of_manifest(variant.manifest)
            _add(archive, f"{number}/manifest.json", text.encode())
            _add(archive, code, variant.code)
            digests = {"code_sha256": variant.code, "manifest_sha256": text.encode()}
            row = {name: _digest(data) for name, data in digests.items()}
            rows.append({"target": variant.target, **row})
        index = {"schema": SCHEMA, "kernel": variants[0].manifest.kernel, "variants": rows}
        _add(archive, INDEX, (json.dumps(index, indent=1, sort_keys=True) + "\n").encode())
    return memory.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    import zipfile

    entry = zipfile.ZipInfo(name)  # of 1980: no bundle tells when it was made
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Return what a bundle holds; everything in it is checked.

    Raises
    ------
    InvalidBundle
        If the file is no bundle, or it is damaged.
    NewerBundle
        If it was written in a later form.
    OSError
        If the file cannot be read.
    """
    import zipfile

    where = f"{os.fspath(path)}"
    data = _bytes_of(Path(path), where)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(archive, where)
    except TileError:
        raise
    except Exception as error:  # the file is in memory: whatever goes wrong is what it says
        told = str(error).strip("'\"") or type(error).__name__
        raise InvalidBundle(
            f"{where} is no bundle of kernels, or it is damaged: {told}",
            hint="save the kernel again: kernel.save(path)",
        ) from None


def _bytes_of(path: Path, where: str) -> bytes:
    """Return what is in a file; what has no end, such as a device or a pipe, is not read."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_BYTES:
            told = f"has {facts.st_size} bytes" if facts.st_size else "is no file on a disk"
            raise InvalidBundle(f"{where} is no bundle of kernels: it {told}")
        return file.read(facts.st_size)


def _member(archive: zipfile.ZipFile, name: str, most: int, where: str) -> bytes:
    """Return a part of a bundle; nothing is unpacked that says that it is larger than `most`."""
    entry = archive.getinfo(name)
    if entry.file_size > most or entry.compress_type not in (_STORED, _DEFLATED):
        raise InvalidBundle(
            f"{where}: {name} has {entry.file_size} bytes, of at most {most} that are read"
            if entry.file_size > most
            else f"{where}: {name} is packed in another way than bundles are"
        )
    with archive.open(entry) as file:
        return file.read(entry.file_size)  # without a size it unpacks all, whatever the entry says


def _read(archive: zipfile.ZipFile, where: str) -> Bundle:
    index: Any = load_json(_member(archive, INDEX, MOST_TEXT, where), f"{where}: {INDEX}")
    check_schema(index, where)
    reader = Reader(index, f"{where}: {INDEX}")
    kernel = reader.text("kernel")
    rows = reader.records("variants", _row)
    variants: list[Variant] = []
    left = MOST_BYTES
    for number, (target, code_digest, manifest_digest) in enumerate(rows):
        name = f"{number}/manifest.json"
        text = _member(archive, name, min(left, MOST_TEXT), where)
        manifest = parse_manifest(text, f"{where}: {name}")
        code = _member(archive, f"{number}/code", left - len(text), where)
        left -= len(text) + len(code)
        for what, data, digest in (
            ("code", code, code_digest),
            ("manifest", text, manifest_digest),
        ):
            if _digest(data) != digest:
                raise InvalidBundle(f"{where}: the {what} for {target} is not what was saved")
        if manifest.machine.target != target or manifest.machine.family not in _FAMILIES:
            raise InvalidBundle(f"{where}: {name} is for {manifest.machine.target}, not {target}")
        variants.append(Variant(manifest, code))
    if not variants:
        raise InvalidBundle(f"{where} holds no variant")
    return Bundle(kernel, tuple(variants))


def _row(row: Reader) -> tuple[str, str, str]:
    return row.text("target"), row.text("code_sha256"), row.text("manifest_sha256")
