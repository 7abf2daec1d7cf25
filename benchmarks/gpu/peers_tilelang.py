"""The same programs compiled by TileLang: the language is the same, the compiler is not.

The texts of our kernels are imported a second time, with TileLang's language under the name that
they import. TileLang keeps what it compiled on disk.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import tilelang.language
import tilelang.layout
from contestant import Run
from problem import Sizes, Tensors

import tilelang

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"

Tiles = dict[str, Any]


def _aliases() -> dict[str, ModuleType]:
    """Return TileLang's modules under the names that our kernels import."""
    package, language = ModuleType("tile_api"), ModuleType("tile_api.language")
    vars(package).update(vars(tilelang), language=language)
    vars(language).update(vars(tilelang.language))
    vars(language).setdefault("make_swizzled_layout", tilelang.layout.make_swizzled_layout)
    return {"tile_api": package, "tile_api.language": language}


@cache
def text(path: Path) -> ModuleType:
    """Import a file whose language is to be TileLang's."""
    names = _aliases()
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        found = importlib.util.spec_from_file_location(f"tilelang_{path.stem}", path)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[found.name] = module
        found.loader.exec_module(module)
    finally:
        for name, module_before in before.items():
            if module_before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module_before
    return module


def _tile(rows: int, columns: int, threads: int, stages: int, **more: Any) -> Tiles:
    return {
        "block_M": rows, "block_N": columns, "threads": threads, "num_stages": stages, **more
    }  # fmt: skip


_PRODUCTS = (
    _tile(128, 256, 256, 4, block_K=64),
    _tile(128, 256, 256, 3, block_K=64, panel=10),
)
_FLASH = (_tile(128, 128, 256, 2), _tile(64, 128, 128, 2))


def _products(sizes: Sizes) -> Iterator[tuple[Any, tuple[Any, ...], Tiles]]:
    for tiles in _PRODUCTS:
        yield text(HERE / "our_gemm.py").gemm, (sizes["m"], sizes["n"], sizes["k"]), tiles


def _flash(sizes: Sizes) -> Iterator[tuple[Any, tuple[Any, ...], Tiles]]:
    names = ("batch", "tokens", "heads", "dim", "causal")
    for tiles in _FLASH:
        more = {**tiles, "is_longest_first": sizes["causal"]}
        yield text(HERE / "our_attention.py").attention, tuple(sizes[n] for n in names), more


def _mla(sizes: Sizes) -> Iterator[tuple[Any, tuple[Any, ...], Tiles]]:
    function = text(EXAMPLES / "attention" / "paper_b3_flash_mla.py").flash_mla
    shape = (sizes["batch"], sizes["heads"], 1, sizes["tokens"], sizes["dim"], sizes["pe"])
    yield function, shape, {"block_H": 64, "block_N": 64, "num_stages": 2}


def _chunks(file: str, function: str, *tilings: Tiles) -> Callable[[Sizes], Iterator[Any]]:
    def variants(sizes: Sizes) -> Iterator[tuple[Any, tuple[Any, ...], Tiles]]:
        names = ("batch", "tokens", "chunk", "heads")
        shape = (*(sizes[n] for n in names), 1, sizes["headdim"], sizes["dstate"])
        for tiles in tilings:
            yield getattr(text(EXAMPLES / "linear_attention" / file), function), shape, tiles

    return variants


def _fp8(sizes: Sizes) -> Iterator[tuple[Any, tuple[Any, ...], Tiles]]:
    function = text(HERE / "our_fp8.py").gemm_fp8
    for tiles in (_tile(128, 128, 256, 4), _tile(64, 128, 128, 4)):
        yield function, (sizes["m"], sizes["n"], sizes["k"]), tiles


def _w4a16(sizes: Sizes) -> Iterator[tuple[Any, tuple[Any, ...], Tiles]]:
    shape = tuple(sizes[name] for name in ("m", "n", "k", "group"))
    small = _tile(16, 64, 128, 4, block_K=128)
    tiles = small if sizes["m"] <= 16 else _tile(128, 128, 256, 3, block_K=64)
    yield text(HERE / "our_w4a16.py").matmul_w4a16, shape, tiles


VARIANTS: Mapping[str, Callable[[Sizes], Iterator[tuple[Any, tuple[Any, ...], Tiles]]]] = {
    "gemm": _products,
    "attention": _flash,
    "mla": _mla,
    "scan": _chunks(
        "mamba2_chunk_scan.py", "chunk_scan",
        _tile(64, 64, 128, 2, block_K=64), _tile(128, 64, 128, 2, block_K=64),
    ),
    "state": _chunks(
        "mamba2_chunk_state.py", "chunk_state",
        _tile(64, 128, 128, 4, block_K=64), _tile(64, 64, 128, 3, block_K=64),
    ),
    "fp8": _fp8,
    "w4a16": _w4a16,
}  # fmt: skip
"""By family: functions that make kernels, with their arguments and tiles."""


def kernels_of(family: str, sizes: Sizes) -> Iterator[Callable[[], Any]]:
    """Yield what compiles each variant."""
    for function, shape, tiles in VARIANTS.get(family, lambda sizes: iter(()))(sizes):
        yield lambda function=function, shape=shape, tiles=tiles: function(*shape, **tiles)


def _runs(family: str) -> Callable[[Sizes, Tensors, Tensors], Iterator[Run]]:
    def variants(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
        for build in kernels_of(family, sizes):
            compiled = cache(build)
            yield lambda compiled=compiled: compiled()(*inputs)

    return variants


MAKERS = {family: _runs(family) for family in VARIANTS}
