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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_runtime.errors import InvalidBundle, TileRuntimeError
from tile_runtime.manifest import SCHEMA, Manifest
from tile_runtime.manifest_json import (
    Reader,
    check_schema,
    load_json,
    parse_manifest,
    text_of_manifest,
)

if TYPE_CHECKING:
    import zipfile

INDEX = "bundle.json"
_TIME = (1980, 1, 1, 0, 0, 0)  # the first that archives can say: no bundle tells when it was made
_FAMILIES = frozenset({"cpu", "cuda", "hip"})


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel compiled for one machine.

    Parameters
    ----------
    manifest
        What the host must know to run it.
    code
        The machine code.
    """

    manifest: Manifest
    code: bytes = field(repr=False)

    @property
    def target(self) -> str:
        """What it was compiled for."""
        return self.manifest.machine.target


@dataclass(frozen=True, slots=True)
class Bundle:
    """A kernel and its variants.

    Parameters
    ----------
    kernel
        Its name.
    variants
        One for each machine, as they were saved.
    """

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
            rows.append({"target": variant.target, "code_sha256": _digest(variant.code)})
        index = {"schema": SCHEMA, "kernel": variants[0].manifest.kernel, "variants": rows}
        _add(archive, INDEX, (json.dumps(index, indent=1, sort_keys=True) + "\n").encode())
    return memory.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    import zipfile

    entry = zipfile.ZipInfo(name, _TIME)
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

    data = Path(path).read_bytes()
    where = f"{os.fspath(path)}"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(archive, where)
    except TileRuntimeError:
        raise
    except Exception as error:  # the file is in memory: whatever goes wrong is what it says
        told = str(error).strip("'\"") or type(error).__name__
        raise InvalidBundle(
            f"{where} is no bundle of kernels, or it is damaged: {told}",
            hint="save the kernel again: kernel.save(path)",
        ) from None


def _read(archive: zipfile.ZipFile, where: str) -> Bundle:
    index: Any = load_json(archive.read(INDEX), f"{where}: {INDEX}")
    check_schema(index, where)
    reader = Reader(index, f"{where}: {INDEX}")
    kernel = reader.text("kernel")
    rows = reader.records("variants", lambda row: (row.text("target"), row.text("code_sha256")))
    variants = []
    for number, (target, digest) in enumerate(rows):
        name = f"{number}/manifest.json"
        manifest = parse_manifest(archive.read(name), f"{where}: {name}")
        code = archive.read(f"{number}/code")
        if _digest(code) != digest:
            raise InvalidBundle(f"{where}: the code for {target} is not what was saved")
        if manifest.machine.target != target or manifest.machine.family not in _FAMILIES:
            raise InvalidBundle(f"{where}: {name} is for {manifest.machine.target}, not {target}")
        variants.append(Variant(manifest, code))
    if not variants:
        raise InvalidBundle(f"{where} holds no variant")
    return Bundle(kernel, tuple(variants))
