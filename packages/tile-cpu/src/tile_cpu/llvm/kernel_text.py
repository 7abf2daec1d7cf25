"""Changes to the LLVM IR of whole kernels: names of memory, and masked loads that stay apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

_ADDRESS = re.compile(r'(?<=!")0x[0-9a-f]+')
# LLVM escapes quotes in constants, so this is found in strings of metadata alone.
MASKED_LOAD = "@llvm.masked.load."
_CALL = re.compile(
    r'^  (%[\w.$-]+|%"[^"]*") = '
    r"((?:tail )?call <(\d+) x (i\d+|half|bfloat|float|double)> @llvm\.masked\.load\..*)$",
    re.MULTILINE,
)
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
_REGISTER = 512  # bits


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


def keep_masked_loads(text: str) -> str:
    """Return LLVM IR whose masked loads stay instructions of their own.

    LLVM's peephole optimiser makes a masked load the memory operand of a masked instruction, which
    reads no lane that is off. The two-address pass may take that apart again, and then loads
    without the mask: it reads beside tensors. Passing the value through an empty instruction keeps
    the two apart. LLVM 22 does so for AVX-512, where instructions have masks.

    Before   %v = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %p, <16 x i1> %m, ...)
    After    %tile.kept0 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %p, <16 x i1> %m, ...)
             %tile.kept1 = bitcast <16 x float> %tile.kept0 to <16 x i32>
             %tile.kept2 = call <16 x i32> asm "", "=v,0"(<16 x i32> %tile.kept1)
             %v = bitcast <16 x i32> %tile.kept2 to <16 x float>
    """
    numbers = count()
    return _CALL.sub(lambda match: _kept(match, numbers), text)


def _kept(match: re.Match[str], numbers: Iterator[int]) -> str:
    name, call, lanes, element = match[1], match[2], int(match[3]), match[4]
    bits = lanes * (_BITS.get(element) or int(element.removeprefix("i")))
    if bits < 8 or bits & (bits - 1):
        return match[0]  # no register has that size, and LLVM vectorises nothing by it
    lines: list[str] = []

    def define(value: str) -> str:
        lines.append(f"  %tile.kept{next(numbers)} = {value}")  # no buffer has such a name
        return lines[-1].split()[0]

    def through_register(kind: str, value: str) -> str:
        constraint = "v" if kind.startswith("<") else "r"
        return define(f'call {kind} asm "", "={constraint},0"({kind} {value})')

    def kept(kind: str, value: str, size: int) -> str:
        """Return `value`, of `size` lanes of 32 bits, in halves that fill a register each."""
        if size * 32 <= _REGISTER:
            return through_register(kind, value)
        half = size // 2
        part, lanes = f"<{half} x i32>", [f"i32 {lane}" for lane in range(size)]
        halves = [
            kept(part, define(
                f"shufflevector {kind} {value}, {kind} poison, <{half} x i32> <{', '.join(some)}>"
            ), half)
            for some in (lanes[:half], lanes[half:])
        ]  # fmt: skip
        both = ", ".join(f"{part} {each}" for each in halves)
        return define(f"shufflevector {both}, <{size} x i32> <{', '.join(lanes)}>")

    given = f"<{lanes} x {element}>"
    kind = f"i{bits}" if bits < 128 else f"<{bits // 32} x i32>"
    loaded = define(call)
    whole = kept(kind, define(f"bitcast {given} {loaded} to {kind}"), bits // 32)
    return "\n".join([*lines, f"  {name} = bitcast {kind} {whole} to {given}"])
