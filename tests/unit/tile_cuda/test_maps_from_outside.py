"""Maps of tensors against the driver's own words: its header, and what it asks of arguments.

What the driver asks for is written in the comment on ``cuTensorMapEncodeTiled`` in ``cuda.h`` of
CUDA 13.0. Enumerations and the map's record are read from an installed header.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import ArgumentLayoutError, InternalError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Var
from tile_core.simt import tensor_map_values as compiled
from tile_core.simt.program import TensorMap
from tile_launch import errors as runtime_errors
from tile_launch import manifest
from tile_launch import tensor_maps as launched

INT = dtype_of("int64")


@pytest.fixture(scope="module")
def header() -> str:
    found = importlib.util.find_spec("nvidia")
    places = found.submodule_search_locations if found is not None else None
    for folder in places or ():
        for path in sorted(Path(folder).glob("*/include/cuda.h")):
            if "CUtensorMapSwizzle" in (text := path.read_text()):
                return text
    pytest.skip("no cuda.h with maps of tensors is installed")


def members(header: str, name: str) -> dict[str, int]:
    """Return the members of an enumeration: numbered from 0, or from what one says."""
    body = re.search(rf"typedef enum {name}_enum \{{(.*?)\}}", header, re.S)
    assert body is not None
    found: dict[str, int] = {}
    number = 0
    plain = re.sub(r"/\*.*?\*/", "", body[1], flags=re.S)
    for member, value in re.findall(r"(\w+)\s*(?:=\s*(\d+))?\s*(?:,|$)", plain):
        number = int(value) if value else number
        found[member.split("CU_TENSOR_MAP_")[1]] = number
        number += 1
    return found


def test_types_of_elements(header: str) -> None:
    known = members(header, "CUtensorMapDataType")
    for dtype, code in launched._CODES.items():
        assert known[f"DATA_TYPE_{dtype.upper()}"] == code
    assert {launched.element_code(d) for d in ("int8", "bool", "float8_e4m3fn")} == {
        known["DATA_TYPE_UINT8"]
    }


def test_modes(header: str) -> None:
    def codes(name: str, prefix: str, suffix: str = "") -> dict[int, int]:
        found = members(header, name)
        return {
            0 if what == "NONE" else int(what.removeprefix("L2_").rstrip("B")): code
            for member, code in found.items()
            if re.fullmatch(r"NONE|(L2_)?\d+B", what := member.removeprefix(prefix))
        }

    assert codes("CUtensorMapSwizzle", "SWIZZLE_") == launched._SWIZZLES
    assert codes("CUtensorMapInterleave", "INTERLEAVE_") == launched._INTERLEAVES
    assert codes("CUtensorMapL2promotion", "L2_PROMOTION_") == launched._PROMOTIONS
    fills = members(header, "CUtensorMapFloatOOBfill")
    assert list(fills.values()) == [launched._FILLS["zero"], launched._FILLS["nan"]]
    assert "NAN" in list(fills)[1]


def test_the_record_of_a_map(header: str) -> None:
    record = re.search(r"typedef struct CUtensorMap_st \{(.*?)\} CUtensorMap;", header, re.S)
    words = re.search(r"#define CU_TENSOR_MAP_NUM_QWORDS (\d+)", header)
    assert record is not None
    assert words is not None
    assert int(words[1]) * 8 == launched.MAP_BYTES
    (alignment,) = set(re.findall(r"lignas\((\d+)\)", record[1]))
    assert launched.MAP_ALIGNMENT % int(alignment) == 0


def test_the_order_of_arguments(header: str) -> None:
    found = re.search(r"CUresult CUDAAPI cuTensorMapEncodeTiled\((.*?)\);", header)
    assert found is not None
    assert [argument.split()[-1].lstrip("*") for argument in found[1].split(",")] == [
        "tensorMap", "tensorDataType", "tensorRank", "globalAddress", "globalDim",
        "globalStrides", "boxDim", "elementStrides", "interleave", "swizzle", "l2Promotion",
        "oobFill",
    ]  # fmt: skip


M, N, S = Var("m", INT), Var("n", INT), Var("s", INT)
TENSOR = Buffer("A", (M, N), dtype_of("float16"), Scope.GLOBAL)
SIZES = {"m": 64, "n": 128, "s": 256}


def by_compiler(address: int, **sizes: int) -> Any:
    told = TensorMap("A_map", TENSOR, TENSOR.dtype, Const(0, INT), (N, M), (S,), (64, 8))
    values = SIZES | sizes
    return compiled.map_values("kernel", told, address, {M: values["m"], N: values["n"],
                                                        S: values["s"]})  # fmt: skip


def by_runtime(address: int, **sizes: int) -> Any:
    told = manifest.TensorMap(
        name="A_map", tensor="A", dtype="float16", offset=0, extents=("n", "m"), strides=("s",),
        box=(64, 8), element_strides=(1, 1), swizzle=0, interleave=0, fill="zero",
        l2_promotion=128,
    )  # fmt: skip
    return launched.map_values("kernel", told, address, SIZES | sizes)


LIMITS = {
    "address": (
        (0x1008, {}),
        "kernel.A: copies of boxes need an address that is a multiple of 16 bytes, got one that "
        "lies 8 behind\nhint: pass x.clone() or numpy.copy(x): views may begin anywhere, tensors "
        "of their own are aligned",
    ),
    "rows between multiples": (
        (0x1000, {"s": 264}),
        "kernel.A: copies of boxes need rows that are multiples of 16 bytes apart, got 264 bytes\n"
        "hint: pass a tensor of its own that is dense and whose rows are multiples of 16 bytes",
    ),
    "rows backwards": (
        (0x1000, {"s": -256}),
        "kernel.A: copies of boxes need rows that are multiples of 16 bytes apart, got -256 bytes\n"
        "hint: pass a tensor of its own that is dense and whose rows are multiples of 16 bytes",
    ),
    "rows far apart": (
        (0x1000, {"s": 1 << 40}),
        "kernel.A: copies of boxes need rows that are less than 2^40 bytes apart, got "
        "1099511627776 bytes\nhint: pass a tensor of its own that is dense, or copy with "
        "T.copy(..., disable_tma=True)",
    ),
    "more than coordinates count": (
        (0x1000, {"m": (1 << 31) + 1}),
        "kernel.A: copies of boxes need extents of at most 2^31 elements, got 2147483649\n"
        "hint: pass parts of the tensor one by one, or copy with T.copy(..., disable_tma=True)",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("described", [by_compiler, by_runtime])
def test_what_no_map_can_say_is_refused_in_words(name: str, described: Callable[..., Any]) -> None:
    (address, sizes), words = LIMITS[name]
    with pytest.raises((ArgumentLayoutError, runtime_errors.ArgumentLayoutError)) as caught:
        described(address, **sizes)
    assert str(caught.value).removeprefix("[TL6006] ") == words


@pytest.mark.parametrize(
    "sizes", [{}, {"s": (1 << 40) - 16}, {"s": 0}, {"m": 1 << 31}, {"m": 0}], ids=str
)
@pytest.mark.parametrize("described", [by_compiler, by_runtime])
def test_the_last_that_a_map_can_say(sizes: dict[str, int], described: Callable[..., Any]) -> None:
    found = described(0x1000, **sizes)
    values = SIZES | sizes
    assert (found.extents, found.strides) == ((values["n"], values["m"]), (values["s"],))


BOX = manifest.TensorMap(
    name="A_map", tensor="A", dtype="float16", offset=0, extents=(128, 64, 8),
    strides=(256, 1 << 14), box=(64, 8, 2), element_strides=(1, 1, 1), swizzle=128,
)  # fmt: skip
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "six dimensions": ({"extents": (8,) * 6, "box": (8,) * 6}, "6 dimensions"),
    "wide boxes": ({"box": (64, 257, 1)}, r"boxes of \(64, 257, 1\) elements"),
    "rows beyond the swizzle": ({"box": (128, 8, 2)}, "256 bytes under a swizzle of 128"),
    "rows of 8 bytes": ({"box": (4, 8, 2), "swizzle": 0}, "rows have 8 bytes"),
    "a pattern of 16 bytes": ({"swizzle": 16}, "a swizzle of 16"),
    "every ninth row": ({"element_strides": (1, 9, 1)}, "elements .* apart"),
    "every other element": ({"element_strides": (2, 1, 1)}, "apart without interleaving"),
    "integers that are no numbers": (
        {"fill": "nan", "dtype": "int16"}, "NaN outside of elements of int16",
    ),
    "float8 moves as bits": (
        {"fill": "nan", "dtype": "float8_e4m3fn", "box": (128, 8, 2)},
        "NaN outside of elements of float8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_boxes_that_no_driver_takes_are_mistakes_of_the_compiler(name: str) -> None:
    compiled.check_boxes(BOX)
    changes, words = WRONG[name]
    with pytest.raises(InternalError, match=words):
        compiled.check_boxes(replace(BOX, **changes))
