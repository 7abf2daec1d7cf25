"""The problems, the most important first: shapes of tables 2 to 4 of the paper, and beyond.

Sizes of products are those of ``C = A @ B.T``, as linear layers have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from families import FAMILIES
from problem import Problem, Sizes

PRODUCTS = {
    "M0": (4096, 1024, 8192),
    "M1": (4096, 8192, 8192),
    "M2": (4096, 28672, 8192),
    "M3": (4096, 8192, 28672),
    "M4": (8192, 1024, 8192),
    "M5": (8192, 8192, 8192),
    "M6": (8192, 28672, 8192),
    "M7": (8192, 8192, 28672),
}
VECTORS = {"V0": (16384, 16384), "V1": (43008, 14336), "V3": (57344, 14336), "V5": (9216, 9216)}
ATTENTION = {
    "FA0": (512, True),
    "FA1": (512, False),
    "FA2": (1024, True),
    "FA3": (1024, False),
    "FA4": (4096, True),
}
CHUNKS = (("0", 1, 1024), ("1", 1, 2048), ("2", 1, 8192), ("3", 64, 1024), ("5", 64, 8192))
"""Of chunk scans and chunk states: number, batch, tokens."""

TINY: Mapping[str, tuple[Sizes, ...]] = {
    "gemm": ({"m": 64, "n": 96, "k": 64},),
    "attention": (
        {"batch": 1, "tokens": 64, "heads": 2, "dim": 32, "causal": False},
        {"batch": 1, "tokens": 64, "heads": 1, "dim": 32, "causal": True},
    ),
    "backward": ({"batch": 1, "tokens": 64, "heads": 2, "dim": 32, "causal": True},),
    "mla": ({"batch": 1, "heads": 16, "tokens": 64, "dim": 64, "pe": 32},),
    "scan": ({"batch": 1, "tokens": 64, "chunk": 64, "heads": 2, "headdim": 32, "dstate": 32},),
    "state": ({"batch": 1, "tokens": 64, "chunk": 64, "heads": 2, "headdim": 32, "dstate": 32},),
    "fp8": ({"m": 32, "n": 128, "k": 256},),
    "w4a16": ({"m": 16, "n": 64, "k": 128, "group": 128},),
    "copy": ({"rows": 16, "columns": 64},),
    "softmax": ({"rows": 16, "columns": 64},),
    "rms_norm": ({"rows": 16, "columns": 64},),
    "layer_norm": ({"rows": 16, "columns": 64},),
}


def problem(name: str, family: str, mark: tuple[str, float] | None = None, **sizes: Any) -> Problem:
    """Return a problem with what it costs at least."""
    flops, nbytes = FAMILIES[family].work(sizes)
    is_rate_of_bytes = family in ("copy", "softmax", "rms_norm", "layer_norm") or (
        family == "w4a16" and sizes["m"] <= 16
    )
    return Problem(
        name=name,
        family=family,
        sizes=sizes,
        flops=flops,
        nbytes=nbytes,
        is_rate_of_bytes=is_rate_of_bytes,
        mark=mark,
    )


def _attention(name: str, tokens: int, causal: bool, heads: int = 32, **more: Any) -> Problem:
    sizes = {"batch": 1, "tokens": tokens, "heads": heads, "dim": 128, "causal": causal}
    return problem(name, more.pop("family", "attention"), **more, **sizes)


def all_problems() -> tuple[Problem, ...]:
    """Return all problems, the most important first."""
    return (*_first(), *_then(), *_last())


def _first() -> Iterator[Problem]:
    """Yield what the goals of the project are about."""
    for name, (m, n, k) in PRODUCTS.items():
        yield problem(name, "gemm", m=m, n=n, k=k)
    yield _attention("FA-16k", 16384, False, 16, mark=("FlashAttention-3", 648))
    yield _attention("FA-16k-causal", 16384, True, 16, mark=("FlashAttention-3", 616))
    for name, (tokens, causal) in ATTENTION.items():
        yield _attention(name, tokens, causal)


def _then() -> Iterator[Problem]:
    """Yield the paper's other kernels."""
    mla = {"heads": 128, "dim": 512, "pe": 64}
    yield problem("MLA-128x8k", "mla", ("FlashMLA", 487), batch=128, tokens=8192, **mla)
    chunk = {"chunk": 256, "heads": 64, "headdim": 64, "dstate": 128}
    for number, batch, tokens in reversed(CHUNKS):
        yield problem(f"CC{number}", "scan", batch=batch, tokens=tokens, **chunk)
        yield problem(f"CT{number}", "state", batch=batch, tokens=tokens, **chunk)
    backward = {"heads": 16, "family": "backward"}
    yield _attention("FA-16k-causal-bwd", 16384, True, **backward)
    yield _attention("FA-4k-bwd", 4096, False, **backward)
    yield problem("F8-M5", "fp8", m=8192, n=8192, k=8192)
    yield problem("F8-M1", "fp8", m=4096, n=8192, k=8192)


def _last() -> Iterator[Problem]:
    """Yield what memory limits, and smaller batches."""
    for name, (n, k) in VECTORS.items():
        yield problem(f"W4-{name}", "w4a16", m=1, n=n, k=k, group=128)
    yield problem("W4-16", "w4a16", m=16, n=8192, k=8192, group=128)
    yield problem("W4-M1", "w4a16", m=4096, n=8192, k=8192, group=128)
    for family in ("copy", "softmax", "rms_norm", "layer_norm"):
        yield problem(family, family, rows=32768, columns=8192)
    mla = {"heads": 128, "dim": 512, "pe": 64}
    yield problem("MLA-128x1k", "mla", ("FlashMLA", 353), batch=128, tokens=1024, **mla)


def tiny_problems() -> tuple[Problem, ...]:
    """Return problems that take no time, at least one of each family."""
    return tuple(
        problem(f"{family}-{number}", family, **sizes)
        for family, several in TINY.items()
        for number, sizes in enumerate(several)
    )
