"""Manifests as JSON and back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import tile_api as tile
import tile_api.language as T
from support.bundles import numbers
from tile_core.codegen import function_symbols
from tile_core.simt.manifest import manifest_of
from tile_launch.errors import InvalidBundle, NewerBundle
from tile_launch.manifest import (
    Check,
    Let,
    Manifest,
    Status,
    TensorMap,
    Workspace,
)
from tile_launch.manifest_json import from_json, parse_manifest, text_of_manifest

m = T.dynamic("m")


@T.prim_func
def product(
    A: T.Tensor((m, 128), "float16"), B: T.Tensor((128, 256), "float16"),
    C: T.Tensor((m, 256), "float16"),
):  # fmt: skip
    with T.Kernel(256 // 64, T.ceildiv(m, 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 64, k * 64], a)
            T.copy(B[k * 64, bx * 64], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 64, bx * 64])


def full() -> Manifest:
    """A manifest with a record of each kind."""
    described = TensorMap(
        name="A_map", tensor="A", dtype="float32", offset=0, extents=(8, "m"), strides=(32,),
        box=(8, 16), element_strides=(1, 1), swizzle=32,
    )  # fmt: skip
    made = numbers(
        workspaces=(Workspace(name="w", dtype="float16", shape=("m",)),),
        failures=("A[i] > 0",),
        prints=True,
    )
    (launch,) = made.launches
    launch = replace(launch, arguments=(*launch.arguments, described, Status()), cluster=(2,))
    let = Let(variable="half", value=("//", "m", 2))
    check = Check(condition=("==", "half", 2), message="half")
    return replace(made, steps=(let, check, launch))


def test_json_says_everything() -> None:
    text = text_of_manifest(full())
    assert parse_manifest(text) == full()
    assert text_of_manifest(parse_manifest(text)) == text
    assert json.loads(text)["schema"] == 1


@pytest.mark.parametrize("target", ["cuda:sm_70", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_programs_become_manifests(target: str) -> None:
    lowered = tile.lower(product, target=target, out_idx=[2])
    program = lowered.device_mod
    told = manifest_of(program, function_symbols(program), lowered.lowered.kernel, {"by": "hand"})
    found = parse_manifest(text_of_manifest(told))
    assert found == told
    assert (found.kernel, found.machine.target, found.outputs) == ("product", target, (2,))
    assert [p.name for p in found.parameters] == ["A", "B", "C"]
    assert [p.is_written for p in found.parameters if hasattr(p, "is_written")] == [0, 0, 1]
    (launch,) = found.launches
    assert launch.grid == (4, ("//", ("+", "m", 63), 64), 1)
    assert bool(launch.maps) == (target == "cuda:sm_90a")
    assert found.symbols == {"m": "int32"}
    assert [c.kind for c in found.conditions] == ["grid"]


def without(data: dict[str, Any], *path: Any) -> dict[str, Any]:
    """Return a copy of `data` less what is at `path`."""
    copied = json.loads(json.dumps(data))
    inner = copied
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return copied


def places(data: Any, *path: Any) -> list[tuple[Any, ...]]:
    """Return the paths of all members of objects in `data`."""
    found = []
    if isinstance(data, dict):
        for key, value in data.items():
            found += [(*path, key), *places(value, *path, key)]
    elif isinstance(data, list):
        for number, value in enumerate(data):
            found += places(value, *path, number)
    return found


def test_nothing_may_be_missing() -> None:
    data = json.loads(text_of_manifest(full()))
    optional = {"symbols", "provenance", "strides"}
    for path in places(data):
        if path[0] in ("symbols", "provenance") or path[-1] == "strides":
            continue
        with pytest.raises((InvalidBundle, NewerBundle)):
            from_json(without(data, *path))
    assert optional <= {"symbols", "provenance", "strides"}


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("schema",), 2, "form 2"),
        (("schema",), True, "does not say which form"),
        (("parameters", 0, "dtype"), "text", "parameters.0.: 'text' is no element type"),
        (("parameters", 0, "kind"), "list", "'list' is no parameter"),
        (("parameters", 0, "alignment"), -1, "alignment cannot be -1"),
        (("steps", 0, "block"), [0, 1, 1], "three extents"),
        (("steps", 0, "grid"), [1, 1], "three extents"),
        (("steps", 0, "arguments", 0, "kind"), "file", "'file' is no argument"),
        (("outputs",), "2", "outputs is no list"),
        (("symbols",), {"m": 3}, "symbols holds what is no text"),
    ],
)
def test_what_makes_no_sense(path: tuple[Any, ...], value: Any, told: str) -> None:
    data = json.loads(text_of_manifest(numbers()))
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises((InvalidBundle, NewerBundle), match=told):
        from_json(data)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": NaN}', "[" * 100_000, "\ud800"])
def test_what_is_no_manifest(text: str) -> None:
    with pytest.raises(InvalidBundle):
        parse_manifest(text)
