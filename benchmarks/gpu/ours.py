"""From a problem and a configuration to the kernels that are compiled."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import our_attention
import our_backward
import our_fp8
import our_gemm
import our_rows
import our_w4a16
from problem import Sizes

EXAMPLES = Path(__file__).parents[2] / "examples"

Config = Mapping[str, Any]
Functions = dict[str, Any]
"""Traced functions by the names that a family's launch knows them by."""


@cache
def example(name: str) -> ModuleType:
    """Import an example under a name of its own: some files in different folders share one."""
    found = importlib.util.spec_from_file_location(name.replace("/", "_"), EXAMPLES / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _gemm(sizes: Sizes, config: Config) -> Functions:
    tiles = dict(config)
    kernels = {
        "one": our_gemm.gemm,
        "persistent": our_gemm.persistent_gemm,
        "pairs": our_gemm.persistent_pairs,
    }
    make = kernels[tiles.pop("schedule")]
    return {"main": make.get_tir(sizes["m"], sizes["n"], sizes["k"], **tiles)}


def _attention(sizes: Sizes, config: Config) -> Functions:
    return {"main": our_attention.attention.get_tir(**sizes, **config)}


def _backward(sizes: Sizes, config: Config) -> Functions:
    heads, tokens, dim = sizes["batch"] * sizes["heads"], sizes["tokens"], sizes["dim"]
    main = our_backward.backward.get_tir(heads, tokens, dim, sizes["causal"], **config)
    return {"delta": our_backward.delta.get_tir(heads, tokens, dim), "main": main}


def _mla(sizes: Sizes, config: Config) -> Functions:
    make = example("attention/paper_b3_flash_mla").flash_mla
    shape = (sizes["batch"], sizes["heads"], 1, sizes["tokens"], sizes["dim"], sizes["pe"])
    return {"main": make.get_tir(*shape, **config)}


def _chunks(file: str, function: str) -> Callable[[Sizes, Config], Functions]:
    """Return what makes the kernels of Mamba-2, whose examples take the same sizes."""

    def make(sizes: Sizes, config: Config) -> Functions:
        kernel = getattr(example(f"linear_attention/{file}"), function)
        return {"main": kernel.get_tir(groups=1, **sizes, **config)}

    return make


def _fp8(sizes: Sizes, config: Config) -> Functions:
    return {"main": our_fp8.gemm_fp8.get_tir(sizes["m"], sizes["n"], sizes["k"], **config)}


def _w4a16(sizes: Sizes, config: Config) -> Functions:
    shape = (sizes["m"], sizes["n"], sizes["k"], sizes["group"])
    return {"main": our_w4a16.matmul_w4a16.get_tir(*shape, **config)}


def _rows(function: Any) -> Callable[[Sizes, Config], Functions]:
    return lambda sizes, config: {"main": function.get_tir(**sizes, **config)}


MAKERS: Mapping[str, Callable[[Sizes, Config], Functions]] = {
    "gemm": _gemm,
    "attention": _attention,
    "backward": _backward,
    "mla": _mla,
    "scan": _chunks("mamba2_chunk_scan", "chunk_scan"),
    "state": _chunks("mamba2_chunk_state", "chunk_state"),
    "fp8": _fp8,
    "w4a16": _w4a16,
    "copy": _rows(our_rows.copy),
    "softmax": _rows(our_rows.softmax),
    "rms_norm": _rows(our_rows.rms_norm),
    "layer_norm": _rows(our_rows.layer_norm),
}
"""By family: ``maker(sizes, config)`` returns the functions to compile."""
