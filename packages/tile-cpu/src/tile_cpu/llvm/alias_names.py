"""Names of memory in alias metadata: numbers, where TVM writes addresses of its own objects."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r'(?<=!")0x[0-9a-f]+')
# LLVM escapes quotes in constants, so this is found in strings of metadata alone.


def number_alias_names(text: str) -> str:
    r"""Return LLVM IR in which what may alias is called ``buffer0``, ``buffer1`` and so on.

    TVM names each kind of memory after the address of its variable in the compiler's process,
    which would make each compilation of a kernel another text. Different addresses get
    different numbers, in the order of the text: the IR means the same.

    Examples
    --------
    >>> print(number_alias_names('!7 = !{!"0x55d0.w32.b0", !8, i64 0}\n!8 = !{!"0x55d0", !9}'))
    !7 = !{!"buffer0.w32.b0", !8, i64 0}
    !8 = !{!"buffer0", !9}
    """
    numbers: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        return f"buffer{numbers.setdefault(found[0], len(numbers))}"

    return _ADDRESS.sub(name, text)
