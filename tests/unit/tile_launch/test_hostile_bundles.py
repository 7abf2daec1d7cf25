"""Bundles that somebody edited: an error with a code, never a crash, a hang or all of the memory.

Where the digests were made right again, a bundle is what it says, and its code is that of whoever
wrote it: nothing here runs code of a bundle.
"""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.bundles import numbers
from tile_launch.bundle import Variant, read_bundle, write_bundle
from tile_launch.describe_bundle import describe
from tile_launch.driver import LaunchMemory
from tile_launch.errors import InvalidBundle, NewerBundle, TileError
from tile_launch.expressions import DEEPEST
from tile_launch.kernel import LoadedKernel
from tile_launch.launcher import callable_of
from tile_launch.loading import loaded_again
from tile_launch.manifest import (
    Check,
    Let,
    MachineRequirements,
    Manifest,
    Tensor,
    TensorMap,
    Workspace,
)
from tile_launch.manifest_json import from_json, to_json

deep: Any = "m"
for _ in range(DEEPEST + 1):
    deep = ["+", deep, 1]

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 3, 1 << 31, 1 << 62, -(1 << 64), 10**4000, 1.5, float("inf"), "", "m", "A",
    "scale", "nobody", "\0", "x" * 10_000, [], [1], ["m"], {}, {"kind": "launch"}, deep,
    ["+", "m"], ["/", "m", 0], ["//", "m", ["-", "m", "m"]], ["<<", 1, 1 << 60], ["<<", 1, "m"],
    [">>", 1, -1], ["~", 1.5], ["int", ["-", 1e308, ["*", -1e308, 10]]], ["*", "scale", 2],
    ["select", ["<", "m", 4], 1, "B"], ["__import__", "os"], "int8", "float", "int999999999",
)  # fmt: skip


def rich() -> Manifest:
    """A manifest with a record of each kind, for the processor."""
    described = TensorMap(
        name="A_map", tensor="w", dtype="float32", offset=0, extents=(8, "m"), strides=(32,),
        box=(8, 16), element_strides=(1, 1), swizzle=32,
    )  # fmt: skip
    made = numbers("cpu:any", workspaces=(Workspace(name="w", dtype="float16", shape=("m",)),))
    (launch,) = made.launches
    arguments = (*launch.arguments, described)
    strided = Tensor(name="C", dtype="int8", shape=("n",), strides=("s",), is_used=False)
    return replace(
        made,
        machine=MachineRequirements(family="cpu", name="any", max_grid=(8, 8, 8), features=()),
        parameters=(*made.parameters, strided),
        failures=("A[i] > 0",),
        steps=(
            Let(variable="half", value=("//", ("+", "m", 1), 2)),
            Check(condition=("<", "half", 1000), message="half < 1000"),
            replace(launch, arguments=arguments, cluster=(1, 1, 1)),
        ),
    )


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where something stands in data as JSON says it."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items if isinstance(data, dict | list | tuple) else ():
        if isinstance(value, dict | list | tuple):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


def edited(data: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """Return a copy in which `change` was made to the container and the key of a place."""
    copied = json.loads(json.dumps(data))
    place = copied
    for key in path[:-1]:
        place = place[key]
    change(place, path[-1])
    return copied


def remove(place: Any, key: Any) -> None:
    del place[key]


def twice(place: Any, key: Any) -> None:
    if isinstance(place, list):
        place.append(place[key])


class Stub(SimpleNamespace):
    """A driver that launches nothing."""

    def __getattr__(self, name: str) -> Any:
        return {
            "launch_memory": lambda launch: LaunchMemory(launch.arguments),
            "call_lines": lambda launch, number, grid: ["code = 0"],
            "reader_of_context": lambda: lambda place: 0,
            "inside": lambda context, device: nullcontext(),
            "launch": zero,
            "blocks_at_once": lambda function, launch, device: (8, 8),
            "library": SimpleNamespace(cuTensorMapEncodeTiled=zero),
        }.get(name, lambda *args: 0)


def zero(*args: object) -> int:
    return 0


def kernel_of(manifest: Manifest) -> LoadedKernel:
    """Return a kernel whose launcher is whole, and whose code does nothing."""
    empty = lambda shape, dtype, device: np.empty(4096, "uint8")  # noqa: E731
    run = callable_of(manifest, b"", Stub(), zero, zero, empty)
    return LoadedKernel(manifest, run, b"", loaded_again)


ARGS = (np.zeros((3, 8), "float32"), 2.0, np.zeros(5, "int8"))
WITHOUT = (*ARGS[:2], None)


def try_all(data: Any) -> str:
    """Load and call what a manifest says; return the code of the error, or nothing."""
    try:
        kernel = kernel_of(from_json(data))
    except (InvalidBundle, NewerBundle) as error:
        return error.code
    try:
        for args in (ARGS, WITHOUT, (*ARGS, ARGS[0])):
            kernel(*args)
    except (TileError, MemoryError) as error:
        return getattr(error, "code", "memory")
    return ""


def test_the_manifest_itself_is_right() -> None:
    assert from_json(json.loads(json.dumps(to_json(rich())))) == rich()
    with pytest.raises(TileError, match="takes 3 arguments, got 4"):
        kernel_of(rich())(*ARGS, ARGS[0])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:24])
