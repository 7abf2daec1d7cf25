"""What kernels use of a GPU, read from their text: so that a table says what does not work."""

from __future__ import annotations

import re
from collections.abc import Iterable

ORDER: tuple[tuple[str, str], ...] = (
    ("plain", r""),
    ("vectors", r"tile::(load|store)<\d"),
    ("barrier of a block", r"tile::(sync|syncthreads_\w+)\("),
    ("named barriers", r"tile::bar_(sync|arrive)\("),
    ("shuffles", r"tile::shfl_\w+\("),
    ("votes", r"tile::(ballot|all|any|match_\w+|activemask)\("),
    ("warp sums", r"tile::warp_reduce"),
    ("atomics", r"tile::atomic_\w+\("),
    ("fast mathematics", r"tile::(exp2|exp|log2|log|tanh|rsqrt|sin|cos)\("),
    ("float8", r"tile::e[45]m[23]\b"),
    ("unpacked weights", r"tile::(decode|unpack)\w*[<(]"),
    ("dp4a", r"tile::dp4a\w*\("),
    ("ldmatrix", r"tile::ldmatrix"),
    ("stmatrix", r"tile::stmatrix"),
    ("mma.sync", r"tile::mma_"),
    ("cp.async", r"tile::cp_async"),
    ("grid barrier", r"tile::grid_sync\w*\("),
    ("grids that overlap", r"tile::grid_(wait|launch)\("),
    ("mbarrier", r"tile::mbarrier_init\("),
    ("cp.async on mbarrier", r"tile::cp_async_mbarrier"),
    ("bulk load", r"tile::bulk_load\("),
    ("bulk store", r"tile::bulk_store\("),
    ("bulk reduce", r"tile::bulk_reduce"),
    *((f"tma load {n}D", rf"tile::tma_load<{n}>") for n in range(1, 6)),
    *((f"tma store {n}D", rf"tile::tma_store<{n}>") for n in range(1, 6)),
    ("tma reduce", r"tile::tma_reduce_"),
    ("setmaxnreg", r"tile::registers_(in|de)crease<"),
    ("wgmma, factors shared", r"tile::wgmma_ss"),
    ("wgmma, factor in registers", r"tile::wgmma_rs"),
    ("cluster barrier", r"tile::cluster_(sync|arrive|wait)"),
    ("shared memory of others", r"tile::(remote|bulk_copy_remote)\("),
    ("remote mbarrier", r"tile::mbarrier_(arrive|free)_remote\("),
    ("tma multicast", r"tile::tma_load_multicast<"),
    ("all of the GPU", r"(?!)"),
)
"""Features, from simple to complex, and what in the text of a kernel shows that it is used."""

_RANKS = {name: rank for rank, (name, _) in enumerate(ORDER)}
_PATTERNS = [(name, re.compile(pattern)) for name, pattern in ORDER if pattern]


def features_of(text: str, swizzles: Iterable[int] = (), lowered_for: str = "") -> tuple[str, ...]:
    """Return what a kernel uses, from simple to complex.

    Parameters
    ----------
    text
        As printed, without the header.
    swizzles
        Of its tensor maps, in bytes.
    lowered_for
        The architecture that the text was written for.
    """
    found = [name for name, pattern in _PATTERNS if pattern.search(text)]
    told = [f"{name}, {types_of(text)}" if name.startswith("wgmma") else name for name in found]
    told += [f"tma swizzle {width}" for width in sorted({*swizzles} - {0})]
    if lowered_for:
        told.append(f"written for {lowered_for}")
    return tuple(sorted(told or ["plain"], key=rank_of))


def types_of(text: str) -> str:
    """Return the element types of tiles in shared memory, which products read."""
    kinds = re.findall(r"tile::smem<(?:tile::)?(\w+)>", text)
    return "/".join(sorted({kind.removesuffix("_t") for kind in kinds} - {"u64"})) or "?"


def rank_of(feature: str) -> float:
    """Return how complex a feature is."""
    base = feature.rpartition(", ")[0] if feature.startswith("wgmma") else feature
    if feature.startswith("tma swizzle"):
        return _RANKS["tma load 5D"] + 0.5
    return _RANKS.get(base, -1)


def complexity(features: Iterable[str], size: int) -> tuple[float, int, int]:
    """Return what cases are ordered by: the most complex feature, their number, the size."""
    listed = list(features)
    return max(map(rank_of, listed)), len(listed), size
