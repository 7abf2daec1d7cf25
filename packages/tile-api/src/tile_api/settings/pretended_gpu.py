"""How a GPU is named that programs are told of: ``sm_90,multiprocessors=132,memory=80``."""

from __future__ import annotations

import re

from tile_core.records import dataclass

_ARCH = re.compile(r"sm_\d{2,3}[af]?|gfx[0-9a-f]{3,4}")


@dataclass(frozen=True, slots=True)
class PretendedGpu:
    """A GPU that programs are told of; what is "" or 0 follows from the rest."""

    arch: str = ""  # such as ``sm_90`` or ``gfx942``
    multiprocessors: int = 0
    memory: int = 0  # in GiB


def parse_gpu(text: str) -> PretendedGpu:
    """Return the GPU that `text` names.

    Examples
    --------
    >>> parse_gpu("sm_90,multiprocessors=100").multiprocessors
    100
    """
    arch, numbers = "", {"multiprocessors": 0, "memory": 0}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name in numbers and value.isdecimal() and int(value) > 0:
            numbers[name] = int(value)
        elif _ARCH.fullmatch(part) and not arch:
            arch = part
        else:
            raise ValueError(f"{part!r} says nothing of a GPU")
    return PretendedGpu(arch, **numbers)