def test_every_field_with_every_value(value: Any) -> None:
    data = to_json(rich())

    def change(place: Any, key: Any) -> None:
        place[key] = value

    codes = [try_all(edited(data, path, change)) for path in places(data) if path]
    assert codes.count("TL8001") > 40


@pytest.mark.parametrize("change", [remove, twice])
def test_every_field_missing_or_twice(change: Callable[[Any, Any], None]) -> None:
    data = to_json(rich())
    for path in places(data):
        if path:
            try_all(edited(data, path, change))


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([("x", "y")], "nothing says what 'y' is"),
        ([("a", ("*", "m", "m")), *((c, ("*", b, b)) for b, c in pairwise("abcdefgh"))],
         "is no number of a kernel"),
        ([("x", ("&", 1.5, 1))], "is no number of a kernel"),
    ],
)  # fmt: skip
def test_numbers_are_bounded(steps: list[Any], told: str) -> None:
    lets = tuple(Let(variable=name, value=value) for name, value in steps)
    with pytest.raises(InvalidBundle, match=told):
        from_json(to_json(replace(numbers(), steps=(*lets, *numbers().steps))))


def test_what_has_no_value_at_a_call_has_a_code() -> None:
    for value in (("<<", 1, ("*", "m", 100)), ("//", 1, ("-", "m", 3)), (">>", 1, ("-", 0, "m"))):
        steps = (Let(variable="x", value=value), *rich().steps)
        with pytest.raises(TileError, match="has no value for these arguments") as caught:
            kernel_of(replace(rich(), steps=steps))(*ARGS)
        assert caught.value.code == "TL6001"


# Files --------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "x.tile"
    write_bundle(made, [Variant(numbers(), b"\x7fELF code")])
    return made


def parts_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, parts: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def refusal(path: Path) -> str:
    with pytest.raises(InvalidBundle) as caught:
        read_bundle(path)
    with pytest.raises(InvalidBundle):
        describe(path)
    return str(caught.value).replace(str(path), "x.tile")


def test_a_manifest_that_was_edited(path: Path) -> None:
    parts = parts_of(path)
    parts["0/manifest.json"] = parts["0/manifest.json"].replace(b"1024", b"2048")
    rewrite(path, parts)
    assert refusal(path) == "[TL8001] x.tile: the manifest for cuda:sm_80 is not what was saved"


@pytest.mark.parametrize("name", ["bundle.json", "0/manifest.json", "0/code"])
def test_parts_that_unpack_to_much(path: Path, name: str) -> None:
    parts = parts_of(path)
    parts[name] = b"0" * ((1 << 20) + 1)
    if name == "0/code":
        index = json.loads(parts["bundle.json"])
        index["variants"][0]["code_sha256"] = hashlib.sha256(parts[name]).hexdigest()
        parts["bundle.json"] = json.dumps(index).encode()
    rewrite(path, parts)
    if name == "0/code":
        assert len(read_bundle(path).variants[0].code) == len(parts[name])
        return
    assert "has 1048577 bytes, of at most 1048576 that are read" in refusal(path)


def test_sizes_that_lie(path: Path) -> None:
    """An archive says that a part is small, and it is not."""
    parts = parts_of(path)
    parts["0/code"] = b"\0" * (64 << 20)
    rewrite(path, parts)
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("0/code")
    data = path.read_bytes()
    lie = entry.file_size.to_bytes(4, "little")
    assert data.count(lie) == 2
    path.write_bytes(data.replace(lie, (9).to_bytes(4, "little")))
    tracemalloc.start()
    try:
        refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_pack(path: Path, how: int) -> None:
    rewrite(path, parts_of(path), how)
    assert "is packed in another way than bundles are" in refusal(path)


@pytest.mark.parametrize("special", ["/dev/zero", "/dev/tty", "pipe", "folder"])
def test_what_has_no_end(tmp_path: Path, special: str) -> None:
    place = Path(special)
    if special == "pipe":
        place = tmp_path / special
        os.mkfifo(place)
    if special == "folder":
        place = tmp_path
    with pytest.raises((InvalidBundle, OSError)):
        read_bundle(place)


def test_a_file_without_end(tmp_path: Path) -> None:
    place = tmp_path / "x.tile"
    with open(place, "wb") as file:
        os.truncate(file.fileno(), 1 << 40)
    assert "it has 1099511627776 bytes" in refusal(place)


def test_many_variants_are_as_large_as_one(path: Path) -> None:
    """What all parts have together is bounded, however often one of them is named."""
    index = {"schema": 1, "kernel": "k", "variants": [{"target": "cpu:x"}] * 5}
    parts = parts_of(path)
    parts["bundle.json"] = json.dumps(index).encode()
    rewrite(path, parts)
    assert "code_sha256 is missing" in refusal(path)


def test_nested_texts(path: Path) -> None:
    parts = parts_of(path)
    for text in (b"[" * 100_000, b'{"schema": ' + b"9" * 5000 + b"}", b"\xff\xfe"):
        rewrite(path, parts | {"bundle.json": text})
        assert "[TL8001]" in refusal(path)
