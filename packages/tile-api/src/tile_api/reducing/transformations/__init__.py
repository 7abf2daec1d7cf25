"""What a reduction tries: each transformation yields smaller kernels, which may fail or not.

They are functions of a kernel alone, so that searches repeat. Candidates need not be
well-formed: the search verifies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from tile_api.reducing.transformations.expressions import (
    fill_instead,
    first_regions,
    plain_operators,
    simpler_expressions,
)
from tile_api.reducing.transformations.loops import (
    drop_statements,
    drop_unused,
    fewer_threads,
    inline_names,
    plain_loops,
    shorten,
    unwrap,
)
from tile_api.reducing.transformations.parameters import (
    drop_buffers,
    drop_hints,
    drop_parameters,
    known_sizes,
    share_buffers,
)
from tile_api.reducing.transformations.sizes import (
    halved_sizes,
    plain_dtypes,
    smaller_sizes,
    smaller_tensors,
)
from tile_core.ir.stmt import Kernel

Transformation: TypeAlias = "Callable[[Kernel], Iterator[Kernel]]"

TRANSFORMATIONS: tuple[tuple[str, Transformation], ...] = (
    ("drop statements", drop_statements),
    ("drop buffers", drop_buffers),
    ("drop what is unused", drop_unused),
    ("unwrap loops", unwrap),
    ("inline names", inline_names),
    ("shorten loops", shorten),
    ("drop parameters", drop_parameters),
    ("fill instead", fill_instead),
    ("known sizes", known_sizes),
    ("drop hints", drop_hints),
    ("plain loops", plain_loops),
    ("plain operators", plain_operators),
    ("halve all sizes", halved_sizes),
    ("smaller sizes", smaller_sizes),
    ("smaller tensors", smaller_tensors),
    ("fewer threads", fewer_threads),
    ("begin regions at 0", first_regions),
    ("plain element types", plain_dtypes),
    ("share buffers", share_buffers),
    ("simpler expressions", simpler_expressions),
)
"""Names and functions, in the order in which they are tried: what takes most away comes first."""
