"""The configurations that hardware chooses from: few, and different in what they bet on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from problem import Problem, Sizes

Configs = list[dict[str, Any]]

WIDE = {"block_M": 128, "block_N": 256, "threads": 256}
TALL = {"block_M": 256, "block_N": 128, "threads": 256}
SQUARE = {"block_M": 128, "block_N": 128, "threads": 256}
THREE = {"block_M": 192, "block_N": 192, "threads": 384}


def _gemm(sizes: Sizes) -> Configs:
    """Tiles of two warpgroups; with and without clusters, stripes, and persistent blocks."""
    found: Configs = [
        {"schedule": "one", **WIDE, "num_stages": 4},
        {"schedule": "one", **WIDE, "num_stages": 4, "cluster": (2, 1)},
        {"schedule": "one", **WIDE, "num_stages": 4, "cluster": (1, 2), "panel": 8},
        {"schedule": "one", **TALL, "num_stages": 4, "cluster": (2, 1), "panel": 8},
        {"schedule": "persistent", **WIDE, "num_stages": 3},
        {"schedule": "persistent", **WIDE, "num_stages": 4},
        {"schedule": "pairs", **WIDE, "num_stages": 3},
        {"schedule": "pairs", **WIDE, "num_stages": 4, "group": 16},
        {"schedule": "pairs", **TALL, "num_stages": 3},
        {"schedule": "persistent", **SQUARE, "block_K": 128, "num_stages": 3},
        {"schedule": "one", **SQUARE, "num_stages": 3, "panel": 8},
    ]
    if sizes["n"] % 192 == 0 or sizes["n"] > 4096:
        found.append({"schedule": "persistent", **THREE, "num_stages": 3})
    return found


def _attention(sizes: Sizes) -> Configs:
    found: Configs = [
        {"block_M": 128, "block_N": 128, "num_stages": 2},
        {"block_M": 128, "block_N": 64, "num_stages": 3},
        {"block_M": 128, "block_N": 160, "num_stages": 2},
        {"block_M": 192, "block_N": 80, "num_stages": 2, "threads": 384},
        {"block_M": 192, "block_N": 64, "num_stages": 3, "threads": 384},
        {"block_M": 64, "block_N": 128, "num_stages": 2, "threads": 128},
        {"block_M": 64, "block_N": 64, "num_stages": 2, "threads": 128},
    ]
    if sizes["causal"]:
        found += [
            {**found[0], "is_longest_first": True},
            {**found[1], "is_longest_first": True},
            {**found[3], "is_longest_first": True},
            {**found[5], "is_longest_first": True},
        ]
    else:
        found.append({"block_M": 128, "block_N": 176, "num_stages": 2})
    return found


def _backward(sizes: Sizes) -> Configs:
    return [
        {"block_M": 64, "block_N": 128, "num_stages": 2, "threads": 256},
        {"block_M": 64, "block_N": 128, "num_stages": 1, "threads": 256},
        {"block_M": 64, "block_N": 64, "num_stages": 2, "threads": 128},
        {"block_M": 32, "block_N": 128, "num_stages": 3, "threads": 256},
        {"block_M": 64, "block_N": 128, "num_stages": 2, "threads": 256, "panel": 8},
    ]


def _mla(sizes: Sizes) -> Configs:
    """Whole tiles of tokens: the kernel has no mask for a last one."""
    tiles = ((64, 64, 2), (64, 32, 2), (64, 64, 1), (64, 128, 1))
    return [{"block_H": h, "block_N": n, "num_stages": stages} for h, n, stages in tiles]


def _scan(sizes: Sizes) -> Configs:
    tiles = (
        (128, 64, 64, 256, 2), (128, 64, 64, 256, 3), (64, 64, 64, 128, 2), (64, 64, 32, 128, 2),
        (128, 64, 128, 256, 2), (128, 64, 32, 256, 3), (256, 64, 64, 256, 2),
    )  # fmt: skip
    return [_chunk(*tile) for tile in tiles]


def _state(sizes: Sizes) -> Configs:
    tiles = (
        (64, 128, 64, 128, 3), (64, 128, 64, 128, 2), (64, 128, 128, 128, 2), (64, 64, 64, 128, 3),
        (64, 128, 32, 128, 4), (64, 128, 64, 256, 3),
    )  # fmt: skip
    return [_chunk(*tile) for tile in tiles]


def _chunk(rows: int, columns: int, depth: int, threads: int, stages: int) -> dict[str, Any]:
    return {
        "block_M": rows,
        "block_N": columns,
        "block_K": depth,
        "threads": threads,
        "num_stages": stages,
    }


def _fp8(sizes: Sizes) -> Configs:
    tiles = ((128, 128, 256, 4), (128, 128, 256, 3), (64, 128, 128, 4), (128, 64, 256, 4))
    return [_product(*tile) for tile in (*tiles, (64, 64, 128, 4), (128, 32, 256, 4))]


def _product(rows: int, columns: int, threads: int, stages: int) -> dict[str, Any]:
    return {"block_M": rows, "block_N": columns, "threads": threads, "num_stages": stages}


def _w4a16(sizes: Sizes) -> Configs:
    """Weights are the left factor: `block_N` is what warpgroups share."""
    if sizes["m"] <= 16:
        tiles = ((16, 64, 128, 128, 4), (16, 64, 128, 128, 8), (16, 64, 64, 128, 4),
                 (16, 64, 64, 128, 8), (16, 128, 128, 256, 4), (16, 128, 64, 256, 4),
                 (8, 64, 128, 128, 6))  # fmt: skip
    else:
        tiles = ((256, 128, 64, 256, 4), (256, 128, 64, 256, 3), (256, 128, 128, 256, 2),
                 (128, 128, 64, 256, 4), (256, 64, 64, 128, 3), (128, 64, 64, 128, 4))  # fmt: skip
    return [_chunk(*tile) for tile in tiles]


def _copy(sizes: Sizes) -> Configs:
    return [{"block": b, "threads": t} for b, t in ((2048, 256), (4096, 256), (8192, 512))]


def _whole_rows(sizes: Sizes) -> Configs:
    shapes = ((1, 128), (1, 256), (1, 512), (1, 1024), (2, 512))
    return [{"block_M": rows, "threads": threads} for rows, threads in shapes]


OF_FAMILY: Mapping[str, Callable[[Sizes], Configs]] = {
    "gemm": _gemm,
    "attention": _attention,
    "backward": _backward,
    "mla": _mla,
    "scan": _scan,
    "state": _state,
    "fp8": _fp8,
    "w4a16": _w4a16,
    "copy": _copy,
    "softmax": _whole_rows,
    "rms_norm": _whole_rows,
    "layer_norm": _whole_rows,
}

_SMALL = {"block_M": 32, "block_N": 32, "num_stages": 2}
TINY: Mapping[str, Configs] = {
    "gemm": [
        {"schedule": "one", **_SMALL, "block_K": 32, "threads": 128},
        {"schedule": "persistent", **_SMALL, "block_K": 32, "threads": 128, "blocks": 2},
    ],
    "attention": [{**_SMALL, "threads": 128}, {**_SMALL, "threads": 64, "is_longest_first": True}],
    "backward": [{**_SMALL, "threads": 128}],
    "mla": [{"block_H": 16, "block_N": 32, "num_stages": 1}],
    "scan": [_chunk(32, 32, 32, 128, 2)],
    "state": [_chunk(32, 32, 32, 128, 2)],
    "fp8": [_product(32, 32, 128, 2)],
    "w4a16": [_chunk(16, 32, 64, 128, 2)],
    "copy": [{"block": 128, "threads": 64}],
    "softmax": [{"block_M": 4, "threads": 128}],
    "rms_norm": [{"block_M": 4, "threads": 128}],
    "layer_norm": [{"block_M": 4, "threads": 128}],
}
"""For rehearsals, by family."""


def candidates(problem: Problem, is_tiny: bool = False) -> Configs:
    """Return the configurations of a problem."""
    return TINY[problem.family] if is_tiny else OF_FAMILY[problem.family](problem.sizes)


def label(config: Mapping[str, Any]) -> str:
    """Return a configuration as a short text: ``schedule=one block_M=128 …``."""
    return " ".join(f"{name}={_plain(value)}" for name, value in config.items())


def _plain(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
