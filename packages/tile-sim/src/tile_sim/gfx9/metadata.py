"""What a code object says of its kernels: arguments, sizes, registers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_KEY = re.compile(r"^(\s*)(- )?\.(\w+):\s*(.*)$")
_KERNEL_INDENT, _ARGUMENT_INDENT = 4, 8


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: where it lies in the segment, and what it is."""

    offset: int
    size: int
    kind: str
    name: str = ""


@dataclass(slots=True)
class KernelInfo:
    """A kernel as its metadata describes it.

    Hidden arguments, which the launch fills, have kinds that begin with ``hidden_``. `numbers` are
    the other entries that are whole numbers: ``kernarg_segment_size``, ``vgpr_count``, …
    """

    name: str = ""
    arguments: list[Argument] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)


def parse_metadata(text: str) -> dict[str, KernelInfo]:
    """Return the kernels that the metadata of an assembly describes, by name.

    Examples
    --------
    >>> text = '''
    ... amdhsa.kernels:
    ...   - .args:
    ...       - .offset:         0
    ...         .size:           8
    ...         .value_kind:     global_buffer
    ...     .name:           f
    ...     .vgpr_count:     7
    ... '''
    >>> parse_metadata(text)["f"].arguments
    [Argument(offset=0, size=8, kind='global_buffer', name='')]
    """
    kernels: list[KernelInfo] = []
    entries: list[dict[str, str]] = []
    for line in text.splitlines():
        found = _KEY.match(line)
        if found is None:
            continue
        indent = len(found[1]) + len(found[2] or "")
        key, value = found[3], found[4].strip().strip("'\"")
        if indent == _KERNEL_INDENT:
            if found[2]:
                kernels.append(KernelInfo())
                entries = []
            _enter(kernels[-1], key, value)
        elif indent == _ARGUMENT_INDENT and kernels:
            if found[2]:
                entries = [*entries, {}]
                kernels[-1].arguments.append(Argument(0, 0, ""))
            entries[-1][key] = value
            kernels[-1].arguments[-1] = _argument(entries[-1])
    return {kernel.name: kernel for kernel in kernels}


def _enter(kernel: KernelInfo, key: str, value: str) -> None:
    if key == "name":
        kernel.name = value
    elif re.fullmatch(r"-?\d+", value):
        kernel.numbers[key] = int(value)


def _argument(entry: dict[str, str]) -> Argument:
    return Argument(
        int(entry.get("offset", "0")),
        int(entry.get("size", "0")),
        entry.get("value_kind", ""),
        entry.get("name", ""),
    )
